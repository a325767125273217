// REVERSE_SUBSEQUENCES for contiguous lanes of 2, 4, 8, 16 or 32 bytes. See reverse.cuh for the contract.
//
//   out[lane + t] = in[lane + source(t, L)]
//
//   | a0 a1 a2 a3 |     a lane in registers
//   | a3 a2 a1 a0 |     all of its elements in reverse order
//   | a2 a1 a0 .. |     shifted, so that the elements below the length L = 3 come first
//   | a2 a1 a0 a3 |     with the lane's own elements at and past the length
//
// Algorithm
//   A thread loads lanes and their lengths at once, reverses each lane in registers, and stores it whole. In place it
//   loads a lane of 32 bytes, which is a sector if the tensor begins at one, only when the length says that it moves.
//
// Mapping of threads to lanes
//   Item n is a lane. A thread takes lanes that are THREADS apart, so that neighbouring threads take neighbouring lanes.
//
// Variants: lanes of each size, in one dimension or in few. The width of an element is a parameter.
//
// In-place safety: a lane belongs to one thread, which has read all of it before it writes. It does not write a lane of
// which no element moves, and writes elements at and past the length with the bits that they had. Threads past the last
// lane load that one, and use nothing of it.
#include "reverse.cuh"

using namespace short_lanes;

static constexpr u32 SECTOR = 32;  // bytes

// A lane of `BYTES` bytes, as its loads and stores move it and as words. A lane of 2 bytes is half of a word.
template <u32 BYTES>
struct Lane {
    static constexpr u32 WORDS = BYTES < 4 ? 1 : BYTES / 4;
    u32 words[WORDS];

    __device__ __forceinline__ void load(const u8* from) {
        if constexpr (BYTES == 2) words[0] = *reinterpret_cast<const u16*>(from);
        if constexpr (BYTES == 4) words[0] = *reinterpret_cast<const u32*>(from);
        if constexpr (BYTES == 8) {
            const uint2 v = *reinterpret_cast<const uint2*>(from);
            words[0] = v.x, words[1] = v.y;
        }
#pragma unroll
        for (u32 n = 0; n + 4 <= WORDS; n += 4) {
            const uint4 v = *reinterpret_cast<const uint4*>(from + 4 * n);
            words[n] = v.x, words[n + 1] = v.y, words[n + 2] = v.z, words[n + 3] = v.w;
        }
    }

    __device__ __forceinline__ void store(u8* to) const {
        if constexpr (BYTES == 2) *reinterpret_cast<u16*>(to) = static_cast<u16>(words[0]);
        if constexpr (BYTES == 4) *reinterpret_cast<u32*>(to) = words[0];
        if constexpr (BYTES == 8) *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
#pragma unroll
        for (u32 n = 0; n + 4 <= WORDS; n += 4) {
            store_vec16(to + 4 * n, make_uint4(words[n], words[n + 1], words[n + 2], words[n + 3]));
        }
    }

    // All elements of `width` bytes in reverse order. A lane of half a word is then in the upper half.
    __device__ __forceinline__ Lane reversed(u32 width) const {
        Lane result;
#pragma unroll
        for (u32 n = 0; n < WORDS; ++n) {
            const u32 word = words[WORDS - 1 - n];
            const u32 order = width == 1 ? 0x0123 : width == 2 ? 0x1032 : 0x3210;
            result.words[n] = __byte_perm(word, 0, order);
        }
        if (width == 8) {
#pragma unroll
            for (u32 n = 0; n + 1 < WORDS; n += 2) {
                const u32 first = result.words[n];
                result.words[n] = result.words[n + 1];
                result.words[n + 1] = first;
            }
        }
        return result;
    }

    // Moves all bits towards the first element, by fewer bits than there are.
    __device__ __forceinline__ void shift(u32 bits) {
#pragma unroll
        for (u32 step = WORDS / 2; step > 0; step /= 2) {
            const bool moves = (bits / 32 & step) != 0;
#pragma unroll
            for (u32 n = 0; n < WORDS; ++n) {
                const u32 next = n + step < WORDS ? words[n + step] : 0;
                words[n] = moves ? next : words[n];
            }
        }
#pragma unroll
        for (u32 n = 0; n < WORDS; ++n) {
            words[n] = __funnelshift_r(words[n], n + 1 < WORDS ? words[n + 1] : 0, bits);
        }
    }

    // The lane with its first `length` elements reversed.
    __device__ __forceinline__ Lane reversed_below(u32 length, u32 width) const {
        const u32 bits = max(length, 1u) * width * 8;
        Lane result = reversed(width);
        result.shift(WORDS * 32 - bits);
#pragma unroll
        for (u32 n = 0; n < WORDS; ++n) {
            result.words[n] |= words[n] & ones_from(static_cast<int>(bits) - 32 * static_cast<int>(n));
        }
        return result;
    }
};

template <u32 BYTES, u32 RANK>
__device__ __forceinline__ void reverse_lanes(const ShortLanes& p) {
    constexpr u32 LANES = BYTES > 8 ? 1 : 16 / BYTES < MOST_LANES ? 16 / BYTES : MOST_LANES;
    const bool in_place = p.r.input == p.r.out;
    // In place, a lane as large as a sector is loaded only if an element of it moves.
    const bool waits = BYTES == SECTOR && in_place;
    const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * LANES) + threadIdx.x;
    Lane<BYTES> lane[LANES];
    Length length[LANES];
    const u8* from[LANES];
    u8* to[LANES];
#pragma unroll
    for (u32 k = 0; k < LANES; ++k) {
        const u32 n = static_cast<u32>(min(first + k * THREADS, p.r.items - 1ull));
        const Position position = locate_unrolled<RANK>(n, p.r);
        length[k] = load_length(position.length, p.r);
        from[k] = static_cast<const u8*>(p.r.input) + static_cast<u64>(position.in) * BYTES;
        to[k] = static_cast<u8*>(p.r.out) + static_cast<u64>(position.out) * BYTES;
        if (!waits) lane[k].load(from[k]);
    }
    issue_loads();
#pragma unroll
    for (u32 k = 0; k < LANES; ++k) {
        const u32 below = clamp_length(length[k], p.r);
        if (first + k * THREADS >= p.r.items || (in_place && below < 2)) continue;
        if (waits) lane[k].load(from[k]);
        lane[k].reversed_below(below, p.width).store(to[k]);
    }
}

template <u32 BYTES>
__device__ __forceinline__ void reverse_short_lanes(const ShortLanes& p) {
    if (p.r.rank == 1) {
        reverse_lanes<BYTES, 1>(p);
    } else {
        reverse_lanes<BYTES, FEW_DIMENSIONS>(p);
    }
}

ENTRY((THREADS), ShortLanes, reverse_short_lanes_2, reverse_short_lanes<2>)
ENTRY((THREADS), ShortLanes, reverse_short_lanes_4, reverse_short_lanes<4>)
ENTRY((THREADS), ShortLanes, reverse_short_lanes_8, reverse_short_lanes<8>)
ENTRY((THREADS), ShortLanes, reverse_short_lanes_16, reverse_short_lanes<16>)
ENTRY((THREADS), ShortLanes, reverse_short_lanes_32, reverse_short_lanes<32>)
