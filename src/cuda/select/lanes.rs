//! reverse_lanes.cu: contiguous lanes, staged whole in shared memory or cut into tiles.

use super::layout::parameters::dim;
use super::layout::traffic::LINE;
use super::layout::{Candidates, Layout};
use super::segments::{block_of_groups, less_rounding};
use super::{grid, reject_if, vectors_of_run, RejectReason};
use crate::cuda::estimate::{Work, WARP};
use crate::cuda::launch::{Grid, Launch};
use crate::cuda::parameters::lanes::{Lanes, TILES_PER_BLOCK, VECTORS_PER_THREAD};
use crate::cuda::parameters::{FastDiv, THREADS};
pub(super) use crate::cuda::tuning::lanes::LANE_VECTORS;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// Whether all lanes begin at multiples of 16 bytes, if the tensor does.
fn are_aligned(layout: &Layout<'_>) -> bool {
    let whole = |stride: u32| layout.divides(stride, VEC16);
    layout
        .dimensions
        .iter()
        .all(|d| whole(d.in_stride) && whole(d.out_stride))
}

/// Whether lanes are contiguous and, if they must be, aligned.
fn check<const ALIGNED: bool>(layout: &Layout<'_>) -> Result<(), RejectReason> {
    layout.contiguous_lanes()?;
    reject_if(
        ALIGNED && !are_aligned(layout),
        ("lanes do not all begin at multiples of {} bytes", VEC16),
    )
}

/// Vectors of a lane in memory and in shared memory, and the threads of its group. In shared memory there is one before
/// the lane, and two after it, which unaligned reads may reach. An odd number spreads lanes over all banks.
fn staged<const ALIGNED: bool>(layout: &Layout<'_>, per_thread: u32) -> (u32, u32, u32) {
    let vectors = vectors_of_run(layout.axis.size, layout.width, ALIGNED);
    // In place, threads with few vectors are as many as the lane needs (TUNING.md: LANE_VECTORS).
    let rounds_less = !layout.in_place() || per_thread == LANE_VECTORS[2];
    let vectors_of_group = if rounds_less {
        less_rounding(vectors)
    } else {
        vectors
    };
    let group = vectors_of_group
        .div_ceil(per_thread)
        .max(1)
        .next_power_of_two()
        .min(THREADS);
    (vectors, (vectors + 3) | 1, group)
}

/// Lanes staged whole, several per thread block if they are short, `per_thread` vectors a thread. With `ALIGNED`, all
/// begin at multiples of 16 bytes.
pub(super) fn whole<const ALIGNED: bool>(
    layout: &Layout<'_>,
    per_thread: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    check::<ALIGNED>(layout)?;
    let (vectors, per_lane, group) = staged::<ALIGNED>(layout, per_thread);
    // Warps whose threads write far apart write halves of sectors, which is slow.
    let is_apart = group == 1 && layout.bytes(layout.axis.size) > VEC16.into();
    reject_if(is_apart, "a single thread would write several vectors")?;
    let (threads, together) = block_of_groups(group);
    let shared = u64::from(together) * u64::from(per_lane) * u64::from(VEC16);
    let is_long = shared > u64::from(layout.target.shared_memory);
    reject_if(is_long, "a lane is too long to be staged whole")?;
    let blocks = layout.lane_count().div_ceil(together.into()) as u32;
    let grid = Grid {
        blocks,
        threads,
        shared: shared as u32,
    };
    let (once, lanes) = (layout.work(), layout.lane_count() as f64);
    let rounds = f64::from(vectors.div_ceil(group));
    // A step of a warp accesses the lines of its lanes one after another.
    let lanes_of_warp = WARP / f64::from(group).min(WARP);
    let pitch = layout
        .dimensions
        .last()
        .map_or(0, |d| layout.bytes(d.out_stride));
    let written = (pitch as f64 * lanes_of_warp + f64::from(LINE - VEC16)) / f64::from(LINE);
    // Vectors that have an end of a lane, or the length in place, are stored in pieces, which no cache joins.
    let is_whole = layout.divides(layout.axis.size, VEC16) && are_aligned(layout);
    let warps = lanes / lanes_of_warp;
    let ends = warps
        * if is_whole {
            f64::from(u8::from(layout.in_place()))
        } else {
            2.0
        };
    let forms = f64::from(
        VEC16 / 4
            + if layout.width < 4 {
                VEC16 / layout.width
            } else {
                0
            },
    );
    let work = Work {
        misses: once.misses
            + ends * (layout.stores_of_end() * lanes_of_warp).min(forms * written.max(1.0)),
        rounds: 2.0 + rounds,
        ..once
    };
    let alignment = if ALIGNED { VEC16 } else { layout.width };
    let launch = Launch::new(
        layout.entry(&kernels::LANES, layout.width)?,
        grid,
        alignment,
        VEC16,
    );
    list.add(layout, launch, work, &costs::LANES, layout.width, || {
        Lanes {
            r: layout.parameters(layout.lane_count(), layout.dimensions.iter().map(dim)),
            tiles_per_lane: FastDiv::new(1),
            vectors_per_lane: per_lane,
            group_size_log2: group.trailing_zeros(),
        }
    })
}

/// Thread blocks per lane, and the tiles of each.
fn tiles<const ALIGNED: bool>(layout: &Layout<'_>) -> (u64, f64) {
    if layout.in_place() {
        // A tile has two vectors per thread. Half of them are in front, less one: the back may begin inside a vector
        // and then touches one more.
        let front = u64::from(THREADS - 1) * u64::from(VEC16);
        let half = layout.bytes(layout.axis.size / 2);
        let tiles = (half + u64::from(VEC16)).div_ceil(front);
        return (
            tiles.div_ceil(TILES_PER_BLOCK.into()),
            tiles.min(TILES_PER_BLOCK.into()) as f64,
        );
    }
    let vectors = vectors_of_run(layout.axis.size, layout.width, ALIGNED);
    (vectors.div_ceil(THREADS * VECTORS_PER_THREAD).into(), 1.0)
}

/// Long lanes in tiles. A thread block copies one tile, or reverses several in place. With `ALIGNED`, all lanes begin
/// at multiples of 16 bytes.
pub(super) fn long<const ALIGNED: bool>(
    layout: &Layout<'_>,
    _: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    check::<ALIGNED>(layout)?;
    reject_if(
        ALIGNED && layout.in_place(),
        "its form for aligned lanes does not run in place",
    )?;
    let (per_lane, tiles_of_block) = tiles::<ALIGNED>(layout);
    let grid = Grid {
        blocks: grid(layout.lane_count() * per_lane)?,
        threads: THREADS,
        shared: 0,
    };
    let work = Work {
        rounds: (tiles_of_block * layout.moving()).max(1.0),
        ..layout.work()
    };
    let alignment = if ALIGNED { VEC16 } else { layout.width };
    let launch = Launch::new(
        layout.entry(&kernels::LONG_LANES, layout.width)?,
        grid,
        alignment,
        VEC16,
    );
    list.add(
        layout,
        launch,
        work,
        &costs::LONG_LANES,
        layout.width,
        || Lanes {
            r: layout.parameters(grid.blocks.into(), layout.dimensions.iter().map(dim)),
            tiles_per_lane: FastDiv::new(per_lane as u32),
            vectors_per_lane: 0,
            group_size_log2: 0,
        },
    )
}
