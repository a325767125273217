//! The rules of `DML_OPERATOR_FILL_VALUE_SEQUENCE`.

use super::rule_set::RuleSet;
use super::rules::{Rule, ValidationError};
use super::tensor::Tensor;
use crate::desc::{FillValueSequenceDesc, OperatorType, Place, TensorRole};

/// Adds every rule the descriptor breaks.
pub(super) fn check(desc: &FillValueSequenceDesc, rules: &RuleSet, errors: &mut Vec<ValidationError>) {
    let (operator, role, output) = (OperatorType::FillValueSequence, TensorRole::Output, &desc.output_tensor);
    Tensor { operator, role, rules, desc: output, errors }.check();

    let (found, required) = (desc.value_data_type, output.data_type);
    let place = Place::of(operator, None, "ValueDataType");
    let required_text = format_args!("{required}, the data type of OutputTensor");
    Rule::FillValueDataType.require(found == required, errors, place, found, required_text);
}
