// REVERSE_SUBSEQUENCES for short contiguous lanes that are adjacent in memory. The contract is in reverse.cuh.
//
//   out[n * axis_size + t] = in[n * axis_size + source(t, L)]      lane n
//
//   | lane 0 | lane 1 | lane 2 | ...      lane n begins at byte n * lane_bytes
//
// Lanes of 2, 4 or 8 bytes are reversed in registers: a thread takes a vector of whole lanes. Other lanes are segments
// (segments.cuh) and are reversed in shared memory.
//
// Why in place is right: a segment belongs to one thread block, which reads all of it before a barrier and writes after it.
// Bytes at or past the length are not written.
#include "segments.cuh"

// ---- In registers, copying ----------------------------------------------------------------------------------

// A lane of N bytes, in the low bytes of a 64-bit word, with its elements of W bytes in reverse order.
template <u32 W, u32 N>
__device__ __forceinline__ u64 reverse_whole_lane(u64 lane) {
    const u32 low = static_cast<u32>(lane), high = static_cast<u32>(lane >> 32);
    if (N == 8) {
        const u32 order = W == 2 ? 0x1032 : 0x0123;
        return static_cast<u64>(__byte_perm(low, 0, order)) << 32 | __byte_perm(high, 0, order);
    }
    return __byte_perm(low, 0, N == 2 ? 0x4401 : W == 2 ? 0x1032 : 0x0123);
}

// The lane with its first `length` elements reversed: reverses the whole lane, shifts those elements into place, and
// keeps the rest.
template <u32 W, u32 N>
__device__ __forceinline__ u64 reverse_lane(u64 lane, u32 length) {
    if (length == 0) return lane;
    const u32 bits = length * W * 8;
    const u64 below = ~0ull >> (64 - bits);
    return (lane & ~below) | (reverse_whole_lane<W, N>(lane) >> (N * 8 - bits) & below);
}

template <class Element, u32 N>
__device__ __forceinline__ void copy_lanes_of_bytes(const Reverse& r) {
    constexpr u32 W = sizeof(Element), LANES = 16 / N;
    const u64 vector = global_thread();
    const u64 first = vector * LANES;
    if (first >= r.items) return;
    const u32 stride = r.dims[0].length_stride, n = static_cast<u32>(first);
    const Element* const in = static_cast<const Element*>(r.in) + vector * (16 / W);
    Element* const out = static_cast<Element*>(r.out) + vector * (16 / W);
    if (first + LANES > r.items) {  // the last lanes do not fill a vector
#pragma unroll 1
        for (u32 k = 0; k < static_cast<u32>(r.items - first); ++k) {
            const u32 length = lane_length((n + k) * stride, r);
#pragma unroll 1
            for (u32 t = 0; t < N / W; ++t) out[k * (N / W) + t] = in[k * (N / W) + source(t, length)];
        }
        return;
    }
    u32 length[LANES];
#pragma unroll
    for (u32 k = 0; k < LANES; ++k) length[k] = lane_length((n + k) * stride, r);
    const uint4 v = *reinterpret_cast<const uint4*>(in);
    const u32 words[4] = {v.x, v.y, v.z, v.w};
    u32 result[4] = {0, 0, 0, 0};
#pragma unroll
    for (u32 k = 0; k < LANES; ++k) {
        const u32 w = k * N / 4;
        if (N == 8) {
            const u64 lane = reverse_lane<W, 8>(static_cast<u64>(words[w + 1]) << 32 | words[w], length[k]);
            result[w] = static_cast<u32>(lane), result[w + 1] = static_cast<u32>(lane >> 32);
        } else if (N == 4) {
            result[w] = static_cast<u32>(reverse_lane<W, 4>(words[w], length[k]));
        } else {
            const u32 at_bit = k % 2 * 16;
            result[w] |= static_cast<u32>(reverse_lane<W, 2>(words[w] >> at_bit & 0xffff, length[k])) << at_bit;
        }
    }
    store_vec16(reinterpret_cast<u8*>(out), make_uint4(result[0], result[1], result[2], result[3]));
}

// Lanes of 8, 4 or 2 bytes. All threads take the same branch.
template <class Element>
__device__ __forceinline__ void copy_in_registers(const Reverse& r) {
    const u32 bytes = r.axis_size * static_cast<u32>(sizeof(Element));
    if (bytes == 8) return copy_lanes_of_bytes<Element, 8>(r);
    if (bytes == 4) return copy_lanes_of_bytes<Element, 4>(r);
    if constexpr (sizeof(Element) < 2) {
        if (bytes == 2) return copy_lanes_of_bytes<Element, 2>(r);
    }
}

// ---- In shared memory ---------------------------------------------------------------------------------------

// A thread writes elements directly from their source in shared memory. This saves the barrier and the partial vectors
// of a reversal in shared memory.
template <class Element>
__device__ __forceinline__ void swap_packed_lanes(const Segments& p) {
    constexpr int W = sizeof(Element);
    const Stage s = stage_segments<true>(p, W);
    const int first = static_cast<int>(threadIdx.x & ((1u << p.group_size_log2) - 1)) * W, step = W << p.group_size_log2;
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

ENTRIES_TO_2((THREADS), Reverse, reverse_packed_lanes_in_registers, copy_in_registers)
ENTRIES_TO_4((THREADS), Segments, reverse_packed_lanes, copy_segments, true)
ENTRIES_TO_2((THREADS), Segments, reverse_packed_lanes_in_place, swap_packed_lanes)
