//! reverse_columns.cu: few lanes side by side, each with its own length, in adjacent groups.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::{are_adjacent, dim, Layout, Reverse};
use super::segments::per_block;
use super::{reject_if, RejectReason};
use crate::cuda::tuning::columns::*;
use crate::cuda::tuning::{segments, strips, THREADS, VEC16};
use crate::cuda::{kernels, Launch};

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

/// Whole groups of lanes side by side.
pub(super) fn columns(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let row = layout.row_exceeding(strips::MOST_GATHERED)?;
    layout.lanes_are_at_least(&LEAST_AXIS)?;
    let divides = layout.bytes(row.size).is_multiple_of(WHOLE_STRIP_BYTES);
    reject_if(divides, ("rows of lanes divide into whole strips of {} bytes", WHOLE_STRIP_BYTES))?;
    reject_if(!layout.in_place() && layout.width == 8, "elements of 8 bytes are copied as fast one by one")?;
    let axis = &layout.axis;
    let elements = u64::from(axis.size) * u64::from(row.size);
    let bytes = elements * u64::from(layout.width);
    reject_if(bytes > MAX_GROUP_BYTES, "a group of lanes side by side is too large to be staged whole")?;
    reject_if(row.size > THREADS, "there are more lanes side by side than threads in a block")?;
    reject_if(axis.in_stride != row.size || axis.out_stride != row.size, "rows of lanes are not adjacent in memory")?;
    reject_if(!are_adjacent(layout.outside(), elements), "groups are not adjacent in memory")?;
    let groups = layout.outside_count();
    let per_multiprocessor = if layout.in_place() { 1 } else { segments::BLOCKS_PER_MULTIPROCESSOR };
    let are_few = bytes > STAGED_BYTES && groups < per_multiprocessor * u64::from(layout.target.multiprocessors);
    reject_if(are_few, "there are too few large groups of lanes side by side")?;
    let together = per_block(layout, groups, STAGED_BYTES / bytes);
    // The lengths, the ends, the groups, and one more vector because the groups may begin inside one.
    let vectors = |bytes: u64| bytes.div_ceil(VEC16.into());
    let shared = u64::from(VEC16)
        * (vectors(together * u64::from(row.size) * 4) + vectors(together * 4) + vectors(together * bytes) + 1);
    reject_if(shared > u64::from(layout.target.shared_memory), "a group does not fit shared memory")?;
    let params = Columns {
        r: layout.parameters(groups, layout.outside().map(dim)),
        axis: FastDiv::new(axis.size),
        columns: FastDiv::new(row.size),
        group_bytes: FastDiv::new(bytes as u32),
        groups_per_block: together as u32,
        length_stride: row.length_stride,
    };
    let blocks = groups.div_ceil(together) as u32;
    let launch = Launch::new(layout.entry(&kernels::COLUMNS, layout.width), blocks, layout.width, params);
    Ok(Launch { shared: shared as u32, ..launch })
}
