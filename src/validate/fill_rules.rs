//! The rules of `DML_OPERATOR_FILL_VALUE_SEQUENCE`.

use super::rule_set::RuleSet;
use super::rules::{self, ValidationError};
use super::tensor::Tensor;
use crate::desc::{FillValueSequenceDesc, OperatorType, TensorRole};

const PLACE: &str = OperatorType::FillValueSequence.desc_name();

/// Every rule the descriptor breaks.
pub(crate) fn check(desc: &FillValueSequenceDesc, rules: &RuleSet) -> Vec<ValidationError> {
    let mut errors = Vec::new();
    Tensor::new(OperatorType::FillValueSequence, TensorRole::Output, rules, &desc.output_tensor).check(&mut errors);
    errors.extend(value_data_type(desc));
    errors
}

/// ValueDataType is the data type of OutputTensor.
fn value_data_type(desc: &FillValueSequenceDesc) -> Option<ValidationError> {
    let (found, output) = (desc.value_data_type, desc.output_tensor.data_type);
    (found != output).then(|| rules::fill_value_data_type(PLACE, found, output))
}
