//! Little work: as few instructions as can be.

use std::ffi::CStr;

use super::units::index_of_unit;
use super::{Entry, Launch, Launches, Module, Params};
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

/// Dimensions that the kernels take, the axis among them.
const DIMENSIONS: u32 = 3;

/// Units of a tensor up to which there is little work: of 16 bytes, and narrower ones. Inner [256, 1024] u8, copying 1.96,
/// else 2.00; [256, 4096] 4.9, else 3.1. Block [64, 256, 256] f32 11.2, else 11.8; i64 in place 9.2, else 8.8.
const WIDE_UNITS: u64 = 1 << 20;
const UNITS: u64 = 1 << 18;

impl Launches<'_> {
    /// Units of that many bytes, one a thread, where there are few, in few dimensions.
    pub(super) fn small(&self, in_place: bool, unit: u32) -> Option<Launch<Params>> {
        let params = self.params_of_units(in_place, unit).ok()?;
        let units = params.items * if in_place { 2 } else { 1 };
        if params.rank > DIMENSIONS || units > if unit == SLOT { WIDE_UNITS } else { UNITS } {
            return None;
        }
        let entry = Entry { module: Module::ReverseSmall, index: index_of_unit(in_place, unit) };
        let blocks = blocks(params.items, 1);
        Some(Launch { entry, blocks, threads: THREADS, shared: 0, alignment: unit, access: unit, params })
    }
}
