//! reverse_strips.cu: strips of interleaved lanes.

use super::layout::parameters::dim;
use super::layout::traffic::LINE;
use super::layout::{Candidates, Layout, NOT_IN_PLACE, NO_ROW, ONLY_IN_PLACE};
use super::{grid, reject_if, RejectReason};
use crate::cuda::estimate::{ceil, Work};
use crate::cuda::launch::{Grid, Launch};
use crate::cuda::parameters::strips::{Strips, MOST_THREADS};
use crate::cuda::parameters::{FastDiv, THREADS};
pub(super) use crate::cuda::tuning::strips::STRIP_BYTES;
use crate::cuda::tuning::strips::*;
use crate::cuda::tuning::{SECTOR, VEC16};
use crate::cuda::{costs, kernels};
use crate::plan::reverse_plan::Dimension;

/// Strips of `strip` bytes of rows of whole words.
pub(super) fn aligned(
    layout: &Layout<'_>,
    strip: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    let row = layout.interleaved().ok_or(NO_ROW)?;
    let word = layout.width.max(4);
    reject_if(
        !layout.rows_divide(row, word, word),
        ("rows of lanes are not multiples of {} bytes", word),
    )?;
    reject_if(
        strip < VEC16,
        ("strips of all rows are narrower than {} bytes", VEC16),
    )?;
    let grid = grid_of(layout, row, strip, THREADS_WANTED)?;
    let work = work(layout, row, strip, grid, false);
    let launch = Launch::new(
        layout.entry(&kernels::STRIPS, layout.width)?,
        grid,
        word,
        word,
    );
    list.add(layout, launch, work, &costs::STRIPS, layout.width, || {
        parameters(layout, row, strip, 0)
    })
}

/// Strips of `strip` bytes of rows of any size at any alignment. In place they have a kernel of their own.
pub(super) fn unaligned<const IN_PLACE: bool>(
    layout: &Layout<'_>,
    strip: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    let reason = if IN_PLACE {
        ONLY_IN_PLACE
    } else {
        NOT_IN_PLACE
    };
    reject_if(layout.in_place() != IN_PLACE, reason)?;
    let row = layout.interleaved().ok_or(NO_ROW)?;
    // Rows of wider elements are always whole words.
    reject_if(
        !layout.in_place() && layout.width >= 4,
        "it does not copy elements of 4 and 8 bytes",
    )?;
    let is_narrow = strip < VEC16 && (!layout.in_place() || layout.width >= 4);
    reject_if(
        is_narrow,
        ("strips of all rows are narrower than {} bytes", VEC16),
    )?;
    let grid = grid_of(layout, row, strip, THREADS_WANTED_UNALIGNED)?;
    let work = work(layout, row, strip, grid, true);
    // Out of place, the kernel for aligned strips of narrower elements has both forms.
    let family = if layout.in_place() {
        &kernels::UNALIGNED_STRIPS
    } else {
        &kernels::STRIPS
    };
    let access = if layout.in_place() {
        layout.width
    } else {
        layout.width.max(4)
    };
    let launch = Launch::new(
        layout.entry(family, layout.width)?,
        grid,
        layout.width,
        access,
    );
    list.add(
        layout,
        launch,
        work,
        &costs::UNALIGNED_STRIPS,
        layout.width,
        || parameters(layout, row, strip, 1),
    )
}

/// The parameters of strips of `strip` bytes. There are at most as many as a grid can have thread blocks.
pub(super) fn parameters(
    layout: &Layout<'_>,
    row: &Dimension,
    strip: u32,
    unaligned: u32,
) -> Strips {
    Strips {
        r: layout.parameters(layout.strips(row, strip), layout.outside().map(dim)),
        strips_per_row: FastDiv::new(layout.bytes(row.size).div_ceil(strip.into()) as u32),
        row_lanes: row.size,
        strip_bytes: strip,
        length_stride: row.length_stride,
        unaligned,
    }
}

/// The grid for strips of `strip` bytes. Out of place, a thread block has as many threads as give an SM the
/// wanted ones, with the thread blocks that fit there.
fn grid_of(
    layout: &Layout<'_>,
    row: &Dimension,
    strip: u32,
    wanted: u32,
) -> Result<Grid, RejectReason> {
    let shared = u64::from(layout.axis.size) * u64::from(strip);
    let is_large = shared > u64::from(layout.target.shared_memory);
    reject_if(
        is_large,
        ("a strip of {} bytes does not fit shared memory", shared),
    )?;
    let (shared, blocks) = (shared as u32, grid(layout.strips(row, strip))?);
    let together =
        (layout.target.shared_memory / shared).min(blocks.div_ceil(layout.target.multiprocessors));
    let threads = (wanted / together)
        .min(shared / (VEC16 * MIN_VECTORS))
        .clamp(THREADS, MOST_THREADS);
    let threads = if layout.in_place() {
        THREADS
    } else {
        1 << threads.ilog2()
    };
    Ok(Grid {
        blocks,
        threads,
        shared,
    })
}

/// What opening a line again costs, as a part of moving it (tuning.md, "Large tensors").
const REOPENED: f64 = 3.0 / 16.0;

/// The work of strips that a thread block, or a cluster, stages in shared memory.
pub(super) fn work(
    layout: &Layout<'_>,
    row: &Dimension,
    strip: u32,
    grid: Grid,
    unaligned: bool,
) -> Work {
    let once = layout.work();
    let strips = layout.strips(row, strip) as f64;
    let rows = f64::from(layout.axis.size);
    // Whether pieces of rows begin at multiples of a number of bytes.
    let whole = |bytes: u32| layout.rows_divide(row, bytes, bytes);
    let begins = f64::from(
        (0..6)
            .map(|n| SECTOR >> n)
            .find(|&bytes| whole(bytes))
            .unwrap_or(1),
    );
    let word = if layout.in_place() {
        layout.width
    } else {
        layout.width.max(4)
    };
    // What a thread loads at once: words, unless rows are made of whole vectors.
    let wide = if layout.in_place() && !unaligned {
        VEC16.min(4 * layout.width)
    } else {
        VEC16
    };
    let read = if unaligned || whole(wide) {
        wide
    } else {
        word.max(4)
    };
    // The last strip of a row may be narrower.
    let piece =
        layout.bytes(row.size) as f64 / layout.bytes(row.size).div_ceil(strip.into()) as f64;
    // Sectors that two strips share move twice; those that a strip's rows share move once.
    let sector = f64::from(SECTOR);
    let apart = ((piece + sector - begins) / sector).max(1.0);
    let strides =
        [layout.axis.in_stride, layout.axis.out_stride].map(|stride| layout.bytes(stride) as f64);
    let sectors: f64 = strides
        .map(|bytes| {
            if rows == 1.0 || bytes < piece {
                apart
            } else {
                apart.min(bytes / sector)
            }
        })
        .iter()
        .sum();
    // At any alignment, the second vector of the last 16 bytes is in one more.
    let next = if unaligned { begins / sector } else { 0.0 };
    let repeated =
        (strips * rows * layout.moving_sectors() * (sectors + next) - layout.moved_once()).max(0.0);
    // A line is opened once for each thread block that takes a part of it.
    let reopened = if strip < LINE {
        once.bytes * REOPENED
    } else {
        0.0
    };
    // A sector that is written in parts is also read.
    let read_again = if strip < SECTOR { repeated } else { 0.0 };
    let loads = rows * f64::from(strip.div_ceil(read)) * if unaligned { 2.0 } else { 1.0 };
    let words = rows * f64::from(strip) / f64::from(word);
    let threads = f64::from(grid.threads) * f64::from(grid.blocks) / strips;
    Work {
        bytes: once.bytes + reopened + (repeated + read_again) * sector,
        misses: once.misses + repeated,
        rounds: ceil(loads / (threads * 8.0)) + ceil(words / (threads * 4.0)),
    }
}
