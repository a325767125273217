// REVERSE_SUBSEQUENCES for lanes of 2, 4, 8 or 16 bytes, one behind the other in memory. The contract is in the header.
//
// A thread takes a 16-byte slot, which holds one or more whole lanes, and turns each around in registers: all of the lane,
// shifted so that its first `length` elements are in place, and behind them what was there.
#include "reverse_subsequences.cuh"

// A lane of N bytes in the low bytes of a word or two, its elements of W bytes in the opposite order.
template <u32 W, u32 N>
__device__ __forceinline__ u64 turn_lane(u64 lane) {
    const u32 low = static_cast<u32>(lane), high = static_cast<u32>(lane >> 32);
    if (N == 8) {
        const u32 order = W == 4 ? 0x3210 : W == 2 ? 0x1032 : 0x0123;
        return static_cast<u64>(__byte_perm(low, 0, order)) << 32 | __byte_perm(high, 0, order);
    }
    return __byte_perm(low, 0, N == 2 ? 0x4401 : W == 2 ? 0x1032 : 0x0123);
}

template <u32 W, u32 N>
__device__ __forceinline__ u64 reverse_lane(u64 lane, u32 length) {
    if (length == 0) return lane;
    const u32 bits = length * W * 8;
    const u64 below = ~0ull >> (64 - bits);
    return (lane & ~below) | (turn_lane<W, N>(lane) >> (N * 8 - bits) & below);
}

template <class Element, u32 N>
__device__ __forceinline__ void tiny_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element), LANES = 16 / N;
    const u64 slot = global_thread();
    const u64 first = slot * LANES;
    if (first >= p.items) return;
    const u32 stride = p.dims[0].length_stride, n = static_cast<u32>(first);
    const Element* const in = static_cast<const Element*>(p.in) + slot * (16 / W);
    Element* const out = static_cast<Element*>(p.out) + slot * (16 / W);
    if (first + LANES > p.items) {  // the last lanes fill no slot
#pragma unroll 1
        for (u32 k = 0; k < static_cast<u32>(p.items - first); ++k) {
            const u32 length = lane_length((n + k) * stride, p);
#pragma unroll 1
            for (u32 t = 0; t < N / W; ++t) out[k * (N / W) + t] = in[k * (N / W) + source(t, length)];
        }
        return;
    }
    u32 length[LANES];
#pragma unroll
    for (u32 k = 0; k < LANES; ++k) length[k] = lane_length((n + k) * stride, p);
    const uint4 v = *reinterpret_cast<const uint4*>(in);
    if (N == 16) {
        const int bytes = static_cast<int>(length[0] * W);
        const uint4 turned = shift_slots(turn<W>(v), make_uint4(0, 0, 0, 0), static_cast<u32>(16 - bytes));
        store_slot(reinterpret_cast<u8*>(out), select(bytes_from(bytes), turned, v));
        return;
    }
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
    store_slot(reinterpret_cast<u8*>(out), make_uint4(result[0], result[1], result[2], result[3]));
}

REVERSE_ENTRY(reverse_tiny_1_2, (tiny_lanes<u8, 2>))
REVERSE_ENTRY(reverse_tiny_1_4, (tiny_lanes<u8, 4>))
REVERSE_ENTRY(reverse_tiny_1_8, (tiny_lanes<u8, 8>))
REVERSE_ENTRY(reverse_tiny_1_16, (tiny_lanes<u8, 16>))
REVERSE_ENTRY(reverse_tiny_2_4, (tiny_lanes<u16, 4>))
REVERSE_ENTRY(reverse_tiny_2_8, (tiny_lanes<u16, 8>))
REVERSE_ENTRY(reverse_tiny_2_16, (tiny_lanes<u16, 16>))
REVERSE_ENTRY(reverse_tiny_4_8, (tiny_lanes<u32, 8>))
REVERSE_ENTRY(reverse_tiny_4_16, (tiny_lanes<u32, 16>))
REVERSE_ENTRY(reverse_tiny_8_16, (tiny_lanes<u64, 16>))
