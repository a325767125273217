// REVERSE_SUBSEQUENCES for lanes side by side in memory, in rows of whole words, each lane with a length of its own. The
// header says how.
//
// In place, elements narrower than a word lie spread in shared memory, those of neighbouring lanes in neighbouring words, so
// that they are in banks of their own.
#include "strips.cuh"

// Rows that a thread reads before it stores the first, copying and in place. Microseconds of lanes f32 on an H200,
// 2026-11-21: copying 265, with 4 rows 278, with 16 326; in place 260, with 12 rows (and three blocks of threads on a
// multiprocessor, not two) 295.
static constexpr u32 AT_ONCE = 8;
static constexpr u32 AT_ONCE_IN_PLACE = 16;

// Where every row of the strip is whole slots at aligned addresses: reads them; in place, those that hold an element
// below its length. False, the same for all threads, where it is not.
template <class Element, bool IN_PLACE>
__device__ __forceinline__ bool read_slots(const Reverse& p, const Position& at_outer, u32 strip) {
    constexpr u32 W = sizeof(Element), N = 16 / W, READ = IN_PLACE ? AT_ONCE_IN_PLACE : AT_ONCE;
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
    // So many rows at once are as many slots of shared memory as there are threads. Copying, the same place is computed from
    // the row: the compiler then keeps more loads on their way (lanes f32 265 microseconds, not 276; in place it is not so).
    u32 place = threadIdx.x;
    for (u32 first = threadIdx.x >> log; first < rows; first += READ * rows_at_once, place += READ * THREADS) {
        uint4 loaded[READ];
#pragma unroll
        for (u32 k = 0; k < READ; ++k) {
            const u32 t = first + k * rows_at_once;
            if (t < rows) loaded[k] = *reinterpret_cast<const uint4*>(in + t * stride + column * 16);
        }
#pragma unroll
        for (u32 k = 0; k < READ; ++k) {
            const u32 t = first + k * rows_at_once;
            if (t < rows) staged[IN_PLACE ? place + k * THREADS : t * row_slots + column] = loaded[k];
        }
    }
    return true;
}

// 4 elements narrower than a word.
template <u32 W>
struct PieceOf;
template <>
struct PieceOf<1> {
    using type = u32;
};
template <>
struct PieceOf<2> {
    using type = uint2;
};

// 4 words, of which the first holds the first element of each piece, and so on.
__device__ __forceinline__ uint4 spread(const u32 (&piece)[4]) { return transpose_bytes(piece); }
__device__ __forceinline__ uint4 spread(const uint2 (&piece)[2]) {
    return make_uint4(__byte_perm(piece[0].x, piece[1].x, 0x5410), __byte_perm(piece[0].x, piece[1].x, 0x7632),
                      __byte_perm(piece[0].y, piece[1].y, 0x5410), __byte_perm(piece[0].y, piece[1].y, 0x7632));
}

// Spread rows: word w holds the elements of lanes w, w + C, w + 2C, ... where a row has C words.
//
// Reads them, in place and for elements narrower than a word, where every row of the strip is whole and aligned to
// pieces of 4 elements. A thread reads 4 elements each of the lanes that its 4 words hold. False, the same for all
// threads, where it cannot.
template <class Element>
__device__ __forceinline__ bool read_spread(const Reverse& p, const Position& at_outer, u32 strip) {
    constexpr u32 W = sizeof(Element), N = 4 / W;
    using Piece = typename PieceOf<W>::type;
    const u8* in = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.in), at_outer.in)) +
                   static_cast<u64>(strip) * p.unit;
    const u64 stride = static_cast<u64>(p.axis_in_stride) * W;
    const bool whole = (strip + 1) * (p.unit / W) <= p.block.divisor;
    if (!whole || ((reinterpret_cast<u64>(in) | stride) & (4 * W - 1)) != 0) return false;
    const u32 log = log_of(p.unit / 16), row_slots = 1u << log;
    const u32 column = threadIdx.x & (row_slots - 1);
    const u32 rows_at_once = THREADS >> log;
    u32 rows[N], most = 0;
#pragma unroll
    for (u32 n = 0; n < N; ++n) {
        const u32 lane = strip * (p.unit / W) + n * row_slots * 4 + column * 4;
        rows[n] = 0;
#pragma unroll
        for (u32 k = 0; k < 4; ++k) {
            rows[n] = max(rows[n], lane_length(at_outer.length + (lane + k) * p.length_stride, p));
        }
        most = max(most, rows[n]);
    }
    in += column * 4 * W;
    for (u32 first = threadIdx.x >> log; first < most; first += AT_ONCE_IN_PLACE * rows_at_once) {
        Piece loaded[AT_ONCE_IN_PLACE][N];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE_IN_PLACE; ++k) {
            const u32 t = first + k * rows_at_once;
#pragma unroll
            for (u32 n = 0; n < N; ++n) {
                loaded[k][n] = Piece();
                if (t < rows[n]) loaded[k][n] = *reinterpret_cast<const Piece*>(in + t * stride + n * (p.unit / N));
            }
        }
#pragma unroll
        for (u32 k = 0; k < AT_ONCE_IN_PLACE; ++k) {
            const u32 t = first + k * rows_at_once;
            if (t < most) staged[t * row_slots + column] = spread(loaded[k]);
        }
    }
    return true;
}

// Where a thread's words of the strip lie, and how many rows of them it has to do with.
template <class Element, class Word>
struct Column {
    u32 words;         // of a row of the strip
    u32 column;
    u32 first_row;
    u32 rows_at_once;
    u32 lane;          // the first, in the row
    u32 length[sizeof(Word) / sizeof(Element)];  // 0 beyond the row's end
    bool active;
};

template <class Element, class Word>
__device__ __forceinline__ Column<Element, Word> column_of(const Reverse& p, const Position& at_outer, u32 strip) {
    constexpr u32 N = sizeof(Word) / sizeof(Element);
    Column<Element, Word> c;
    const u32 log = log_of(p.unit / sizeof(Word));
    c.words = 1u << log;
    c.column = threadIdx.x & (c.words - 1);
    c.first_row = threadIdx.x >> log;
    c.rows_at_once = THREADS >> log;
    c.lane = (strip * c.words + c.column) * N;
    c.active = c.lane < p.block.divisor;
#pragma unroll
    for (u32 k = 0; k < N; ++k) {
        c.length[k] = c.active ? lane_length(at_outer.length + (c.lane + k) * p.length_stride, p) : 0;
    }
    return c;
}

// Reads the strip word by word: at any alignment, and where the row ends.
template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void read_words(const Reverse& p, const Position& at_outer, const Column<Element, Word>& c) {
    constexpr u32 N = sizeof(Word) / sizeof(Element);
    Word* const words = reinterpret_cast<Word*>(staged);
    const Element* const in = at(static_cast<const Element*>(p.in), at_outer.in + c.lane);
    u32 rows = c.active ? p.axis_size : 0;
    if (IN_PLACE) {
        rows = 0;
#pragma unroll
        for (u32 k = 0; k < N; ++k) rows = max(rows, c.length[k]);
    }
    for (u32 first = c.first_row; first < rows; first += AT_ONCE * c.rows_at_once) {
        Word loaded[AT_ONCE];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 t = first + k * c.rows_at_once;
            const Element* row = in + static_cast<u64>(t) * p.axis_in_stride;
            if (t < rows) loaded[k] = *reinterpret_cast<const Word*>(row);
        }
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 t = first + k * c.rows_at_once;
            if (t < rows) words[t * c.words + c.column] = loaded[k];
        }
    }
}

// Copying: writes a thread's words of the strip, picking their elements out of shared memory.
template <class Element, class Word>
__device__ __forceinline__ void write_words(const Reverse& p, const Position& at_outer, const Column<Element, Word>& c) {
    constexpr u32 W = sizeof(Element), N = sizeof(Word) / W;
    if (!c.active) return;
    const u8* const bytes = reinterpret_cast<const u8*>(staged);
    // Where row 0 of a lane below its length comes from, in bytes; row t lies t units before.
    u32 back[N];
#pragma unroll
    for (u32 k = 0; k < N; ++k) back[k] = (c.length[k] - 1) * p.unit + c.column * sizeof(Word);
    Element* row = at(static_cast<Element*>(p.out), at_outer.out + c.lane) + static_cast<u64>(c.first_row) * p.axis_out_stride;
    const u64 row_step = static_cast<u64>(c.rows_at_once) * p.axis_out_stride;
    u32 passed = c.first_row * p.unit;
#pragma unroll 2
    for (u32 t = c.first_row; t < p.axis_size; t += c.rows_at_once, row += row_step, passed += c.rows_at_once * p.unit) {
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

// The lengths of a strip that comes later are asked for now, so that its block of threads need not wait for memory.
// Microseconds of lanes in place on an H200, 2026-11-21, so many ahead as are under way, 512 ahead, and none: f16 141, 143,
// 143; f32 262, 260, 287; i64 508, 502, 540.
static constexpr u32 STRIPS_AHEAD = 264;

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

// `dims` are the dimensions outside the row; the row itself, of `block` lanes, is cut into `parts` strips.
template <class Element, class Word>
__device__ __forceinline__ void copy_strips(const Reverse& p) {
    const u32 outer = divide(blockIdx.x, p.parts);
    const u32 strip = blockIdx.x - outer * p.parts.divisor;
    const Position at_outer = locate(outer, p);
    const auto column = column_of<Element, Word>(p, at_outer, strip);
    if (!read_slots<Element, false>(p, at_outer, strip)) read_words<Element, Word, false>(p, at_outer, column);
    __syncthreads();
    write_words<Element, Word>(p, at_outer, column);
}

template <class Element, class Word>
__device__ __forceinline__ void swap_strips(const Reverse& p) {
    prefetch_lengths(p, p.unit / sizeof(Element));
    const u32 outer = divide(blockIdx.x, p.parts);
    const u32 strip = blockIdx.x - outer * p.parts.divisor;
    const Position at_outer = locate(outer, p);
    bool read, is_spread = false;
    if constexpr (sizeof(Element) < 4) {
        read = is_spread = read_spread<Element>(p, at_outer, strip);
    } else {
        read = read_slots<Element, true>(p, at_outer, strip);
    }
    if (!read) read_words<Element, Word, true>(p, at_outer, column_of<Element, Word>(p, at_outer, strip));
    __syncthreads();
    write_lane<Element>(p, at_outer, strip, is_spread);
}

REVERSE_ENTRY(reverse_strips_1, (copy_strips<u8, u32>))
REVERSE_ENTRY(reverse_strips_2, (copy_strips<u16, u32>))
REVERSE_ENTRY(reverse_strips_4, (copy_strips<u32, u32>))
REVERSE_ENTRY(reverse_strips_8, (copy_strips<u64, u64>))
REVERSE_ENTRY(reverse_strips_swap_1, (swap_strips<u8, u32>))
REVERSE_ENTRY(reverse_strips_swap_2, (swap_strips<u16, u32>))
REVERSE_ENTRY(reverse_strips_swap_4, (swap_strips<u32, u32>))
REVERSE_ENTRY(reverse_strips_swap_8, (swap_strips<u64, u64>))
