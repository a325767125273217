// REVERSE_SUBSEQUENCES: what its kernels for groups of lanes share. A group is a short lane, or a block of lanes with one
// length, and groups lie one behind the other in memory. A block of threads takes so many whole groups as fit its
// shared memory and reads them as they lie.
#pragma once

#include "reverse_subsequences.cuh"

// The groups of a block of threads, and where they lie in shared memory: lengths first, one more than groups; then a
// slot for windows that begin before the first group, and the groups at the alignment they have in memory.
struct Stage {
    const u8* in;
    u8* out;
    int* lengths;  // in bytes of the group
    u32 groups;
    int span;      // bytes of all groups
    u32 lead;      // bytes of the first slot before the first group
    u32 begin;     // the first group's place in shared memory
};

// Slots, or lengths, that a thread reads before it stores the first.
static constexpr u32 AT_ONCE = 4;

// Reads the lengths of groups from `begin` on, one for a thread in turn, and a 0 behind the last.
__device__ __forceinline__ void read_lengths(const Stage& s, u32 first, u32 begin, u32 row_bytes, const Reverse& p) {
    if (p.rank > 1) {
        for (u32 g = begin + threadIdx.x; g <= s.groups; g += THREADS) {
            s.lengths[g] = g < s.groups ? static_cast<int>(lane_length(locate(first + g, p).length, p) * row_bytes) : 0;
        }
        return;
    }
    for (begin += threadIdx.x; begin <= s.groups; begin += AT_ONCE * THREADS) {
        u32 length[AT_ONCE];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 g = begin + k * THREADS;
            length[k] = g < s.groups ? lane_length((first + g) * p.dims[0].length_stride, p) : 0;
        }
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 g = begin + k * THREADS;
            if (g <= s.groups) s.lengths[g] = static_cast<int>(length[k] * row_bytes);
        }
    }
}

// The same for many groups: where lengths lie one behind the other, 4 at a time.
__device__ __forceinline__ void read_many_lengths(const Stage& s, u32 first, u32 row_bytes, const Reverse& p) {
    constexpr u32 VECTORS = 3;
    const uint4* const from = reinterpret_cast<const uint4*>(static_cast<const u32*>(p.lengths) + first);
    const bool in_vectors = p.rank == 1 && p.dims[0].length_stride == 1 && !p.wide_lengths &&
                            (reinterpret_cast<u64>(from) & 15) == 0;
    const u32 count = in_vectors ? s.groups / 4 : 0;
    for (u32 begin = threadIdx.x; begin < count; begin += VECTORS * THREADS) {
        uint4 length[VECTORS];
#pragma unroll
        for (u32 k = 0; k < VECTORS; ++k) {
            if (begin + k * THREADS < count) length[k] = from[begin + k * THREADS];
        }
#pragma unroll
        for (u32 k = 0; k < VECTORS; ++k) {
            const auto bytes = [&](u32 rows) { return min(rows, p.axis_size) * row_bytes; };
            if (begin + k * THREADS < count) {
                reinterpret_cast<uint4*>(s.lengths)[begin + k * THREADS] =
                    make_uint4(bytes(length[k].x), bytes(length[k].y), bytes(length[k].z), bytes(length[k].w));
            }
        }
    }
    read_lengths(s, first, count * 4, row_bytes, p);
}

// Whether a slot holds a byte below a length, or the next group begins in it or right behind: not where it lies past a
// length, within the group.
__device__ __forceinline__ bool holds_any(int x, const Stage& s, const Reverse& p) {
    const u32 g = divide(max(x, 0), p.group);
    const int group = static_cast<int>(g * p.group.divisor);
    return x < group + s.lengths[g] || x + 16 > group + static_cast<int>(p.group.divisor);
}

template <bool IN_PLACE>
__device__ __forceinline__ Stage stage(const Reverse& p, u32 row_bytes) {
    const u32 first = blockIdx.x * p.together;
    const u64 offset = static_cast<u64>(first) * p.group.divisor;
    Stage s;
    s.in = static_cast<const u8*>(p.in) + offset;
    s.out = static_cast<u8*>(p.out) + offset;
    s.lengths = reinterpret_cast<int*>(staged);
    s.groups = min(p.together, static_cast<u32>(p.items) - first);
    s.span = static_cast<int>(s.groups * p.group.divisor);
    s.lead = static_cast<u32>(reinterpret_cast<u64>(s.in) & 15);
    const u32 slots_at = (p.together + 1 + 3) / 4 + 1;
    s.begin = slots_at * 16 + s.lead;

    const Bounds bounds = input_bounds(p);
    const u8* const from = s.in - s.lead;
    const u32 count = (s.lead + s.span + 15) / 16;
    const bool inside = from >= bounds.begin && from + count * 16 <= bounds.end;
    // Lengths of few groups are on their way together with the first slots. H200, 2026-11-21: lanes of 31 f16 40
    // microseconds, 43 if they are read before; of 31 u8, 516 groups, 57 together and 51 before.
    const bool with_slots = !IN_PLACE && inside && s.groups < 2 * THREADS;
    if (!with_slots) read_many_lengths(s, first, row_bytes, p);
    if (IN_PLACE) __syncthreads();
    if (inside) {
        const uint4* const source = reinterpret_cast<const uint4*>(from);
        for (u32 begin = threadIdx.x; begin < count; begin += AT_ONCE * THREADS) {
            uint4 loaded[AT_ONCE];
            bool wanted[AT_ONCE];
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                const u32 slot = begin + k * THREADS;
                wanted[k] = slot < count;
                if (IN_PLACE && wanted[k]) wanted[k] = holds_any(static_cast<int>(slot * 16 - s.lead), s, p);
                if (wanted[k]) loaded[k] = source[slot];
            }
            if (with_slots && begin == threadIdx.x) read_lengths(s, first, 0, row_bytes, p);
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                if (wanted[k]) staged[slots_at + begin + k * THREADS] = loaded[k];
            }
        }
        if (with_slots && threadIdx.x >= count) read_lengths(s, first, 0, row_bytes, p);
    } else {  // the tensor's first groups or its last
        for (u32 slot = threadIdx.x; slot < count; slot += THREADS) {
            const bool wanted = !IN_PLACE || holds_any(static_cast<int>(slot * 16 - s.lead), s, p);
            if (wanted) staged[slots_at + slot] = load_slot(from + slot * 16, bounds);
        }
    }
    __syncthreads();
    return s;
}

