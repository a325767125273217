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
//
// `slot` makes 16 bytes of elements `step` apart in the index, from index `first` on, which is below 0 where the slot
// begins before the run. Integers add a pattern to the slot's first element: what its elements are apart, which the
// host has multiplied out. `slot_of_two` makes elements whose index is `more` further from number `turn` on; where it
// wraps below 0, these are elements before the run. `slot_at` makes elements whose distances from `first` stand in a
// table.

template <class T>
struct Wrapping {
    using Element = T;
    static constexpr u32 TABLE = 4;  // words of a table
    T start, delta;
    __device__ Wrapping(u64 s, u64 d) : start(static_cast<T>(s)), delta(static_cast<T>(d)) {}
    // Not in T itself: shorter ones would be multiplied as signed integers, and overflow.
    using Wide = decltype(T{} + 0u);
    __device__ T operator()(i64 i) const { return static_cast<T>(start + static_cast<Wide>(i) * delta); }

    // Adds to all elements of a word: their highest bits apart, so that nothing carries from one into the next.
    __device__ static u32 add(u32 a, u32 b) {
        if (sizeof(T) == 4) return a + b;
        constexpr u32 HIGH = sizeof(T) == 1 ? 0x80808080 : 0x80008000;
        return ((a & ~HIGH) + (b & ~HIGH)) ^ ((a ^ b) & HIGH);
    }
    __device__ static uint4 add(T first, uint4 pattern) {
        if constexpr (sizeof(T) == 8) {
            const u64 low = first + (static_cast<u64>(pattern.y) << 32 | pattern.x);
            const u64 high = first + (static_cast<u64>(pattern.w) << 32 | pattern.z);
            return make_uint4(static_cast<u32>(low), static_cast<u32>(low >> 32), static_cast<u32>(high),
                              static_cast<u32>(high >> 32));
        } else {
            const u32 all = static_cast<u32>(first) * (sizeof(T) == 1 ? 0x01010101 : sizeof(T) == 2 ? 0x00010001 : 1);
            return make_uint4(add(all, pattern.x), add(all, pattern.y), add(all, pattern.z), add(all, pattern.w));
        }
    }
    __device__ uint4 slot(i64 first, u32, uint4 pattern) const { return add((*this)(first), pattern); }
    __device__ uint4 slot_of_two(u32 first, u32 turn, u32 more, u32 step, uint4 pattern) const {
        if constexpr (sizeof(T) == 8) {
            const u64 low = (*this)(first), high = (*this)(first + step + (turn < 2 ? more : 0));
            return make_uint4(static_cast<u32>(low), static_cast<u32>(low >> 32), static_cast<u32>(high),
                              static_cast<u32>(high >> 32));
        } else {
            const uint4 before = slot(first, step, pattern);
            if (turn >= 16 / sizeof(T)) return before;
            return select(bytes_from(static_cast<int>(turn * sizeof(T))), before, slot(first + more, step, pattern));
        }
    }
    __device__ uint4 slot_at(i64 first, const uint4* table) const { return add((*this)(first), table[0]); }
};

struct Float32 {
    using Element = float;
    static constexpr u32 TABLE = 4;
    float start, delta;
    __device__ Float32(u64 s, u64 d)
        : start(__uint_as_float(static_cast<u32>(s))), delta(__uint_as_float(static_cast<u32>(d))) {}
    __device__ float operator()(i64 i) const {
        return __fmaf_rn(__uint2float_rn(static_cast<u32>(i)), delta, start);
    }
    __device__ u32 bits(u32 i) const { return __float_as_uint((*this)(i)); }
    __device__ uint4 slot(i64 first, u32 step, uint4) const {
        const u32 i = static_cast<u32>(first);
        return make_uint4(bits(i), bits(i + step), bits(i + 2 * step), bits(i + 3 * step));
    }
    __device__ uint4 slot_of_two(u32 first, u32 turn, u32 more, u32 step, uint4) const {
        const u32 behind = first + more;
        return make_uint4(bits(turn > 0 ? first : behind), bits((turn > 1 ? first : behind) + step),
                          bits((turn > 2 ? first : behind) + 2 * step), bits((turn > 3 ? first : behind) + 3 * step));
    }
    __device__ uint4 slot_at(i64 first, const uint4* table) const {
        const u32 i = static_cast<u32>(first);
        return make_uint4(bits(i + table->x), bits(i + table->y), bits(i + table->z), bits(i + table->w));
    }
};

struct Float16 {
    using Element = u16;
    static constexpr u32 TABLE = 8;
    float start, delta;
    __device__ static float widen(u64 bits) { return __half2float(__ushort_as_half(static_cast<u16>(bits))); }
    __device__ Float16(u64 s, u64 d) : start(widen(s)), delta(widen(d)) {}
    __device__ float wide(u32 i) const { return __fmaf_rn(__uint2float_rn(i), delta, start); }
    __device__ u16 operator()(i64 i) const { return __half_as_ushort(__float2half_rn(wide(static_cast<u32>(i)))); }
    __device__ u32 pair(u32 i, u32 j) const {
        const __half2 both = __floats2half2_rn(wide(i), wide(j));
        u32 bits;
        memcpy(&bits, &both, 4);
        return bits;
    }
    __device__ uint4 slot(i64 first, u32 step, uint4) const {
        const u32 i = static_cast<u32>(first);
        return make_uint4(pair(i, i + step), pair(i + 2 * step, i + 3 * step), pair(i + 4 * step, i + 5 * step),
                          pair(i + 6 * step, i + 7 * step));
    }
    __device__ uint4 slot_of_two(u32 first, u32 turn, u32 more, u32 step, uint4) const {
        u32 words[4];
#pragma unroll
        for (u32 k = 0; k < 8; k += 2) {
            words[k / 2] = pair((k < turn ? first : first + more) + k * step,
                                (k + 1 < turn ? first : first + more) + (k + 1) * step);
        }
        return make_uint4(words[0], words[1], words[2], words[3]);
    }
    __device__ uint4 slot_at(i64 first, const uint4* table) const {
        const u32 i = static_cast<u32>(first);
        const uint4 a = table[0], b = table[1];
        return make_uint4(pair(i + a.x, i + a.y), pair(i + a.z, i + a.w), pair(i + b.x, i + b.y), pair(i + b.z, i + b.w));
    }
};

// ---- 16 bytes of consecutive memory -------------------------------------------------------------------

// The part of a slot that lies in a run of consecutive elements. Slots are cut at 16-byte addresses: `slot` 0 holds
// the run's first element, which may stand anywhere in it.
template <class A>
struct Cut {
    using T = typename A::Element;
    static constexpr u32 N = 16 / sizeof(T);
    u8* at;     // where the slot is
    i64 first;  // the element of the run at the slot's begin; negative before the run's first
    u32 skip;   // elements of the slot before the run's first
    u32 end;    // elements of the slot before the run's end, N at most; 0 where the run ends before the slot
    bool last;  // the run ends in the slot or with it

    __device__ Cut(T* run, u32 count, u32 slot) {
        const u32 lead = static_cast<u32>(reinterpret_cast<u64>(run) & 15) / sizeof(T);
        at = reinterpret_cast<u8*>(run - lead) + static_cast<u64>(slot) * 16;
        first = static_cast<i64>(slot) * N - lead;
        skip = slot == 0 ? lead : 0;
        const i64 left = static_cast<i64>(count) - first;
        end = left < 0 ? 0 : left < N ? static_cast<u32>(left) : N;
        last = left <= N;
    }
    // Before the slot is stored: where it is of a sector that the run shares with what lies beside it.
    __device__ void prefetch_edge() const {
        const u32 address = static_cast<u32>(reinterpret_cast<u64>(at));
        const bool ends = last && ((address + end * sizeof(T)) & 31) != 0;
        const bool begins = first <= 0 && ((address + skip * sizeof(T)) & 31) != 0;
        if (ends || begins) prefetch(at);
    }
    __device__ void store(uint4 values) const {
        store_part<sizeof(T)>(at, values, static_cast<int>(skip * sizeof(T)), static_cast<int>(end * sizeof(T)));
    }
};

// ---- Packed: one run over the whole tensor --------------------------------------------------------------

struct FillPacked {
    void* out;
    u64 start, delta;
    u32 count;
    u32 reserved;
    u32 pattern[4];
};

__device__ __forceinline__ uint4 pattern_of(const u32 (&words)[4]) {
    return make_uint4(words[0], words[1], words[2], words[3]);
}

template <class A>
__device__ __forceinline__ void fill_packed(const FillPacked& p) {
    const Cut<A> cut(static_cast<typename A::Element*>(p.out), p.count, static_cast<u32>(global_thread()));
    if (cut.end == 0) return;
    cut.store(A(p.start, p.delta).slot(cut.first, 1, pattern_of(p.pattern)));
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
    u64 items;        // rows, dense: runs in all; elements: elements in all
    FastDiv parts;    // rows, dense: parts of a run
    FastDiv inner;    // dense: size of the innermost dimension
    FastDiv middle;   // dense: size of the next
    u32 row_size;     // rows, dense: elements of a run
    u32 row_step;     // rows, dense: step of the innermost dimension
    u32 middle_step;  // dense: step of the next
    u32 outer_step;   // dense: step of the one after
    u32 rank;         // dimensions in `dims`, innermost first
    u32 group_log;    // rows, dense: threads of a run, as a power of two
    u32 whole;        // rows: 1 where all runs are whole slots at aligned addresses
    u32 reserved;
    u32 pattern[4];   // rows, dense: of elements `row_step` apart
    // dense, where the innermost dimension is shorter than a slot: of every coordinate that a slot may begin with, the
    // distances of the slot's elements, multiplied out of integers. A table::TABLE words each.
    u32 tables[60];
    FillDim dims[MAX_DIMS];
};

struct Position {
    u32 offset;  // elements from the tensor's base
    u32 index;   // logical row-major index
};

// Where run or element n is; what is left for the outermost dimension is its coordinate.
__device__ __forceinline__ Position locate(u32 n, const FillStrided& p) {
    Position position = {0, 0};
#pragma unroll
    for (u32 d = 0; d < MAX_DIMS; ++d) {
        if (d >= p.rank) break;
        const u32 outer = d + 1 < p.rank ? divide(n, p.dims[d].size) : 0;
        const u32 coordinate = n - outer * p.dims[d].size.divisor;
        position.offset += coordinate * p.dims[d].stride;
        position.index += coordinate * p.dims[d].step;
        n = outer;
    }
    return position;
}

// Slots of a dense run that a thread takes (plan::SLOTS_OF_DENSE).
static constexpr u32 DENSE_SLOTS = 8;

extern __shared__ uint4 staged[];

// Runs have 2^group_log threads each, side by side in a block; one of more slots is cut into `parts`.
template <class A>
__device__ __forceinline__ void fill_dense(const FillStrided& p) {
    using T = typename A::Element;
    constexpr u32 N = Cut<A>::N;
    const bool tabled = N > 2 && p.inner.divisor < N;  // the same for all threads
    if (tabled) {
        for (u32 w = threadIdx.x; w < p.inner.divisor * A::TABLE; w += THREADS) {
            reinterpret_cast<u32*>(staged)[w] = p.tables[w];
        }
        __syncthreads();
    }
    const u32 together = divide(blockIdx.x, p.parts);
    const u32 part = blockIdx.x - together * p.parts.divisor;
    const u32 row = together * (THREADS >> p.group_log) + (threadIdx.x >> p.group_log);
    if (row >= p.items) return;
    const u32 team = 1u << p.group_log;
    const Position position = locate(row, p);
    T* const run = at(static_cast<T*>(p.out), position.offset);
    const A value(p.start, p.delta);
    const u32 carry = p.middle_step - p.inner.divisor * p.row_step;
    const u32 carry_more = p.outer_step - p.middle.divisor * p.middle_step;
    // From a thread's slot to its next, in coordinates of the run.
    const u32 advance1 = divide(team * N, p.inner);
    const u32 advance0 = team * N - advance1 * p.inner.divisor;

    // Slot 0 holds the run's first element; slots from `whole` to `whole_end` lie in the run.
    const u32 lead = static_cast<u32>(reinterpret_cast<u64>(run) & 15) / sizeof(T);
    const u64 span = static_cast<u64>(p.row_size) + lead;
    const u32 slots = static_cast<u32>((span + N - 1) / N), whole = lead != 0, whole_end = static_cast<u32>(span / N);
    const u32 first = part * (team * DENSE_SLOTS) + (threadIdx.x & (team - 1));
    u32 c0 = 0, c1 = 0, o = 0;
    bool known = false;
    for (u32 slot = first; slot < slots && slot - first < DENSE_SLOTS * team; slot += team) {
        const u32 skip = slot == 0 ? lead : 0;
        // The coordinates of the slot's first element of the run.
        if (known) {
            c0 += advance0;
            c1 += advance1;
            if (c0 >= p.inner.divisor) c0 -= p.inner.divisor, ++c1;
        } else {
            const u32 j = slot * N - lead + skip;
            c1 = divide(j, p.inner);
            c0 = j - c1 * p.inner.divisor;
            o = 0;
        }
        if (c1 >= p.middle.divisor) {
            const u32 more = divide(c1, p.middle);
            c1 -= more * p.middle.divisor;
            o += more;
        }
        known = skip == 0;
        const u32 i = position.index + c0 * p.row_step + c1 * p.middle_step + o * p.outer_step;
        uint4 values;
        if (!tabled) {
            // At most one step of the next dimension in a slot: elements before it, and elements behind it.
            const u32 turn = p.inner.divisor - c0 + skip;
            const u32 more = carry + (c1 + 1 == p.middle.divisor ? carry_more : 0);
            values = value.slot_of_two(i - skip * p.row_step, turn, more, p.row_step, pattern_of(p.pattern));
        } else if (skip == 0 && c1 + (c0 + N - 1) / 2 < p.middle.divisor) {
            // No step of the dimension after: a slot has at most (c0 + N - 1) / 2 steps of the next.
            values = value.slot_at(i - c0 * p.row_step, staged + c0 * (A::TABLE / 4));
        } else {
            union {
                T element[N];
                uint4 vector;
            } each;
            u32 at0 = c0, at1 = c1, at = i;
#pragma unroll
            for (u32 e = 0; e < N; ++e) {
                each.element[e] = value(at);
                if (e < skip) continue;
                at += p.row_step;
                if (++at0 == p.inner.divisor) {
                    at0 = 0;
                    at += carry;
                    if (++at1 == p.middle.divisor) {
                        at1 = 0;
                        at += carry_more;
                    }
                }
            }
            values = each.vector;
        }
        if (slot >= whole && slot < whole_end) {
            store_slot(reinterpret_cast<u8*>(run - lead) + static_cast<u64>(slot) * 16, values);
        } else {
            Cut<A>(run, p.row_size, slot).store(values);
        }
    }
}

template <class A>
__device__ __forceinline__ void fill_rows(const FillStrided& p) {
    const u32 together = divide(blockIdx.x, p.parts);
    const u32 part = blockIdx.x - together * p.parts.divisor;
    const u32 row = together * (THREADS >> p.group_log) + (threadIdx.x >> p.group_log);
    if (row >= p.items) return;
    const Position position = locate(row, p);
    typename A::Element* const run = at(static_cast<typename A::Element*>(p.out), position.offset);
    const u32 slot = part * THREADS + (threadIdx.x & ((1u << p.group_log) - 1));
    if (p.whole) {
        const u32 first = slot * Cut<A>::N;
        if (first >= p.row_size) return;
        const u32 i = position.index + first * p.row_step;
        store_slot(reinterpret_cast<u8*>(at(run, first)), A(p.start, p.delta).slot(i, p.row_step, pattern_of(p.pattern)));
        return;
    }
    const Cut<A> cut(run, p.row_size, slot);
    if (cut.end == 0) return;
    cut.prefetch_edge();
    const i64 first = position.index + cut.first * p.row_step;
    cut.store(A(p.start, p.delta).slot(first, p.row_step, pattern_of(p.pattern)));
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
