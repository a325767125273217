// REVERSE_SUBSEQUENCES: what its kernels share. The first L elements of every lane are reversed, the rest are
// copied. A lane is the run of elements along the axis that share every other coordinate; L is the lane's length,
// clamped to the axis size in the length's full width. Bits are moved, never interpreted.
//
// The host promises (rules by their ids, plan = src/plan/reverse_subsequences.rs)
//   - at most 2^32 - 1 elements a tensor (tensor.element_count), offsets below 2^32 (tensor.total_size.max);
//   - no two output coordinates share an element (output.overlap);
//   - input and output do not overlap, or are the same elements (binding.overlap, binding.in_place): entries
//     called *_swap_* are launched for the second, with `in` equal to `out`, the others for the first;
//   - lengths do not overlap the output (binding.overlap);
//   - pointers are aligned to the launch's `alignment` (plan).
// The kernels promise
//   - every output element is written once, nothing else is written;
//   - reads stay inside the input tensor; in place they are of elements below a length, of the 4 to 32 bytes that
//     hold one or in which a staged lane begins, and where few lanes lie side by side, of the row that holds one; what
//     else these hold is not used;
//   - in place, what lies at or past a length keeps its bits.
// Bytes moved: copying, the input's and the output's once; in place, those below the lengths, twice.
#pragma once

#include "common.cuh"

struct ReverseDim {
    FastDiv size;
    u32 in_stride;
    u32 out_stride;
    u32 length_stride;
    u32 axis;  // 1 for the axis, whose strides here are 0; else 0
};

// Strides and offsets are in units: elements, or blocks of them (plan). What little work takes comes first, in as few
// lines of the constant cache as can be.
struct Reverse {
    const void* in;
    const void* lengths;
    void* out;
    u64 items;
    u32 axis_size;
    u32 axis_in_stride;
    u32 axis_out_stride;
    u32 wide_lengths;  // 1 for UINT64, 0 for UINT32
    ReverseDim dims[MAX_DIMS];  // innermost first; zeros where there are fewer
    u64 in_bytes;      // TotalTensorSizeInBytes of the input: what may be read
    FastDiv parts;     // slots, tiles or strips that a lane or a row is cut into
    FastDiv block;     // strips: lanes of a contiguous row behind the axis; rows, staged: its bytes
    FastDiv group;     // staged: bytes of a lane, or of a block of them
    u32 together;      // staged: groups that a block of threads stages
    u32 unit;          // strips: bytes of a strip's row; rows: bytes of the unit of the strides
    u32 pitch;         // lanes, blocks turned in place: slots of shared memory of one; clusters: bytes of a lane
    u32 team_log;      // lanes, turned: threads of a lane or a block, as a power of two
    u32 length_stride; // strips: from one lane of a row to the next
    u32 rank;
};

struct Position {
    u32 in, out, length;  // offsets of the lane's first element, and of its length
    u32 t;                // position on the axis
};

__device__ __forceinline__ void step_to(Position& position, u32 coordinate, const ReverseDim& dim) {
    position.in += coordinate * dim.in_stride;
    position.out += coordinate * dim.out_stride;
    position.length += coordinate * dim.length_stride;
    position.t += coordinate * dim.axis;
}

// Where item n is; what is left for the outermost dimension is its coordinate.
__device__ __forceinline__ Position locate(u32 n, const Reverse& p) {
    Position position = {0, 0, 0, 0};
#pragma unroll
    for (u32 d = 0; d < MAX_DIMS; ++d) {
        if (d >= p.rank) break;
        const u32 outer = d + 1 < p.rank ? divide(n, p.dims[d].size) : 0;
        step_to(position, n - outer * p.dims[d].size.divisor, p.dims[d]);
        n = outer;
    }
    return position;
}

// Where item n is, in so many dimensions at most: those that are not there are zeros, which leave n as it is.
template <u32 RANK = 3>
__device__ __forceinline__ Position locate_near(u32 n, const Reverse& p) {
    Position position = {0, 0, 0, 0};
#pragma unroll
    for (u32 d = 0; d + 1 < RANK; ++d) {
        const u32 outer = divide(n, p.dims[d].size);
        step_to(position, n - outer * p.dims[d].size.divisor, p.dims[d]);
        n = outer;
    }
    step_to(position, n, p.dims[RANK - 1]);
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

// The same in two steps, for what has other loads to start before it waits for L: the words of L, and what they are. There
// is no branch between, which would wait. Where there are none it may take longer (tokens in place by 3 to 5 %, lanes i64 in
// place by 9, H200, 2026-11-21).
struct Length {
    u32 low, high;
};

template <bool ANY = true>  // else UINT32
__device__ __forceinline__ Length load_length(u32 offset, const Reverse& p) {
    const bool wide = ANY && p.wide_lengths;
    const u32* const words = at(static_cast<const u32*>(p.lengths), offset) + (wide ? offset : 0);
    return {words[0], wide ? words[1] : 0};
}

__device__ __forceinline__ u32 clamp_length(Length length, const Reverse& p) {
    return length.high ? p.axis_size : min(length.low, p.axis_size);
}

__device__ __forceinline__ u32 source(u32 t, u32 length) { return t < length ? length - 1 - t : t; }

// ---- 16 bytes at a time ---------------------------------------------------------------------------------
// A slot is 16 bytes at an aligned address; a window is 16 bytes anywhere, read as the two slots it lies in.

// What may be read: a slot that reaches out of it is read byte by byte.
struct Bounds {
    const u8* begin;
    const u8* end;
};

__device__ __forceinline__ Bounds input_bounds(const Reverse& p) {
    const u8* begin = static_cast<const u8*>(p.in);
    return {begin, begin + p.in_bytes};
}

__device__ __forceinline__ uint4 load_slot(const u8* slot, const Bounds& bounds) {
    if (slot >= bounds.begin && slot + 16 <= bounds.end) return *reinterpret_cast<const uint4*>(slot);
    u32 words[4] = {0, 0, 0, 0};
#pragma unroll
    for (u32 k = 0; k < 16; ++k) {
        if (slot + k >= bounds.begin && slot + k < bounds.end) words[k / 4] |= static_cast<u32>(slot[k]) << (k % 4 * 8);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// The 16 bytes from byte `shift` of two neighbouring slots.
__device__ __forceinline__ uint4 shift_slots(uint4 low, uint4 high, u32 shift) {
    u32 w0 = low.x, w1 = low.y, w2 = low.z, w3 = low.w, w4 = high.x, w5 = high.y;
    if (shift & 8) w0 = low.z, w1 = low.w, w2 = high.x, w3 = high.y, w4 = high.z, w5 = high.w;
    if (shift & 4) w0 = w1, w1 = w2, w2 = w3, w3 = w4, w4 = w5;
    const u32 bits = (shift & 3) * 8;
    return make_uint4(__funnelshift_r(w0, w1, bits), __funnelshift_r(w1, w2, bits), __funnelshift_r(w2, w3, bits),
                      __funnelshift_r(w3, w4, bits));
}

// The window at `from`, some of whose bytes may lie out of bounds; what they hold then is not used.
__device__ __forceinline__ uint4 load_window_in_part(const u8* from, const Bounds& bounds) {
    const u32 shift = static_cast<u32>(reinterpret_cast<u64>(from) & 15);
    return shift_slots(load_slot(from - shift, bounds), load_slot(from - shift + 16, bounds), shift);
}

// The window at `from`, whose two slots may be read; `shift` is the low four bits of `from`.
__device__ __forceinline__ uint4 load_window_inside(const u8* from, u32 shift) {
    const uint4* slots = reinterpret_cast<const uint4*>(from - shift);
    if (shift == 0) return slots[0];
    return shift_slots(slots[0], slots[1], shift);
}

__device__ __forceinline__ uint4 load_window(const u8* from, const Bounds& bounds) {
    const u32 shift = static_cast<u32>(reinterpret_cast<u64>(from) & 15);
    const u8* slot = from - shift;
    if (slot >= bounds.begin && slot + 32 <= bounds.end) return load_window_inside(from, shift);
    return load_window_in_part(from, bounds);
}

// Shared memory, as 16-byte slots: all of a block's.
extern __shared__ uint4 staged[];

// The 16 bytes of shared memory from any byte on.
__device__ __forceinline__ uint4 staged_window(u32 byte) {
    return shift_slots(staged[byte / 16], staged[byte / 16 + 1], byte & 15);
}

// A team of 2^team_log threads. One of more than a warp is a block of its own, so that none waits for another.
struct Team {
    u32 size, thread;  // thread: in the team
    u32 in_block;      // which of the block's teams
    u32 index;         // in the grid
};

__device__ __forceinline__ Team team_of(const Reverse& p) {
    const u32 size = 1u << p.team_log, in_block = threadIdx.x >> p.team_log;
    return {size, threadIdx.x & (size - 1), in_block, blockIdx.x * (blockDim.x >> p.team_log) + in_block};
}

__device__ __forceinline__ void sync_team(const Team& team) {
    if (team.size <= 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

// Reads `count` slots from `from` on into shared memory: a thread's part of them, of which AT_ONCE are on their way before
// the first is stored. What lies out of bounds is not read, nor is what `wanted` does not want.
template <u32 AT_ONCE, class Wanted>
__device__ __forceinline__ void read_wanted(uint4* slots, const u8* from, u32 count, const Team& of, const Bounds& bounds,
                                            Wanted wanted) {
    const u32 first = of.thread, team = of.size;
    if (from < bounds.begin || from + count * 16 > bounds.end) {  // the tensor's first run or its last
        for (u32 s = first; s < count; s += team) {
            if (wanted(s)) slots[s] = load_slot(from + s * 16, bounds);
        }
        return;
    }
    const uint4* const source = reinterpret_cast<const uint4*>(from);
    for (u32 s = first; s < count; s += AT_ONCE * team) {
        uint4 loaded[AT_ONCE];
        bool is_loaded[AT_ONCE];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            is_loaded[k] = s + k * team < count && wanted(s + k * team);
            if (is_loaded[k]) loaded[k] = source[s + k * team];
        }
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            if (is_loaded[k]) slots[s + k * team] = loaded[k];
        }
    }
}

template <u32 AT_ONCE = 4>
__device__ __forceinline__ void read_run(uint4* slots, const u8* from, u32 count, const Team& of, const Bounds& bounds) {
    read_wanted<AT_ONCE>(slots, from, count, of, bounds, [](u32) { return true; });
}

// 16 bytes with their elements of `Width` bytes in the opposite order.
template <u32 Width>
__device__ __forceinline__ uint4 turn(uint4 v) {
    if (Width == 8) return make_uint4(v.z, v.w, v.x, v.y);
    const u32 order = Width == 4 ? 0x3210 : Width == 2 ? 0x1032 : 0x0123;
    return make_uint4(__byte_perm(v.w, 0, order), __byte_perm(v.z, 0, order), __byte_perm(v.y, 0, order),
                      __byte_perm(v.x, 0, order));
}

// Of 4 words, the first bytes, the second ones, and so on.
__device__ __forceinline__ uint4 transpose_bytes(const u32 (&word)[4]) {
    const u32 low01 = __byte_perm(word[0], word[1], 0x5140), high01 = __byte_perm(word[0], word[1], 0x7362);
    const u32 low23 = __byte_perm(word[2], word[3], 0x5140), high23 = __byte_perm(word[2], word[3], 0x7362);
    return make_uint4(__byte_perm(low01, low23, 0x5410), __byte_perm(low01, low23, 0x7632),
                      __byte_perm(high01, high23, 0x5410), __byte_perm(high01, high23, 0x7632));
}

#define REVERSE_ENTRY(name, body) \
    extern "C" __global__ void __launch_bounds__(THREADS) name(const __grid_constant__ Reverse p) { body(p); }

// The same for a kernel that waits for memory: so few registers that so many blocks fit a multiprocessor.
#define REVERSE_ENTRY_BLOCKS(blocks, name, body) \
    extern "C" __global__ void __launch_bounds__(THREADS, blocks) name(const __grid_constant__ Reverse p) { body(p); }
