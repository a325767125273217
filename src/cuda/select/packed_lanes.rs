//! reverse_packed_lanes.cu: short contiguous lanes that are adjacent in memory.

use super::layout::work::WARP;
use super::layout::{Candidates, Layout};
use super::segments::Staged;
use super::RejectReason;
use crate::cuda::estimate::Work;
use crate::cuda::launch::Launch;
use crate::cuda::parameters::THREADS;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// Threads of a warp, which is the largest thread group of a lane in place; and banks of shared memory, of 4 bytes.
const WARP_THREADS: u32 = 32;
const BANKS: u32 = 32;

/// Whole lanes, staged.
pub(super) fn packed_lanes(layout: &Layout<'_>, _: u32, found: &mut Candidates) -> Result<(), RejectReason> {
    layout.contiguous_lanes()?;
    let staged = Staged::new(layout)?;
    let (grid, moving, swaps) = (staged.grid, layout.moving(), layout.axis.size.div_ceil(2));
    // In place, a thread for every other element: on average, half of the elements are below a length.
    let group = if layout.in_place() { swaps.next_power_of_two().min(WARP_THREADS) } else { staged.group() };
    let rounds = staged.rounds_of_items(swaps.into(), group);
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
