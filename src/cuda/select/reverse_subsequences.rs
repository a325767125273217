//! REVERSE_SUBSEQUENCES: the candidates.

use super::layout::Layout;
use super::{
    clusters, columns, elementwise, lanes, packed_lanes, rows, strips, transposed, Candidate, Launches, RejectReason,
};
use crate::cuda::launch::Launch;
use crate::cuda::target::GpuTarget;
use crate::mode::Mode;
use crate::plan::reverse_plan::Plan;

type ReversalLaunch = fn(&Layout<'_>) -> Result<Launch, RejectReason>;

/// Fastest first. Units of one element accept any layout and any pointers.
#[rustfmt::skip] // a line each
pub(super) const CANDIDATES: &[Candidate<ReversalLaunch>] = &[
    // Little work, whatever the layout.
    Candidate::small("reverse_small", "reverse_small_in_place", elementwise::small::<16>),
    Candidate::small("reverse_small", "reverse_small_in_place", elementwise::small::<8>),
    Candidate::small("reverse_small", "reverse_small_in_place", elementwise::small::<4>),
    Candidate::small("reverse_small", "reverse_small_in_place", elementwise::small::<2>),
    Candidate::small("reverse_small", "reverse_small_in_place", elementwise::small::<1>),
    // Contiguous blocks behind the axis, each with one length.
    Candidate::both("reverse_elementwise_16", "reverse_elementwise_in_place_16", elementwise::units::<16>),
    Candidate::both("reverse_elementwise_8", "reverse_elementwise_in_place_8", elementwise::units_of_blocks::<8>),
    Candidate::both("reverse_rows", "reverse_rows_in_place", rows::rows),
    Candidate::both("reverse_packed_rows", "reverse_packed_rows_in_place", rows::packed_rows::<4>),
    Candidate::both("reverse_packed_rows", "reverse_packed_rows_in_place", rows::packed_rows::<2>),
    Candidate::both("reverse_packed_rows", "reverse_packed_rows_in_place", rows::packed_rows::<1>),
    Candidate::both("reverse_row_tiles", "reverse_row_tiles_in_place", rows::row_tiles::<4>),
    Candidate::both("reverse_row_tiles", "reverse_row_tiles_in_place", rows::row_tiles::<2>),
    Candidate::both("reverse_row_tiles", "reverse_row_tiles_in_place", rows::row_tiles::<1>),
    // Contiguous lanes.
    Candidate::out_of_place("reverse_packed_lanes_in_registers", packed_lanes::in_registers),
    Candidate::both("reverse_packed_lanes", "reverse_packed_lanes_in_place", packed_lanes::in_shared_memory),
    Candidate::both("reverse_lanes", "reverse_lanes_in_place", lanes::whole::<true>),
    Candidate::both("reverse_lanes", "reverse_lanes_in_place", lanes::whole::<false>),
    Candidate::out_of_place("reverse_long_lanes", lanes::long::<true>),
    Candidate::both("reverse_long_lanes", "reverse_long_lanes_in_place", lanes::long::<false>),
    // Lanes side by side, each with its own length.
    Candidate::both("reverse_columns", "reverse_columns_in_place", columns::columns),
    Candidate::both("reverse_clusters", "reverse_clusters_in_place", clusters::clusters),
    Candidate::both("reverse_strips", "reverse_strips_in_place", strips::aligned),
    Candidate::both("reverse_unaligned_strips", "reverse_unaligned_strips_in_place", strips::unaligned),
    // Anything else.
    Candidate::out_of_place("reverse_transposed", transposed::transposed::<true>),
    Candidate::out_of_place("reverse_transposed", transposed::transposed::<false>),
    Candidate::both("reverse_elementwise", "reverse_elementwise_in_place", elementwise::many_units::<8>),
    Candidate::both("reverse_elementwise", "reverse_elementwise_in_place", elementwise::many_units::<4>),
    Candidate::both("reverse_elementwise", "reverse_elementwise_in_place", elementwise::many_units::<2>),
    Candidate::both("reverse_elementwise", "reverse_elementwise_in_place", elementwise::many_units::<1>),
    // What these leave to it.
    Candidate::out_of_place("reverse_elementwise", elementwise::vectors),
];

/// The launches of a mode. In place there are none for a lane of one element, which does not move.
pub(crate) fn select(plan: &Plan, target: &GpuTarget, mode: Mode) -> Launches {
    if mode == Mode::InPlace && (!plan.in_place || plan.axis.size < 2) {
        return Launches::default();
    }
    launches(CANDIDATES, Layout::new(plan, mode, target))
}

/// Those of `candidates`. For pointers that the first does not accept, nothing is gathered in vectors.
pub(super) fn launches(candidates: &[Candidate<ReversalLaunch>], layout: Layout<'_>) -> Launches {
    let find = |layout: &Layout<'_>| Launches::find(candidates, layout.mode, layout.width, |launch| launch(layout));
    let mut found = find(&layout);
    if layout.gathers && found.launches.first().is_none_or(|first| first.alignment > layout.width) {
        found.launches.truncate(1);
        find(&Layout { gathers: false, ..layout }).launches.into_iter().for_each(|launch| found.push(launch));
    }
    found
}
