//! Tensor data types and the scalars of `FILL_VALUE_SEQUENCE`.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::str::FromStr;

use bytemuck::Pod;
use half::f16;

use crate::text::echoed;

/// `DML_TENSOR_DATA_TYPE`: the thirteen element types a tensor can be described with.
///
/// Unsupported types exist so that errors can name them. [`crate::desc::feature_level`] lists which operator takes
/// which type.
///
/// ```
/// use dml_cuda::TensorDataType;
/// assert_eq!("DML_TENSOR_DATA_TYPE_FLOAT16".parse(), Ok(TensorDataType::Float16));
/// assert_eq!((TensorDataType::Float16.name(), TensorDataType::Float16.size_in_bits()), ("FLOAT16", 16));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the variants have DirectML's names
#[non_exhaustive]
pub enum TensorDataType {
    Float32,
    Float16,
    UInt32,
    UInt16,
    UInt8,
    Int32,
    Int16,
    Int8,
    Float64,
    UInt64,
    Int64,
    UInt4,
    Int4,
}

use TensorDataType::*;

impl TensorDataType {
    /// Every data type, in the order of `DML_TENSOR_DATA_TYPE`.
    pub const ALL: &'static [TensorDataType] = &[
        Float32, Float16, UInt32, UInt16, UInt8, Int32, Int16, Int8, Float64, UInt64, Int64, UInt4,
        Int4,
    ];

    /// The suffix of DirectML's name, such as `FLOAT32` of `DML_TENSOR_DATA_TYPE_FLOAT32`.
    pub const fn name(self) -> &'static str {
        // In the order of the variants.
        const NAMES: [&str; 13] = [
            "FLOAT32", "FLOAT16", "UINT32", "UINT16", "UINT8", "INT32", "INT16", "INT8", "FLOAT64",
            "UINT64", "INT64", "UINT4", "INT4",
        ];
        NAMES[self as usize]
    }

    /// Bits of one element: 4, 8, 16, 32 or 64.
    pub const fn size_in_bits(self) -> u32 {
        match self {
            UInt4 | Int4 => 4,
            UInt8 | Int8 => 8,
            Float16 | UInt16 | Int16 => 16,
            Float32 | UInt32 | Int32 => 32,
            Float64 | UInt64 | Int64 => 64,
        }
    }

    /// Whether this is one of FLOAT16, FLOAT32, FLOAT64.
    pub const fn is_float(self) -> bool {
        matches!(self, Float16 | Float32 | Float64)
    }
}

impl fmt::Display for TensorDataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not the name of a [`TensorDataType`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tensor data type; known are FLOAT32, FLOAT16, UINT32, UINT16, UINT8, INT32, INT16, INT8, FLOAT64, UINT64, INT64, UINT4 and INT4, each also with the prefix DML_TENSOR_DATA_TYPE_")]
pub struct ParseTensorDataTypeError(String);

impl FromStr for TensorDataType {
    type Err = ParseTensorDataTypeError;

    /// Reads DirectML's name, with or without `DML_TENSOR_DATA_TYPE_`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_prefix("DML_TENSOR_DATA_TYPE_").unwrap_or(text);
        let found = Self::ALL.iter().find(|data_type| data_type.name() == name);
        found
            .copied()
            .ok_or_else(|| ParseTensorDataTypeError(echoed(text)))
    }
}

/// `DML_SCALAR_UNION`: eight bytes, written through one of their typed views.
///
/// The operator's `value_data_type` says how the bytes are read, and only the low bytes of that type
/// count: `ScalarUnion::Int8(-2)`, `ScalarUnion::Int64(-2)` and `ScalarUnion::UInt8(254)` are the same delta for a
/// UINT8 sequence. A FLOAT16 is a [`ScalarUnion::Float16`], or its bits as a [`ScalarUnion::UInt16`]. Two are equal if
/// they have the same variant and the same bits.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the variants have DirectML's names
#[non_exhaustive]
pub enum ScalarUnion {
    Bytes([u8; 8]),
    Int8(i8),
    UInt8(u8),
    Int16(i16),
    UInt16(u16),
    Int32(i32),
    UInt32(u32),
    Int64(i64),
    UInt64(u64),
    Float16(f16),
    Float32(f32),
    Float64(f64),
}

impl ScalarUnion {
    /// The union's eight bytes as one little-endian number. Bytes that the view does not cover are zero.
    pub fn to_bits(self) -> u64 {
        match self {
            Self::Bytes(bytes) => u64::from_le_bytes(bytes),
            Self::Int8(value) => u64::from(value as u8),
            Self::UInt8(value) => u64::from(value),
            Self::Int16(value) => u64::from(value as u16),
            Self::UInt16(value) => u64::from(value),
            Self::Int32(value) => u64::from(value as u32),
            Self::UInt32(value) => u64::from(value),
            Self::Int64(value) => value as u64,
            Self::UInt64(value) => value,
            Self::Float16(value) => u64::from(value.to_bits()),
            Self::Float32(value) => u64::from(value.to_bits()),
            Self::Float64(value) => value.to_bits(),
        }
    }
}

impl PartialEq for ScalarUnion {
    fn eq(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other) && self.to_bits() == other.to_bits()
    }
}

impl Eq for ScalarUnion {}

impl Hash for ScalarUnion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (discriminant(self), self.to_bits()).hash(state);
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that can be the element of a tensor.
pub trait Element: Pod + Delta<Self> + Send + Sync {
    /// The data type of a tensor with these elements.
    const DATA_TYPE: TensorDataType;
}

/// An [`Element`] of which DirectML has sequences: any but `f64`, for which a device needs
/// [`FeatureLevel::Extended`](crate::FeatureLevel::Extended).
pub trait SequenceElement: Element {}

/// A Rust type that can be the delta of a sequence of `T`: `T` itself and, for an integer, also the type of the same
/// width with the other signedness, so that a `u8` sequence can count down by `-2i8`.
pub trait Delta<T>: Into<ScalarUnion> + sealed::Sealed {}

/// Each type, its data type, the types of the elements that it can be the delta of, and whether DirectML has sequences
/// of it.
macro_rules! elements {
    ($($rust:ty => $data_type:ident, delta of $($element:ty)+ $(, $sequence:ident)?;)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DATA_TYPE: TensorDataType = TensorDataType::$data_type;
        }
        impl From<$rust> for ScalarUnion {
            fn from(scalar: $rust) -> Self {
                Self::$data_type(scalar)
            }
        }
        $(impl Delta<$element> for $rust {})+
        $(impl $sequence for $rust {})?
    )*};
}
elements! {
    f32 => Float32, delta of f32, SequenceElement;
    f16 => Float16, delta of f16, SequenceElement;
    f64 => Float64, delta of f64;
    u8 => UInt8, delta of u8 i8, SequenceElement;
    i8 => Int8, delta of u8 i8, SequenceElement;
    u16 => UInt16, delta of u16 i16, SequenceElement;
    i16 => Int16, delta of u16 i16, SequenceElement;
    u32 => UInt32, delta of u32 i32, SequenceElement;
    i32 => Int32, delta of u32 i32, SequenceElement;
    u64 => UInt64, delta of u64 i64, SequenceElement;
    i64 => Int64, delta of u64 i64, SequenceElement;
}

/// A Rust type of lengths: any integer of at most 64 bits.
pub trait Length: Copy + TryInto<u64> + fmt::Display {}
macro_rules! lengths {
    ($($integer:ty)*) => { $(impl Length for $integer {})* };
}
lengths!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize);
