//! The thresholds that selection uses, and the constants that it shares with the kernels. A number that only one kernel
//! uses is in that kernel's file; the CPU's numbers are in `cpu/`. benches/TUNING.md has the measurements, under the
//! names of the constants. A constant without an entry there has no recorded measurement.

// ---- Shared with the kernels (a test compares them) ----

/// Threads per thread block, except in cooperative-group and cluster kernels.
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

    /// The most dimensions that the kernels without loops take, with the axis among them (same in reverse.cuh).
    pub const UNROLLED_DIMENSIONS: u32 = 3;
    /// Units per thread, copying (`ITEMS_PER_THREAD` of the kernel); vectors are copied one a thread.
    pub const ITEMS_PER_THREAD: u32 = 4;
    /// Pairs of units per thread, in place (`PAIRS_PER_THREAD` of the kernel).
    pub const PAIRS_PER_THREAD: u32 = 2;

    /// Largest small job, in units of 16 bytes. A pair in place counts as two.
    pub const SMALL_VECTORS: u64 = 1 << 20;
    /// Largest small job, in narrower units of several elements; in place it is `SMALL_VECTORS`.
    pub const SMALL_WIDE_UNITS: u64 = 1 << 19;
    /// Largest small job, in elements: copying, and in place.
    pub const SMALL_UNITS: u64 = 3 << 17;
    pub const SMALL_UNITS_IN_PLACE: u64 = 1 << 18;
    /// The same for lanes side by side and, copying, for lengths that vary along the output.
    pub const SMALL_UNITS_SIDE_BY_SIDE: u64 = 3 << 16;
    /// The same for contiguous lanes of 8-byte elements, copying.
    pub const SMALL_LANES_OF_8_BYTES: u64 = 3 << 18;
    /// Largest job that is gathered into half vectors, in elements.
    pub const FEW_UNITS: u64 = 1 << 19;
    pub const FEW_UNITS_OF_BLOCKS: u64 = 5 << 17;
}

pub mod segments {
    //! segments.cuh: lanes of reverse_packed_lanes.cu, blocks of reverse_rows.cu

    /// Bytes of segments that a thread block stages (more if one segment is larger), and the most segments.
    pub const STAGED_BYTES: u64 = 16 << 10;
    pub const MAX_SEGMENTS: u64 = 4096;
    /// Thread blocks per multiprocessor below which a thread block stages fewer segments. Large groups of columns must be as
    /// many; in place, one for a multiprocessor.
    pub const BLOCKS_PER_MULTIPROCESSOR: u64 = 2;
    /// Threads of the smallest thread block that has several thread groups: two warps.
    pub const MIN_BLOCK_THREADS: u32 = 64;
    /// A group's threads are computed from this many fifths of its vectors, so that a count slightly above a power of
    /// two does not double them.
    pub const GROUP_FIFTHS: u32 = 4;

    /// Copying, lanes of so many bytes and fewer are packed; below 8 bytes an element only with fewer than so many elements.
    pub const PACKED_LANE_BYTES: u64 = 8 << 10;
    pub const PACKED_LANE: u32 = 1024;
    /// From so many elements on, lanes of bytes are not packed if they are whole words or too many in all, nor lanes of
    /// 2-byte elements if they are whole lines of so many bytes.
    pub const WHOLE_LANE: u32 = 128;
    pub const MOST_PACKED_BYTES: u64 = 1 << 23;
    pub const LINE: u32 = 128;
    /// Nor are lanes of so many elements of 2 and 4 bytes, and of so many bytes that are a multiple of 8.
    pub const TINY_LANE: u32 = 16;
    pub const TINY_BYTES: std::ops::RangeInclusive<u32> = 32..=64;
    /// Fewer elements than `MOST_GATHERED_OF_SHORT_LANES` of `lanes` are gathered if the lanes are shorter than this.
    pub const MIDDLE_PACKED_LANE: u32 = 100;
    /// In place, lanes of fewer bytes are packed.
    pub const PACKED_LANE_BYTES_IN_PLACE: u64 = 900;
    /// Shorter lanes of 8-byte elements are swapped element by element in place.
    pub const MIN_WIDE_LANE_IN_PLACE: u32 = 16;
    /// The largest block that is staged whole, copying and in place.
    pub const PACKED_BLOCK_BYTES: u64 = 24 << 10;
    pub const PACKED_BLOCK_BYTES_IN_PLACE: u64 = 40 << 10;
    /// Vectors of a block per thread, in place.
    pub const VECTORS_PER_THREAD_IN_PLACE: u32 = 6;
}

pub mod rows {
    //! reverse_rows.cu

    /// Vectors per thread (`VECTORS_PER_THREAD` of the kernel).
    pub const VECTORS_PER_THREAD: u32 = 2;
    /// Shorter rows are mostly their two ends.
    pub const MIN_ROW_BYTES: u64 = 256;
    /// Bytes of a tile; in place there are two. Copying, tiles are smaller below so many bytes for a multiprocessor, and
    /// wider from so many on.
    pub const TILE_BYTES: u32 = 8 << 10;
    pub const SMALL_TILE_BYTES: u32 = 4 << 10;
    pub const SMALL_TILES_BELOW: u64 = 32 << 10;
    pub const WIDE_TILE_BYTES: u32 = 12 << 10;
    pub const WIDE_TILES_FROM: u64 = 60 << 10;
    /// Vectors of shared memory before and behind a run, which unaligned reads reach (same in the kernel).
    pub const RUN_SLACK_BEFORE: u32 = 1;
    pub const RUN_SLACK_BEHIND: u32 = 2;
    /// Rows with fewer elements do not get a thread block each.
    pub const MIN_LONE_ROW: u32 = 1000;
    /// Blocks that are not copied as rows are gathered up to so many elements.
    pub const MOST_GATHERED: u64 = 5 << 17;
    pub const MOST_GATHERED_OF_4_BYTES: u64 = 9 << 17;
}

pub mod lanes {
    //! reverse_lanes.cu

    /// Vectors of a long lane per thread (`VECTORS_PER_THREAD` of the kernel).
    pub const VECTORS_PER_THREAD: u32 = 2;
    /// Tiles of a long lane in place per thread block (`TILES_PER_BLOCK` of the kernel).
    pub const TILES_PER_BLOCK: u64 = 8;
    /// Shorter lanes consist mostly of their two ends.
    pub const MIN_LANE_BYTES: u64 = 32;
    /// Vectors per thread for lanes staged whole: copying, and in place from `LONG_LANE_BYTES_IN_PLACE` on. It is 1 if
    /// all lanes together have at most `FEW_VECTORS` vectors; copying, 2 up to `MIDDLE_VECTORS`.
    pub const LANE_VECTORS: u32 = 4;
    pub const LANE_VECTORS_IN_PLACE: u32 = 8;
    pub const LONG_LANE_BYTES_IN_PLACE: u64 = 4096;
    pub const FEW_VECTORS: u64 = 1 << 17;
    pub const FEW_VECTORS_IN_PLACE: u64 = 1 << 18;
    pub const MIDDLE_VECTORS: u64 = 1 << 20;
    /// Lanes, also packed ones, are gathered up to so many elements if they are not whole vectors or longer than
    /// `LONG_LANE_BYTES`: up to `MOST_GATHERED` below `MIN_LANE_BYTES` and from `STAGED_LANE_BYTES` on, and up to
    /// `MOST_GATHERED_OF_SHORT_LANES` below `MIDDLE_LANE_BYTES`.
    pub const MOST_GATHERED_OF_SHORT_LANES: u64 = 5 << 17;
    pub const MIDDLE_LANE_BYTES: u64 = 700;
    pub const MOST_GATHERED: u64 = 3 << 19;
    pub const STAGED_LANE_BYTES: u64 = 4096;
    /// Lanes of more bytes are copied in tiles.
    pub const LONG_LANE_BYTES: u64 = 16 << 10;
    /// Lanes that need more shared memory are reversed in place in tiles.
    pub const SHARED_IN_PLACE: u64 = 100 << 10;
}

pub mod strips {
    //! reverse_strips.cu

    /// Widths of a strip, widest first.
    pub const STRIP_BYTES: [u32; 6] = [128, 64, 32, 16, 8, 4];
    /// The narrowest strip, and the narrowest in place for elements narrower than a word. Only for those are strips
    /// narrower than a sector faster.
    pub const MIN_STRIP_BYTES: u32 = 32;
    pub const MIN_NARROW_STRIP_BYTES: u32 = 4;
    /// Shorter rows are not cut into aligned strips.
    pub const MIN_ROW_BYTES: u64 = 32;
    /// Gathered up to so many elements if rows are shorter than `SHORT_ROW_BYTES`, or not whole words (vectors, of 4-byte
    /// elements), or strips are fewer than a quarter of the multiprocessors. The same for columns and clusters.
    pub const MOST_GATHERED: u64 = 3 << 19;
    pub const SHORT_ROW_BYTES: u64 = 128;
    pub const STRIPS_ARE_FEW: u64 = 4;
    /// Shorter lanes are not staged: copying and in place, by the element's width, from a byte up.
    pub const LEAST_AXIS: [[u32; 4]; 2] = [[24; 4], [15, 20, 32, 48]];
    /// Not staged if strips are fewer than a sixteenth of the multiprocessors; of 8-byte elements, than half of them.
    pub const VERY_FEW: u64 = 16;
    pub const VERY_FEW_OF_8_BYTES: u64 = 2;
    /// In place, shared memory per thread block with which several thread blocks fit on a multiprocessor of compute
    /// capability 8.0 or 9.0. Copying, the widest strip is faster, whatever its shared memory.
    pub const SHARED_IN_PLACE: u32 = 75 << 10;
    /// The same for unaligned strips in place, of elements narrower than a word.
    pub const SHARED_NARROW_IN_PLACE: u32 = 36 << 10;
    /// In place, elements of 8 bytes in unaligned rows are swapped one by one up to so many for a multiprocessor.
    pub const MOST_SWAPPED_OF_8_BYTES: u64 = 4096;
    /// With fewer thread blocks than this many quarters of the multiprocessors, strips are made narrower; copying and
    /// in place.
    pub const FEW_BLOCKS: u64 = 3;
    pub const FEW_BLOCKS_IN_PLACE: u64 = 2;
    /// Copying, the most threads of a thread block (same in the kernel), the threads per multiprocessor that are wanted for
    /// aligned and for unaligned strips, and the fewest vectors per thread.
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
    /// Widths of a strip, widest first. Those wider than a sector are faster only if two thread blocks fit on a multiprocessor.
    pub const STRIP_BYTES: [u32; 3] = [64, 32, 16];
    /// Clusters also reverse strips that fit in a thread block, if a sector of every row is more bytes than these: if
    /// strips are fewer than a sixth of the multiprocessors, and otherwise in place.
    pub const FEW: u64 = 6;
    pub const MOST_OF_FEW_STRIPS: u32 = 48 << 10;
    pub const MOST_IN_PLACE: u32 = 160 << 10;
    /// The widest elements for which strips of 16 bytes are faster, copying and in place.
    pub const MAX_NARROW_WIDTH: u32 = 1;
    pub const MAX_NARROW_WIDTH_IN_PLACE: u32 = 4;
}

pub mod columns {
    //! reverse_columns.cu

    /// Shorter lanes are not staged, as of `strips`.
    pub const LEAST_AXIS: [[u32; 4]; 2] = [[4; 4]; 2];
    /// Rows that are a multiple of this long divide into whole strips.
    pub const WHOLE_STRIP_BYTES: u64 = 32;
    /// Bytes of groups that a thread block stages (more if one group is larger), and the largest group.
    pub const STAGED_BYTES: u64 = 16 << 10;
    pub const MAX_GROUP_BYTES: u64 = 100 << 10;
}

pub mod transposed {
    //! reverse_transposed.cu

    /// Elements of a tile along each dimension, of 4 and 8 bytes (`TILE` of the kernel).
    pub const TILE: u32 = 64;
    /// Of 1 and 2 bytes, elements of a tile along the output's contiguous dimension (`TILE_OUT` of the kernel).
    pub const TILE_OUT: u32 = 128;
    /// And bytes along the input's (`TILE_IN_BYTES` of the kernel).
    pub const TILE_IN_BYTES: u32 = 128;
    /// Shorter dimensions leave most of a tile empty.
    pub const MIN_DIMENSION: u32 = 16;
    /// Gathered if the elements fill less than one part in so many of the tiles; where the output's rows are vectors with one
    /// length each, twice as many of 2-byte elements, and four times of bytes.
    pub const EMPTY: u64 = 3;
    /// Gathered up to so many elements, and so many more if all tiles were empty; not with one length for a row of the output that
    /// is whole vectors of 1- and 2-byte elements.
    pub const MOST_GATHERED: u64 = 3 << 18;
    pub const MOST_GATHERED_IF_EMPTY: u64 = 5 << 20;
}

#[cfg(all(test, in_repository))]
mod tests {
    use super::*;

    /// Checks that a kernel file has `static constexpr u32 NAME = VALUE;` with that value.
    fn assert_shared(file: &str, name: &str, host: impl Into<u64>) {
        let text = std::fs::read_to_string(crate::common::repository("kernels").join(file)).expect("a kernel file");
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
        assert_shared("reverse.cuh", "UNROLLED_DIMENSIONS", elementwise::UNROLLED_DIMENSIONS);
        assert_shared("reverse_elementwise.cu", "ITEMS_PER_THREAD", elementwise::ITEMS_PER_THREAD);
        assert_shared("reverse_elementwise.cu", "PAIRS_PER_THREAD", elementwise::PAIRS_PER_THREAD);
        assert_shared("reverse_rows.cu", "VECTORS_PER_THREAD", rows::VECTORS_PER_THREAD);
        assert_shared("reverse_rows.cu", "RUN_SLACK_BEFORE", rows::RUN_SLACK_BEFORE);
        assert_shared("reverse_rows.cu", "RUN_SLACK_BEHIND", rows::RUN_SLACK_BEHIND);
        assert_shared("reverse_lanes.cu", "VECTORS_PER_THREAD", lanes::VECTORS_PER_THREAD);
        assert_shared("reverse_lanes.cu", "TILES_PER_BLOCK", lanes::TILES_PER_BLOCK);
        assert_shared("reverse_strips.cu", "MOST_THREADS", strips::MOST_THREADS);
        assert_shared("reverse_clusters.cu", "CLUSTER", clusters::CLUSTER);
        assert_shared("reverse_clusters.cu", "DEAL", clusters::DEAL);
        assert_shared("reverse_clusters.cu", "CLUSTER_THREADS", clusters::CLUSTER_THREADS);
        assert_shared("reverse_transposed.cu", "TILE", transposed::TILE);
        assert_shared("reverse_transposed.cu", "TILE_OUT", transposed::TILE_OUT);
        assert_shared("reverse_transposed.cu", "TILE_IN_BYTES", transposed::TILE_IN_BYTES);
    }
}
