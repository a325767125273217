//! Dispatchables: operator descriptors as DxDispatch writes them.
//!
//! ```text
//! { "type": "DML_OPERATOR_REVERSE_SUBSEQUENCES",
//!   "desc": { "InputTensor": { "DataType": "FLOAT32", "Sizes": [2, 3] }, …, "Axis": 1 } }
//! ```
//!
//! DxDispatch takes several spellings: short names of types, `Desc`, members without the level of `desc`. All of them are
//! read. Whether the descriptor keeps DirectML's rules is for the library to say.

use dml_cuda::{
    BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, OperatorType, ReverseSubsequencesDesc,
    TensorDataType, TensorFlags,
};

use crate::json::Result;
use crate::names::{likeness, or_nearest};
use crate::node::Node;
use crate::value;

/// What a message requires instead of another operator.
const ONLY: &str = "DML_OPERATOR_FILL_VALUE_SEQUENCE or DML_OPERATOR_REVERSE_SUBSEQUENCES, the operators that dml-cuda has";

/// Reads `{ "type": "DML_OPERATOR_…", "desc": { … } }`. The fields may also be next to `type`.
pub fn read(node: &Node) -> Result<OperatorDesc> {
    let type_node = type_node(node)?;
    let operator = operator(&type_node)?;
    if let Some(bindings) = node.get("bindings") {
        let required = "left out, because DxDispatch binds these when it initializes and not when it dispatches";
        bindings.refuse("given", required);
    }
    let desc = node.get("desc").or(node.get("Desc"));
    match operator {
        OperatorType::FillValueSequence => fill(&node.walk_desc(desc, "dispatchable", "fill")?),
        OperatorType::ReverseSubsequences => {
            reverse(&node.walk_desc(desc, "dispatchable", "reverse")?)
        }
        _ => Err(type_node.error(type_node.kind(), ONLY)),
    }
}

/// The member `type`, or `Type`, which DxDispatch reads as well but not alone.
fn type_node<'a>(node: &Node<'a>) -> Result<Node<'a>> {
    let (lower, upper) = (node.get("type"), node.get("Type"));
    match (&lower, &upper) {
        (None, _) => node.refuse("without \"type\"", "an object that has it, in lower case"),
        (Some(lower), Some(upper)) if lower.kind().to_string() != upper.kind().to_string() => {
            upper.refuse(upper.kind(), "the same as \"type\", or left out");
        }
        _ => {}
    }
    match lower.or(upper) {
        Some(type_node) => Ok(type_node),
        None => {
            // A misspelt member is the better error.
            node.walk(&["dispatchable"])?;
            node.require("type")
        }
    }
}

/// The operator that a type names. The error about another type says what it is.
fn operator(type_node: &Node) -> Result<OperatorType> {
    let name = type_node.string()?;
    if let Ok(operator) = name.parse() {
        return Ok(operator);
    }
    let what = match name.to_ascii_lowercase().as_str() {
        "hlsl" => ", a compute shader",
        "onnx" => ", an ONNX model",
        "dmlserializedgraph" => ", a serialized graph",
        _ => "",
    };
    // The name of another operator of DirectML is no misspelt one of these.
    let names = OperatorType::ALL.iter().map(|operator| operator.name());
    let meant: Vec<&str> = names.filter(|known| likeness(name, known) > 0.95).collect();
    let found = format!("{}{what}", type_node.kind());
    Err(type_node.error(found, ONLY) + &or_nearest(name, &meant))
}

/// A `DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC`.
fn fill(desc: &Node) -> Result<OperatorDesc> {
    let value_data_type = data_type(&desc.require("ValueDataType")?)?;
    Ok(FillValueSequenceDesc {
        output_tensor: tensor(&desc.require("OutputTensor")?)?,
        value_data_type,
        value_start: value::scalar(&desc.require("ValueStart")?, value_data_type)?,
        value_delta: value::scalar(&desc.require("ValueDelta")?, value_data_type)?,
    }
    .into())
}

/// A `DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC`.
fn reverse(desc: &Node) -> Result<OperatorDesc> {
    Ok(ReverseSubsequencesDesc {
        input_tensor: tensor(&desc.require("InputTensor")?)?,
        sequence_lengths_tensor: tensor(&desc.require("SequenceLengthsTensor")?)?,
        output_tensor: tensor(&desc.require("OutputTensor")?)?,
        axis: desc.require("Axis")?.unsigned()?,
    }
    .into())
}

/// A name of `DML_TENSOR_DATA_TYPE`, full or abbreviated.
pub fn data_type(node: &Node) -> Result<TensorDataType> {
    let names: Vec<&str> = TensorDataType::ALL
        .iter()
        .map(|data_type| data_type.name())
        .collect();
    let name = node.string()?;
    name.parse().map_err(|_| {
        let short = name.rsplit('_').next().unwrap_or(name);
        node.error(node.kind(), "a DML_TENSOR_DATA_TYPE, such as FLOAT32")
            + &or_nearest(short, &names)
    })
}

/// A `DML_TENSOR_DESC`, with or without its `Type` and `Desc` level. Computes a missing TotalTensorSizeInBytes.
/// Validation reports a size that is too large to compute.
fn tensor(node: &Node) -> Result<BufferTensorDesc> {
    let desc = node.walk_desc(node.get("Desc"), "tensorLevel", "tensor")?;
    if let Some(tensor_type) = node.get("Type") {
        let name = tensor_type.string()?;
        if !matches!(name, "DML_TENSOR_TYPE_BUFFER" | "BUFFER") {
            return Err(tensor_type.error(tensor_type.kind(), "DML_TENSOR_TYPE_BUFFER"));
        }
    }
    let sizes: Vec<u32> = desc.require("Sizes")?.each(|size| size.unsigned())?;
    let count = desc
        .optional::<u32>("DimensionCount")?
        .filter(|count| *count as usize != sizes.len());
    if let (Some(found), Some(count)) = (count, desc.get("DimensionCount")) {
        return Err(count.error(found, format!("{}, the number of Sizes", sizes.len())));
    }
    let strides = desc
        .optional_list("Strides")?
        .filter(|strides| !strides.is_empty());
    let data_type = data_type(&desc.require("DataType")?)?;
    let mut tensor = match &strides {
        Some(strides) if strides.len() == sizes.len() => {
            BufferTensorDesc::strided(data_type, &sizes, strides)
        }
        // A wrong number of strides has no size: that they are wrong is one error.
        Some(strides) => BufferTensorDesc {
            strides: Some(strides.clone()),
            ..BufferTensorDesc::packed(data_type, &sizes)
        },
        None => BufferTensorDesc::packed(data_type, &sizes),
    };
    if let Some(total) = desc.optional("TotalTensorSizeInBytes")? {
        tensor.total_tensor_size_in_bytes = total;
    }
    tensor.guaranteed_base_offset_alignment =
        desc.optional("GuaranteedBaseOffsetAlignment")?.unwrap_or(0);
    if let Some(node) = desc.get("Flags") {
        tensor.flags = flags(&node)?;
    }
    Ok(tensor)
}

/// One flag, or a list of them.
fn flags(node: &Node) -> Result<TensorFlags> {
    let flags = node.each_or_itself(|flag| match flag.string()? {
        "DML_TENSOR_FLAG_NONE" | "NONE" => Ok(TensorFlags::None),
        "DML_TENSOR_FLAG_OWNED_BY_DML" | "OWNED_BY_DML" => Ok(TensorFlags::OwnedByDml),
        _ => Err(flag.unknown(
            "DML_TENSOR_FLAG_NONE or DML_TENSOR_FLAG_OWNED_BY_DML",
            &["NONE", "OWNED_BY_DML"],
        )),
    })?;
    Ok(flags
        .into_iter()
        .find(|flag| *flag != TensorFlags::None)
        .unwrap_or(TensorFlags::None))
}
