// REVERSE_SUBSEQUENCES for many small groups, one behind the other in memory: lanes of a few elements, or blocks
// of lanes whose rows are a few elements. The contract is in the header.
//
// A block of threads takes so many whole groups as fit its shared memory, reads them as they lie, and writes words
// (4 bytes, or an element of 8) whose elements it picks out of shared memory. Where all elements of a word come
// from neighbouring places, they are picked as one.
//
// Copying only: in place, units are swapped faster (plan).
#include "reverse_subsequences.cuh"

extern __shared__ uint4 staged[];

// An element of the groups, and where it is in its group.
struct Place {
    u32 group, t, column;
    u32 length;
};

__device__ __forceinline__ Place place_of(u32 e, const u32* lengths, const Reverse& p) {
    Place place;
    place.group = divide(e, p.group);
    const u32 rest = e - place.group * p.group.divisor;
    place.t = divide(rest, p.block);
    place.column = rest - place.t * p.block.divisor;
    place.length = lengths[place.group];
    return place;
}

__device__ __forceinline__ void next(Place& place, const u32* lengths, const Reverse& p) {
    if (++place.column < p.block.divisor) return;
    place.column = 0;
    if (++place.t < p.axis_size) return;
    place.t = 0;
    place.length = lengths[++place.group];
}

// The element that belongs at element e, which lies at `place`.
__device__ __forceinline__ u32 from(u32 e, const Place& place, const Reverse& p) {
    return e + (source(place.t, place.length) - place.t) * p.block.divisor;  // wraps, and back
}

// Four bytes of shared memory at any byte.
__device__ __forceinline__ u32 word_at(const u8* bytes, u32 byte) {
    const u32* words = reinterpret_cast<const u32*>(bytes) + byte / 4;
    return __funnelshift_r(words[0], words[1], (byte & 3) * 8);
}

template <class Element>
__device__ __forceinline__ void stage_groups(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    constexpr u32 N = W < 4 ? 4 / W : 1;  // elements of a word
    u32* const lengths = reinterpret_cast<u32*>(staged);
    u8* const bytes = reinterpret_cast<u8*>(staged) + (p.group_lanes * 4 + 4 + 15) / 16 * 16;

    const u32 first = blockIdx.x * p.group_lanes;
    const u32 groups = min(p.group_lanes, p.groups - first);
    const u32 count = groups * p.group.divisor;
    const u64 begin = static_cast<u64>(first) * p.group.divisor;
    const Element* in = static_cast<const Element*>(p.in) + begin;
    Element* out = static_cast<Element*>(p.out) + begin;
    for (u32 g = threadIdx.x; g <= groups; g += THREADS) {  // one more, for `next` to step onto
        lengths[g] = g < groups ? lane_length(locate(first + g, p).length, p) : 0;
    }

    // Shared memory holds the input at the alignment it has in memory.
    const u32 lead = static_cast<u32>(reinterpret_cast<u64>(in) & 15);
    const u8* const first_slot = reinterpret_cast<const u8*>(in) - lead;
    const Bounds bounds = input_bounds(p);
    const u32 slots = (lead + count * W + 15) / 16;
    for (u32 s = threadIdx.x; s < slots; s += THREADS) {
        reinterpret_cast<uint4*>(bytes)[s] = load_slot(first_slot + s * 16, bounds);
    }
    __syncthreads();

    const u32 out_lead = N > 1 ? static_cast<u32>(reinterpret_cast<u64>(out) & 3) / W : 0;
    for (u32 w = threadIdx.x; w * N < out_lead + count; w += THREADS) {
        const i64 e = static_cast<i64>(w) * N - out_lead;
        const u32 e0 = e < 0 ? 0 : static_cast<u32>(e);
        const u32 e1 = min(static_cast<u32>(e + N), count);
        Place place = place_of(e0, lengths, p);
        if (N > 1 && e >= 0 && e1 - e0 == N) {
            // All elements of the word from neighbouring places: backwards in a lane, or forwards in a row.
            const bool lane = p.block.divisor == 1;
            const bool backwards = lane && place.t + N <= place.length;
            const bool stay = lane && place.t >= place.length && place.t + N <= p.axis_size;
            if (backwards || stay || (!lane && place.column + N <= p.block.divisor)) {
                const u32 source_byte = lead + (from(e0, place, p) - (backwards ? N - 1 : 0)) * W;
                u32 word = word_at(bytes, source_byte);
                if (backwards) word = __byte_perm(word, 0, W == 1 ? 0x0123 : 0x1032);
                *reinterpret_cast<u32*>(out + e0) = word;
                continue;
            }
        }
        for (u32 k = e0; k < e1; ++k) {
            out[k] = *reinterpret_cast<const Element*>(bytes + lead + from(k, place, p) * W);
            if (N > 1) next(place, lengths, p);
        }
    }
}

REVERSE_ENTRY(reverse_staged_1, stage_groups<u8>)
REVERSE_ENTRY(reverse_staged_2, stage_groups<u16>)
REVERSE_ENTRY(reverse_staged_4, stage_groups<u32>)
REVERSE_ENTRY(reverse_staged_8, stage_groups<u64>)
