//! Validation: takes a descriptor and a feature level, and returns every broken rule.
//!
//! Nothing here knows a device, a pointer or a backend. Sources: Microsoft's pages of the two operators and of
//! `DML_BUFFER_TENSOR_DESC`, and verdicts recorded from thirteen versions of DirectML (`docs/directml.md` has the
//! tables).

mod fill_rules;
mod reverse_rules;
mod rule_set;
mod rules;
mod tensor;
mod version;

use crate::desc::MAX_DIMENSIONS;
use crate::desc::{
    minimum_feature_level, FeatureLevel, Names, OperatorDesc, OperatorType, Place, TensorRole,
};
use rule_set::RuleSet;
pub use rules::{ParseRuleError, Requirement, Rule, ValidationError};
pub use version::{Caveat, DirectMlVersion, ParseDirectMlVersionError};

/// Every rule that a descriptor breaks, in the order of its fields; never empty.
///
/// ```
/// use dml_cuda::{validate, BufferTensorDesc, FeatureLevel, FillValueSequenceDesc};
/// use dml_cuda::{Requirement, Rule, ScalarUnion, TensorDataType};
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message(&Names::DIRECTML))]
pub struct ValidationErrors(Vec<ValidationError>);

impl ValidationErrors {
    /// The rule of overlapping outputs alone, with the sizes and strides of the caller's array. The
    /// descriptor has those of merged dimensions, which no caller knows.
    pub(crate) fn of_array(self, sizes: &[i64], strides_in_bytes: &[i64]) -> Self {
        let is_of_output = |error: &&ValidationError| error.rule.id().starts_with("output.");
        let Some(mut broken) = self.0.iter().find(is_of_output).cloned() else {
            return self;
        };
        broken.place.index = None;
        broken.found = format!("{strides_in_bytes:?} bytes");
        let required =
            format!("strides that place no two elements of the sizes {sizes:?} in the same memory");
        broken.requirement = Requirement::MustBe(required);
        Self(vec![broken])
    }

    /// More dimensions than a caller wants to read the sizes of.
    #[doc(hidden)]
    pub fn too_many_dimensions(operator: OperatorType, tensor: TensorRole, found: u32) -> Self {
        let place = Place::of(operator, Some(tensor), "DimensionCount");
        let required = Requirement::MustBe(format!("from 1 to {MAX_DIMENSIONS}"));
        Self(vec![
            Rule::TensorDimensionCount.broken(place, found, required)
        ])
    }

    /// The broken rules.
    pub fn errors(&self) -> &[ValidationError] {
        &self.0
    }

    /// The message with the caller's names for the tensors: a line for each rule.
    pub fn message(&self, names: &Names<'_>) -> String {
        self.0
            .iter()
            .map(|error| error.message(names))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl<'a> IntoIterator for &'a ValidationErrors {
    type Item = &'a ValidationError;
    type IntoIter = std::slice::Iter<'a, ValidationError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl IntoIterator for ValidationErrors {
    type Item = ValidationError;
    type IntoIter = std::vec::IntoIter<ValidationError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The rules that a descriptor breaks.
fn check(desc: &OperatorDesc, rules: &RuleSet) -> Result<(), ValidationErrors> {
    let mut errors = Vec::new();
    let operator = desc.operator_type();
    let lowest = minimum_feature_level(operator);
    match desc {
        _ if rules.level < lowest => {
            let found = format_args!("{} at {}", operator.name(), rules.level);
            let needs = Requirement::Needs(lowest);
            let place = Place {
                operator,
                tensor: None,
                field: None,
                index: None,
            };
            errors.push(Rule::OperatorFeatureLevel.broken(place, found, needs));
        }
        OperatorDesc::FillValueSequence(desc) => fill_rules::check(desc, rules, &mut errors),
        OperatorDesc::ReverseSubsequences(desc) => reverse_rules::check(desc, rules, &mut errors),
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ValidationErrors(errors))
}

/// Checks a descriptor against every rule of its operator at `level`.
pub fn validate(desc: &OperatorDesc, level: FeatureLevel) -> Result<(), ValidationErrors> {
    check(desc, &RuleSet::at(level))
}

/// The answer of a version of DirectML: the rules that it finds broken or, if it accepts the descriptor, what it then
/// gets wrong. This reproduces its wrap-arounds, and that it does not detect overlapping outputs.
///
/// ```
/// use dml_cuda::{validate_as, BufferTensorDesc, DirectMlVersion, FillValueSequenceDesc, ScalarUnion, TensorDataType};
/// let desc = FillValueSequenceDesc {
///     output_tensor: BufferTensorDesc::packed(TensorDataType::Float32, &[2, 3]),
///     value_data_type: TensorDataType::Float32,
///     value_start: ScalarUnion::Float32(0.0),
///     value_delta: ScalarUnion::Float32(1.0),
/// };
/// let accepting: Vec<String> = DirectMlVersion::recorded()
///     .filter(|version| validate_as(&desc.clone().into(), version).is_ok())
///     .map(|version| version.to_string())
///     .collect();
/// assert_eq!(accepting[0], "1.7.0"); // before, a fill has 4 dimensions
/// ```
pub fn validate_as(
    desc: &OperatorDesc,
    version: &DirectMlVersion,
) -> Result<Vec<Caveat>, ValidationErrors> {
    check(desc, &version.rules())?;
    Ok(version.caveats(desc))
}
