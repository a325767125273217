//! Strips of long lanes side by side, each lane with a length of its own, for clusters of blocks of threads.

use std::ffi::CStr;

use super::strips::NO_ROW;
use super::{dim, grid, Entry, Launch, Launches, Module, Way, SWAP};
use crate::plan::{FastDiv, SLOT};

/// kernels/reverse_subsequences_clusters.cu.
pub(crate) const ENTRIES: &[&CStr] = &[
    c"reverse_clusters_1",
    c"reverse_clusters_2",
    c"reverse_clusters_4",
    c"reverse_clusters_8",
    c"reverse_clusters_swap_1",
    c"reverse_clusters_swap_2",
    c"reverse_clusters_swap_4",
    c"reverse_clusters_swap_8",
];

/// Blocks of threads of a cluster, the most that every GPU with clusters has, threads of a block, and rows that a block gets
/// at a time (constants of the kernel file).
pub(crate) const CLUSTER: u32 = 8;
const CLUSTER_THREADS: u32 = 512;
const DEAL: u32 = 64;

/// Widths of a strip's row.
const STRIP_BYTES: [u32; 2] = [32, SLOT];

impl Launches<'_> {
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
        let index = self.width_index() + if in_place { SWAP } else { 0 };
        Ok(Launch {
            entry: Entry { module: Module::ReverseClusters, index },
            blocks,
            threads: CLUSTER_THREADS,
            shared: shared(strip) as u32,
            alignment: self.width,
            access: if in_place { self.width } else { self.width.max(4) },
            params,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::desc::{BufferTensorDesc, ReverseSubsequencesDesc};
    use crate::plan::reverse_subsequences::Plan;
    use crate::plan::{Module, Target};
    use crate::TensorDataType::{self, Float16, Float32};

    /// The module of the first launch of each mode, for so many rows of so many lanes.
    fn modules(data_type: TensorDataType, [rows, lanes]: [u32; 2], target: Target) -> [Module; 2] {
        let tensor = BufferTensorDesc::packed(data_type, &[8, rows, lanes]);
        let desc = ReverseSubsequencesDesc {
            input_tensor: tensor.clone(),
            sequence_lengths_tensor: BufferTensorDesc::packed(TensorDataType::UInt32, &[8, 1, lanes]),
            output_tensor: tensor,
            axis: 1,
        };
        let plan = Plan::new(&desc, &target).expect("a valid layout");
        [plan.copy, plan.in_place.expect("equal strides")].map(|ways| ways.launches[0].entry.module)
    }

    #[test]
    fn clusters_take_lanes_that_no_block_holds() {
        let hopper = Target { shared_memory: 227 << 10, multiprocessors: 132, clusters: true };
        assert_eq!(modules(Float32, [7264, 64], hopper), [Module::ReverseStrips; 2]);
        assert_eq!(modules(Float32, [7265, 64], hopper), [Module::ReverseClusters; 2]);
        assert_eq!(modules(Float32, [7265, 63], hopper), [Module::ReverseUnits, Module::ReverseClusters]);
        assert_eq!(modules(Float16, [7265, 63], hopper), [Module::ReverseClusters; 2]);
        assert_eq!(modules(Float32, [7265, 7], hopper), [Module::ReverseUnits; 2]);
        let ampere = Target { clusters: false, ..hopper };
        assert_eq!(modules(Float32, [7265, 64], ampere), [Module::ReverseUnits; 2]);
    }
}
