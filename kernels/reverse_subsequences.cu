// REVERSE_SUBSEQUENCES: the first L elements of every lane are reversed, the rest are copied. A lane is the
// run of elements along the axis that share every other coordinate; L is the lane's length, clamped to the
// axis size in the length's full width.
//
// The host promises (rules by their ids, plan = src/plan/reverse_subsequences.rs)
//   - at most 2^32 - 1 elements a tensor (tensor.element_count), offsets below 2^32 (tensor.total_size.max);
//   - no two output coordinates share an element (output.overlap);
//   - input and output do not overlap, or are the same elements (binding.overlap, binding.in_place): the
//     in-place entries are launched for the second, all others for the first;
//   - lengths do not overlap the output (binding.overlap);
//   - pointers are aligned to `Unit`; strides are in units. A unit is one element or, where a contiguous
//     block lies behind the axis, up to 16 bytes of it (plan: widen).
// The kernels promise
//   - bits are moved, never interpreted; every output element is written once, nothing else is written;
//   - copying reads inside the input tensor only; in place reads and writes inside a lane's length only.
// Why in place is right: one thread owns the pair (t, L-1-t), reads both, then writes both; pairs are
// disjoint, and the middle element of an odd length stays where it is.
// Bytes moved: copying, the input's and the output's once; in place, those below the lengths, twice.
#include "common.cuh"

struct ReverseDim {
    FastDiv size;
    u32 in_stride;
    u32 out_stride;
    u32 length_stride;
    u32 axis;  // 1 for the axis, whose strides here are 0; else 0
};

struct Reverse {
    const void* in;
    const void* lengths;
    void* out;
    u64 items;
    u64 in_bytes;      // TotalTensorSizeInBytes of the input: what may be read
    u32 axis_size;
    u32 axis_in_stride;
    u32 axis_out_stride;
    u32 wide_lengths;  // 1 for UINT64, 0 for UINT32
    FastDiv slots_of_lane;  // contiguous lanes only: 16-byte slots a lane can touch
    u32 rank;
    u32 reserved;
    ReverseDim dims[MAX_DIMS];  // innermost last
};

// ---- Where an item is -----------------------------------------------------------------------------------

struct Position {
    u32 in, out, length;  // offsets of the lane's first element, and of its length
    u32 t;                // position on the axis
};

__device__ __forceinline__ Position locate(u32 n, const Reverse& p) {
    Position position = {0, 0, 0, 0};
    for (int d = static_cast<int>(p.rank) - 1; d >= 0; --d) {
        const ReverseDim& dim = p.dims[d];
        const u32 outer = divide(n, dim.size);
        const u32 coordinate = n - outer * dim.size.divisor;
        position.in += coordinate * dim.in_stride;
        position.out += coordinate * dim.out_stride;
        position.length += coordinate * dim.length_stride;
        position.t += coordinate * dim.axis;
        n = outer;
    }
    return position;
}

// min(L, axis size), in the length's full width.
__device__ __forceinline__ u32 lane_length(u32 offset, const Reverse& p) {
    if (p.wide_lengths) {
        const u64 length = *at(static_cast<const u64*>(p.lengths), offset);
        return length < p.axis_size ? static_cast<u32>(length) : p.axis_size;
    }
    return min(*at(static_cast<const u32*>(p.lengths), offset), p.axis_size);
}

__device__ __forceinline__ u32 source(u32 t, u32 length) { return t < length ? length - 1 - t : t; }

// ---- Any strides ----------------------------------------------------------------------------------------
// Copying: an item is an output unit. ITEMS of them a thread, a block apart, so that their loads overlap.

template <class Unit, u32 ITEMS>
__device__ __forceinline__ void reverse_copy(const Reverse& p) {
    const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    Unit unit[ITEMS];
    u32 target[ITEMS];
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const u64 item = first + k * THREADS;
        if (item < p.items) {
            const Position at_item = locate(static_cast<u32>(item), p);
            const u32 from = source(at_item.t, lane_length(at_item.length, p));
            unit[k] = *at(static_cast<const Unit*>(p.in), at_item.in + from * p.axis_in_stride);
            target[k] = at_item.out + at_item.t * p.axis_out_stride;
        }
    }
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        if (first + k * THREADS < p.items) *at(static_cast<Unit*>(p.out), target[k]) = unit[k];
    }
}

// In place: an item is a pair, t below half the axis size; those at or past half the length have no work.
template <class Unit>
__device__ __forceinline__ void reverse_swap(const Reverse& p) {
    const u64 item = global_thread();
    if (item >= p.items) return;
    const Position at_item = locate(static_cast<u32>(item), p);
    const u32 length = lane_length(at_item.length, p);
    if (at_item.t >= length / 2) return;
    Unit* front = at(static_cast<Unit*>(p.out), at_item.out + at_item.t * p.axis_out_stride);
    Unit* back = at(static_cast<Unit*>(p.out), at_item.out + (length - 1 - at_item.t) * p.axis_out_stride);
    const Unit a = *front, b = *back;
    *front = b;
    *back = a;
}

// ---- Contiguous lanes, copying --------------------------------------------------------------------------
// An item is a 16-byte slot of the output, cut at 16-byte addresses. Its source is 16 bytes of the same
// lane at any alignment: two aligned loads and a shift, then the elements are turned around in registers.
// Slots that straddle the length or an end of the lane, and sources whose aligned loads would leave the
// input tensor, go element by element.

// The 16 bytes at `from`, which need be aligned to nothing.
__device__ __forceinline__ uint4 load_unaligned(const u8* from) {
    const u32 shift = static_cast<u32>(reinterpret_cast<u64>(from) & 15);
    const uint4* aligned = reinterpret_cast<const uint4*>(from - shift);
    const uint4 low = aligned[0];
    if (shift == 0) return low;
    const uint4 high = aligned[1];
    u32 w0 = low.x, w1 = low.y, w2 = low.z, w3 = low.w, w4 = high.x, w5 = high.y, w6 = high.z;
    if (shift & 8) w0 = w2, w1 = w3, w2 = w4, w3 = w5, w4 = w6, w5 = high.w;
    if (shift & 4) w0 = w1, w1 = w2, w2 = w3, w3 = w4, w4 = w5;
    const u32 bits = (shift & 3) * 8;
    return make_uint4(__funnelshift_r(w0, w1, bits), __funnelshift_r(w1, w2, bits), __funnelshift_r(w2, w3, bits),
                      __funnelshift_r(w3, w4, bits));
}

// 16 bytes with their elements of `Width` bytes in the opposite order.
template <u32 Width>
__device__ __forceinline__ uint4 turn(uint4 v) {
    if (Width == 8) return make_uint4(v.z, v.w, v.x, v.y);
    const u32 order = Width == 4 ? 0x3210 : Width == 2 ? 0x1032 : 0x0123;
    return make_uint4(__byte_perm(v.w, 0, order), __byte_perm(v.z, 0, order), __byte_perm(v.y, 0, order),
                      __byte_perm(v.x, 0, order));
}

template <class Element>
__device__ __forceinline__ void reverse_lanes(const Reverse& p) {
    constexpr u32 N = 16 / sizeof(Element);
    const u64 item = global_thread();
    if (item >= p.items) return;
    const u32 lane = divide(static_cast<u32>(item), p.slots_of_lane);
    const u32 slot = static_cast<u32>(item) - lane * p.slots_of_lane.divisor;
    const Position at_lane = locate(lane, p);
    const u32 length = lane_length(at_lane.length, p);
    const Element* in = at(static_cast<const Element*>(p.in), at_lane.in);
    Element* out = at(static_cast<Element*>(p.out), at_lane.out);

    const u32 lead = static_cast<u32>(reinterpret_cast<u64>(out) & 15) / sizeof(Element);
    const i64 begin = static_cast<i64>(slot) * N - lead;
    if (begin >= p.axis_size) return;
    const bool whole = begin >= 0 && begin + N <= p.axis_size;
    const bool reversed = begin + N <= length;
    if (whole && (reversed || begin >= length)) {
        const i64 from = reversed ? static_cast<i64>(length) - begin - N : begin;
        const u8* bytes = reinterpret_cast<const u8*>(in + from);
        const u8* tensor = static_cast<const u8*>(p.in);
        const u64 shift = reinterpret_cast<u64>(bytes) & 15;
        const u64 offset = static_cast<u64>(bytes - tensor);
        if (shift == 0 || (offset >= shift && offset - shift + 32 <= p.in_bytes)) {
            const uint4 v = load_unaligned(bytes);
            *reinterpret_cast<uint4*>(out + begin) = reversed ? turn<sizeof(Element)>(v) : v;
            return;
        }
    }
#pragma unroll
    for (u32 k = 0; k < N; ++k) {
        const i64 t = begin + k;
        if (t >= 0 && t < p.axis_size) out[t] = in[source(static_cast<u32>(t), length)];
    }
}

// ---- Entry points ---------------------------------------------------------------------------------------

#define REVERSE_ENTRY(name, body) \
    extern "C" __global__ void __launch_bounds__(THREADS) name(const __grid_constant__ Reverse p) { body(p); }

REVERSE_ENTRY(reverse_copy_1, (reverse_copy<u8, 4>))
REVERSE_ENTRY(reverse_copy_2, (reverse_copy<u16, 4>))
REVERSE_ENTRY(reverse_copy_4, (reverse_copy<u32, 4>))
REVERSE_ENTRY(reverse_copy_8, (reverse_copy<u64, 4>))
REVERSE_ENTRY(reverse_copy_16, (reverse_copy<uint4, 4>))
REVERSE_ENTRY(reverse_swap_1, reverse_swap<u8>)
REVERSE_ENTRY(reverse_swap_2, reverse_swap<u16>)
REVERSE_ENTRY(reverse_swap_4, reverse_swap<u32>)
REVERSE_ENTRY(reverse_swap_8, reverse_swap<u64>)
REVERSE_ENTRY(reverse_swap_16, reverse_swap<uint4>)
REVERSE_ENTRY(reverse_lanes_1, reverse_lanes<u8>)
REVERSE_ENTRY(reverse_lanes_2, reverse_lanes<u16>)
REVERSE_ENTRY(reverse_lanes_4, reverse_lanes<u32>)
REVERSE_ENTRY(reverse_lanes_8, reverse_lanes<u64>)
