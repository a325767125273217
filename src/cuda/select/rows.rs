//! reverse_rows.cu: inner blocks of elements of at most 4 bytes, with rows of any number of bytes at any alignment.
//!
//! ```text
//! | row 0 | row 1 | ... | row T-1 |      rows change places, and the bytes of a row keep their order
//! ```
//!
//! | kernel | a thread block has |
//! | --- | --- |
//! | [`PackedRows`] | whole inner blocks that are adjacent in memory |
//! | [`RowTiles`] | a tile of an inner block that is too large for that: several rows, or in place a part of one |
//! | [`SingleRows`] | out of place, a row or a part of one for each thread group |
//!
//! All stage rows in shared memory and write vectors of 16 bytes.

use super::fit::{Kernel, Needs};
use super::layout::parameters::dim;
use super::layout::{Layout, NOT_DIVIDED, NOT_IN_PLACE, NO_BLOCK};
use super::segments::{block_of_groups, less_rounding, Staged};
use super::{grid, reject_if, RejectReason};
use crate::cuda::estimate::Work;
use crate::cuda::launch::Grid;
use crate::cuda::parameters::rows::{
    RowTiles as RowTilesParameters, MIN_JOINED_ROW, RUN_SLACK_BEFORE, RUN_SLACK_BEHIND,
};
use crate::cuda::parameters::segments::Segments;
use crate::cuda::parameters::{FastDiv, THREADS};
pub(super) use crate::cuda::tuning::rows::TILE_BYTES;
use crate::cuda::tuning::rows::*;
use crate::cuda::tuning::segments::VECTORS_PER_THREAD_IN_PLACE;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

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

/// Adjacent inner blocks, staged whole. Rows are reversed in units of `unit` bytes.
pub(super) struct PackedRows {
    staged: Staged,
    unit: u32,
    /// Bytes of a row.
    row: u64,
    /// Threads of a block.
    group: u32,
    /// In place, the vectors of shared memory that a group stages.
    vectors_of_group: u32,
}

impl PackedRows {
    /// A thread group in place: its threads, and the vectors that it stages. It stages an additional vector, because
    /// the block may begin inside one. An odd number spreads groups over all banks.
    fn group_in_place(layout: &Layout<'_>, staged: &Staged) -> (u32, u32) {
        let vectors = ((staged.bytes as u32).div_ceil(VEC16) + 1) | 1;
        // Not for bytes, which are reversed one by one and need the threads.
        let vectors_of_group = if layout.width == 1 {
            vectors
        } else {
            less_rounding(vectors)
        };
        let threads = vectors_of_group.div_ceil(VECTORS_PER_THREAD_IN_PLACE);
        (threads.next_power_of_two().min(THREADS), vectors)
    }

    /// Steps of a thread that reverses rows in shared memory.
    fn rounds_of_units(&self, layout: &Layout<'_>) -> f64 {
        let pairs = self.staged.bytes.div_ceil(self.unit.into()).div_ceil(2);
        if !layout.in_place() {
            return self.staged.rounds_of_items(pairs, self.group);
        }
        let items = if joins_rows(self.unit, self.row) {
            self.staged.bytes.div_ceil(VEC16.into())
        } else {
            pairs
        };
        items.div_ceil(self.group.into()) as f64 * layout.moving()
    }
}

impl Kernel for PackedRows {
    type Parameters = Segments;

    fn fit(layout: &Layout<'_>, unit: u32) -> Result<Self, RejectReason> {
        let block = layout.block().ok_or(NO_BLOCK)?;
        has_units(layout)?;
        let staged = Staged::new(layout)?;
        reject_if(
            unit < layout.width || !layout.divides(block.size, unit),
            NOT_DIVIDED,
        )?;
        let (group, vectors_of_group) = if layout.in_place() {
            Self::group_in_place(layout, &staged)
        } else {
            (staged.group(), 0)
        };
        Ok(Self {
            staged,
            unit,
            row: layout.bytes(block.size),
            group,
            vectors_of_group,
        })
    }

    fn needs(&self, _: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::PACKED_ROWS,
            costs: &costs::PACKED_ROWS,
            unit: self.unit,
            alignment: self.unit,
            access: VEC16,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        if !layout.in_place() {
            return Ok(self.staged.grid);
        }
        let block = block_of_groups(self.group);
        // A single segment takes one vector less than it does out of place, and several take less than 12 KiB.
        let of_groups = block.groups * (self.vectors_of_group + RUN_SLACK_BEHIND);
        Ok(Grid {
            blocks: self.staged.count.div_ceil(block.groups.into()) as u32,
            threads: block.threads,
            shared: (RUN_SLACK_BEFORE + of_groups) * VEC16,
        })
    }

    fn work(&self, layout: &Layout<'_>, grid: Grid) -> Work {
        let mut work = layout.work();
        if layout.in_place() {
            work.misses += self.staged.count as f64;
        }
        let vectors = grid.shared.div_ceil(VEC16).div_ceil(grid.threads);
        work.rounds = self.rounds_of_units(layout) / 4.0 + f64::from(vectors) / 2.0;
        work
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> Segments {
        self.staged
            .parameters(layout, self.group, self.vectors_of_group)
    }
}

/// How rows are cut into tiles of `bytes` bytes.
struct Cut {
    rows_per_tile: u32,
    parts_per_row: u32,
    /// Bytes of a row that are in a tile.
    tile_row_bytes: u32,
    /// Tiles of an inner block.
    tiles: u64,
}

impl Cut {
    /// Tiles of several rows of `row` bytes, if they are adjacent and fit, else of parts of rows.
    fn new(layout: &Layout<'_>, row: u32, bytes: u32) -> Self {
        let rows_per_tile = bytes / row;
        if rows_per_tile < 2 || !layout.rows_are_a_run() {
            return Self::parts_of_rows(layout, row, bytes);
        }
        let tiles = layout.steps().div_ceil(rows_per_tile).into();
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
        let tiles = u64::from(layout.steps()) * u64::from(parts_per_row);
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
    let is_divided = unit >= layout.width
        && layout.divides(block.size, unit)
        && layout
            .outside()
            .chain([&layout.axis])
            .all(|d| layout.divides(d.in_stride, unit) && layout.divides(d.out_stride, unit));
    reject_if(!is_divided, NOT_DIVIDED)?;
    Ok(row as u32)
}

/// The parameters of tiles of rows of `row` bytes, for thread groups of `group` threads.
fn tile_parameters(
    layout: &Layout<'_>,
    cut: &Cut,
    row: u32,
    tiles: u64,
    group: u32,
) -> RowTilesParameters {
    RowTilesParameters {
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
pub(super) struct SingleRows {
    unit: u32,
    /// Bytes of a row.
    row: u32,
    cut: Cut,
    /// Vectors that a thread group stages.
    vectors: u32,
    /// Threads of a thread group.
    group: u32,
}

impl SingleRows {
    fn tiles(&self, layout: &Layout<'_>) -> u64 {
        layout.outside_count() * self.cut.tiles
    }
}

impl Kernel for SingleRows {
    type Parameters = RowTilesParameters;

    fn fit(layout: &Layout<'_>, unit: u32) -> Result<Self, RejectReason> {
        reject_if(layout.in_place(), NOT_IN_PLACE)?;
        let row = row_of_units(layout, unit)?;
        reject_if(
            row < MIN_SINGLE_ROW_BYTES,
            ("a row is shorter than {} bytes", MIN_SINGLE_ROW_BYTES),
        )?;
        let cut = Cut::parts_of_rows(layout, row, SINGLE_ROW_BYTES);
        // A run may begin and end inside a vector. A group needs no more threads than it has vectors.
        let vectors = cut.tile_row_bytes.div_ceil(VEC16) + 2;
        Ok(Self {
            unit,
            row,
            cut,
            vectors,
            group: less_rounding(vectors).next_power_of_two().min(THREADS),
        })
    }

    fn needs(&self, _: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::SINGLE_ROWS,
            costs: &costs::SINGLE_ROWS,
            unit: self.unit,
            alignment: self.unit,
            access: VEC16,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        let block = block_of_groups(self.group);
        let of_groups = block.groups * (self.vectors + RUN_SLACK_BEHIND);
        Ok(Grid {
            blocks: grid(self.tiles(layout))?.div_ceil(block.groups),
            threads: block.threads,
            shared: (RUN_SLACK_BEFORE + of_groups) * VEC16,
        })
    }

    fn work(&self, layout: &Layout<'_>, _: Grid) -> Work {
        let bytes = self.cut.tile_row_bytes;
        Work {
            misses: self.tiles(layout) as f64 * (f64::from(bytes) / 32.0 + 1.0) * 2.0,
            rounds: f64::from(bytes.div_ceil(VEC16).div_ceil(self.group)) * 2.0,
            ..layout.work()
        }
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> RowTilesParameters {
        tile_parameters(layout, &self.cut, self.row, self.tiles(layout), self.group)
    }
}

/// Tiles of whole rows if rows are adjacent, in place also of parts of a row, in units of `UNIT` bytes.
pub(super) struct RowTiles<const UNIT: u32> {
    /// Bytes of a row.
    row: u32,
    cut: Cut,
    /// Tiles that a thread block stages: in place, a tile and the one that it changes places with.
    runs: u32,
}

impl<const UNIT: u32> RowTiles<UNIT> {
    fn tiles(&self, layout: &Layout<'_>) -> u64 {
        layout.outside_count() * self.cut.tiles
    }

    /// Bytes of a tile.
    fn bytes(&self) -> u32 {
        self.cut.rows_per_tile * self.cut.tile_row_bytes
    }

    /// Steps of a thread that reverses rows in shared memory. Joined rows are reversed while they are written.
    fn rounds_of_units(&self, layout: &Layout<'_>) -> f64 {
        let is_joined = layout.in_place() && joins_rows(UNIT, self.row.into());
        if self.cut.rows_per_tile == 1 || is_joined {
            return 0.0;
        }
        let pairs = self.bytes() / UNIT / 2;
        f64::from(pairs.div_ceil(THREADS / self.runs))
    }
}

impl<const UNIT: u32> Kernel for RowTiles<UNIT> {
    type Parameters = RowTilesParameters;

    fn fit(layout: &Layout<'_>, bytes: u32) -> Result<Self, RejectReason> {
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
        let runs = if layout.in_place() { 2 } else { 1 };
        reject_if(
            bytes * runs > MAX_STAGED_BYTES,
            ("two tiles have more than {} bytes", MAX_STAGED_BYTES),
        )?;
        Ok(Self { row, cut, runs })
    }

    fn needs(&self, _: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::ROW_TILES,
            costs: &costs::ROW_TILES,
            unit: UNIT,
            alignment: UNIT,
            access: VEC16,
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        // A run may begin and end inside a vector.
        let vectors = self.bytes() / VEC16 + 2;
        Ok(Grid {
            blocks: grid(self.tiles(layout))?,
            threads: THREADS,
            shared: (RUN_SLACK_BEFORE + self.runs * (vectors + RUN_SLACK_BEHIND)) * VEC16,
        })
    }

    fn work(&self, layout: &Layout<'_>, grid: Grid) -> Work {
        let threads = THREADS / self.runs;
        let vector_rounds = f64::from(self.bytes().div_ceil(VEC16).div_ceil(threads)) * 2.0;
        let sectors_of_tile = f64::from(self.bytes()) / 32.0 + 1.0;
        let sectors = f64::from(grid.blocks) * sectors_of_tile * 2.0 * f64::from(self.runs);
        Work {
            misses: sectors * layout.moving(),
            rounds: vector_rounds + self.rounds_of_units(layout) / 4.0,
            ..layout.work()
        }
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> RowTilesParameters {
        tile_parameters(layout, &self.cut, self.row, self.tiles(layout), THREADS)
    }
}
