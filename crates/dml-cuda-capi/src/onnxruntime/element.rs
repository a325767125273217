//! The element types of ONNX Runtime.

use dml_cuda::TensorDataType as T;
use ort_sys::ONNXTensorElementDataType::{self as Type, *};

/// An element type of ONNX Runtime.
#[derive(Clone, Copy)]
pub struct Element {
    pub element_type: Type,
    /// Bytes of an element.
    pub width: usize,
    /// The data type of sequences of it, and of lengths. None if this library only moves such elements.
    pub data_type: Option<T>,
}

const fn row(element_type: Type, width: usize, data_type: Option<T>) -> Element {
    Element {
        element_type,
        width,
        data_type,
    }
}

/// The types that move as bytes.
pub const ELEMENTS: [Element; 17] = [
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 1, Some(T::UInt8)),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 1, Some(T::Int8)),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1, None),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, 1, None),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ, 1, None),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2, 1, None),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ, 1, None),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, 2, Some(T::UInt16)),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, 2, Some(T::Int16)),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 2, Some(T::Float16)),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 2, None),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, 4, Some(T::UInt32)),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 4, Some(T::Int32)),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4, Some(T::Float32)),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, 8, Some(T::UInt64)),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8, Some(T::Int64)),
    row(ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 8, Some(T::Float64)),
];

/// The type with ONNX's number.
pub fn element(number: i32) -> Option<Element> {
    ELEMENTS
        .into_iter()
        .find(|known| known.element_type as i32 == number)
}
