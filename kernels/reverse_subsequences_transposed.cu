// REVERSE_SUBSEQUENCES where the input is contiguous along one dimension and the output along another: a transposition on
// the way, copying. The contract is in the header.
//
// A block of threads takes a tile of the two dimensions: it reads rows of the input, which run along the first, and writes rows
// of the output, which run along the second. Between them they lie in shared memory. Either may be the axis. Elements are
// turned around as they are read; or SEND, as they are written, for what comes from source(t, L) goes there too: where the
// output's rows run along the axis, and each has a length of its own, so that rows of the input would be torn.
#include "reverse_subsequences.cuh"

// Elements of a tile along each of its two dimensions (plan::TILE).
static constexpr u32 TILE = 64;
static constexpr u32 ROWS_AT_ONCE = THREADS / TILE;
// Elements that a thread reads before it stores the first.
static constexpr u32 AT_ONCE = 4;

// Writes elements of a column of the tile, each into a row of the output: of `count` those from `first` on.
template <class Element>
__device__ __forceinline__ void write_column(const Reverse& p, const Position& at_column, const Element* column, u32 first,
                                             u32 count) {
#pragma unroll 4
    for (u32 row = first; row < count; row += ROWS_AT_ONCE) {
        Position to = at_column;
        step_to(to, row, p.dims[p.rank]);
        *at(static_cast<Element*>(p.out), to.out + to.t * p.axis_out_stride) = column[row];
    }
}

// The same with each element where the row's length says.
template <class Element>
__device__ __forceinline__ void send_column(const Reverse& p, const Position& at_column, const Element* column, u32 first,
                                            u32 count) {
    const ReverseDim& down = p.dims[p.rank];
#pragma unroll 1
    for (u32 row = first; row < count; row += AT_ONCE * ROWS_AT_ONCE) {
        Length length[AT_ONCE];
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 r = min(row + k * ROWS_AT_ONCE, count - 1);
            length[k] = load_length(at_column.length + r * down.length_stride, p);
        }
#pragma unroll
        for (u32 k = 0; k < AT_ONCE; ++k) {
            const u32 r = row + k * ROWS_AT_ONCE;
            const u32 t = source(at_column.t, clamp_length(length[k], p));
            if (r >= count) continue;
            *at(static_cast<Element*>(p.out), at_column.out + r * down.out_stride + t * p.axis_out_stride) = column[r];
        }
    }
}

// `dims` are the other dimensions, and behind them the two of the tile: the input's contiguous one and the output's.
// `parts` counts the tiles of one place in the others, `group` those side by side along the output's.
template <class Element, bool SEND>
__device__ __forceinline__ void copy_transposed(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    // Rows are a word more apart than they are long, or an element of 8 bytes, so that a column is in all banks.
    constexpr u32 PITCH = TILE + (W < 4 ? 4 / W : 1);
    Element* const tile = reinterpret_cast<Element*>(staged);
    const ReverseDim &along_in = p.dims[p.rank], &along_out = p.dims[p.rank + 1];
    const u32 outer = divide(blockIdx.x, p.parts);
    const u32 part = blockIdx.x - outer * p.parts.divisor;
    const u32 down = divide(part, p.group);
    const u32 i = down * TILE, o = (part - down * p.group.divisor) * TILE;
    Position at_tile = locate(outer, p);
    step_to(at_tile, i, along_in);
    step_to(at_tile, o, along_out);
    const u32 in_size = min(TILE, along_in.size.divisor - i), out_size = min(TILE, along_out.size.divisor - o);
    const u32 x = threadIdx.x % TILE, y = threadIdx.x / TILE;

    if (x < in_size) {
        Position at_row = at_tile;
        step_to(at_row, x, along_in);
#pragma unroll 1
        for (u32 row = y; row < out_size; row += AT_ONCE * ROWS_AT_ONCE) {
            Element loaded[AT_ONCE];
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                const u32 r = row + k * ROWS_AT_ONCE;
                if (r >= out_size) continue;
                Position from = at_row;
                step_to(from, r, along_out);
                const u32 t = SEND ? from.t : source(from.t, lane_length(from.length, p));
                loaded[k] = *at(static_cast<const Element*>(p.in), from.in + t * p.axis_in_stride);
            }
#pragma unroll
            for (u32 k = 0; k < AT_ONCE; ++k) {
                const u32 r = row + k * ROWS_AT_ONCE;
                if (r < out_size) tile[r * PITCH + x] = loaded[k];
            }
        }
    }
    __syncthreads();
    if (x >= out_size) return;
    step_to(at_tile, x, along_out);
    const Element* const column = tile + x * PITCH;
    if constexpr (SEND) {
        send_column(p, at_tile, column, y, in_size);
    } else {
        write_column(p, at_tile, column, y, in_size);
    }
}

REVERSE_ENTRY(reverse_transposed_1, (copy_transposed<u8, false>))
REVERSE_ENTRY(reverse_transposed_2, (copy_transposed<u16, false>))
REVERSE_ENTRY(reverse_transposed_4, (copy_transposed<u32, false>))
REVERSE_ENTRY(reverse_transposed_8, (copy_transposed<u64, false>))
REVERSE_ENTRY(reverse_transposed_send_1, (copy_transposed<u8, true>))
REVERSE_ENTRY(reverse_transposed_send_2, (copy_transposed<u16, true>))
REVERSE_ENTRY(reverse_transposed_send_4, (copy_transposed<u32, true>))
REVERSE_ENTRY(reverse_transposed_send_8, (copy_transposed<u64, true>))
