// REVERSE_SUBSEQUENCES for blocks of odd rows that are too large to be staged whole. The contract is in the header.
//
// A block is cut into tiles: so many whole rows as fit shared memory, or where a row does not, parts of one row. The rows of a
// tile come from one run of bytes, whatever the length: it is read as it lies, its rows are turned around in shared
// memory, and it is written 16 bytes at a time.
#include "turn.cuh"

// Where a block of threads' tile is: of which lane, and in it from which row and which byte of the row on.
struct Tile {
    Position lane;
    u32 row;     // the tile's first
    u32 column;  // its first byte in the row: 0 where the tile is of whole rows
    int bytes;   // of a row that are in the tile
};

// `group` counts the parts that a row is cut into, of `pitch` bytes each; `together` is the rows of a tile.
__device__ __forceinline__ Tile tile_of(const Reverse& p) {
    Tile tile;
    const u32 lane = divide(blockIdx.x, p.parts);
    const u32 part = blockIdx.x - lane * p.parts.divisor;
    const u32 rows = divide(part, p.group);
    tile.lane = locate(lane, p);
    tile.row = rows * p.together;
    tile.column = (part - rows * p.group.divisor) * p.pitch;
    tile.bytes = static_cast<int>(min(p.pitch, p.block.divisor - tile.column));
    return tile;
}

// Writes a run of bytes from shared memory, where its first byte is `from`.
template <u32 W>
__device__ __forceinline__ void write_run(u8* out, u32 from, int bytes, u32 thread, u32 threads) {
    const int lead = static_cast<int>(reinterpret_cast<u64>(out) & 15);
    for (int x = static_cast<int>(thread * 16) - lead; x < bytes; x += static_cast<int>(threads * 16)) {
        store_part<W>(out + x, staged_window(from + x), -x, bytes - x);
    }
}

// ---- Copying ------------------------------------------------------------------------------------------------
// Up to two runs: the rows of the tile below the length, and those that stay.
template <class Unit>
__device__ __forceinline__ void copy_long_rows(const Reverse& p) {
    const Tile tile = tile_of(p);
    const Bounds bounds = input_bounds(p);
    const Team all = {THREADS, threadIdx.x, 0, 0};
    const u32 length = lane_length(tile.lane.length, p);
    const u32 rows = min(p.together, p.axis_size - tile.row);
    const u32 turned = length > tile.row ? min(rows, length - tile.row) : 0;
    const auto in = [&](u32 row) {
        return static_cast<const u8*>(p.in) + static_cast<u64>(tile.lane.in) * p.unit +
               static_cast<u64>(row) * p.axis_in_stride * p.unit + tile.column;
    };
    const auto out = [&](u32 row) {
        return static_cast<u8*>(p.out) + static_cast<u64>(tile.lane.out) * p.unit +
               static_cast<u64>(row) * p.axis_out_stride * p.unit + tile.column;
    };
    // The slot before a run is left for windows that begin there.
    u32 at_slot = 1;
    const auto read = [&](const u8* from, int bytes) {
        const u32 lead = static_cast<u32>(reinterpret_cast<u64>(from) & 15);
        const u32 count = bytes == 0 ? 0 : (lead + bytes + 15) / 16, begin = at_slot * 16 + lead;
        read_run(staged + at_slot, from - lead, count, all, bounds);
        at_slot += count + 1;
        return begin;
    };
    const int turned_bytes = static_cast<int>(turned) * tile.bytes, same_bytes = static_cast<int>(rows - turned) * tile.bytes;
    const u32 turned_at = read(in(length - tile.row - turned), turned_bytes);
    const u32 same_at = read(in(tile.row + turned), same_bytes);
    __syncthreads();
    if (turned > 1) Turn<Unit, false>(p, threadIdx.x, THREADS)(reinterpret_cast<u8*>(staged) + turned_at, turned_bytes);
    __syncthreads();
    write_run<sizeof(Unit)>(out(tile.row), turned_at, turned_bytes, threadIdx.x, THREADS);
    write_run<sizeof(Unit)>(out(tile.row + turned), same_at, same_bytes, threadIdx.x, THREADS);
}

// ---- In place -----------------------------------------------------------------------------------------------
// A block of threads takes a tile of the first half of a length, and the rows that it changes places with: half of the
// threads read the one and half the other, and each write what they read where the others read.
//
// Why in place is right: the two runs belong to one block of threads, which reads all of them before the barrier and
// writes after it. Slots at a run's ends are read whole; the bytes beyond the run are not used.
static constexpr u32 HALF = THREADS / 2;

template <class Unit>
__device__ __forceinline__ void swap_long_rows(const Reverse& p) {
    const Tile tile = tile_of(p);
    const u32 length = lane_length(tile.lane.length, p);
    if (tile.row >= length / 2) return;  // the same for all threads
    const u32 rows = min(p.together, length / 2 - tile.row);
    const int bytes = static_cast<int>(rows) * tile.bytes;
    u8* const lane = static_cast<u8*>(p.out) + static_cast<u64>(tile.lane.out) * p.unit + tile.column;

    const bool in_front = threadIdx.x < HALF;
    const u32 thread = threadIdx.x & (HALF - 1);
    const u32 mirror = length - tile.row - rows;
    const u8* const from = lane + static_cast<u64>(in_front ? tile.row : mirror) * p.axis_out_stride * p.unit;
    u8* const to = lane + static_cast<u64>(in_front ? mirror : tile.row) * p.axis_out_stride * p.unit;
    const u32 lead = static_cast<u32>(reinterpret_cast<u64>(from) & 15);
    // Slots of shared memory for a run; the one before it is left for windows that begin there.
    const u32 at_slot = 1 + (in_front ? 0 : p.together * p.pitch / 16 + 3);
    read_run(staged + at_slot, from - lead, (lead + bytes + 15) / 16, Team{HALF, thread, 0, 0}, input_bounds(p));
    __syncthreads();
    if (rows > 1) Turn<Unit, false>(p, thread, HALF)(reinterpret_cast<u8*>(staged + at_slot) + lead, bytes);
    __syncthreads();
    write_run<sizeof(Unit)>(to, at_slot * 16 + lead, bytes, thread, HALF);
}

REVERSE_ENTRY_BLOCKS(8, reverse_long_rows_1, copy_long_rows<u8>)
REVERSE_ENTRY_BLOCKS(8, reverse_long_rows_2, copy_long_rows<u16>)
REVERSE_ENTRY_BLOCKS(8, reverse_long_rows_4, copy_long_rows<u32>)
REVERSE_ENTRY_BLOCKS(6, reverse_long_rows_swap_1, swap_long_rows<u8>)
REVERSE_ENTRY_BLOCKS(6, reverse_long_rows_swap_2, swap_long_rows<u16>)
REVERSE_ENTRY_BLOCKS(6, reverse_long_rows_swap_4, swap_long_rows<u32>)
