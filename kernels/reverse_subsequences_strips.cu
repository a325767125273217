// REVERSE_SUBSEQUENCES for lanes side by side in memory, each with a length of its own. The contract is in the
// header.
//
// Neighbouring lanes turn around at different points, so a row of the output comes from many rows of the input.
// A block of threads takes a strip: STRIP bytes of every row, which it reads into shared memory row by row and
// writes from there element by element; every sector moves once. A thread keeps its words (4 bytes, or an element
// of 8) of a row and goes down the rows; in a strip of 128 bytes the bank of a word is its column, whichever row
// it comes from, so that there are no conflicts.
//
// Why in place is right: a strip belongs to one block of threads, which reads all of it before the barrier and
// writes after it. Elements at or past their lane's length are neither read nor written.
#include "reverse_subsequences.cuh"

extern __shared__ uint4 staged[];

template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void strips(const Reverse& p) {
    constexpr u32 N = sizeof(Word) / sizeof(Element);  // elements of a word
    Word* const words = reinterpret_cast<Word*>(staged);
    const Element* const elements = reinterpret_cast<const Element*>(staged);
    const u32 row_words = p.unit / sizeof(Word);
    const u32 rows_at_once = THREADS / row_words;

    // dims: the lanes outside the row; their innermost neighbour, the row itself, is `block`.
    const u32 outer = divide(blockIdx.x, p.parts);
    const u32 strip = blockIdx.x - outer * p.parts.divisor;
    const Position at_outer = locate(outer, p);
    const u32 column = threadIdx.x % row_words;
    const u32 first_row = threadIdx.x / row_words;
    const u32 j = strip * row_words * N + column * N;  // the thread's first lane in the row
    const bool active = j < p.block.divisor;
    const Element* in = at(static_cast<const Element*>(p.in), at_outer.in + j);
    Element* out = at(static_cast<Element*>(p.out), at_outer.out + j);
    u32 length[N];
    u32 shortest = p.axis_size, longest = 0;
#pragma unroll
    for (u32 k = 0; k < N; ++k) {
        length[k] = active ? lane_length(at_outer.length + (j + k) * p.length_stride, p) : 0;
        shortest = min(shortest, length[k]);
        longest = max(longest, length[k]);
    }

    const u32 rows = !active ? 0 : IN_PLACE ? longest : p.axis_size;
    // Rows below `whole` are words with nothing to leave out.
    const u32 whole = IN_PLACE ? min(shortest, rows) : rows;
    u32 t = first_row;
    for (; t + 3 * rows_at_once < whole; t += 4 * rows_at_once) {
        Word loaded[4];
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            loaded[k] = *reinterpret_cast<const Word*>(in + static_cast<u64>(t + k * rows_at_once) * p.axis_in_stride);
        }
#pragma unroll
        for (u32 k = 0; k < 4; ++k) words[(t + k * rows_at_once) * row_words + column] = loaded[k];
    }
    for (; t < rows; t += rows_at_once) {
        const Element* row = in + static_cast<u64>(t) * p.axis_in_stride;
        if (t < whole) {
            words[t * row_words + column] = *reinterpret_cast<const Word*>(row);
        } else {
#pragma unroll
            for (u32 k = 0; k < N; ++k) {
                if (t < length[k]) reinterpret_cast<Element*>(staged)[(t * row_words + column) * N + k] = row[k];
            }
        }
    }
    __syncthreads();

    for (t = first_row; t < rows; t += rows_at_once) {
        union {
            Element element[N];
            Word word;
        } value;
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            value.element[k] = elements[(source(t, length[k]) * row_words + column) * N + k];
        }
        Element* row = out + static_cast<u64>(t) * p.axis_out_stride;
        if (t < whole) {
            *reinterpret_cast<Word*>(row) = value.word;
        } else {
#pragma unroll
            for (u32 k = 0; k < N; ++k) {
                if (t < length[k]) row[k] = value.element[k];
            }
        }
    }
}

REVERSE_ENTRY(reverse_strips_1, (strips<u8, u32, false>))
REVERSE_ENTRY(reverse_strips_2, (strips<u16, u32, false>))
REVERSE_ENTRY(reverse_strips_4, (strips<u32, u32, false>))
REVERSE_ENTRY(reverse_strips_8, (strips<u64, u64, false>))
REVERSE_ENTRY(reverse_strips_swap_1, (strips<u8, u32, true>))
REVERSE_ENTRY(reverse_strips_swap_2, (strips<u16, u32, true>))
REVERSE_ENTRY(reverse_strips_swap_4, (strips<u32, u32, true>))
REVERSE_ENTRY(reverse_strips_swap_8, (strips<u64, u64, true>))
