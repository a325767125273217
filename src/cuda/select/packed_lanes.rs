//! reverse_packed_lanes.cu: short contiguous lanes that are adjacent in memory.

use super::layout::work::WARP;
use super::layout::{Candidates, Layout};
use super::segments::Staged;
use super::RejectReason;
use crate::cuda::costs;
use crate::cuda::estimate::Work;
use crate::cuda::kernels;
use crate::cuda::launch::Launch;
use crate::cuda::tuning::{THREADS, VEC16};

/// Threads of a warp, which is the largest thread group of a lane in place; and banks of shared memory, of 4 bytes.
const WARP_THREADS: u32 = 32;
const BANKS: u32 = 32;

/// Threads for a lane. In place, one for every other element: on average, half of the elements are below a length.
fn group(layout: &Layout<'_>, staged: &Staged) -> u32 {
    match layout.in_place() {
        true => layout.axis.size.div_ceil(2).next_power_of_two().min(WARP_THREADS),
        false => staged.group(),
    }
}

/// Whole lanes, staged.
pub(super) fn packed_lanes(layout: &Layout<'_>, _: u32, found: &mut Candidates) -> Result<(), RejectReason> {
    layout.contiguous_lanes()?;
    let staged = Staged::new(layout)?;
    let (grid, group) = (staged.grid, group(layout, &staged));
    let moving = layout.moving();
    let swaps = u64::from(layout.axis.size.div_ceil(2));
    let rounds = staged.rounds_of_items(swaps, group);
    // Threads of a warp that reverse different lanes conflict if the lanes begin in few banks.
    let words_of_lane = if staged.bytes % 4 == 0 { staged.bytes / 4 } else { 1 };
    let lanes_of_warp = f64::from(WARP_THREADS / group.min(WARP_THREADS));
    let begins = f64::from(BANKS >> words_of_lane.trailing_zeros().min(BANKS.trailing_zeros()));
    let conflicts = (lanes_of_warp / begins).max(1.0);
    let once = layout.work();
    let vectors = layout.elements() as f64 * f64::from(layout.width) / f64::from(VEC16);
    let work = Work {
        accesses: once.misses,
        steps: vectors / WARP * 2.0 * moving,
        details: f64::from(grid.blocks) * f64::from(THREADS) / WARP * rounds * moving * conflicts,
        rounds: rounds / 4.0 + staged.rounds_of_vectors(),
        ..once
    };
    let launch = Launch::new(layout.entry(&kernels::PACKED_LANES, layout.width)?, grid, layout.width, VEC16);
    found.add(layout, launch, work, &costs::PACKED_LANES, layout.width, || staged.parameters(layout, group, 0))
}
