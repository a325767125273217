//! Errors of tensors that cannot be described, with the caller's names for them.

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
    /// The lengths are not integers of 32 or 64 bits.
    LengthType {
        /// Their type.
        found: TensorDataType,
    },
    /// The lengths have a type of the caller's that is none of [`TensorDataType`].
    ForeignLengthType {
        /// The caller's name of the type.
        found: String,
    },
    /// A length on the host is negative, or too large.
    Length {
        /// Which one.
        index: Vec<i64>,
        /// The length.
        found: i128,
        /// The size of the axis, if no length may be larger.
        most: Option<i64>,
    },
    /// An element has no bytes, or too many.
    ElementSize {
        /// Its bytes.
        found: usize,
        /// The most that it can have.
        most: u64,
    },
    /// The lengths do not broadcast to the sequences of the input.
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
    /// The number of strides is not the number of sizes.
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
        /// The required value.
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
        /// The required value.
        required: String,
    },
    /// Too many dimensions, which do not fold into those of a descriptor.
    Fold {
        /// The input's sizes.
        shape: Vec<i64>,
    },
}

const LENGTH_TYPES: &str = "but must have integers of 32 or 64 bits";

impl LoweringError {
    /// The message with the caller's names for the tensors.
    pub fn message(&self, names: &Names<'_>) -> String {
        let [input, lengths, output] = [
            TensorRole::Input,
            TensorRole::SequenceLengths,
            TensorRole::Output,
        ]
        .map(|tensor| names.of(tensor));
        let axis = names.axis;
        match self {
            Self::Axis { rank: 0, .. } => {
                format!("{input} has 0 dimensions, but must have at least 1")
            }
            Self::Axis { found, rank } => {
                let end = *rank as i64;
                format!(
                    "{axis} is {found}, but must be from {} to {}, the dimensions of {input}",
                    -end,
                    end - 1
                )
            }
            Self::LengthType { found } => format!("{lengths} has type {found}, {LENGTH_TYPES}"),
            Self::ForeignLengthType { found } => format!("{lengths} has {found}, {LENGTH_TYPES}"),
            Self::Length { index, found, most } => {
                let at = if index.is_empty() {
                    String::new()
                } else {
                    format!("{index:?}")
                };
                let most = most.map(|most| format!("from 0 to {most}, the size of {axis}"));
                format!(
                    "{lengths}{at} is {found}, but must be {}",
                    most.as_deref().unwrap_or("at least 0")
                )
            }
            Self::ElementSize { found, most } => {
                format!("an element of {input} is {found} bytes, but must be from 1 to {most}")
            }
            Self::Lengths { found, required } => {
                format!("{lengths} has shape {found:?}, but must broadcast to {required:?}, {input}'s with 1 at {axis}")
            }
            Self::Output { found, required } => {
                format!("{output} has shape {found:?}, but must have {input}'s {required:?}")
            }
            Self::Strides {
                tensor,
                found,
                required,
            } => {
                let tensor = names.of(*tensor);
                format!("the number of strides of {tensor} is {found}, but must be {required}, one for each dimension")
            }
            Self::Size {
                tensor,
                dimension,
                found,
                required,
            } => {
                format!(
                    "dimension {dimension} of {} is {found}, but must be {required}",
                    names.of(*tensor)
                )
            }
            Self::Stride {
                tensor,
                dimension,
                found,
                required,
            } => {
                format!(
                    "stride {dimension} of {} is {found} bytes, but must be {required}",
                    names.of(*tensor)
                )
            }
            Self::Fold { shape } => {
                let sizes = shape
                    .iter()
                    .map(i64::to_string)
                    .collect::<Vec<_>>()
                    .join(", ");
                let required = format!(
                    "but must fold into {MAX_DIMENSIONS} dimensions for these strides and lengths"
                );
                format!("{input} has shape ({sizes}), {required}")
            }
        }
    }
}
