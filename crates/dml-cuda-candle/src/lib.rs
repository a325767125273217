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

/// A storage, and the layout of a tensor in it.
type View<'a, S> = (&'a S, &'a candle_core::Layout);
