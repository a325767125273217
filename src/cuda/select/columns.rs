//! reverse_columns.cu: interleaved lanes, each with its own length: few in adjacent groups, or any number with few
//! rows.

use super::layout::parameters::{dim, dim_in_units};
use super::layout::traffic::Side;
use super::layout::{are_adjacent, Candidates, Layout, NOT_IN_PLACE, NO_ROW};
use super::segments::per_block;
use super::{grid, reject_if, RejectReason};
use crate::cuda::estimate::{ceil, Work, WARP};
use crate::cuda::launch::{Grid, Launch};
use crate::cuda::parameters::columns::{Columns, ThreadColumns, LOADS_IN_FLIGHT};
use crate::cuda::parameters::{FastDiv, THREADS};
use crate::cuda::tuning::columns::*;
use crate::cuda::tuning::segments::STAGED_BYTES;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// Whole groups of interleaved lanes.
pub(super) fn columns(
    layout: &Layout<'_>,
    _: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    reject_if(layout.in_place(), NOT_IN_PLACE)?;
    let row = layout.interleaved().ok_or(NO_ROW)?;
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
    // The lengths, the groups, and one more vector because the groups may begin inside one.
    let vectors = |bytes: u64| bytes.div_ceil(VEC16.into());
    let shared = u64::from(VEC16)
        * (vectors(together * u64::from(row.size) * 4) + vectors(together * bytes) + 1);
    reject_if(
        shared > u64::from(layout.target.shared_memory),
        "a group does not fit shared memory",
    )?;
    let blocks = layout.outside_count().div_ceil(together) as u32;
    let grid = Grid {
        blocks,
        threads: THREADS,
        shared: shared as u32,
    };
    let (size, threads) = (shared as f64, f64::from(THREADS));
    let rounds = (size / f64::from(VEC16) + size / f64::from(layout.width)) / threads / 4.0;
    let work = Work {
        rounds,
        ..layout.work()
    };
    let launch = Launch::new(
        layout.entry(&kernels::COLUMNS, layout.width)?,
        grid,
        layout.width,
        layout.width,
    );
    list.add(layout, launch, work, &costs::COLUMNS, layout.width, || {
        Columns {
            r: layout.parameters(layout.outside_count(), layout.outside().map(dim)),
            axis: FastDiv::new(axis.size),
            columns: FastDiv::new(row.size),
            group_bytes: FastDiv::new(bytes as u32),
            groups_per_block: together as u32,
            length_stride: row.length_stride,
        }
    })
}

/// A piece of each row for each thread, in thread blocks of `threads` threads: a word or, if rows are not whole words,
/// an element.
pub(super) fn thread_columns(
    layout: &Layout<'_>,
    threads: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    let row = layout.interleaved().ok_or(NO_ROW)?;
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
    let is_large = shared > u64::from(layout.target.shared_memory);
    reject_if(
        is_large,
        (
            "a thread block's columns of {} bytes do not fit shared memory",
            shared,
        ),
    )?;
    let piece = if layout.rows_divide(row, word, word) {
        word
    } else {
        layout.width
    };
    let items = layout.lane_count() * u64::from(layout.width) / u64::from(piece);
    let grid = Grid {
        blocks: grid(items.div_ceil(threads.into()))?,
        threads,
        shared: shared as u32,
    };
    let (once, rows) = (layout.work(), f64::from(layout.axis.size));
    // The pieces of a warp are in several rows if rows are short.
    let pieces_of_row = layout.bytes(row.size) as f64 / f64::from(piece);
    let run = pieces_of_row.min(WARP);
    let warps = items as f64 / WARP;
    let written = warps * WARP / run * layout.sectors_of_run(run * f64::from(piece)) * rows;
    // The L1 cache does not keep what is written in parts.
    let again = layout.again(Side::Output, written) * layout.moving_sectors();
    let work = Work {
        misses: once.misses + again,
        rounds: 2.0 * ceil(rows / f64::from(LOADS_IN_FLIGHT))
            + if layout.in_place() { 1.0 } else { 0.0 },
        ..once
    };
    let lanes = piece / layout.width;
    let launch = Launch::new(
        layout.entry(&kernels::THREAD_COLUMNS, layout.width)?,
        grid,
        piece,
        piece,
    );
    list.add(
        layout,
        launch,
        work,
        &costs::THREAD_COLUMNS,
        layout.width,
        || {
            let mut r = layout.parameters(
                items,
                layout.outside().map(|d| dim_in_units(d, d.size, lanes)),
            );
            r.axis_in_stride /= lanes;
            r.axis_out_stride /= lanes;
            ThreadColumns {
                r,
                pieces: FastDiv::new(row.size / lanes),
                length_stride: row.length_stride,
                lanes,
            }
        },
    )
}
