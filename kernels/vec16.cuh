// 16-byte vectors: aligned and unaligned loads, partial stores, byte masks, and reversal of their elements.
#pragma once

#include "common.cuh"

// Bytes from the aligned vector that contains an address to that address.
__device__ __forceinline__ u32 lead_of(const void* address) {
    return static_cast<u32>(reinterpret_cast<u64>(address) & 15);
}

// ---- Stores -------------------------------------------------------------------------------------------------

// One 16-byte store. Inline assembly, because the compiler splits a vector that it knows to be made of wider elements.
__device__ __forceinline__ void store_vec16(u8* to, uint4 v) {
#ifdef __CUDACC__
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(to)), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
#else
    *reinterpret_cast<uint4*>(to) = v;
#endif
}

// Stores the bytes [begin, end) of a vector, which are multiples of `Width`. Whole words are stored as words.
template <u32 Width>
__device__ __forceinline__ void store_partial(u8* to, uint4 v, int begin, int end) {
    if (begin <= 0 && end >= 16) {
        store_vec16(to, v);
        return;
    }
    const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if (begin <= 4 * w && end >= 4 * w + 4) {
            reinterpret_cast<u32*>(to)[w] = words[w];
        } else if (Width < 4 && begin < 4 * w + 4 && end > 4 * w) {
#pragma unroll
            for (int b = 0; b < 4; b += Width) {
                if (begin > 4 * w + b || end <= 4 * w + b) continue;
                const u32 bits = words[w] >> (8 * b);
                if (Width == 1) to[4 * w + b] = static_cast<u8>(bits);
                if (Width == 2) reinterpret_cast<u16*>(to)[2 * w + b / 2] = static_cast<u16>(bits);
            }
        }
    }
}

// A byte distance, clamped to 0..16.
__device__ __forceinline__ int clamp_to_vec16(i64 bytes) {
    return static_cast<int>(bytes < 0 ? 0 : bytes > 16 ? 16 : bytes);
}

// ---- Masks --------------------------------------------------------------------------------------------------

// A word with ones from bit `bit` on; `bit` may be any number.
__device__ __forceinline__ u32 ones_from(int bit) { return __funnelshift_lc(0, ~0u, static_cast<u32>(max(bit, 0))); }

// A vector with ones in all bytes from byte `n` on; `n` may be any number.
__device__ __forceinline__ uint4 bytes_from(int n) {
    return make_uint4(ones_from(8 * n), ones_from(8 * n - 32), ones_from(8 * n - 64), ones_from(8 * n - 96));
}

// Takes bits of `b` where the mask has ones, else bits of `a`.
__device__ __forceinline__ uint4 select(uint4 mask, uint4 a, uint4 b) {
    return make_uint4((a.x & ~mask.x) | (b.x & mask.x), (a.y & ~mask.y) | (b.y & mask.y),
                      (a.z & ~mask.z) | (b.z & mask.z), (a.w & ~mask.w) | (b.w & mask.w));
}

// ---- Loads --------------------------------------------------------------------------------------------------

// The memory that may be read. A vector that reaches outside is read byte by byte.
struct Bounds {
    const u8* begin;
    const u8* end;
};

// The vector at an aligned address. Bytes out of bounds are 0.
__device__ __forceinline__ uint4 load_vec16(const u8* from, const Bounds& bounds) {
    if (from >= bounds.begin && from + 16 <= bounds.end) return *reinterpret_cast<const uint4*>(from);
    u32 words[4] = {0, 0, 0, 0};
#pragma unroll
    for (u32 k = 0; k < 16; ++k) {
        if (from + k >= bounds.begin && from + k < bounds.end) words[k / 4] |= static_cast<u32>(from[k]) << (k % 4 * 8);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// 16 bytes of two neighbouring vectors, from byte `shift` on.
__device__ __forceinline__ uint4 shift_pair(uint4 low, uint4 high, u32 shift) {
    u32 w0 = low.x, w1 = low.y, w2 = low.z, w3 = low.w, w4 = high.x, w5 = high.y;
    if (shift & 8) w0 = low.z, w1 = low.w, w2 = high.x, w3 = high.y, w4 = high.z, w5 = high.w;
    if (shift & 4) w0 = w1, w1 = w2, w2 = w3, w3 = w4, w4 = w5;
    const u32 bits = (shift & 3) * 8;
    return make_uint4(__funnelshift_r(w0, w1, bits), __funnelshift_r(w1, w2, bits), __funnelshift_r(w2, w3, bits),
                      __funnelshift_r(w3, w4, bits));
}

// 16 bytes at any address, read as the two aligned vectors that contain them. Some bytes may be out of bounds.
__device__ __forceinline__ uint4 load_unaligned_at_edge(const u8* from, const Bounds& bounds) {
    const u32 shift = lead_of(from);
    return shift_pair(load_vec16(from - shift, bounds), load_vec16(from - shift + 16, bounds), shift);
}

// The same if both vectors are in bounds. `shift` is the low four bits of `from`.
__device__ __forceinline__ uint4 load_unaligned_inside(const u8* from, u32 shift) {
    const uint4* vectors = reinterpret_cast<const uint4*>(from - shift);
    if (shift == 0) return vectors[0];
    return shift_pair(vectors[0], vectors[1], shift);
}

__device__ __forceinline__ uint4 load_unaligned(const u8* from, const Bounds& bounds) {
    const u32 shift = lead_of(from);
    const u8* first = from - shift;
    if (first >= bounds.begin && first + 32 <= bounds.end) return load_unaligned_inside(from, shift);
    return load_unaligned_at_edge(from, bounds);
}

// ---- Elements -----------------------------------------------------------------------------------------------

// The vector's elements of `Width` bytes in reverse order.
template <u32 Width>
__device__ __forceinline__ uint4 reverse_elements(uint4 v) {
    if (Width == 8) return make_uint4(v.z, v.w, v.x, v.y);
    const u32 order = Width == 4 ? 0x3210 : Width == 2 ? 0x1032 : 0x0123;
    return make_uint4(__byte_perm(v.w, 0, order), __byte_perm(v.z, 0, order), __byte_perm(v.y, 0, order),
                      __byte_perm(v.x, 0, order));
}

// Transposes 4x4 bytes: the first bytes of the 4 words, then the second bytes, and so on.
__device__ __forceinline__ uint4 transpose_bytes(const u32 (&word)[4]) {
    const u32 low01 = __byte_perm(word[0], word[1], 0x5140), high01 = __byte_perm(word[0], word[1], 0x7362);
    const u32 low23 = __byte_perm(word[2], word[3], 0x5140), high23 = __byte_perm(word[2], word[3], 0x7362);
    return make_uint4(__byte_perm(low01, low23, 0x5410), __byte_perm(low01, low23, 0x7632),
                      __byte_perm(high01, high23, 0x5410), __byte_perm(high01, high23, 0x7632));
}
