// FILL_VALUE_SEQUENCE sets element i of the output to start + i * delta, where i is its logical row-major index.
//
//   out[sum of c[d] * stride[d]] = start + delta * (sum of c[d] * step[d])      c: coordinates; step: strides of the index
//
//   packed:    | e0 e1 e2 e3 e4 ...              |   the whole tensor is one run
//   rows:      | run | gap | run | gap | ...         a run is the innermost dimension (stride 1)
//   dense:     | run           | run         | ...   a run is two or three innermost dimensions that leave no gaps
//   elements:  | e | . | e | . | e | ...             anything: one element per thread
//
// Algorithm
//   A thread computes the index of its first element, and from it the values of up to 16 bytes of consecutive elements,
//   which it stores as one vector. Vectors that contain an end of a run are stored in part.
//
// Mapping of threads to vectors
//   Neighbouring threads write neighbouring vectors. 2^group_size_log2 threads write a run, so that a thread block has
//   several short runs; a long run takes several thread blocks.
//
// Variants: packed, rows, dense and elements, as in the picture, for elements of each size. The host takes the first
// that can run the layout.
//
// The host guarantees (rules by their ids)
//   - at most 2^32 - 1 elements, so that i fits in 32 bits (tensor.element_count);
//   - no two coordinates share an element (output.overlap), so that no two threads write the same byte;
//   - `out` is aligned to its element (a bound buffer is aligned to 16 bytes, but a raw pointer may not be);
//   - the output's dimensions are merged and ordered by stride, outermost first.
// The kernels guarantee
//   - they write every element once, rounded once as described below;
//   - they write nothing else: no gap between strided elements, no byte before the first or after the last;
//   - they read nothing, so threads need no order.
// Bytes moved: the output's, once.
#include <cuda_fp16.h>

#include "vec16.cuh"

using namespace fill;

// ---- Arithmetic ---------------------------------------------------------------------------------------
// Integers wrap modulo 2^width; signed and unsigned types share code. FLOAT32 rounds the index to the nearest float,
// then does one fused multiply-add. FLOAT64 does the same in double. FLOAT16 computes in FLOAT32 on widened scalars and
// rounds once more at the end.
//
// Each arithmetic makes 16 bytes of elements in three ways:
// - `vector`: indices `first`, `first + step`, `first + 2 * step`, ... `first` may be below 0, if the vector begins
//   before the run.
// - `vector_across_rows`: as `vector`, but from element `split` on, indices are `row_jump` further. If `first` has
//   wrapped below 0, the elements in front are outside the run and are not stored.
// - `vector_at`: indices `first` plus the distances in a table.
//
// Integers do not multiply per element. They add a pattern to the first element: the distances of the vector's
// elements, which the host has multiplied out.

template <class T>
struct Wrapping {
    using Element = T;
    static constexpr u32 TABLE = 4;  // words of a table of distances
    T start, delta;
    __device__ Wrapping(u64 s, u64 d) : start(static_cast<T>(s)), delta(static_cast<T>(d)) {}
    // At least 32 bits and unsigned: narrower types would be promoted to signed int, which overflows.
    using Wide = decltype(T{} + 0u);
    __device__ T operator()(i64 i) const { return static_cast<T>(start + static_cast<Wide>(i) * delta); }

    // Adds two words element by element. The highest bit of each element is added separately, so that nothing carries
    // into the next element.
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
    __device__ uint4 vector(i64 first, u32, uint4 pattern) const { return add((*this)(first), pattern); }
    __device__ uint4 vector_across_rows(u32 first, u32 split, u32 row_jump, u32 step, uint4 pattern) const {
        if constexpr (sizeof(T) == 8) {
            const u64 low = (*this)(first), high = (*this)(first + step + (split < 2 ? row_jump : 0));
            return make_uint4(static_cast<u32>(low), static_cast<u32>(low >> 32), static_cast<u32>(high),
                              static_cast<u32>(high >> 32));
        } else {
            const uint4 before = vector(first, step, pattern);
            if (split >= 16 / sizeof(T)) return before;
            return select(bytes_from(static_cast<int>(split * sizeof(T))), before,
                          vector(first + row_jump, step, pattern));
        }
    }
    __device__ uint4 vector_at(i64 first, const uint4* table) const { return add((*this)(first), table[0]); }
};

struct Float32 {
    using Element = float;
    static constexpr u32 TABLE = 4;
    float start, delta;
    __device__ Float32(u64 s, u64 d)
        : start(__uint_as_float(static_cast<u32>(s))), delta(__uint_as_float(static_cast<u32>(d))) {}
    __device__ float operator()(i64 i) const { return __fmaf_rn(__uint2float_rn(static_cast<u32>(i)), delta, start); }
    __device__ u32 bits(u32 i) const { return __float_as_uint((*this)(i)); }
    __device__ uint4 vector(i64 first, u32 step, uint4) const {
        const u32 i = static_cast<u32>(first);
        return make_uint4(bits(i), bits(i + step), bits(i + 2 * step), bits(i + 3 * step));
    }
    __device__ uint4 vector_across_rows(u32 first, u32 split, u32 row_jump, u32 step, uint4) const {
        const u32 behind = first + row_jump;
        return make_uint4(bits(split > 0 ? first : behind), bits((split > 1 ? first : behind) + step),
                          bits((split > 2 ? first : behind) + 2 * step), bits((split > 3 ? first : behind) + 3 * step));
    }
    __device__ uint4 vector_at(i64 first, const uint4* table) const {
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
    __device__ uint4 vector(i64 first, u32 step, uint4) const {
        const u32 i = static_cast<u32>(first);
        return make_uint4(pair(i, i + step), pair(i + 2 * step, i + 3 * step), pair(i + 4 * step, i + 5 * step),
                          pair(i + 6 * step, i + 7 * step));
    }
    __device__ uint4 vector_across_rows(u32 first, u32 split, u32 row_jump, u32 step, uint4) const {
        u32 words[4];
#pragma unroll
        for (u32 k = 0; k < 8; k += 2) {
            words[k / 2] = pair((k < split ? first : first + row_jump) + k * step,
                                (k + 1 < split ? first : first + row_jump) + (k + 1) * step);
        }
        return make_uint4(words[0], words[1], words[2], words[3]);
    }
    __device__ uint4 vector_at(i64 first, const uint4* table) const {
        const u32 i = static_cast<u32>(first);
        const uint4 a = table[0], b = table[1];
        return make_uint4(pair(i + a.x, i + a.y), pair(i + a.z, i + a.w), pair(i + b.x, i + b.y),
                          pair(i + b.z, i + b.w));
    }
};

// Not in any DirectML descriptor: the values of ONNX's Range. Packed outputs only.
struct Float64 {
    using Element = u64;
    double start, delta;
    __device__ Float64(u64 s, u64 d)
        : start(__longlong_as_double(static_cast<i64>(s))), delta(__longlong_as_double(static_cast<i64>(d))) {}
    __device__ u64 operator()(i64 i) const {
        return static_cast<u64>(__double_as_longlong(__fma_rn(__uint2double_rn(static_cast<u32>(i)), delta, start)));
    }
    __device__ uint4 vector(i64 first, u32 step, uint4) const {
        const u64 low = (*this)(first), high = (*this)(first + step);
        return make_uint4(static_cast<u32>(low), static_cast<u32>(low >> 32), static_cast<u32>(high),
                          static_cast<u32>(high >> 32));
    }
};

// ---- 16 bytes of consecutive memory -------------------------------------------------------------------

// The part of a 16-byte vector that is inside a run of consecutive elements. Vectors begin at 16-byte addresses; vector
// 0 contains the run's first element, at any position.
//
//   | . . e0 e1 | e2 e3 e4 e5 | e6 . . . |      skip = 2 in vector 0, end = 1 in the last
template <class A>
struct Cut {
    using T = typename A::Element;
    static constexpr u32 N = 16 / sizeof(T);
    u8* at;     // the vector's address
    i64 first;  // index in the run of the vector's first element; negative if the vector begins before the run
    u32 skip;   // elements of the vector before the run's first
    u32 end;    // elements of the vector before the run's end, at most N; 0 if the run ends before the vector
    bool last;  // the run ends inside the vector or at its end

    __device__ Cut(T* run, u32 count, u32 vector) {
        const u32 lead = static_cast<u32>(reinterpret_cast<u64>(run) & 15) / sizeof(T);
        at = reinterpret_cast<u8*>(run - lead) + static_cast<u64>(vector) * 16;
        first = static_cast<i64>(vector) * N - lead;
        skip = vector == 0 ? lead : 0;
        const i64 left = static_cast<i64>(count) - first;
        end = left < 0 ? 0 : left < N ? static_cast<u32>(left) : N;
        last = left <= N;
    }
    // Call it before `store`: prefetches the vector's line if its 32-byte sector also contains bytes outside the run.
    __device__ void prefetch_edge() const {
        const u32 address = static_cast<u32>(reinterpret_cast<u64>(at));
        const bool ends = last && ((address + end * sizeof(T)) & 31) != 0;
        const bool begins = first <= 0 && ((address + skip * sizeof(T)) & 31) != 0;
        if (ends || begins) prefetch(at);
    }
    __device__ void store(uint4 values) const {
        store_partial<sizeof(T)>(at, values, static_cast<int>(skip * sizeof(T)), static_cast<int>(end * sizeof(T)));
    }
};

// ---- Packed: one run over the whole tensor --------------------------------------------------------------

__device__ __forceinline__ uint4 pattern_of(const u32 (&words)[4]) {
    return make_uint4(words[0], words[1], words[2], words[3]);
}

template <class A>
__device__ __forceinline__ void fill_packed(const FillPacked& p) {
    const Cut<A> cut(static_cast<typename A::Element*>(p.out), p.count, static_cast<u32>(global_thread()));
    if (cut.end == 0) return;
    cut.store(A(p.start, p.delta).vector(cut.first, 1, pattern_of(p.pattern)));
}

// ---- Strided ------------------------------------------------------------------------------------------
// The picture at the top of the file shows rows, dense runs and elements.

struct Position {
    u32 offset;  // elements from the tensor's base
    u32 index;   // logical row-major index
};

// The position of run or element n. The outermost dimension takes what remains of n.
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

extern __shared__ uint4 smem[];

// 2^group_size_log2 threads write a run, so that a thread block has several runs. A longer run takes `parts` thread
// blocks.
template <class A>
__device__ __forceinline__ void fill_dense(const FillStrided& p) {
    using T = typename A::Element;
    constexpr u32 N = Cut<A>::N;
    const bool tabled = N > 2 && p.inner.divisor < N;  // the same for all threads
    if (tabled) {
        for (u32 w = threadIdx.x; w < p.inner.divisor * A::TABLE; w += THREADS) {
            reinterpret_cast<u32*>(smem)[w] = p.tables[w];
        }
        __syncthreads();
    }
    const u32 runs = divide(blockIdx.x, p.parts);
    const u32 part = blockIdx.x - runs * p.parts.divisor;
    const u32 row = runs * (THREADS >> p.group_size_log2) + (threadIdx.x >> p.group_size_log2);
    if (row >= p.items) return;
    const u32 group = 1u << p.group_size_log2;
    const Position position = locate(row, p);
    T* const run = at(static_cast<T*>(p.out), position.offset);
    const A value(p.start, p.delta);
    // What the index gains at the end of a row, and in addition at the end of the dimension after that.
    const u32 next_row = p.middle_step - p.inner.divisor * p.row_step;
    const u32 next_plane = p.outer_step - p.middle.divisor * p.middle_step;
    // The distance from a thread's vector to its next one, in coordinates of the run.
    const u32 advance1 = divide(group * N, p.inner);
    const u32 advance0 = group * N - advance1 * p.inner.divisor;

    // Vector 0 contains the run's first element. Vectors from `whole` to `whole_end` are entirely inside the run.
    const u32 lead = static_cast<u32>(reinterpret_cast<u64>(run) & 15) / sizeof(T);
    const u64 span = static_cast<u64>(p.row_size) + lead;
    const u32 vectors = static_cast<u32>((span + N - 1) / N), whole = lead != 0, whole_end = static_cast<u32>(span / N);
    const u32 first = part * (group * DENSE_VECTORS) + (threadIdx.x & (group - 1));
    u32 c0 = 0, c1 = 0, o = 0;
    bool known = false;
    for (u32 vector = first; vector < vectors && vector - first < DENSE_VECTORS * group; vector += group) {
        const u32 skip = vector == 0 ? lead : 0;
        // The coordinates of the vector's first element that is in the run.
        if (known) {
            c0 += advance0;
            c1 += advance1;
            if (c0 >= p.inner.divisor) c0 -= p.inner.divisor, ++c1;
        } else {
            const u32 j = vector * N - lead + skip;
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
            // The vector crosses into the next row at most once: elements before that point, and elements after it.
            const u32 split = p.inner.divisor - c0 + skip;
            const u32 row_jump = next_row + (c1 + 1 == p.middle.divisor ? next_plane : 0);
            values =
                value.vector_across_rows(i - skip * p.row_step, split, row_jump, p.row_step, pattern_of(p.pattern));
        } else if (skip == 0 && c1 + (c0 + N - 1) / 2 < p.middle.divisor) {
            // The vector stays within the middle dimension: it crosses at most (c0 + N - 1) / 2 rows.
            values = value.vector_at(i - c0 * p.row_step, smem + c0 * (A::TABLE / 4));
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
                    at += next_row;
                    if (++at1 == p.middle.divisor) {
                        at1 = 0;
                        at += next_plane;
                    }
                }
            }
            values = each.vector;
        }
        if (vector >= whole && vector < whole_end) {
            store_vec16(reinterpret_cast<u8*>(run - lead) + static_cast<u64>(vector) * 16, values);
        } else {
            Cut<A>(run, p.row_size, vector).store(values);
        }
    }
}

template <class A>
__device__ __forceinline__ void fill_rows(const FillStrided& p) {
    const u32 runs = divide(blockIdx.x, p.parts);
    const u32 part = blockIdx.x - runs * p.parts.divisor;
    const u32 row = runs * (THREADS >> p.group_size_log2) + (threadIdx.x >> p.group_size_log2);
    if (row >= p.items) return;
    const Position position = locate(row, p);
    typename A::Element* const run = at(static_cast<typename A::Element*>(p.out), position.offset);
    const u32 vector = part * THREADS + (threadIdx.x & ((1u << p.group_size_log2) - 1));
    if (p.whole) {
        const u32 first = vector * Cut<A>::N;
        if (first >= p.row_size) return;
        const u32 i = position.index + first * p.row_step;
        store_vec16(reinterpret_cast<u8*>(at(run, first)),
                    A(p.start, p.delta).vector(i, p.row_step, pattern_of(p.pattern)));
        return;
    }
    const Cut<A> cut(run, p.row_size, vector);
    if (cut.end == 0) return;
    cut.prefetch_edge();
    const i64 first = position.index + cut.first * p.row_step;
    cut.store(A(p.start, p.delta).vector(first, p.row_step, pattern_of(p.pattern)));
}

// Writes the element at a position.
template <class A>
__device__ __forceinline__ void store_element(const FillStrided& p, const Position& position) {
    *at(static_cast<typename A::Element*>(p.out), position.offset) = A(p.start, p.delta)(position.index);
}

template <class A>
__device__ __forceinline__ void fill_elements(const FillStrided& p) {
    const u64 item = global_thread();
    if (item < p.items) store_element<A>(p, locate(static_cast<u32>(item), p));
}

// ---- Entry points ---------------------------------------------------------------------------------------

// For integers and floats of one width: all threads take the same branch.
#define FILL_ENTRY(Params, name, body, Integer, Float)           \
    __device__ __forceinline__ void name##_of(const Params& p) { \
        if (p.arithmetic < FLOAT32)                              \
            body<Wrapping<Integer>>(p);                          \
        else                                                     \
            body<Float>(p);                                      \
    }                                                            \
    ENTRY((THREADS), Params, name, name##_of)

#define FILL_ENTRIES(Params, name, body)                   \
    ENTRY((THREADS), Params, name##_1, body<Wrapping<u8>>) \
    FILL_ENTRY(Params, name##_2, body, u16, Float16)       \
    FILL_ENTRY(Params, name##_4, body, u32, Float32)

// For integers of all widths and floats: all threads take the same branch.
__device__ __forceinline__ void fill_elements_of(const FillStrided& p) {
    switch (p.arithmetic) {
        case INT8:
            return fill_elements<Wrapping<u8>>(p);
        case INT16:
            return fill_elements<Wrapping<u16>>(p);
        case INT32:
            return fill_elements<Wrapping<u32>>(p);
        case INT64:
            return fill_elements<Wrapping<u64>>(p);
        case FLOAT32:
            return fill_elements<Float32>(p);
        default:
            return fill_elements<Float16>(p);
    }
}

FILL_ENTRIES(FillPacked, fill_packed, fill_packed)
FILL_ENTRY(FillPacked, fill_packed_8, fill_packed, u64, Float64)
FILL_ENTRIES(FillStrided, fill_dense, fill_dense)
ENTRY((THREADS), FillStrided, fill_dense_8, fill_dense<Wrapping<u64>>)
FILL_ENTRIES(FillStrided, fill_rows, fill_rows)
ENTRY((THREADS), FillStrided, fill_rows_8, fill_rows<Wrapping<u64>>)
ENTRY((THREADS), FillStrided, fill_elements, fill_elements_of)
