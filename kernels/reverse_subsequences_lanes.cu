// REVERSE_SUBSEQUENCES for long runs of bytes: contiguous lanes, and blocks whose rows are not a multiple of 16
// bytes. The contract is in the header.
//
// A run is cut into 16-byte slots at aligned addresses of the output. What goes into a slot is a window of the
// same lane at any alignment: two aligned loads and a shift; for a lane its elements are then turned around in
// registers. A slot that the length or an end of the run cuts is stored in part.
#include "reverse_subsequences.cuh"

// Bytes of a slot's begin before the output run's: slots are counted from the one that holds its first byte.
__device__ __forceinline__ u32 lead_of(const void* run) { return static_cast<u32>(reinterpret_cast<u64>(run) & 15); }

// ---- Copying: long lanes ----------------------------------------------------------------------------------
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

__device__ __forceinline__ void copy_slot(const Tile& tile, int x, uint4 v, const Bounds& bounds) {
    const bool reversed = x < tile.length;
    const int end = reversed ? tile.length : tile.size;
    if (x >= tile.begin && x + 16 <= end) {
        store_slot(tile.out + x, v);
        return;
    }
    store_part(tile.out + x, v, tile.begin - x, end - x);
    // The slot that the length cuts holds the first of the elements that stay.
    if (reversed && x + 16 > tile.length && tile.length < tile.size) {
        store_part(tile.out + x, load_window(tile.same + x, bounds), tile.length - x, tile.size - x);
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
        if (x < tile.size) copy_slot(tile, x, value[k], bounds);
    }
}

// ---- Copying: short lanes ---------------------------------------------------------------------------------
// An item is a slot, each with a lane of its own.

template <class Element>
__device__ __forceinline__ void copy_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    const u64 item = global_thread();
    if (item >= p.items) return;
    const u32 lane = divide(static_cast<u32>(item), p.parts);
    const u32 slot = static_cast<u32>(item) - lane * p.parts.divisor;
    const Position at_lane = locate(lane, p);
    // A short lane is less than 2^31 bytes long (plan).
    const int length = static_cast<int>(lane_length(at_lane.length, p) * W);
    const int size = static_cast<int>(p.axis_size * W);
    const u8* in = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.in), at_lane.in));
    u8* run = reinterpret_cast<u8*>(at(static_cast<Element*>(p.out), at_lane.out));
    const int lead = static_cast<int>(lead_of(run));
    const int x = static_cast<int>(slot) * 16;
    const Tile tile = {run - lead, in + (length + lead - 16), in - lead, lead, length + lead, size + lead};
    if (x >= tile.size) return;
    const Bounds bounds = input_bounds(p);
    const bool reversed = x < tile.length;
    const uint4 v = load_window(reversed ? tile.back - x : tile.same + x, bounds);
    copy_slot(tile, x, reversed ? turn<W>(v) : v, bounds);
}

// Rows of a block behind the axis: an item is a slot of an output row, whose bytes keep their order.
template <u32 ITEMS>
__device__ __forceinline__ void copy_rows(const Reverse& p) {
    const Bounds bounds = input_bounds(p);
    const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    const i64 size = p.block.divisor;  // in bytes; strides are in elements, of `unit` bytes
    u8* out[ITEMS];
    i64 begin[ITEMS];
    uint4 value[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const u64 item = first + k * THREADS;
        out[k] = nullptr;
        if (item >= p.items) continue;
        const u32 row = divide(static_cast<u32>(item), p.parts);
        const u32 slot = static_cast<u32>(item) - row * p.parts.divisor;
        const Position at_row = locate(row, p);
        const u32 from = source(at_row.t, lane_length(at_row.length, p));
        const u8* in = static_cast<const u8*>(p.in) + static_cast<u64>(at_row.in) * p.unit +
                       static_cast<u64>(from) * p.axis_in_stride * p.unit;
        u8* run = static_cast<u8*>(p.out) + static_cast<u64>(at_row.out) * p.unit +
                  static_cast<u64>(at_row.t) * p.axis_out_stride * p.unit;
        begin[k] = static_cast<i64>(slot) * 16 - lead_of(run);
        if (begin[k] >= size) continue;
        out[k] = run + begin[k];
        value[k] = load_window(in + begin[k], bounds);
    }
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        if (out[k]) store_part(out[k], value[k], clamp(-begin[k]), clamp(size - begin[k]));
    }
}

// ---- In place -------------------------------------------------------------------------------------------
// A team of threads takes a tile of a lane: FRONT slots of the first half of a length, and the bytes they mirror in
// the second half. A block takes one tile of a long lane, a warp the tiles of a short one, one after the other. Every
// byte of a tile is read before the team's barrier and written after it, and what a slot of the tile becomes lies in
// the tile, so that no team reads what another writes or writes what another reads. (Slots at a tile's edges are
// loaded whole, but never beyond the length; the bytes beyond the edge are dropped.)

template <class Element, u32 TEAM>
__device__ __forceinline__ void swap_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    constexpr u32 ITEMS = 2;
    constexpr int FRONT = TEAM * ITEMS / 2 - 1;
    const u32 team = TEAM == THREADS ? blockIdx.x : blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    if (team >= p.items) return;
    const u32 lane = TEAM == THREADS ? divide(team, p.parts) : team;
    const u32 part = TEAM == THREADS ? team - lane * p.parts.divisor : 0;
    const Position at_lane = locate(lane, p);
    const u32 elements = lane_length(at_lane.length, p);
    u8* const run = reinterpret_cast<u8*>(at(static_cast<Element*>(p.out), at_lane.out));
    const i64 length = static_cast<i64>(elements) * W;
    const i64 half = static_cast<i64>(elements / 2) * W;
    const i64 lead = lead_of(run);
    const Bounds bounds = {run, run + length};

    for (i64 cut = static_cast<i64>(part) * (FRONT * 16) - lead; cut < half; cut += FRONT * 16) {
        // The front [front, front_end) and the back [back, back_end), in bytes from the lane's first.
        const i64 front = cut < 0 ? 0 : cut;
        const i64 front_end = cut + FRONT * 16 < half ? cut + FRONT * 16 : half;
        if (front >= front_end) break;  // the same for all threads of the team
        const i64 back = length - front_end, back_end = length - front;
        const i64 back_cut = back - static_cast<i64>((reinterpret_cast<u64>(run) + back) & 15);

        // Both sides in distances from their first slots: 32 bits hold them.
        u8* const front_out = run + cut;
        u8* const back_out = run + back_cut;
        const u8* const front_from = run + (length - cut - 16);
        const u8* const back_from = run + (length - back_cut - 16);
        const u32 front_shift = static_cast<u32>(reinterpret_cast<u64>(front_from) & 15);
        const u32 back_shift = static_cast<u32>(reinterpret_cast<u64>(back_from) & 15);
        const int front_to = static_cast<int>(front_end - cut), back_to = static_cast<int>(back_end - back_cut);
        const int front_skip = static_cast<int>(front - cut), back_skip = static_cast<int>(back - back_cut);

        uint4 value[ITEMS];
#pragma unroll
        for (u32 k = 0; k < ITEMS; ++k) {
            const int slot = static_cast<int>(k * TEAM + threadIdx.x % TEAM);
            const bool in_front = slot < FRONT;
            const int x = (in_front ? slot : slot - FRONT) * 16;
            if (x >= (in_front ? front_to : back_to)) continue;
            const u8* from = (in_front ? front_from : back_from) - x;
            const u32 shift = in_front ? front_shift : back_shift;
            const u8* first = from - shift;
            const bool inside = first >= bounds.begin && first + 32 <= bounds.end;
            value[k] = turn<W>(inside ? load_window_inside(from, shift) : load_window_in_part(from, bounds));
        }
        if (TEAM == THREADS) {
            __syncthreads();
        } else {
            __syncwarp();
        }
#pragma unroll
        for (u32 k = 0; k < ITEMS; ++k) {
            const int slot = static_cast<int>(k * TEAM + threadIdx.x % TEAM);
            const bool in_front = slot < FRONT;
            const int x = (in_front ? slot : slot - FRONT) * 16;
            const int to = in_front ? front_to : back_to;
            if (x >= to) continue;
            store_part((in_front ? front_out : back_out) + x, value[k], (in_front ? front_skip : back_skip) - x, to - x);
        }
        if (TEAM == THREADS) break;
    }
}

REVERSE_ENTRY(reverse_lanes_1, copy_lanes<u8>)
REVERSE_ENTRY(reverse_lanes_2, copy_lanes<u16>)
REVERSE_ENTRY(reverse_lanes_4, copy_lanes<u32>)
REVERSE_ENTRY(reverse_lanes_8, copy_lanes<u64>)
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_1, (copy_long_lanes<u8, 2>))
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_2, (copy_long_lanes<u16, 2>))
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_4, (copy_long_lanes<u32, 2>))
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_8, (copy_long_lanes<u64, 2>))
REVERSE_ENTRY(reverse_rows, copy_rows<2>)
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_swap_1, (swap_lanes<u8, THREADS>))
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_swap_2, (swap_lanes<u16, THREADS>))
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_swap_4, (swap_lanes<u32, THREADS>))
REVERSE_ENTRY_BLOCKS(8, reverse_long_lanes_swap_8, (swap_lanes<u64, THREADS>))
REVERSE_ENTRY_BLOCKS(5, reverse_lanes_swap_1, (swap_lanes<u8, 32>))
REVERSE_ENTRY_BLOCKS(5, reverse_lanes_swap_2, (swap_lanes<u16, 32>))
REVERSE_ENTRY_BLOCKS(5, reverse_lanes_swap_4, (swap_lanes<u32, 32>))
REVERSE_ENTRY_BLOCKS(5, reverse_lanes_swap_8, (swap_lanes<u64, 32>))
