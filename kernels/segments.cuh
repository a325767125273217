// REVERSE_SUBSEQUENCES: segments staged in shared memory. A segment is a short lane, or a block of rows with one
// length. Segments are contiguous and adjacent in memory. A thread block takes as many whole segments as fit in its
// shared memory.
//
//   shared memory: | lengths, then a 0 | 1 vector | segments, aligned as in memory | tail |
//                                        ^ for unaligned reads that begin before the first segment
#pragma once

#include "staging.cuh"

using namespace segments;

// The staged segments of this thread block.
struct Stage {
    const u8* in;
    u8* out;
    int* lengths;  // in bytes of the segment
    u32 segments;
    int span;   // bytes of all segments
    u32 lead;   // bytes of the first vector before the first segment
    u32 begin;  // byte of shared memory where the first segment begins
};

static constexpr u32 LOADS_IN_FLIGHT = 4;

// Stages the lengths of the segments from `begin` on, and a 0 after the last one.
__device__ __forceinline__ void stage_lengths(const Stage& s, u32 first, u32 begin, u32 row_bytes, const Reverse& r) {
    if (r.rank > 1) {
        for (u32 n = begin + threadIdx.x; n <= s.segments; n += THREADS) {
            s.lengths[n] =
                n < s.segments ? static_cast<int>(lane_length(locate(first + n, r).length, r) * row_bytes) : 0;
        }
        return;
    }
    for (begin += threadIdx.x; begin <= s.segments; begin += LOADS_IN_FLIGHT * THREADS) {
        u32 length[LOADS_IN_FLIGHT];
#pragma unroll
        for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
            const u32 n = begin + k * THREADS;
            length[k] = n < s.segments ? lane_length((first + n) * r.dims[0].length_stride, r) : 0;
        }
        issue_loads();
#pragma unroll
        for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
            const u32 n = begin + k * THREADS;
            if (n <= s.segments) s.lengths[n] = static_cast<int>(length[k] * row_bytes);
        }
    }
}

// The same for many segments, with vector loads if the lengths are adjacent.
__device__ __forceinline__ void stage_many_lengths(const Stage& s, u32 first, u32 row_bytes, const Reverse& r) {
    constexpr u32 VECTORS = 3;
    const uint4* const from = reinterpret_cast<const uint4*>(static_cast<const u32*>(r.lengths) + first);
    const bool vectorized =
        r.rank == 1 && r.dims[0].length_stride == 1 && !r.wide_lengths && (reinterpret_cast<u64>(from) & 15) == 0;
    const u32 count = vectorized ? s.segments / 4 : 0;
    for (u32 begin = threadIdx.x; begin < count; begin += VECTORS * THREADS) {
        uint4 length[VECTORS];
#pragma unroll
        for (u32 k = 0; k < VECTORS; ++k) {
            if (begin + k * THREADS < count) length[k] = from[begin + k * THREADS];
        }
        issue_loads();
#pragma unroll
        for (u32 k = 0; k < VECTORS; ++k) {
            const auto bytes = [&](u32 rows) { return min(rows, r.axis_size) * row_bytes; };
            if (begin + k * THREADS < count) {
                reinterpret_cast<uint4*>(s.lengths)[begin + k * THREADS] =
                    make_uint4(bytes(length[k].x), bytes(length[k].y), bytes(length[k].z), bytes(length[k].w));
            }
        }
    }
    stage_lengths(s, first, count * 4, row_bytes, r);
}

// Whether the vector at byte x of the segments contains a byte below a length or reaches into the next segment. False
// if it is past the length, inside its segment.
__device__ __forceinline__ bool is_needed(int x, const Stage& s, const Segments& p) {
    const u32 n = divide(max(x, 0), p.segment_bytes);
    const int segment = static_cast<int>(n * p.segment_bytes.divisor);
    return x < segment + s.lengths[n] || x + 16 > segment + static_cast<int>(p.segment_bytes.divisor);
}

// Stages this thread block's segments and their lengths; in place, only the vectors that are needed. Ends with a
// barrier.
template <bool IN_PLACE>
__device__ __forceinline__ Stage stage_segments(const Segments& p, u32 row_bytes) {
    const u32 first = blockIdx.x * p.segments_per_block;
    const u64 offset = static_cast<u64>(first) * p.segment_bytes.divisor;
    Stage s;
    s.in = static_cast<const u8*>(p.r.input) + offset;
    s.out = static_cast<u8*>(p.r.out) + offset;
    s.lengths = reinterpret_cast<int*>(smem);
    s.segments = min(p.segments_per_block, p.r.items - first);
    s.span = static_cast<int>(s.segments * p.segment_bytes.divisor);
    s.lead = lead_of(s.in);
    const u32 vectors_at = (p.segments_per_block + 1 + 3) / 4 + 1;
    s.begin = vectors_at * 16 + s.lead;

    const Bounds bounds = input_bounds(p.r);
    const u8* const from = s.in - s.lead;
    const u32 count = (s.lead + s.span + 15) / 16;
    const bool inside = from >= bounds.begin && from + count * 16 <= bounds.end;
    // A few lengths are loaded together with the first vectors, many before them (TUNING.md: LENGTHS_WITH_VECTORS).
    const bool with_vectors = !IN_PLACE && inside && s.segments < 2 * THREADS;
    if (!with_vectors) stage_many_lengths(s, first, row_bytes, p.r);
    if (IN_PLACE) __syncthreads();
    if (inside) {
        const uint4* const source = reinterpret_cast<const uint4*>(from);
        for (u32 begin = threadIdx.x; begin < count; begin += LOADS_IN_FLIGHT * THREADS) {
            uint4 loaded[LOADS_IN_FLIGHT];
            bool wanted[LOADS_IN_FLIGHT];
#pragma unroll
            for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
                const u32 v = begin + k * THREADS;
                wanted[k] = v < count;
                if (IN_PLACE && wanted[k]) wanted[k] = is_needed(static_cast<int>(v * 16 - s.lead), s, p);
                if (wanted[k]) loaded[k] = source[v];
            }
            issue_loads();
            if (with_vectors && begin == threadIdx.x) stage_lengths(s, first, 0, row_bytes, p.r);
#pragma unroll
            for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
                if (wanted[k]) smem[vectors_at + begin + k * THREADS] = loaded[k];
            }
        }
        if (with_vectors && threadIdx.x >= count) stage_lengths(s, first, 0, row_bytes, p.r);
    } else {  // the first or the last segments of the tensor
        for (u32 v = threadIdx.x; v < count; v += THREADS) {
            const bool wanted = !IN_PLACE || is_needed(static_cast<int>(v * 16 - s.lead), s, p);
            if (wanted) smem[vectors_at + v] = load_vec16(from + v * 16, bounds);
        }
    }
    __syncthreads();
    return s;
}

// Stages segments, reverses each one in shared memory, and writes all of them with 16-byte stores; also in place.
template <class Unit, bool LANES>
__device__ __forceinline__ void copy_segments(const Segments& p) {
    const Stage s = stage_segments<false>(p, LANES ? sizeof(Unit) : p.row_bytes.divisor);
    const int out_lead = static_cast<int>(reinterpret_cast<u64>(s.out) & 15);
    const u32 group = 1u << p.group_size_log2;
    const ReverseInShared<Unit, LANES> reverse(p.row_bytes, threadIdx.x & (group - 1), group);
    for (u32 n = threadIdx.x >> p.group_size_log2; n < s.segments; n += THREADS >> p.group_size_log2) {
        reverse(reinterpret_cast<u8*>(smem) + s.begin + n * p.segment_bytes.divisor, s.lengths[n]);
    }
    __syncthreads();
    const bool alike = (s.begin & 15) == static_cast<u32>(out_lead);
    for (int x = static_cast<int>(threadIdx.x * 16) - out_lead; x < s.span; x += THREADS * 16) {
        const uint4 v = alike ? smem[(s.begin + x) / 16] : smem_unaligned(s.begin + x);
        store_partial<sizeof(Unit)>(s.out + x, v, -x, min(16, s.span - x));
    }
}
