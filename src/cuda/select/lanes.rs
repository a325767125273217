//! reverse_lanes.cu: contiguous lanes, staged whole in shared memory or cut into tiles.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::{dim, Layout, Reverse};
use super::segments::{block_of_groups, less_rounding};
use super::{grid, reject_if, vectors_of_run, RejectReason};
use crate::cuda::tuning::lanes::*;
use crate::cuda::tuning::{THREADS, VEC16};
use crate::cuda::{kernels, Launch};

/// `Lanes` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Lanes {
    r: Reverse,
    tiles_per_lane: FastDiv,
    vectors_per_lane: u32,
    group_size_log2: u32,
}
const _: () = assert!(size_of::<Lanes>() == 344 && std::mem::offset_of!(Lanes, r) == 0);

/// Whether lanes are contiguous, long enough and, if they must be, aligned.
fn check<const ALIGNED: bool>(layout: &Layout<'_>) -> Result<(), RejectReason> {
    layout.lanes_exceeding_gathered(MIDDLE_LANE_BYTES)?;
    let whole = |stride: u32| layout.divides(stride, VEC16);
    let are_aligned = layout.dimensions.iter().all(|d| whole(d.in_stride) && whole(d.out_stride));
    reject_if(ALIGNED && !are_aligned, ("lanes do not all begin at multiples of {} bytes", VEC16))?;
    reject_if(layout.bytes(layout.axis.size) < MIN_LANE_BYTES, ("a lane is shorter than {} bytes", MIN_LANE_BYTES))
}

/// Lanes staged whole, several per thread block if they are short. With `ALIGNED`, all begin at multiples of 16 bytes.
pub(super) fn whole<const ALIGNED: bool>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    check::<ALIGNED>(layout)?;
    let (in_place, bytes) = (layout.in_place(), layout.bytes(layout.axis.size));
    let vectors = vectors_of_run(layout.axis.size, layout.width, ALIGNED);
    // One before the lane and two after it, which unaligned reads may reach.
    let vectors_per_lane = vectors + 3;
    let most = if in_place { SHARED_IN_PLACE } else { LONG_LANE_BYTES + u64::from(4 * VEC16) };
    let is_long = u64::from(vectors_per_lane) * u64::from(VEC16) > most.min(layout.target.shared_memory.into());
    reject_if(is_long, "a lane is too long to be staged whole")?;
    let per_thread = match layout.lane_count() * u64::from(vectors) {
        0..=FEW_VECTORS => 1,
        ..=FEW_VECTORS_IN_PLACE if in_place => 1,
        ..=MIDDLE_VECTORS if !in_place => 2,
        _ if in_place && bytes >= LONG_LANE_BYTES_IN_PLACE => LANE_VECTORS_IN_PLACE,
        _ if in_place => LANE_VECTORS,
        // At least two threads for a lane.
        _ => LANE_VECTORS.min((vectors / 2).max(1)),
    };
    // Not in place: there, a thread has more vectors anyway.
    let vectors_of_group = if in_place { vectors } else { less_rounding(vectors) };
    let group = vectors_of_group.div_ceil(per_thread).next_power_of_two().min(THREADS);
    let (threads, together) = block_of_groups(group);
    let params = Lanes {
        r: layout.parameters(layout.lane_count(), layout.dimensions.iter().map(dim)),
        tiles_per_lane: FastDiv::new(1),
        vectors_per_lane,
        group_size_log2: group.trailing_zeros(),
    };
    let blocks = layout.lane_count().div_ceil(together.into()) as u32;
    let shared = together * vectors_per_lane * VEC16;
    let unit = if ALIGNED { VEC16 } else { layout.width };
    let launch = Launch::new(layout.entry(&kernels::LANES, layout.width), blocks, unit, params);
    Ok(Launch { threads, shared, access: VEC16, ..launch })
}

/// Long lanes in tiles. A thread block copies one tile, or reverses several in place. With `ALIGNED`, all lanes begin
/// at multiples of 16 bytes.
pub(super) fn long<const ALIGNED: bool>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    check::<ALIGNED>(layout)?;
    let tiles = if layout.in_place() {
        // A tile has two vectors per thread. Half of them are in front, less one: the back may begin inside a vector
        // and then touches one more.
        let front = u64::from(THREADS - 1) * u64::from(VEC16);
        let half = layout.bytes(layout.axis.size / 2);
        (half + u64::from(VEC16)).div_ceil(front).div_ceil(TILES_PER_BLOCK)
    } else {
        vectors_of_run(layout.axis.size, layout.width, ALIGNED).div_ceil(THREADS * VECTORS_PER_THREAD).into()
    };
    let items = layout.lane_count() * tiles;
    // If shared memory cannot hold whole lanes, short lanes come here, too, and may be too many.
    let blocks = grid(items)?;
    let params = Lanes {
        r: layout.parameters(items, layout.dimensions.iter().map(dim)),
        tiles_per_lane: FastDiv::new(tiles as u32),
        vectors_per_lane: 0,
        group_size_log2: 0,
    };
    let unit = if ALIGNED { VEC16 } else { layout.width };
    let entry = layout.entry(&kernels::LONG_LANES, layout.width);
    Ok(Launch { access: VEC16, ..Launch::new(entry, blocks, unit, params) })
}
