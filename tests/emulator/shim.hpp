// Everything that the kernels use of CUDA, for the host's C++ compiler. Included before each .cu file. Threads of a
// thread block, or of a cluster, are fibres of one system thread (emulator.cpp).
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#define __device__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)

struct Index3 {
    unsigned x, y, z;
};
extern Index3 threadIdx, blockIdx, blockDim;

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// Barriers: of the thread block, and of the thread's warp.
void __syncthreads();
void __syncwarp();
// Threads that are active together do not wait: none of them is behind the others.
inline unsigned __activemask() { return 0; }
inline void __syncwarp(unsigned) {}
inline int __syncthreads_or(int) {
    __syncthreads();
    return 0;  // no kernel uses the result
}

// Clusters: their barrier, and the shared memory of one of their thread blocks.
inline void arrive_at_begin() {}
inline void arrive_with_stores() {}
void wait_for_cluster();
unsigned char* shared_of(unsigned block);
inline unsigned long long shared_address() { return 0; }
inline unsigned char* in_block(unsigned long long, unsigned block, unsigned byte) { return shared_of(block) + byte; }

template <class T>
T min(T a, T b) {
    return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
    return a < b ? b : a;
}

inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((uint64_t{a} * b) >> 32); }
inline int __clz(unsigned v) { return v == 0 ? 32 : __builtin_clz(v); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>(((uint64_t{high} << 32) | low) >> (shift & 31));
}
// The high word of high:low << min(shift, 32).
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    if (shift >= 32) return low;
    return static_cast<unsigned>(((((uint64_t{high} << 32) | low) << shift)) >> 32);
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const uint64_t bytes = (uint64_t{b} << 32) | a;
    unsigned result = 0;
    for (int k = 0; k < 4; ++k) {
        const unsigned choice = (selector >> (4 * k)) & 0xf;
        unsigned byte = static_cast<unsigned>(bytes >> (8 * (choice & 7))) & 0xff;
        if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * k);
    }
    return result;
}

inline float __uint2float_rn(unsigned v) { return static_cast<float>(v); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __uint2double_rn(unsigned v) { return v; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }
inline long long __double_as_longlong(double value) { return __builtin_bit_cast(long long, value); }
inline unsigned __float_as_uint(float f) { return __builtin_bit_cast(unsigned, f); }
inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
