//! reverse_clusters.cu: strips of long lanes side by side, for clusters of thread blocks.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::layout::parameters::Reverse;
use super::layout::{Candidates, Layout, NO_ROW};
use super::strips::{self, Strips};
use super::{grid, reject_if, RejectReason};
use crate::cuda::costs;
use crate::cuda::kernels;
use crate::cuda::launch::{Grid, Launch};
pub(super) use crate::cuda::tuning::clusters::STRIP_BYTES;
use crate::cuda::tuning::clusters::*;
use crate::cuda::tuning::VEC16;

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

/// Bytes from one lane to the next in the shared memory of a thread block: four elements more than a multiple of eight,
/// so that neighbouring rows and lanes are in different banks.
fn pitch(layout: &Layout<'_>) -> u64 {
    let rows = layout.axis.size.div_ceil(CLUSTER * DEAL) * DEAL;
    u64::from(layout.width) * u64::from(rows + 4)
}

/// Strips of `strip` bytes, each shared by the thread blocks of a cluster.
pub(super) fn clusters(layout: &Layout<'_>, strip: u32, found: &mut Candidates) -> Result<(), RejectReason> {
    let row = layout.side_by_side().ok_or(NO_ROW)?;
    reject_if(!layout.target.clusters, "the device has no thread block clusters")?;
    let lane_pitch = pitch(layout);
    let shared = lane_pitch * u64::from(strip / layout.width);
    let is_large = shared > u64::from(layout.target.shared_memory);
    reject_if(is_large, "no strip of that many rows fits the shared memory of a cluster")?;
    let blocks = grid(layout.strips(row, strip) * u64::from(CLUSTER))?;
    let grid = Grid { blocks, threads: CLUSTER_THREADS, shared: shared as u32 };
    let unaligned = !layout.divides(row.size, VEC16);
    let work = strips::work(layout, row, strip, grid, unaligned);
    let access = if layout.in_place() { layout.width } else { layout.width.max(4) };
    let launch = Launch::new(layout.entry(&kernels::CLUSTERS, layout.width)?, grid, layout.width, access);
    found.add(layout, launch, work, &costs::CLUSTERS, layout.width, || {
        let Strips { r, strips_per_row, row_lanes, strip_bytes, length_stride, .. } =
            Strips::new(layout, row, strip, 0);
        Clusters { r, strips_per_row, row_lanes, strip_bytes, length_stride, lane_pitch: lane_pitch as u32 }
    })
}
