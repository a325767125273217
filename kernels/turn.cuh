// REVERSE_SUBSEQUENCES: turning a group of rows around in shared memory.
#pragma once

#include "reverse_subsequences.cuh"

// Turns a group around in shared memory, of which `length` bytes are to be: a thread of a team takes every `size`th unit of
// the first half, and the one that it changes places with. Rows are of one unit in a lane.
//
// The row of byte x, which is in its column c, changes places with the one that begins as far before the last: byte
// length - row - x + 2c is in the same column.
template <class Unit, bool LANES>
struct Turn {
    static constexpr int W = sizeof(Unit);
    static constexpr u32 AT_ONCE = 2;
    int row, first, first_column, step, step_columns;

    __device__ __forceinline__ Turn(const Reverse& p, u32 thread, u32 size) {
        row = LANES ? W : static_cast<int>(p.block.divisor);
        first = static_cast<int>(thread) * W;
        step = static_cast<int>(size) * W;
        first_column = LANES ? 0 : first - static_cast<int>(divide(first, p.block)) * row;
        step_columns = LANES ? 0 : step - static_cast<int>(divide(step, p.block)) * row;
    }
    __device__ __forceinline__ void operator()(u8* group, int length) const {
        int column = first_column;
        int x = first;
        while (2 * (x - column) + row < length) {
            Unit *front[AT_ONCE], *back[AT_ONCE];
            Unit from_front[AT_ONCE], from_back[AT_ONCE];
            bool moves[AT_ONCE];
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                moves[k] = 2 * (x - column) + row < length;
                front[k] = reinterpret_cast<Unit*>(group + x);
                back[k] = reinterpret_cast<Unit*>(group + (length - row - x + 2 * column));
                if (moves[k]) from_front[k] = *front[k], from_back[k] = *back[k];
                x += step;
                column += step_columns;
                if (!LANES && column >= row) column -= row;
            }
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                if (moves[k]) *front[k] = from_back[k], *back[k] = from_front[k];
            }
        }
    }
};
