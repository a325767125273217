// What every kernel here shares: fixed-width names, division by a number the host knows, 16-byte slots.
//
// The element offsets of a tensor fit 32 bits, because validation caps
// floor(TotalTensorSizeInBytes / element size) at 2^32 - 1 (rule tensor.total_size.max). Byte offsets do
// not: every pointer is advanced in 64 bits, by `at`.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

static constexpr u32 THREADS = 256;  // threads of a block, but of teams and clusters (plan::THREADS)
static constexpr u32 MAX_DIMS = 8;   // DML_TENSOR_DIMENSION_COUNT_MAX1

// n / divisor for any 32-bit n, without a division (Granlund & Montgomery, 1994, figure 4.1).
// Filled by plan::FastDiv.
struct FastDiv {
    u32 divisor;
    u32 multiplier;
    u32 shift1;
    u32 shift2;
};

__device__ __forceinline__ u32 divide(u32 n, const FastDiv& d) {
    const u32 t = __umulhi(d.multiplier, n);
    return (t + ((n - t) >> d.shift1)) >> d.shift2;
}

// The element `offset` of a tensor at `base`; the product is taken in 64 bits.
template <class T>
__device__ __forceinline__ T* at(T* base, u32 offset) {
    return base + static_cast<u64>(offset);
}

// This thread's number in the grid, in 64 bits: a grid of 2^32 - 1 items rounds up past 2^32.
__device__ __forceinline__ u64 global_thread() {
    return static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
}

// One 16-byte store. Spelled out, because the compiler splits a vector that it knows to be made of wider elements.
__device__ __forceinline__ void store_slot(u8* slot, uint4 v) {
#ifdef __CUDACC__
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(slot)), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
#else
    *reinterpret_cast<uint4*>(slot) = v;
#endif
}

// Fetches the 128-byte line of an address into the L2 cache, if there is memory. Sectors of 32 bytes that are then
// written in part are complete there, and need not be read when they are written back.
__device__ __forceinline__ void prefetch(const void* address) {
#ifdef __CUDACC__
    asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(address)) : "memory");
#endif
}

// Stores the bytes [begin, end) of a slot, multiples of `Width` both: whole words as such.
template <u32 Width>
__device__ __forceinline__ void store_part(u8* slot, uint4 v, int begin, int end) {
    if (begin <= 0 && end >= 16) {
        store_slot(slot, v);
        return;
    }
    const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if (begin <= 4 * w && end >= 4 * w + 4) {
            reinterpret_cast<u32*>(slot)[w] = words[w];
        } else if (Width < 4 && begin < 4 * w + 4 && end > 4 * w) {
#pragma unroll
            for (int b = 0; b < 4; b += Width) {
                if (begin > 4 * w + b || end <= 4 * w + b) continue;
                const u32 bits = words[w] >> (8 * b);
                if (Width == 1) slot[4 * w + b] = static_cast<u8>(bits);
                if (Width == 2) reinterpret_cast<u16*>(slot)[2 * w + b / 2] = static_cast<u16>(bits);
            }
        }
    }
}

__device__ __forceinline__ int clamp(i64 value) {
    return static_cast<int>(value < 0 ? 0 : value > 16 ? 16 : value);
}

// A word that has ones from bit `bit` on, any number, and zeros below.
__device__ __forceinline__ u32 ones_from(int bit) { return __funnelshift_lc(0, ~0u, static_cast<u32>(max(bit, 0))); }

// A slot whose bytes from byte `n` on are ones; n may be any number.
__device__ __forceinline__ uint4 bytes_from(int n) {
    return make_uint4(ones_from(8 * n), ones_from(8 * n - 32), ones_from(8 * n - 64), ones_from(8 * n - 96));
}

// Where the mask has ones `b`, else `a`.
__device__ __forceinline__ uint4 select(uint4 mask, uint4 a, uint4 b) {
    return make_uint4((a.x & ~mask.x) | (b.x & mask.x), (a.y & ~mask.y) | (b.y & mask.y),
                      (a.z & ~mask.z) | (b.z & mask.z), (a.w & ~mask.w) | (b.w & mask.w));
}
