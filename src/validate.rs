//! Validation: a descriptor and a feature level in, every broken rule out.
//!
//! Nothing here knows a device, a pointer or a backend. Sources: Microsoft's pages of the two operators and
//! of `DML_BUFFER_TENSOR_DESC`, and verdicts recorded from DirectML 1.13 (`docs/directml.md` has the table).

mod fill_value_sequence;
mod reverse_subsequences;
mod rules;
mod tensor;

use std::fmt;

pub use rules::{Requirement, Rule, ValidationError};

use crate::desc::OperatorDesc;
use crate::feature_level::{minimum_feature_level, FeatureLevel};

/// Every rule that a descriptor breaks, in the order of its fields; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// The broken rules.
    pub fn errors(&self) -> &[ValidationError] {
        &self.0
    }
}

impl IntoIterator for ValidationErrors {
    type Item = ValidationError;
    type IntoIter = std::vec::IntoIter<ValidationError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// One line for each broken rule.
impl fmt::Display for ValidationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ValidationErrors {}

/// Checks a descriptor against every rule of its operator at `level`.
pub fn validate(desc: &OperatorDesc, level: FeatureLevel) -> Result<(), ValidationErrors> {
    let operator = desc.operator_type();
    let errors = match desc {
        _ if level < minimum_feature_level(operator) => {
            let place = match desc {
                OperatorDesc::FillValueSequence(_) => fill_value_sequence::PLACE,
                OperatorDesc::ReverseSubsequences(_) => reverse_subsequences::PLACE,
            };
            vec![rules::operator_feature_level(place, operator, level)]
        }
        OperatorDesc::FillValueSequence(desc) => fill_value_sequence::check(desc, level),
        OperatorDesc::ReverseSubsequences(desc) => reverse_subsequences::check(desc, level),
    };
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ValidationErrors(errors))
    }
}
