#![doc = include_str!("../README.md")]

mod arange;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod reverse;

pub use arange::{arange, arange_step};
pub use reverse::{reverse_subsequences, reverse_subsequences_inplace, ReverseSubsequences};

/// A storage, and the layout of a tensor in it.
type View<'a, S> = (&'a S, &'a candle_core::Layout);
