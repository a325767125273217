//! Launch parameters of the kernels. benches/TUNING.md lists the measurements of each constant under its name.
//!
//! Numbers that the kernels also use are in kernels/parameters.cuh, those that only one kernel uses in its file, and
//! the CPU's numbers in `cpu/`.

/// Bytes of a thread's widest load and store.
pub const VEC16: u32 = 16;
/// Bytes of a sector, the unit in which memory is written.
pub const SECTOR: u32 = 32;
/// Bytes of the longest lane that a thread reverses in its registers.
pub const MAX_SHORT_LANE: u32 = 32;

pub mod fill {
    //! fill_value_sequence.cu

    /// Shorter rows consist mostly of their two ends, which are stored in part.
    pub const MIN_ROW_BYTES: u64 = 32;
    /// Shorter rows are written as part of a dense run, unless they are whole aligned sectors.
    pub const LONG_ROW_BYTES: u64 = 1024;
}

pub mod elementwise {
    //! reverse_elementwise.cu

    /// Threads of a thread block that exchanges interleaved lanes: if they are the only dimension, and if there are
    /// more. It waits for the last of its warps, and splitting lanes adds a dimension to the index computation.
    pub const EXCHANGE_THREADS: [u32; 2] = [256, 512];
}

pub mod segments {
    //! segments.cuh: lanes of reverse_packed_lanes.cu, blocks of reverse_rows.cu

    /// Bytes of segments that a thread block stages (more if one segment is larger), and the most segments.
    pub const STAGED_BYTES: u64 = 16 << 10;
    pub const MAX_SEGMENTS: u64 = 4096;
    /// Thread blocks per SM below which a thread block stages fewer segments.
    pub const BLOCKS_PER_MULTIPROCESSOR: u64 = 2;
    /// Threads of the smallest thread block that has several thread groups: two warps.
    pub const MIN_BLOCK_THREADS: u32 = 64;
    /// A group's threads are computed from this many fifths of its vectors, so that a count slightly above a power of
    /// two does not double them.
    pub const GROUP_FIFTHS: u32 = 4;
    /// Elements of 4 bytes of a packed lane, in place. Longer lanes are faster whole.
    pub const MAX_WORDS_IN_PLACE: u32 = 64;
    /// Vectors of a block per thread, in place.
    pub const VECTORS_PER_THREAD_IN_PLACE: u32 = 6;
}

pub mod rows {
    //! reverse_rows.cu

    /// Bytes of a tile; in place there are two.
    pub const TILE_BYTES: [u32; 3] = [4 << 10, 8 << 10, 12 << 10];
    /// Bytes of a thread block's tiles. With more, an SM has room for too few thread blocks.
    pub const MAX_STAGED_BYTES: u32 = 16 << 10;
    /// In place, rows that are not adjacent take a thread block each. Shorter ones leave most of its threads idle.
    pub const MIN_LONE_ROW_BYTES: u32 = 256;
    /// Shorter rows consist of their two ends.
    pub const MIN_SINGLE_ROW_BYTES: u32 = 32;
    /// Bytes that a thread group takes of a longer row.
    pub const SINGLE_ROW_BYTES: u32 = 8 << 10;
}

pub mod lanes {
    //! reverse_lanes.cu

    /// Vectors per thread for lanes staged whole.
    pub const LANE_VECTORS: [u32; 3] = [1, 2, 4];
}

pub mod columns {
    //! reverse_columns.cu: a column for each thread

    /// Bytes of what a thread takes of a row of narrower elements.
    pub const WORD: u32 = 4;
    /// Shorter rows are taken only if they are adjacent.
    pub const MIN_ROW_BYTES: u64 = 32;
    /// Threads of a thread block.
    pub const THREADS_OF_COLUMNS: [u32; 2] = [64, 256];
}

pub mod strips {
    //! reverse_strips.cu

    /// Widths of a strip. Strips narrower than a vector are for narrow elements in place.
    pub const STRIP_BYTES: [u32; 6] = [4, 8, 16, 32, 64, 128];
    /// Out of place, the threads per SM that are wanted for aligned and for unaligned strips, and the fewest
    /// vectors per thread.
    pub const THREADS_WANTED: u32 = 1024;
    pub const THREADS_WANTED_UNALIGNED: u32 = 2048;
    pub const MIN_VECTORS: u32 = 2;
}

pub mod clusters {
    //! reverse_clusters.cu

    /// Widths of a strip.
    pub const STRIP_BYTES: [u32; 3] = [16, 32, 64];
}

pub mod transposed {
    //! reverse_transposed.cu

    /// Elements of a tile along the output, of `THREADS`.
    pub const ALONG_OUTPUT: [u32; 2] = [8, 16];
}
