//! reverse_clusters.cu: strips of long interleaved lanes, for clusters of thread blocks.

use super::layout::{Candidates, Layout, NO_ROW};
use super::strips;
use super::{grid, reject_if, RejectReason};
use crate::cuda::launch::{Grid, Launch};
use crate::cuda::parameters::clusters::*;
use crate::cuda::parameters::strips::Strips;
pub(super) use crate::cuda::tuning::clusters::STRIP_BYTES;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};

/// Strips of `strip` bytes, each shared by the thread blocks of a cluster.
pub(super) fn clusters(
    layout: &Layout<'_>,
    strip: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    let row = layout.interleaved().ok_or(NO_ROW)?;
    reject_if(
        !layout.target.clusters,
        "the device has no thread block clusters",
    )?;
    // Lanes are four elements more than a multiple of eight apart in the shared memory of a thread block, so that
    // neighbouring rows and lanes are in different banks.
    let lane_pitch = layout.bytes(layout.axis.size.div_ceil(CLUSTER * DEAL) * DEAL + 4);
    let shared = lane_pitch * u64::from(strip / layout.width);
    let is_large = shared > u64::from(layout.target.shared_memory);
    reject_if(
        is_large,
        "no strip of all rows fits the shared memory of a cluster",
    )?;
    let blocks = grid(layout.strips(row, strip) * u64::from(CLUSTER))?;
    let grid = Grid {
        blocks,
        threads: CLUSTER_THREADS,
        shared: shared as u32,
    };
    let unaligned = !layout.divides(row.size, VEC16);
    let work = strips::work(layout, row, strip, grid, unaligned);
    let access = if layout.in_place() {
        layout.width
    } else {
        layout.width.max(4)
    };
    let launch = Launch::new(
        layout.entry(&kernels::CLUSTERS, layout.width)?,
        grid,
        layout.width,
        access,
    );
    list.add(layout, launch, work, &costs::CLUSTERS, layout.width, || {
        let Strips {
            r,
            strips_per_row,
            row_lanes,
            strip_bytes,
            length_stride,
            ..
        } = strips::parameters(layout, row, strip, 0);
        Clusters {
            r,
            strips_per_row,
            row_lanes,
            strip_bytes,
            length_stride,
            lane_pitch: lane_pitch as u32,
        }
    })
}
