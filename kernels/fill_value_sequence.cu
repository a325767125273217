// FILL_VALUE_SEQUENCE: element i of the output, i its logical row-major index, becomes start + i * delta.
//
// The host promises (rules by their ids, plan = src/plan/fill_value_sequence.rs)
//   - at most 2^32 - 1 elements, so that i fits 32 bits (tensor.element_count);
//   - no two coordinates share an element (output.overlap), so that no two threads write the same byte;
//   - `out` is aligned to its element; nothing more (the binding rules give 16 bytes, raw pointers may not);
//   - the output's dimensions come merged and ordered by stride, outermost first (plan).
// The kernels promise
//   - every element is written once, with one rounding as spelled below; nothing else is written: no gap
//     between strided elements, no byte before the first or after the last;
//   - nothing is read, so there is no order between threads to keep.
// Bytes moved: the output's, once.
#include <cuda_fp16.h>

#include "common.cuh"

// ---- Arithmetic ---------------------------------------------------------------------------------------
// Integers wrap modulo 2^width; signed and unsigned share. FLOAT32 rounds the index to the nearest float,
// then one fused multiply-add. FLOAT16 does the same on widened scalars and rounds once more, at the end.

template <class T>
struct Wrapping {
    using Element = T;
    T start, delta;
    __device__ Wrapping(u64 s, u64 d) : start(static_cast<T>(s)), delta(static_cast<T>(d)) {}
    __device__ T operator()(u32 i) const { return static_cast<T>(start + static_cast<T>(i) * delta); }
    // The element k steps behind element i. Indices wrap modulo 2^32, as do products of up to 32 bits: of these
    // one product serves all of a slot.
    __device__ T behind(u32 i, u32 k, u32 step) const {
        if (sizeof(T) == 8) return (*this)(i + k * step);
        return static_cast<T>((*this)(i) + static_cast<T>(k) * static_cast<T>(static_cast<T>(step) * delta));
    }
};

struct Float32 {
    using Element = float;
    float start, delta;
    __device__ Float32(u64 s, u64 d)
        : start(__uint_as_float(static_cast<u32>(s))), delta(__uint_as_float(static_cast<u32>(d))) {}
    __device__ float operator()(u32 i) const { return __fmaf_rn(__uint2float_rn(i), delta, start); }
    __device__ float behind(u32 i, u32 k, u32 step) const { return (*this)(i + k * step); }
};

struct Float16 {
    using Element = u16;
    float start, delta;
    __device__ static float widen(u64 bits) { return __half2float(__ushort_as_half(static_cast<u16>(bits))); }
    __device__ Float16(u64 s, u64 d) : start(widen(s)), delta(widen(d)) {}
    __device__ u16 operator()(u32 i) const {
        return __half_as_ushort(__float2half_rn(__fmaf_rn(__uint2float_rn(i), delta, start)));
    }
    __device__ u16 behind(u32 i, u32 k, u32 step) const { return (*this)(i + k * step); }
};

// ---- 16 bytes of consecutive memory -------------------------------------------------------------------

template <class A>
union Slot {
    static constexpr u32 N = 16 / sizeof(typename A::Element);
    typename A::Element element[N];
    uint4 vector;
};

// The part of a slot that lies in a run of consecutive elements. Slots are cut at 16-byte addresses: `slot` 0 holds
// the run's first element, which may stand anywhere in it.
template <class A>
struct Cut {
    using T = typename A::Element;
    static constexpr u32 N = Slot<A>::N;
    u32 first;  // the element of the run at the slot's begin; wraps before the run's first
    u32 skip;   // elements of the slot before the run's first
    u32 end;    // elements of the slot before the run's end, N at most; 0 where the run ends before the slot

    __device__ Cut(const T* run, u32 count, u32 slot) {
        const u32 lead = static_cast<u32>(reinterpret_cast<u64>(run) & 15) / sizeof(T);
        first = slot * N - lead;
        skip = slot == 0 ? lead : 0;
        end = slot == 0 ? min(min(count, N) + lead, N) : min(count - min(count, first), N);
    }
    __device__ void store(T* run, const Slot<A>& values) const {
        u8* slot = reinterpret_cast<u8*>(run) + sizeof(T) * (static_cast<i64>(skip ? 0 : first) - skip);
        store_part(slot, values.vector, static_cast<int>(skip * sizeof(T)), static_cast<int>(end * sizeof(T)));
    }
};

// Writes the part of slot `slot` that lies in a run of `count` elements at `run`, whose element j holds
// value(first + j * step): one aligned store, but for the slots at the run's two ends.
template <class A>
__device__ __forceinline__ void write_slot(const A& value, typename A::Element* run, u32 count, u32 slot, u32 first,
                                           u32 step) {
    const Cut<A> cut(run, count, slot);
    if (cut.end == 0) return;
    Slot<A> values;
#pragma unroll
    for (u32 k = 0; k < Slot<A>::N; ++k) values.element[k] = value.behind(first + cut.first * step, k, step);
    cut.store(run, values);
}

// ---- Packed: one run over the whole tensor --------------------------------------------------------------

struct FillPacked {
    void* out;
    u64 start, delta;
    u32 count;
    u32 reserved;
};

template <class A>
__device__ __forceinline__ void fill_packed(const FillPacked& p) {
    const A value(p.start, p.delta);
    write_slot(value, static_cast<typename A::Element*>(p.out), p.count, static_cast<u32>(global_thread()), 0, 1);
}

// ---- Strided ------------------------------------------------------------------------------------------
// One dimension of the output in memory order: `stride` elements apart in memory, `step` apart in the
// logical index. `rows` takes the innermost dimension (stride 1) as runs of 16-byte slots and the others
// from `dims`; `dense` takes up to three innermost ones that leave no gaps as such a run; `elements` takes all
// of them from `dims`, one element a thread.

struct FillDim {
    FastDiv size;
    u32 stride;
    u32 step;
};

struct FillStrided {
    void* out;
    u64 start, delta;
    u64 items;        // rows: rows in all; dense: slots in all; elements: elements in all
    FastDiv slots;    // dense: slots of a run; rows: parts of a row
    FastDiv inner;    // dense: size of the innermost dimension
    FastDiv middle;   // dense: size of the next
    u32 row_size;     // rows, dense: elements of a run
    u32 row_step;     // rows, dense: step of the innermost dimension
    u32 middle_step;  // dense: step of the next
    u32 outer_step;   // dense: step of the one after
    u32 rank;         // dimensions in `dims`, innermost last
    u32 group_log;    // rows: threads of a row, as a power of two
    FillDim dims[MAX_DIMS];
};

struct Position {
    u32 offset;  // elements from the tensor's base
    u32 index;   // logical row-major index
};

__device__ __forceinline__ Position locate(u32 n, const FillStrided& p) {
    Position position = {0, 0};
    for (int d = static_cast<int>(p.rank) - 1; d > 0; --d) {
        const u32 outer = divide(n, p.dims[d].size);
        const u32 coordinate = n - outer * p.dims[d].size.divisor;
        position.offset += coordinate * p.dims[d].stride;
        position.index += coordinate * p.dims[d].step;
        n = outer;
    }
    // What is left is the outermost coordinate.
    if (p.rank > 0) position.offset += n * p.dims[0].stride, position.index += n * p.dims[0].step;
    return position;
}

template <class A>
__device__ __forceinline__ void fill_dense(const FillStrided& p) {
    using T = typename A::Element;
    constexpr u32 N = Slot<A>::N;
    const u64 item = global_thread();
    if (item >= p.items) return;
    const u32 row = divide(static_cast<u32>(item), p.slots);
    const u32 slot = static_cast<u32>(item) - row * p.slots.divisor;
    const Position position = locate(row, p);
    T* run = at(static_cast<T*>(p.out), position.offset);
    const Cut<A> cut(run, p.row_size, slot);
    if (cut.end == 0) return;

    // Where the slot's first element of the run is.
    const u32 j = cut.skip ? 0 : cut.first;
    const u32 m = divide(j, p.inner);
    const u32 o = divide(m, p.middle);
    u32 c0 = j - m * p.inner.divisor, c1 = m - o * p.middle.divisor;
    u32 i = position.index + c0 * p.row_step + c1 * p.middle_step + o * p.outer_step;
    const u32 carry = p.middle_step - p.inner.divisor * p.row_step;
    const u32 carry_more = p.outer_step - p.middle.divisor * p.middle_step;
    const A value(p.start, p.delta);
    Slot<A> values;
    if (p.inner.divisor >= N) {
        // At most one step of the next dimension in a slot: elements before it, and elements behind it.
        const u32 turn = p.inner.divisor - c0 + cut.skip;
        const u32 before = i - cut.skip * p.row_step;
        const u32 behind = before + carry + (c1 + 1 == p.middle.divisor ? carry_more : 0);
#pragma unroll
        for (u32 k = 0; k < N; ++k) values.element[k] = value.behind(k < turn ? before : behind, k, p.row_step);
    } else {
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            values.element[k] = value(i);
            if (k < cut.skip) continue;
            i += p.row_step;
            if (++c0 == p.inner.divisor) {
                c0 = 0;
                i += carry;
                if (++c1 == p.middle.divisor) {
                    c1 = 0;
                    i += carry_more;
                }
            }
        }
    }
    cut.store(run, values);
}

// Rows: 2^group_log threads for each, side by side in a block; a row of more slots is cut into `slots` parts.
template <class A>
__device__ __forceinline__ void fill_rows(const FillStrided& p) {
    const u32 together = divide(blockIdx.x, p.slots);
    const u32 part = blockIdx.x - together * p.slots.divisor;
    const u32 row = together * (THREADS >> p.group_log) + (threadIdx.x >> p.group_log);
    if (row >= p.items) return;
    const u32 slot = part * THREADS + (threadIdx.x & ((1u << p.group_log) - 1));
    const Position position = locate(row, p);
    write_slot(A(p.start, p.delta), at(static_cast<typename A::Element*>(p.out), position.offset), p.row_size, slot,
               position.index, p.row_step);
}

template <class A>
__device__ __forceinline__ void fill_elements(const FillStrided& p) {
    const u64 item = global_thread();
    if (item >= p.items) return;
    const Position position = locate(static_cast<u32>(item), p);
    *at(static_cast<typename A::Element*>(p.out), position.offset) = A(p.start, p.delta)(position.index);
}

// ---- Entry points ---------------------------------------------------------------------------------------

#define FILL_ENTRIES(suffix, arithmetic)                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS) fill_packed_##suffix(const __grid_constant__ FillPacked p) { \
        fill_packed<arithmetic>(p);                                                                                \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) fill_rows_##suffix(const __grid_constant__ FillStrided p) {  \
        fill_rows<arithmetic>(p);                                                                                  \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) fill_dense_##suffix(const __grid_constant__ FillStrided p) { \
        fill_dense<arithmetic>(p);                                                                                 \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                          \
        fill_elements_##suffix(const __grid_constant__ FillStrided p) {                                            \
        fill_elements<arithmetic>(p);                                                                              \
    }

FILL_ENTRIES(i8, Wrapping<u8>)
FILL_ENTRIES(i16, Wrapping<u16>)
FILL_ENTRIES(i32, Wrapping<u32>)
FILL_ENTRIES(i64, Wrapping<u64>)
FILL_ENTRIES(f32, Float32)
FILL_ENTRIES(f16, Float16)
