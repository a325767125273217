//! reverse_packed_lanes.cu: short contiguous lanes that are adjacent in memory.
//!
//! ```text
//! | lane 0 | lane 1 | lane 2 | ...      a thread block stages as many whole lanes as fit
//! ```
//!
//! `segments.rs` cuts them. Out of place the thread block writes vectors across all of its lanes, so that lanes may be
//! shorter than a vector.

use super::fit::{Kernel, Needs};
use super::layout::Layout;
use super::segments::Staged;
use super::{reject_if, RejectReason};
use crate::cuda::estimate::Work;
use crate::cuda::launch::Grid;
use crate::cuda::parameters::segments::Segments;
use crate::cuda::tuning::segments::MAX_WORDS_IN_PLACE;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// Threads of a warp, which is the largest thread group of a lane in place.
const WARP_THREADS: u32 = 32;

/// Whole lanes, staged.
pub(super) struct PackedLanes {
    staged: Staged,
    /// Threads of a lane.
    group: u32,
}

/// Pairs of elements of a lane, with the middle one of an odd number.
fn swaps(layout: &Layout<'_>) -> u32 {
    layout.axis.size.div_ceil(2)
}

impl Kernel for PackedLanes {
    type Parameters = Segments;

    fn fit(layout: &Layout<'_>, _: u32) -> Result<Self, RejectReason> {
        layout.contiguous_lanes()?;
        // In place, this kernel moves single elements, which pays for short lanes alone if they are words.
        let is_long =
            layout.in_place() && layout.width == 4 && layout.axis.size > MAX_WORDS_IN_PLACE;
        reject_if(
            is_long,
            (
                "in place, lanes have more than {} elements of 4 bytes",
                MAX_WORDS_IN_PLACE,
            ),
        )?;
        let staged = Staged::new(layout)?;
        // In place, a thread for every other element: on average, half of the elements are below a length.
        let group = if layout.in_place() {
            swaps(layout).next_power_of_two().min(WARP_THREADS)
        } else {
            staged.group()
        };
        Ok(Self { staged, group })
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::PACKED_LANES,
            costs: &costs::PACKED_LANES,
            unit: layout.width,
            alignment: layout.width,
            access: VEC16,
        }
    }

    fn grid(&self, _: &Layout<'_>) -> Result<Grid, RejectReason> {
        Ok(self.staged.grid)
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        let swap_rounds = self
            .staged
            .rounds_of_items(swaps(layout).into(), self.group);
        Work {
            rounds: swap_rounds / 4.0 + self.staged.rounds_of_vectors(),
            ..layout.work()
        }
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> Segments {
        self.staged.parameters(layout, self.group, 0)
    }
}
