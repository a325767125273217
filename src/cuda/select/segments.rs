//! segments.cuh: short lanes or blocks of rows that are adjacent in memory, staged whole.

use super::layout::parameters::dim;
use super::layout::{are_adjacent, is_contiguous, Layout};
use super::{reject_if, RejectReason};
use crate::cuda::launch::Grid;
use crate::cuda::parameters::segments::Segments;
use crate::cuda::parameters::{FastDiv, THREADS};
use crate::cuda::tuning::segments::*;
use crate::cuda::tuning::VEC16;
use crate::plan::reverse_plan::Dimension;

/// Banks of shared memory, of a word each, and threads of a warp.
const BANKS: u32 = 32;

/// Segments per thread block: at most `most`, at least one, and few enough that every SM gets thread
/// blocks.
pub(super) fn per_block(layout: &Layout<'_>, segments: u64, most: u64) -> u64 {
    let share =
        segments.div_ceil(u64::from(layout.target.multiprocessors) * BLOCKS_PER_MULTIPROCESSOR);
    most.min(share).max(1)
}

/// Four fifths of a group's vectors. Rounded up to a power of two, they give the group's threads: a count slightly
/// above a power of two then does not double them.
pub(super) fn less_rounding(vectors: u32) -> u32 {
    (u64::from(vectors) * u64::from(GROUP_FIFTHS) / 5) as u32 // fewer than `vectors`
}

/// A thread block for thread groups of that size. A group as large as the smallest thread block gets one of its own, so
/// that no group waits for another.
pub(super) fn block_of_groups(group: u32) -> BlockOfGroups {
    let threads = group.max(MIN_BLOCK_THREADS);
    BlockOfGroups {
        threads,
        groups: threads / group,
    }
}

/// A thread block that has thread groups.
pub(super) struct BlockOfGroups {
    pub threads: u32,
    /// Thread groups per thread block.
    pub groups: u32,
}

/// Adjacent segments, and how thread blocks take them.
#[derive(Clone, Copy)]
pub(super) struct Staged {
    /// Bytes of a segment.
    pub bytes: u64,
    /// Segments in all.
    pub count: u64,
    /// Segments per thread block.
    pub together: u64,
    pub grid: Grid,
}

impl Staged {
    /// The segments of a layout: its blocks or, without blocks, its lanes.
    pub fn new(layout: &Layout<'_>) -> Result<Self, RejectReason> {
        let block = layout.block().map_or(1, |block| block.size);
        let axis = &layout.axis;
        let apart = "segments are not adjacent in memory";
        reject_if(axis.in_stride != block || axis.out_stride != block, apart)?;
        let segment = u64::from(axis.size) * u64::from(block);
        reject_if(!are_adjacent(outside(layout), segment), apart)?;
        let bytes = segment * u64::from(layout.width);
        let count: u64 = outside(layout).map(|d| u64::from(d.size)).product();
        let together = match per_block(
            layout,
            count,
            (STAGED_BYTES / bytes.max(1)).min(MAX_SEGMENTS),
        ) {
            few @ 0..=4 => few,
            many => many / 4 * 4, // so that every thread block can read its lengths 4 at a time
        };
        // The lengths and one more, a vector before the segments, the segments at their alignment, and what unaligned
        // reads may reach after them.
        let vec16 = u64::from(VEC16);
        let shared = ((together + 1) * 4).next_multiple_of(vec16)
            + vec16
            + (together * bytes).next_multiple_of(vec16)
            + 3 * vec16;
        reject_if(
            shared > layout.target.shared_memory.into(),
            "a segment does not fit shared memory",
        )?;
        let grid = Grid {
            blocks: count.div_ceil(together) as u32,
            threads: THREADS,
            shared: shared as u32,
        };
        Ok(Self {
            bytes,
            count,
            together,
            grid,
        })
    }

    /// Threads per segment that keep a thread block busy.
    pub fn group(&self) -> u32 {
        u64::from(THREADS)
            .div_ceil(self.together)
            .next_power_of_two() as u32
    }

    /// The parameters, with thread groups of `group` threads, each with `vectors` vectors of shared memory if it has a
    /// segment of its own.
    pub fn parameters(&self, layout: &Layout<'_>, group: u32, vectors: u32) -> Segments {
        let block = layout.block().map_or(1, |block| block.size);
        Segments {
            r: layout.parameters(self.count, outside(layout).map(dim)),
            segment_bytes: FastDiv::new(self.bytes as u32),
            row_bytes: FastDiv::new(block * layout.width),
            segments_per_block: self.together as u32,
            vectors_per_segment: vectors,
            group_size_log2: group.trailing_zeros(),
            reserved: 0,
        }
    }

    /// Steps of a thread that stages the thread block's vectors and writes them.
    pub fn rounds_of_vectors(&self) -> f64 {
        f64::from(self.grid.shared.div_ceil(VEC16).div_ceil(self.grid.threads)) / 2.0
    }

    /// Steps of a thread group that moves `items` items of each segment. The groups of a warp wait for each other where
    /// their segments are in the same banks of shared memory, which are words.
    pub fn rounds_of_items(&self, items: u64, group: u32) -> f64 {
        let groups = u64::from((THREADS / group).max(1));
        let banks = BANKS >> (self.bytes / 4).trailing_zeros().min(BANKS.ilog2());
        let conflicts = if self.bytes.is_multiple_of(4) {
            (BANKS / group).div_ceil(banks).max(1)
        } else {
            1
        };
        (self.together.div_ceil(groups) * items.div_ceil(group.into()) * u64::from(conflicts))
            as f64
    }
}

/// The dimensions outside a segment. Interleaved lanes are not an inner block, so they count as outside.
fn outside<'a>(layout: &'a Layout<'_>) -> impl DoubleEndedIterator<Item = &'a Dimension> {
    let has_block = layout.block().is_some();
    layout
        .dimensions
        .iter()
        .filter(move |d| !has_block || !is_contiguous(d))
}
