//! reverse_rows.cu: blocks of rows with one length, if the rows are not whole vectors.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::{dim, Layout, Reverse, ReverseDim, NOT_DIVIDED, NO_BLOCK};
use super::segments::{block_of_groups, less_rounding, staged, TOO_LARGE};
use super::{blocks, grid, reject_if, vectors_of_run, RejectReason};
use crate::cuda::tuning::rows::*;
use crate::cuda::tuning::segments::{PACKED_BLOCK_BYTES, PACKED_BLOCK_BYTES_IN_PLACE, VECTORS_PER_THREAD_IN_PLACE};
use crate::cuda::tuning::{THREADS, VEC16};
use crate::cuda::{kernels, Launch};

/// `Rows` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Rows {
    r: Reverse,
    vectors_per_row: FastDiv,
    row_bytes: u32,
    element_bytes: u32,
}
const _: () = assert!(size_of::<Rows>() == 344 && std::mem::offset_of!(Rows, r) == 0);

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
const _: () = assert!(size_of::<RowTiles>() == 384 && std::mem::offset_of!(RowTiles, r) == 0);

/// Rows at any alignment, a vector at a time; in place only if all rows begin at the same alignment.
pub(super) fn rows(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let block = layout.block().ok_or(NO_BLOCK)?;
    let bytes = layout.bytes(block.size);
    reject_if(bytes < MIN_ROW_BYTES, ("a row is shorter than {} bytes: mostly its two ends", MIN_ROW_BYTES))?;
    reject_if(bytes > u64::from(u32::MAX), "a row has 4 GiB or more")?;
    let axis = &layout.axis;
    let whole = |stride: u32| layout.divides(stride, VEC16);
    let in_whole = whole(axis.in_stride) && layout.outside().all(|d| whole(d.in_stride));
    let alike = in_whole && whole(axis.out_stride) && layout.outside().all(|d| whole(d.out_stride));
    reject_if(!alike && layout.in_place(), "rows that change places begin at different alignments")?;
    let are_tiles = !alike && layout.rows_are_a_run();
    reject_if(are_tiles, "adjacent rows at different alignments are copied in tiles")?;
    let vectors = vectors_of_run(block.size, layout.width, false);
    let mut dims: Vec<ReverseDim> = layout.outside().map(dim).collect();
    layout.insert_axis(&mut dims, if layout.in_place() { axis.size / 2 } else { axis.size }, axis.out_stride);
    let items = dims.iter().map(|dim| u64::from(dim.size.divisor)).product::<u64>() * u64::from(vectors);
    let params = Rows {
        r: layout.parameters(items, dims.into_iter()),
        vectors_per_row: FastDiv::new(vectors),
        row_bytes: bytes as u32,
        element_bytes: layout.width,
    };
    let entry = kernels::ROWS.entry(layout.mode, "");
    let blocks = blocks(items, VECTORS_PER_THREAD);
    Ok(Launch { access: VEC16, ..Launch::new(entry, blocks, layout.width, params) })
}

/// Adjacent blocks, staged whole. Rows are reversed in units of `UNIT` bytes.
pub(super) fn packed_rows<const UNIT: u32>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let block = layout.block_exceeding(MOST_GATHERED, MOST_GATHERED_OF_4_BYTES)?;
    let most = if layout.in_place() { PACKED_BLOCK_BYTES_IN_PLACE } else { PACKED_BLOCK_BYTES };
    let (mut params, mut shared) = staged(layout, most)?;
    let (mut threads, mut together) = (THREADS, params.segments_per_block);
    if layout.in_place() {
        // One thread group per block. It stages one vector more, because the block may begin inside one.
        let vectors = params.segment_bytes.divisor.div_ceil(VEC16) + 1;
        // Not for bytes, which are reversed one by one and need the threads.
        let vectors_of_group = if layout.width == 1 { vectors } else { less_rounding(vectors) };
        let group = vectors_of_group.div_ceil(VECTORS_PER_THREAD_IN_PLACE).next_power_of_two().min(THREADS);
        (threads, together) = block_of_groups(group);
        params.group_size_log2 = group.trailing_zeros();
        params.vectors_per_segment = vectors;
        shared = (RUN_SLACK_BEFORE + together * (vectors + RUN_SLACK_BEHIND)) * VEC16;
        reject_if(shared > layout.target.shared_memory, TOO_LARGE)?;
    }
    reject_if(UNIT < layout.width || !layout.divides(block.size, UNIT), NOT_DIVIDED)?;
    let (entry, blocks) = (layout.entry(&kernels::PACKED_ROWS, UNIT), params.r.items.div_ceil(together));
    Ok(Launch { threads, shared, access: VEC16, ..Launch::new(entry, blocks, UNIT, params) })
}

/// Tiles of whole rows if rows are adjacent, otherwise of parts of a row, in units of `UNIT` bytes.
pub(super) fn row_tiles<const UNIT: u32>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let block = layout.block_exceeding(MOST_GATHERED, MOST_GATHERED_OF_4_BYTES)?;
    let row = layout.bytes(block.size);
    let row = u32::try_from(row).map_err(|_| "a row has 4 GiB or more")?;
    let bytes = layout.outside_count() * u64::from(layout.axis.size) * u64::from(row);
    let tile_bytes = match bytes / u64::from(layout.target.multiprocessors) {
        _ if layout.in_place() => TILE_BYTES,
        ..SMALL_TILES_BELOW => SMALL_TILE_BYTES,
        WIDE_TILES_FROM.. => WIDE_TILE_BYTES,
        _ => TILE_BYTES,
    };
    let (rows_per_tile, parts_per_row) = match tile_bytes / row {
        rows @ 2.. if layout.rows_are_a_run() => (rows, 1),
        _ => (1, row.div_ceil(tile_bytes)),
    };
    let is_short = rows_per_tile == 1 && block.size < MIN_LONE_ROW;
    reject_if(is_short, ("rows that are not adjacent have fewer than {} elements", MIN_LONE_ROW))?;
    let tile_row_bytes = if parts_per_row == 1 { row } else { row.div_ceil(parts_per_row).next_multiple_of(VEC16) };
    let axis = &layout.axis;
    let steps = if layout.in_place() { axis.size / 2 } else { axis.size };
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
    // A run may begin and end inside a vector. In place, there are two runs.
    let vectors = rows_per_tile * tile_row_bytes / VEC16 + 2;
    let runs = if layout.in_place() { 2 } else { 1 };
    let shared = (RUN_SLACK_BEFORE + runs * (vectors + RUN_SLACK_BEHIND)) * VEC16;
    let divides = |elements: u32| layout.divides(elements, UNIT);
    let all_divide = divides(block.size)
        && divides(axis.in_stride)
        && divides(axis.out_stride)
        && layout.outside().all(|d| divides(d.in_stride) && divides(d.out_stride));
    reject_if(UNIT < layout.width || !all_divide, NOT_DIVIDED)?;
    let entry = layout.entry(&kernels::ROW_TILES, UNIT);
    Ok(Launch { shared, access: VEC16, ..Launch::new(entry, blocks, UNIT, params) })
}
