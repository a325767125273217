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
// writes after it. Words and slots are read where they hold an element below its lane's length; what else they hold
// is not used. Elements at or past their lane's length keep their bits: a word that lengths cut is changed by an
// atomic exclusive or, in which their bits are 0.
#include "reverse_subsequences.cuh"

// Rows that a thread reads before it stores the first.
static constexpr u32 AT_ONCE = 4;

// The strips' widths are powers of two (plan).
__device__ __forceinline__ u32 log_of(u32 power) { return 31 - __clz(power); }

// Where every row of the strip is whole slots at aligned addresses: reads them; in place, those that hold an element
// below its length. False, the same for all threads, where it is not.
template <class Element, bool IN_PLACE>
__device__ __forceinline__ bool read_slots(const Reverse& p, const Position& at_outer, u32 strip) {
    constexpr u32 W = sizeof(Element), N = 16 / W;
    const u8* in = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.in), at_outer.in)) +
                   static_cast<u64>(strip) * p.unit;
    const u64 stride = static_cast<u64>(p.axis_in_stride) * W;
    const bool whole = (strip + 1) * (p.unit / W) <= p.block.divisor;
    if (!whole || ((reinterpret_cast<u64>(in) | stride) & 15) != 0) return false;
    const u32 log = log_of(p.unit / 16), row_slots = 1u << log;
    const u32 column = threadIdx.x & (row_slots - 1);
    const u32 rows_at_once = THREADS >> log;
    u32 rows = p.axis_size;
    if (IN_PLACE) {
        const u32 lane = strip * (p.unit / W) + column * N;
        rows = 0;
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            rows = max(rows, lane_length(at_outer.length + (lane + k) * p.length_stride, p));
        }
    }
    for (u32 first = threadIdx.x >> log; first < rows; first += AT_ONCE * rows_at_once) {
        uint4 loaded[AT_ONCE];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 t = first + k * rows_at_once;
            if (t < rows) loaded[k] = *reinterpret_cast<const uint4*>(in + t * stride + column * 16);
        }
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 t = first + k * rows_at_once;
            if (t < rows) staged[t * row_slots + column] = loaded[k];
        }
    }
    return true;
}

// Writes a thread's words of the strip, picking their elements out of shared memory. In rows from `whole` on, some
// elements stay what they are.
template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void write_rows(const Reverse& p, Element* out, const u32 (&length)[sizeof(Word) / sizeof(Element)],
                                           u32 rows, u32 whole, u32 first_row, u32 column) {
    constexpr u32 W = sizeof(Element), N = sizeof(Word) / W;
    const u8* const bytes = reinterpret_cast<const u8*>(staged);
    const u32 rows_at_once = THREADS >> log_of(p.unit / sizeof(Word));
    // Where row 0 of a lane below its length comes from, in bytes; row t lies t units before.
    u32 back[N];
#pragma unroll
    for (u32 k = 0; k < N; ++k) back[k] = (length[k] - 1) * p.unit + column * sizeof(Word);
    u8* row = reinterpret_cast<u8*>(out) + static_cast<u64>(first_row) * p.axis_out_stride * W;
    const u64 row_step = static_cast<u64>(rows_at_once) * p.axis_out_stride * W;
    u32 passed = first_row * p.unit;
#pragma unroll 2
    for (u32 t = first_row; t < rows; t += rows_at_once, row += row_step, passed += rows_at_once * p.unit) {
        const u32 same = passed + column * sizeof(Word);
        union {
            Element element[N];
            Word word;
        } value;
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            const u32 from = t < length[k] ? back[k] - passed : same;
            value.element[k] = *reinterpret_cast<const Element*>(bytes + from + k * W);
        }
        if (!IN_PLACE || N == 1 || t < whole) {
            *reinterpret_cast<Word*>(row) = value.word;
        } else {
            const u32 change = static_cast<u32>(value.word ^ *reinterpret_cast<const Word*>(bytes + same));
            atomicXor(reinterpret_cast<u32*>(row), change);
        }
    }
}

// The lengths of a strip that comes later are asked for now, so that its block of threads need not wait for memory.
static constexpr u32 STRIPS_AHEAD = 512;

__device__ __forceinline__ void prefetch_lengths(const Reverse& p, u32 lanes) {
    const u32 block = blockIdx.x + STRIPS_AHEAD;
    const u32 lane = threadIdx.x * 16;
    if (lane >= lanes || block >= p.items) return;
    const u32 outer = divide(block, p.parts);
    const u32 j = (block - outer * p.parts.divisor) * lanes + lane;
    if (j >= p.block.divisor) return;
    const u32 length = locate(outer, p).length + j * p.length_stride;
    prefetch(static_cast<const u8*>(p.lengths) + static_cast<u64>(length) * (p.wide_lengths ? 8 : 4));
}

template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void strips(const Reverse& p) {
    constexpr u32 N = sizeof(Word) / sizeof(Element);  // elements of a word
    Word* const words = reinterpret_cast<Word*>(staged);
    const u32 log = log_of(p.unit / sizeof(Word)), row_words = 1u << log;
    const u32 rows_at_once = THREADS >> log;

    if (IN_PLACE) prefetch_lengths(p, p.unit / sizeof(Element));

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
    if (read_slots<Element, IN_PLACE>(p, at_outer, strip)) {
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
            if (t < rows) loaded[k].word = *reinterpret_cast<const Word*>(row);
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
