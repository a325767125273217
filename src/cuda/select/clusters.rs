//! Strips of long lanes side by side, each lane with a length of its own, for clusters of blocks of threads.

use super::reverse_subsequences::{dim, Layout, Way};
use super::strips::NO_ROW;
use super::{grid, FastDiv, SLOT};
use crate::cuda::kernels;
use crate::cuda::launch::Draft;

/// Blocks of threads of a cluster, the most that every GPU with clusters has, threads of a block, and rows that a block gets
/// at a time (constants of the kernel file).
pub(crate) const CLUSTER: u32 = 8;
const CLUSTER_THREADS: u32 = 512;
const DEAL: u32 = 64;

/// Widths of a strip's row.
const STRIP_BYTES: [u32; 2] = [32, SLOT];

impl Layout<'_> {
    /// Strips of lanes side by side, shared out to the blocks of a cluster.
    pub(super) fn clusters(&self, in_place: bool) -> Way {
        if !self.target.clusters {
            return Err("the device has no clusters of blocks of threads");
        }
        let row = self.row().ok_or(NO_ROW)?;
        if self.axis.size < CLUSTER * DEAL {
            return Err("so few rows leave blocks of a cluster without work");
        }
        if self.row_bytes(row) < u64::from(STRIP_BYTES[0]) {
            return Err("rows of lanes are shorter than 32 bytes");
        }
        if !in_place && self.width >= 4 && !self.rows_divide(row, SLOT, SLOT) {
            // [*, 16384, 510] f32: 87, in clusters 126; i64 81 and 96; but f16 160 and 121, and in place f32 135 and 80.
            return Err("such elements are copied faster one by one than in strips of unaligned rows");
        }
        let rows = self.axis.size.div_ceil(CLUSTER * DEAL) * DEAL;
        // Four elements past a multiple of eight: neighbouring rows and lanes are then in banks of their own.
        let pitch = u64::from(self.width) * u64::from(rows + 4);
        let shared = |strip: u32| pitch * u64::from(strip / self.width);
        let strip = STRIP_BYTES
            .into_iter()
            .find(|&strip| shared(strip) <= u64::from(self.target.shared_memory))
            .ok_or("no strip of so many rows fits the shared memory of a cluster")?;
        // [*, 65536, 64], copying, u8 277, in clusters 133; f16 144 and 154, f32 87 and 149; in place u8 584 and 118, f16 287
        // and 112, f32 147 and 92, i64 83 and 97.
        let most = if in_place { 4 } else { 1 };
        if strip == SLOT && self.width > most {
            return Err("in strips of 16 bytes such elements are reversed slower than one by one");
        }
        let strips = self.row_bytes(row).div_ceil(u64::from(strip));
        let outer: u64 = self.outside().map(|d| u64::from(d.size)).product();
        let blocks = grid(outer * strips * u64::from(CLUSTER))?;
        let mut params = self.params(outer * strips, self.outside().map(dim));
        params.parts = FastDiv::new(strips as u32);
        params.block = FastDiv::new(row.size);
        params.pitch = pitch as u32;
        params.unit = strip;
        params.length_stride = row.length_stride;
        let kernel = if in_place { &kernels::CLUSTERS_IN_PLACE } else { &kernels::CLUSTERS };
        Ok(Draft {
            entry: kernel.entry(self.width_index()),
            blocks,
            threads: CLUSTER_THREADS,
            shared: shared(strip) as u32,
            alignment: self.width,
            access: if in_place { self.width } else { self.width.max(4) },
            params,
        })
    }
}
