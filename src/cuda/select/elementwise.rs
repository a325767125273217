//! reverse_elementwise.cu: units of one element or up to 16 bytes, at any strides.
//!
//! ```text
//! lane:  | u0 | u1 | u2 | ... | u(L-1) | stays ... |     one thread swaps u0 and u(L-1), another u1 and u(L-2), ...
//! ```
//!
//! Each unit goes straight from global to global memory, so nothing limits the layout. In exchange, neighbours in a
//! sector may be accessed at different times: `layout/traffic.rs` counts how often a cache has lost the sector. Units of
//! one element run any layout with any pointers, so that there is always a candidate.

use super::fit::{Kernel, Needs};
use super::layout::parameters::dim_in_units;
use super::layout::traffic::Side;
use super::layout::{is_contiguous, Layout, NOT_DIVIDED, NO_BLOCK};
use super::{blocks, reject_if, RejectReason};
use crate::cuda::estimate::Work;
use crate::cuda::launch::Grid;
use crate::cuda::parameters::elementwise::*;
use crate::cuda::parameters::{Reverse, THREADS};
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// Bytes of a unit.
pub(super) const UNITS: [u32; 4] = [8, 4, 2, 1];

/// Units of `unit` bytes, several per thread.
pub(super) struct Units {
    unit: u32,
    /// Units or, in place, pairs of units.
    items: u64,
    items_per_thread: u32,
}

impl Kernel for Units {
    type Parameters = Reverse;

    fn fit(layout: &Layout<'_>, unit: u32) -> Result<Self, RejectReason> {
        let elements = u64::from(elements_of(layout, unit)?);
        Ok(Self {
            unit,
            items: layout.lane_count() / elements * u64::from(layout.steps()),
            items_per_thread: if layout.in_place() {
                PAIRS_PER_THREAD
            } else {
                ITEMS_PER_THREAD
            },
        })
    }

    fn needs(&self, _: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::ELEMENTWISE,
            costs: &costs::ELEMENTWISE,
            unit: self.unit,
            alignment: self.unit,
            access: self.unit,
        }
    }

    fn grid(&self, _: &Layout<'_>) -> Result<Grid, RejectReason> {
        Ok(Grid {
            blocks: blocks(self.items, self.items_per_thread),
            threads: THREADS,
            shared: 0,
        })
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        work(layout, self.unit, self.items_per_thread, false)
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> Reverse {
        parameters(layout, self.unit, layout.steps(), SINGLE_UNITS)
    }
}

/// A vector of adjacent elements of the output per thread; not in place.
pub(super) struct Vectors {
    /// Bytes of a vector.
    bytes: u32,
    /// Whether there are wider ones for elements of this width.
    is_half: bool,
}

impl Vectors {
    fn elements(&self, layout: &Layout<'_>) -> u32 {
        self.bytes / layout.width
    }
}

impl Kernel for Vectors {
    type Parameters = Reverse;

    fn fit(layout: &Layout<'_>, bytes: u32) -> Result<Self, RejectReason> {
        reject_if(
            !layout.gathers(),
            (
                "it gathers only if there are at most {} dimensions, and the output is packed",
                FEW_DIMENSIONS,
            ),
        )?;
        let whole = VEC16.min(8 * layout.width);
        let is_half = bytes == whole / 2 && layout.width < 8;
        reject_if(
            bytes != whole && !is_half,
            "elements of that width are gathered into other vectors",
        )?;
        Ok(Self { bytes, is_half })
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::ELEMENTWISE,
            costs: &costs::VECTORS,
            unit: layout.width,
            alignment: self.bytes,
            access: self.bytes,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        Ok(Grid {
            blocks: blocks(layout.elements(), self.elements(layout)),
            threads: THREADS,
            shared: 0,
        })
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        let elements = self.elements(layout);
        let accesses = layout.accesses(Side::Input, layout.width, elements, true);
        let once = layout.work();
        Work {
            bytes: once.bytes + layout.moved_again(Side::Input, accesses, false),
            misses: once.misses
                + layout.missed_again(Side::Input, accesses, true)
                + layout.lengths_missed(layout.width, elements),
            ..once
        }
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> Reverse {
        let mut form = if self.is_half {
            GATHERED_HALF_VECTORS
        } else {
            GATHERED_VECTORS
        };
        if are_in_rows(layout, self.elements(layout)) {
            form |= IN_ROWS;
        }
        parameters(layout, layout.width, layout.axis.size, form)
    }
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
    let again = if layout.in_place() {
        pairs_again(layout, unit)
    } else {
        units_again(layout, unit, scatters)
    };
    let missed = again.missed + layout.lengths_missed(unit, 1);
    Work {
        bytes: once.bytes + again.bytes * layout.moving(),
        misses: once.misses + missed * layout.moving(),
        rounds: if layout.in_place() {
            1.0
        } else {
            f64::from(per_thread).sqrt()
        },
    }
}

/// What is accessed again, because a cache has lost the sector: bytes of memory, and misses of the L1 cache.
struct Again {
    bytes: f64,
    missed: f64,
}

/// Counts what swapped pairs access again. One unit of a pair is at its own position, the other at a position that
/// depends on the length.
fn pairs_again(layout: &Layout<'_>, unit: u32) -> Again {
    let own = layout.accesses(Side::Input, unit, 1, false);
    let other = layout.accesses(Side::Input, unit, 1, true);
    let read = layout.missed_again(Side::Input, own, false)
        + layout.missed_again(Side::Input, other, true);
    Again {
        bytes: layout.moved_again(Side::Input, other, false)
            + layout.moved_again(Side::Input, other, true),
        missed: read + layout.again(Side::Input, other),
    }
}

/// Counts what gathered or scattered units access again. The L1 cache keeps what is read for a while, and not what is
/// written.
fn units_again(layout: &Layout<'_>, unit: u32, scatters: bool) -> Again {
    let read = layout.accesses(Side::Input, unit, 1, !scatters);
    let written = layout.accesses(Side::Output, unit, 1, scatters);
    let bytes = if scatters {
        layout.moved_again(Side::Output, written, true)
    } else {
        layout.moved_again(Side::Input, read, false)
    };
    Again {
        bytes,
        missed: layout.missed_again(Side::Input, read, !scatters)
            + layout.again(Side::Output, written),
    }
}

/// The elements of a unit of `unit` bytes, if the layout divides into such units.
pub(super) fn elements_of(layout: &Layout<'_>, unit: u32) -> Result<u32, RejectReason> {
    let elements = unit / layout.width;
    let fits = elements == 1
        || (elements > 1 && layout.rows_divide(layout.block().ok_or(NO_BLOCK)?, unit, unit));
    reject_if(!fits, NOT_DIVIDED)?;
    Ok(elements)
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
