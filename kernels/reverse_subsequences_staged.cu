// REVERSE_SUBSEQUENCES for short lanes of whole slots, one behind the other in memory. The contract is in the header.
//
// A block of threads reads so many lanes as fit its shared memory. A thread then makes a 16-byte slot of the output out
// of pieces: for every lane that the slot holds a part of, a window of shared memory at any alignment, of which the
// piece's bytes are taken. What lies in neighbouring lanes is written together.
#include "staged_groups.cuh"

// The bytes [begin, end) of a slot as a mask; either may lie outside.
__device__ __forceinline__ uint4 bytes_between(int begin, int end) {
    const uint4 from = bytes_from(begin), behind = bytes_from(end);
    return make_uint4(from.x & ~behind.x, from.y & ~behind.y, from.z & ~behind.z, from.w & ~behind.w);
}

// The pieces are windows that end where the lane's length does, turned around.
template <class Element>
__device__ __forceinline__ void stage_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    const Stage s = stage<false>(p, W);
    const int lane_bytes = static_cast<int>(p.group.divisor);
    const int out_lead = static_cast<int>(reinterpret_cast<u64>(s.out) & 15);
    const bool alike = (s.begin & 15) == static_cast<u32>(out_lead);
    for (int x = static_cast<int>(threadIdx.x * 16) - out_lead; x < s.span; x += THREADS * 16) {
        u32 g = divide(max(x, 0), p.group);
        int lane = static_cast<int>(g) * lane_bytes - x;  // from the slot's begin to the lane's
        const int end = min(16, s.span - x);
        uint4 v = alike ? staged[(s.begin + x) / 16] : staged_window(s.begin + x);
        do {
            const int length = s.lengths[g];
            if (lane + length > 0) {
                const uint4 piece = turn<W>(staged_window(s.begin + x + 2 * lane + length - 16));
                v = select(bytes_between(lane, lane + length), v, piece);
            }
            lane += lane_bytes;
            ++g;
        } while (lane < end);
        store_part<W>(s.out + x, v, -x, end);
    }
}

REVERSE_ENTRY(reverse_staged_lanes_1, stage_lanes<u8>)
REVERSE_ENTRY(reverse_staged_lanes_2, stage_lanes<u16>)
REVERSE_ENTRY(reverse_staged_lanes_4, stage_lanes<u32>)
REVERSE_ENTRY(reverse_staged_lanes_8, stage_lanes<u64>)
