//! Groups that lie one behind the other: short lanes, and blocks of odd rows.

use super::reverse_subsequences::{dim, teams, Dim, Layout, Way, STAGED_LANE_BYTES, STAGED_LANE_BYTES_IN_PLACE};
use super::{FastDiv, SLOT, THREADS};
use crate::cuda::kernels;
use crate::cuda::launch::Draft;

/// Bytes of groups that a block of threads stages, unless one is larger, and how many groups.
const STAGED_BYTES: u64 = 16 << 10;
const STAGED_GROUPS: u64 = 4096;

/// Blocks of threads that a multiprocessor should have before they stage that much. [8192, 100] u8: copying 3.1, else 4.4;
/// in place 3.6, else 5.8.
const BLOCKS_OF_MULTIPROCESSOR: u64 = 2;

/// In place, slots of a block's group that a thread reads and writes. Blocks of 3 u8, of 96 slots: 30, with 10 slots 33; of 5
/// f16, of 320: 23, with 4 slots 26.
const SLOTS_OF_THREAD: u32 = 6;

/// Threads of a warp.
const WARP: u32 = 32;

const TOO_LARGE: &str = "a group does not fit shared memory";
const LARGE: &str = "a group is large enough for a kernel of its own";
const APART: &str = "groups do not lie one behind the other";

impl Layout<'_> {
    /// Short lanes, one behind the other in both tensors.
    pub(super) fn staged_lanes(&self, in_place: bool) -> Way {
        let most = if in_place { STAGED_LANE_BYTES_IN_PLACE } else { STAGED_LANE_BYTES };
        let mut launch = self.staged(most - 1)?;
        let bytes = launch.params.group.divisor;
        if in_place {
            // A thread for every other element: half of them lie below a length.
            let team = self.axis.size.div_ceil(2).next_power_of_two().min(WARP);
            launch.params.team_log = team.trailing_zeros();
        }
        let kernel = if in_place {
            &kernels::TURNED_LANES_IN_PLACE
        } else if bytes % SLOT == 0 {
            &kernels::STAGED_LANES
        } else {
            &kernels::TURNED_LANES
        };
        launch.entry = kernel.entry(self.width_index());
        Ok(launch)
    }

    /// Blocks of at most so many bytes, one behind the other in both tensors, their rows turned in units of 4 bytes down
    /// to those of an element; the last takes any pointers.
    pub(super) fn staged_rows(&self, in_place: bool, most: u64) -> Vec<Way> {
        let mut launch = match self.staged(most) {
            Ok(launch) => launch,
            Err(because) => return vec![Err(because)],
        };
        if in_place {
            // A team for each group, which has slots of its own: one more where it begins inside one.
            let slots = launch.params.group.divisor.div_ceil(SLOT) + 1;
            // A few slots more than a power of two are no reason for twice the threads: blocks of 3 f16 23, not 26. Unless
            // bytes are turned one by one: blocks of 3 u8 33 with half the threads, not 30.
            let slots_of_team = if self.width == 1 { slots } else { slots * 4 / 5 };
            let team = slots_of_team.div_ceil(SLOTS_OF_THREAD).next_power_of_two().min(THREADS);
            launch.params.team_log = team.trailing_zeros();
            launch.params.pitch = slots;
            let (threads, together) = teams(team);
            launch.threads = threads;
            launch.shared = together * slots * SLOT;
            launch.blocks = launch.params.items.div_ceil(together.into()) as u32;
            if launch.shared > self.target.shared_memory {
                return vec![Err(TOO_LARGE)];
            }
        }
        let row = launch.params.block.divisor;
        let units = [4, 2, 1].into_iter().filter(|&unit| unit >= self.width && row % unit == 0);
        let kernel = if in_place { &kernels::TURNED_ROWS_IN_PLACE } else { &kernels::TURNED_ROWS };
        let way =
            |unit: u32| Ok(Draft { entry: kernel.entry(unit.trailing_zeros() as usize), alignment: unit, ..launch });
        units.map(way).collect()
    }

    /// Groups of a block of threads, at most so many, at least one: so that the device has blocks of threads enough.
    pub(super) fn groups_of_block(&self, groups: u64, most: u64) -> u64 {
        let share = groups.div_ceil(u64::from(self.target.multiprocessors) * BLOCKS_OF_MULTIPROCESSOR);
        most.min(share).max(1)
    }

    fn staged(&self, most: u64) -> Way {
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
        let together = match self.groups_of_block(groups, (STAGED_BYTES / bytes.max(1)).min(STAGED_GROUPS)) {
            few @ 0..=4 => few,
            many => many / 4 * 4, // the lengths of any block of threads are read 4 at a time
        };
        // The lengths and one more, a slot before the groups, these at their alignment, and what a window may reach
        // behind them.
        let shared = ((together + 1) * 4).next_multiple_of(SLOT.into())
            + u64::from(SLOT)
            + (together * bytes).next_multiple_of(SLOT.into())
            + 3 * u64::from(SLOT);
        if bytes > most {
            return Err(LARGE);
        }
        if shared > u64::from(self.target.shared_memory) {
            return Err(TOO_LARGE);
        }
        let mut params = self.params(groups, outside.into_iter());
        params.block = FastDiv::new(block * self.width);
        params.group = FastDiv::new(bytes as u32);
        params.together = together as u32;
        // As many threads for a group as keep a block of threads busy.
        params.team_log = u64::from(THREADS).div_ceil(together).next_power_of_two().trailing_zeros();
        let blocks = groups.div_ceil(together) as u32;
        let entry = kernels::STAGED_LANES.entry(0); // the callers choose
        Ok(Draft {
            entry,
            blocks,
            threads: THREADS,
            shared: shared as u32,
            alignment: self.width,
            access: SLOT,
            params,
        })
    }
}
