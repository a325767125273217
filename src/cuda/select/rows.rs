//! reverse_rows.cu: inner blocks whose rows are not whole vectors.

use super::layout::parameters::dim;
use super::layout::{Candidates, Layout, NOT_DIVIDED, NOT_IN_PLACE, NO_BLOCK};
use super::segments::{block_of_groups, less_rounding, Staged};
use super::{grid, reject_if, RejectReason};
use crate::cuda::estimate::Work;
use crate::cuda::launch::{Grid, Launch};
use crate::cuda::parameters::rows::*;
use crate::cuda::parameters::{FastDiv, THREADS};
pub(super) use crate::cuda::tuning::rows::TILE_BYTES;
use crate::cuda::tuning::rows::*;
use crate::cuda::tuning::segments::VECTORS_PER_THREAD_IN_PLACE;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// Rows, or pairs of rows in place, along the axis.
fn steps(layout: &Layout<'_>) -> u32 {
    if layout.in_place() {
        layout.axis.size / 2
    } else {
        layout.axis.size
    }
}

/// A thread group of adjacent blocks in place: its threads, and the vectors that it stages. It stages an additional
/// vector, because the block may begin inside one. An odd number spreads groups over all banks.
fn group_in_place(layout: &Layout<'_>, staged: &Staged) -> (u32, u32) {
    let vectors = ((staged.bytes as u32).div_ceil(VEC16) + 1) | 1;
    // Not for bytes, which are reversed one by one and need the threads.
    let vectors_of_group = if layout.width == 1 {
        vectors
    } else {
        less_rounding(vectors)
    };
    (
        vectors_of_group
            .div_ceil(VECTORS_PER_THREAD_IN_PLACE)
            .next_power_of_two()
            .min(THREADS),
        vectors,
    )
}

/// Whether rows of `row_bytes` bytes are joined from two reads in place, instead of being reversed unit by unit.
fn joins_rows(unit: u32, row_bytes: u64) -> bool {
    unit == 1 && row_bytes >= MIN_JOINED_ROW.into()
}

/// Bytes of a unit of adjacent blocks.
pub(super) const UNITS: [u32; 3] = [4, 2, 1];

/// Rejects elements that are wider than every unit.
fn has_units(layout: &Layout<'_>) -> Result<(), RejectReason> {
    reject_if(
        layout.width > UNITS[0],
        ("its units have at most {} bytes", UNITS[0]),
    )
}

/// Adjacent blocks, staged whole. Rows are reversed in units of `unit` bytes.
pub(super) fn packed_rows(
    layout: &Layout<'_>,
    unit: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    let block = layout.block().ok_or(NO_BLOCK)?;
    has_units(layout)?;
    let staged = Staged::new(layout)?;
    reject_if(
        unit < layout.width || !layout.divides(block.size, unit),
        NOT_DIVIDED,
    )?;
    let units = staged.bytes.div_ceil(unit.into()).div_ceil(2);
    let (mut grid, mut work) = (staged.grid, layout.work());
    let (mut group, mut vectors_of_group) = (staged.group(), 0);
    let rounds = if layout.in_place() {
        (group, vectors_of_group) = group_in_place(layout, &staged);
        let (threads, together) = block_of_groups(group);
        // A single segment takes one vector less than it does out of place, and several take less than 12 KiB.
        let shared = (RUN_SLACK_BEFORE + together * (vectors_of_group + RUN_SLACK_BEHIND)) * VEC16;
        grid = Grid {
            blocks: staged.count.div_ceil(together.into()) as u32,
            threads,
            shared,
        };
        work.misses += staged.count as f64;
        let joins = joins_rows(unit, layout.bytes(block.size));
        let items = if joins {
            staged.bytes.div_ceil(VEC16.into())
        } else {
            units
        };
        items.div_ceil(group.into()) as f64 * layout.moving()
    } else {
        staged.rounds_of_items(units, group)
    };
    work.rounds =
        rounds / 4.0 + f64::from(grid.shared.div_ceil(VEC16).div_ceil(grid.threads)) / 2.0;
    let launch = Launch::new(
        layout.entry(&kernels::PACKED_ROWS, unit)?,
        grid,
        unit,
        VEC16,
    );
    list.add(layout, launch, work, &costs::PACKED_ROWS, unit, || {
        staged.parameters(layout, group, vectors_of_group)
    })
}

/// How rows are cut into tiles of `bytes` bytes.
struct Cut {
    rows_per_tile: u32,
    parts_per_row: u32,
    /// Bytes of a row that are in a tile.
    tile_row_bytes: u32,
    /// Tiles of a block.
    tiles: u64,
}

impl Cut {
    /// Tiles of several rows of `row` bytes, if they are adjacent and fit, else of parts of rows.
    fn new(layout: &Layout<'_>, row: u32, bytes: u32) -> Self {
        let rows_per_tile = bytes / row;
        if rows_per_tile < 2 || !layout.rows_are_a_run() {
            return Self::parts_of_rows(layout, row, bytes);
        }
        let tiles = steps(layout).div_ceil(rows_per_tile).into();
        Self {
            rows_per_tile,
            parts_per_row: 1,
            tile_row_bytes: row,
            tiles,
        }
    }

    /// Tiles of parts of a row of `row` bytes, of whole vectors, or of a whole row.
    fn parts_of_rows(layout: &Layout<'_>, row: u32, bytes: u32) -> Self {
        let parts_per_row = row.div_ceil(bytes);
        let tile_row_bytes = if parts_per_row == 1 {
            row
        } else {
            row.div_ceil(parts_per_row).next_multiple_of(VEC16)
        };
        let tiles = u64::from(steps(layout)) * u64::from(parts_per_row);
        Self {
            rows_per_tile: 1,
            parts_per_row,
            tile_row_bytes,
            tiles,
        }
    }
}

/// Checks that rows and the strides of all dimensions are multiples of a unit, and returns the bytes of a row.
fn row_of_units(layout: &Layout<'_>, unit: u32) -> Result<u32, RejectReason> {
    let block = layout.block().ok_or(NO_BLOCK)?;
    has_units(layout)?;
    let row = layout.bytes(block.size);
    reject_if(row > u64::from(u32::MAX), "a row has 4 GiB or more")?;
    let divides = |elements: u32| layout.divides(elements, unit);
    let mut strides = layout
        .outside()
        .chain([&layout.axis])
        .flat_map(|d| [d.in_stride, d.out_stride]);
    reject_if(
        unit < layout.width || !divides(block.size) || !strides.all(divides),
        NOT_DIVIDED,
    )?;
    Ok(row as u32)
}

/// The parameters of tiles of rows of `row` bytes, for thread groups of `group` threads.
fn tile_parameters(layout: &Layout<'_>, cut: &Cut, row: u32, tiles: u64, group: u32) -> RowTiles {
    RowTiles {
        r: layout.parameters(tiles, layout.outside().map(dim)),
        tiles_per_data_block: FastDiv::new(cut.tiles as u32),
        parts_per_row: FastDiv::new(cut.parts_per_row),
        row_bytes: FastDiv::new(row),
        rows_per_tile: cut.rows_per_tile,
        tile_row_bytes: cut.tile_row_bytes,
        element_bytes: layout.width,
        group_size_log2: group.trailing_zeros(),
    }
}

/// Out of place: a row, or a part of one, for each thread group.
pub(super) fn single_rows(
    layout: &Layout<'_>,
    unit: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    reject_if(layout.in_place(), NOT_IN_PLACE)?;
    let row = row_of_units(layout, unit)?;
    reject_if(
        row < MIN_SINGLE_ROW_BYTES,
        ("a row is shorter than {} bytes", MIN_SINGLE_ROW_BYTES),
    )?;
    let cut = Cut::parts_of_rows(layout, row, SINGLE_ROW_BYTES);
    // A run may begin and end inside a vector. A group needs no more threads than it has vectors.
    let vectors = cut.tile_row_bytes.div_ceil(VEC16) + 2;
    let group = less_rounding(vectors).next_power_of_two().min(THREADS);
    let (threads, together) = block_of_groups(group);
    let shared = (RUN_SLACK_BEFORE + together * (vectors + RUN_SLACK_BEHIND)) * VEC16;
    let tiles = layout.outside_count() * cut.tiles;
    let grid = Grid {
        blocks: grid(tiles)?.div_ceil(together),
        threads,
        shared,
    };
    let sectors = tiles as f64 * (f64::from(cut.tile_row_bytes) / 32.0 + 1.0) * 2.0;
    let rounds = f64::from(cut.tile_row_bytes.div_ceil(VEC16).div_ceil(group)) * 2.0;
    let work = Work {
        misses: sectors,
        rounds,
        ..layout.work()
    };
    let launch = Launch::new(
        layout.entry(&kernels::SINGLE_ROWS, unit)?,
        grid,
        unit,
        VEC16,
    );
    list.add(layout, launch, work, &costs::SINGLE_ROWS, unit, || {
        tile_parameters(layout, &cut, row, tiles, group)
    })
}

/// Tiles of whole rows if rows are adjacent, in place also of parts of a row, in units of `UNIT` bytes.
pub(super) fn row_tiles<const UNIT: u32>(
    layout: &Layout<'_>,
    bytes: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    let row = row_of_units(layout, UNIT)?;
    let is_short = layout.in_place() && !layout.rows_are_a_run() && row < MIN_LONE_ROW_BYTES;
    reject_if(
        is_short,
        (
            "rows that are not adjacent have fewer than {} bytes",
            MIN_LONE_ROW_BYTES,
        ),
    )?;
    let cut = Cut::new(layout, row, bytes);
    reject_if(
        cut.rows_per_tile == 1 && !layout.in_place(),
        "a tile has a single row",
    )?;
    // A run may begin and end inside a vector. In place, there are two runs.
    let vectors = cut.rows_per_tile * cut.tile_row_bytes / VEC16 + 2;
    let runs = if layout.in_place() { 2 } else { 1 };
    reject_if(
        bytes * runs > MAX_STAGED_BYTES,
        ("two tiles have more than {} bytes", MAX_STAGED_BYTES),
    )?;
    let shared = (RUN_SLACK_BEFORE + runs * (vectors + RUN_SLACK_BEHIND)) * VEC16;
    let tiles = layout.outside_count() * cut.tiles;
    let grid = Grid {
        blocks: grid(tiles)?,
        threads: THREADS,
        shared,
    };
    let threads = THREADS / runs;
    let tile = cut.rows_per_tile * cut.tile_row_bytes;
    let vector_rounds = f64::from(tile.div_ceil(VEC16).div_ceil(threads)) * 2.0;
    let unit_rounds = match cut.rows_per_tile {
        1 => 0.0,
        _ if layout.in_place() && joins_rows(UNIT, row.into()) => 0.0,
        _ => f64::from((tile / UNIT / 2).div_ceil(threads)),
    };
    let sectors = f64::from(grid.blocks)
        * (f64::from(tile) / 32.0 + 1.0)
        * 2.0
        * f64::from(runs)
        * layout.moving();
    let work = Work {
        misses: sectors,
        rounds: vector_rounds + unit_rounds / 4.0,
        ..layout.work()
    };
    let launch = Launch::new(layout.entry(&kernels::ROW_TILES, UNIT)?, grid, UNIT, VEC16);
    list.add(layout, launch, work, &costs::ROW_TILES, UNIT, || {
        tile_parameters(layout, &cut, row, tiles, THREADS)
    })
}
