//! Staged groups: short lanes, and blocks of odd rows, that lie one behind the other.

use std::ffi::CStr;

use super::{dim, Dim, Entry, Launch, Launches, Module, Way, SWAP};
use crate::plan::{FastDiv, SLOT};

/// kernels/reverse_subsequences_staged.cu.
pub(crate) const ENTRIES: &[&CStr] = &[
    c"reverse_staged_lanes_1",
    c"reverse_staged_lanes_2",
    c"reverse_staged_lanes_4",
    c"reverse_staged_lanes_8",
    c"reverse_staged_lanes_swap_1",
    c"reverse_staged_lanes_swap_2",
    c"reverse_staged_rows",
    c"reverse_staged_rows_swap",
];
const ROWS: usize = 6;
/// Bytes of groups that a block of threads stages, unless one is larger, and how many groups.
const STAGED_BYTES: u64 = 16 << 10;
const STAGED_GROUPS: u64 = 4096;

const APART: &str = "groups do not lie one behind the other";

impl Launches<'_> {
    /// Groups of at most so many bytes, one behind the other in both tensors: a lane, or the lanes of a block.
    pub(super) fn staged(&self, in_place: bool, most: u64) -> Way {
        let block = self.block().map_or(1, |block| block.size);
        if self.axis.in_stride != block || self.axis.out_stride != block {
            return Err(APART);
        }
        let group = u64::from(self.axis.size) * u64::from(block);
        let mut next = group;
        let outside: Vec<Dim> = self.dimensions.iter().filter(|d| block == 1 || !Self::is_block(d)).map(dim).collect();
        for d in outside.iter().rev() {
            if u64::from(d.in_stride) != next || u64::from(d.out_stride) != next {
                return Err(APART);
            }
            next *= u64::from(d.size.divisor);
        }
        let bytes = group * u64::from(self.width);
        let groups: u64 = outside.iter().map(|d| u64::from(d.size.divisor)).product();
        let together = (STAGED_BYTES / bytes.max(1)).clamp(1, STAGED_GROUPS).min(groups);
        // The lengths and one more, a slot before the groups, these at their alignment, and what a window may reach
        // behind them.
        let shared = ((together + 1) * 4).next_multiple_of(SLOT.into())
            + u64::from(SLOT)
            + (together * bytes).next_multiple_of(SLOT.into())
            + 3 * u64::from(SLOT);
        if bytes > most {
            return Err("a group is large enough for a kernel of its own");
        }
        if shared > u64::from(self.target.shared_memory) {
            return Err("a group does not fit shared memory");
        }
        let mut params = self.params(groups, outside.into_iter());
        params.block = FastDiv::new(block * self.width);
        params.group = FastDiv::new(bytes as u32);
        params.together = together as u32;
        let index = match (self.block(), in_place) {
            (Some(_), _) => ROWS + usize::from(in_place),
            (None, false) => self.width_index(),
            (None, true) => self.width_index() + SWAP, // of 1 or 2 bytes: 16 elements and fewer than 64 bytes
        };
        let entry = Entry { module: Module::ReverseStaged, index };
        let blocks = groups.div_ceil(together) as u32;
        Ok(Launch { entry, blocks, shared: shared as u32, alignment: self.width, access: SLOT, params })
    }
}
