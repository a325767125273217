//! reverse_clusters.cu: strips of long interleaved lanes, for clusters of thread blocks.
//!
//! A strip of all rows does not fit the shared memory of one thread block, so the thread blocks of a cluster share it:
//!
//! ```text
//! rows   0 ..  31   thread block 0 of the cluster        A thread block has DEAL rows in turn, and stores an element
//! rows  32 ..  63   thread block 1                       into the shared memory of the one that owns its new row.
//! ```
//!
//! `strips.rs` counts its work, because memory sees the same strips.

use super::fit::{Kernel, Needs};
use super::layout::{Layout, NO_ROW};
use super::strips;
use super::{grid, reject_if, RejectReason};
use crate::cuda::estimate::Work;
use crate::cuda::launch::Grid;
use crate::cuda::parameters::clusters::*;
use crate::cuda::parameters::strips::Strips;
pub(super) use crate::cuda::tuning::clusters::STRIP_BYTES;
use crate::cuda::tuning::VEC16;
use crate::cuda::{costs, kernels};
use crate::plan::reverse_plan::Dimension;

/// Strips of `strip` bytes, each shared by the thread blocks of a cluster.
pub(super) struct ClusterStrips {
    row: Dimension,
    strip: u32,
    /// Bytes from one lane to the next in shared memory.
    lane_pitch: u64,
}

impl ClusterStrips {
    fn shared(&self, layout: &Layout<'_>) -> u64 {
        self.lane_pitch * u64::from(self.strip / layout.width)
    }
}

impl Kernel for ClusterStrips {
    type Parameters = Clusters;

    fn fit(layout: &Layout<'_>, strip: u32) -> Result<Self, RejectReason> {
        let row = *layout.interleaved().ok_or(NO_ROW)?;
        reject_if(
            !layout.target.clusters,
            "the device has no thread block clusters",
        )?;
        // Lanes are four elements more than a multiple of eight apart in the shared memory of a thread block, so that
        // neighbouring rows and lanes are in different banks.
        let lane_pitch = layout.bytes(layout.axis.size.div_ceil(CLUSTER * DEAL) * DEAL + 4);
        let strips = Self {
            row,
            strip,
            lane_pitch,
        };
        reject_if(
            strips.shared(layout) > u64::from(layout.target.shared_memory),
            "no strip of all rows fits the shared memory of a cluster",
        )?;
        Ok(strips)
    }

    fn needs(&self, layout: &Layout<'_>) -> Needs {
        Needs {
            family: &kernels::CLUSTERS,
            costs: &costs::CLUSTERS,
            unit: layout.width,
            alignment: layout.width,
            access: strips::word(layout),
        }
    }

    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason> {
        Ok(Grid {
            blocks: grid(layout.strips(&self.row, self.strip) * u64::from(CLUSTER))?,
            threads: CLUSTER_THREADS,
            shared: self.shared(layout) as u32,
        })
    }

    fn work(&self, layout: &Layout<'_>, grid: Grid) -> Work {
        let is_unaligned = !layout.divides(self.row.size, VEC16);
        strips::work(layout, &self.row, self.strip, grid, is_unaligned)
    }

    fn parameters(&self, layout: &Layout<'_>, _: Grid) -> Clusters {
        let Strips {
            r,
            strips_per_row,
            row_lanes,
            strip_bytes,
            length_stride,
            ..
        } = strips::parameters(layout, &self.row, self.strip, 0);
        Clusters {
            r,
            strips_per_row,
            row_lanes,
            strip_bytes,
            length_stride,
            lane_pitch: self.lane_pitch as u32,
        }
    }
}
