//! Groups of few lanes side by side, each lane with a length of its own, one group behind the other.

use super::reverse_subsequences::{dim, Layout, Way};
use super::strips::NO_ROW;
use super::{FastDiv, SLOT, THREADS};
use crate::cuda::kernels;
use crate::cuda::launch::Draft;

/// Rows of so many bytes are cut into strips without a rest.
const WHOLE_STRIP: u64 = 32;

/// Bytes of groups that a block of threads stages, unless one is larger, and the most of one.
const STAGED_BYTES: u64 = 16 << 10;
const MOST_BYTES: u64 = 100 << 10;

impl Layout<'_> {
    /// Whole groups of lanes side by side.
    pub(super) fn columns(&self, in_place: bool) -> Way {
        let row = self.row().ok_or(NO_ROW)?;
        if self.row_bytes(row) % WHOLE_STRIP == 0 {
            return Err("rows of lanes are whole strips");
        }
        let mut next = u64::from(self.axis.size) * u64::from(row.size);
        let bytes = next * u64::from(self.width);
        if bytes > MOST_BYTES {
            return Err("a group of lanes side by side is too large to be staged whole");
        }
        if row.size > THREADS {
            return Err("there are more lanes side by side than threads in a block");
        }
        if self.axis.in_stride != row.size || self.axis.out_stride != row.size {
            return Err("rows of lanes do not lie one behind the other");
        }
        for d in self.outside().rev() {
            if u64::from(d.in_stride) != next || u64::from(d.out_stride) != next {
                return Err("groups do not lie one behind the other");
            }
            next *= u64::from(d.size);
        }
        let groups: u64 = self.outside().map(|d| u64::from(d.size)).product();
        let together = self.groups_of_block(groups, STAGED_BYTES / bytes);
        // The lengths, the ends, a slot where the groups begin inside one, and the groups.
        let slots = |bytes: u64| bytes.div_ceil(SLOT.into());
        let shared = u64::from(SLOT)
            * (slots(together * u64::from(row.size) * 4) + slots(together * 4) + slots(together * bytes) + 1);
        if shared > u64::from(self.target.shared_memory) {
            return Err("a group does not fit shared memory");
        }
        let mut params = self.params(groups, self.outside().map(dim));
        params.parts = FastDiv::new(self.axis.size);
        params.block = FastDiv::new(row.size);
        params.group = FastDiv::new(bytes as u32);
        params.together = together as u32;
        params.length_stride = row.length_stride;
        let kernel = if in_place { &kernels::COLUMNS_IN_PLACE } else { &kernels::COLUMNS };
        Ok(Draft {
            entry: kernel.entry(self.width_index()),
            blocks: groups.div_ceil(together) as u32,
            threads: THREADS,
            shared: shared as u32,
            alignment: self.width,
            access: self.width,
            params,
        })
    }
}
