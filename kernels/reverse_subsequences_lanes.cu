// REVERSE_SUBSEQUENCES for long runs of bytes: contiguous lanes, and blocks whose rows are not a multiple of 16
// bytes. The contract is in the header.
//
// A run is cut into 16-byte slots at aligned addresses of the output. What goes into a slot is a window of the
// same lane at any alignment: two aligned loads and a shift; for a lane its elements are then turned around in
// registers. A slot that the length or an end of the run cuts is stored in part.
#include "reverse_subsequences.cuh"

// Bytes of a slot's begin before the output run's: slots are counted from the one that holds its first byte.
__device__ __forceinline__ u32 lead_of(const void* run) { return static_cast<u32>(reinterpret_cast<u64>(run) & 15); }

// ---- Copying --------------------------------------------------------------------------------------------
// An item is a slot. ITEMS of them a thread, a block of threads apart, so that their loads overlap.

template <class Element, u32 ITEMS>
__device__ __forceinline__ void copy_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    const Bounds bounds = input_bounds(p);
    const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    const i64 size = static_cast<i64>(p.axis_size) * W;
    u8* out[ITEMS];
    const u8* in[ITEMS];
    i64 begin[ITEMS], length[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const u64 item = first + k * THREADS;
        out[k] = nullptr;
        if (item >= p.items) continue;
        const u32 lane = divide(static_cast<u32>(item), p.parts);
        const u32 slot = static_cast<u32>(item) - lane * p.parts.divisor;
        const Position at_lane = locate(lane, p);
        length[k] = static_cast<i64>(lane_length(at_lane.length, p)) * W;
        in[k] = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.in), at_lane.in));
        u8* run = reinterpret_cast<u8*>(at(static_cast<Element*>(p.out), at_lane.out));
        begin[k] = static_cast<i64>(slot) * 16 - lead_of(run);
        if (begin[k] < size) out[k] = run + begin[k];
    }
    // Most slots lie whole in one part of the lane: one window each, all loaded before the first is stored.
    uint4 value[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        if (!out[k]) continue;
        const bool reversed = begin[k] < length[k];
        const uint4 v = load_window(in[k] + (reversed ? length[k] - begin[k] - 16 : begin[k]), bounds);
        value[k] = reversed ? turn<W>(v) : v;
    }
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        if (!out[k]) continue;
        const i64 end = begin[k] < length[k] ? length[k] : size;
        store_part(out[k], value[k], clamp(-begin[k]), clamp(end - begin[k]));
        // The slot that the length cuts holds the first of the elements that stay.
        if (begin[k] < length[k] && begin[k] + 16 > length[k] && length[k] < size) {
            store_part(out[k], load_window(in[k] + begin[k], bounds), clamp(length[k] - begin[k]), clamp(size - begin[k]));
        }
    }
}

// Rows of a block behind the axis: an item is a slot of an output row, whose bytes keep their order.
template <u32 ITEMS>
__device__ __forceinline__ void copy_rows(const Reverse& p) {
    const Bounds bounds = input_bounds(p);
    const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    const i64 size = p.block.divisor;  // bytes: the unit of the strides is a byte here
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
// A block of threads owns a tile: FRONT slots of the first half of a length, and the bytes they mirror in the
// second half. Every byte of the tile is read before the barrier and written after it, and what a slot of the
// tile becomes lies in the tile, so no other block reads what this one writes or writes what it reads. (Slots at
// the tile's edges are loaded whole; the bytes beyond the edge are dropped.)

template <class Element, u32 ITEMS>
__device__ __forceinline__ void swap_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    constexpr u32 FRONT = THREADS * ITEMS / 2 - 1;
    const u32 lane = divide(blockIdx.x, p.parts);
    const u32 tile = blockIdx.x - lane * p.parts.divisor;
    const Position at_lane = locate(lane, p);
    const u32 elements = lane_length(at_lane.length, p);
    u8* run = reinterpret_cast<u8*>(at(static_cast<Element*>(p.out), at_lane.out));
    const i64 length = static_cast<i64>(elements) * W;
    const i64 half = static_cast<i64>(elements / 2) * W;
    const u32 lead = lead_of(run);

    // The front [front, front_end) and the back [back, back_end), in bytes from the lane's first.
    const i64 cut = static_cast<i64>(tile) * (FRONT * 16) - lead;
    const i64 front = cut < 0 ? 0 : cut;
    const i64 front_end = cut + FRONT * 16 < half ? cut + FRONT * 16 : half;
    if (front >= front_end) return;  // the same for all threads of the block
    const i64 back = length - front_end, back_end = length - front;
    const i64 back_cut = back - static_cast<i64>((reinterpret_cast<u64>(run) + back) & 15);
    const Bounds bounds = {run, run + length};

    uint4 value[ITEMS];
    i64 begin[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const u32 slot = k * THREADS + threadIdx.x;
        begin[k] = slot < FRONT ? cut + slot * 16 : back_cut + (slot - FRONT) * 16;
        if (begin[k] < (slot < FRONT ? front_end : back_end)) {
            value[k] = turn<W>(load_window(run + (length - begin[k] - 16), bounds));
        }
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const bool in_front = k * THREADS + threadIdx.x < FRONT;
        const i64 from = in_front ? front : back, to = in_front ? front_end : back_end;
        if (begin[k] < to) store_part(run + begin[k], value[k], clamp(from - begin[k]), clamp(to - begin[k]));
    }
}

REVERSE_ENTRY(reverse_lanes_1, (copy_lanes<u8, 2>))
REVERSE_ENTRY(reverse_lanes_2, (copy_lanes<u16, 2>))
REVERSE_ENTRY(reverse_lanes_4, (copy_lanes<u32, 2>))
REVERSE_ENTRY(reverse_lanes_8, (copy_lanes<u64, 2>))
REVERSE_ENTRY(reverse_rows, copy_rows<2>)
REVERSE_ENTRY(reverse_lanes_swap_1, (swap_lanes<u8, 4>))
REVERSE_ENTRY(reverse_lanes_swap_2, (swap_lanes<u16, 4>))
REVERSE_ENTRY(reverse_lanes_swap_4, (swap_lanes<u32, 4>))
REVERSE_ENTRY(reverse_lanes_swap_8, (swap_lanes<u64, 4>))
