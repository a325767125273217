//! reverse_strips.cu: strips of lanes side by side, each lane with its own length.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::{dim, Layout, Reverse};
use super::{grid, reject_if, RejectReason};
use crate::cuda::tuning::strips::*;
use crate::cuda::tuning::{THREADS, VEC16};
use crate::cuda::{kernels, Launch};
use crate::plan::reverse_plan::Dimension;

/// `Strips` of strips.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct Strips {
    pub r: Reverse,
    pub strips_per_row: FastDiv,
    pub row_lanes: u32,
    pub strip_bytes: u32,
    pub length_stride: u32,
    unaligned: u32,
}
const _: () = assert!(size_of::<Strips>() == 352 && std::mem::offset_of!(Strips, r) == 0);

/// Strips of rows of whole words.
pub(super) fn aligned(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let row = layout.row_exceeding(MOST_GATHERED)?;
    layout.lanes_are_at_least(&LEAST_AXIS)?;
    let word = layout.width.max(4);
    // In place, rows of words that are not whole vectors are staged faster unaligned.
    let apart = if (layout.in_place() && layout.width >= 4) || layout.width == 8 { VEC16 } else { word };
    let text = "rows of lanes are not multiples of 4 bytes (of 16 for elements of 4 bytes in place, and of 8 bytes)";
    reject_if(!layout.rows_divide(row, word, apart), text)?;
    reject_if(layout.bytes(row.size) < MIN_ROW_BYTES, ("rows of lanes are shorter than {} bytes", MIN_ROW_BYTES))?;
    let shared = if layout.in_place() { SHARED_IN_PLACE } else { u32::MAX };
    let (strip, blocks, params) = cut(layout, shared, row, layout.bytes(row.size))?;
    reject_if(strip < VEC16, ("strips of that many rows are narrower than {} bytes", VEC16))?;
    let entry = layout.entry(&kernels::STRIPS, layout.width);
    let shared = layout.axis.size * strip;
    let threads = threads(layout, shared, blocks, THREADS_WANTED);
    Ok(Launch { threads, shared, ..Launch::new(entry, blocks, word, params) })
}

/// Strips of rows of any size at any alignment.
pub(super) fn unaligned(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let row = layout.wide_row_exceeding(MOST_GATHERED)?;
    layout.lanes_are_at_least(&LEAST_AXIS)?;
    let text = "elements of 8 bytes are copied faster one by one than in strips of unaligned rows";
    reject_if(!layout.in_place() && layout.width == 8, text)?;
    exceeds_swapped(layout)?;
    let shared = match layout.in_place() {
        true if layout.width < 4 => SHARED_NARROW_IN_PLACE,
        true => SHARED_IN_PLACE,
        false => u32::MAX,
    };
    // Prefers one partly empty strip to two strips, one of them partly empty.
    let (strip, blocks, mut params) = cut(layout, shared, row, layout.bytes(row.size) * 2 - 1)?;
    params.unaligned = 1;
    // Copying, the kernel for aligned strips of narrower elements has both forms.
    let family = if layout.in_place() || layout.width == 4 { &kernels::UNALIGNED_STRIPS } else { &kernels::STRIPS };
    let entry = layout.entry(family, layout.width);
    let shared = layout.axis.size * strip;
    let threads = threads(layout, shared, blocks, THREADS_WANTED_UNALIGNED);
    let access = if layout.in_place() { layout.width } else { layout.width.max(4) };
    Ok(Launch { threads, shared, access, ..Launch::new(entry, blocks, layout.width, params) })
}

/// Rejects what is swapped faster one by one in place.
pub(super) fn exceeds_swapped(layout: &Layout<'_>) -> Result<(), RejectReason> {
    let most = MOST_SWAPPED_OF_8_BYTES * u64::from(layout.target.multiprocessors);
    let is_little = layout.width == 8 && layout.elements() <= most;
    reject_if(is_little, ("up to {} elements of 8 bytes are swapped faster one by one", most))
}

impl Strips {
    /// Strips of `strip` bytes. There are at most as many as a grid can have thread blocks.
    pub fn new(layout: &Layout<'_>, row: &Dimension, strip: u32) -> Self {
        let strips_per_row = layout.bytes(row.size).div_ceil(strip.into());
        Self {
            r: layout.parameters(layout.strips(row, strip), layout.outside().map(dim)),
            strips_per_row: FastDiv::new(strips_per_row as u32),
            row_lanes: row.size,
            strip_bytes: strip,
            length_stride: row.length_stride,
            unaligned: 0,
        }
    }
}

/// Threads of a thread block: as many as make a multiprocessor have the wanted ones, with the thread blocks that fit there.
fn threads(layout: &Layout<'_>, shared: u32, blocks: u32, wanted: u32) -> u32 {
    if layout.in_place() {
        return THREADS;
    }
    let fit = layout.target.shared_memory / shared;
    let together = fit.min(blocks.div_ceil(layout.target.multiprocessors));
    let threads = (wanted / together).min(shared / (VEC16 * MIN_VECTORS)).clamp(THREADS, MOST_THREADS);
    1 << threads.ilog2()
}

/// Chooses the widest strip of at most `most` bytes that fits in the preferred shared memory, or else in all that the
/// device has. Makes it narrower if there would be few thread blocks. Returns its width, the thread blocks and their
/// parameters.
fn cut(layout: &Layout<'_>, preferred: u32, row: &Dimension, most: u64) -> Result<(u32, u32, Strips), RejectReason> {
    let narrow = layout.in_place() && layout.width < 4;
    let least = if narrow { MIN_NARROW_STRIP_BYTES } else { MIN_STRIP_BYTES };
    let widest = |shared: u32| {
        let fits = |strip: u32| u64::from(layout.axis.size) * u64::from(strip) <= u64::from(shared);
        let wanted = |strip: u32| (u64::from(strip) <= most || strip == least) && strip >= least;
        STRIP_BYTES.into_iter().find(|&strip| wanted(strip) && fits(strip))
    };
    let mut strip = widest(preferred.min(layout.target.shared_memory))
        .or_else(|| widest(layout.target.shared_memory))
        .ok_or("no strip of that many rows fits shared memory")?;
    let few =
        if layout.in_place() { FEW_BLOCKS_IN_PLACE } else { FEW_BLOCKS } * u64::from(layout.target.multiprocessors) / 4;
    while strip > MIN_STRIP_BYTES && layout.strips(row, strip) < few {
        strip /= 2;
    }
    let blocks = grid(layout.strips(row, strip))?;
    Ok((strip, blocks, Strips::new(layout, row, strip)))
}
