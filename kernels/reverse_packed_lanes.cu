// REVERSE_SUBSEQUENCES for short contiguous lanes that are adjacent in memory. See reverse.cuh for the contract.
//
//   out[n * axis_size + t] = in[n * axis_size + source(t, L)]      lane n
//
//   | lane 0 | lane 1 | lane 2 | ...      lane n begins at byte n * lane_bytes
//
// Algorithm
//   Lanes are segments (segments.cuh): a thread block stages as many whole lanes as fit, and reverses them in shared
//   memory or while it writes them.
//
// Mapping of threads to elements
//   A group of 2^group_size_log2 threads takes a lane. Out of place the thread block then writes 16-byte vectors across
//   all lanes. In place neighbouring threads write neighbouring elements of one lane.
//
// Variants: out of place and in place, for elements of each size.
//
// In-place safety: a segment belongs to one thread block, which reads all of it before a barrier and writes only after
// it. It writes no byte at or past the length.
#include "segments.cuh"

// A thread writes elements directly from their source in shared memory. This saves the barrier and the partial vectors
// of a reversal in shared memory.
template <class Element>
__device__ __forceinline__ void swap_packed_lanes(const Segments& p) {
    constexpr int W = sizeof(Element);
    const Stage s = stage_segments<true>(p, W);
    const int first = static_cast<int>(threadIdx.x & ((1u << p.group_size_log2) - 1)) * W,
              step = W << p.group_size_log2;
    for (u32 n = threadIdx.x >> p.group_size_log2; n < s.segments; n += THREADS >> p.group_size_log2) {
        const u32 begin = n * p.segment_bytes.divisor;
        const int length = s.lengths[n];
        const u8* from = reinterpret_cast<const u8*>(smem) + s.begin + begin + (length - W - first);
        u8* const out = s.out + begin;
#pragma unroll 1
        for (int x = first; x < length; x += step, from -= step) {
            *reinterpret_cast<Element*>(out + x) = *reinterpret_cast<const Element*>(from);
        }
    }
}

ENTRIES_TO_4((THREADS), Segments, reverse_packed_lanes, copy_segments, true)
ENTRIES_TO_4((THREADS), Segments, reverse_packed_lanes_in_place, swap_packed_lanes)
