//! What kernels are built with: constants that selection shares with them, and how their launches are cut. A number
//! that only one kernel uses is in that kernel's file; the CPU's numbers are in `cpu/`. benches/TUNING.md has the
//! measurements, under the names of the constants.

// ---- Shared with the kernels (a test compares them) ----

/// Threads per thread block, except of strips, of clusters, and where thread groups are few.
pub const THREADS: u32 = 256;
/// Bytes of a thread's widest load and store.
pub const VEC16: u32 = 16;
/// Bytes of a sector, the unit in which memory is written.
pub const SECTOR: u32 = 32;

pub mod fill {
    //! fill_value_sequence.cu

    /// Shorter rows consist mostly of their two ends, which are stored in part.
    pub const MIN_ROW_BYTES: u64 = 32;
    /// Shorter rows are written as part of a dense run, unless they are whole aligned sectors.
    pub const LONG_ROW_BYTES: u64 = 1024;
    /// Vectors of a dense run per thread (`DENSE_VECTORS` of the kernel).
    pub const DENSE_VECTORS: u32 = 8;
}

pub mod elementwise {
    //! reverse_elementwise.cu

    /// The most dimensions in which positions are computed without a loop, with the axis among them; and those that
    /// take the least time (constants of the kernel).
    pub const UNROLLED_DIMENSIONS: u32 = 5;
    pub const FEW_DIMENSIONS: u32 = 3;
    /// Units per thread, copying (`ITEMS_PER_THREAD` of the kernel).
    pub const ITEMS_PER_THREAD: u32 = 4;
    /// Pairs of units per thread, in place (`PAIRS_PER_THREAD` of the kernel).
    pub const PAIRS_PER_THREAD: u32 = 2;
    /// Little work in place: the most threads of a thread block (same in the kernel).
    pub const MOST_THREADS: u32 = 1024;
    /// Threads of a thread block that exchanges lanes side by side: if they are the only dimension, and if there are
    /// more. It waits for the last of its warps, and parts of lanes are a dimension more to compute.
    pub const EXCHANGE_THREADS: [u32; 2] = [256, 512];
}

pub mod segments {
    //! segments.cuh: lanes of reverse_packed_lanes.cu, blocks of reverse_rows.cu

    /// Bytes of segments that a thread block stages (more if one segment is larger), and the most segments.
    pub const STAGED_BYTES: u64 = 16 << 10;
    pub const MAX_SEGMENTS: u64 = 4096;
    /// Thread blocks per multiprocessor below which a thread block stages fewer segments.
    pub const BLOCKS_PER_MULTIPROCESSOR: u64 = 2;
    /// Threads of the smallest thread block that has several thread groups: two warps.
    pub const MIN_BLOCK_THREADS: u32 = 64;
    /// A group's threads are computed from this many fifths of its vectors, so that a count slightly above a power of
    /// two does not double them.
    pub const GROUP_FIFTHS: u32 = 4;
    /// Vectors of a block per thread, in place.
    pub const VECTORS_PER_THREAD_IN_PLACE: u32 = 6;
}

pub mod rows {
    //! reverse_rows.cu

    /// Vectors per thread (`VECTORS_PER_THREAD` of the kernel).
    pub const VECTORS_PER_THREAD: u32 = 2;
    /// Shorter rows consist of their two ends.
    pub const MIN_ROW_BYTES: u64 = 32;
    /// Bytes of a tile; in place there are two.
    pub const TILE_BYTES: [u32; 2] = [4 << 10, 8 << 10];
    /// Rows that are not adjacent get a thread block each, or several. Shorter ones leave most of its threads idle.
    pub const MIN_LONE_ROW_BYTES: u64 = 256;
    /// Vectors of shared memory before and behind a run, which unaligned reads reach (same in the kernel).
    pub const RUN_SLACK_BEFORE: u32 = 1;
    pub const RUN_SLACK_BEHIND: u32 = 2;
    /// In place, rows of so many bytes that are not whole words are joined from two reads (same in the kernel).
    pub const MIN_JOINED_ROW: u64 = 16;
}

pub mod lanes {
    //! reverse_lanes.cu

    /// Vectors of a long lane per thread (`VECTORS_PER_THREAD` of the kernel).
    pub const VECTORS_PER_THREAD: u32 = 2;
    /// Tiles of a long lane in place per thread block (`TILES_PER_BLOCK` of the kernel).
    pub const TILES_PER_BLOCK: u64 = 8;
    /// Vectors per thread for lanes staged whole.
    pub const LANE_VECTORS: [u32; 3] = [1, 2, 4];
}

pub mod columns {
    //! reverse_columns.cu: a column for each thread

    /// Bytes of what a thread takes of a row of narrower elements.
    pub const WORD: u32 = 4;
    /// Rows that a thread loads before it stages the first (same in the kernel).
    pub const LOADS_IN_FLIGHT: u32 = 8;
    /// Shorter rows are taken only if they are adjacent.
    pub const MIN_ROW_BYTES: u64 = 32;
    /// Threads of a thread block.
    pub const THREADS_OF_COLUMNS: [u32; 2] = [64, 256];
}

pub mod strips {
    //! reverse_strips.cu

    /// Widths of a strip. Strips narrower than a vector are for narrow elements in place.
    pub const STRIP_BYTES: [u32; 6] = [4, 8, 16, 32, 64, 128];
    /// Copying, the most threads of a thread block (same in the kernel), the threads per multiprocessor that are wanted
    /// for aligned and for unaligned strips, and the fewest vectors per thread.
    pub const MOST_THREADS: u32 = 1024;
    pub const THREADS_WANTED: u32 = 1024;
    pub const THREADS_WANTED_UNALIGNED: u32 = 2048;
    pub const MIN_VECTORS: u32 = 2;
}

pub mod clusters {
    //! reverse_clusters.cu

    /// Thread blocks per cluster (the most that every GPU with clusters supports), rows dealt to a thread block at a
    /// time, and threads per thread block (constants of the kernel).
    pub const CLUSTER: u32 = 8;
    pub const DEAL: u32 = 32;
    pub const CLUSTER_THREADS: u32 = 512;
    /// Widths of a strip.
    pub const STRIP_BYTES: [u32; 3] = [16, 32, 64];
}

pub mod transposed {
    //! reverse_transposed.cu

    /// Without shared memory: the most dimensions of a tile, two of each tensor and the axis, and tiles of a thread
    /// block (same in the kernel).
    pub const TILE_DIMS: usize = 5;
    pub const TILES_PER_BLOCK: u32 = 4;
    /// Elements of a tile along the output, of `THREADS`.
    pub const ALONG_OUTPUT: [u32; 2] = [8, 16];
    /// Elements of 4 bytes of a tile along each dimension (`TILE` of the kernel).
    pub const TILE: u32 = 64;
    /// Elements of 1 and 2 bytes of a tile along the output's contiguous dimension (`TILE_OUT` of the kernel).
    pub const TILE_OUT: u32 = 128;
    /// And bytes along the input's (`TILE_IN_BYTES` of the kernel).
    pub const TILE_IN_BYTES: u32 = 128;
}

#[cfg(all(test, in_repository))]
mod tests {
    use super::*;

    /// Checks that a kernel file has `static constexpr u32 NAME = VALUE;` with that value.
    fn assert_shared(file: &str, name: &str, host: impl Into<u64>) {
        let text =
            std::fs::read_to_string(crate::dml_cuda_testing::repository("kernels").join(file)).expect("a kernel file");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("static constexpr u32 {name} = ")));
        let line = line.unwrap_or_else(|| panic!("{file} has no {name}"));
        let value: Option<u64> = line.split(';').next().and_then(|value| value.parse().ok());
        assert_eq!(value, Some(host.into()), "{name} of {file}");
    }

    #[test]
    fn constants_shared_with_kernels_are_equal() {
        assert_shared("common.cuh", "THREADS", THREADS);
        assert_shared("common.cuh", "MAX_DIMS", crate::desc::layout::MAX_DIMENSIONS as u64);
        assert_shared("fill_value_sequence.cu", "DENSE_VECTORS", fill::DENSE_VECTORS);
        assert_shared("reverse_elementwise.cu", "UNROLLED_DIMENSIONS", elementwise::UNROLLED_DIMENSIONS);
        assert_shared("reverse_elementwise.cu", "FEW_DIMENSIONS", elementwise::FEW_DIMENSIONS);
        assert_shared("reverse_elementwise.cu", "ITEMS_PER_THREAD", elementwise::ITEMS_PER_THREAD);
        assert_shared("reverse_elementwise.cu", "PAIRS_PER_THREAD", elementwise::PAIRS_PER_THREAD);
        assert_shared("reverse_elementwise.cu", "MOST_THREADS", elementwise::MOST_THREADS);
        assert_shared("reverse_rows.cu", "VECTORS_PER_THREAD", rows::VECTORS_PER_THREAD);
        assert_shared("reverse_rows.cu", "MIN_JOINED_ROW", rows::MIN_JOINED_ROW);
        assert_shared("reverse_rows.cu", "RUN_SLACK_BEFORE", rows::RUN_SLACK_BEFORE);
        assert_shared("reverse_rows.cu", "RUN_SLACK_BEHIND", rows::RUN_SLACK_BEHIND);
        assert_shared("reverse_lanes.cu", "VECTORS_PER_THREAD", lanes::VECTORS_PER_THREAD);
        assert_shared("reverse_lanes.cu", "TILES_PER_BLOCK", lanes::TILES_PER_BLOCK);
        assert_shared("reverse_columns.cu", "LOADS_IN_FLIGHT", columns::LOADS_IN_FLIGHT);
        assert_shared("reverse_strips.cu", "MOST_THREADS", strips::MOST_THREADS);
        assert_shared("reverse_clusters.cu", "CLUSTER", clusters::CLUSTER);
        assert_shared("reverse_clusters.cu", "DEAL", clusters::DEAL);
        assert_shared("reverse_clusters.cu", "CLUSTER_THREADS", clusters::CLUSTER_THREADS);
        assert_shared("reverse_transposed.cu", "TILE_DIMS", transposed::TILE_DIMS as u64);
        assert_shared("reverse_transposed.cu", "TILES_PER_BLOCK", transposed::TILES_PER_BLOCK);
        assert_shared("reverse_transposed.cu", "TILE", transposed::TILE);
        assert_shared("reverse_transposed.cu", "TILE_OUT", transposed::TILE_OUT);
        assert_shared("reverse_transposed.cu", "TILE_IN_BYTES", transposed::TILE_IN_BYTES);
    }
}
