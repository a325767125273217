//! segments.cuh: short lanes or blocks of rows that are adjacent in memory, staged whole.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::{are_adjacent, dim, Layout, Reverse};
use super::{reject_if, RejectReason};
use crate::cuda::tuning::segments::*;
use crate::cuda::tuning::{THREADS, VEC16};

/// `Segments` of kernels/segments.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct Segments {
    pub r: Reverse,
    pub segment_bytes: FastDiv,
    pub row_bytes: FastDiv,
    pub segments_per_block: u32,
    pub vectors_per_segment: u32,
    pub group_size_log2: u32,
    pub reserved: u32,
}
const _: () = assert!(size_of::<Segments>() == 368 && std::mem::offset_of!(Segments, r) == 0);

pub(super) const TOO_LARGE: &str = "a segment does not fit shared memory";
const LARGE: &str = "a segment is so large that another kernel is faster";
const APART: &str = "segments are not adjacent in memory";

/// Segments per thread block: at most `most`, at least one, and few enough that every multiprocessor gets thread
/// blocks.
pub(super) fn per_block(layout: &Layout<'_>, segments: u64, most: u64) -> u64 {
    let share = segments.div_ceil(u64::from(layout.target.multiprocessors) * BLOCKS_PER_MULTIPROCESSOR);
    most.min(share).max(1)
}

/// Four fifths of a group's vectors. Rounded up to a power of two, they give the group's threads: a count slightly
/// above a power of two then does not double them.
pub(super) fn less_rounding(vectors: u32) -> u32 {
    vectors * GROUP_FIFTHS / 5
}

/// For thread groups of that size: threads per thread block, and groups per thread block. A group as large as the
/// smallest thread block gets one of its own, so that no group waits for another.
pub(super) fn block_of_groups(group: u32) -> (u32, u32) {
    let threads = group.max(MIN_BLOCK_THREADS);
    (threads, threads / group)
}

/// For segments of at most `most` bytes: the parameters, and the bytes of shared memory per thread block.
pub(super) fn staged(layout: &Layout<'_>, most: u64) -> Result<(Segments, u32), RejectReason> {
    let block = layout.block().map_or(1, |block| block.size);
    reject_if(layout.axis.in_stride != block || layout.axis.out_stride != block, APART)?;
    let segment = u64::from(layout.axis.size) * u64::from(block);
    // Lanes side by side are not a block, so they count as outside.
    let outside = || layout.dimensions.iter().filter(|d| block == 1 || d.in_stride != 1 || d.out_stride != 1);
    reject_if(!are_adjacent(outside(), segment), APART)?;
    let bytes = segment * u64::from(layout.width);
    let segments: u64 = outside().map(|d| u64::from(d.size)).product();
    let together = match per_block(layout, segments, (STAGED_BYTES / bytes.max(1)).min(MAX_SEGMENTS)) {
        few @ 0..=4 => few,
        many => many / 4 * 4, // so that every thread block can read its lengths 4 at a time
    };
    // The lengths and one more, a vector before the segments, the segments at their alignment, and what unaligned reads
    // may reach after them.
    let vec16 = u64::from(VEC16);
    let shared =
        ((together + 1) * 4).next_multiple_of(vec16) + vec16 + (together * bytes).next_multiple_of(vec16) + 3 * vec16;
    reject_if(bytes > most, LARGE)?;
    reject_if(shared > u64::from(layout.target.shared_memory), TOO_LARGE)?;
    let params = Segments {
        r: layout.parameters(segments, outside().map(dim)),
        segment_bytes: FastDiv::new(bytes as u32),
        row_bytes: FastDiv::new(block * layout.width),
        segments_per_block: together as u32,
        vectors_per_segment: 0,
        // Enough threads per segment to keep a thread block busy.
        group_size_log2: u64::from(THREADS).div_ceil(together).next_power_of_two().trailing_zeros(),
        reserved: 0,
    };
    Ok((params, shared as u32))
}
