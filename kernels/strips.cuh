// REVERSE_SUBSEQUENCES for lanes side by side in memory, each with a length of its own: what the kernels for strips of
// them share.
//
// Neighbouring lanes turn around at different points, so a row of the output comes from many rows of the input.
// A block of threads takes a strip: `unit` bytes of every row, which it reads into shared memory row by row and
// writes from there element by element; every sector moves once, but those that two strips share. A thread keeps its
// column and goes down the rows. Copying, a column is a word (4 bytes, or an element of 8); in a strip of 128 bytes the bank of
// a word is its column, whichever row it comes from, so that there are no conflicts.
//
// In place, a column is a lane: what lies past its length is not written, and a sector is written by one warp at once,
// not once for whole words and again for elements.
//
// Why in place is right: a strip belongs to one block of threads, which reads all of it before the barrier and
// writes after it. Slots are read where they, or the next, hold an element below its lane's length; what else they hold
// is not used. Elements at or past their lane's length are not written.
#pragma once

#include "reverse_subsequences.cuh"

// The strips' widths are powers of two (plan).
__device__ __forceinline__ u32 log_of(u32 power) { return 31 - __clz(power); }

// Elements that a thread takes out of shared memory before it stores the first.
static constexpr u32 WRITE_AT_ONCE = 8;

// In place: writes the elements of a thread's lane, which lies in shared memory as it is or spread.
template <class Element>
__device__ __forceinline__ void write_lane(const Reverse& p, const Position& at_outer, u32 strip, bool is_spread) {
    constexpr u32 W = sizeof(Element);
    const u32 log = log_of(p.unit / W), row_words = p.unit / 4;
    const u32 column = threadIdx.x & ((1u << log) - 1), rows_at_once = THREADS >> log;
    const u32 lane = (strip << log) + column;
    if (lane >= p.block.divisor) return;
    const u32 length = lane_length(at_outer.length + lane * p.length_stride, p);
    const u32 in_row = is_spread ? (column & (row_words - 1)) * 4 + (column >> log_of(row_words)) * W : column * W;
    const u32 first = threadIdx.x >> log;
    const u8* const bytes = reinterpret_cast<const u8*>(staged);
    u32 from = (length - 1 - first) * p.unit + in_row;
    Element* row = at(static_cast<Element*>(p.out), at_outer.out + lane) + static_cast<u64>(first) * p.axis_out_stride;
    const u64 row_step = static_cast<u64>(rows_at_once) * p.axis_out_stride;
    // So many rows at once are as many elements of shared memory as there are threads.
    for (u32 t = first; t < length; t += WRITE_AT_ONCE * rows_at_once, from -= WRITE_AT_ONCE * THREADS * W) {
        Element value[WRITE_AT_ONCE];
#pragma unroll
        for (u32 k = 0; k < WRITE_AT_ONCE; ++k) {
            if (t + k * rows_at_once < length) value[k] = *reinterpret_cast<const Element*>(bytes + (from - k * THREADS * W));
        }
#pragma unroll
        for (u32 k = 0; k < WRITE_AT_ONCE; ++k, row += row_step) {
            if (t + k * rows_at_once < length) *row = value[k];
        }
    }
}
