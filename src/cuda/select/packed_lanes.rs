//! reverse_packed_lanes.cu: short contiguous lanes that are adjacent in memory.

use super::layout::{Candidates, Layout};
use super::segments::Staged;
use super::{reject_if, RejectReason};
use crate::cuda::estimate::Work;
use crate::cuda::launch::Launch;
use crate::cuda::tuning::segments::MAX_WORDS_IN_PLACE;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// Threads of a warp, which is the largest thread group of a lane in place.
const WARP_THREADS: u32 = 32;

/// Whole lanes, staged.
pub(super) fn packed_lanes(
    layout: &Layout<'_>,
    _: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    layout.contiguous_lanes()?;
    // In place, this kernel moves single elements, which pays for short lanes alone if they are words.
    let is_long = layout.in_place() && layout.width == 4 && layout.axis.size > MAX_WORDS_IN_PLACE;
    reject_if(
        is_long,
        (
            "in place, lanes have more than {} elements of 4 bytes",
            MAX_WORDS_IN_PLACE,
        ),
    )?;
    let staged = Staged::new(layout)?;
    let (grid, swaps) = (staged.grid, layout.axis.size.div_ceil(2));
    // In place, a thread for every other element: on average, half of the elements are below a length.
    let group = if layout.in_place() {
        swaps.next_power_of_two().min(WARP_THREADS)
    } else {
        staged.group()
    };
    let rounds = staged.rounds_of_items(swaps.into(), group);
    let work = Work {
        rounds: rounds / 4.0 + staged.rounds_of_vectors(),
        ..layout.work()
    };
    let launch = Launch::new(
        layout.entry(&kernels::PACKED_LANES, layout.width)?,
        grid,
        layout.width,
        VEC16,
    );
    list.add(
        layout,
        launch,
        work,
        &costs::PACKED_LANES,
        layout.width,
        || staged.parameters(layout, group, 0),
    )
}
