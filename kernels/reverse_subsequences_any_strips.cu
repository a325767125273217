// REVERSE_SUBSEQUENCES for lanes side by side in memory, in rows of any size at any alignment, each lane with a length of
// its own. The header says how.
#include "strips.cuh"

// Windows that a thread reads before it stores the first.
static constexpr u32 AT_ONCE = 4;

// A window, or as much of it as a row of the strip has, goes to shared memory.
__device__ __forceinline__ void stage(u32 place, uint4 window, u32 unit) {
    if (unit >= 16) {
        staged[place] = window;
    } else if (unit == 8) {
        reinterpret_cast<uint2*>(staged)[place] = {window.x, window.y};
    } else {
        reinterpret_cast<u32*>(staged)[place] = window.x;
    }
}

// Reads the strip a window of 16 bytes at a time; in place, those that hold an element below its length.
template <class Element, bool IN_PLACE>
__device__ __forceinline__ void read_windows(const Reverse& p, const Position& at_outer, u32 strip) {
    constexpr u32 W = sizeof(Element), N = 16 / W;
    const u32 log = p.unit < 16 ? 0 : log_of(p.unit / 16), row_windows = 1u << log;
    const u32 column = threadIdx.x & (row_windows - 1);
    const u32 rows_at_once = THREADS >> log;
    const u32 lane = strip * (p.unit / W) + column * N, end = min((strip + 1) * (p.unit / W), p.block.divisor);
    const u8* const in = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.in), at_outer.in + lane));
    const u64 stride = static_cast<u64>(p.axis_in_stride) * W;
    const Bounds bounds = input_bounds(p);
    u32 rows = lane < end ? p.axis_size : 0;
    if (IN_PLACE) {
        rows = 0;
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            if (lane + k < end) rows = max(rows, lane_length(at_outer.length + (lane + k) * p.length_stride, p));
        }
    }
    u32 t = threadIdx.x >> log;
    if (t >= rows) return;
    // All windows but those at the tensor's ends have both slots in it.
    if (in - 15 >= bounds.begin && in + (rows - 1) * stride + 32 <= bounds.end) {
        for (; t < rows; t += AT_ONCE * rows_at_once) {
            uint4 low[AT_ONCE], high[AT_ONCE];
            u32 shift[AT_ONCE];
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                if (t + k * rows_at_once >= rows) continue;
                const u8* const from = in + (t + k * rows_at_once) * stride;
                shift[k] = static_cast<u32>(reinterpret_cast<u64>(from) & 15);
                low[k] = reinterpret_cast<const uint4*>(from - shift[k])[0];
                high[k] = reinterpret_cast<const uint4*>(from - shift[k])[1];
            }
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                const u32 row = t + k * rows_at_once;
                if (row < rows) stage(row * row_windows + column, shift_slots(low[k], high[k], shift[k]), p.unit);
            }
        }
        return;
    }
#pragma unroll 1
    for (; t < rows; t += rows_at_once) stage(t * row_windows + column, load_window(in + t * stride, bounds), p.unit);
}

// Copying: writes a thread's lanes of the strip, as words where they are one, picking their elements out of shared memory.
//
// Words begin `lead` lanes before the strip. A thread's rows are all at one alignment, as a multiple of N rows is written at
// once. The first column has both of the strip's ends: the lanes that its word has not in the strip, it has at its end.
template <class Element, class Word>
__device__ __forceinline__ void write_words(const Reverse& p, const Position& at_outer, u32 strip) {
    constexpr u32 W = sizeof(Element), N = sizeof(Word) / W;
    const u32 log = log_of(p.unit / sizeof(Word)), lanes = p.unit / W, end = min(lanes, p.block.divisor - strip * lanes);
    const u32 first_row = threadIdx.x >> log, rows_at_once = THREADS >> log;
    Element* row = at(static_cast<Element*>(p.out), at_outer.out + strip * lanes) +
                   static_cast<u64>(first_row) * p.axis_out_stride;
    const u64 row_step = static_cast<u64>(rows_at_once) * p.axis_out_stride;
    const u32 lead = static_cast<u32>(reinterpret_cast<u64>(row) & (sizeof(Word) - 1)) / W;

    u32 lane[N], length[N], back[N];  // back: where row 0 comes from, in bytes; row t lies t units before
#pragma unroll
    for (u32 k = 0; k < N; ++k) {
        lane[k] = ((threadIdx.x & ((1u << log) - 1)) * N + k - lead) & (lanes - 1);
        length[k] = 0;
        if (lane[k] < end) length[k] = lane_length(at_outer.length + (strip * lanes + lane[k]) * p.length_stride, p);
        back[k] = (length[k] - 1) * p.unit + lane[k] * W;
    }
    const bool is_word = lane[N - 1] == lane[0] + N - 1 && lane[N - 1] < end;
    const u8* const bytes = reinterpret_cast<const u8*>(staged);
    u32 passed = first_row * p.unit;
#pragma unroll 2
    for (u32 t = first_row; t < p.axis_size; t += rows_at_once, row += row_step, passed += rows_at_once * p.unit) {
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

template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void reverse_strips(const Reverse& p) {
    const u32 outer = divide(blockIdx.x, p.parts);
    const u32 strip = blockIdx.x - outer * p.parts.divisor;
    const Position at_outer = locate(outer, p);
    read_windows<Element, IN_PLACE>(p, at_outer, strip);
    __syncthreads();
    if (IN_PLACE) {
        write_lane<Element>(p, at_outer, strip, false);
    } else {
        write_words<Element, Word>(p, at_outer, strip);
    }
}

REVERSE_ENTRY(reverse_any_strips_1, (reverse_strips<u8, u32, false>))
REVERSE_ENTRY(reverse_any_strips_2, (reverse_strips<u16, u32, false>))
REVERSE_ENTRY(reverse_any_strips_4, (reverse_strips<u32, u32, false>))
REVERSE_ENTRY(reverse_any_strips_swap_1, (reverse_strips<u8, u32, true>))
REVERSE_ENTRY(reverse_any_strips_swap_2, (reverse_strips<u16, u32, true>))
REVERSE_ENTRY(reverse_any_strips_swap_4, (reverse_strips<u32, u32, true>))
REVERSE_ENTRY(reverse_any_strips_swap_8, (reverse_strips<u64, u64, true>))
