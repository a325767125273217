// The contract of the kernels for REVERSE_SUBSEQUENCES.
//
//   out[t] = in[L - 1 - t]  for t < L
//   out[t] = in[t]          for t >= L
//
// A lane is the sequence of elements along the axis that share every other coordinate. L is the lane's length, compared
// with the axis size at its full width and clamped to it. Kernels move bits and never interpret them.
//
// Kernels also use these terms:
//   interleaved lanes   lanes that are adjacent in memory element by element, each with its own length
//   inner block         contiguous elements inside the axis that share one length, so that they move together; its rows
//                       are along the axis
//   row                 what is contiguous at one position of the axis: a row of an inner block, or an element of each
//                       interleaved lane
//   unit                what a thread moves at once: an element, or up to 16 bytes of an inner block
// CUDA's blocks are always called thread blocks.
//
// The host guarantees (rules by their ids)
//   - at most 2^32 - 1 elements per tensor (tensor.element_count), and offsets below 2^32 (tensor.total_size.max);
//   - no two output coordinates share an element (output.overlap);
//   - no element of the input overlaps one of the output, or they are the same elements (binding.overlap,
//     binding.in_place). Entry points named *_in_place_* are for the second case, with `in` equal to `out`; the others
//     are for the first. Those of short lanes, lanes, packed lanes, packed rows, columns, strips and clusters are for
//     both: before a thread, a thread group, a thread block or a cluster writes, it has read everything that it writes
//     to;
//   - lengths do not overlap the output (binding.overlap);
//   - pointers are aligned to the launch's `alignment`.
// The kernels guarantee
//   - out of place, they write every output element once; kernels named *_in_place_* write each element below its length
//     at most once; they write nothing else;
//   - they read only inside the input tensor. In place, reads may include bytes that are not below a length: up to 32
//     bytes around an element that is, the rest of its row (columns), the rest of its lane or the tensor's first element
//     (small kernels), or a vector that reaches into the next segment (segments.cuh). The kernels ignore those bytes;
//   - in place, elements at or past a length keep their bits.
// Bytes moved: out of place, the input's and the output's once; in place, those below the lengths, read and written.
#pragma once

#include "vec16.cuh"

struct Position {
    u32 in, out, length;  // offsets of the lane's first element, and of its length
    u32 t;                // position on the axis
};

__device__ __forceinline__ void step_to(Position& position, u32 coordinate, const ReverseDim& dim) {
    position.in += coordinate * dim.in_stride;
    position.out += coordinate * dim.out_stride;
    position.length += coordinate * dim.length_stride;
    position.t += coordinate * dim.axis;
}

// The position of item n, in any number of dimensions.
__device__ __forceinline__ Position locate(u32 n, const Reverse& r) {
    Position position = {0, 0, 0, 0};
#pragma unroll
    for (u32 d = 0; d < MAX_DIMS; ++d) {
        if (d >= r.rank) break;
        const u32 outer = d + 1 < r.rank ? divide(n, r.dims[d].size) : 0;
        step_to(position, n - outer * r.dims[d].size.divisor, r.dims[d]);
        n = outer;
    }
    return position;
}

// The position of item n in at most RANK dimensions, without a loop. Unused dimensions are zeros, which leave n as it
// is.
template <u32 RANK>
__device__ __forceinline__ Position locate_unrolled(u32 n, const Reverse& r) {
    Position position = {0, 0, 0, 0};
#pragma unroll
    for (u32 d = 0; d + 1 < RANK; ++d) {
        const u32 outer = divide(n, r.dims[d].size);
        step_to(position, n - outer * r.dims[d].size.divisor, r.dims[d]);
        n = outer;
    }
    step_to(position, n, r.dims[RANK - 1]);
    return position;
}

// min(L, axis size), compared at the length's full width.
__device__ __forceinline__ u32 lane_length(u32 offset, const Reverse& r) {
    if (r.wide_lengths) {
        const u64 length = *at(static_cast<const u64*>(r.lengths), offset);
        return length < r.axis_size ? static_cast<u32>(length) : r.axis_size;
    }
    return min(*at(static_cast<const u32*>(r.lengths), offset), r.axis_size);
}

// The same, split into load and clamp, so that callers can start data loads before the length arrives. There is no
// branch in between, because a branch would wait.
struct Length {
    u32 low, high;
};

__device__ __forceinline__ Length load_length(u32 offset, const void* lengths, bool wide) {
    const u32* const words = at(static_cast<const u32*>(lengths), offset) + (wide ? offset : 0);
    return {words[0], wide ? words[1] : 0};
}
__device__ __forceinline__ Length load_length(u32 offset, const Reverse& r) {
    return load_length(offset, r.lengths, r.wide_lengths);
}

template <class Params>
__device__ __forceinline__ u32 clamp_length(Length length, const Params& p) {
    return length.high ? p.axis_size : min(length.low, p.axis_size);
}

// Which position t comes from. The function is its own inverse.
__device__ __forceinline__ u32 source(u32 t, u32 length) { return t < length ? length - 1 - t : t; }

__device__ __forceinline__ Bounds input_bounds(const Reverse& r) {
    const u8* begin = static_cast<const u8*>(r.input);
    return {begin, begin + r.in_bytes};
}

// Entry points of a body for units of 1 and 2 bytes, of 4, and of 8. Bodies named copy_* copy, those named swap_* run
// in place, and those named reverse_* do either. The unit's type is the body's first template argument.
#define ENTRIES_TO_2(bounds, Params, name, body, ...)        \
    ENTRY(bounds, Params, name##_1, body<u8, ##__VA_ARGS__>) \
    ENTRY(bounds, Params, name##_2, body<u16, ##__VA_ARGS__>)
#define ENTRIES_TO_4(bounds, Params, name, body, ...)       \
    ENTRIES_TO_2(bounds, Params, name, body, ##__VA_ARGS__) \
    ENTRY(bounds, Params, name##_4, body<u32, ##__VA_ARGS__>)
#define ENTRIES_TO_8(bounds, Params, name, body, ...)       \
    ENTRIES_TO_4(bounds, Params, name, body, ##__VA_ARGS__) \
    ENTRY(bounds, Params, name##_8, body<u64, ##__VA_ARGS__>)
