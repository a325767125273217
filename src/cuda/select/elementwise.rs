//! reverse_elementwise.cu: units of one element or up to 16 bytes, at any strides.

use super::layout::parameters::dim_in_units;
use super::layout::traffic::Side;
use super::layout::{is_contiguous, Candidates, Layout, NOT_DIVIDED, NO_BLOCK};
use super::{blocks, reject_if, RejectReason};
use crate::cuda::estimate::Work;
use crate::cuda::launch::{Grid, Launch};
use crate::cuda::parameters::elementwise::*;
use crate::cuda::parameters::{Reverse, THREADS};
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// Bytes of a unit.
pub(super) const UNITS: [u32; 4] = [8, 4, 2, 1];

/// Units of `unit` bytes, several per thread. Units of one element run any layout.
pub(super) fn units(
    layout: &Layout<'_>,
    unit: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    let items = items(layout, unit)?;
    let per_thread = if layout.in_place() {
        PAIRS_PER_THREAD
    } else {
        ITEMS_PER_THREAD
    };
    let grid = Grid {
        blocks: blocks(items, per_thread),
        threads: THREADS,
        shared: 0,
    };
    let work = work(layout, unit, per_thread, false);
    let launch = Launch::new(layout.entry(&kernels::ELEMENTWISE, unit)?, grid, unit, unit);
    list.add(layout, launch, work, &costs::ELEMENTWISE, unit, || {
        parameters(layout, unit, steps(layout), SINGLE_UNITS)
    })
}

/// A vector of `bytes` bytes of adjacent elements of the output per thread; not in place.
pub(super) fn vectors(
    layout: &Layout<'_>,
    bytes: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    let is_packed =
        "it gathers only if there are at most three dimensions, and the output is packed";
    reject_if(!layout.gathers(), is_packed)?;
    let whole = VEC16.min(8 * layout.width);
    let is_half = bytes == whole / 2 && layout.width < 8;
    reject_if(
        bytes != whole && !is_half,
        "elements of that width are gathered into other vectors",
    )?;
    let (items, elements) = (layout.elements(), bytes / layout.width);
    let accesses = layout.accesses(Side::Input, layout.width, elements, true);
    let once = layout.work();
    let work = Work {
        bytes: once.bytes + layout.moved_again(Side::Input, accesses, false),
        misses: once.misses
            + layout.missed_again(Side::Input, accesses, true)
            + layout.lengths_missed(layout.width, elements),
        ..once
    };
    let grid = Grid {
        blocks: blocks(items, elements),
        threads: THREADS,
        shared: 0,
    };
    let launch = Launch::new(
        layout.entry(&kernels::ELEMENTWISE, layout.width)?,
        grid,
        bytes,
        bytes,
    );
    list.add(layout, launch, work, &costs::VECTORS, layout.width, || {
        let form = if is_half {
            GATHERED_HALF_VECTORS
        } else {
            GATHERED_VECTORS
        };
        let in_rows = if are_in_rows(layout, elements) {
            IN_ROWS
        } else {
            0
        };
        parameters(layout, layout.width, layout.axis.size, form | in_rows)
    })
}

/// Whether every vector of this number of elements is in one row of the packed output.
fn are_in_rows(layout: &Layout<'_>, elements: u32) -> bool {
    let mut rows = layout
        .dimensions
        .iter()
        .chain([&layout.axis])
        .filter(|d| d.out_stride == 1);
    rows.next()
        .is_some_and(|row| row.size.is_multiple_of(elements))
}

/// The work of units, or pairs of units, that threads move one by one.
pub(super) fn work(layout: &Layout<'_>, unit: u32, per_thread: u32, scatters: bool) -> Work {
    let once = layout.work();
    let accesses = |side: Side, at_random: bool| layout.accesses(side, unit, 1, at_random);
    // The L1 cache keeps what is read for a while, and not what is written.
    let (missed, again) = if layout.in_place() {
        // One unit of a pair is at its own position, the other at a position that depends on the length.
        let [own, other] = [false, true].map(|at_random| accesses(Side::Input, at_random));
        let read = layout.missed_again(Side::Input, own, false)
            + layout.missed_again(Side::Input, other, true);
        let missed = read + layout.again(Side::Input, other);
        let again =
            [false, true].map(|is_written| layout.moved_again(Side::Input, other, is_written));
        (missed, again[0] + again[1])
    } else {
        let (read, written) = (
            accesses(Side::Input, !scatters),
            accesses(Side::Output, scatters),
        );
        let missed =
            layout.missed_again(Side::Input, read, !scatters) + layout.again(Side::Output, written);
        let (side, accesses) = if scatters {
            (Side::Output, written)
        } else {
            (Side::Input, read)
        };
        let again = layout.moved_again(side, accesses, scatters);
        (missed, again)
    };
    Work {
        bytes: once.bytes + again * layout.moving(),
        misses: once.misses + (missed + layout.lengths_missed(unit, 1)) * layout.moving(),
        rounds: if layout.in_place() {
            1.0
        } else {
            f64::from(per_thread).sqrt()
        },
    }
}

/// Bytes of the unit in elements, if the layout divides into such units.
pub(super) fn elements_of(layout: &Layout<'_>, unit: u32) -> Result<u32, RejectReason> {
    let elements = unit / layout.width;
    let fits = elements == 1
        || (elements > 1 && layout.rows_divide(layout.block().ok_or(NO_BLOCK)?, unit, unit));
    reject_if(!fits, NOT_DIVIDED)?;
    Ok(elements)
}

/// Items of units of `unit` bytes: units or, in place, pairs of units.
fn items(layout: &Layout<'_>, unit: u32) -> Result<u64, RejectReason> {
    let elements = u64::from(elements_of(layout, unit)?);
    Ok(layout.lane_count() / elements * u64::from(steps(layout)))
}

/// The steps of the axis: in place, pairs.
fn steps(layout: &Layout<'_>) -> u32 {
    if layout.in_place() {
        layout.axis.size / 2
    } else {
        layout.axis.size
    }
}

/// The parameters for units of `unit` bytes. The axis is among the dimensions, with `steps` steps.
pub(super) fn parameters(layout: &Layout<'_>, unit: u32, steps: u32, form: u32) -> Reverse {
    let (axis, elements) = (&layout.axis, unit / layout.width);
    let dims = layout.dimensions.iter().map(|d| {
        let (size, divisor) = if is_contiguous(d) {
            (d.size / elements, 1)
        } else {
            (d.size, elements)
        };
        dim_in_units(d, size, divisor)
    });
    let mut params = layout.parameters(0, dims);
    params.insert_axis(steps, axis.out_stride / elements);
    params.items = params.dims().iter().map(|dim| dim.size.divisor).product();
    params.form = form;
    params.axis_in_stride /= elements;
    params.axis_out_stride /= elements;
    params
}
