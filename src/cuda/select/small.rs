//! reverse_elementwise.cu, its small kernels for latency-bound layouts: one unit per thread.

use bytemuck::Zeroable;

use super::elementwise::{self, elements_of, work};
use super::fast_div::multiplier;
use super::layout::parameters::axis_dim;
use super::layout::traffic::Side;
use super::layout::{Candidates, Layout};
use super::{reject_if, RejectReason};
use crate::cuda::estimate::{FamilyCosts, Work};
use crate::cuda::launch::{Grid, Launch};
use crate::cuda::parameters::elementwise::*;
use crate::cuda::parameters::{FastDiv, Reverse, ReverseDim, THREADS};
use crate::cuda::tuning::elementwise::EXCHANGE_THREADS;
use crate::cuda::tuning::SECTOR;
use crate::cuda::{costs, kernels};

/// Bytes of a unit.
pub(super) const UNITS: [u32; 5] = [16, 8, 4, 2, 1];

/// The work of a thread. Out of place it gathers a unit if lengths vary along the output, and otherwise scatters it. In
/// place it swaps a pair of units.
const COPIES_OR_SWAPS: u32 = 0;
/// The thread scatters a unit, although lengths vary along the output.
const SCATTERS: u32 = 1;
/// The thread exchanges units with the threads of its thread block.
const EXCHANGES: u32 = 2;

/// A thread copies a unit or, in place, swaps a pair of them.
pub(super) fn small(
    layout: &Layout<'_>,
    unit: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    let gathers = !layout.in_place() && layout.lengths_vary_along_the_output();
    add::<COPIES_OR_SWAPS>(layout, unit, list, &costs::SMALL, || {
        // A unit is gathered when the length has arrived.
        let rounds = if gathers { 2.0 } else { 1.0 };
        Work {
            rounds,
            ..work(layout, unit, 1, !gathers)
        }
    })
}

/// Neighbouring lanes are written far apart, which costs little in a small tensor, and no load waits for a length.
pub(super) fn scatter(
    layout: &Layout<'_>,
    unit: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    reject_if(layout.in_place(), "it scatters only when it copies")?;
    reject_if(
        !layout.lengths_vary_along_the_output(),
        "lengths do not vary along the output",
    )?;
    add::<SCATTERS>(layout, unit, list, &costs::SMALL_SCATTER, || {
        work(layout, unit, 1, true)
    })
}

/// In place, a thread block has whole lanes, and reads all of their units before it writes any.
pub(super) fn exchange(
    layout: &Layout<'_>,
    unit: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    reject_if(!layout.in_place(), "it exchanges units in place only")?;
    // Two lanes have to fit a thread block if lanes are interleaved.
    let most = if layout.axis.out_stride == 1 {
        MOST_THREADS
    } else {
        MOST_THREADS / 2
    };
    reject_if(
        layout.axis.size > most,
        ("lanes have more than {} elements", most),
    )?;
    add::<EXCHANGES>(layout, unit, list, &costs::SMALL_EXCHANGE, || {
        let swapped = work(layout, unit, 1, true);
        // The elements that do not move are read as well.
        let bytes =
            layout.sectors(Side::Input) * f64::from(SECTOR) * (1.0 - layout.moving_sectors());
        Work {
            bytes: swapped.bytes + bytes,
            ..swapped
        }
    })
}

fn add<const HOW: u32>(
    layout: &Layout<'_>,
    unit: u32,
    list: &mut Candidates,
    costs: &'static FamilyCosts,
    work: impl FnOnce() -> Work,
) -> Result<(), RejectReason> {
    let exchanges = HOW == EXCHANGES;
    elements_of(layout, unit)?;
    // Splitting lanes into parts adds a dimension.
    let most = if exchanges {
        UNROLLED_DIMENSIONS - 1
    } else {
        UNROLLED_DIMENSIONS
    };
    reject_if(
        !layout.has_at_most(most),
        ("it takes at most {} dimensions", most),
    )?;
    let swaps = layout.in_place() && !exchanges;
    let steps = if swaps {
        layout.axis.size / 2
    } else {
        layout.axis.size
    };
    let mut general = elementwise::parameters(layout, unit, steps, SINGLE_UNITS);
    // The kernel does not divide by 1, but may have dimensions of one step outermost.
    general.dims[..general.rank as usize].sort_by_key(|dim| dim.size.divisor == 1);
    let (threads, lanes) = if exchanges {
        group_whole_lanes(&mut general, layout.axis.size, unit)
    } else {
        (THREADS, u32::MAX)
    };
    let dims = general.dims();
    let items = dims
        .iter()
        .map(|dim| u64::from(dim.size.divisor))
        .product::<u64>();
    reject_if(
        items > u64::from(u32::MAX - MOST_THREADS),
        "it would start about 2³² threads or more",
    )?;
    let mut small = Small {
        items: items as u32,
        flags: if layout.wide_lengths { WIDE_LENGTHS } else { 0 },
        lanes,
        axis_size: general.axis_size,
        axis_in_stride: general.axis_in_stride,
        axis_out_stride: general.axis_out_stride,
        ..Small::zeroed()
    };
    if dims.len() > FEW_DIMENSIONS as usize {
        small.flags |= MANY_DIMENSIONS;
    }
    if swaps {
        small.flags |= SWAPS;
    } else if HOW == COPIES_OR_SWAPS && layout.lengths_vary_along_the_output() {
        small.flags |= GATHERS;
    }
    let mut numbers = small.items;
    for (n, (dim, small_dim)) in (0..).zip(dims.iter().zip(&mut small.dims)) {
        let &ReverseDim {
            size: FastDiv { divisor, .. },
            in_stride,
            out_stride,
            length_stride,
            axis,
        } = dim;
        let multiplier = if numbers == divisor {
            Some(0)
        } else {
            multiplier(divisor, numbers)
        };
        let multiplier = multiplier
            .ok_or("there are too many units to compute positions with one multiplication for each dimension")?;
        *small_dim = SmallDim {
            multiplier,
            divisor,
            in_stride,
            out_stride,
            length_stride,
        };
        small.flags += axis * n * AXIS;
        numbers /= divisor;
    }
    let grid = Grid {
        blocks: small.items.div_ceil(threads),
        threads,
        shared: 0,
    };
    let entry = layout.entry(&kernels::SMALL, unit)?;
    let launch = Launch::new(entry, grid, unit, unit);
    list.add(layout, launch, work(), costs, unit, || small)
}

/// Orders the dimensions for a thread block that has whole lanes, in place: lanes whose elements are neighbours in
/// memory, the axis, then all others. If there are too many such lanes, they are cut into parts, and dimension 2 has
/// the parts. Returns the threads of a thread block, and how many lanes are cut.
fn group_whole_lanes(r: &mut Reverse, steps: u32, unit: u32) -> (u32, u32) {
    let axis = r.dims().iter().position(|dim| dim.axis == 1).unwrap_or(0);
    r.dims.copy_within(axis + 1.., axis);
    r.rank -= 1;
    let (mut group, mut lanes) = (1, u32::MAX);
    if let Some(&inner) = r.dims().first().filter(|_| axis > 0) {
        // Whole sectors are exchanged together, and so are whole lanes, if that takes more threads.
        let threads = EXCHANGE_THREADS[usize::from(r.rank > 1)];
        let together = (threads / steps)
            .max(SECTOR / unit)
            .min(MOST_THREADS / steps);
        let parts = inner.size.divisor.div_ceil(together);
        group = inner.size.divisor.div_ceil(parts);
        if parts > 1 {
            lanes = inner.size.divisor;
            r.dims[0].size = FastDiv::new(group);
            let [in_stride, out_stride, length_stride] =
                [inner.in_stride, inner.out_stride, inner.length_stride]
                    .map(|stride| stride * group);
            let size = FastDiv::new(lanes.div_ceil(group));
            r.insert(
                1,
                ReverseDim {
                    size,
                    in_stride,
                    out_stride,
                    length_stride,
                    axis: 0,
                },
            );
        }
    }
    r.insert(axis.min(1), axis_dim(steps));
    let threads = group * steps;
    (threads * (THREADS / threads).max(1), lanes)
}
