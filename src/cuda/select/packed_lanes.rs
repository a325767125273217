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

/// Whether a thread group per lane is faster: threads that reverse adjacent lanes may conflict in banks.
fn are_faster_whole(layout: &Layout<'_>) -> bool {
    let (lane, divides) = (layout.axis.size, |bytes: u32| layout.divides(layout.axis.size, bytes));
    match layout.width {
        1 if TINY_BYTES.contains(&lane) => divides(8),
        1 if lane >= WHOLE_LANE => divides(4) || layout.elements() > MOST_PACKED_BYTES,
        2 if lane >= WHOLE_LANE => divides(LINE),
        2 | 4 => lane == TINY_LANE,
        _ => false,
    }
}

/// Other short lanes, staged.
pub(super) fn in_shared_memory(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    layout.lanes_exceeding_gathered(layout.bytes(MIDDLE_PACKED_LANE))?;
    let (copies, lane) = (!layout.in_place(), layout.axis.size);
    let is_long = copies && layout.width < 8 && lane >= PACKED_LANE;
    reject_if(is_long, ("lanes of less than 8 bytes an element have {} elements or more", PACKED_LANE))?;
    reject_if(copies && are_faster_whole(layout), ("lanes of {} such elements are copied faster whole", lane))?;
    let most = if copies { PACKED_LANE_BYTES } else { PACKED_LANE_BYTES_IN_PLACE - 1 };
    let (mut params, shared) = staged(layout, most)?;
    if layout.in_place() {
        // One thread for every other element: on average, half of the elements are below a length.
        let group = layout.axis.size.div_ceil(2).next_power_of_two().min(WARP);
        params.group_size_log2 = group.trailing_zeros();
    }
    let entry = layout.entry(&kernels::PACKED_LANES, layout.width);
    let blocks = params.r.items.div_ceil(params.segments_per_block);
    Ok(Launch { shared, access: VEC16, ..Launch::new(entry, blocks, layout.width, params) })
}
