//! Lanes of 2, 4, 8 or 16 bytes, turned around in registers.

use super::reverse_subsequences::{dim, Layout, Way};
use super::{blocks, SLOT, THREADS};
use crate::cuda::kernels;
use crate::cuda::launch::Draft;

impl Layout<'_> {
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
        let by_width = [&kernels::TINY_1, &kernels::TINY_2, &kernels::TINY_4, &kernels::TINY_8];
        let entry = by_width[self.width_index()].entry(self.axis.size.trailing_zeros() as usize - 1);
        let params = self.params(items, std::iter::once(dim(lanes)));
        let blocks = blocks(items.div_ceil(lanes_of_slot), 1);
        Ok(Draft { entry, blocks, threads: THREADS, shared: 0, alignment: SLOT, access: SLOT, params })
    }
}
