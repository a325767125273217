//! The rules of `DML_OPERATOR_REVERSE_SUBSEQUENCES`.

use super::rule_set::RuleSet;
use super::rules::{self, ValidationError};
use super::tensor::Tensor;
use crate::desc::{BufferTensorDesc, OperatorType, ReverseSubsequencesDesc, TensorRole};

const PLACE: &str = OperatorType::ReverseSubsequences.desc_name();

/// Every rule the descriptor breaks. A rule about two tensors is reported with the later of the two.
pub(crate) fn check(desc: &ReverseSubsequencesDesc, rules: &RuleSet) -> Vec<ValidationError> {
    let mut errors = Vec::new();
    let tensor = |role: TensorRole, desc: &BufferTensorDesc, errors: &mut Vec<ValidationError>| {
        Tensor::new(OperatorType::ReverseSubsequences, role, rules, desc).check(errors);
    };
    tensor(TensorRole::Input, &desc.input_tensor, &mut errors);
    tensor(TensorRole::SequenceLengths, &desc.sequence_lengths_tensor, &mut errors);
    errors.extend(lengths_dimension_count(desc).or_else(|| lengths_sizes(desc)));
    tensor(TensorRole::Output, &desc.output_tensor, &mut errors);
    errors.extend(output_data_type(desc));
    errors.extend(output_sizes(desc));
    errors.extend(axis_range(desc));
    errors
}

/// SequenceLengthsTensor has the DimensionCount of InputTensor.
fn lengths_dimension_count(desc: &ReverseSubsequencesDesc) -> Option<ValidationError> {
    let (found, input) = (desc.sequence_lengths_tensor.sizes.len(), desc.input_tensor.sizes.len());
    (found != input).then(|| rules::reverse_lengths_dimension_count(PLACE, found, input))
}

/// SequenceLengthsTensor has the sizes of InputTensor, with 1 at Axis. Not checked if Axis is out of range, which
/// `reverse.axis.range` reports.
fn lengths_sizes(desc: &ReverseSubsequencesDesc) -> Option<ValidationError> {
    let mut required = desc.input_tensor.sizes.clone();
    *required.get_mut(desc.axis as usize)? = 1;
    let found = &desc.sequence_lengths_tensor.sizes;
    (*found != required).then(|| rules::reverse_lengths_sizes(PLACE, found, &required, desc.axis))
}

/// OutputTensor has the data type of InputTensor.
fn output_data_type(desc: &ReverseSubsequencesDesc) -> Option<ValidationError> {
    let (found, input) = (desc.output_tensor.data_type, desc.input_tensor.data_type);
    (found != input).then(|| rules::reverse_output_data_type(PLACE, found, input))
}

/// OutputTensor has the sizes of InputTensor.
fn output_sizes(desc: &ReverseSubsequencesDesc) -> Option<ValidationError> {
    let (found, input) = (&desc.output_tensor.sizes, &desc.input_tensor.sizes);
    (found != input).then(|| rules::reverse_output_sizes(PLACE, found, input))
}

/// Axis is below the DimensionCount of InputTensor.
fn axis_range(desc: &ReverseSubsequencesDesc) -> Option<ValidationError> {
    let count = desc.input_tensor.sizes.len();
    (desc.axis as usize >= count).then(|| rules::reverse_axis_range(PLACE, desc.axis, count))
}
