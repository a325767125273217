//! Lanes of 2, 4, 8 or 16 bytes, turned around in registers.

use std::ffi::CStr;

use super::{dim, Entry, Launch, Launches, Module, Way};
use crate::plan::{blocks, SLOT, THREADS};

/// kernels/reverse_subsequences_tiny.cu: bytes of an element, and of a lane.
pub(crate) const ENTRIES: &[&CStr] = &[
    c"reverse_tiny_1_2",
    c"reverse_tiny_1_4",
    c"reverse_tiny_1_8",
    c"reverse_tiny_1_16",
    c"reverse_tiny_2_4",
    c"reverse_tiny_2_8",
    c"reverse_tiny_2_16",
    c"reverse_tiny_4_8",
    c"reverse_tiny_4_16",
    c"reverse_tiny_8_16",
];
/// Where the entries of each width of an element begin.
const FIRST: [usize; 4] = [0, 4, 7, 9];

impl Launches<'_> {
    /// Copies lanes that fill a slot, or a power of two of them do, one behind the other in both tensors.
    pub(super) fn tiny_lanes(&self) -> Way {
        let bytes = u64::from(self.axis.size) * u64::from(self.width);
        if self.axis.size < 2 || ![2, 4, 8, 16].contains(&bytes) {
            return Err("lanes are not of 2, 4, 8 or 16 bytes");
        }
        let [lanes] = self.dimensions else {
            return Err("lanes are not one dimension after merging");
        };
        if lanes.in_stride != self.axis.size || lanes.out_stride != self.axis.size {
            return Err("lanes do not lie one behind the other");
        }
        let items = u64::from(lanes.size);
        let lanes_of_slot = u64::from(SLOT) / bytes;
        let index = FIRST[self.width_index()] + self.axis.size.trailing_zeros() as usize - 1;
        let entry = Entry { module: Module::ReverseTiny, index };
        let params = self.params(items, std::iter::once(dim(lanes)));
        let blocks = blocks(items.div_ceil(lanes_of_slot), 1);
        Ok(Launch { entry, blocks, threads: THREADS, shared: 0, alignment: SLOT, access: SLOT, params })
    }
}
