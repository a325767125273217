// REVERSE_SUBSEQUENCES for many small groups, one behind the other in memory: short lanes, or blocks of lanes whose
// rows are no multiple of 16 bytes. The contract is in the header.
//
// A block of threads takes so many whole groups as fit its shared memory and reads them as they lie. A thread then
// makes a 16-byte slot of the output out of pieces: for every lane or row that the slot holds a part of, a window of
// shared memory at any alignment, of which the piece's bytes are taken. What lies in neighbouring lanes is written
// together.
//
// Why in place is right: a group belongs to one block of threads, which reads all of it before the barrier and writes
// after it. Slots are read where they hold a byte below a length; what else they hold is not used. Bytes at or past the
// length keep their bits.
#include "reverse_subsequences.cuh"

// The bytes [begin, end) of a slot as a mask; either may lie outside.
__device__ __forceinline__ uint4 bytes_between(int begin, int end) {
    const uint4 from = bytes_from(begin), behind = bytes_from(end);
    return make_uint4(from.x & ~behind.x, from.y & ~behind.y, from.z & ~behind.z, from.w & ~behind.w);
}

// Stores a slot whose bytes outside the mask are what they were. A word that the mask cuts is changed by an atomic
// exclusive or, in which their bits are 0; byte by byte where it reaches out of the tensor.
__device__ __forceinline__ void store_masked(u8* slot, uint4 old, uint4 v, uint4 mask, const Bounds& bounds) {
    if ((mask.x & mask.y & mask.z & mask.w) == ~0u) {
        store_slot(slot, v);
        return;
    }
    u32* const at = reinterpret_cast<u32*>(slot);
    const u32 words[4] = {v.x, v.y, v.z, v.w};
    const u32 masks[4] = {mask.x, mask.y, mask.z, mask.w};
    const u32 changes[4] = {old.x ^ v.x, old.y ^ v.y, old.z ^ v.z, old.w ^ v.w};
#pragma unroll
    for (u32 w = 0; w < 4; ++w) {
        if (masks[w] == ~0u) {
            at[w] = words[w];
        } else if (masks[w] != 0) {
            u8* const word = slot + 4 * w;
            if (word >= bounds.begin && word + 4 <= bounds.end) {
                atomicXor(at + w, changes[w] & masks[w]);
            } else {
#pragma unroll 1
                for (u32 b = 0; b < 4; ++b) {
                    if (masks[w] >> (8 * b) & 1) word[b] = static_cast<u8>(words[w] >> (8 * b));
                }
            }
        }
    }
}

__device__ __forceinline__ uint4 both(uint4 a, uint4 b) { return make_uint4(a.x | b.x, a.y | b.y, a.z | b.z, a.w | b.w); }

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

// Slots that a thread reads before it stores the first.
static constexpr u32 AT_ONCE = 4;

__device__ __forceinline__ void read_lengths(const Stage& s, u32 first, u32 row_bytes, const Reverse& p) {
    if (p.rank > 1) {
        for (u32 g = threadIdx.x; g <= s.groups; g += THREADS) {
            s.lengths[g] = g < s.groups ? static_cast<int>(lane_length(locate(first + g, p).length, p) * row_bytes) : 0;
        }
        return;
    }
    for (u32 begin = threadIdx.x; begin <= s.groups; begin += AT_ONCE * THREADS) {
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

// Whether a slot holds a byte below a length: not where it lies past one, up to the next group.
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
    u32 count = (s.lead + s.span + 15) / 16;
    const bool inside = from >= bounds.begin && from + count * 16 <= bounds.end;
    if (IN_PLACE || !inside) {
        read_lengths(s, first, row_bytes, p);
        __syncthreads();
    }
    if (IN_PLACE && s.groups == 1) {
        s.span = s.lengths[0];
        count = (s.lead + s.span + 15) / 16;
    }
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
            // Lengths are on their way together with the first slots.
            if (!IN_PLACE && begin == threadIdx.x) read_lengths(s, first, row_bytes, p);
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                if (wanted[k]) staged[slots_at + begin + k * THREADS] = loaded[k];
            }
        }
        if (!IN_PLACE && threadIdx.x >= count) read_lengths(s, first, row_bytes, p);
    } else {  // the tensor's first groups or its last
        for (u32 slot = threadIdx.x; slot < count; slot += THREADS) {
            const bool wanted = !IN_PLACE || holds_any(static_cast<int>(slot * 16 - s.lead), s, p);
            if (wanted) staged[slots_at + slot] = load_slot(from + slot * 16, bounds);
        }
    }
    __syncthreads();
    return s;
}

// Short lanes: the pieces are windows that end where the lane's length does, turned around.
template <class Element, bool IN_PLACE>
__device__ __forceinline__ void stage_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    const Stage s = stage<IN_PLACE>(p, W);
    const int lane_bytes = static_cast<int>(p.group.divisor);
    const int out_lead = static_cast<int>(reinterpret_cast<u64>(s.out) & 15);
    const bool alike = (s.begin & 15) == static_cast<u32>(out_lead);
    for (int x = static_cast<int>(threadIdx.x * 16) - out_lead; x < s.span; x += THREADS * 16) {
        if (IN_PLACE && !holds_any(x, s, p)) continue;
        u32 g = divide(max(x, 0), p.group);
        int lane = static_cast<int>(g) * lane_bytes - x;  // from the slot's begin to the lane's
        const int end = min(16, s.span - x);
        const uint4 old = alike ? staged[(s.begin + x) / 16] : staged_window(s.begin + x);
        uint4 v = old, written = make_uint4(0, 0, 0, 0);
        do {
            const int length = s.lengths[g];
            if (lane + length > 0) {
                const uint4 piece = turn<W>(staged_window(s.begin + x + 2 * lane + length - 16));
                const uint4 mask = bytes_between(lane, lane + length);
                v = select(mask, v, piece);
                if (IN_PLACE) written = both(written, mask);
            }
            lane += lane_bytes;
            ++g;
        } while (lane < end);
        if (IN_PLACE) {
            store_masked(s.out + x, old, v, written, input_bounds(p));
        } else {
            store_part<W>(s.out + x, v, -x, end);
        }
    }
}

// Blocks: the pieces are rows, which keep their order; a row of the output is row t or, below the length, L-1-t.
template <bool IN_PLACE>
__device__ __forceinline__ void stage_rows(const Reverse& p) {
    const int row_bytes = static_cast<int>(p.block.divisor), group_bytes = static_cast<int>(p.group.divisor);
    const Stage s = stage<IN_PLACE>(p, p.block.divisor);
    const int out_lead = static_cast<int>(reinterpret_cast<u64>(s.out) & 15);
    for (int x = static_cast<int>(threadIdx.x * 16) - out_lead; x < s.span; x += THREADS * 16) {
        u32 g = divide(max(x, 0), p.group);
        int group = static_cast<int>(g) * group_bytes;  // from the first group to the slot's
        int length = s.lengths[g];
        // A slot between a length and the next group stays; one that lies below a length is written whole.
        if (IN_PLACE && x >= group + length && x + 16 <= group + group_bytes) continue;
        const bool whole = group <= x && x + 16 <= group + length;
        int row = static_cast<int>(divide(max(x, 0) - group, p.block)) * row_bytes;  // from the group to the row
        int at = group + row - x;  // from the slot's begin to the row's
        const int end = min(16, s.span - x);
        uint4 v = make_uint4(0, 0, 0, 0), written = v;
        if (IN_PLACE && !whole) written = bytes_between(group - x, group - x + length);
        do {
            const int from = row < length ? length - row_bytes - 2 * row : 0;  // from the row to where it comes from
            v = select(bytes_from(at), v, staged_window(s.begin + x + from));
            at += row_bytes;
            row += row_bytes;
            if (row == group_bytes) {
                row = 0;
                group += group_bytes;
                length = s.lengths[++g];
                if (IN_PLACE && !whole) written = both(written, bytes_between(group - x, group - x + length));
            }
        } while (at < end);
        if (!IN_PLACE) {
            store_part<1>(s.out + x, v, -x, end);
        } else if (whole) {
            store_slot(s.out + x, v);
        } else {
            store_masked(s.out + x, staged[(s.begin + x) / 16], v, written, input_bounds(p));
        }
    }
}

REVERSE_ENTRY(reverse_staged_lanes_1, (stage_lanes<u8, false>))
REVERSE_ENTRY(reverse_staged_lanes_2, (stage_lanes<u16, false>))
REVERSE_ENTRY(reverse_staged_lanes_4, (stage_lanes<u32, false>))
REVERSE_ENTRY(reverse_staged_lanes_8, (stage_lanes<u64, false>))
REVERSE_ENTRY(reverse_staged_lanes_swap_1, (stage_lanes<u8, true>))
REVERSE_ENTRY(reverse_staged_lanes_swap_2, (stage_lanes<u16, true>))
REVERSE_ENTRY(reverse_staged_rows, stage_rows<false>)
REVERSE_ENTRY(reverse_staged_rows_swap, stage_rows<true>)
