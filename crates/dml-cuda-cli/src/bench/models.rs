//! Cases as DxDispatch's models.

use dml_cuda::{BufferTensorDesc, OperatorDesc, TensorDataType};
use serde_json::{json, Value};

use crate::model::dispatchable;

/// A resource of which the first element is given.
fn zeros(desc: &BufferTensorDesc) -> Value {
    json!({
        "initialValuesDataType": desc.data_type.name(),
        "initialValues": [0],
        "sizeInBytes": desc.total_tensor_size_in_bytes,
    })
}

/// Times an operator: memory of zeros, lengths from a file beside the model.
pub fn timed(name: &str, desc: &OperatorDesc, in_place: bool, lengths: Option<&str>) -> Value {
    let mut resources = json!({ "Out": zeros(desc.output_tensor()) });
    let mut bindings = json!({ "OutputTensor": "Out" });
    if let OperatorDesc::ReverseSubsequences(reverse) = desc {
        resources["Lengths"] = json!({ "initialValues": { "sourcePath": lengths } });
        bindings["SequenceLengthsTensor"] = json!("Lengths");
        bindings["InputTensor"] = json!(if in_place { "Out" } else { "In" });
        if !in_place {
            resources["In"] = zeros(&reverse.input_tensor);
        }
    }
    json!({
        "resources": resources,
        "dispatchables": { name: dispatchable::write(desc) },
        "commands": [{ "type": "dispatch", "dispatchable": name, "bindings": bindings }],
    })
}

/// Copies so many bytes; for Windows, where DirectML has the operator.
pub fn copy(name: &str, bytes: u64) -> Value {
    let desc = BufferTensorDesc::packed(TensorDataType::UInt32, &[(bytes / 4) as u32]);
    json!({
        "resources": { "In": zeros(&desc), "Out": zeros(&desc) },
        "dispatchables": { name: {
            "type": "DML_OPERATOR_ELEMENT_WISE_IDENTITY",
            "desc": { "InputTensor": dispatchable::write_tensor(&desc), "OutputTensor": dispatchable::write_tensor(&desc) },
        } },
        "commands": [{ "type": "dispatch", "dispatchable": name, "bindings": { "InputTensor": "In", "OutputTensor": "Out" } }],
    })
}

/// Runs a small operator and writes its output to a file of its name. Values count up; `length` gives a lane's, by its number and the axis
/// size.
pub fn check(name: &str, desc: &OperatorDesc, length: fn(u32, u32) -> u32) -> Value {
    let counted = |desc: &BufferTensorDesc| {
        let count: u32 = desc.sizes.iter().product();
        json!({
            "initialValuesDataType": desc.data_type.name(),
            "initialValues": { "valueCount": count, "valueStart": 0, "valueDelta": 1 },
        })
    };
    let mut resources = json!({ "Out": zeros(desc.output_tensor()) });
    let mut bindings = json!({ "OutputTensor": "Out" });
    if let OperatorDesc::ReverseSubsequences(reverse) = desc {
        resources["In"] = counted(&reverse.input_tensor);
        let (lengths, axis_size) =
            (&reverse.sequence_lengths_tensor, reverse.input_tensor.sizes[reverse.axis as usize]);
        let lanes = lengths.sizes.iter().product();
        resources["Lengths"] = json!({
            "initialValuesDataType": lengths.data_type.name(),
            "initialValues": (0..lanes).map(|n| length(n, axis_size)).collect::<Vec<u32>>(),
        });
        bindings["InputTensor"] = json!("In");
        bindings["SequenceLengthsTensor"] = json!("Lengths");
    }
    json!({
        "resources": resources,
        "dispatchables": { name: dispatchable::write(desc) },
        "commands": [
            { "type": "dispatch", "dispatchable": name, "bindings": bindings },
            { "type": "writeFile", "resource": "Out", "targetPath": format!("{name}.bin") },
        ],
    })
}
