// REVERSE_SUBSEQUENCES: how kernels stage runs of bytes in shared memory and reverse them there.
#pragma once

#include "reverse.cuh"

// All dynamic shared memory of a thread block, as 16-byte vectors.
extern __shared__ uint4 smem[];

// 16 bytes of shared memory that begin at any byte.
__device__ __forceinline__ uint4 smem_unaligned(u32 byte) {
    return shift_pair(smem[byte / 16], smem[byte / 16 + 1], byte & 15);
}

// Rows of a column of 16 bytes at any alignment.
struct RowRange {
    u32 begin, end;

    __device__ __forceinline__ bool has(u32 row) const { return row - begin < end - begin; }
};

// Those whose vectors are inside the tensor. Both vectors that contain the 16 bytes are loaded, and the few rows at the
// tensor's ends may reach outside.
__device__ __forceinline__ RowRange rows_inside(const u8* in, u64 stride, u32 rows, const Bounds& bounds) {
    const u32 few = min(rows, stride < 32 ? 32 / max(static_cast<u32>(stride), 1u) + 1 : 1);
    const u32 begin = in - 15 < bounds.begin ? few : 0;
    const u32 end = in + (rows - 1) * stride + 32 > bounds.end ? rows - few : rows;
    return {begin, max(begin, end)};
}

// A cooperative group of 2^size_log2 threads. A group larger than a warp is a whole thread block, so that groups never
// wait for each other.
struct ThreadGroup {
    u32 size, thread;  // thread: this thread's rank in the group
    u32 in_block;      // which of the thread block's groups
    u32 index;         // in the grid
};

__device__ __forceinline__ ThreadGroup this_group(u32 size_log2) {
    const u32 size = 1u << size_log2, in_block = threadIdx.x >> size_log2;
    return {size, threadIdx.x & (size - 1), in_block, blockIdx.x * (blockDim.x >> size_log2) + in_block};
}

__device__ __forceinline__ ThreadGroup whole_block() { return {THREADS, threadIdx.x, 0, 0}; }

__device__ __forceinline__ void sync(const ThreadGroup& group) {
    if (group.size <= 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

// Stages those of the `count` vectors at the aligned address `from` that `wanted` accepts. A thread issues
// STAGING_LOADS loads before it stores the first. Bytes out of bounds are not read.
static constexpr u32 STAGING_LOADS = 4;

template <class Wanted>
__device__ __forceinline__ void stage_if(uint4* to, const u8* from, u32 count, const ThreadGroup& group,
                                         const Bounds& bounds, Wanted wanted) {
    const u32 first = group.thread, step = group.size;
    if (from < bounds.begin || from + count * 16 > bounds.end) {  // the first or the last run of the tensor
        for (u32 v = first; v < count; v += step) {
            if (wanted(v)) to[v] = load_vec16(from + v * 16, bounds);
        }
        return;
    }
    const uint4* const source = reinterpret_cast<const uint4*>(from);
    for (u32 v = first; v < count; v += STAGING_LOADS * step) {
        uint4 loaded[STAGING_LOADS];
        bool is_loaded[STAGING_LOADS];
#pragma unroll
        for (u32 k = 0; k < STAGING_LOADS; ++k) {
            is_loaded[k] = v + k * step < count && wanted(v + k * step);
            if (is_loaded[k]) loaded[k] = source[v + k * step];
        }
        issue_loads();
#pragma unroll
        for (u32 k = 0; k < STAGING_LOADS; ++k) {
            if (is_loaded[k]) to[v + k * step] = loaded[k];
        }
    }
}

__device__ __forceinline__ void stage_run(uint4* to, const u8* from, u32 count, const ThreadGroup& group,
                                          const Bounds& bounds) {
    stage_if(to, from, count, group, bounds, [](u32) { return true; });
}

// Reverses a run of `length` bytes in shared memory: the elements of a lane, or the rows of a block. A thread takes
// every size-th unit of the first half and swaps it with its mirror unit.
//
//   | row 0 | row 1 | ... | row R-1 |       byte x, in column c of its row, swaps with byte x'
//     ^ x - c          x': same column      x' = length - row_bytes - x + 2c
template <class Unit, bool LANES>
struct ReverseInShared {
    static constexpr int W = sizeof(Unit);
    static constexpr u32 PAIRS_IN_FLIGHT = 2;
    int row, first, first_column, step, step_columns;

    __device__ __forceinline__ ReverseInShared(const FastDiv& row_bytes, u32 thread, u32 size) {
        row = LANES ? W : static_cast<int>(row_bytes.divisor);
        first = static_cast<int>(thread) * W;
        step = static_cast<int>(size) * W;
        first_column = LANES ? 0 : first - static_cast<int>(divide(first, row_bytes)) * row;
        step_columns = LANES ? 0 : step - static_cast<int>(divide(step, row_bytes)) * row;
    }
    __device__ __forceinline__ void operator()(u8* run, int length) const {
        int column = first_column;
        int x = first;
        while (2 * (x - column) + row < length) {
            Unit *front[PAIRS_IN_FLIGHT], *back[PAIRS_IN_FLIGHT];
            Unit from_front[PAIRS_IN_FLIGHT], from_back[PAIRS_IN_FLIGHT];
            bool moves[PAIRS_IN_FLIGHT];
#pragma unroll
            for (u32 k = 0; k < PAIRS_IN_FLIGHT; ++k) {
                moves[k] = 2 * (x - column) + row < length;
                front[k] = reinterpret_cast<Unit*>(run + x);
                back[k] = reinterpret_cast<Unit*>(run + (length - row - x + 2 * column));
                if (moves[k]) from_front[k] = *front[k], from_back[k] = *back[k];
                x += step;
                column += step_columns;
                if (!LANES && column >= row) column -= row;
            }
#pragma unroll
            for (u32 k = 0; k < PAIRS_IN_FLIGHT; ++k) {
                if (moves[k]) *front[k] = from_back[k], *back[k] = from_front[k];
            }
        }
    }
};
