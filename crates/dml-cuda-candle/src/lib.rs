#![doc = include_str!("../README.md")]

/// Binds the elements of a storage, of a variant of `$kind`.
macro_rules! by_type {
    ($kind:ident, $storage:expr, $dtype:expr, $elements:ident => $then:expr) => {
        match $storage {
            $kind::U8($elements) => $then,
            $kind::U32($elements) => $then,
            $kind::I16($elements) => $then,
            $kind::I32($elements) => $then,
            $kind::I64($elements) => $then,
            $kind::BF16($elements) => $then,
            $kind::F16($elements) => $then,
            $kind::F32($elements) => $then,
            $kind::F64($elements) => $then,
            $kind::F8E4M3($elements) => $then,
            _ => candle_core::bail!("{:?} is not for these operators", $dtype),
        }
    };
}

mod arange;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod reverse;

pub use arange::{arange, arange_step};
pub use reverse::{reverse_subsequences, reverse_subsequences_inplace, ReverseSubsequences};

use candle_core::{DType, Error, Layout, Result};
use dml_cuda::lowering::{LoweringError, Names};
use dml_cuda::TensorDataType;

/// A storage, and the layout of a tensor in it.
type View<'a, S> = (&'a S, &'a Layout);

/// Converts an error to candle's, with the names of the operators' arguments.
fn candle_error(error: LoweringError) -> Error {
    use dml_cuda::TensorRole::{Input, Output, SequenceLengths};
    Error::msg(error.message(&Names::new(
        "axis",
        &[
            (Input, "x"),
            (SequenceLengths, "lengths"),
            (Output, "the result"),
        ],
    )))
}

/// Sizes, and strides in bytes.
fn in_bytes(layout: &Layout, width: usize) -> (Vec<i64>, Vec<i64>) {
    let strides = layout
        .stride()
        .iter()
        .map(|&stride| (stride * width) as i64);
    (
        layout.dims().iter().map(|&size| size as i64).collect(),
        strides.collect(),
    )
}

/// The type of lengths.
fn length_type(dtype: DType) -> Result<TensorDataType> {
    match dtype {
        DType::U32 => Ok(TensorDataType::UInt32),
        DType::I32 => Ok(TensorDataType::Int32),
        DType::I64 => Ok(TensorDataType::Int64),
        _ => Err(candle_error(LoweringError::ForeignLengthType {
            found: format!("{dtype:?}"),
        })),
    }
}
