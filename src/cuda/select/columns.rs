//! reverse_columns.cu: interleaved lanes, each with its own length: few in adjacent groups, or any number with few
//! rows.
//!
//! ```text
//! group 0: | a0 b0 c0 | a1 b1 c1 | ... | group 1: | a0 b0 c0 | ...      lanes a, b, c; rows 0, 1, ...
//! ```
//!
//! [`Groups`] stages whole groups, so that sectors which lanes share move once. In [`ThreadColumns`] a thread stages one
//! word of every row, which needs no barrier, and pays where the axis is short.

use super::fit::{Kernel, Needs};
use super::layout::parameters::{dim, dim_in_units};
use super::layout::traffic::Side;
use super::layout::{are_adjacent, Layout, NOT_IN_PLACE, NO_ROW};
use super::segments::per_block;
use super::{grid, reject_if, RejectReason};
use crate::cuda::estimate::{ceil, Work, WARP};
use crate::cuda::launch::Grid;
use crate::cuda::parameters::columns::{
    Columns, ThreadColumns as ThreadColumnsParameters, LOADS_IN_FLIGHT,
};
use crate::cuda::parameters::{FastDiv, THREADS};
use crate::cuda::tuning::columns::*;
use crate::cuda::tuning::segments::STAGED_BYTES;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};
use crate::plan::reverse_plan::Dimension;

/// Whole groups of interleaved lanes.
pub(super) struct Groups {
    row: Dimension,
    /// Bytes of a group.
    bytes: u64,
    /// Groups per thread block.
    together: u64,
    shared: u64,
}

impl Kernel for Groups {
    type Parameters = Columns;

    fn fit(layout: &Layout<'_>, _: u32) -> Result<Self, RejectReason> {
        reject_if(layout.in_place(), NOT_IN_PLACE)?;
        let row = *layout.interleaved().ok_or(NO_ROW)?;
        let axis = &layout.axis;
        reject_if(
            row.size > THREADS,
            "there are more interleaved lanes than threads in a thread block",
        )?;
        reject_if(
            axis.in_stride != row.size || axis.out_stride != row.size,
            "rows of lanes are not adjacent in memory",
        )?;
        let elements = u64::from(axis.size) * u64::from(row.size);
        reject_if(
            !are_adjacent(layout.outside(), elements),
            "groups are not adjacent in memory",
        )?;
        let bytes = elements * u64::from(layout.width);
        let together = per_block(layout, layout.outside_count(), STAGED_BYTES / bytes.max(1));
        // The lengths, the groups, and an additional vector because the groups may begin inside one.
        let vec16 = u64::from(VEC16);
        let lengths = (together * u64::from(row.size) * 4).div_ceil(vec16);
        let shared = vec16 * (lengths + (together * bytes).div_ceil(vec16) + 1);
        reject_if(
            shared > u64::from(layout.target.shared_memory),
            "a group does not fit shared memory",
        )?;
        Ok(Self {
            row,
            bytes,
            together,
            shared,
        })
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::COLUMNS,
            costs: &costs::COLUMNS,
            unit: layout.width,
            alignment: layout.width,
            access: layout.width,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        Ok(Grid {
            blocks: layout.outside_count().div_ceil(self.together) as u32,
            threads: THREADS,
            shared: self.shared as u32,
        })
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        let (size, threads) = (self.shared as f64, f64::from(THREADS));
        let rounds = (size / f64::from(VEC16) + size / f64::from(layout.width)) / threads / 4.0;
        Work {
            rounds,
            ..layout.work()
        }
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> Columns {
        Columns {
            r: layout.parameters(layout.outside_count(), layout.outside().map(dim)),
            axis: FastDiv::new(layout.axis.size),
            columns: FastDiv::new(self.row.size),
            group_bytes: FastDiv::new(self.bytes as u32),
            groups_per_block: self.together as u32,
            length_stride: self.row.length_stride,
        }
    }
}

/// A piece of each row for each thread: a word or, if rows are not whole words, an element.
pub(super) struct ThreadColumns {
    row: Dimension,
    threads: u32,
    shared: u32,
    /// Bytes of a piece.
    piece: u32,
    /// The pieces of all rows at one position of the axis.
    items: u64,
}

impl Kernel for ThreadColumns {
    type Parameters = ThreadColumnsParameters;

    fn fit(layout: &Layout<'_>, threads: u32) -> Result<Self, RejectReason> {
        let row = *layout.interleaved().ok_or(NO_ROW)?;
        let word = layout.width.max(WORD);
        // Neighbouring threads would access a sector each.
        let is_short = layout.bytes(row.size) < MIN_ROW_BYTES;
        let is_adjacent = [layout.axis.in_stride, layout.axis.out_stride] == [row.size; 2];
        reject_if(
            is_short && !is_adjacent,
            (
                "rows of lanes are shorter than {} bytes, and apart",
                MIN_ROW_BYTES as u32,
            ),
        )?;
        let shared = u64::from(layout.axis.size) * u64::from(word * threads);
        reject_if(
            shared > u64::from(layout.target.shared_memory),
            (
                "a thread block's columns of {} bytes do not fit shared memory",
                shared,
            ),
        )?;
        let is_words = layout.rows_divide(&row, word, word);
        let piece = if is_words { word } else { layout.width };
        Ok(Self {
            row,
            threads,
            shared: shared as u32,
            piece,
            items: layout.lane_count() * u64::from(layout.width) / u64::from(piece),
        })
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::THREAD_COLUMNS,
            costs: &costs::THREAD_COLUMNS,
            unit: layout.width,
            alignment: self.piece,
            access: self.piece,
        }
    }

    fn grid(&self, _: &Layout<'_>) -> Result<Grid, RejectReason> {
        Ok(Grid {
            blocks: grid(self.items.div_ceil(self.threads.into()))?,
            threads: self.threads,
            shared: self.shared,
        })
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        let once = layout.work();
        let rows = f64::from(layout.axis.size);
        // The pieces of a warp are in several rows if rows are short.
        let piece = f64::from(self.piece);
        let run = (layout.bytes(self.row.size) as f64 / piece).min(WARP);
        let warps = self.items as f64 / WARP;
        let written = warps * WARP / run * layout.sectors_of_run(run * piece) * rows;
        // The L1 cache does not keep what is written in parts.
        let again = layout.again(Side::Output, written) * layout.moving_sectors();
        let for_pairs = if layout.in_place() { 1.0 } else { 0.0 };
        Work {
            misses: once.misses + again,
            rounds: 2.0 * ceil(rows / f64::from(LOADS_IN_FLIGHT)) + for_pairs,
            ..once
        }
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> ThreadColumnsParameters {
        let lanes = self.piece / layout.width;
        let outside = layout.outside().map(|d| dim_in_units(d, d.size, lanes));
        let mut r = layout.parameters(self.items, outside);
        r.axis_in_stride /= lanes;
        r.axis_out_stride /= lanes;
        ThreadColumnsParameters {
            r,
            pieces: FastDiv::new(self.row.size / lanes),
            length_stride: self.row.length_stride,
            lanes,
        }
    }
}
