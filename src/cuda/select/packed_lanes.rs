//! reverse_packed_lanes.cu: short contiguous lanes that are adjacent in memory.

use super::layout::{dim, Layout};
use super::segments::staged;
use super::{blocks, reject_if, RejectReason};
use crate::cuda::tuning::segments::*;
use crate::cuda::tuning::VEC16;
use crate::cuda::{kernels, Launch};

/// Threads of a warp.
const WARP: u32 = 32;

/// Lanes of 2, 4 or 8 bytes, a vector of them per thread; not in place.
pub(super) fn in_registers(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    layout.contiguous_lanes()?;
    let bytes = layout.bytes(layout.axis.size);
    reject_if(layout.axis.size < 2 || ![2, 4, 8].contains(&bytes), "lanes are not of 2, 4 or 8 bytes")?;
    let [lanes] = layout.dimensions else {
        return Err("lanes are not one dimension after merging".into());
    };
    let are_adjacent = [lanes.in_stride, lanes.out_stride] == [layout.axis.size; 2];
    reject_if(!are_adjacent, "lanes are not adjacent in memory")?;
    let items = u64::from(lanes.size);
    let lanes_per_vector = u64::from(VEC16) / bytes;
    let entry = layout.entry(&kernels::PACKED_LANES_IN_REGISTERS, layout.width);
    let params = layout.parameters(items, std::iter::once(dim(lanes)));
    Ok(Launch::new(entry, blocks(items.div_ceil(lanes_per_vector), 1), VEC16, params))
}

/// Other short lanes, staged.
pub(super) fn in_shared_memory(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    layout.contiguous_lanes()?;
    layout.exceeds(match layout.bytes(layout.axis.size) {
        bytes if bytes.is_multiple_of(VEC16.into()) => 0,
        // Lanes of one element in long rows are a copy.
        _ if layout.axis.size == 1 && layout.row_exceeding(MOST_GATHERED).is_ok() => 0,
        ..SHORT_LANE_BYTES => MOST_GATHERED,
        _ => MOST_GATHERED_OF_LANES,
    })?;
    let most = if layout.in_place() { PACKED_LANE_BYTES_IN_PLACE } else { PACKED_LANE_BYTES };
    reject_if(!layout.in_place() && layout.axis.size >= PACKED_LANE, ("lanes have {} elements or more", PACKED_LANE))?;
    let (mut params, shared) = staged(layout, most - 1)?;
    if layout.in_place() {
        // One thread for every other element: on average, half of the elements are below a length.
        let group = layout.axis.size.div_ceil(2).next_power_of_two().min(WARP);
        params.group_size_log2 = group.trailing_zeros();
    }
    let entry = layout.entry(&kernels::PACKED_LANES, layout.width);
    let blocks = params.r.items.div_ceil(params.segments_per_block);
    Ok(Launch { shared, access: VEC16, ..Launch::new(entry, blocks, layout.width, params) })
}
