// REVERSE_SUBSEQUENCES for any strides. See reverse.cuh for the contract.
//
//   out of place:  out[lane + t * stride] = in[lane + source(t, L) * stride]
//   in place:      for t < L / 2, swap out[lane + t * stride] and out[lane + (L - 1 - t) * stride]
//
//   lane:  | u0 | u1 | u2 | ... | u(L-1) | stays ... |     one thread swaps u0 and u(L-1), another u1 and u(L-2), ...
//
// Algorithm
//   A thread moves units: single elements or, if there is an inner block, up to 16 bytes of it. Each unit goes straight
//   from global to global memory. A thread issues all of its loads before it waits for the first.
//
// Mapping of threads to items
//   Item n is a coordinate in all dimensions, which include the axis: it gives a lane and a position t. Out of place an
//   item is one unit of the output, and in place one pair of units. A thread takes items that are THREADS apart, or the
//   neighbouring elements of one output vector.
//
// Variants
//   - units of 1 to 8 bytes, in few dimensions without a loop, or in any number of dimensions;
//   - vectors: a thread gathers a whole vector of the output and divides only for its first element;
//   - small: one item per thread and no loops, for layouts that are latency-bound. They scatter, gather, swap pairs, or
//     exchange the units of short lanes within one thread block.
//
// In-place safety: one thread owns the pair (t, L - 1 - t). It reads both units, then writes both. Pairs are disjoint,
// and the middle element of an odd length stays. In an exchange a thread block owns whole lanes. It reads them before a
// barrier and writes them only after it.
#include <type_traits>

#include "reverse.cuh"

using namespace elementwise;

static constexpr u32 ANY_DIMENSIONS = 0;  // positions are computed in a loop

// ---- Any size -----------------------------------------------------------------------------------------------

// In at most RANK dimensions, or in ANY_DIMENSIONS.
template <u32 RANK>
__device__ __forceinline__ Position position_of(u64 n, const Reverse& r) {
    if constexpr (RANK == ANY_DIMENSIONS)
        return locate(static_cast<u32>(n), r);
    else
        return locate_unrolled<RANK>(static_cast<u32>(n), r);
}

// A thread gathers items that are THREADS apart. All of its lengths are loaded before it waits for the first, and then
// all of its units. Past the last item, it loads the last one again.
template <class Unit, u32 RANK>
__device__ __forceinline__ void copy_items(const Reverse& r) {
    const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * ITEMS_PER_THREAD) + threadIdx.x;
    Unit unit[ITEMS_PER_THREAD];
    Position at_item[ITEMS_PER_THREAD];
    Length length[ITEMS_PER_THREAD];
#pragma unroll
    for (u32 k = 0; k < ITEMS_PER_THREAD; ++k) {
        at_item[k] = position_of<RANK>(min(first + k * THREADS, r.items - 1ull), r);
        length[k] = load_length(at_item[k].length, r);
    }
#pragma unroll
    for (u32 k = 0; k < ITEMS_PER_THREAD; ++k) {
        const u32 from = source(at_item[k].t, clamp_length(length[k], r));
        unit[k] = *at(static_cast<const Unit*>(r.input), at_item[k].in + from * r.axis_in_stride);
    }
#pragma unroll
    for (u32 k = 0; k < ITEMS_PER_THREAD; ++k) {
        if (first + k * THREADS >= r.items) break;
        *at(static_cast<Unit*>(r.out), at_item[k].out + at_item[k].t * r.axis_out_stride) = unit[k];
    }
}

// Pairs at or past half the length have no work.
template <class Unit, u32 RANK>
__device__ __forceinline__ void swap_pairs(const Reverse& r) {
    const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * PAIRS_PER_THREAD) + threadIdx.x;
    Position at_item[PAIRS_PER_THREAD];
    Length loaded[PAIRS_PER_THREAD];
    Unit front[PAIRS_PER_THREAD], back[PAIRS_PER_THREAD];
    u32 front_at[PAIRS_PER_THREAD], back_at[PAIRS_PER_THREAD];
    bool moves[PAIRS_PER_THREAD];
#pragma unroll
    for (u32 k = 0; k < PAIRS_PER_THREAD; ++k) {
        at_item[k] = position_of<RANK>(min(first + k * THREADS, r.items - 1ull), r);
        loaded[k] = load_length(at_item[k].length, r);
    }
#pragma unroll
    for (u32 k = 0; k < PAIRS_PER_THREAD; ++k) {
        const u32 t = at_item[k].t, length = clamp_length(loaded[k], r);
        moves[k] = first + k * THREADS < r.items && t < length / 2;
        if (!moves[k]) continue;
        front_at[k] = at_item[k].out + t * r.axis_out_stride;
        back_at[k] = at_item[k].out + (length - 1 - t) * r.axis_out_stride;
        front[k] = *at(static_cast<const Unit*>(r.out), front_at[k]);
        back[k] = *at(static_cast<const Unit*>(r.out), back_at[k]);
    }
#pragma unroll
    for (u32 k = 0; k < PAIRS_PER_THREAD; ++k) {
        if (!moves[k]) continue;
        *at(static_cast<Unit*>(r.out), front_at[k]) = back[k];
        *at(static_cast<Unit*>(r.out), back_at[k]) = front[k];
    }
}

// A thread gathers a vector of the output, whose elements are adjacent in memory. It divides for the first element
// only, and steps to the next ones. WITHIN_ROWS: these are in the same row. ONE_LENGTH: a row has one length.
template <class Unit, class Vector, bool WITHIN_ROWS, bool ONE_LENGTH = false>
__device__ __forceinline__ void copy_vectors_of(const Reverse& r) {
    constexpr u32 N = sizeof(Vector) / sizeof(Unit);
    const u64 first = global_thread() * N;
    if (first >= r.items) return;
    const u32 n = static_cast<u32>(first), inner = r.dims[0].size.divisor, middle = r.dims[1].size.divisor;
    const u32 row = divide(n, r.dims[0].size), plane = divide(row, r.dims[1].size);
    u32 column = n - row * inner, row_in_plane = row - plane * middle;
    Position next = {0, 0, 0, 0};
    step_to(next, column, r.dims[0]);
    step_to(next, row_in_plane, r.dims[1]);
    step_to(next, plane, r.dims[2]);
    u32 in[N], t[N];
    Length length[N];
#pragma unroll
    for (u32 k = 0; k < N; ++k) {
        in[k] = next.in, t[k] = next.t;
        length[k] = ONE_LENGTH && k > 0 ? length[0] : load_length(next.length, r);
        if (!WITHIN_ROWS && n + k + 1 >= r.items) continue;
        step_to(next, 1, r.dims[0]);
        if (WITHIN_ROWS || ++column != inner) continue;
        column = 0;
        step_to(next, 0 - inner, r.dims[0]);
        step_to(next, 1, r.dims[1]);
        if (++row_in_plane != middle) continue;
        row_in_plane = 0;
        step_to(next, 0 - middle, r.dims[1]);
        step_to(next, 1, r.dims[2]);
    }
    union {
        Unit unit[N];
        Vector vector;
    } value;
#pragma unroll
    for (u32 k = 0; k < N; ++k) {
        const u32 from = source(t[k], clamp_length(length[k], r));
        value.unit[k] = *at(static_cast<const Unit*>(r.input), in[k] + from * r.axis_in_stride);
    }
    Unit* const out = static_cast<Unit*>(r.out) + first;
    if (WITHIN_ROWS || first + N <= r.items) {
        *reinterpret_cast<Vector*>(out) = value.vector;
    } else {
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            if (n + k < r.items) out[k] = value.unit[k];
        }
    }
}
template <class Unit, class Vector>
__device__ __forceinline__ void copy_vectors(const Reverse& r) {
    if (!(r.form & IN_ROWS)) {
        copy_vectors_of<Unit, Vector, false>(r);
    } else if (r.dims[0].length_stride) {
        copy_vectors_of<Unit, Vector, true>(r);
    } else {
        copy_vectors_of<Unit, Vector, true, true>(r);
    }
}

template <class Unit>
__device__ __forceinline__ void copy_units(const Reverse& r) {
    // A vector of 16 bytes, of 8 for bytes; and half of it.
    using Whole = std::conditional_t<sizeof(Unit) == 1, uint2, uint4>;
    using Half = std::conditional_t<sizeof(Unit) == 1, u32, uint2>;
    if ((r.form & ~IN_ROWS) == GATHERED_VECTORS) {
        copy_vectors<Unit, Whole>(r);
    } else if (sizeof(Unit) < 8 && (r.form & ~IN_ROWS) == GATHERED_HALF_VECTORS) {
        copy_vectors<Unit, Half>(r);
    } else if (r.rank <= FEW_DIMENSIONS) {
        copy_items<Unit, FEW_DIMENSIONS>(r);
    } else if (r.rank <= UNROLLED_DIMENSIONS) {
        copy_items<Unit, UNROLLED_DIMENSIONS>(r);
    } else {
        copy_items<Unit, ANY_DIMENSIONS>(r);
    }
}
template <class Unit>
__device__ __forceinline__ void swap_units(const Reverse& r) {
    if (r.rank <= FEW_DIMENSIONS) {
        swap_pairs<Unit, FEW_DIMENSIONS>(r);
    } else if (r.rank <= UNROLLED_DIMENSIONS) {
        swap_pairs<Unit, UNROLLED_DIMENSIONS>(r);
    } else {
        swap_pairs<Unit, ANY_DIMENSIONS>(r);
    }
}

// ---- Little work --------------------------------------------------------------------------------------------

struct SmallPosition : Position {
    u32 lane;  // of those that `lanes` counts
};

__device__ __forceinline__ SmallPosition locate_small(u32 n, const Small& s) {
    SmallPosition position = {{0, 0, 0, 0}, 0};
    const auto step = [&](u32 d, u32 coordinate) {
        position.in += coordinate * s.dims[d].in_stride;
        position.out += coordinate * s.dims[d].out_stride;
        position.length += coordinate * s.dims[d].length_stride;
        if (s.flags / AXIS % AXIS == d) position.t = coordinate;
        if (d == 0) position.lane = coordinate;
        if (d == 2) position.lane += coordinate * s.dims[0].divisor;
    };
    const auto divide = [&](u32 d) {
        const u32 rest = n;
        n = __umulhi(n, s.dims[d].multiplier);
        return rest - n * s.dims[d].divisor;
    };
    step(0, divide(0));
    step(1, divide(1));
    u32 third = n;
    if (s.flags & MANY_DIMENSIONS) {
        third = divide(2);
        step(3, divide(3));
        step(4, n);
    }
    step(2, third);
    return position;
}

__device__ __forceinline__ Length load_length(u32 offset, const Small& s) {
    return load_length(offset, s.lengths, s.flags & WIDE_LENGTHS);
}

// Out of place. Scatter: a thread loads the element at t, which goes to source(t, L), so that the load need not wait
// for L. Gather: neighbouring threads write neighbouring elements, which suits large tensors with interleaved lanes.
// The length is loaded in each branch: loaded before the branch, a length of 64 bits would be waited for there.
template <class Unit>
__device__ __forceinline__ void copy_small(const Small& s) {
    const u32 n = static_cast<u32>(global_thread());
    if (n >= s.items) return;
    const Position item = locate_small(n, s);
    const Unit* const in = static_cast<const Unit*>(s.input);
    Unit* const out = static_cast<Unit*>(s.out);
    if (sizeof(Unit) < 16 && s.flags >= GATHERS) {
        const u32 from = source(item.t, clamp_length(load_length(item.length, s), s));
        *at(out, item.out + item.t * s.axis_out_stride) = *at(in, item.in + from * s.axis_in_stride);
    } else {
        const Unit unit = *at(in, item.in + item.t * s.axis_in_stride);
        const u32 to = source(item.t, clamp_length(load_length(item.length, s), s));
        *at(out, item.out + to * s.axis_out_stride) = unit;
    }
}

// In place. Long lanes are swapped: a thread swaps a pair. Short lanes are exchanged: a thread block has whole lanes,
// and a thread loads the unit at t, whatever the length, and stores it at L - 1 - t after all threads of the thread
// block have loaded. In an exchange, threads without a unit load the tensor's first one, because a branch would wait.
template <class Unit>
__device__ __forceinline__ void reverse_small_in_place(const Small& s) {
    const u32 n = blockIdx.x * blockDim.x + threadIdx.x;
    const SmallPosition item = locate_small(n, s);
    const bool has_unit = n < s.items && item.lane < s.lanes;
    const u32 lane = has_unit ? item.out : 0, t = has_unit ? item.t : 0, length_at = has_unit ? item.length : 0;
    Unit* const out = static_cast<Unit*>(s.out);
    Unit* const front = at(out, lane + t * s.axis_out_stride);
    if (s.flags >= SWAPS) {
        const u32 length = clamp_length(load_length(length_at, s), s);
        if (!has_unit || t >= length / 2) return;
        Unit* const back = at(out, lane + (length - 1 - t) * s.axis_out_stride);
        // In this order: the first store needs the last load. Stores to lines whose loads have not arrived are slow.
        const Unit from_front = *front;
        issue_loads();
        const Unit from_back = *back;
        *front = from_back;
        *back = from_front;
    } else {
        const Unit unit = *front;
        const u32 length = clamp_length(load_length(length_at, s), s);
        __syncthreads();
        if (has_unit && t < length) *at(out, lane + (length - 1 - t) * s.axis_out_stride) = unit;
    }
}

ENTRIES_TO_8((THREADS), Reverse, reverse_elementwise, copy_units)
ENTRIES_TO_8((THREADS), Reverse, reverse_elementwise_in_place, swap_units)
ENTRIES_TO_8((THREADS), Small, reverse_small, copy_small)
ENTRY((THREADS), Small, reverse_small_16, copy_small<uint4>)
ENTRIES_TO_8((MOST_THREADS), Small, reverse_small_in_place, reverse_small_in_place)
ENTRY((MOST_THREADS), Small, reverse_small_in_place_16, reverse_small_in_place<uint4>)
