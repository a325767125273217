//! The rules of `DML_OPERATOR_FILL_VALUE_SEQUENCE`.

use super::rule_set::RuleSet;
use super::rules::{Rule, ValidationError};
use super::tensor::Tensor;
use crate::desc::{
    is_extension, FeatureLevel, FillValueSequenceDesc, OperatorType, Place, TensorRole,
};

/// Adds every rule the descriptor breaks.
pub(super) fn check(
    desc: &FillValueSequenceDesc,
    rules: &RuleSet,
    errors: &mut Vec<ValidationError>,
) {
    let (operator, role, output) = (
        OperatorType::FillValueSequence,
        TensorRole::Output,
        &desc.output_tensor,
    );
    Tensor {
        operator,
        role,
        rules,
        desc: output,
        errors,
    }
    .check();

    let (found, required) = (desc.value_data_type, output.data_type);
    let place = Place::of(operator, None, "ValueDataType");
    let required_text = format_args!("{required}, the data type of OutputTensor");
    Rule::FillValueDataType.require(found == required, errors, place, found, required_text);

    let is_extended =
        rules.level == FeatureLevel::Extended && is_extension(operator, role, required);
    let (place, strides) = (
        Place::of(operator, Some(role), "Strides"),
        output.strides.as_deref().unwrap_or_default(),
    );
    let (found, packed) = (
        format_args!("{strides:?}"),
        format_args!("none, because {required} is filled packed"),
    );
    Rule::FillPacked.require(
        !is_extended || output.strides.is_none(),
        errors,
        place,
        found,
        packed,
    );
}
