//! REVERSE_SUBSEQUENCES: the kernels in the order they are tried in, fastest first; the one for any strides last.

use super::layout::{Layout, NO_BLOCK, NO_ROW};
use super::{
    clusters, columns, elementwise, lanes, packed_lanes, rows, strips, transposed, Because, Candidates, Selection,
};
use crate::cuda::target::GpuTarget;
use crate::cuda::tuning::segments::MIN_WIDE_LANE_IN_PLACE;
use crate::plan::reverse_subsequences::Plan;

/// Adds its launches for a layout to the candidates, copying or in place, or says why it has none.
type Kernel = fn(&Layout<'_>, bool, &mut Candidates) -> Result<(), Because>;

/// Kernels, each with what it is called where it is rejected.
type Order = &'static [(&'static str, &'static str, Kernel)];

/// Little work, whatever the layout.
const SMALL: Order = &[("reverse_small", "reverse_small_in_place", elementwise::small)];

/// Contiguous blocks behind the axis, each with one length.
const BLOCKS: Order = &[
    ("reverse_elementwise_16", "reverse_elementwise_in_place_16", elementwise::vectors),
    ("reverse_rows", "reverse_rows_in_place", rows::rows),
    ("reverse_packed_rows", "reverse_packed_rows_in_place", rows::packed_rows),
    ("reverse_row_tiles", "reverse_row_tiles_in_place", rows::row_tiles),
];

const NO_BLOCKS: Order = &[("reverse_elementwise_16", "reverse_elementwise_in_place_16", |_, _, _| Err(NO_BLOCK))];

/// Contiguous lanes.
const LANES: Order = &[
    ("reverse_packed_lanes_in_registers", "reverse_packed_lanes_in_place", packed_lanes::in_registers),
    ("reverse_packed_lanes", "reverse_packed_lanes_in_place", packed_lanes::in_shared_memory),
    ("reverse_lanes", "reverse_lanes_in_place", lanes::whole),
    ("reverse_long_lanes", "reverse_long_lanes_in_place", lanes::long),
];

const SHORT_WIDE_LANES: Order = &[("reverse_lanes", "reverse_lanes_in_place", |_, _, _| {
    Err("lanes of fewer than 16 elements of 8 bytes are swapped faster one by one")
})];

const NO_LANES: Order = &[("reverse_lanes", "reverse_lanes_in_place", |_, _, _| Err("the axis is not contiguous"))];

/// Lanes side by side, each with a length of its own, of which a thread block holds a strip.
const SIDE_BY_SIDE: Order = &[COLUMNS, STRIPS, UNALIGNED_STRIPS, CLUSTERS];

/// The same where no thread block holds a strip of whole sectors: a cluster is tried first.
const LONG_SIDE_BY_SIDE: Order = &[COLUMNS, CLUSTERS, STRIPS, UNALIGNED_STRIPS];

const NO_ROWS: Order = &[("reverse_strips", "reverse_strips_in_place", |_, _, _| Err(NO_ROW))];

const COLUMNS: (&str, &str, Kernel) = ("reverse_columns", "reverse_columns_in_place", columns::columns);
const STRIPS: (&str, &str, Kernel) = ("reverse_strips", "reverse_strips_in_place", strips::aligned);
const UNALIGNED_STRIPS: (&str, &str, Kernel) =
    ("reverse_unaligned_strips", "reverse_unaligned_strips_in_place", strips::unaligned);
const CLUSTERS: (&str, &str, Kernel) = ("reverse_clusters", "reverse_clusters_in_place", clusters::clusters);

/// Anything else.
const ANY: Order = &[
    ("reverse_transposed", "reverse_transposed", transposed::transposed),
    ("reverse_elementwise", "reverse_elementwise_in_place", elementwise::units),
];

/// The launches of both modes.
pub(crate) fn select(plan: &Plan, target: &GpuTarget) -> Selection {
    let layout = Layout::new(plan, target);
    // Once one takes any pointers, those behind it are never launched.
    let candidates = |in_place| {
        candidates(&layout, in_place, |found| {
            found.launches.last().is_some_and(|launch| launch.alignment == layout.width)
        })
    };
    Selection { out_of_place: candidates(false), in_place: plan.in_place.then(|| candidates(true)) }
}

/// The same with launches that no pointers get, as they come after one that takes any.
#[cfg(test)]
pub(crate) fn select_all(plan: &Plan, target: &GpuTarget) -> Selection {
    let layout = Layout::new(plan, target);
    let all = |in_place| candidates(&layout, in_place, |_| false);
    Selection { out_of_place: all(false), in_place: plan.in_place.then(|| all(true)) }
}

/// The launches up to where they are complete; none where nothing moves.
fn candidates(layout: &Layout<'_>, in_place: bool, complete: impl Fn(&Candidates) -> bool) -> Candidates {
    let mut found = Candidates::new();
    if in_place && layout.axis.size < 2 {
        return found;
    }
    for &(copying, swapping, kernel) in order(layout, in_place).into_iter().flatten() {
        if complete(&found) {
            break;
        }
        if let Err(because) = kernel(layout, in_place, &mut found) {
            found.reject(if in_place { swapping } else { copying }, because);
        }
    }
    found
}

fn order(layout: &Layout<'_>, in_place: bool) -> [Order; 5] {
    if layout.block().is_some() {
        return [SMALL, BLOCKS, &[], &[], ANY];
    }
    let lanes = if layout.axis.out_stride != 1 || layout.axis.in_stride != 1 {
        NO_LANES
    } else if in_place && layout.width == 8 && layout.axis.size < MIN_WIDE_LANE_IN_PLACE {
        SHORT_WIDE_LANES
    } else {
        LANES
    };
    let side_by_side = match layout.row() {
        None => NO_ROWS,
        Some(_) if strips::fit_a_block(layout) => SIDE_BY_SIDE,
        Some(_) => LONG_SIDE_BY_SIDE,
    };
    [SMALL, NO_BLOCKS, lanes, side_by_side, ANY]
}
