// Shared by every kernel: entry points, positions in memory, and division by a number that the host knows.
//
// Element offsets of a tensor fit in 32 bits, because validation limits a tensor to 2^32 - 1 elements (rule
// tensor.total_size.max). Byte offsets do not fit: `at` advances pointers in 64 bits.
#pragma once

#include "parameters.cuh"

// An entry point, which hands the parameters to a body. `bounds` are its threads per thread block and, where registers
// are to be limited, the thread blocks that fit on an SM.
#define ENTRY(bounds, Params, name, ...) \
    extern "C" __global__ void __launch_bounds__ bounds name(const __grid_constant__ Params p) { __VA_ARGS__(p); }

// n / d.divisor, for any n.
__device__ __forceinline__ u32 divide(u32 n, const FastDiv& d) {
    const u32 t = __umulhi(d.multiplier, n);
    return (t + ((n - t) >> d.shift1)) >> d.shift2;
}

// Element `offset` of a tensor at `base`. The byte offset is a 64-bit product.
template <class T>
__device__ __forceinline__ T* at(T* base, u32 offset) {
    return base + static_cast<u64>(offset);
}

// This thread's index in the grid. 64 bits, because a grid of 2^32 - 1 items rounds up past 2^32.
__device__ __forceinline__ u64 global_thread() { return static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x; }

// log2 of a power of two.
__device__ __forceinline__ u32 log2_of(u32 power) { return 31 - __clz(power); }

// The compiler issues all loads above before those below, and before it waits for the first. Where it knows every size,
// it would otherwise store what each load brings before it issues the next, or load in another order. No thread waits
// for another.
__device__ __forceinline__ void issue_loads() { __syncwarp(__activemask()); }

// Fetches the 128-byte line of an address into the L2 cache. A later partial store to one of its 32-byte sectors then
// finds the rest of the sector in the cache, and the write-back need not read it.
__device__ __forceinline__ void prefetch(const void* address) {
#ifdef __CUDACC__
    asm volatile("prefetch.global.L2 [%0];" : : "l"(__cvta_generic_to_global(address)) : "memory");
#endif
}
