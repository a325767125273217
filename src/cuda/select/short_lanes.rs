//! reverse_short_lanes.cu: contiguous lanes of a few bytes, in the registers of one thread.
//!
//! ```text
//! | a0 a1 a2 a3 | b0 b1 b2 b3 | ...      a thread has lane a, the next one lane b
//! ```
//!
//! A lane is loaded together with its length and stored whole. In place, a lane of a sector waits for its length, because
//! the memory need not move it if no element does.

use super::fit::{Kernel, Needs};
use super::layout::parameters::dim_in_units;
use super::layout::{Layout, NOT_IN_PLACE};
use super::{blocks, reject_if, RejectReason};
use crate::cuda::estimate::Work;
use crate::cuda::launch::Grid;
use crate::cuda::parameters::short_lanes::{self as parameters, FEW_DIMENSIONS, MOST_LANES};
use crate::cuda::parameters::THREADS;
use crate::cuda::tuning::{MAX_SHORT_LANE, SECTOR, VEC16};
use crate::cuda::{costs, kernels};

/// Lanes that are loaded and stored whole.
pub(super) struct ShortLanes {
    /// Bytes of a lane.
    bytes: u32,
    /// Lanes of a thread.
    together: u32,
}

impl Kernel for ShortLanes {
    type Parameters = parameters::ShortLanes;

    fn fit(layout: &Layout<'_>, _: u32) -> Result<Self, RejectReason> {
        reject_if(layout.in_place(), NOT_IN_PLACE)?;
        layout.contiguous_lanes()?;
        let bytes = layout.bytes(layout.axis.size);
        reject_if(
            !bytes.is_power_of_two() || bytes < 2 || bytes > MAX_SHORT_LANE.into(),
            ("lanes have not 2, 4, 8, 16 or {} bytes", MAX_SHORT_LANE),
        )?;
        reject_if(
            layout.dimensions.len() > FEW_DIMENSIONS as usize,
            ("there are more than {} dimensions of lanes", FEW_DIMENSIONS),
        )?;
        let size = layout.axis.size;
        let is_whole = |stride: u32| stride.is_multiple_of(size);
        reject_if(
            !layout
                .dimensions
                .iter()
                .all(|d| is_whole(d.in_stride) && is_whole(d.out_stride)),
            "lanes do not begin at multiples of their bytes",
        )?;
        let bytes = bytes as u32;
        Ok(Self {
            bytes,
            together: (VEC16 / bytes).clamp(1, MOST_LANES),
        })
    }

    fn needs(&self, _: &Layout<'_>) -> Needs {
        let access = self.bytes.min(VEC16);
        Needs {
            family: &kernels::SHORT_LANES,
            costs: &costs::SHORT_LANES,
            unit: self.bytes,
            alignment: access,
            access,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        Ok(Grid {
            blocks: blocks(layout.lane_count(), self.together),
            threads: THREADS,
            shared: 0,
        })
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        let mut work = layout.work();
        if layout.is_copied_in_place && self.bytes == SECTOR {
            // The length comes first. Lanes with a length of 0 or 1 are neither loaded nor stored.
            let staying = layout.moved_once() * 2.0 / f64::from(layout.axis.size + 1);
            work.bytes -= staying * f64::from(SECTOR);
            work.misses -= staying;
            work.rounds = 2.0;
        }
        work
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> parameters::ShortLanes {
        let lanes = layout
            .dimensions
            .iter()
            .map(|d| dim_in_units(d, d.size, layout.axis.size));
        parameters::ShortLanes {
            r: layout.parameters(layout.lane_count(), lanes),
            width: layout.width,
            reserved: 0,
        }
    }
}
