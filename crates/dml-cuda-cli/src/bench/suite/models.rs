//! Cases as DxDispatch's models.

use dml_cuda::{BufferTensorDesc, OperatorDesc, TensorDataType};
use half::f16;
use serde_json::{json, Value};

/// A tensor as DxDispatch writes it.
fn tensor(desc: &BufferTensorDesc) -> Value {
    let mut tensor = json!({
        "DataType": desc.data_type.name(),
        "Sizes": desc.sizes,
        "TotalTensorSizeInBytes": desc.total_tensor_size_in_bytes,
    });
    if let Some(strides) = &desc.strides {
        tensor["Strides"] = json!(strides);
    }
    tensor
}

/// A scalar of the type with those bits. DxDispatch refuses a negative number for an unsigned type.
fn scalar(bits: u64, data_type: TensorDataType) -> Value {
    match data_type {
        TensorDataType::Float32 => json!(f32::from_bits(bits as u32)),
        TensorDataType::Float16 => json!(f16::from_bits(bits as u16).to_f64()),
        TensorDataType::Int8 => json!(bits as i8),
        TensorDataType::Int16 => json!(bits as i16),
        TensorDataType::Int32 => json!(bits as i32),
        TensorDataType::Int64 => json!(bits as i64),
        TensorDataType::UInt8 => json!(bits as u8),
        TensorDataType::UInt16 => json!(bits as u16),
        TensorDataType::UInt32 => json!(bits as u32),
        _ => json!(bits),
    }
}

/// `{ "type": …, "desc": … }`
fn dispatchable(desc: &OperatorDesc) -> Value {
    let fields = match desc {
        OperatorDesc::FillValueSequence(fill) => json!({
            "OutputTensor": tensor(&fill.output_tensor),
            "ValueDataType": fill.value_data_type.name(),
            "ValueStart": scalar(fill.value_start.to_bits(), fill.value_data_type),
            "ValueDelta": scalar(fill.value_delta.to_bits(), fill.value_data_type),
        }),
        OperatorDesc::ReverseSubsequences(reverse) => json!({
            "InputTensor": tensor(&reverse.input_tensor),
            "SequenceLengthsTensor": tensor(&reverse.sequence_lengths_tensor),
            "OutputTensor": tensor(&reverse.output_tensor),
            "Axis": reverse.axis,
        }),
    };
    json!({ "type": desc.operator_type().name(), "desc": fields })
}

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
        "dispatchables": { name: dispatchable(desc) },
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
            "desc": { "InputTensor": tensor(&desc), "OutputTensor": tensor(&desc) },
        } },
        "commands": [{ "type": "dispatch", "dispatchable": name, "bindings": { "InputTensor": "In", "OutputTensor": "Out" } }],
    })
}

/// Runs a small operator and writes its output to a file of its name. Values count up; element n of the lengths is n.
pub fn check(name: &str, desc: &OperatorDesc) -> Value {
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
        resources["Lengths"] = counted(&reverse.sequence_lengths_tensor);
        bindings["InputTensor"] = json!("In");
        bindings["SequenceLengthsTensor"] = json!("Lengths");
    }
    json!({
        "resources": resources,
        "dispatchables": { name: dispatchable(desc) },
        "commands": [
            { "type": "dispatch", "dispatchable": name, "bindings": bindings },
            { "type": "writeFile", "resource": "Out", "targetPath": format!("{name}.bin") },
        ],
    })
}
