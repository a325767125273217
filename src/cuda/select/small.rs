//! reverse_elementwise.cu, its small kernels for latency-bound layouts: one unit per thread, without loops.
//!
//! | `HOW` | a thread |
//! | --- | --- |
//! | [`COPIES_OR_SWAPS`] | out of place gathers a unit if lengths vary along the output, else scatters it; in place swaps a pair |
//! | [`SCATTERS`] | scatters a unit, although lengths vary along the output |
//! | [`EXCHANGES`] | exchanges units with the threads of its thread block, which has whole lanes |
//!
//! A tensor of a few kilobytes takes as long as a launch and the loads that wait for each other. So these kernels
//! compute a position with one multiplication for each dimension, and a scatter loads its element and its length at the
//! same time.

use bytemuck::Zeroable;

use super::elementwise::{self, elements_of, work};
use super::fast_div::multiplier;
use super::fit::{Kernel, Needs};
use super::layout::parameters::axis_dim;
use super::layout::traffic::Side;
use super::layout::Layout;
use super::{reject_if, RejectReason};
use crate::cuda::estimate::Work;
use crate::cuda::launch::Grid;
use crate::cuda::parameters::elementwise::*;
use crate::cuda::parameters::{FastDiv, Reverse, ReverseDim, THREADS};
use crate::cuda::tuning::elementwise::EXCHANGE_THREADS;
use crate::cuda::tuning::SECTOR;
use crate::cuda::{costs, kernels};

/// Bytes of a unit.
pub(super) const UNITS: [u32; 5] = [16, 8, 4, 2, 1];

pub(super) const COPIES_OR_SWAPS: u32 = 0;
pub(super) const SCATTERS: u32 = 1;
pub(super) const EXCHANGES: u32 = 2;

/// One unit per thread.
pub(super) struct SmallUnits<const HOW: u32> {
    unit: u32,
    /// Threads of a thread block.
    threads: u32,
    parameters: Small,
}

/// Checks what `HOW` requires of a layout.
fn check<const HOW: u32>(layout: &Layout<'_>) -> Result<(), RejectReason> {
    match HOW {
        SCATTERS => {
            reject_if(layout.in_place(), "it scatters only when it copies")?;
            reject_if(
                !layout.lengths_vary_along_the_output(),
                "lengths do not vary along the output",
            )
        }
        EXCHANGES => {
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
            )
        }
        _ => Ok(()),
    }
}

/// Whether a thread gathers a unit, at a position that depends on the length.
fn gathers<const HOW: u32>(layout: &Layout<'_>) -> bool {
    HOW == COPIES_OR_SWAPS && !layout.in_place() && layout.lengths_vary_along_the_output()
}

impl<const HOW: u32> Kernel for SmallUnits<HOW> {
    type Parameters = Small;

    fn fit(layout: &Layout<'_>, unit: u32) -> Result<Self, RejectReason> {
        check::<HOW>(layout)?;
        elements_of(layout, unit)?;
        // Splitting lanes into parts adds a dimension.
        let most = if HOW == EXCHANGES {
            UNROLLED_DIMENSIONS - 1
        } else {
            UNROLLED_DIMENSIONS
        };
        reject_if(
            !layout.has_at_most(most),
            ("it takes at most {} dimensions", most),
        )?;
        let swaps = layout.in_place() && HOW != EXCHANGES;
        let size = layout.axis.size;
        let steps = if swaps { size / 2 } else { size };
        let mut general = elementwise::parameters(layout, unit, steps, SINGLE_UNITS);
        // The kernel does not divide by 1, but may have dimensions of one step outermost.
        general.dims[..general.rank as usize].sort_by_key(|dim| dim.size.divisor == 1);
        let (threads, lanes) = if HOW == EXCHANGES {
            group_whole_lanes(&mut general, size, unit)
        } else {
            (THREADS, u32::MAX)
        };
        let mut flags = if layout.wide_lengths { WIDE_LENGTHS } else { 0 };
        if swaps {
            flags |= SWAPS;
        }
        if gathers::<HOW>(layout) {
            flags |= GATHERS;
        }
        Ok(Self {
            unit,
            threads,
            parameters: parameters(&general, lanes, flags)?,
        })
    }

    fn needs(&self, _: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::SMALL,
            costs: match HOW {
                SCATTERS => &costs::SMALL_SCATTER,
                EXCHANGES => &costs::SMALL_EXCHANGE,
                _ => &costs::SMALL,
            },
            unit: self.unit,
            alignment: self.unit,
            access: self.unit,
        }
    }

    fn grid(&self, _: &Layout<'_>) -> Result<Grid, RejectReason> {
        Ok(Grid {
            blocks: self.parameters.items.div_ceil(self.threads),
            threads: self.threads,
            shared: 0,
        })
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        let gathers = gathers::<HOW>(layout);
        let mut work = work(layout, self.unit, 1, !gathers);
        match HOW {
            // Neighbouring lanes are written far apart, which costs little in a small tensor.
            SCATTERS => {}
            EXCHANGES => {
                // The elements that do not move are read as well.
                let staying = 1.0 - layout.moving_sectors();
                work.bytes += layout.sectors(Side::Input) * f64::from(SECTOR) * staying;
            }
            // A unit is gathered when the length has arrived.
            _ => work.rounds = if gathers { 2.0 } else { 1.0 },
        }
        work
    }

    fn parameters(&self, _: &Layout<'_>, _: Grid) -> Small {
        self.parameters
    }
}

/// The parameters of a kernel whose positions take one multiplication for each dimension. `lanes`: how many lanes are
/// cut into parts.
fn parameters(general: &Reverse, lanes: u32, flags: u32) -> Result<Small, RejectReason> {
    let dims = general.dims();
    let items: u64 = dims.iter().map(|dim| u64::from(dim.size.divisor)).product();
    reject_if(
        items > u64::from(u32::MAX - MOST_THREADS),
        "it would start about 2³² threads or more",
    )?;
    let mut small = Small {
        items: items as u32,
        flags,
        lanes,
        axis_size: general.axis_size,
        axis_in_stride: general.axis_in_stride,
        axis_out_stride: general.axis_out_stride,
        ..Small::zeroed()
    };
    if dims.len() > FEW_DIMENSIONS as usize {
        small.flags |= MANY_DIMENSIONS;
    }
    // A thread divides its number by each size in turn, so that the numbers get smaller.
    let mut numbers = small.items;
    for (n, dim) in dims.iter().enumerate() {
        let divisor = dim.size.divisor;
        let is_outermost = numbers == divisor;
        let multiplier = if is_outermost {
            Some(0)
        } else {
            multiplier(divisor, numbers)
        };
        small.dims[n] = SmallDim {
            multiplier: multiplier.ok_or(
                "there are too many units to compute positions with one multiplication for each dimension",
            )?,
            divisor,
            in_stride: dim.in_stride,
            out_stride: dim.out_stride,
            length_stride: dim.length_stride,
        };
        small.flags += dim.axis * n as u32 * AXIS;
        numbers /= divisor;
    }
    Ok(small)
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
