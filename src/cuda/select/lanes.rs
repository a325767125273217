//! reverse_lanes.cu: contiguous lanes, staged whole in shared memory or cut into tiles.
//!
//! ```text
//! [`WholeLanes`]   | lane 0 | lane 1 | ...     a thread group stages a lane, and a thread block has several groups
//! [`LongLanes`]    | tile 0 | tile 1 | ...     of one lane, a thread block each, or in place several to a thread block
//! ```
//!
//! Threads write vectors of 16 bytes at aligned addresses. With `ALIGNED`, all lanes begin at such addresses, so that a
//! lane has one vector less, and pointers must be aligned as well. The others take any lanes.

use super::fit::{Kernel, Needs};
use super::layout::parameters::dim;
use super::layout::traffic::LINE;
use super::layout::Layout;
use super::segments::{block_of_groups, less_rounding};
use super::{grid, reject_if, vectors_of_run, RejectReason};
use crate::cuda::estimate::{Work, WARP};
use crate::cuda::launch::Grid;
use crate::cuda::parameters::lanes::{Lanes, TILES_PER_BLOCK, VECTORS_PER_THREAD};
use crate::cuda::parameters::{FastDiv, THREADS};
pub(super) use crate::cuda::tuning::lanes::LANE_VECTORS;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// Whether all lanes begin at multiples of 16 bytes, if the tensor does.
fn are_aligned(layout: &Layout<'_>) -> bool {
    layout
        .dimensions
        .iter()
        .all(|d| layout.divides(d.in_stride, VEC16) && layout.divides(d.out_stride, VEC16))
}

/// Whether lanes are contiguous and, if they must be, aligned.
fn check<const ALIGNED: bool>(layout: &Layout<'_>) -> Result<(), RejectReason> {
    layout.contiguous_lanes()?;
    reject_if(
        ALIGNED && !are_aligned(layout),
        ("lanes do not all begin at multiples of {} bytes", VEC16),
    )
}

/// The alignment of pointers.
fn alignment<const ALIGNED: bool>(layout: &Layout<'_>) -> u32 {
    if ALIGNED {
        VEC16
    } else {
        layout.width
    }
}

/// Lanes staged whole, several per thread block if they are short, with a number of vectors a thread.
pub(super) struct WholeLanes<const ALIGNED: bool> {
    /// Vectors of a lane in memory.
    vectors: u32,
    /// Vectors of a lane in shared memory. There is one before the lane, and two after it, which unaligned reads may
    /// reach. An odd number spreads lanes over all banks.
    staged: u32,
    /// Threads of a lane.
    group: u32,
}

impl<const ALIGNED: bool> WholeLanes<ALIGNED> {
    fn shared(&self) -> u64 {
        u64::from(block_of_groups(self.group).groups) * u64::from(self.staged) * u64::from(VEC16)
    }

    /// Misses of vectors that have an end of a lane, or the length in place: they are stored in pieces, which no cache
    /// joins.
    fn misses_of_ends(&self, layout: &Layout<'_>) -> f64 {
        // A step of a warp accesses the lines of its lanes one after another.
        let lanes_of_warp = WARP / f64::from(self.group).min(WARP);
        let pitch = layout
            .dimensions
            .last()
            .map_or(0, |d| layout.bytes(d.out_stride));
        let written = (pitch as f64 * lanes_of_warp + f64::from(LINE - VEC16)) / f64::from(LINE);
        let is_whole = layout.divides(layout.axis.size, VEC16) && are_aligned(layout);
        let ends_of_lane = match (is_whole, layout.in_place()) {
            (true, true) => 1.0,
            (true, false) => 0.0,
            (false, _) => 2.0,
        };
        let warps = layout.lane_count() as f64 / lanes_of_warp;
        let narrow = if layout.width < 4 {
            VEC16 / layout.width
        } else {
            0
        };
        let forms = f64::from(VEC16 / 4 + narrow);
        let stores = (layout.stores_of_end() * lanes_of_warp).min(forms * written.max(1.0));
        warps * ends_of_lane * stores
    }
}

impl<const ALIGNED: bool> Kernel for WholeLanes<ALIGNED> {
    type Parameters = Lanes;

    fn fit(layout: &Layout<'_>, per_thread: u32) -> Result<Self, RejectReason> {
        check::<ALIGNED>(layout)?;
        let vectors = vectors_of_run(layout.axis.size, layout.width, ALIGNED);
        // In place, threads with few vectors are as many as the lane needs (TUNING.md: LANE_VECTORS).
        let takes_fewer_threads = !layout.in_place() || per_thread == LANE_VECTORS[2];
        let vectors_of_group = if takes_fewer_threads {
            less_rounding(vectors)
        } else {
            vectors
        };
        let threads = vectors_of_group.div_ceil(per_thread).max(1);
        let lanes = Self {
            vectors,
            staged: (vectors + 3) | 1,
            group: threads.next_power_of_two().min(THREADS),
        };
        // Warps whose threads write far apart write halves of sectors, which is slow.
        let is_apart = lanes.group == 1 && layout.bytes(layout.axis.size) > VEC16.into();
        reject_if(is_apart, "a single thread would write several vectors")?;
        reject_if(
            lanes.shared() > u64::from(layout.target.shared_memory),
            "a lane is too long to be staged whole",
        )?;
        Ok(lanes)
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::LANES,
            costs: &costs::LANES,
            unit: layout.width,
            alignment: alignment::<ALIGNED>(layout),
            access: VEC16,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        let block = block_of_groups(self.group);
        Ok(Grid {
            blocks: layout.lane_count().div_ceil(block.groups.into()) as u32,
            threads: block.threads,
            shared: self.shared() as u32,
        })
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        let once = layout.work();
        Work {
            misses: once.misses + self.misses_of_ends(layout),
            rounds: 2.0 + f64::from(self.vectors.div_ceil(self.group)),
            ..once
        }
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> Lanes {
        Lanes {
            r: layout.parameters(layout.lane_count(), layout.dimensions.iter().map(dim)),
            tiles_per_lane: FastDiv::new(1),
            vectors_per_lane: self.staged,
            group_size_log2: self.group.trailing_zeros(),
        }
    }
}

/// Long lanes in tiles. A thread block copies one tile, or reverses several in place.
pub(super) struct LongLanes<const ALIGNED: bool> {
    /// Thread blocks per lane, and the tiles of each.
    blocks_per_lane: u64,
    tiles_per_block: f64,
}

impl<const ALIGNED: bool> LongLanes<ALIGNED> {
    fn of_copies(layout: &Layout<'_>) -> Self {
        let vectors = vectors_of_run(layout.axis.size, layout.width, ALIGNED);
        Self {
            blocks_per_lane: vectors.div_ceil(THREADS * VECTORS_PER_THREAD).into(),
            tiles_per_block: 1.0,
        }
    }

    fn in_place(layout: &Layout<'_>) -> Self {
        // A tile has two vectors per thread. Half of them are in front, less one: the back may begin inside a vector
        // and then touches one more.
        let front = u64::from(THREADS - 1) * u64::from(VEC16);
        let half = layout.bytes(layout.axis.size / 2);
        let tiles = (half + u64::from(VEC16)).div_ceil(front);
        let most = u64::from(TILES_PER_BLOCK);
        Self {
            blocks_per_lane: tiles.div_ceil(most),
            tiles_per_block: tiles.min(most) as f64,
        }
    }
}

impl<const ALIGNED: bool> Kernel for LongLanes<ALIGNED> {
    type Parameters = Lanes;

    fn fit(layout: &Layout<'_>, _: u32) -> Result<Self, RejectReason> {
        check::<ALIGNED>(layout)?;
        reject_if(
            ALIGNED && layout.in_place(),
            "its form for aligned lanes does not run in place",
        )?;
        if layout.in_place() {
            Ok(Self::in_place(layout))
        } else {
            Ok(Self::of_copies(layout))
        }
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::LONG_LANES,
            costs: &costs::LONG_LANES,
            unit: layout.width,
            alignment: alignment::<ALIGNED>(layout),
            access: VEC16,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        Ok(Grid {
            blocks: grid(layout.lane_count() * self.blocks_per_lane)?,
            threads: THREADS,
            shared: 0,
        })
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        Work {
            rounds: (self.tiles_per_block * layout.moving()).max(1.0),
            ..layout.work()
        }
    }

    fn parameters(&self, layout: &Layout<'_>, grid: Grid) -> Lanes {
        Lanes {
            r: layout.parameters(grid.blocks.into(), layout.dimensions.iter().map(dim)),
            tiles_per_lane: FastDiv::new(self.blocks_per_lane as u32),
            vectors_per_lane: 0,
            group_size_log2: 0,
        }
    }
}
