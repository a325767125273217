// REVERSE_SUBSEQUENCES when input and output are contiguous along different dimensions, so the copy is also a
// transposition. Out of place only. See reverse.cuh for the contract.
//
//   out[i][o] = in[source(o, L)][i]   if the axis runs along the output's rows
//   out[i][o] = in[o][source(i, L)]   if it runs along the input's rows
//   out[i][o] = in[o][i]              otherwise (the axis is an outer dimension)
//
//   input rows along `along_in`  ->  tile in shared memory  ->  output rows along `along_out`
//
// Algorithm
//   A thread block moves tiles, in one of two ways:
//   - through shared memory: it reads whole input rows and writes whole output rows;
//   - directly: each element goes from global to global memory.
//   A row runs along one dimension, or along two that are contiguous together. If REVERSE_ROWS or REVERSE_COLUMNS
//   reverses the axis, the row runs along the axis alone.
//
// Mapping of threads to elements
//   Directly, and for 4-byte elements, a thread moves one element of each of several tiles or rows. For 1- and 2-byte
//   elements, a thread reads vectors of rows, transposes words of them in registers, and writes vectors of columns.
//
// Variants: where the reversal happens, in the kernels that use shared memory. 8-byte elements have none of these.
//
//   axis runs along   lengths vary along   1- and 2-byte elements               4-byte elements
//   along_out         along_in             REVERSE_COLUMNS, on write: SCATTER   direct kernel only
//   along_out         other dimensions     READ: reads another row              READ
//   along_in          along_out            REVERSE_ROWS, on read                REVERSE_ROWS, on read
//   along_in          other dimensions     WRITE: writes another row            WRITE
//   neither           along_in only        WRITE                                direct kernel only
//   neither           both                 direct kernel only                   direct kernel only
//   neither           other dimensions     READ                                 READ
//
//   SCATTER exists because reversing on read would break up the input's rows. If lengths vary along both, the elements
//   of a row of the tile come from different rows.
#include "staging.cuh"

using namespace transposed;

// Element n along a side. TWO: whether `along` may have an outer dimension.
template <bool TWO = true>
__device__ __forceinline__ void step_along(Position& position, u32 n, const Along& along) {
    if constexpr (!TWO) return step_to(position, n, along.inner);
    const u32 outer = divide(n, along.inner.size);
    step_to(position, n - outer * along.inner.size.divisor, along.inner);
    step_to(position, outer, along.outer);
}

// The tile of this thread block.
struct Place {
    Position position;  // in the other dimensions
    u32 down, across;   // the number of the tile along `along_in` and `along_out`
};

__device__ __forceinline__ Place this_tile(const Transposed& p) {
    const u32 outer = divide(blockIdx.x, p.tiles);
    const u32 n = blockIdx.x - outer * p.tiles.divisor;
    const u32 down = divide(n, p.tiles_along_out);
    return {locate(outer, p.r), down, n - down * p.tiles_along_out.divisor};
}

// ---- Directly ------------------------------------------------------------------------------------------------
// A thread moves an element of each of a few tiles, directly. A tile has dimensions that are innermost in the output,
// then dimensions that are innermost in the input, each whole or cut. A warp reads and writes parts of sectors. The L1
// cache has what other warps of the tile read of the same sectors, and the L2 cache puts together what is written.

template <class Element, u32 TILES>
__device__ __forceinline__ void copy_tiles(const Direct& p) {
    Position first = {0, 0, 0, 0};
    u32 thread = threadIdx.x, block = blockIdx.x, left = 0;
#pragma unroll
    for (u32 d = 0; d < TILE_DIMS; ++d) {
        if (d >= p.tile_rank) break;
        const u32 threads = divide(thread, p.threads[d]), blocks = divide(block, p.r.dims[d].size);
        const u32 coordinate =
            (block - blocks * p.r.dims[d].size.divisor) * p.steps[d] + thread - threads * p.threads[d].divisor;
        if (coordinate >= p.sizes[d]) return;
        if (d == p.repeated) left = p.sizes[d] - coordinate;
        step_to(first, coordinate, p.r.dims[d]);
        thread = threads, block = blocks;
    }
    if (thread != 0) return;
    // A tile has at least two dimensions.
#pragma unroll
    for (u32 d = 2; d < MAX_DIMS; ++d) {
        if (d < p.tile_rank) continue;
        if (d >= p.r.rank) break;
        const u32 outer = d + 1 < p.r.rank ? divide(block, p.r.dims[d].size) : 0;
        step_to(first, block - outer * p.r.dims[d].size.divisor, p.r.dims[d]);
        block = outer;
    }
    // Past the last tile, it loads the first one again.
    Position position[TILES];
    Length length[TILES];
    bool is_inside[TILES];
#pragma unroll
    for (u32 k = 0; k < TILES; ++k) {
        position[k] = first;
        is_inside[k] = k * p.next.size.divisor < left;
        if (is_inside[k]) step_to(position[k], k, p.next);
        length[k] = load_length(position[k].length, p.r);
    }
    Element element[TILES];
    const auto load = [&](u32 k, u32 t) {
        element[k] = *at(static_cast<const Element*>(p.r.input), position[k].in + t * p.r.axis_in_stride);
    };
    const auto store = [&](u32 k, u32 t) {
        if (is_inside[k]) *at(static_cast<Element*>(p.r.out), position[k].out + t * p.r.axis_out_stride) = element[k];
    };
    const auto other = [&](u32 k) { return source(position[k].t, clamp_length(length[k], p.r)); };
    if (p.scatters) {
#pragma unroll
        for (u32 k = 0; k < TILES; ++k) load(k, position[k].t);
#pragma unroll
        for (u32 k = 0; k < TILES; ++k) store(k, other(k));
    } else {
#pragma unroll
        for (u32 k = 0; k < TILES; ++k) load(k, other(k));
#pragma unroll
        for (u32 k = 0; k < TILES; ++k) store(k, position[k].t);
    }
}

template <class Element>
__device__ __forceinline__ void copy_direct(const Direct& p) {
    if (p.tiles == 1) {
        copy_tiles<Element, 1>(p);
    } else {
        copy_tiles<Element, TILES_PER_BLOCK>(p);
    }
}

// ---- Elements of 4 bytes, through shared memory ------------------------------------------------------------
// A thread moves an element at a time. Its neighbours move those next to it, in the input and then in the output.

static constexpr u32 LOADS_IN_FLIGHT = 4;

template <bool TWO, u32 TILE>
__device__ __forceinline__ void copy_words_of(const Transposed& p) {
    constexpr u32 ROWS_AT_ONCE = THREADS / TILE;
    constexpr u32 PITCH = TILE + 1;  // elements, so that a column spreads over all banks
    u32* const tile = reinterpret_cast<u32*>(smem);
    const Place place = this_tile(p);
    const u32 i = place.down * TILE, o = place.across * TILE;
    const u32 in_size = min(TILE, p.along_in.size - i), out_size = min(TILE, p.along_out.size - o);
    const u32 x = threadIdx.x % TILE, y = threadIdx.x / TILE;

    if (x < in_size) {
        Position column = place.position;
        step_along<TWO>(column, i + x, p.along_in);
#pragma unroll 1
        for (u32 row = y; row < out_size; row += LOADS_IN_FLIGHT * ROWS_AT_ONCE) {
            u32 loaded[LOADS_IN_FLIGHT];
            Position from[LOADS_IN_FLIGHT];
            Length length[LOADS_IN_FLIGHT];
#pragma unroll
            for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
                from[k] = column;
                step_along<TWO>(from[k], o + min(row + k * ROWS_AT_ONCE, out_size - 1), p.along_out);
                length[k] = load_length(from[k].length, p.r);
            }
#pragma unroll
            for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
                const u32 t = source(from[k].t, clamp_length(length[k], p.r));
                loaded[k] = *at(static_cast<const u32*>(p.r.input), from[k].in + t * p.r.axis_in_stride);
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
    Position column = place.position;
    step_along<TWO>(column, o + x, p.along_out);
#pragma unroll 4
    for (u32 row = y; row < in_size; row += ROWS_AT_ONCE) {
        Position to = column;
        step_along<TWO>(to, i + row, p.along_in);
        *at(static_cast<u32*>(p.r.out), to.out + to.t * p.r.axis_out_stride) = tile[x * PITCH + row];
    }
}

template <u32 TILE>
__device__ __forceinline__ void copy_words_of(const Transposed& p) {
    p.two ? copy_words_of<true, TILE>(p) : copy_words_of<false, TILE>(p);
}

__device__ __forceinline__ void copy_words(const Transposed& p) {
    p.tile == TILE ? copy_words_of<TILE>(p) : copy_words_of<SMALL_TILE>(p);
}

// ---- Elements of 1 and 2 bytes, through shared memory ------------------------------------------------------
// A thread reads vectors of rows: N elements each. Then it makes vectors of columns: it takes a word of each of N rows,
// and transposes the words in registers.
//
//   rows o to o + 3:  | a0 a1 a2 a3 |      4 words of bytes       columns i to i + 3:  | a0 b0 c0 d0 |
//                     | b0 b1 b2 b3 |            ->                                    | a1 b1 c1 d1 |
//                     | c0 ...      |                                                  | a2 ...      |
//
// With SCATTER, or if columns of the output begin at any byte, columns go back to shared memory and are written from
// there.

static constexpr u32 ROW_VECTORS = TILE_IN_BYTES / 16;
static constexpr u32 VECTORS = TILE_OUT * ROW_VECTORS / THREADS;  // a thread's

// Eight rows that are read together have their words in different banks: row o's vector v is in place v ^ o / N.
template <u32 W>
__device__ __forceinline__ u32 place_in_tile(u32 o, u32 v) {
    return o * ROW_VECTORS + (v ^ (o * W / 16 % ROW_VECTORS));
}

// A thread block's tile.
template <u32 W>
struct NarrowTile {
    static constexpr u32 N = 16 / W;  // elements of a vector
    const Transposed& p;
    Position origin;  // in the other dimensions
    u32 i, o;         // the tile's first element along `along_in` and `along_out`
    u32 columns, rows;

    __device__ __forceinline__ explicit NarrowTile(const Transposed& p) : p(p) {
        constexpr u32 TILE_IN = TILE_IN_BYTES / W;
        const Place place = this_tile(p);
        origin = place.position;
        i = place.down * TILE_IN, o = place.across * TILE_OUT;
        columns = min(TILE_IN, p.along_in.size - i), rows = min(TILE_OUT, p.along_out.size - o);
    }

    // Where row m of the tile begins in the input.
    __device__ __forceinline__ Position row_at(u32 m) const {
        Position row = origin;
        step_along(row, o + m, p.along_out);
        const u32 t = p.how == READ ? source(row.t, lane_length(row.length, p.r)) : row.t;
        row.in += t * p.r.axis_in_stride + i;
        return row;
    }

    // N elements of row m, from element x of the tile on. Those past the row's end are any of the tensor. False for
    // vectors at an end of the tensor or with the length of their row: `load_slowly` loads those.
    __device__ __forceinline__ bool load(u32 m, u32 x, uint4& v) const {
        const Position row = row_at(m);
        const u8* from = bytes_at(row.in + x);
        u32 left = 0;  // elements below the length of a row that is reversed
        if (p.how == REVERSE_ROWS) {
            const u32 length = lane_length(row.length, p.r);
            left = length - min(length, i + x);
            if (left && left < N) return false;
            if (left) from = bytes_at(row.in - i) + static_cast<u64>(left - N) * W;
        }
        const Bounds bounds = input_bounds(p.r);
        const u32 shift = lead_of(from);
        if (from - shift < bounds.begin || from - shift + 32 > bounds.end) return false;
        v = load_unaligned_inside(from, shift);
        if (left) v = reverse_elements<W>(v);
        return true;
    }

    // The same of any vector.
    __device__ __forceinline__ uint4 load_slowly(u32 m, u32 x) const {
        const Position row = row_at(m);
        const Bounds bounds = input_bounds(p.r);
        const uint4 same = load_unaligned(bytes_at(row.in + x), bounds);
        if (p.how != REVERSE_ROWS) return same;
        const u32 length = lane_length(row.length, p.r), left = min(length - min(length, i + x), N);
        if (left == 0) return same;
        const i64 back = static_cast<i64>(length) - (i + x) - N;
        const uint4 other = load_unaligned(bytes_at(row.in - i) + back * static_cast<i64>(W), bounds);
        return select(bytes_from(static_cast<int>(left * W)), reverse_elements<W>(other), same);
    }

    __device__ __forceinline__ const u8* bytes_at(u32 offset) const {
        return static_cast<const u8*>(p.r.input) + static_cast<u64>(offset) * W;
    }

    // Where column n of the tile begins in the output.
    __device__ __forceinline__ Position column_at(u32 n) const {
        Position column = origin;
        step_along(column, i + n, p.along_in);
        const u32 t = p.how == WRITE ? source(column.t, lane_length(column.length, p.r)) : column.t;
        column.out += t * p.r.axis_out_stride + o;
        return column;
    }
    __device__ __forceinline__ u8* bytes_of(const Position& column) const {
        return static_cast<u8*>(p.r.out) + static_cast<u64>(column.out) * W;
    }
};

// Transposes words of N rows: 4 / W columns.
template <u32 W>
__device__ __forceinline__ void transpose_words(const u32 (&word)[16 / W], uint4 (&column)[4 / W]) {
    u32 bits[4 / W][4];
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
        if constexpr (W == 1) {
            const u32 four[4] = {word[4 * k], word[4 * k + 1], word[4 * k + 2], word[4 * k + 3]};
            const uint4 turned = transpose_bytes(four);
            bits[0][k] = turned.x, bits[1][k] = turned.y, bits[2][k] = turned.z, bits[3][k] = turned.w;
        } else {
            bits[0][k] = __byte_perm(word[2 * k], word[2 * k + 1], 0x5410);
            bits[1][k] = __byte_perm(word[2 * k], word[2 * k + 1], 0x7632);
        }
    }
#pragma unroll
    for (u32 c = 0; c < 4 / W; ++c) column[c] = make_uint4(bits[c][0], bits[c][1], bits[c][2], bits[c][3]);
}

// A run of the output that a column becomes: its elements below the length, reversed, or the others. It begins at any
// byte, and its vectors are aligned in the output.
struct Run {
    u8* out;
    u32 from;  // byte of shared memory
    int size;  // bytes
    bool reversed;

    // Bytes before the first aligned vector, and whole vectors from there on.
    __device__ __forceinline__ int head() const { return static_cast<int>((16 - lead_of(out)) & 15); }
    __device__ __forceinline__ int whole_vectors() const { return max(size - head(), 0) / 16; }
    // 16 bytes for byte x on.
    template <u32 W>
    __device__ __forceinline__ uint4 vector(int x) const {
        return reversed ? reverse_elements<W>(smem_unaligned(from + size - 16 - x)) : smem_unaligned(from + x);
    }
};

// Column c of the tile, in shared memory, becomes one or two runs.
template <u32 W>
__device__ __forceinline__ Run run_of(const NarrowTile<W>& tile, u32 c, bool second) {
    const Position column = tile.column_at(c);
    const u32 length = tile.p.how == REVERSE_COLUMNS ? lane_length(column.length, tile.p.r) : 0;
    const u32 reversed = min(length - min(length, tile.o), tile.rows);
    const u32 from = (1 + c * (TILE_OUT * W / 16 + 1)) * 16;
    u8* const out = tile.bytes_of(column);
    if (second) return {out + reversed * W, from + reversed * W, static_cast<int>((tile.rows - reversed) * W), false};
    const i64 begin = static_cast<i64>(length) - 2 * static_cast<i64>(tile.o) - reversed;
    return {out + begin * static_cast<i64>(W), from, static_cast<int>(reversed * W), true};
}

// Writes columns from shared memory: whole vectors, then what is at the ends of runs, so that the threads of a warp do
// the same.
template <u32 W>
__device__ __forceinline__ void write_columns(const NarrowTile<W>& tile) {
    constexpr u32 COLUMN_VECTORS = TILE_OUT * W / 16;
    const bool has_two = tile.p.how == REVERSE_COLUMNS;
    for (u32 n = threadIdx.x; n < tile.columns * COLUMN_VECTORS; n += THREADS) {
        const u32 c = n / COLUMN_VECTORS;
        int v = static_cast<int>(n % COLUMN_VECTORS);
        Run run = run_of(tile, c, !has_two);
        if (has_two && v >= run.whole_vectors()) {
            v -= run.whole_vectors();
            run = run_of(tile, c, true);
        }
        const int x = run.head() + v * 16;
        if (x + 16 <= run.size) store_vec16(run.out + x, run.template vector<W>(x));
    }
    const u32 ends = has_two ? 4 : 2;
    for (u32 n = threadIdx.x; n < tile.columns * ends; n += THREADS) {
        const Run run = run_of(tile, n / ends, !has_two || n & 2);
        const int head = run.head(), x = n & 1 ? head + run.whole_vectors() * 16 : head - 16;
        const int begin = max(-x, 0), end = min(run.size - x, 16);
        if (begin < end) store_partial<W>(run.out + x, run.template vector<W>(x), begin, end);
    }
}

template <u32 W, bool SCATTER>
__device__ __forceinline__ void copy_narrow(const Transposed& p) {
    constexpr u32 N = 16 / W, COLUMNS = 4 / W;                 // elements of a vector, columns of a word
    constexpr u32 GROUPS = TILE_OUT / N;                       // of N rows
    constexpr u32 ITEMS = ROW_VECTORS * 4 * GROUPS / THREADS;  // a thread's words of N rows
    const NarrowTile<W> tile(p);
    uint4 row[VECTORS];
    u32 slow = 0;
#pragma unroll
    for (u32 k = 0; k < VECTORS; ++k) {
        const u32 n = threadIdx.x + k * THREADS, m = n / ROW_VECTORS, x = n % ROW_VECTORS * N;
        const bool is_wanted = m < tile.rows && x < tile.columns;
        if (is_wanted && !tile.load(m, x, row[k])) slow |= 1 << k;
    }
#pragma unroll
    for (u32 k = 0; k < VECTORS; ++k) {
        const u32 n = threadIdx.x + k * THREADS;
        smem[place_in_tile<W>(n / ROW_VECTORS, n % ROW_VECTORS)] = row[k];
    }
#pragma unroll 1
    for (u32 k = 0; slow >> k; ++k) {
        const u32 n = threadIdx.x + k * THREADS, m = n / ROW_VECTORS, v = n % ROW_VECTORS;
        if (slow >> k & 1) smem[place_in_tile<W>(m, v)] = tile.load_slowly(m, v * N);
    }
    __syncthreads();

    uint4 column[SCATTER ? ITEMS : 1][COLUMNS];
#pragma unroll(SCATTER ? ITEMS : 1)
    for (u32 k = 0; k < ITEMS; ++k) {
        const u32 n = threadIdx.x + k * THREADS;
        const u32 w = n % 4, group = n / 4 % GROUPS, v = n / (4 * GROUPS);
        u32 word[N];
#pragma unroll
        for (u32 e = 0; e < N; ++e) {
            word[e] = reinterpret_cast<const u32*>(smem + place_in_tile<W>(group * N + e, v))[w];
        }
        transpose_words<W>(word, column[SCATTER ? k : 0]);
        if constexpr (!SCATTER) {
            if (group * N >= tile.rows) continue;
#pragma unroll
            for (u32 e = 0; e < COLUMNS; ++e) {
                const u32 c = (v * 4 + w) * COLUMNS + e;
                const int size = static_cast<int>((tile.rows - group * N) * W);
                if (c < tile.columns) {
                    store_partial<W>(tile.bytes_of(tile.column_at(c)) + group * 16, column[0][e], 0, size);
                }
            }
        }
    }
    if constexpr (!SCATTER) return;
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < ITEMS; ++k) {
        const u32 n = threadIdx.x + k * THREADS;
        const u32 w = n % 4, group = n / 4 % GROUPS, v = n / (4 * GROUPS);
#pragma unroll
        for (u32 e = 0; e < COLUMNS; ++e) {
            const u32 c = (v * 4 + w) * COLUMNS + e;
            smem[1 + c * (TILE_OUT * W / 16 + 1) + group] = column[k][e];
        }
    }
    __syncthreads();
    write_columns(tile);
}

ENTRY((THREADS, 6), Transposed, reverse_transposed_1, copy_narrow<1, false>)
ENTRY((THREADS, 7), Transposed, reverse_transposed_2, copy_narrow<2, false>)
ENTRY((THREADS), Transposed, reverse_transposed_4, copy_words)
ENTRY((THREADS, 6), Transposed, reverse_transposed_scatter_1, copy_narrow<1, true>)
ENTRY((THREADS, 6), Transposed, reverse_transposed_scatter_2, copy_narrow<2, true>)
ENTRIES_TO_8((THREADS), Direct, reverse_transposed_directly, copy_direct)
