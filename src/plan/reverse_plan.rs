//! The plan of REVERSE_SUBSEQUENCES: the axis and the other dimensions.

use super::{merge, MergedDimension, Steps, Summary};
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
        let (input, lengths, output) = (
            &desc.input_tensor,
            &desc.sequence_lengths_tensor,
            &desc.output_tensor,
        );
        let (in_strides, length_strides, out_strides) =
            (strides(input), strides(lengths), strides(output));
        let a = desc.axis as usize;
        // The output is first, because `merge` sorts by its strides.
        let dimension = |(size, strides): Steps<3>| {
            let [out_stride, in_stride, length_stride] = strides;
            Dimension {
                size,
                in_stride,
                out_stride,
                length_stride,
            }
        };
        let axis = dimension((
            *input.sizes.get(a)?,
            [*out_strides.get(a)?, *in_strides.get(a)?, 0],
        ));
        let others = (0..input.sizes.len()).filter(|&d| d != a);
        let others = others.map(|d| {
            (
                input.sizes[d],
                [out_strides[d], in_strides[d], length_strides[d]],
            )
        });
        let dimensions: Vec<Dimension> =
            merge(others.collect()).into_iter().map(dimension).collect();
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

    fn with_blocks_as_elements(&self) -> Option<Box<Self>> {
        let (block, dimensions) = self.dimensions.split_last()?;
        let (size, axis) = (block.size, &self.axis);
        let moved_whole = (block.in_stride, block.out_stride, block.length_stride) == (1, 1, 0);
        let strides = dimensions.iter().flat_map(|d| [d.in_stride, d.out_stride]);
        let apart = strides
            .chain([axis.in_stride, axis.out_stride])
            .all(|stride| stride % size == 0);
        let in_blocks = |d: &Dimension| Dimension {
            in_stride: d.in_stride / size,
            out_stride: d.out_stride / size,
            ..*d
        };
        (moved_whole && apart && size.saturating_mul(self.width) <= MAX_WIDTH).then(|| {
            let dimensions = dimensions.iter().map(in_blocks).collect();
            let (width, axis) = (self.width * size, in_blocks(axis));
            Box::new(Self {
                width,
                axis,
                dimensions,
                blocks_as_elements: None,
                ..*self
            })
        })
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
        let count = |stride: fn(&Dimension) -> u32| -> u64 {
            self.dimensions
                .iter()
                .filter(|d| stride(d) != 0)
                .map(|d| u64::from(d.size))
                .product()
        };
        let read =
            count(|d| d.in_stride) * u64::from(if axis.in_stride == 0 { 1 } else { axis.size });
        let written = count(|d| d.out_stride) * u64::from(axis.size);
        let lengths = count(|d| d.length_stride) * if self.wide_lengths { 8 } else { 4 };
        let bytes = (read + written) * u64::from(self.width) + lengths;
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
