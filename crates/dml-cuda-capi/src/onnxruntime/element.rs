//! The element types of ONNX Runtime.

use dml_cuda::TensorDataType as T;
use ort_sys::ONNXTensorElementDataType::{self as Type, *};

/// An element type, its bytes, and the data type of sequences of it.
pub type Element = (Type, usize, Option<T>);

/// The types that move as bytes.
pub const ELEMENTS: [Element; 17] = [
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 1, Some(T::UInt8)),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 1, Some(T::Int8)),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1, None),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, 1, None),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ, 1, None),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2, 1, None),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ, 1, None),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, 2, Some(T::UInt16)),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, 2, Some(T::Int16)),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 2, Some(T::Float16)),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 2, None),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, 4, Some(T::UInt32)),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 4, Some(T::Int32)),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4, Some(T::Float32)),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, 8, Some(T::UInt64)),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8, Some(T::Int64)),
    (ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 8, Some(T::Float64)),
];

/// The type with ONNX's number.
pub fn element(number: i32) -> Option<Element> {
    ELEMENTS
        .into_iter()
        .find(|(known, ..)| *known as i32 == number)
}
