//! reverse_clusters.cu: strips of long lanes side by side, for clusters of thread blocks.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::{Layout, Reverse};
use super::strips::{exceeds_swapped, Strips};
use super::{grid, reject_if, RejectReason};
use crate::cuda::tuning::clusters::*;
use crate::cuda::tuning::{strips, SECTOR, VEC16};
use crate::cuda::{kernels, Launch};

/// `Clusters` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Clusters {
    r: Reverse,
    strips_per_row: FastDiv,
    row_lanes: u32,
    strip_bytes: u32,
    length_stride: u32,
    lane_pitch: u32,
}
const _: () = assert!(size_of::<Clusters>() == 352 && std::mem::offset_of!(Clusters, r) == 0);

/// Strips, each shared by the thread blocks of a cluster.
pub(super) fn clusters(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let row = layout.wide_row_exceeding(strips::MOST_GATHERED)?;
    let no_need = "one thread block can hold a strip of whole sectors, so that no cluster is needed";
    reject_if(layout.strips_fit_a_block(row), no_need)?;
    reject_if(!layout.target.clusters, "the device has no thread block clusters")?;
    let is_short = layout.axis.size < CLUSTER * DEAL;
    reject_if(is_short, "there are too few rows to give every thread block of a cluster work")?;
    reject_if(layout.bytes(row.size) < u64::from(SECTOR), ("rows of lanes are shorter than {} bytes", SECTOR))?;
    if layout.width >= 4 && !layout.rows_divide(row, VEC16, VEC16) {
        let text = "elements of 4 and 8 bytes are copied faster one by one than in strips of unaligned rows";
        reject_if(!layout.in_place(), text)?;
        exceeds_swapped(layout)?;
    }
    let rows = layout.axis.size.div_ceil(CLUSTER * DEAL) * DEAL;
    // Four elements more than a multiple of eight, so that neighbouring rows and lanes are in different banks.
    let pitch = u64::from(layout.width) * u64::from(rows + 4);
    let shared = |strip: u32| pitch * u64::from(strip / layout.width);
    let fits = |strip: u32| {
        let blocks = layout.strips(row, strip) * u64::from(CLUSTER);
        let is_wide = strip > SECTOR;
        let together = if is_wide { 2 } else { 1 };
        shared(strip) * together <= u64::from(layout.target.shared_memory)
            && (!is_wide || blocks > u64::from(layout.target.multiprocessors))
    };
    let strip = STRIP_BYTES
        .into_iter()
        .find(|&strip| fits(strip))
        .ok_or("no strip of that many rows fits the shared memory of a cluster")?;
    let most = if layout.in_place() { MAX_NARROW_WIDTH_IN_PLACE } else { MAX_NARROW_WIDTH };
    let slow = ("elements of that width are reversed faster one by one than in strips of {} bytes", strip);
    reject_if(strip == VEC16 && layout.width > most, slow)?;
    let blocks = grid(layout.strips(row, strip) * u64::from(CLUSTER))?;
    let Strips { r, strips_per_row, row_lanes, strip_bytes, length_stride, .. } = Strips::new(layout, row, strip);
    let params = Clusters { r, strips_per_row, row_lanes, strip_bytes, length_stride, lane_pitch: pitch as u32 };
    let launch = Launch::new(layout.entry(&kernels::CLUSTERS, layout.width), blocks, layout.width, params);
    let access = if layout.in_place() { layout.width } else { layout.width.max(4) };
    Ok(Launch { threads: CLUSTER_THREADS, shared: shared(strip) as u32, access, ..launch })
}
