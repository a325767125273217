//! reverse_columns.cu: few lanes side by side, each with its own length, in adjacent groups.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::parameters::{dim, Reverse};
use super::layout::work::WARP;
use super::layout::{are_adjacent, Layout, Sketch, NO_ROW};
use super::segments::per_block;
use super::{reject_if, RejectReason};
use crate::cuda::costs;
use crate::cuda::estimate::{Grid, Work};
use crate::cuda::kernels;
use crate::cuda::launch::words;
use crate::cuda::tuning::segments::STAGED_BYTES;
use crate::cuda::tuning::{THREADS, VEC16};

/// `Columns` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Columns {
    r: Reverse,
    axis: FastDiv,
    columns: FastDiv,
    group_bytes: FastDiv,
    groups_per_block: u32,
    length_stride: u32,
}
const _: () = assert!(size_of::<Columns>() == 376 && std::mem::offset_of!(Columns, r) == 0);

/// Elements of a group of `row` lanes, and groups per thread block.
fn groups(layout: &Layout<'_>, row: u32) -> (u64, u64) {
    let elements = u64::from(layout.axis.size) * u64::from(row);
    let bytes = elements * u64::from(layout.width);
    (elements, per_block(layout, layout.outside_count(), STAGED_BYTES / bytes.max(1)))
}

/// Whole groups of lanes side by side.
pub(super) fn columns(layout: &Layout<'_>, _: u32) -> Result<Sketch, RejectReason> {
    let row = layout.side_by_side().ok_or(NO_ROW)?;
    reject_if(!layout.in_place() && layout.width == 8, "it does not copy elements of 8 bytes")?;
    let axis = &layout.axis;
    reject_if(row.size > THREADS, "there are more lanes side by side than threads in a block")?;
    reject_if(axis.in_stride != row.size || axis.out_stride != row.size, "rows of lanes are not adjacent in memory")?;
    let (elements, together) = groups(layout, row.size);
    reject_if(!are_adjacent(layout.outside(), elements), "groups are not adjacent in memory")?;
    let bytes = elements * u64::from(layout.width);
    // The lengths, the ends, the groups, and one more vector because the groups may begin inside one.
    let vectors = |bytes: u64| bytes.div_ceil(VEC16.into());
    let shared = u64::from(VEC16)
        * (vectors(together * u64::from(row.size) * 4) + vectors(together * 4) + vectors(together * bytes) + 1);
    reject_if(shared > u64::from(layout.target.shared_memory), "a group does not fit shared memory")?;
    let blocks = layout.outside_count().div_ceil(together) as u32;
    let grid = Grid { blocks, threads: THREADS, shared: shared as u32 };
    let once = layout.work();
    // In place, all lanes are read up to the end of the longest.
    let lanes = f64::from(row.size);
    let whole = if layout.in_place() { lanes / (lanes + 1.0) / layout.moving_sectors() } else { 1.0 };
    let (size, threads) = (shared as f64, f64::from(THREADS));
    let work = Work {
        bytes: once.bytes * whole,
        accesses: once.accesses * whole,
        misses: once.misses * whole,
        steps: layout.elements() as f64 * f64::from(layout.width) / f64::from(VEC16) / WARP,
        details: layout.elements() as f64 / WARP * layout.moving(),
        rounds: (size / f64::from(VEC16) + size / f64::from(layout.width)) / threads / 4.0,
        ..once
    };
    let parameters = |layout: &Layout<'_>, _: &Sketch, _| {
        let (size, length_stride) = layout.side_by_side().map_or((1, 0), |row| (row.size, row.length_stride));
        let (elements, together) = groups(layout, size);
        words(Columns {
            r: layout.parameters(layout.outside_count(), layout.outside().map(dim)),
            axis: FastDiv::new(layout.axis.size),
            columns: FastDiv::new(size),
            group_bytes: FastDiv::new(elements as u32 * layout.width),
            groups_per_block: together as u32,
            length_stride,
        })
    };
    let (family, costs, unit) = (&kernels::COLUMNS, &costs::COLUMNS, layout.width);
    Ok(Sketch { family, costs, unit, grid, alignment: unit, access: unit, work, parameters })
}
