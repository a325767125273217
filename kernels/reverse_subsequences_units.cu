// REVERSE_SUBSEQUENCES for any strides: a thread moves units, wherever they lie. A unit is one element or, where
// a contiguous block lies behind the axis, up to 16 bytes of it. The contract is in the header.
//
// Why in place is right: one thread owns the pair (t, L-1-t), reads both, then writes both; pairs are disjoint,
// and the middle element of an odd length stays where it is.
#include "reverse_subsequences.cuh"

// Where item n is. NEAR: in three dimensions at most, with no loop.
template <bool NEAR>
__device__ __forceinline__ Position place_of(u64 n, const Reverse& p) {
    return NEAR ? locate_near(static_cast<u32>(n), p) : locate(static_cast<u32>(n), p);
}

// Copying: an item is an output unit. ITEMS of them a thread, a block of threads apart, so that their loads overlap.
template <class Unit, u32 ITEMS, bool NEAR>
__device__ __forceinline__ void copy_items(const Reverse& p) {
    const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    Unit unit[ITEMS];
    u32 target[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const u64 item = first + k * THREADS;
        if (item < p.items) {
            const Position at_item = place_of<NEAR>(item, p);
            const u32 from = source(at_item.t, lane_length(at_item.length, p));
            unit[k] = *at(static_cast<const Unit*>(p.in), at_item.in + from * p.axis_in_stride);
            target[k] = at_item.out + at_item.t * p.axis_out_stride;
        }
    }
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        if (first + k * THREADS < p.items) *at(static_cast<Unit*>(p.out), target[k]) = unit[k];
    }
}

// In place: an item is a pair, t below half the axis size; those at or past half the length have no work. Units of 16
// bytes take turns: the first pair, the last, the second, and so on, so that at any time about as many have work. Narrower
// ones do not: their neighbours on the axis share a sector.
template <class Unit, u32 ITEMS, bool NEAR>
__device__ __forceinline__ void swap_items(const Reverse& p) {
    const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    Unit front[ITEMS], back[ITEMS];
    u32 front_at[ITEMS], back_at[ITEMS];
    bool moves[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const u64 item = first + k * THREADS;
        moves[k] = item < p.items;
        if (!moves[k]) continue;
        const Position at_item = place_of<NEAR>(item, p);
        u32 t = at_item.t;
        if (sizeof(Unit) == 16) t = t % 2 == 0 ? t / 2 : p.axis_size / 2 - 1 - t / 2;
        const u32 length = lane_length(at_item.length, p);
        moves[k] = t < length / 2;
        if (!moves[k]) continue;
        front_at[k] = at_item.out + t * p.axis_out_stride;
        back_at[k] = at_item.out + (length - 1 - t) * p.axis_out_stride;
        front[k] = *at(static_cast<const Unit*>(p.out), front_at[k]);
        back[k] = *at(static_cast<const Unit*>(p.out), back_at[k]);
    }
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        if (!moves[k]) continue;
        *at(static_cast<Unit*>(p.out), front_at[k]) = back[k];
        *at(static_cast<Unit*>(p.out), back_at[k]) = front[k];
    }
}

// Few dimensions matter where units are narrow, so that there are many. Microseconds on an H200, 2026-11-21, of lanes
// [*, 65536, 2], copying, with the loop alone: u8 171, not 220; f32 47, not 59; of units of 8 bytes the same. In place,
// [*, 16384, 33] i64 14.6, not 16.9; of units of 16 bytes the same.
template <class Unit, u32 ITEMS>
__device__ __forceinline__ void copy_units(const Reverse& p) {
    if (sizeof(Unit) < 8 && p.rank <= 3) {
        copy_items<Unit, ITEMS, true>(p);
    } else {
        copy_items<Unit, ITEMS, false>(p);
    }
}
template <class Unit, u32 ITEMS>
__device__ __forceinline__ void swap_units(const Reverse& p) {
    if (sizeof(Unit) < 16 && p.rank <= 3) {
        swap_items<Unit, ITEMS, true>(p);
    } else {
        swap_items<Unit, ITEMS, false>(p);
    }
}

REVERSE_ENTRY(reverse_copy_1, (copy_units<u8, 4>))
REVERSE_ENTRY(reverse_copy_2, (copy_units<u16, 4>))
REVERSE_ENTRY(reverse_copy_4, (copy_units<u32, 4>))
REVERSE_ENTRY(reverse_copy_8, (copy_units<u64, 4>))
REVERSE_ENTRY(reverse_copy_16, (copy_units<uint4, 4>))
REVERSE_ENTRY(reverse_swap_1, (swap_units<u8, 2>))
REVERSE_ENTRY(reverse_swap_2, (swap_units<u16, 2>))
REVERSE_ENTRY(reverse_swap_4, (swap_units<u32, 2>))
REVERSE_ENTRY(reverse_swap_8, (swap_units<u64, 2>))
REVERSE_ENTRY(reverse_swap_16, (swap_units<uint4, 2>))
