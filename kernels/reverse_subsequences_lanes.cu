// REVERSE_SUBSEQUENCES for contiguous lanes. The contract is in the header.
//
// A lane is cut into 16-byte slots at aligned addresses of the output. What goes into a slot is a window of the same
// lane at any alignment: two aligned slots and a shift; below the length its elements are then turned around in
// registers. A slot that an end of the lane, or in place the length, cuts is stored in part.
//
// Lanes that fit it are read into shared memory whole, every sector once, and windows are taken from there. Longer
// ones are cut into tiles, whose windows are read from memory.
#include "reverse_subsequences.cuh"

// Bytes of a slot's begin before the output run's: slots are counted from the one that holds its first byte.
__device__ __forceinline__ u32 lead_of(const void* run) { return static_cast<u32>(reinterpret_cast<u64>(run) & 15); }

// ---- Whole lanes ------------------------------------------------------------------------------------------
// A team of 2^team_log threads takes a lane, so that a thread has a few slots of it.
//
// Why in place is right: a lane belongs to one team, which reads all of it before the barrier and writes after it.
// Slots are read where they hold an element below the length; what else they hold is not used. Elements at or past the
// length are not written.

template <class Element, bool IN_PLACE, u32 AT_ONCE = 4>
__device__ __forceinline__ void whole_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    const Team team = team_of(p);
    const u32 lane = team.index;
    const bool active = lane < p.items;

    int length = 0;
    Length loaded = {0, 0};  // copying, L is waited for together with the lane
    const u8* in = nullptr;
    u8* run = nullptr;
    if (active) {
        const Position at_lane = locate(lane, p);
        if (IN_PLACE) {
            length = static_cast<int>(lane_length(at_lane.length, p) * W);
        } else {
            loaded = load_length(at_lane.length, p);
        }
        in = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.in), at_lane.in));
        run = reinterpret_cast<u8*>(at(static_cast<Element*>(p.out), at_lane.out));
    }
    const int size = IN_PLACE ? length : static_cast<int>(p.axis_size * W);
    const u32 in_lead = lead_of(in);
    // A slot is left before the lane, for windows that begin there.
    uint4* const slots = staged + team.in_block * p.pitch + 1;
    if (active) {
        const u32 count = size == 0 ? 0 : (in_lead + size + 15) / 16;
        read_run<AT_ONCE>(slots, in - in_lead, count, team, input_bounds(p));
    }
    sync_team(team);
    if (!active) return;
    if (!IN_PLACE) length = static_cast<int>(clamp_length(loaded, p) * W);

    // Bytes from the lane's first to `x`: those of the slot that is written. Its windows lie `back - x` and
    // `same + x` bytes behind the begin of shared memory.
    const int out_lead = static_cast<int>(lead_of(run));
    const int same = static_cast<int>((team.in_block * p.pitch + 1) * 16 + in_lead);
    const int back = same + length - 16;
    for (int x = static_cast<int>(team.thread) * 16 - out_lead; x < size; x += static_cast<int>(team.size) * 16) {
        uint4 v;
        if (x < length) {
            v = turn<W>(staged_window(static_cast<u32>(back - x)));
            if (!IN_PLACE && x + 16 > length) {
                v = select(bytes_from(length - x), v, staged_window(static_cast<u32>(same + x)));
            }
        } else {
            v = staged_window(static_cast<u32>(same + x));
        }
        store_part<W>(run + x, v, -x, size - x);
    }
}

// ---- Long lanes, copying -----------------------------------------------------------------------------------
// A block of threads takes a tile of a lane, so that all that depends on the lane, the alignments of its windows
// among it, is the same for all threads. Within a tile 32 bits hold every distance.

// A tile of slots, counted from its first byte, and the parts of the lane in it: [0, length) is reversed,
// [length, size) stays. Both may begin before the tile or end behind it.
struct Tile {
    u8* out;         // the tile's first slot
    const u8* back;  // the window that goes into it reversed; the next slot's lies 16 bytes before
    const u8* same;  // the window that stays; the next slot's lies 16 bytes behind
    int begin;       // bytes before the lane's first: negative where the tile begins in the lane
    int length;
    int size;
};

__device__ __forceinline__ int within(i64 distance, int tile) {
    return static_cast<int>(distance < -16 ? -16 : distance > tile ? tile : distance);
}

template <u32 W>
__device__ __forceinline__ void copy_slot(const Tile& tile, int x, uint4 v, const Bounds& bounds) {
    const bool reversed = x < tile.length;
    const int end = reversed ? tile.length : tile.size;
    if (x >= tile.begin && x + 16 <= end) {
        store_slot(tile.out + x, v);
        return;
    }
    store_part<W>(tile.out + x, v, tile.begin - x, end - x);
    // The slot that the length cuts holds the first of the elements that stay.
    if (reversed && x + 16 > tile.length && tile.length < tile.size) {
        store_part<W>(tile.out + x, load_window(tile.same + x, bounds), tile.length - x, tile.size - x);
    }
}

template <class Element, u32 ITEMS>
__device__ __forceinline__ void copy_long_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    constexpr int BYTES = THREADS * ITEMS * 16;
    const u32 lane = divide(blockIdx.x, p.parts);
    const u32 part = blockIdx.x - lane * p.parts.divisor;
    const Position at_lane = locate(lane, p);
    const i64 length = static_cast<i64>(lane_length(at_lane.length, p)) * W;
    const u8* in = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.in), at_lane.in));
    u8* run = reinterpret_cast<u8*>(at(static_cast<Element*>(p.out), at_lane.out));
    const i64 cut = static_cast<i64>(part) * BYTES - lead_of(run);
    const Tile tile = {run + cut,
                       in + (length - cut - 16),
                       in + cut,
                       within(-cut, BYTES),
                       within(length - cut, BYTES),
                       within(static_cast<i64>(p.axis_size) * W - cut, BYTES)};
    const Bounds bounds = input_bounds(p);
    const u32 back_shift = static_cast<u32>(reinterpret_cast<u64>(tile.back) & 15);
    const u32 same_shift = static_cast<u32>(reinterpret_cast<u64>(tile.same) & 15);

    uint4 value[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const int x = static_cast<int>(k * THREADS + threadIdx.x) * 16;
        if (x >= tile.size) continue;
        const bool reversed = x < tile.length;
        const u8* from = reversed ? tile.back - x : tile.same + x;
        const u32 shift = reversed ? back_shift : same_shift;
        const u8* slot = from - shift;
        const bool inside = slot >= bounds.begin && slot + 32 <= bounds.end;
        const uint4 v = inside ? load_window_inside(from, shift) : load_window_in_part(from, bounds);
        value[k] = reversed ? turn<W>(v) : v;
    }
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const int x = static_cast<int>(k * THREADS + threadIdx.x) * 16;
        if (x < tile.size) copy_slot<W>(tile, x, value[k], bounds);
    }
}

// ---- Long lanes, in place -----------------------------------------------------------------------------------
// A block of threads takes TILES tiles of a lane: FRONT slots of the first half of a length, and the bytes they mirror in
// the second half. Every byte of a tile is read before the barrier and written after it, and what a slot of the tile
// becomes lies in the tile, so that no block reads what another writes or writes what another reads. (Slots at a
// tile's edges are loaded whole, but never beyond the length; the bytes beyond the edge are dropped.)

// Waits for all threads and what they have loaded: a store to a line that loads are on their way from is slow. A barrier
// alone waits for the threads only.
__device__ __forceinline__ void sync_arrived(u32 loaded) { __syncthreads_or(loaded == 1); }

// Tiles that a block of threads takes (plan::TILES_OF_BLOCK).
static constexpr u32 TILES = 8;

template <class Element>
__device__ __forceinline__ void swap_long_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    constexpr u32 ITEMS = 2;
    constexpr int FRONT = THREADS * ITEMS / 2 - 1;
    const u32 lane = divide(blockIdx.x, p.parts);
    const u32 part = blockIdx.x - lane * p.parts.divisor;
    const Position at_lane = locate(lane, p);
    const u32 elements = lane_length(at_lane.length, p);
    u8* const run = reinterpret_cast<u8*>(at(static_cast<Element*>(p.out), at_lane.out));
    const i64 length = static_cast<i64>(elements) * W;
    const i64 half = static_cast<i64>(elements / 2) * W;
    const Bounds bounds = {run, run + length};

#pragma unroll 1
    for (u32 tile = part * TILES; tile < part * TILES + TILES; ++tile) {
        // The front [front, front_end) and the back [back, back_end), in bytes from the lane's first.
        const i64 cut = static_cast<i64>(tile) * (FRONT * 16) - lead_of(run);
        const i64 front = cut < 0 ? 0 : cut;
        const i64 front_end = cut + FRONT * 16 < half ? cut + FRONT * 16 : half;
        if (front >= front_end) break;  // the same for all threads
        const i64 back = length - front_end, back_end = length - front;
        const i64 back_cut = back - static_cast<i64>((reinterpret_cast<u64>(run) + back) & 15);

        // A thread's slots: where they lie, the bytes of each in the tile, and where the first byte of its window lies.
        u8* out[ITEMS];
        int begin[ITEMS], end[ITEMS];
        u32 shift[ITEMS];
        // Both slots of all windows are asked for before the first is waited for.
        uint4 low[ITEMS], high[ITEMS];
#pragma unroll
        for (u32 k = 0; k < ITEMS; ++k) {
            low[k] = high[k] = make_uint4(0, 0, 0, 0);
            const int slot = static_cast<int>(k * THREADS + threadIdx.x);
            const bool in_front = slot < FRONT;
            const i64 at_slot = (in_front ? cut : back_cut) + (in_front ? slot : slot - FRONT) * 16;
            begin[k] = clamp((in_front ? front : back) - at_slot);
            end[k] = clamp((in_front ? front_end : back_end) - at_slot);
            out[k] = run + at_slot;
            const u8* const from = run + (length - at_slot - 16);
            shift[k] = static_cast<u32>(reinterpret_cast<u64>(from) & 15);
            if (end[k] == 0) continue;
            const u8* const first = from - shift[k];
            if (first >= bounds.begin && first + 32 <= bounds.end) {
                low[k] = *reinterpret_cast<const uint4*>(first);
                if (shift[k] != 0) high[k] = *reinterpret_cast<const uint4*>(first + 16);
            } else {
                low[k] = load_slot(first, bounds);
                high[k] = load_slot(first + 16, bounds);
            }
        }
#pragma unroll
        for (u32 k = 0; k < ITEMS; ++k) low[k] = turn<W>(shift_slots(low[k], high[k], shift[k]));
        sync_arrived(low[0].x | low[1].x);
#pragma unroll
        for (u32 k = 0; k < ITEMS; ++k) {
            if (end[k] != 0) store_part<W>(out[k], low[k], begin[k], end[k]);
        }
    }
}

REVERSE_ENTRY_BLOCKS(6, reverse_lanes_1, (whole_lanes<u8, false>))
REVERSE_ENTRY_BLOCKS(6, reverse_lanes_2, (whole_lanes<u16, false>))
REVERSE_ENTRY_BLOCKS(6, reverse_lanes_4, (whole_lanes<u32, false>))
REVERSE_ENTRY_BLOCKS(6, reverse_lanes_8, (whole_lanes<u64, false>))
REVERSE_ENTRY_BLOCKS(6, reverse_lanes_swap_1, (whole_lanes<u8, true>))
REVERSE_ENTRY_BLOCKS(6, reverse_lanes_swap_2, (whole_lanes<u16, true>))
REVERSE_ENTRY_BLOCKS(6, reverse_lanes_swap_4, (whole_lanes<u32, true>))
REVERSE_ENTRY_BLOCKS(6, reverse_lanes_swap_8, (whole_lanes<u64, true>))
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_1, (copy_long_lanes<u8, 2>))
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_2, (copy_long_lanes<u16, 2>))
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_4, (copy_long_lanes<u32, 2>))
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_8, (copy_long_lanes<u64, 2>))
REVERSE_ENTRY_BLOCKS(5, reverse_long_lanes_swap_1, swap_long_lanes<u8>)
REVERSE_ENTRY_BLOCKS(5, reverse_long_lanes_swap_2, swap_long_lanes<u16>)
REVERSE_ENTRY_BLOCKS(5, reverse_long_lanes_swap_4, swap_long_lanes<u32>)
REVERSE_ENTRY_BLOCKS(5, reverse_long_lanes_swap_8, swap_long_lanes<u64>)
// Lanes of many slots a thread, of which 8 are on their way at once (plan::WIDE_LANE_BYTES).
REVERSE_ENTRY_BLOCKS(4, reverse_wide_lanes_swap_1, (whole_lanes<u8, true, 8>))
REVERSE_ENTRY_BLOCKS(4, reverse_wide_lanes_swap_2, (whole_lanes<u16, true, 8>))
REVERSE_ENTRY_BLOCKS(4, reverse_wide_lanes_swap_4, (whole_lanes<u32, true, 8>))
REVERSE_ENTRY_BLOCKS(4, reverse_wide_lanes_swap_8, (whole_lanes<u64, true, 8>))
