// REVERSE_SUBSEQUENCES for interleaved lanes, each with its own length. See reverse.cuh for the contract.
//
//   out[t][j] = in[source(t, L[j])][j]      row t, lane j
//
//            strip 0          strip 1
//   row 0  | l0 l1 l2 ... | l8 l9 ... |      A lane is a column of this picture. Each lane is reversed about its own
//   row 1  | l0 l1 l2 ... | l8 l9 ... |      midpoint, so one output row collects elements from many input rows.
//   ...
//
// Algorithm
//   A thread block stages a strip, `strip_bytes` of every row, in shared memory. It then writes the output rows from
//   there, element by element. Every sector is read and written once, except sectors that two strips share.
//
// Mapping of threads to columns
//   Each thread keeps its column and walks down the rows. Out of place, a column is one 4-byte word, or one 8-byte
//   element. In a 128-byte strip the bank of a word depends only on its column, so there are no bank conflicts. In
//   place, a column is one lane, so that a thread can stop at the lane's length, and a warp writes whole sectors.
//
// Variants: aligned strips (rows are whole words) and unaligned strips (rows of any size).
//
// In-place safety: a strip belongs to one thread block, which reads all of it before the barrier and writes only after
// it. It reads every vector that contains an element below its lane's length, and writes no element at or past that
// length.
#include "strips.cuh"

// Elements that a thread loads from shared memory before it stores the first.
static constexpr u32 WRITES_IN_FLIGHT = 8;

// ---- Writing ------------------------------------------------------------------------------------------------

// Out of place, aligned: writes a thread's words of the strip, which it puts together from elements in shared memory.
template <class Element, class Word>
__device__ __forceinline__ void write_words(const Strips& p, const Strip& strip, const Column<Element, Word>& c) {
    constexpr u32 W = sizeof(Element), N = sizeof(Word) / W;
    if (!c.active) return;
    const u8* const bytes = reinterpret_cast<const u8*>(smem);
    // The source of row 0, in bytes of shared memory. Row t comes from t rows before.
    u32 back[N];
#pragma unroll
    for (u32 k = 0; k < N; ++k) back[k] = (c.length[k] - 1) * p.strip_bytes + c.column * sizeof(Word);
    Element* row = at(static_cast<Element*>(p.r.out), strip.outer.out + c.lane) +
                   static_cast<u64>(c.first_row) * p.r.axis_out_stride;
    const u64 row_step = static_cast<u64>(c.rows_at_once) * p.r.axis_out_stride;
    u32 passed = c.first_row * p.strip_bytes;
#pragma unroll 2
    for (u32 t = c.first_row; t < p.r.axis_size;
         t += c.rows_at_once, row += row_step, passed += c.rows_at_once * p.strip_bytes) {
        const u32 same = passed + c.column * sizeof(Word);
        union {
            Element element[N];
            Word word;
        } value;
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            const u32 from = t < c.length[k] ? back[k] - passed : same;
            value.element[k] = *reinterpret_cast<const Element*>(bytes + from + k * W);
        }
        *reinterpret_cast<Word*>(row) = value.word;
    }
}

// Out of place, unaligned: words begin `lead` lanes before the strip. All rows of a thread have the same alignment,
// because the threads step by a multiple of N rows. The first word would begin before the strip: instead of those lanes
// it takes as many lanes at the strip's end.
template <class Element, class Word>
__device__ __forceinline__ void write_unaligned_words(const Strips& p, const Strip& strip) {
    constexpr u32 W = sizeof(Element), N = sizeof(Word) / W;
    const u32 log = log2_of(p.strip_bytes / sizeof(Word)), lanes = p.strip_bytes / W;
    const u32 first_lane = strip.n * lanes, end = min(lanes, p.row_lanes - first_lane);
    const u32 first_row = threadIdx.x >> log, rows_at_once = blockDim.x >> log;
    Element* row = at(static_cast<Element*>(p.r.out), strip.outer.out + first_lane) +
                   static_cast<u64>(first_row) * p.r.axis_out_stride;
    const u64 row_step = static_cast<u64>(rows_at_once) * p.r.axis_out_stride;
    const u32 lead = static_cast<u32>(reinterpret_cast<u64>(row) & (sizeof(Word) - 1)) / W;

    u32 lane[N], length[N], back[N];  // back: the source of row 0, in bytes; row t comes from t rows before
#pragma unroll
    for (u32 k = 0; k < N; ++k) {
        lane[k] = ((threadIdx.x & ((1u << log) - 1)) * N + k - lead) & (lanes - 1);
        length[k] = 0;
        if (lane[k] < end) length[k] = length_of(first_lane + lane[k], p, strip);
        back[k] = (length[k] - 1) * p.strip_bytes + lane[k] * W;
    }
    const bool is_word = lane[N - 1] == lane[0] + N - 1 && lane[N - 1] < end;
    const u8* const bytes = reinterpret_cast<const u8*>(smem);
    u32 passed = first_row * p.strip_bytes;
#pragma unroll 2
    for (u32 t = first_row; t < p.r.axis_size;
         t += rows_at_once, row += row_step, passed += rows_at_once * p.strip_bytes) {
        union {
            Element element[N];
            Word word;
        } value;
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            const u32 from = t < length[k] ? back[k] - passed : passed + lane[k] * W;
            value.element[k] = *reinterpret_cast<const Element*>(bytes + from);
        }
        if (is_word) {
            *reinterpret_cast<Word*>(row + lane[0]) = value.word;
        } else {
#pragma unroll
            for (u32 k = 0; k < N; ++k) {
                if (lane[k] < end) row[lane[k]] = value.element[k];
            }
        }
    }
}

// In place: writes the elements of a thread's lane that are below its length.
template <class Element>
__device__ __forceinline__ void write_lane(const Strips& p, const Strip& strip, bool is_interleaved) {
    constexpr u32 W = sizeof(Element);
    const u32 log = log2_of(p.strip_bytes / W), row_words = p.strip_bytes / 4;
    const u32 column = threadIdx.x & ((1u << log) - 1), rows_at_once = THREADS >> log;
    const u32 lane = (strip.n << log) + column;
    if (lane >= p.row_lanes) return;
    const u32 length = length_of(lane, p, strip);
    const u32 in_row =
        is_interleaved ? (column & (row_words - 1)) * 4 + (column >> log2_of(row_words)) * W : column * W;
    const u32 first = threadIdx.x >> log;
    const u8* const bytes = reinterpret_cast<const u8*>(smem);
    u32 from = (length - 1 - first) * p.strip_bytes + in_row;
    Element* row =
        at(static_cast<Element*>(p.r.out), strip.outer.out + lane) + static_cast<u64>(first) * p.r.axis_out_stride;
    const u64 row_step = static_cast<u64>(rows_at_once) * p.r.axis_out_stride;
    // One pass over all threads covers THREADS elements of shared memory, in whole rows.
    for (u32 t = first; t < length; t += WRITES_IN_FLIGHT * rows_at_once, from -= WRITES_IN_FLIGHT * THREADS * W) {
        Element value[WRITES_IN_FLIGHT];
#pragma unroll
        for (u32 k = 0; k < WRITES_IN_FLIGHT; ++k) {
            if (t + k * rows_at_once < length)
                value[k] = *reinterpret_cast<const Element*>(bytes + (from - k * THREADS * W));
        }
#pragma unroll
        for (u32 k = 0; k < WRITES_IN_FLIGHT; ++k, row += row_step) {
            if (t + k * rows_at_once < length) *row = value[k];
        }
    }
}

// ---- Kernels ------------------------------------------------------------------------------------------------

template <class Element>
__device__ __forceinline__ void copy_unaligned_strips(const Strips& p) {
    const Strip strip = this_strip(p);
    stage_unaligned<Element, false>(p, strip);
    __syncthreads();
    write_unaligned_words<Element, u32>(p, strip);
}

// Narrow elements have both forms. Rows of wider ones are always whole words.
template <class Element, class Word>
__device__ __forceinline__ void copy_strips(const Strips& p) {
    if constexpr (sizeof(Element) < 4) {
        if (p.unaligned) return copy_unaligned_strips<Element>(p);
    }
    const Strip strip = this_strip(p);
    const auto column = column_of<Element, Word>(p, strip);
    if (!stage_vectors<Element, false>(p, strip)) stage_words<Element, Word, false>(p, strip, column);
    __syncthreads();
    write_words<Element, Word>(p, strip, column);
}

// Prefetches the lengths of a later strip, so that its thread block need not wait for memory. It looks ahead by about
// as many strips as are resident at the same time: two on each of the 132 SMs of an H200 (TUNING.md: STRIPS_AHEAD).
static constexpr u32 STRIPS_AHEAD = 264;

__device__ __forceinline__ void prefetch_lengths(const Strips& p, u32 lanes) {
    const u32 block = blockIdx.x + STRIPS_AHEAD;
    const u32 lane = threadIdx.x * 16;
    if (lane >= lanes || block >= p.r.items) return;
    const u32 outer = divide(block, p.strips_per_row);
    const u32 j = (block - outer * p.strips_per_row.divisor) * lanes + lane;
    if (j >= p.row_lanes) return;
    const u32 length = locate(outer, p.r).length + j * p.length_stride;
    prefetch(static_cast<const u8*>(p.r.lengths) + static_cast<u64>(length) * (p.r.wide_lengths ? 8 : 4));
}

template <class Element, class Word>
__device__ __forceinline__ void swap_strips(const Strips& p) {
    prefetch_lengths(p, p.strip_bytes / sizeof(Element));
    const Strip strip = this_strip(p);
    bool is_staged, is_interleaved = false;
    if constexpr (sizeof(Element) < 4) {
        is_staged = is_interleaved = stage_interleaved<Element>(p, strip);
    } else {
        is_staged = stage_vectors<Element, true>(p, strip);
    }
    if (!is_staged) stage_words<Element, Word, true>(p, strip, column_of<Element, Word>(p, strip));
    __syncthreads();
    write_lane<Element>(p, strip, is_interleaved);
}

// A separate kernel: with the registers of the one above, fewer thread blocks would fit.
template <class Element>
__device__ __forceinline__ void swap_unaligned_strips(const Strips& p) {
    const Strip strip = this_strip(p);
    stage_unaligned<Element, true>(p, strip);
    __syncthreads();
    write_lane<Element>(p, strip, false);
}

ENTRIES_TO_4((MOST_THREADS), Strips, reverse_strips, copy_strips, u32)
ENTRY((MOST_THREADS), Strips, reverse_strips_8, copy_strips<u64, u64>)
ENTRIES_TO_4((THREADS), Strips, reverse_strips_in_place, swap_strips, u32)
ENTRY((THREADS), Strips, reverse_strips_in_place_8, swap_strips<u64, u64>)
ENTRIES_TO_4((THREADS), Strips, reverse_unaligned_strips_in_place, swap_unaligned_strips)
