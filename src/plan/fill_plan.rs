//! The plan of FILL_VALUE_SEQUENCE: the output's dimensions in memory order.

use super::{follows, MergedDimension, Summary};
use crate::desc::data_type::TensorDataType;
use crate::desc::layout;
use crate::desc::FillValueSequenceDesc;

/// How values are computed. Signed and unsigned integers share an arithmetic, because both wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Int8,
    Int16,
    Int32,
    Int64,
    Float32,
    Float16,
    /// Not in any DirectML descriptor: [`Device::create_float64_sequence`](crate::Device::create_float64_sequence),
    /// packed.
    Float64,
}

/// A dimension of the output: neighbours are `stride` elements apart in memory and `step` apart in the logical index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub size: u32,
    pub stride: u32,
    pub step: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub arithmetic: Arithmetic,
    pub start: u64,
    pub delta: u64,
    /// The dimensions of size above 1, merged, outermost in memory first. Empty if there is one element.
    pub dimensions: Vec<Dimension>,
}

impl Arithmetic {
    /// `None` for types without an arithmetic.
    fn of(data_type: TensorDataType) -> Option<Self> {
        use TensorDataType as T;
        Some(match data_type {
            T::Int8 | T::UInt8 => Self::Int8,
            T::Int16 | T::UInt16 => Self::Int16,
            T::Int32 | T::UInt32 => Self::Int32,
            T::Int64 | T::UInt64 => Self::Int64,
            T::Float32 => Self::Float32,
            T::Float16 => Self::Float16,
            T::Float64 => Self::Float64,
            T::UInt4 | T::Int4 => return None,
        })
    }

    /// Bytes of one element.
    pub const fn width(self) -> u32 {
        match self {
            Self::Int8 => 1,
            Self::Int16 | Self::Float16 => 2,
            Self::Int32 | Self::Float32 => 4,
            Self::Int64 | Self::Float64 => 8,
        }
    }
}

impl Plan {
    /// The plan of a validated descriptor; `None` if the descriptor was not validated.
    pub fn new(desc: &FillValueSequenceDesc) -> Option<Self> {
        let output = &desc.output_tensor;
        let arithmetic = Arithmetic::of(output.data_type)?;
        if arithmetic == Arithmetic::Float64 && output.strides.is_some() {
            return None;
        }
        let (start, delta) = (desc.value_start.to_bits(), desc.value_delta.to_bits());
        let steps = layout::packed_strides(&output.sizes);
        let strides = output.strides.as_ref().unwrap_or(&steps);
        let dimensions = (0..output.sizes.len())
            .map(|d| Dimension { size: output.sizes[d], stride: strides[d], step: steps[d] })
            .collect();
        Some(Self { arithmetic, start, delta, dimensions: merge(dimensions) })
    }

    pub fn summary(&self) -> Summary {
        let dimension = |d: &Dimension| MergedDimension {
            size: d.size,
            is_axis: false,
            strides: vec![("OutputTensor", d.stride), ("index", d.step)],
        };
        let elements: u64 = self.dimensions.iter().map(|d| u64::from(d.size)).product();
        Summary {
            dimensions: self.dimensions.iter().map(dimension).collect(),
            mode: "fill",
            bytes: elements * u64::from(self.arithmetic.width()),
            bytes_in_place: None,
        }
    }
}

/// Drops dimensions of size 1, sorts the rest by stride, and joins neighbours that are contiguous in memory and in the
/// index.
fn merge(mut dimensions: Vec<Dimension>) -> Vec<Dimension> {
    dimensions.retain(|d| d.size > 1);
    dimensions.sort_by_key(|d| std::cmp::Reverse(d.stride));
    let mut merged: Vec<Dimension> = Vec::with_capacity(dimensions.len());
    for inner in dimensions {
        match merged.last_mut() {
            Some(outer)
                if follows(outer.stride, inner.stride, inner.size) && follows(outer.step, inner.step, inner.size) =>
            {
                *outer = Dimension { size: outer.size * inner.size, ..inner };
            }
            _ => merged.push(inner),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimensions(sizes_and_strides: &[(u32, u32, u32)]) -> Vec<Dimension> {
        sizes_and_strides.iter().map(|&(size, stride, step)| Dimension { size, stride, step }).collect()
    }

    #[test]
    fn a_type_is_as_wide_as_its_elements() {
        for data_type in TensorDataType::ALL {
            let Some(arithmetic) = Arithmetic::of(data_type) else { continue };
            assert_eq!(arithmetic.width() * 8, data_type.size_in_bits(), "{data_type}");
        }
    }

    #[test]
    fn packed_tensors_are_one_run() {
        let merged = merge(dimensions(&[(2, 60, 60), (1, 7, 60), (3, 20, 20), (20, 1, 1)]));
        assert_eq!(merged, dimensions(&[(120, 1, 1)]));
    }

    #[test]
    fn permuted_tensors_keep_their_index_steps() {
        // NHWC memory of an NCHW tensor [2, 3, 4, 5]: H and W are one, N and C stay.
        let merged = merge(dimensions(&[(2, 60, 60), (3, 1, 20), (4, 15, 5), (5, 3, 1)]));
        assert_eq!(merged, dimensions(&[(2, 60, 60), (20, 3, 1), (3, 1, 20)]));
    }

    #[test]
    fn padded_rows_stay_rows() {
        let merged = merge(dimensions(&[(4, 70, 50), (5, 14, 10), (10, 1, 1)]));
        assert_eq!(merged, dimensions(&[(20, 14, 10), (10, 1, 1)]));
    }
}
