//! Little work: as few instructions as can be.

use std::ffi::CStr;

use super::{Entry, Launch, Launches, Module, Way};
use crate::plan::{blocks, SLOT, THREADS};

/// kernels/reverse_subsequences_small.cu: copying and in place, narrowest unit first.
pub(crate) const ENTRIES: &[&CStr] = &[
    c"reverse_small_1",
    c"reverse_small_2",
    c"reverse_small_4",
    c"reverse_small_8",
    c"reverse_small_16",
    c"reverse_small_swap_1",
    c"reverse_small_swap_2",
    c"reverse_small_swap_4",
    c"reverse_small_swap_8",
    c"reverse_small_swap_16",
];
const SWAP: usize = 5;

/// Dimensions that the kernels take, the axis among them.
const DIMENSIONS: u32 = 3;

/// Units of a tensor up to which there is little work: of 16 bytes, and narrower ones. Inner [256, 1024] u8, copying 1.96,
/// else 2.00; [256, 4096] 4.9, else 3.1. Block [64, 256, 256] f32 11.2, else 11.8; i64 in place 9.2, else 8.8.
const WIDE_UNITS: u64 = 1 << 20;
const UNITS: u64 = 1 << 18;

impl Launches<'_> {
    /// Units of that many bytes, where there are few, one a thread.
    pub(super) fn small(&self, in_place: bool, unit: u32) -> Way {
        let params = self.params_of_units(in_place, unit)?;
        if params.rank > DIMENSIONS {
            return Err("there are more than three dimensions after merging");
        }
        let units = params.items * if in_place { 2 } else { 1 };
        if units > if unit == SLOT { WIDE_UNITS } else { UNITS } {
            return Err("there is much work");
        }
        let entry = Entry {
            module: Module::ReverseSmall,
            index: unit.trailing_zeros() as usize + if in_place { SWAP } else { 0 },
        };
        let blocks = blocks(params.items, 1);
        Ok(Launch { entry, blocks, threads: THREADS, shared: 0, alignment: unit, access: unit, params })
    }
}
