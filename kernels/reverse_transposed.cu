// REVERSE_SUBSEQUENCES if the input is contiguous along one dimension and the output along another: it also transposes.
// Copying only. The contract is in reverse.cuh.
//
//   out[i][o] = in[source(o, L)][i] if `along_out` is the axis, in[o][source(i, L)] if `along_in` is, else in[o][i]
//
//   input: rows run along `along_in`  ->  tile in shared memory  ->  output: rows run along `along_out`
//
// A thread block takes a tile of the two dimensions. It reads rows of the input and writes rows of the output. Either
// dimension may be the axis, or neither. Elements are reversed while they are read. With SCATTER they are reversed
// while they are written: if the output's rows run along the axis and each has its own length, reading reversed
// elements would break up the input's rows.
#include "staging.cuh"

struct Transposed {
    Reverse r;                  // dims: all but the tile's two
    ReverseDim along_in;        // contiguous in the input
    ReverseDim along_out;       // contiguous in the output
    FastDiv tiles;              // tiles for one position in the other dimensions
    FastDiv tiles_along_out;
};
static_assert(sizeof(Transposed) == 416, "the host's Transposed");

static constexpr u32 TILE = 64;  // elements along each dimension (same in tuning.rs, transposed)
static constexpr u32 ROWS_AT_ONCE = THREADS / TILE;
static constexpr u32 LOADS_IN_FLIGHT = 4;

// Writes elements of a column of the tile, each into its own row of the output: elements `first` to `count`,
// ROWS_AT_ONCE apart.
template <class Element>
__device__ __forceinline__ void write_column(const Transposed& p, const Position& at_column, const Element* column,
                                             u32 first, u32 count) {
#pragma unroll 4
    for (u32 row = first; row < count; row += ROWS_AT_ONCE) {
        Position to = at_column;
        step_to(to, row, p.along_in);
        *at(static_cast<Element*>(p.r.out), to.out + to.t * p.r.axis_out_stride) = column[row];
    }
}

// The same, with each element at the position that its row's length gives.
template <class Element>
__device__ __forceinline__ void scatter_column(const Transposed& p, const Position& at_column, const Element* column,
                                               u32 first, u32 count) {
#pragma unroll 1
    for (u32 row = first; row < count; row += LOADS_IN_FLIGHT * ROWS_AT_ONCE) {
        Length length[LOADS_IN_FLIGHT];
#pragma unroll
        for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
            const u32 n = min(row + k * ROWS_AT_ONCE, count - 1);
            length[k] = load_length(at_column.length + n * p.along_in.length_stride, p.r);
        }
#pragma unroll
        for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
            const u32 n = row + k * ROWS_AT_ONCE;
            const u32 t = source(at_column.t, clamp_length(length[k], p.r));
            if (n >= count) continue;
            const u32 to = at_column.out + n * p.along_in.out_stride + t * p.r.axis_out_stride;
            *at(static_cast<Element*>(p.r.out), to) = column[n];
        }
    }
}

template <class Element, bool SCATTER>
__device__ __forceinline__ void copy_transposed(const Transposed& p) {
    constexpr u32 W = sizeof(Element);
    // A tile's row is padded by a word, or by an element of 8 bytes, so that a column spreads over all banks.
    constexpr u32 PITCH = TILE + (W < 4 ? 4 / W : 1);
    Element* const tile = reinterpret_cast<Element*>(smem);
    const u32 outer = divide(blockIdx.x, p.tiles);
    const u32 n = blockIdx.x - outer * p.tiles.divisor;
    const u32 down = divide(n, p.tiles_along_out);
    const u32 i = down * TILE, o = (n - down * p.tiles_along_out.divisor) * TILE;
    Position at_tile = locate(outer, p.r);
    step_to(at_tile, i, p.along_in);
    step_to(at_tile, o, p.along_out);
    const u32 in_size = min(TILE, p.along_in.size.divisor - i), out_size = min(TILE, p.along_out.size.divisor - o);
    const u32 x = threadIdx.x % TILE, y = threadIdx.x / TILE;

    if (x < in_size) {
        Position at_row = at_tile;
        step_to(at_row, x, p.along_in);
#pragma unroll 1
        for (u32 row = y; row < out_size; row += LOADS_IN_FLIGHT * ROWS_AT_ONCE) {
            Element loaded[LOADS_IN_FLIGHT];
#pragma unroll
            for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
                const u32 m = row + k * ROWS_AT_ONCE;
                if (m >= out_size) continue;
                Position from = at_row;
                step_to(from, m, p.along_out);
                const u32 t = SCATTER ? from.t : source(from.t, lane_length(from.length, p.r));
                loaded[k] = *at(static_cast<const Element*>(p.r.in), from.in + t * p.r.axis_in_stride);
            }
#pragma unroll
            for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
                const u32 m = row + k * ROWS_AT_ONCE;
                if (m < out_size) tile[m * PITCH + x] = loaded[k];
            }
        }
    }
    __syncthreads();
    if (x >= out_size) return;
    step_to(at_tile, x, p.along_out);
    const Element* const column = tile + x * PITCH;
    if constexpr (SCATTER) {
        scatter_column(p, at_tile, column, y, in_size);
    } else {
        write_column(p, at_tile, column, y, in_size);
    }
}

REVERSE_ENTRY(Transposed, reverse_transposed_1, (copy_transposed<u8, false>))
REVERSE_ENTRY(Transposed, reverse_transposed_2, (copy_transposed<u16, false>))
REVERSE_ENTRY(Transposed, reverse_transposed_4, (copy_transposed<u32, false>))
REVERSE_ENTRY(Transposed, reverse_transposed_8, (copy_transposed<u64, false>))
REVERSE_ENTRY(Transposed, reverse_transposed_scatter_1, (copy_transposed<u8, true>))
REVERSE_ENTRY(Transposed, reverse_transposed_scatter_2, (copy_transposed<u16, true>))
REVERSE_ENTRY(Transposed, reverse_transposed_scatter_4, (copy_transposed<u32, true>))
REVERSE_ENTRY(Transposed, reverse_transposed_scatter_8, (copy_transposed<u64, true>))
