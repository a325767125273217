// REVERSE_SUBSEQUENCES for blocks whose rows are runs of any alignment. The contract is in the header.
//
// An item is a 16-byte slot of an output row, whose bytes keep their order. A slot that an end of the row cuts is
// stored in part.
//
// Why in place is right: all rows begin at one alignment (plan), so that a slot of a row and the same slot of the row
// it changes places with hold the same bytes of theirs. One thread owns both: reads both, then writes both. (Slots at
// a row's ends are loaded whole; the bytes beyond the row are dropped.)
#include "reverse_subsequences.cuh"

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
        begin[k] = static_cast<i64>(slot) * 16 - static_cast<i64>(reinterpret_cast<u64>(run) & 15);
        if (begin[k] >= size) continue;
        out[k] = run + begin[k];
        value[k] = load_window(in + begin[k], bounds);
    }
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        if (out[k]) store_part<1>(out[k], value[k], clamp(-begin[k]), clamp(size - begin[k]));
    }
}

// In place: an item is a slot of two rows, t below half the axis size; those at or past half the length have no work.
template <u32 ITEMS>
__device__ __forceinline__ void swap_rows(const Reverse& p) {
    const Bounds bounds = input_bounds(p);
    const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    const i64 size = p.block.divisor;
    const i64 lead = static_cast<i64>(reinterpret_cast<u64>(p.out) & 15);
    u8* front_at[ITEMS];
    u8* back_at[ITEMS];
    i64 begin[ITEMS];
    uint4 front[ITEMS], back[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const u64 item = first + k * THREADS;
        front_at[k] = nullptr;
        if (item >= p.items) continue;
        const u32 row = divide(static_cast<u32>(item), p.parts);
        const u32 slot = static_cast<u32>(item) - row * p.parts.divisor;
        const Position at_row = locate(row, p);
        const u32 length = lane_length(at_row.length, p);
        begin[k] = static_cast<i64>(slot) * 16 - lead;
        if (at_row.t >= length / 2 || begin[k] >= size) continue;
        u8* const lane = static_cast<u8*>(p.out) + static_cast<u64>(at_row.out) * p.unit + begin[k];
        const u64 stride = static_cast<u64>(p.axis_out_stride) * p.unit;
        front_at[k] = lane + at_row.t * stride;
        back_at[k] = lane + (length - 1 - at_row.t) * stride;
        front[k] = load_slot(front_at[k], bounds);
        back[k] = load_slot(back_at[k], bounds);
    }
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        if (front_at[k] == nullptr) continue;
        store_part<1>(front_at[k], back[k], clamp(-begin[k]), clamp(size - begin[k]));
        store_part<1>(back_at[k], front[k], clamp(-begin[k]), clamp(size - begin[k]));
    }
}

REVERSE_ENTRY(reverse_rows, copy_rows<2>)
REVERSE_ENTRY(reverse_rows_swap, swap_rows<2>)
