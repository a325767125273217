// REVERSE_SUBSEQUENCES for inner blocks of elements of at most 4 bytes, with rows of any number of bytes. See reverse.cuh for the contract.
//
//   out[t][j] = in[source(t, L)][j]      byte j of row t
//
//   | row 0 | row 1 | ... | row T-1 |    one inner block: rows change places, the bytes of a row keep their order
//
// Algorithm
//   `packed_rows` stages whole inner blocks (segments.cuh). `row_tiles` stages tiles of inner blocks that are too large
//   for that: several whole rows, or in place a part of one row. Both reverse rows in shared memory. `single_rows`
//   stages a row, or a part of one, and writes it to where it goes. All write 16-byte vectors.
//
// Mapping of threads to vectors
//   Neighbouring threads write neighbouring vectors. A thread group takes an inner block in `packed_rows`, and a row in
//   `single_rows`. In `row_tiles` a thread block takes a tile.
//
// Variants: `packed_rows`, `row_tiles`, and out of place `single_rows`.
//
// In-place safety: a whole inner block belongs to one thread group, and a tile with the rows that change places with it
// to one thread block. Either reads all of it before a barrier and writes only after it. The sections below have the
// details.
#include "segments.cuh"

using namespace rows;

// ---- Rows of bytes in reverse order, in place ---------------------------------------------------------------
// A run of whole rows is in shared memory. Swapping units there (`ReverseInShared`) moves rows of bytes one byte at a
// time. If no 16 bytes contain parts of more than two rows, a thread instead joins 16 bytes of the result from two
// unaligned reads. (Out of place, that takes registers, and fewer thread blocks fit: TUNING.md, MIN_JOINED_ROW.)
//
//   run:     | row 0 | row 1 | ... | row R-1 |
//   result:  | row R-1 | ... | row 1 | row 0 |      byte y, in column c, is run[length - row_bytes - y + 2 * c]

template <class Unit>
__device__ __forceinline__ bool joins_rows(const FastDiv& row_bytes) {
    return sizeof(Unit) == 1 && row_bytes.divisor >= MIN_JOINED_ROW;
}

// Writes a run with its rows in reverse order. `begin` is the byte of shared memory where the run begins.
__device__ __forceinline__ void write_joined_rows(u8* out, u32 begin, int length, const FastDiv& row_bytes, u32 thread,
                                                  u32 threads) {
    const int row = static_cast<int>(row_bytes.divisor), lead = static_cast<int>(lead_of(out));
    if (length == 0) return;
#pragma unroll 2
    for (int y = static_cast<int>(thread * 16) - lead; y < length; y += static_cast<int>(threads * 16)) {
        const int row_begin = static_cast<int>(divide(max(y, 0), row_bytes)) * row, next = row_begin + row;
        const int from = static_cast<int>(begin) + length - row - 2 * row_begin + y;
        const int from_next = next < min(y + 16, length) ? from - 2 * row : from;
        const uint4 v = select(bytes_from(next - y), smem_unaligned(from), smem_unaligned(from_next));
        store_partial<1>(out + y, v, -y, length - y);
    }
}

// ---- Packed rows --------------------------------------------------------------------------------------------
// Blocks that are adjacent in memory, staged whole. In place, a thread group takes one block, and reads, reverses and
// writes only the part below the length.
//
// In-place safety: an inner block belongs to one thread group, which reads all of it before a barrier and writes after
// it.

template <class Unit>
__device__ __forceinline__ void swap_packed_rows(const Segments& p) {
    const ThreadGroup group = this_group(p.group_size_log2);
    const u32 n = group.index;
    const u32 at_vector = RUN_SLACK_BEFORE + group.in_block * (p.vectors_per_segment + RUN_SLACK_BEHIND);
    uint4* const vectors = smem + at_vector;
    u8* const block = static_cast<u8*>(p.r.out) + static_cast<u64>(n) * p.segment_bytes.divisor;
    const int lead = static_cast<int>(lead_of(block));
    int length = 0;
    if (n < p.r.items) {
        const u32 rows = lane_length(locate(n, p.r).length, p.r);
        if (rows > 1) length = static_cast<int>(rows * p.row_bytes.divisor);  // a single row does not move
        const u32 count = length == 0 ? 0 : (lead + length + 15) / 16;
        stage_run(vectors, block - lead, count, group, input_bounds(p.r));
    }
    sync(group);
    if (joins_rows<Unit>(p.row_bytes)) {
        return write_joined_rows(block, at_vector * 16 + lead, length, p.row_bytes, group.thread, group.size);
    }
    ReverseInShared<Unit, false>(p.row_bytes, group.thread, group.size)(reinterpret_cast<u8*>(vectors) + lead, length);
    sync(group);
    for (int x = static_cast<int>(group.thread * 16) - lead; x < length; x += static_cast<int>(group.size * 16)) {
        store_partial<sizeof(Unit)>(block + x, vectors[(x + lead) / 16], -x, length - x);
    }
}

// ---- Row tiles ----------------------------------------------------------------------------------------------
// The rows of a tile come from one contiguous run of bytes, whatever the length. The kernel stages the run, reverses
// its rows in shared memory, and writes it with 16-byte stores.
//
//   | row 0 | ... | tile: rows r .. r+n-1 | ...                         |    below the length
//   | ...                         | its source: rows L-r-n .. L-r-1 | ... |

struct RowTile {
    Position block;
    u32 row;     // the tile's first
    u32 column;  // its first byte in the row
    int bytes;   // bytes of each row that are in the tile
};

__device__ __forceinline__ RowTile nth_tile(const RowTiles& p, u32 index) {
    RowTile tile;
    const u32 block = divide(index, p.tiles_per_data_block);
    const u32 n = index - block * p.tiles_per_data_block.divisor;
    const u32 rows = divide(n, p.parts_per_row);
    tile.block = locate(block, p.r);
    tile.row = rows * p.rows_per_tile;
    tile.column = (n - rows * p.parts_per_row.divisor) * p.tile_row_bytes;
    tile.bytes = static_cast<int>(min(p.tile_row_bytes, p.row_bytes.divisor - tile.column));
    return tile;
}

// The most vectors of a tile's run.
__device__ __forceinline__ u32 most_vectors(const RowTiles& p) { return p.rows_per_tile * p.tile_row_bytes / 16 + 2; }

// The first byte of row `row` of the inner block at element `block`.
template <class Byte>
__device__ __forceinline__ Byte* row_of(Byte* tensor, u32 block, u32 row, u32 stride, const RowTiles& p) {
    return tensor + static_cast<u64>(block) * p.element_bytes + static_cast<u64>(row) * stride * p.element_bytes;
}

// Writes a run of bytes from shared memory, where the run begins at byte `from`.
template <u32 W>
__device__ __forceinline__ void write_run(u8* out, u32 from, int bytes, u32 thread, u32 threads) {
    const int lead = static_cast<int>(lead_of(out));
    for (int x = static_cast<int>(thread * 16) - lead; x < bytes; x += static_cast<int>(threads * 16)) {
        store_partial<W>(out + x, smem_unaligned(from + x), -x, bytes - x);
    }
}

// Out of place. The tile is a row, or a part of one, which goes to where the length says.
template <class Unit>
__device__ __forceinline__ void copy_single_rows(const RowTiles& p) {
    const ThreadGroup group = this_group(p.group_size_log2);
    const bool exists = group.index < p.r.items;  // the last thread block may have groups without a tile
    const RowTile tile = nth_tile(p, exists ? group.index : 0);
    const Length loaded = load_length(tile.block.length, p.r);
    const u8* const input = static_cast<const u8*>(p.r.input);
    const u8* const from = row_of(input, tile.block.in, tile.row, p.r.axis_in_stride, p) + tile.column;
    const u32 lead = lead_of(from),
              at_vector = RUN_SLACK_BEFORE + group.in_block * (most_vectors(p) + RUN_SLACK_BEHIND);
    stage_run(smem + at_vector, from - lead, exists ? (lead + tile.bytes + 15) / 16 : 0, group, input_bounds(p.r));
    const u32 to = source(tile.row, clamp_length(loaded, p.r));
    u8* const out = row_of(static_cast<u8*>(p.r.out), tile.block.out, to, p.r.axis_out_stride, p) + tile.column;
    sync(group);
    if (exists) write_run<sizeof(Unit)>(out, at_vector * 16 + lead, tile.bytes, group.thread, group.size);
}

// Out of place, a tile is staged from where it is in the input, so that its loads need not wait for the length. Then it
// has up to two runs: the rows below the length, which are reversed and written where the length says, and those that
// stay.
template <class Unit>
__device__ __forceinline__ void copy_row_tiles(const RowTiles& p) {
    const RowTile tile = nth_tile(p, blockIdx.x);
    const Length loaded = load_length(tile.block.length, p.r);
    const u32 rows = min(p.rows_per_tile, p.r.axis_size - tile.row);
    const int bytes = static_cast<int>(rows) * tile.bytes;
    const u8* const input = static_cast<const u8*>(p.r.input);
    const u8* const from = row_of(input, tile.block.in, tile.row, p.r.axis_in_stride, p) + tile.column;
    const u32 lead = lead_of(from), begin = RUN_SLACK_BEFORE * 16 + lead;
    stage_run(smem + RUN_SLACK_BEFORE, from - lead, (lead + bytes + 15) / 16, whole_block(), input_bounds(p.r));
    const u32 length = clamp_length(loaded, p.r);
    const u32 reversed = length > tile.row ? min(rows, length - tile.row) : 0;
    const int reversed_bytes = static_cast<int>(reversed) * tile.bytes;
    __syncthreads();
    if (reversed > 1) {
        const ReverseInShared<Unit, false> reverse(p.row_bytes, threadIdx.x, THREADS);
        reverse(reinterpret_cast<u8*>(smem) + begin, reversed_bytes);
        __syncthreads();
    }
    const auto write = [&](u32 row, u32 at, int size) {
        if (size == 0) return;
        u8* const out = row_of(static_cast<u8*>(p.r.out), tile.block.out, row, p.r.axis_out_stride, p) + tile.column;
        write_run<sizeof(Unit)>(out, begin + at, size, threadIdx.x, THREADS);
    };
    write(length - tile.row - reversed, 0, reversed_bytes);
    write(tile.row + reversed, reversed_bytes, bytes - reversed_bytes);
}

// In place, a thread block takes a tile of the first half of a length and the rows that change places with it. Half of
// the threads read one, half the other. Each half writes what it has read to where the other half read.
//
// In-place safety: both runs belong to one thread block, which reads all of them before the barrier and writes
// after it. (Vectors at a run's ends are read whole; bytes outside the run are ignored.)
static constexpr u32 HALF = THREADS / 2;

template <class Unit>
__device__ __forceinline__ void swap_row_tiles(const RowTiles& p) {
    const RowTile tile = nth_tile(p, blockIdx.x);
    const u32 length = lane_length(tile.block.length, p.r);
    if (tile.row >= length / 2) return;  // the same for all threads
    const u32 rows = min(p.rows_per_tile, length / 2 - tile.row);
    const int bytes = static_cast<int>(rows) * tile.bytes;
    u8* const block = static_cast<u8*>(p.r.out) + static_cast<u64>(tile.block.out) * p.element_bytes + tile.column;

    const bool in_front = threadIdx.x < HALF;
    const u32 thread = threadIdx.x & (HALF - 1);
    const u32 mirror = length - tile.row - rows;
    const u64 stride = static_cast<u64>(p.r.axis_out_stride) * p.element_bytes;
    const u8* const from = block + (in_front ? tile.row : mirror) * stride;
    u8* const to = block + (in_front ? mirror : tile.row) * stride;
    const u32 lead = lead_of(from);
    const u32 at_vector = RUN_SLACK_BEFORE + (in_front ? 0 : most_vectors(p) + RUN_SLACK_BEHIND);
    stage_run(smem + at_vector, from - lead, (lead + bytes + 15) / 16, ThreadGroup{HALF, thread, 0, 0},
              input_bounds(p.r));
    __syncthreads();
    if (rows > 1 && joins_rows<Unit>(p.row_bytes)) {
        return write_joined_rows(to, at_vector * 16 + lead, bytes, p.row_bytes, thread, HALF);
    }
    if (rows > 1) {
        ReverseInShared<Unit, false>(p.row_bytes, thread, HALF)(reinterpret_cast<u8*>(smem + at_vector) + lead, bytes);
    }
    __syncthreads();
    write_run<sizeof(Unit)>(to, at_vector * 16 + lead, bytes, thread, HALF);
}

ENTRIES_TO_4((THREADS), Segments, reverse_packed_rows, copy_segments, false)
ENTRIES_TO_4((THREADS, 6), Segments, reverse_packed_rows_in_place, swap_packed_rows)
ENTRIES_TO_4((THREADS, 6), RowTiles, reverse_single_rows, copy_single_rows)
ENTRIES_TO_4((THREADS, 8), RowTiles, reverse_row_tiles, copy_row_tiles)
ENTRIES_TO_4((THREADS, 6), RowTiles, reverse_row_tiles_in_place, swap_row_tiles)
