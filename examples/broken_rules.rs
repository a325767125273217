//! Why a descriptor is rejected: every broken rule, as data and as a sentence. Needs no device.

use dml_cuda::{validate, BufferTensorDesc, FeatureLevel, ReverseSubsequencesDesc, TensorDataType};

pub(crate) fn main() {
    let tensor = BufferTensorDesc::packed(TensorDataType::Float32, &[2, 4]);
    let desc = ReverseSubsequencesDesc {
        input_tensor: tensor.clone(),
        sequence_lengths_tensor: BufferTensorDesc::packed(TensorDataType::Int32, &[2, 1]), // must be unsigned
        output_tensor: tensor,
        axis: 2, // 0 and 1 exist
    };
    let errors = validate(&desc.into(), FeatureLevel::HIGHEST).expect_err("it breaks two rules");
    for error in &errors {
        println!("{} at {}: {error}", error.rule.id(), error.place);
    }
    assert_eq!(errors.errors().len(), 2);
}
