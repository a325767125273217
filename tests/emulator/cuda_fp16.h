// The parts of CUDA's header that the kernels use.
#pragma once
struct __half {
    _Float16 value;
};
inline float __half2float(__half h) { return static_cast<float>(h.value); }
inline __half __float2half_rn(float f) { return {static_cast<_Float16>(f)}; }

struct __half2 {
    __half x, y;
};
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
inline __half __ushort_as_half(unsigned short bits) { return __builtin_bit_cast(__half, bits); }
inline unsigned short __half_as_ushort(__half h) { return __builtin_bit_cast(unsigned short, h); }
