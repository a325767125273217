//! The operators, and the roles of their tensors.

use std::fmt;
use std::str::FromStr;

use crate::text::echoed;

/// `DML_OPERATOR_TYPE`: the operators of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperatorType {
    /// `DML_OPERATOR_FILL_VALUE_SEQUENCE`.
    FillValueSequence,
    /// `DML_OPERATOR_REVERSE_SUBSEQUENCES`.
    ReverseSubsequences,
}

/// A tensor of an operator, by the name of its field in the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorRole {
    /// `InputTensor`.
    Input,
    /// `SequenceLengthsTensor`.
    SequenceLengths,
    /// `OutputTensor`.
    Output,
}

impl TensorRole {
    /// The field's name in DirectML's descriptor.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "InputTensor",
            Self::SequenceLengths => "SequenceLengthsTensor",
            Self::Output => "OutputTensor",
        }
    }

    /// The tensors of an operator, in the order of its descriptor's fields.
    pub const fn of(operator: OperatorType) -> &'static [TensorRole] {
        match operator {
            OperatorType::FillValueSequence => &[Self::Output],
            OperatorType::ReverseSubsequences => {
                &[Self::Input, Self::SequenceLengths, Self::Output]
            }
        }
    }
}

impl OperatorType {
    /// Every operator.
    pub const ALL: &'static [OperatorType] = &[Self::FillValueSequence, Self::ReverseSubsequences];

    /// DirectML's full name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FillValueSequence => "DML_OPERATOR_FILL_VALUE_SEQUENCE",
            Self::ReverseSubsequences => "DML_OPERATOR_REVERSE_SUBSEQUENCES",
        }
    }

    /// The name of its descriptor: places in error messages begin with it.
    pub const fn desc_name(self) -> &'static str {
        match self {
            Self::FillValueSequence => "FillValueSequenceDesc",
            Self::ReverseSubsequences => "ReverseSubsequencesDesc",
        }
    }
}

/// Writes DirectML's full name.
impl fmt::Display for OperatorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not the name of an [`OperatorType`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an operator; known are DML_OPERATOR_FILL_VALUE_SEQUENCE and DML_OPERATOR_REVERSE_SUBSEQUENCES, each also without the prefix DML_OPERATOR_")]
pub struct ParseOperatorTypeError(String);

impl FromStr for OperatorType {
    type Err = ParseOperatorTypeError;

    /// Reads DirectML's name, with or without `DML_OPERATOR_`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_its = |name: &str| name == text || name.strip_prefix("DML_OPERATOR_") == Some(text);
        let found = Self::ALL.iter().find(|operator| is_its(operator.name()));
        found
            .copied()
            .ok_or_else(|| ParseOperatorTypeError(echoed(text)))
    }
}
