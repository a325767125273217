//! The plan of REVERSE_SUBSEQUENCES: the axis and the other dimensions.

use super::{merge, MergedDimension, StridedDimension, Summary};
use crate::desc::{layout, BufferTensorDesc, ReverseSubsequencesDesc, TensorDataType};

/// Bytes of the widest element.
const MAX_WIDTH: u32 = 8;

/// A dimension. Strides are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub size: u32,
    pub in_stride: u32,
    pub out_stride: u32,
    pub length_stride: u32,
}

impl Dimension {
    /// This dimension in blocks of `size` elements. `None` if a stride is not a number of whole blocks.
    fn in_blocks(self, size: u32) -> Option<Self> {
        let is_whole = self.in_stride.is_multiple_of(size) && self.out_stride.is_multiple_of(size);
        is_whole.then_some(Self {
            in_stride: self.in_stride / size,
            out_stride: self.out_stride / size,
            ..self
        })
    }

    /// The dimension in the form that [`merge`] takes.
    fn strided(self) -> StridedDimension<3> {
        // The output is first, because `merge` sorts by its strides.
        StridedDimension {
            size: self.size,
            strides: [self.out_stride, self.in_stride, self.length_stride],
        }
    }

    fn of_strided(dimension: StridedDimension<3>) -> Self {
        let [out_stride, in_stride, length_stride] = dimension.strides;
        Self {
            size: dimension.size,
            in_stride,
            out_stride,
            length_stride,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Bytes of an element.
    pub width: u32,
    /// Whether lengths are UINT64 (else UINT32).
    pub wide_lengths: bool,
    /// The dimension along which lanes run. Its length stride is 0.
    pub axis: Dimension,
    /// The other dimensions of size above 1, merged, outermost in the output's memory first.
    pub dimensions: Vec<Dimension>,
    /// Whether the output may be the input: both tensors have the same strides.
    pub in_place: bool,
    /// Bytes from the begin of the input's first element to the end of its last. Kernels read nothing outside.
    pub input_bytes: u64,
    /// The plan that treats each inner block as one element, if inner blocks have at most 8 bytes.
    pub blocks_as_elements: Option<Box<Plan>>,
}

impl Plan {
    /// The plan of a validated descriptor; `None` if the descriptor was not validated.
    pub fn new(desc: &ReverseSubsequencesDesc) -> Option<Self> {
        let input = &desc.input_tensor;
        let lengths = &desc.sequence_lengths_tensor;
        let in_strides = strides(input);
        let out_strides = strides(&desc.output_tensor);
        let length_strides = strides(lengths);
        let a = desc.axis as usize;
        let mut others = Vec::new();
        let mut axis = None;
        for d in 0..input.sizes.len() {
            let dimension = Dimension {
                size: input.sizes[d],
                in_stride: in_strides[d],
                out_stride: out_strides[d],
                length_stride: if d == a { 0 } else { length_strides[d] },
            };
            if d == a {
                axis = Some(dimension);
            } else {
                others.push(dimension.strided());
            }
        }
        let axis = axis?;
        let merged = merge(others).into_iter();
        let dimensions: Vec<Dimension> = merged.map(Dimension::of_strided).collect();
        let same_axis = axis.size == 1 || axis.in_stride == axis.out_stride;
        let mut plan = Self {
            width: input.data_type.size_in_bits() / 8,
            wide_lengths: lengths.data_type == TensorDataType::UInt64,
            axis,
            in_place: same_axis && dimensions.iter().all(|d| d.in_stride == d.out_stride),
            dimensions,
            input_bytes: input.span_in_bytes(),
            blocks_as_elements: None,
        };
        plan.blocks_as_elements = plan.with_blocks_as_elements();
        Some(plan)
    }

    /// The plan with each inner block as one element, if the block moves whole and all other strides are whole blocks.
    fn with_blocks_as_elements(&self) -> Option<Box<Self>> {
        let (block, outer) = self.dimensions.split_last()?;
        let moves_whole = block.in_stride == 1 && block.out_stride == 1 && block.length_stride == 0;
        if !moves_whole || block.size.saturating_mul(self.width) > MAX_WIDTH {
            return None;
        }
        let mut dimensions = Vec::with_capacity(outer.len());
        for dimension in outer {
            dimensions.push(dimension.in_blocks(block.size)?);
        }
        Some(Box::new(Self {
            width: self.width * block.size,
            axis: self.axis.in_blocks(block.size)?,
            dimensions,
            blocks_as_elements: None,
            ..*self
        }))
    }

    pub fn summary(&self) -> Summary {
        let dimension = |d: &Dimension| MergedDimension {
            size: d.size,
            is_axis: false,
            strides: vec![
                ("InputTensor", d.in_stride),
                ("SequenceLengthsTensor", d.length_stride),
                ("OutputTensor", d.out_stride),
            ],
        };
        let mut dimensions: Vec<MergedDimension> = self.dimensions.iter().map(dimension).collect();
        let axis = &self.axis;
        let at = self
            .dimensions
            .iter()
            .position(|d| d.out_stride < axis.out_stride)
            .unwrap_or(dimensions.len());
        let strides = vec![
            ("InputTensor", axis.in_stride),
            ("OutputTensor", axis.out_stride),
        ];
        dimensions.insert(
            at,
            MergedDimension {
                size: axis.size,
                is_axis: true,
                strides,
            },
        );

        // Elements that are broadcast are read once.
        let mut read = if axis.in_stride == 0 {
            1
        } else {
            u64::from(axis.size)
        };
        let mut written = u64::from(axis.size);
        let mut lengths = 1;
        for d in &self.dimensions {
            let size = u64::from(d.size);
            read *= if d.in_stride == 0 { 1 } else { size };
            written *= if d.out_stride == 0 { 1 } else { size };
            lengths *= if d.length_stride == 0 { 1 } else { size };
        }
        let length_bytes = lengths * if self.wide_lengths { 8 } else { 4 };
        let bytes = (read + written) * u64::from(self.width) + length_bytes;
        let in_place = self
            .in_place
            .then_some(if axis.size < 2 { 0 } else { bytes });
        Summary {
            dimensions,
            copying: ("copying", bytes),
            in_place,
        }
    }
}

fn strides(tensor: &BufferTensorDesc) -> Vec<u32> {
    tensor
        .strides
        .clone()
        .unwrap_or_else(|| layout::packed_strides(&tensor.sizes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::TensorDataType;

    /// The plan of a packed tensor of two-byte elements along axis 1, with a length for each pair of the other
    /// coordinates.
    fn summary(sizes: [u32; 3], length_type: TensorDataType) -> Summary {
        let tensor = BufferTensorDesc::packed(TensorDataType::Float16, &sizes);
        let lengths = BufferTensorDesc::packed(length_type, &[sizes[0], 1, sizes[2]]);
        let desc = ReverseSubsequencesDesc {
            input_tensor: tensor.clone(),
            sequence_lengths_tensor: lengths,
            output_tensor: tensor,
            axis: 1,
        };
        Plan::new(&desc).expect("a plan").summary()
    }

    #[test]
    fn a_summary_counts_elements_twice_and_lengths_once() {
        // In place, lanes of one element do not change.
        for (size, length_type, copying, in_place) in [
            (
                7,
                TensorDataType::UInt32,
                2 * 3 * 7 * 5 * 2 + 3 * 5 * 4,
                480,
            ),
            (
                7,
                TensorDataType::UInt64,
                2 * 3 * 7 * 5 * 2 + 3 * 5 * 8,
                540,
            ),
            (1, TensorDataType::UInt32, 2 * 3 * 5 * 2 + 3 * 5 * 4, 0),
            (
                2,
                TensorDataType::UInt32,
                2 * 3 * 2 * 5 * 2 + 3 * 5 * 4,
                180,
            ),
        ] {
            let found = summary([3, size, 5], length_type);
            assert_eq!(
                (found.copying, found.in_place),
                (("copying", copying), Some(in_place))
            );
        }
    }

    #[test]
    fn a_summary_counts_what_is_broadcast_once() {
        let tensor =
            |strides: &[u32]| BufferTensorDesc::strided(TensorDataType::UInt8, &[3, 8, 5], strides);
        let lengths = BufferTensorDesc::strided(TensorDataType::UInt32, &[3, 1, 5], &[1, 0, 0]);
        for (strides, read) in [
            ([40, 5, 1], 120),
            ([0, 5, 1], 40),
            ([5, 0, 1], 15),
            ([0, 0, 0], 1),
        ] {
            let desc = ReverseSubsequencesDesc {
                input_tensor: tensor(&strides),
                sequence_lengths_tensor: lengths.clone(),
                output_tensor: tensor(&[40, 5, 1]),
                axis: 1,
            };
            assert_eq!(
                Plan::new(&desc).expect("a plan").summary().copying.1,
                read + 120 + 12,
                "{strides:?}"
            );
        }
    }

    #[test]
    fn a_summary_has_the_axis_where_it_lies_in_memory() {
        let of = summary([3, 7, 5], TensorDataType::UInt32);
        let order: Vec<(u32, bool)> = of.dimensions.iter().map(|d| (d.size, d.is_axis)).collect();
        assert_eq!(order, [(3, false), (7, true), (5, false)]);
    }

    /// Small blocks with one length move as single elements of their size.
    #[test]
    fn small_blocks_are_elements() {
        for (data_type, sizes, width) in [
            (TensorDataType::UInt8, [2, 4, 3], Some(3)),
            (TensorDataType::UInt8, [2, 4, 8], Some(8)),
            (TensorDataType::UInt8, [2, 4, 9], None),
            (TensorDataType::UInt16, [2, 4, 2], Some(4)),
            (TensorDataType::Float32, [2, 4, 2], Some(8)),
            (TensorDataType::Float32, [2, 4, 3], None),
        ] {
            let tensor = BufferTensorDesc::packed(data_type, &sizes);
            let lengths =
                BufferTensorDesc::strided(TensorDataType::UInt32, &[2, 1, sizes[2]], &[1, 1, 0]);
            let (input_tensor, output_tensor) = (tensor.clone(), tensor);
            let desc = ReverseSubsequencesDesc {
                input_tensor,
                sequence_lengths_tensor: lengths,
                output_tensor,
                axis: 1,
            };
            let plan = Plan::new(&desc).expect("a plan");
            let found = plan.blocks_as_elements;
            assert_eq!(
                found.as_ref().map(|plan| plan.width),
                width,
                "{data_type} {sizes:?}"
            );
            assert!(found.is_none_or(|plan| plan.axis.in_stride == 1 && plan.dimensions.len() == 1));
        }
    }
}
