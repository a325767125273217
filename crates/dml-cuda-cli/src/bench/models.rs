//! Cases as models of DxDispatch.

use dml_cuda::{BufferTensorDesc, OperatorDesc, TensorDataType};
use serde_json::{json, Value};

use crate::model::dispatchable;

/// Times an operator: memory of zeros, lengths from a file next to the model.
pub fn timed(name: &str, desc: &OperatorDesc, in_place: bool, lengths: Option<&str>) -> Value {
    of_operator(name, desc, in_place, json!({ "initialValues": { "sourcePath": lengths } }), false)
}

/// Copies so many bytes; for Windows, where DirectML has the operator.
pub fn copy(name: &str, bytes: u64) -> Value {
    let desc = BufferTensorDesc::packed(TensorDataType::UInt32, &[(bytes / 4) as u32]);
    let tensor = dispatchable::write_tensor(&desc);
    let identity = json!({
        "type": "DML_OPERATOR_ELEMENT_WISE_IDENTITY",
        "desc": { "InputTensor": tensor, "OutputTensor": tensor },
    });
    let resources = json!({ "In": zeros(&desc), "Out": zeros(&desc) });
    model(name, identity, resources, json!({ "InputTensor": "In", "OutputTensor": "Out" }), None)
}

/// Runs a small operator and writes its output to a file of its name. Values count up.
pub fn check(name: &str, desc: &OperatorDesc, over_long: bool) -> Value {
    let lengths = match desc {
        OperatorDesc::ReverseSubsequences(reverse) => {
            let lengths = &reverse.sequence_lengths_tensor;
            let axis_size = reverse.input_tensor.sizes[reverse.axis as usize];
            let values = (0..lengths.sizes.iter().product()).map(|n| length(n, axis_size, over_long));
            json!({ "initialValuesDataType": lengths.data_type.name(), "initialValues": values.collect::<Vec<u32>>() })
        }
        _ => Value::Null,
    };
    of_operator(name, desc, false, lengths, true)
}

fn model(name: &str, dispatchable: Value, resources: Value, bindings: Value, write: Option<Value>) -> Value {
    let dispatch = json!({ "type": "dispatch", "dispatchable": name, "bindings": bindings });
    let commands: Vec<Value> = std::iter::once(dispatch).chain(write).collect();
    json!({ "resources": resources, "dispatchables": { name: dispatchable }, "commands": commands })
}

fn of_operator(name: &str, desc: &OperatorDesc, in_place: bool, lengths: Value, is_written: bool) -> Value {
    let mut resources = json!({ "Out": zeros(desc.output_tensor()) });
    let mut bindings = json!({ "OutputTensor": "Out" });
    if let OperatorDesc::ReverseSubsequences(reverse) = desc {
        let input = if is_written { counted } else { zeros };
        resources["Lengths"] = lengths;
        bindings["SequenceLengthsTensor"] = json!("Lengths");
        bindings["InputTensor"] = json!(if in_place { "Out" } else { "In" });
        if !in_place {
            resources["In"] = input(&reverse.input_tensor);
        }
    }
    let write = json!({ "type": "writeFile", "resource": "Out", "targetPath": format!("{name}.bin") });
    model(name, dispatchable::write(desc), resources, bindings, is_written.then_some(write))
}

/// A resource of which the first element is given.
fn zeros(desc: &BufferTensorDesc) -> Value {
    json!({
        "initialValuesDataType": desc.data_type.name(),
        "initialValues": [0],
        "sizeInBytes": desc.total_tensor_size_in_bytes,
    })
}

fn counted(desc: &BufferTensorDesc) -> Value {
    let count: u32 = desc.sizes.iter().product();
    json!({
        "initialValuesDataType": desc.data_type.name(),
        "initialValues": { "valueCount": count, "valueStart": 0, "valueDelta": 1 },
    })
}

/// The length of lane n: n itself, which may be over long; or from both ends in turn 0, the axis size, 1, one less than
/// that, and so on.
fn length(n: u32, axis_size: u32, over_long: bool) -> u32 {
    let half = n / 2 % (axis_size + 1);
    match n % 2 {
        _ if over_long => n,
        0 => half,
        _ => axis_size - half,
    }
}
