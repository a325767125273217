//! Structures and constants of the header. Names are DirectML's with `CUDA_` after `DML_`, so that DirectML.h can be
//! included in the same file. Values and layout are DirectML's too, so that a pointer to a structure of DirectML.h can
//! be cast.
#![allow(non_camel_case_types, non_snake_case, missing_docs)] // the constants are DirectML's

use std::ffi::{c_char, c_void};

/// `DML_TENSOR_DATA_TYPE`.
pub type DML_CUDA_TENSOR_DATA_TYPE = u32;
/// `DML_TENSOR_FLAGS`.
pub type DML_CUDA_TENSOR_FLAGS = u32;
/// `DML_TENSOR_TYPE`.
pub type DML_CUDA_TENSOR_TYPE = u32;
/// `DML_OPERATOR_TYPE`.
pub type DML_CUDA_OPERATOR_TYPE = u32;
/// `DML_FEATURE_LEVEL`, or 0 for the highest.
pub type DML_CUDA_FEATURE_LEVEL = u32;
/// A tensor of an operator, by the name of its field in the descriptor.
pub type DML_CUDA_TENSOR_ROLE = u32;

pub const DML_CUDA_TENSOR_DATA_TYPE_UNKNOWN: DML_CUDA_TENSOR_DATA_TYPE = 0;
pub const DML_CUDA_TENSOR_DATA_TYPE_FLOAT32: DML_CUDA_TENSOR_DATA_TYPE = 1;
pub const DML_CUDA_TENSOR_DATA_TYPE_FLOAT16: DML_CUDA_TENSOR_DATA_TYPE = 2;
pub const DML_CUDA_TENSOR_DATA_TYPE_UINT32: DML_CUDA_TENSOR_DATA_TYPE = 3;
pub const DML_CUDA_TENSOR_DATA_TYPE_UINT16: DML_CUDA_TENSOR_DATA_TYPE = 4;
pub const DML_CUDA_TENSOR_DATA_TYPE_UINT8: DML_CUDA_TENSOR_DATA_TYPE = 5;
pub const DML_CUDA_TENSOR_DATA_TYPE_INT32: DML_CUDA_TENSOR_DATA_TYPE = 6;
pub const DML_CUDA_TENSOR_DATA_TYPE_INT16: DML_CUDA_TENSOR_DATA_TYPE = 7;
pub const DML_CUDA_TENSOR_DATA_TYPE_INT8: DML_CUDA_TENSOR_DATA_TYPE = 8;
pub const DML_CUDA_TENSOR_DATA_TYPE_FLOAT64: DML_CUDA_TENSOR_DATA_TYPE = 9;
pub const DML_CUDA_TENSOR_DATA_TYPE_UINT64: DML_CUDA_TENSOR_DATA_TYPE = 10;
pub const DML_CUDA_TENSOR_DATA_TYPE_INT64: DML_CUDA_TENSOR_DATA_TYPE = 11;
pub const DML_CUDA_TENSOR_DATA_TYPE_UINT4: DML_CUDA_TENSOR_DATA_TYPE = 12;
pub const DML_CUDA_TENSOR_DATA_TYPE_INT4: DML_CUDA_TENSOR_DATA_TYPE = 13;

pub const DML_CUDA_TENSOR_FLAG_NONE: DML_CUDA_TENSOR_FLAGS = 0;
pub const DML_CUDA_TENSOR_FLAG_OWNED_BY_DML: DML_CUDA_TENSOR_FLAGS = 1;

pub const DML_CUDA_TENSOR_TYPE_BUFFER: DML_CUDA_TENSOR_TYPE = 1;

pub const DML_CUDA_OPERATOR_FILL_VALUE_SEQUENCE: DML_CUDA_OPERATOR_TYPE = 104;
pub const DML_CUDA_OPERATOR_REVERSE_SUBSEQUENCES: DML_CUDA_OPERATOR_TYPE = 106;

pub const DML_CUDA_FEATURE_LEVEL_HIGHEST: DML_CUDA_FEATURE_LEVEL = 0;
pub const DML_CUDA_FEATURE_LEVEL_1_0: DML_CUDA_FEATURE_LEVEL = 0x1000;
pub const DML_CUDA_FEATURE_LEVEL_2_0: DML_CUDA_FEATURE_LEVEL = 0x2000;
pub const DML_CUDA_FEATURE_LEVEL_2_1: DML_CUDA_FEATURE_LEVEL = 0x2100;
pub const DML_CUDA_FEATURE_LEVEL_3_0: DML_CUDA_FEATURE_LEVEL = 0x3000;
pub const DML_CUDA_FEATURE_LEVEL_3_1: DML_CUDA_FEATURE_LEVEL = 0x3100;
pub const DML_CUDA_FEATURE_LEVEL_4_0: DML_CUDA_FEATURE_LEVEL = 0x4000;
pub const DML_CUDA_FEATURE_LEVEL_4_1: DML_CUDA_FEATURE_LEVEL = 0x4100;
pub const DML_CUDA_FEATURE_LEVEL_5_0: DML_CUDA_FEATURE_LEVEL = 0x5000;
pub const DML_CUDA_FEATURE_LEVEL_5_1: DML_CUDA_FEATURE_LEVEL = 0x5100;
pub const DML_CUDA_FEATURE_LEVEL_5_2: DML_CUDA_FEATURE_LEVEL = 0x5200;
pub const DML_CUDA_FEATURE_LEVEL_6_0: DML_CUDA_FEATURE_LEVEL = 0x6000;
pub const DML_CUDA_FEATURE_LEVEL_6_1: DML_CUDA_FEATURE_LEVEL = 0x6100;
pub const DML_CUDA_FEATURE_LEVEL_6_2: DML_CUDA_FEATURE_LEVEL = 0x6200;
pub const DML_CUDA_FEATURE_LEVEL_6_3: DML_CUDA_FEATURE_LEVEL = 0x6300;
pub const DML_CUDA_FEATURE_LEVEL_6_4: DML_CUDA_FEATURE_LEVEL = 0x6400;

pub const DML_CUDA_TENSOR_ROLE_INPUT: DML_CUDA_TENSOR_ROLE = 0;
pub const DML_CUDA_TENSOR_ROLE_SEQUENCE_LENGTHS: DML_CUDA_TENSOR_ROLE = 1;
pub const DML_CUDA_TENSOR_ROLE_OUTPUT: DML_CUDA_TENSOR_ROLE = 2;
/// In a `DML_CUDA_VIOLATION`: the operator itself.
pub const DML_CUDA_TENSOR_ROLE_NONE: DML_CUDA_TENSOR_ROLE = 0xFFFF_FFFF;

/// `DML_TENSOR_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DML_CUDA_TENSOR_DESC {
    /// `DML_CUDA_TENSOR_TYPE_BUFFER`.
    pub Type: DML_CUDA_TENSOR_TYPE,
    /// A `DML_CUDA_BUFFER_TENSOR_DESC`.
    pub Desc: *const c_void,
}

/// `DML_BUFFER_TENSOR_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DML_CUDA_BUFFER_TENSOR_DESC {
    /// Type of the elements.
    pub DataType: DML_CUDA_TENSOR_DATA_TYPE,
    /// NONE on outputs, NONE or OWNED_BY_DML on inputs.
    pub Flags: DML_CUDA_TENSOR_FLAGS,
    /// 1 to 8.
    pub DimensionCount: u32,
    /// `DimensionCount` numbers of elements, outermost dimension first.
    pub Sizes: *const u32,
    /// `DimensionCount` distances between neighbours, in elements. NULL means packed, in row-major order.
    pub Strides: *const u32,
    /// Bytes from the first element to the last, rounded up to a multiple of 4, or more.
    pub TotalTensorSizeInBytes: u64,
    /// 0, or a power of two from 16 up. `dml_cuda_dispatch` requires only the alignment of an element.
    pub GuaranteedBaseOffsetAlignment: u32,
}

/// `DML_SCALAR_UNION`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub union DML_CUDA_SCALAR_UNION {
    pub Bytes: [u8; 8],
    pub Int8: i8,
    pub UInt8: u8,
    pub Int16: i16,
    pub UInt16: u16,
    pub Int32: i32,
    pub UInt32: u32,
    pub Int64: i64,
    pub UInt64: u64,
    pub Float32: f32,
    pub Float64: f64,
}

/// `DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC`: element i of the output becomes ValueStart + i * ValueDelta.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DML_CUDA_FILL_VALUE_SEQUENCE_OPERATOR_DESC {
    /// The tensor to fill.
    pub OutputTensor: *const DML_CUDA_TENSOR_DESC,
    /// The output's data type.
    pub ValueDataType: DML_CUDA_TENSOR_DATA_TYPE,
    /// Element 0.
    pub ValueStart: DML_CUDA_SCALAR_UNION,
    /// Difference between neighbours.
    pub ValueDelta: DML_CUDA_SCALAR_UNION,
}

/// `DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC`: reverses the first `length` elements of every sequence along Axis, and copies
/// the others.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC {
    /// The tensor to read.
    pub InputTensor: *const DML_CUDA_TENSOR_DESC,
    /// UINT32 or UINT64, the input's sizes with 1 at Axis. A length above the axis size acts as the axis size.
    pub SequenceLengthsTensor: *const DML_CUDA_TENSOR_DESC,
    /// The sizes and data type of the input. The strides may differ.
    pub OutputTensor: *const DML_CUDA_TENSOR_DESC,
    /// The dimension along which elements are reversed.
    pub Axis: u32,
}

/// `DML_OPERATOR_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DML_CUDA_OPERATOR_DESC {
    /// Which operator `Desc` describes.
    pub Type: DML_CUDA_OPERATOR_TYPE,
    /// The operator's own descriptor.
    pub Desc: *const c_void,
}

/// `DML_BINDING_PROPERTIES`: what a dispatch needs besides its tensors.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DML_CUDA_BINDING_PROPERTIES {
    /// The number of input and output tensors, as in DirectML. There are no descriptors to allocate here.
    pub RequiredDescriptorCount: u32,
    /// Bytes of scratch memory: 0.
    pub TemporaryResourceSize: u64,
    /// Bytes of memory that lives as long as the operator: 0.
    pub PersistentResourceSize: u64,
}

/// The data types and dimensions that a device accepts for one tensor of an operator, at its feature level.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct DML_CUDA_TENSOR_SUPPORT {
    /// 1 if the operator exists at that level and has such a tensor. Else 0, and the other fields are 0 too.
    pub IsSupported: u32,
    /// The lowest DimensionCount.
    pub MinimumDimensionCount: u32,
    /// The highest DimensionCount.
    pub MaximumDimensionCount: u32,
    /// Bit `1 << t` is set if data type t is accepted.
    pub DataTypeMask: u32,
}

/// A rule that a descriptor breaks. The texts belong to the error.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DML_CUDA_VIOLATION {
    /// The rule's id, which never changes: `reverse.axis.range`.
    pub Rule: *const c_char,
    /// The field: `ReverseSubsequencesDesc.Axis`.
    pub Place: *const c_char,
    /// The field's value.
    pub Found: *const c_char,
    /// The required value. NULL if a higher feature level accepts the value.
    pub Required: *const c_char,
    /// That feature level, else 0.
    pub NeededFeatureLevel: DML_CUDA_FEATURE_LEVEL,
    /// The tensor with the field, or `DML_CUDA_TENSOR_ROLE_NONE` for a field of the operator.
    pub Tensor: DML_CUDA_TENSOR_ROLE,
    /// The index in a field that is a list, else -1.
    pub Index: i32,
    /// The field's name: `Sizes`. NULL for the whole tensor or operator.
    pub Field: *const c_char,
}

/// A program's names for the arguments of a call on arrays, as strings in UTF-8.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DML_CUDA_NAMES {
    /// `sizeof(DML_CUDA_NAMES)`.
    pub SizeInBytes: u32,
    pub Input: *const c_char,
    pub Lengths: *const c_char,
    pub Output: *const c_char,
    pub Axis: *const c_char,
}

/// Counts of this library's work for the ONNX Runtime sessions of this process. All 0 in a build without the feature
/// `onnxruntime`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DML_CUDA_ONNXRUNTIME_COUNTERS {
    /// Nodes that sessions loaded with this library, also those of closed sessions, and those that never ran.
    pub Nodes: u64,
    /// Runs of such nodes.
    pub Runs: u64,
    /// Runs in place: the output was the input.
    pub InPlaceRuns: u64,
}
