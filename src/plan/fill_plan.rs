//! The plan of FILL_VALUE_SEQUENCE: the output's dimensions in memory order.

use super::{merge, MergedDimension, StridedDimension, Summary};
use crate::desc::{layout, FillValueSequenceDesc, TensorDataType};

/// How values are computed. Signed and unsigned integers share an arithmetic, because both wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Int8,
    Int16,
    Int32,
    Int64,
    Float32,
    Float16,
    /// Only of packed tensors.
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
    /// Bytes of an element.
    pub width: u32,
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
}

impl Plan {
    /// The plan of a validated descriptor; `None` if the descriptor was not validated.
    pub fn new(desc: &FillValueSequenceDesc) -> Option<Self> {
        let output = &desc.output_tensor;
        let arithmetic = Arithmetic::of(output.data_type)?;
        let steps = layout::packed_strides(&output.sizes);
        let strides = output.strides.as_ref().unwrap_or(&steps);
        let mut all = Vec::with_capacity(steps.len());
        for (d, &size) in output.sizes.iter().enumerate() {
            all.push(StridedDimension::new(size, [strides[d], steps[d]]));
        }
        let mut dimensions = Vec::new();
        for StridedDimension { size, strides } in merge(all) {
            let [stride, step] = strides;
            dimensions.push(Dimension { size, stride, step });
        }
        Some(Self {
            arithmetic,
            width: output.data_type.size_in_bits() / 8,
            start: desc.value_start.to_bits(),
            delta: desc.value_delta.to_bits(),
            dimensions,
        })
    }

    pub fn summary(&self) -> Summary {
        let dimension = |d: &Dimension| MergedDimension {
            size: d.size,
            is_axis: false,
            strides: vec![("OutputTensor", d.stride), ("index", d.step)],
        };
        let elements: u64 = self.dimensions.iter().map(|d| u64::from(d.size)).product();
        let copying = ("fill", elements * u64::from(self.width));
        Summary {
            dimensions: self.dimensions.iter().map(dimension).collect(),
            copying,
            in_place: None,
        }
    }
}
