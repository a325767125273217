//! reverse_rows.cu: blocks of rows with one length, whose rows are no whole vectors.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::{dim, reverse_parameters, Layout, Reverse, ReverseDim, NO_BLOCK};
use super::segments::{block_of_groups, staged, TOO_LARGE};
use super::{blocks, grid, vectors_of_run, Because, Candidates};
use crate::cuda::kernels;
use crate::cuda::launch::Launch;
use crate::cuda::tuning::rows::*;
use crate::cuda::tuning::segments::{PACKED_BLOCK_BYTES, PACKED_BLOCK_BYTES_IN_PLACE, VECTORS_PER_THREAD_IN_PLACE};
use crate::cuda::tuning::{THREADS, VEC16};

/// `Rows` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Rows {
    r: Reverse,
    vectors_per_row: FastDiv,
    row_bytes: u32,
    element_bytes: u32,
}
reverse_parameters!(Rows, 344);

/// `RowTiles` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct RowTiles {
    r: Reverse,
    tiles_per_block: FastDiv,
    parts_per_row: FastDiv,
    row_bytes: FastDiv,
    rows_per_tile: u32,
    tile_row_bytes: u32,
    element_bytes: u32,
    reserved: u32,
}
reverse_parameters!(RowTiles, 384);

const WIDE: Because = "elements of 8 bytes are moved faster one by one";

/// Rows at any alignment, a vector at a time; in place, where all rows begin at one alignment.
pub(super) fn rows(layout: &Layout<'_>, in_place: bool, found: &mut Candidates) -> Result<(), Because> {
    let block = layout.block().ok_or(NO_BLOCK)?;
    if layout.width == 8 {
        return Err(WIDE);
    }
    let bytes = u64::from(block.size) * u64::from(layout.width);
    if bytes < MIN_ROW_BYTES {
        return Err("a row is shorter than 256 bytes: mostly its two ends");
    }
    if bytes > u64::from(u32::MAX) {
        return Err("a row has 4 GiB or more");
    }
    let axis = &layout.axis;
    let whole = |stride: u32| layout.divides(stride, VEC16);
    let in_whole = whole(axis.in_stride) && layout.outside().all(|d| whole(d.in_stride));
    let alike = in_whole && whole(axis.out_stride) && layout.outside().all(|d| whole(d.out_stride));
    if !alike && in_place {
        return Err("rows that change places begin at different alignments");
    }
    if !alike && bytes < MIN_UNALIKE_ROW_BYTES && layout.rows_are_a_run() {
        return Err("rows of less than 2048 bytes at different alignments are copied in tiles");
    }
    let vectors = vectors_of_run(block.size, layout.width, false);
    let mut dims: Vec<ReverseDim> = layout.outside().map(dim).collect();
    layout.insert_axis(&mut dims, if in_place { axis.size / 2 } else { axis.size }, axis.out_stride);
    let items = dims.iter().map(|dim| u64::from(dim.size.divisor)).product::<u64>() * u64::from(vectors);
    found.push(Launch {
        entry: if in_place { kernels::ROWS_IN_PLACE.entry(0) } else { kernels::ROWS.entry(0) },
        blocks: blocks(items, VECTORS_PER_THREAD),
        threads: THREADS,
        shared: 0,
        alignment: layout.width,
        access: VEC16,
        params: Rows {
            r: layout.parameters(items, dims.into_iter()),
            vectors_per_row: FastDiv::new(vectors),
            row_bytes: bytes as u32,
            element_bytes: layout.width,
        },
    });
    Ok(())
}

/// Adjacent blocks, staged whole, their rows reversed in units of 4 bytes down to those of an element; the last takes any
/// pointers.
pub(super) fn packed_rows(layout: &Layout<'_>, in_place: bool, found: &mut Candidates) -> Result<(), Because> {
    if layout.width == 8 {
        return Err(WIDE);
    }
    let (family, most) = if in_place {
        (&kernels::PACKED_ROWS_IN_PLACE, PACKED_BLOCK_BYTES_IN_PLACE)
    } else {
        (&kernels::PACKED_ROWS, PACKED_BLOCK_BYTES)
    };
    let mut launch = staged(layout, family, most)?;
    if in_place {
        // A thread group per block, with vectors of its own: one more where the block begins inside one.
        let vectors = launch.params.segment_bytes.divisor.div_ceil(VEC16) + 1;
        // A few vectors more than a power of two do not double the threads, unless bytes are reversed one by one.
        let vectors_of_group = if layout.width == 1 { vectors } else { vectors * 4 / 5 };
        let group = vectors_of_group.div_ceil(VECTORS_PER_THREAD_IN_PLACE).next_power_of_two().min(THREADS);
        let (threads, together) = block_of_groups(group);
        launch.params.group_size_log2 = group.trailing_zeros();
        launch.params.vectors_per_segment = vectors;
        launch.threads = threads;
        launch.shared = together * vectors * VEC16;
        launch.blocks = launch.params.r.items.div_ceil(together);
        if launch.shared > layout.target.shared_memory {
            return Err(TOO_LARGE);
        }
    }
    let row = launch.params.row_bytes.divisor;
    for unit in [4, 2, 1].into_iter().filter(|&unit| unit >= layout.width && row % unit == 0) {
        found.push(Launch { entry: family.entry(unit.trailing_zeros() as usize), alignment: unit, ..launch });
    }
    Ok(())
}

/// Tiles of whole rows, where rows are adjacent, or of parts of a row, in units of 4 bytes down to those of an element; the
/// last takes any pointers.
pub(super) fn row_tiles(layout: &Layout<'_>, in_place: bool, found: &mut Candidates) -> Result<(), Because> {
    let block = layout.block().ok_or(NO_BLOCK)?;
    if layout.width == 8 {
        return Err(WIDE);
    }
    let row = u64::from(block.size) * u64::from(layout.width);
    let row = u32::try_from(row).map_err(|_| "a row has 4 GiB or more")?;
    let tile = if in_place { TILE_BYTES_IN_PLACE } else { TILE_BYTES };
    let (rows_per_tile, parts_per_row) = match tile / row {
        rows @ 2.. if layout.rows_are_a_run() => (rows, 1),
        _ => (1, row.div_ceil(tile)),
    };
    if rows_per_tile == 1 && block.size < MIN_LONE_ROW {
        return Err("rows that are not adjacent have fewer than 1000 elements");
    }
    let tile_row_bytes = if parts_per_row == 1 { row } else { row.div_ceil(parts_per_row).next_multiple_of(VEC16) };
    let axis = &layout.axis;
    let steps = if in_place { axis.size / 2 } else { axis.size };
    let tiles = u64::from(steps.div_ceil(rows_per_tile)) * u64::from(parts_per_row);
    let items = layout.outside_count() * tiles;
    let blocks = grid(items)?;
    let params = RowTiles {
        r: layout.parameters(items, layout.outside().map(dim)),
        tiles_per_block: FastDiv::new(tiles as u32),
        parts_per_row: FastDiv::new(parts_per_row),
        row_bytes: FastDiv::new(row),
        rows_per_tile,
        tile_row_bytes,
        element_bytes: layout.width,
        reserved: 0,
    };
    // Of a run: its vectors, one more where it begins inside one, and one before and behind it for unaligned reads. Copying,
    // a tile has two runs, but no more rows.
    let run = rows_per_tile * tile_row_bytes / VEC16 + 3;
    let shared = if in_place { 2 * run + 2 } else { run + 4 } * VEC16;
    let family = if in_place { &kernels::ROW_TILES_IN_PLACE } else { &kernels::ROW_TILES };
    let fits = |&unit: &u32| {
        unit >= layout.width
            && row % unit == 0
            && layout.divides(axis.in_stride, unit)
            && layout.divides(axis.out_stride, unit)
            && layout.outside().all(|d| layout.divides(d.in_stride, unit) && layout.divides(d.out_stride, unit))
    };
    for unit in [4, 2, 1].into_iter().filter(fits) {
        let entry = family.entry(unit.trailing_zeros() as usize);
        found.push(Launch { entry, blocks, threads: THREADS, shared, alignment: unit, access: VEC16, params });
    }
    Ok(())
}
