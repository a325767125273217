//! Validation: takes a descriptor and a feature level, and returns every broken rule.
//!
//! Nothing here knows a device, a pointer or a backend. Sources: Microsoft's pages of the two operators and of
//! `DML_BUFFER_TENSOR_DESC`, and verdicts recorded from thirteen versions of DirectML (`docs/directml.md` has the
//! tables).

pub(crate) mod fill_rules;
pub(crate) mod reverse_rules;
mod rule_set;
mod rules;
mod tensor;
mod version;

use std::fmt;

pub(crate) use rule_set::RuleSet;
pub(crate) use rules::operator_feature_level;
pub use rules::{Requirement, Rule, ValidationError};
pub use version::{Caveat, DirectMlVersion, ParseDirectMlVersionError};

/// Every rule that a descriptor breaks, in the order of its fields; never empty.
///
/// ```
/// use dml_cuda::{validate, BufferTensorDesc, FeatureLevel, FillValueSequenceDesc, Requirement, Rule, ScalarUnion, TensorDataType};
/// let desc = FillValueSequenceDesc {
///     output_tensor: BufferTensorDesc::packed(TensorDataType::Float32, &[2, 3]),
///     value_data_type: TensorDataType::Int32,
///     value_start: ScalarUnion::Int32(0),
///     value_delta: ScalarUnion::Int32(1),
/// };
/// let broken = validate(&desc.into(), FeatureLevel::HIGHEST).unwrap_err();
/// let error = &broken.errors()[0];
/// assert_eq!((error.rule, error.rule.id()), (Rule::FillValueDataType, "fill.value_data_type"));
/// assert_eq!(error.requirement, Requirement::MustBe("FLOAT32, the data type of OutputTensor".to_owned()));
/// ```
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

impl ValidationErrors {
    /// `Err` with the broken rules, if there are any.
    pub(crate) fn check(broken: Vec<ValidationError>) -> Result<(), Self> {
        if broken.is_empty() {
            Ok(())
        } else {
            Err(Self(broken))
        }
    }
}
