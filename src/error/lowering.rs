//! Why tensors cannot be described, in the caller's words.

use crate::desc::{Names, TensorDataType, TensorRole, MAX_DIMENSIONS};

/// Why tensors cannot be described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message(&Names::DIRECTML))]
#[non_exhaustive]
pub enum LoweringError {
    /// The axis is not one of the input's dimensions.
    Axis {
        /// The axis given.
        found: i64,
        /// The input's dimensions.
        rank: usize,
    },
    /// The lengths have a type of less than a byte.
    LengthType {
        /// Their type.
        found: TensorDataType,
    },
    /// An element has no bytes, or too many.
    ElementSize {
        /// Its bytes.
        found: usize,
        /// The most that it can have.
        most: u64,
    },
    /// The lengths do not broadcast to the input's lanes.
    Lengths {
        /// Their shape.
        found: Vec<i64>,
        /// The input's shape with 1 at the axis.
        required: Vec<i64>,
    },
    /// The output of a reversal has other sizes than the input.
    Output {
        /// Its sizes.
        found: Vec<i64>,
        /// The input's.
        required: Vec<i64>,
    },
    /// There are not as many strides as sizes.
    Strides {
        /// The tensor with the wrong number of strides.
        tensor: TensorRole,
        /// The strides given.
        found: usize,
        /// Its dimensions.
        required: usize,
    },
    /// A size that is not possible.
    Size {
        /// The tensor with the wrong size.
        tensor: TensorRole,
        /// Which dimension.
        dimension: usize,
        /// Its size.
        found: i64,
        /// What it must be.
        required: String,
    },
    /// A stride that is not possible.
    Stride {
        /// The tensor with the wrong stride.
        tensor: TensorRole,
        /// The stride's dimension.
        dimension: usize,
        /// The stride.
        found: i64,
        /// What it must be.
        required: String,
    },
    /// Too many dimensions, which do not fold into those of a descriptor.
    Fold {
        /// The input's sizes.
        shape: Vec<i64>,
    },
}

impl LoweringError {
    /// The message in the caller's words.
    pub fn message(&self, names: &Names<'_>) -> String {
        let Names { input, lengths, output, axis } = *names;
        match self {
            Self::Axis { found, rank: 0 } => {
                format!("{axis} is {found}, must be a dimension of {input}, which has none")
            }
            Self::Axis { found, rank } => {
                let end = *rank as i64;
                format!("{axis} is {found}, must be from {} to {}, of an {input} of {rank} dimensions", -end, end - 1)
            }
            Self::LengthType { found } => format!("{lengths} has type {found}, must be UINT32 or UINT64"),
            Self::ElementSize { found, most } => {
                format!("an element of {input} is {found} bytes, must be from 1 to {most}")
            }
            Self::Lengths { found, required } => {
                format!("{lengths} has shape {found:?}, must broadcast to {required:?}, {input}'s with 1 at {axis}")
            }
            Self::Output { found, required } => {
                format!("{output} has shape {found:?}, must have {input}'s {required:?}")
            }
            Self::Strides { tensor, found, required } => {
                format!("{} has {found} strides, must have {required}, one for each dimension", names.of(*tensor))
            }
            Self::Size { tensor, dimension, found, required } => {
                format!("dimension {dimension} of {} is {found}, must be {required}", names.of(*tensor))
            }
            Self::Stride { tensor, dimension, found, required } => {
                format!("stride {dimension} of {} is {found} bytes, must be {required}", names.of(*tensor))
            }
            Self::Fold { shape } => {
                let sizes = shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                let required = format!("must fold into {MAX_DIMENSIONS} dimensions for these strides and lengths");
                format!("{input} has shape ({sizes}), {required}")
            }
        }
    }
}
