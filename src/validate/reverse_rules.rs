//! The rules of `DML_OPERATOR_REVERSE_SUBSEQUENCES`.

use super::rule_set::RuleSet;
use super::rules::{Rule, ValidationError};
use super::tensor::Tensor;
use crate::desc::{
    BufferTensorDesc, OperatorType, Place, ReverseSubsequencesDesc, TensorRole, MAX_DIMENSIONS,
};

/// Adds every rule the descriptor breaks. A rule about two tensors is reported with the later of the two. Nothing has
/// to agree with a number of dimensions that no tensor can have.
pub(super) fn check(
    desc: &ReverseSubsequencesDesc,
    rules: &RuleSet,
    errors: &mut Vec<ValidationError>,
) {
    let tensor = |role: TensorRole, desc: &BufferTensorDesc, errors: &mut Vec<ValidationError>| {
        Tensor {
            operator: OperatorType::ReverseSubsequences,
            role,
            rules,
            desc,
            errors,
        }
        .check();
    };
    tensor(TensorRole::Input, &desc.input_tensor, errors);
    tensor(
        TensorRole::SequenceLengths,
        &desc.sequence_lengths_tensor,
        errors,
    );
    lengths(desc, errors);
    tensor(TensorRole::Output, &desc.output_tensor, errors);
    output(desc, errors);
    axis(desc, errors);
}

/// The sizes are not checked if their number is wrong, nor if Axis is out of range, which `axis` reports.
fn lengths(desc: &ReverseSubsequencesDesc, errors: &mut Vec<ValidationError>) {
    let (found, input) = (
        &desc.sequence_lengths_tensor.sizes,
        &desc.input_tensor.sizes,
    );
    if !is_possible(input) {
        return;
    }
    let same_count = found.len() == input.len();
    let place = at(Some(TensorRole::SequenceLengths), "DimensionCount");
    let required = format_args!("{}, the DimensionCount of InputTensor", input.len());
    Rule::ReverseLengthsDimensionCount.require(same_count, errors, place, found.len(), required);

    let axis = desc.axis as usize;
    if !same_count || axis >= input.len() {
        return;
    }
    let mut sizes = input.clone();
    sizes[axis] = 1;
    let place = at(Some(TensorRole::SequenceLengths), "Sizes");
    let required =
        format_args!("{sizes:?}, the Sizes of InputTensor with 1 at Axis, which is {axis}");
    Rule::ReverseLengthsSizes.require(
        *found == sizes,
        errors,
        place,
        format_args!("{found:?}"),
        required,
    );
}

fn output(desc: &ReverseSubsequencesDesc, errors: &mut Vec<ValidationError>) {
    let (found, input) = (&desc.output_tensor, &desc.input_tensor);
    let same_type = found.data_type == input.data_type;
    let place = at(Some(TensorRole::Output), "DataType");
    let required = format_args!("{}, the data type of InputTensor", input.data_type);
    Rule::ReverseOutputDataType.require(same_type, errors, place, found.data_type, required);

    let (found, input) = (&found.sizes, &input.sizes);
    let place = at(Some(TensorRole::Output), "Sizes");
    let required = format_args!("{input:?}, the Sizes of InputTensor");
    Rule::ReverseOutputSizes.require(
        found == input || !is_possible(input),
        errors,
        place,
        format_args!("{found:?}"),
        required,
    );
}

fn axis(desc: &ReverseSubsequencesDesc, errors: &mut Vec<ValidationError>) {
    let (axis, sizes) = (desc.axis, &desc.input_tensor.sizes);
    let count = sizes.len();
    let required = format_args!("below {count}, the DimensionCount of InputTensor");
    Rule::ReverseAxisRange.require(
        (axis as usize) < count || !is_possible(sizes),
        errors,
        at(None, "Axis"),
        axis,
        required,
    );
}

fn is_possible(sizes: &[u32]) -> bool {
    (1..=MAX_DIMENSIONS).contains(&sizes.len())
}

fn at(tensor: Option<TensorRole>, field: &'static str) -> Place {
    Place::of(OperatorType::ReverseSubsequences, tensor, field)
}
