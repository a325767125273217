// REVERSE_SUBSEQUENCES: the contract and the parameters that its kernels share.
//
//   out[t] = in[L - 1 - t]  for t < L
//   out[t] = in[t]          for t >= L
//
// A lane is the run of elements along the axis that share every other coordinate. L is the lane's length, clamped to
// the axis size in the length's full width. Bits are moved, never interpreted.
//
// The host promises (rules by their ids)
//   - at most 2^32 - 1 elements per tensor (tensor.element_count), offsets below 2^32 (tensor.total_size.max);
//   - no two output coordinates share an element (output.overlap);
//   - input and output do not overlap, or are the same elements (binding.overlap, binding.in_place): entries called
//     *_in_place_* are launched for the second, with `in` equal to `out`, the others for the first;
//   - lengths do not overlap the output (binding.overlap);
//   - pointers are aligned to the launch's `alignment`.
// The kernels promise
//   - every output element is written once, nothing else is written;
//   - reads stay inside the input tensor. In place, a read covers at least one element below a length, with up to 32
//     bytes around it, the row that holds it (columns), or the segment beside it (segments.cuh); bytes that are not
//     below a length are not used;
//   - in place, elements at or past a length keep their bits.
// Bytes moved: copying, the input's and the output's once; in place, those below the lengths, read and written.
#pragma once

#include "vec16.cuh"

struct ReverseDim {
    FastDiv size;
    u32 in_stride;
    u32 out_stride;
    u32 length_stride;
    u32 axis;  // 1 for the axis, whose strides here are 0; else 0
};
static_assert(sizeof(ReverseDim) == 32, "the host's ReverseDim");

// What every kernel gets. Strides and offsets count the kernel's units: elements, or vectors of them. Small kernels
// read the first fields only, which lie in as few lines of the constant cache as possible.
struct Reverse {
    const void* in;
    const void* lengths;
    void* out;
    u32 items;   // work items of the grid; the kernel says what one is
    u32 gather;  // small kernels: 1 where elements are gathered, not scattered
    u32 axis_size;
    u32 axis_in_stride;
    u32 axis_out_stride;
    u32 wide_lengths;           // 1 for UINT64 lengths, 0 for UINT32
    ReverseDim dims[MAX_DIMS];  // innermost first; zeros past `rank`
    u64 in_bytes;               // from the input's first element to its last: what may be read
    u32 rank;
    u32 reserved;
};
static_assert(sizeof(Reverse) == 320, "the host's Reverse");

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

// The position of item n, in at most three dimensions, without a loop: those past `rank` are zeros, which leave n as it is.
__device__ __forceinline__ Position locate_unrolled(u32 n, const Reverse& r) {
    constexpr u32 RANK = 3;
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

// min(L, axis size), in the length's full width.
__device__ __forceinline__ u32 lane_length(u32 offset, const Reverse& r) {
    if (r.wide_lengths) {
        const u64 length = *at(static_cast<const u64*>(r.lengths), offset);
        return length < r.axis_size ? static_cast<u32>(length) : r.axis_size;
    }
    return min(*at(static_cast<const u32*>(r.lengths), offset), r.axis_size);
}

// The same, split into load and clamp, so that callers can issue data loads before the length arrives. There is no
// branch in between, which would wait.
struct Length {
    u32 low, high;
};

__device__ __forceinline__ Length load_length(u32 offset, const Reverse& r) {
    const bool wide = r.wide_lengths;
    const u32* const words = at(static_cast<const u32*>(r.lengths), offset) + (wide ? offset : 0);
    return {words[0], wide ? words[1] : 0};
}

__device__ __forceinline__ u32 clamp_length(Length length, const Reverse& r) {
    return length.high ? r.axis_size : min(length.low, r.axis_size);
}

// Where position t comes from. It is its own inverse.
__device__ __forceinline__ u32 source(u32 t, u32 length) { return t < length ? length - 1 - t : t; }

__device__ __forceinline__ Bounds input_bounds(const Reverse& r) {
    const u8* begin = static_cast<const u8*>(r.in);
    return {begin, begin + r.in_bytes};
}

// An entry point that takes a parameter structure by value.
#define REVERSE_ENTRY(Params, name, body) \
    extern "C" __global__ void __launch_bounds__(THREADS) name(const __grid_constant__ Params p) { body(p); }

// The same with so few registers that `blocks` thread blocks fit a multiprocessor.
#define REVERSE_ENTRY_BLOCKS(Params, blocks, name, body) \
    extern "C" __global__ void __launch_bounds__(THREADS, blocks) name(const __grid_constant__ Params p) { body(p); }
