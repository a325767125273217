// REVERSE_SUBSEQUENCES for lanes side by side in memory, each with a length of its own. The contract is in the
// header.
//
// Neighbouring lanes turn around at different points, so a row of the output comes from many rows of the input.
// A block of threads takes a strip: `unit` bytes of every row, which it reads into shared memory row by row and
// writes from there element by element; every sector moves once. A thread keeps its words (4 bytes, or an element
// of 8) of a row and goes down the rows; in a strip of 128 bytes the bank of a word is its column, whichever row
// it comes from, so that there are no conflicts.
//
// Why in place is right: a strip belongs to one block of threads, which reads all of it before the barrier and
// writes after it. Elements at or past their lane's length are neither read nor written.
#include "reverse_subsequences.cuh"

extern __shared__ uint4 staged[];

// Rows that a thread reads before it stores the first.
static constexpr u32 AT_ONCE = 4;

// The strips' widths are powers of two (plan).
__device__ __forceinline__ u32 log_of(u32 power) { return 31 - __clz(power); }

// Copying, where every row of the strip is whole slots at aligned addresses: reads them. False, the same for all
// threads, where it is not.
template <class Element>
__device__ __forceinline__ bool read_slots(const Reverse& p, u32 lane, u32 strip) {
    constexpr u32 W = sizeof(Element);
    const u8* in = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.in), lane)) + static_cast<u64>(strip) * p.unit;
    const u64 stride = static_cast<u64>(p.axis_in_stride) * W;
    const bool whole = (strip + 1) * (p.unit / W) <= p.block.divisor;
    if (!whole || ((reinterpret_cast<u64>(in) | stride) & 15) != 0) return false;
    const u32 log = log_of(p.unit / 16), row_slots = 1u << log;
    const u32 column = threadIdx.x & (row_slots - 1);
    const u32 rows_at_once = THREADS >> log;
    for (u32 first = threadIdx.x >> log; first < p.axis_size; first += AT_ONCE * rows_at_once) {
        uint4 loaded[AT_ONCE];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 t = first + k * rows_at_once;
            if (t < p.axis_size) loaded[k] = *reinterpret_cast<const uint4*>(in + t * stride + column * 16);
        }
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 t = first + k * rows_at_once;
            if (t < p.axis_size) staged[t * row_slots + column] = loaded[k];
        }
    }
    return true;
}

// Writes a thread's words of the strip, picking their elements out of shared memory.
template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void write_rows(const Reverse& p, Element* out, const u32 (&length)[sizeof(Word) / sizeof(Element)],
                                           u32 rows, u32 whole, u32 first_row, u32 column) {
    constexpr u32 N = sizeof(Word) / sizeof(Element);
    const Element* const elements = reinterpret_cast<const Element*>(staged);
    const u32 log = log_of(p.unit / sizeof(Word)), row_words = 1u << log;
    const u32 rows_at_once = THREADS >> log;
    for (u32 t = first_row; t < rows; t += rows_at_once) {
        union {
            Element element[N];
            Word word;
        } value;
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            value.element[k] = elements[(source(t, length[k]) * row_words + column) * N + k];
        }
        Element* row = out + static_cast<u64>(t) * p.axis_out_stride;
        if (!IN_PLACE || t < whole) {
            *reinterpret_cast<Word*>(row) = value.word;
        } else {
#pragma unroll
            for (u32 k = 0; k < N; ++k) {
                if (t < length[k]) row[k] = value.element[k];
            }
        }
    }
}

template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void strips(const Reverse& p) {
    constexpr u32 N = sizeof(Word) / sizeof(Element);  // elements of a word
    Word* const words = reinterpret_cast<Word*>(staged);
    const u32 log = log_of(p.unit / sizeof(Word)), row_words = 1u << log;
    const u32 rows_at_once = THREADS >> log;

    // `dims` are the dimensions outside the row; the row itself, of `block` lanes, is cut into `parts` strips.
    const u32 outer = divide(blockIdx.x, p.parts);
    const u32 strip = blockIdx.x - outer * p.parts.divisor;
    const Position at_outer = locate(outer, p);
    const u32 column = threadIdx.x & (row_words - 1);
    const u32 first_row = threadIdx.x >> log;
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
    if (!IN_PLACE && read_slots<Element>(p, at_outer.in, strip)) {
        __syncthreads();
        write_rows<Element, Word, IN_PLACE>(p, out, length, rows, whole, first_row, column);
        return;
    }
    for (u32 first = first_row; first < rows; first += AT_ONCE * rows_at_once) {
        union {
            Element element[N];
            Word word;
        } loaded[AT_ONCE];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 t = first + k * rows_at_once;
            const Element* row = in + static_cast<u64>(t) * p.axis_in_stride;
            if (t < whole) {
                loaded[k].word = *reinterpret_cast<const Word*>(row);
            } else if (IN_PLACE && t < rows) {
#pragma unroll
                for (u32 n = 0; n < N; ++n) {
                    if (t < length[n]) loaded[k].element[n] = row[n];
                }
            }
        }
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 t = first + k * rows_at_once;
            if (t < rows) words[t * row_words + column] = loaded[k].word;
        }
    }
    __syncthreads();
    write_rows<Element, Word, IN_PLACE>(p, out, length, rows, whole, first_row, column);
}

REVERSE_ENTRY(reverse_strips_1, (strips<u8, u32, false>))
REVERSE_ENTRY(reverse_strips_2, (strips<u16, u32, false>))
REVERSE_ENTRY(reverse_strips_4, (strips<u32, u32, false>))
REVERSE_ENTRY(reverse_strips_8, (strips<u64, u64, false>))
REVERSE_ENTRY(reverse_strips_swap_1, (strips<u8, u32, true>))
REVERSE_ENTRY(reverse_strips_swap_2, (strips<u16, u32, true>))
REVERSE_ENTRY(reverse_strips_swap_4, (strips<u32, u32, true>))
REVERSE_ENTRY(reverse_strips_swap_8, (strips<u64, u64, true>))
