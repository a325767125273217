//! reverse_strips.cu: strips of interleaved lanes.
//!
//! ```text
//!          strip 0          strip 1
//! row 0  | l0 l1 l2 ... | l8 l9 ... |      A lane is a column of this picture. A thread block stages a strip of all
//! row 1  | l0 l1 l2 ... | l8 l9 ... |      rows in shared memory, and writes the output's rows from there.
//! ```
//!
//! Every sector moves once, except those that two strips share. So wide strips move less, and narrow ones leave room
//! for more thread blocks on an SM. [`AlignedStrips`] needs rows of whole words. [`UnalignedStrips`] takes rows of
//! any size; out of place, only of elements narrower than a word.

use super::fit::{Kernel, Needs};
use super::layout::parameters::dim;
use super::layout::traffic::LINE;
use super::layout::{Layout, NOT_IN_PLACE, NO_ROW, ONLY_IN_PLACE};
use super::{grid, reject_if, RejectReason};
use crate::cuda::estimate::{ceil, Work};
use crate::cuda::launch::Grid;
use crate::cuda::parameters::strips::{Strips, MOST_THREADS};
use crate::cuda::parameters::{FastDiv, THREADS};
pub(super) use crate::cuda::tuning::strips::STRIP_BYTES;
use crate::cuda::tuning::strips::*;
use crate::cuda::tuning::{SECTOR, VEC16};
use crate::cuda::{costs, kernels};
use crate::plan::reverse_plan::Dimension;

/// Strips of `strip` bytes of rows of whole words.
pub(super) struct AlignedStrips {
    row: Dimension,
    strip: u32,
}

impl Kernel for AlignedStrips {
    type Parameters = Strips;

    fn fit(layout: &Layout<'_>, strip: u32) -> Result<Self, RejectReason> {
        let row = *layout.interleaved().ok_or(NO_ROW)?;
        let word = whole_word(layout);
        reject_if(
            !layout.rows_divide(&row, word, word),
            ("rows of lanes are not multiples of {} bytes", word),
        )?;
        reject_if(strip < VEC16, TOO_NARROW)?;
        Ok(Self { row, strip })
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        let word = whole_word(layout);
        Needs {
            family: &kernels::STRIPS,
            costs: &costs::STRIPS,
            unit: layout.width,
            alignment: word,
            access: word,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        grid_of(layout, &self.row, self.strip, THREADS_WANTED)
    }

    fn work(&self, layout: &Layout<'_>, grid: Grid) -> Work {
        work(layout, &self.row, self.strip, grid, false)
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> Strips {
        parameters(layout, &self.row, self.strip, 0)
    }
}

/// Strips of `strip` bytes of rows of any size at any alignment. In place they have a kernel of their own.
pub(super) struct UnalignedStrips<const IN_PLACE: bool> {
    row: Dimension,
    strip: u32,
}

impl<const IN_PLACE: bool> Kernel for UnalignedStrips<IN_PLACE> {
    type Parameters = Strips;

    fn fit(layout: &Layout<'_>, strip: u32) -> Result<Self, RejectReason> {
        let other_placement = if IN_PLACE {
            ONLY_IN_PLACE
        } else {
            NOT_IN_PLACE
        };
        reject_if(layout.in_place() != IN_PLACE, other_placement)?;
        let row = *layout.interleaved().ok_or(NO_ROW)?;
        // Rows of wider elements are always whole words.
        reject_if(
            !layout.in_place() && layout.width >= 4,
            "it does not copy elements of 4 and 8 bytes",
        )?;
        let is_narrow = strip < VEC16 && (!layout.in_place() || layout.width >= 4);
        reject_if(is_narrow, TOO_NARROW)?;
        Ok(Self { row, strip })
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        Needs {
            // Out of place, the kernel for aligned strips of narrower elements has both forms.
            family: if IN_PLACE {
                &kernels::UNALIGNED_STRIPS
            } else {
                &kernels::STRIPS
            },
            costs: &costs::UNALIGNED_STRIPS,
            unit: layout.width,
            alignment: layout.width,
            access: word(layout),
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        grid_of(layout, &self.row, self.strip, THREADS_WANTED_UNALIGNED)
    }

    fn work(&self, layout: &Layout<'_>, grid: Grid) -> Work {
        work(layout, &self.row, self.strip, grid, true)
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> Strips {
        parameters(layout, &self.row, self.strip, 1)
    }
}

const TOO_NARROW: (&str, u32) = ("strips of all rows are narrower than {} bytes", VEC16);

/// Bytes of a word, or of an element that is wider.
fn whole_word(layout: &Layout<'_>) -> u32 {
    layout.width.max(4)
}

/// Bytes that a thread writes at once: an element in place, else a word.
pub(super) fn word(layout: &Layout<'_>) -> u32 {
    if layout.in_place() {
        layout.width
    } else {
        whole_word(layout)
    }
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
    let repeated = repeated_sectors(layout, row, strip, unaligned);
    // A line is opened once for each thread block that takes a part of it.
    let reopened = if strip < LINE {
        once.bytes * REOPENED
    } else {
        0.0
    };
    // A sector that is written in parts is also read.
    let read_again = if strip < SECTOR { repeated } else { 0.0 };
    Work {
        bytes: once.bytes + reopened + (repeated + read_again) * f64::from(SECTOR),
        misses: once.misses + repeated,
        rounds: rounds(layout, row, strip, grid, unaligned),
    }
}

/// Sectors that move a second time, because two strips share them. Those that a strip's rows share move once.
fn repeated_sectors(layout: &Layout<'_>, row: &Dimension, strip: u32, unaligned: bool) -> f64 {
    let sector = f64::from(SECTOR);
    let begins = f64::from(largest_begin(layout, row));
    // The last strip of a row may be narrower.
    let bytes = layout.bytes(row.size);
    let piece = bytes as f64 / bytes.div_ceil(strip.into()) as f64;
    let apart = ((piece + sector - begins) / sector).max(1.0);
    let mut sectors = 0.0;
    for stride in [layout.axis.in_stride, layout.axis.out_stride] {
        let pitch = layout.bytes(stride) as f64;
        sectors += if layout.axis.size == 1 || pitch < piece {
            apart
        } else {
            apart.min(pitch / sector)
        };
    }
    // Unaligned reads load two vectors for each 16 bytes. The second vector of the last pair may be in one more sector.
    let next = if unaligned { begins / sector } else { 0.0 };
    let strips = layout.strips(row, strip) as f64;
    let rows = f64::from(layout.axis.size);
    let moved = strips * rows * layout.moving_sectors() * (sectors + next);
    (moved - layout.moved_once()).max(0.0)
}

/// The largest power of two, up to a sector, of which all pieces of rows begin at multiples.
fn largest_begin(layout: &Layout<'_>, row: &Dimension) -> u32 {
    let mut bytes = SECTOR;
    while bytes > 1 && !layout.rows_divide(row, bytes, bytes) {
        bytes /= 2;
    }
    bytes
}

/// Steps of a thread: loads into shared memory, 8 of which are in flight, and words that it writes, 4 at once.
fn rounds(layout: &Layout<'_>, row: &Dimension, strip: u32, grid: Grid, unaligned: bool) -> f64 {
    let word = word(layout);
    let wide = if layout.in_place() && !unaligned {
        VEC16.min(4 * layout.width)
    } else {
        VEC16
    };
    // A thread loads words at once, unless rows are made of whole vectors.
    let is_wide = unaligned || layout.rows_divide(row, wide, wide);
    let read = if is_wide { wide } else { word.max(4) };
    let rows = f64::from(layout.axis.size);
    let loads_each = if unaligned { 2.0 } else { 1.0 };
    let loads = rows * f64::from(strip.div_ceil(read)) * loads_each;
    let words = rows * f64::from(strip) / f64::from(word);
    let strips = layout.strips(row, strip) as f64;
    let threads = f64::from(grid.threads) * f64::from(grid.blocks) / strips;
    ceil(loads / (threads * 8.0)) + ceil(words / (threads * 4.0))
}
