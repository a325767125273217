// REVERSE_SUBSEQUENCES: strips of interleaved lanes, and how to stage one in shared memory. The layout is in
// reverse_strips.cu.
//
//   shared memory: | row 0 of the strip | row 1 | ... |      strip_bytes each; the interleaved form is below
#pragma once

#include <type_traits>

#include "staging.cuh"

using namespace strips;

// Loads that a thread issues before it stores the first.
static constexpr u32 LOADS_IN_FLIGHT = 8;
static constexpr u32 LOADS_IN_FLIGHT_IN_PLACE = 16;
static constexpr u32 LOADS_IN_FLIGHT_UNALIGNED = 4;

// The strip of this thread block.
struct Strip {
    Position outer;
    u32 n;  // the number of the strip in the row
};

__device__ __forceinline__ Strip this_strip(const Strips& p) {
    const u32 outer = divide(blockIdx.x, p.strips_per_row);
    return {locate(outer, p.r), blockIdx.x - outer * p.strips_per_row.divisor};
}

// The length of a lane of the row.
__device__ __forceinline__ u32 length_of(u32 lane, const Strips& p, const Strip& strip) {
    return lane_length(strip.outer.length + lane * p.length_stride, p.r);
}

// The largest length of `N` neighbouring lanes.
template <u32 N>
__device__ __forceinline__ u32 longest_of(u32 lane, const Strips& p, const Strip& strip) {
    u32 longest = 0;
#pragma unroll
    for (u32 k = 0; k < N; ++k) longest = max(longest, length_of(lane + k, p, strip));
    return longest;
}

// Whether all lanes of the strip exist, and its rows, from address `in` on, are aligned to `alignment` bytes.
__device__ __forceinline__ bool is_whole(const u8* in, u64 stride, u32 lanes, u32 alignment, const Strips& p,
                                         const Strip& strip) {
    return (strip.n + 1) * lanes <= p.row_lanes && ((reinterpret_cast<u64>(in) | stride) & (alignment - 1)) == 0;
}

template <class Element>
__device__ __forceinline__ const u8* input_of(const Strips& p, const Strip& strip) {
    return reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.r.input), strip.outer.in)) +
           static_cast<u64>(strip.n) * p.strip_bytes;
}

// ---- Staging, aligned ---------------------------------------------------------------------------------------

// Stages the strip as vectors; in place, only those that contain an element below its length. Returns false, for all
// threads alike, if the strip is not made of whole aligned vectors.
template <class Element, bool IN_PLACE>
__device__ __forceinline__ bool stage_vectors(const Strips& p, const Strip& strip) {
    constexpr u32 W = sizeof(Element), N = 16 / W, READ = IN_PLACE ? LOADS_IN_FLIGHT_IN_PLACE : LOADS_IN_FLIGHT;
    const u8* in = input_of<Element>(p, strip);
    const u64 stride = static_cast<u64>(p.r.axis_in_stride) * W;
    if (!is_whole(in, stride, p.strip_bytes / W, 16, p, strip)) return false;
    const u32 log = log2_of(p.strip_bytes / 16), row_vectors = 1u << log;
    const u32 column = threadIdx.x & (row_vectors - 1);
    const u32 rows_at_once = blockDim.x >> log;
    u32 rows = p.r.axis_size;
    if (IN_PLACE) rows = longest_of<N>(strip.n * (p.strip_bytes / W) + column * N, p, strip);
    // One pass covers a vector for each thread, in whole rows.
    in += (threadIdx.x >> log) * stride + column * 16;
    uint4* to = smem + threadIdx.x;
    for (u32 first = threadIdx.x >> log; first < rows; first += READ * rows_at_once) {
        uint4 loaded[READ];
#pragma unroll
        for (u32 k = 0; k < READ; ++k, in += rows_at_once * stride) {
            if (first + k * rows_at_once < rows) loaded[k] = *reinterpret_cast<const uint4*>(in);
        }
        issue_loads();
#pragma unroll
        for (u32 k = 0; k < READ; ++k) {
            if (first + k * rows_at_once < rows) to[k * blockDim.x] = loaded[k];
        }
        to += READ * blockDim.x;
    }
    return true;
}

// In place, elements narrower than a word are interleaved in shared memory: word w of a row of C words has the elements
// of lanes w, w + C, w + 2C, ..., so that neighbouring lanes are in different banks.

// 4 words: the first has the first element of each piece, the second the second, and so on.
__device__ __forceinline__ uint4 interleave(const u32 (&piece)[4]) { return transpose_bytes(piece); }
__device__ __forceinline__ uint4 interleave(const uint2 (&piece)[2]) {
    return make_uint4(__byte_perm(piece[0].x, piece[1].x, 0x5410), __byte_perm(piece[0].x, piece[1].x, 0x7632),
                      __byte_perm(piece[0].y, piece[1].y, 0x5410), __byte_perm(piece[0].y, piece[1].y, 0x7632));
}

// Stages the strip interleaved. A thread loads 4 elements each of the lanes that its 4 words hold. Returns false, for
// all threads alike, if the strip is not made of whole aligned pieces of 4 elements.
template <class Element>
__device__ __forceinline__ bool stage_interleaved(const Strips& p, const Strip& strip) {
    constexpr u32 W = sizeof(Element), N = 4 / W, READ = LOADS_IN_FLIGHT_IN_PLACE;
    using Piece = std::conditional_t<W == 1, u32, uint2>;  // 4 elements narrower than a word
    const u8* in = input_of<Element>(p, strip);
    const u64 stride = static_cast<u64>(p.r.axis_in_stride) * W;
    if (!is_whole(in, stride, p.strip_bytes / W, 4 * W, p, strip)) return false;
    const u32 log = log2_of(p.strip_bytes / 16), row_vectors = 1u << log;
    const u32 column = threadIdx.x & (row_vectors - 1);
    const u32 rows_at_once = THREADS >> log;
    u32 rows[N], most = 0;
#pragma unroll
    for (u32 n = 0; n < N; ++n) {
        rows[n] = longest_of<4>(strip.n * (p.strip_bytes / W) + n * row_vectors * 4 + column * 4, p, strip);
        most = max(most, rows[n]);
    }
    in += (threadIdx.x >> log) * stride + column * 4 * W;
    uint4* to = smem + threadIdx.x;
    for (u32 first = threadIdx.x >> log; first < most; first += READ * rows_at_once) {
        Piece loaded[READ][N];
#pragma unroll
        for (u32 k = 0; k < READ; ++k, in += rows_at_once * stride) {
            const u32 t = first + k * rows_at_once;
#pragma unroll
            for (u32 n = 0; n < N; ++n) {
                loaded[k][n] = Piece();
                if (t < rows[n]) loaded[k][n] = *reinterpret_cast<const Piece*>(in + n * (p.strip_bytes / N));
            }
        }
        issue_loads();
#pragma unroll
        for (u32 k = 0; k < READ; ++k) {
            if (first + k * rows_at_once < most) to[k * THREADS] = interleave(loaded[k]);
        }
        to += READ * THREADS;
    }
    return true;
}

// A thread's words of the strip.
template <class Element, class Word>
struct Column {
    u32 words;  // of a row of the strip
    u32 column;
    u32 first_row;
    u32 rows_at_once;
    u32 lane;                                    // the first lane, counted in the row
    u32 length[sizeof(Word) / sizeof(Element)];  // 0 beyond the row's end
    bool active;
};

template <class Element, class Word>
__device__ __forceinline__ Column<Element, Word> column_of(const Strips& p, const Strip& strip) {
    constexpr u32 N = sizeof(Word) / sizeof(Element);
    Column<Element, Word> c;
    const u32 log = log2_of(p.strip_bytes / sizeof(Word));
    c.words = 1u << log;
    c.column = threadIdx.x & (c.words - 1);
    c.first_row = threadIdx.x >> log;
    c.rows_at_once = blockDim.x >> log;
    c.lane = (strip.n * c.words + c.column) * N;
    c.active = c.lane < p.row_lanes;
#pragma unroll
    for (u32 k = 0; k < N; ++k) c.length[k] = c.active ? length_of(c.lane + k, p, strip) : 0;
    return c;
}

// Stages the strip word by word: for words at any alignment, and for a strip that the row's end cuts.
template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void stage_words(const Strips& p, const Strip& strip, const Column<Element, Word>& c) {
    constexpr u32 N = sizeof(Word) / sizeof(Element), READ = LOADS_IN_FLIGHT;
    const u64 step = static_cast<u64>(c.rows_at_once) * p.r.axis_in_stride;
    const Element* in = at(static_cast<const Element*>(p.r.input), strip.outer.in + c.lane) +
                        static_cast<u64>(c.first_row) * p.r.axis_in_stride;
    Word* to = reinterpret_cast<Word*>(smem) + threadIdx.x;
    u32 rows = c.active ? p.r.axis_size : 0;
    if (IN_PLACE) {
        rows = 0;
#pragma unroll
        for (u32 k = 0; k < N; ++k) rows = max(rows, c.length[k]);
    }
    for (u32 first = c.first_row; first < rows; first += READ * c.rows_at_once) {
        Word loaded[READ];
#pragma unroll
        for (u32 k = 0; k < READ; ++k, in += step) {
            if (first + k * c.rows_at_once < rows) loaded[k] = *reinterpret_cast<const Word*>(in);
        }
        issue_loads();
#pragma unroll
        for (u32 k = 0; k < READ; ++k) {
            if (first + k * c.rows_at_once < rows) to[k * blockDim.x] = loaded[k];
        }
        to += READ * blockDim.x;
    }
}

// ---- Staging, unaligned -------------------------------------------------------------------------------------

// Stores as many of the 16 bytes as a row of the strip has.
__device__ __forceinline__ void store_in_strip(u32 place, uint4 v, u32 strip_bytes) {
    if (strip_bytes >= 16) {
        smem[place] = v;
    } else if (strip_bytes == 8) {
        reinterpret_cast<uint2*>(smem)[place] = {v.x, v.y};
    } else {
        reinterpret_cast<u32*>(smem)[place] = v.x;
    }
}

// Stages the strip 16 bytes at a time; in place, only where one of them is an element below its length.
template <class Element, bool IN_PLACE>
__device__ __forceinline__ void stage_unaligned(const Strips& p, const Strip& strip) {
    constexpr u32 W = sizeof(Element), N = 16 / W, READ = LOADS_IN_FLIGHT_UNALIGNED;
    const u32 log = p.strip_bytes < 16 ? 0 : log2_of(p.strip_bytes / 16), row_vectors = 1u << log;
    const u32 column = threadIdx.x & (row_vectors - 1);
    const u32 rows_at_once = blockDim.x >> log;
    const u32 lane = strip.n * (p.strip_bytes / W) + column * N;
    const u32 end = min((strip.n + 1) * (p.strip_bytes / W), p.row_lanes);
    const u8* const in = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.r.input), strip.outer.in + lane));
    const u64 stride = static_cast<u64>(p.r.axis_in_stride) * W;
    const Bounds bounds = input_bounds(p.r);
    u32 rows = lane < end ? p.r.axis_size : 0;
    if (IN_PLACE) {
        rows = 0;
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            if (lane + k < end) rows = max(rows, length_of(lane + k, p, strip));
        }
    }
    const u32 begin = threadIdx.x >> log;
    if (begin >= rows) return;
    const RowRange inside = rows_inside(in, stride, rows, bounds);
    const u8* from = in + begin * stride;
    u32 place = threadIdx.x;
    for (u32 first = begin; first < rows; first += READ * rows_at_once, place += READ * blockDim.x) {
        uint4 low[READ], high[READ];
        u32 shift[READ];
#pragma unroll
        for (u32 k = 0; k < READ; ++k, from += rows_at_once * stride) {
            if (!inside.has(first + k * rows_at_once)) continue;
            shift[k] = lead_of(from);
            low[k] = reinterpret_cast<const uint4*>(from - shift[k])[0];
            high[k] = reinterpret_cast<const uint4*>(from - shift[k])[1];
        }
#pragma unroll
        for (u32 k = 0; k < READ; ++k) {
            if (!inside.has(first + k * rows_at_once)) continue;
            store_in_strip(place + k * blockDim.x, shift_pair(low[k], high[k], shift[k]), p.strip_bytes);
        }
    }
    if (inside.begin == 0 && inside.end == rows) return;
#pragma unroll 1
    for (u32 t = begin; t < rows; t += rows_at_once) {
        if (inside.has(t)) continue;
        store_in_strip(t * row_vectors + column, load_unaligned(in + t * stride, bounds), p.strip_bytes);
    }
}
