// Declares what the host and the kernels share: the structure that each kernel takes, and the numbers that both sides
// know. Each kernel file has a namespace. scripts/parameters.py writes the Rust side, kernels/prebuilt/parameters.rs.
//
// Every structure begins with the pointers to the inputs and to the output.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

static constexpr u32 THREADS = 256;  // per thread block, except in cooperative-group and cluster kernels
static constexpr u32 MAX_DIMS = 8;   // DML_TENSOR_DIMENSION_COUNT_MAX1

// n / divisor for any 32-bit n, without a division instruction (Granlund & Montgomery, 1994, figure 4.1).
struct FastDiv {
    u32 divisor;
    u32 multiplier;
    u32 shift1;
    u32 shift2;
};

// ---- FILL_VALUE_SEQUENCE ------------------------------------------------------------------------------------

namespace fill {
// Arithmetics. Values from FLOAT32 up are floating-point types.
static constexpr u32 INT8 = 0;
static constexpr u32 INT16 = 1;
static constexpr u32 INT32 = 2;
static constexpr u32 INT64 = 3;
static constexpr u32 FLOAT32 = 4;
static constexpr u32 FLOAT16 = 5;
static constexpr u32 FLOAT64 = 6;  // packed only

struct FillPacked {
    void* out;
    u64 start, delta;
    u32 count;
    u32 arithmetic;
    u32 pattern[4];
};

// A dimension of the output in memory order: neighbours are `stride` elements apart in memory and `step` apart in the
// logical index.
struct FillDim {
    FastDiv size;
    u32 stride;
    u32 step;
};

struct FillStrided {
    void* out;
    u64 start, delta;
    u64 items;            // rows, dense: number of runs; elements: number of elements
    FastDiv parts;        // rows, dense: thread blocks per run
    FastDiv inner;        // dense: size of the innermost dimension
    FastDiv middle;       // dense: size of the next dimension out
    u32 row_size;         // rows, dense: elements of a run
    u32 row_step;         // rows, dense: step of the innermost dimension
    u32 middle_step;      // dense: step of the next dimension out
    u32 outer_step;       // dense: step of the dimension after that
    u32 rank;             // dimensions in `dims`, innermost first
    u32 group_size_log2;  // rows, dense: threads per run
    u32 whole;            // rows: 1 if all runs are whole vectors at aligned addresses
    u32 arithmetic;
    u32 pattern[4];  // rows, dense: the pattern of elements `row_step` apart
    // dense, if the innermost dimension is shorter than a vector: for every coordinate that a vector may begin with,
    // the distances of its elements. For integers they are already multiplied by delta. TABLE words each.
    u32 tables[60];
    FillDim dims[MAX_DIMS];
};

static constexpr u32 DENSE_VECTORS = 8;  // of a dense run, per thread
}  // namespace fill

// ---- REVERSE_SUBSEQUENCES -----------------------------------------------------------------------------------

struct ReverseDim {
    FastDiv size;
    u32 in_stride;
    u32 out_stride;
    u32 length_stride;
    u32 axis;  // 1 for the axis (its strides here are 0), else 0
};

// The parameters of every kernel except the small ones. Strides and offsets count the kernel's units: elements, or
// vectors of them.
struct Reverse {
    const void* input;
    const void* lengths;
    void* out;
    u32 items;  // work items of the grid; each kernel defines its item
    u32 rank;
    u32 axis_size;
    u32 axis_in_stride;
    u32 axis_out_stride;
    u32 wide_lengths;           // 1 for UINT64 lengths, 0 for UINT32
    ReverseDim dims[MAX_DIMS];  // innermost first; zeros past `rank`
    u64 in_bytes;               // from the begin of the input's first element to the end of its last; reads stay inside
    u32 form;                   // elementwise kernels, out of place
    u32 reserved;
};

namespace elementwise {
// How elementwise kernels copy.
static constexpr u32 SINGLE_UNITS = 0;
static constexpr u32 GATHERED_VECTORS = 1;
static constexpr u32 GATHERED_HALF_VECTORS = 2;
static constexpr u32 IN_ROWS = 4;  // added to the last two: every vector is in one row of the output

// Out of place, an item is an output unit. In place, it is a pair of units.
static constexpr u32 ITEMS_PER_THREAD = 4;
static constexpr u32 PAIRS_PER_THREAD = 2;

// Without a loop, positions are computed in at most FEW_DIMENSIONS, which is fastest, or else in at most
// UNROLLED_DIMENSIONS. The axis is among them.
static constexpr u32 FEW_DIMENSIONS = 3;
static constexpr u32 UNROLLED_DIMENSIONS = 5;

static constexpr u32 MOST_THREADS = 1024;  // of a thread block of a small kernel in place

// A dimension of a small kernel. Dividing takes one multiplication: n / divisor = umulhi(n, multiplier), where
// divisor * multiplier = 2^32 + e, with the smallest e >= 0. With n = q * divisor + rest, n * multiplier / 2^32 =
// q + (rest + n * e / 2^32) / divisor, and rest < divisor. So the quotient is q for all n with n * e < 2^32, and the
// host takes only such layouts. The outermost dimension, and unused ones, have a multiplier of 0, for a quotient of 0.
struct SmallDim {
    u32 multiplier, divisor, in_stride, out_stride, length_stride;
};

// Flags of small kernels. MANY_DIMENSIONS: more than FEW_DIMENSIONS. AXIS times d: dimension d is the axis; its strides
// in `dims` are 0. GATHERS is for out of place, and SWAPS for long lanes in place. They are the highest bit, because
// compilers test it in the whole word: a specialized kernel keeps loads of single bytes.
static constexpr u32 WIDE_LENGTHS = 1;
static constexpr u32 MANY_DIMENSIONS = 2;
static constexpr u32 AXIS = 16;
static constexpr u32 GATHERS = 1u << 31;
static constexpr u32 SWAPS = 1u << 31;

// The parameters of small kernels. They begin 16 bytes past a 64-byte line of the constant cache, so that those of few
// dimensions are in two lines.
struct Small {
    const void* input;
    const void* lengths;
    void* out;
    u32 items, flags;
    u32 lanes;  // in place: if dimension 2 has parts of the lanes of dimension 0, how many there are; else the most
    u32 axis_size, axis_in_stride, axis_out_stride;
    SmallDim dims[UNROLLED_DIMENSIONS];  // innermost first, in place with the axis as 0 or 1; zeros past the last
    u32 reserved;
};
}  // namespace elementwise

namespace segments {
struct Segments {
    Reverse r;  // items: segments
    FastDiv segment_bytes;
    FastDiv row_bytes;  // of a block; unused for lanes
    u32 segments_per_block;
    u32 vectors_per_segment;  // of shared memory, if each thread group has its own segment
    u32 group_size_log2;      // log2 of the threads per segment
    u32 reserved;
};
}  // namespace segments

namespace rows {
static constexpr u32 MIN_JOINED_ROW = 16;   // bytes of a row that is joined from two reads, in place
static constexpr u32 RUN_SLACK_BEFORE = 1;  // vectors of shared memory that unaligned reads reach before a run
static constexpr u32 RUN_SLACK_BEHIND = 2;  // and behind it

struct RowTiles {
    Reverse r;  // dims: those outside the block; strides in elements
    FastDiv tiles_per_data_block;
    FastDiv parts_per_row;  // 1 if tiles are whole rows
    FastDiv row_bytes;
    u32 rows_per_tile;   // 1 if tiles are parts of a row
    u32 tile_row_bytes;  // bytes of a row that are in a tile
    u32 element_bytes;
    u32 group_size_log2;  // of single rows: log2 of the threads per tile
};
}  // namespace rows

namespace short_lanes {
static constexpr u32 MOST_LANES = 4;      // of a thread
static constexpr u32 FEW_DIMENSIONS = 3;  // outside the lanes

struct ShortLanes {
    Reverse r;  // strides count lanes
    u32 width;  // bytes of an element
    u32 reserved;
};
}  // namespace short_lanes

namespace lanes {
static constexpr u32 VECTORS_PER_THREAD = 2;  // of a tile of a long lane
static constexpr u32 TILES_PER_BLOCK = 8;     // of a long lane, in place

struct Lanes {
    Reverse r;               // items: lanes; long lanes: thread blocks
    FastDiv tiles_per_lane;  // long lanes: thread blocks per lane
    u32 vectors_per_lane;    // of shared memory
    u32 group_size_log2;     // log2 of the threads per lane
};
}  // namespace lanes

namespace strips {
// The most threads of a thread block, out of place. The host chooses how many: a thread block that fills an SM's
// shared memory runs there alone.
static constexpr u32 MOST_THREADS = 1024;

struct Strips {
    Reverse r;  // dims: those outside the row; items: strips
    FastDiv strips_per_row;
    u32 row_lanes;
    u32 strip_bytes;    // of each row, a power of two
    u32 length_stride;  // from one lane of a row to the next
    u32 unaligned;      // out of place, narrow elements: 1 if rows are not whole words
};
}  // namespace strips

namespace clusters {
static constexpr u32 CLUSTER = 8;  // thread blocks per cluster, the most that every GPU with clusters supports
static constexpr u32 DEAL = 32;    // rows that are dealt to a thread block at a time
static constexpr u32 CLUSTER_THREADS = 512;  // threads per thread block

struct Clusters {
    Reverse r;  // dims: those outside the row; items: strips
    FastDiv strips_per_row;
    u32 row_lanes;
    u32 strip_bytes;    // of each row
    u32 length_stride;  // from one lane of a row to the next
    u32 lane_pitch;     // bytes from one lane to the next in shared memory
};
}  // namespace clusters

namespace columns {
struct Columns {
    Reverse r;        // dims: those outside the group; items: groups
    FastDiv axis;     // the axis size
    FastDiv columns;  // interleaved lanes
    FastDiv group_bytes;
    u32 groups_per_block;
    u32 length_stride;  // from one lane of a row to the next
};

struct ThreadColumns {
    Reverse r;          // dims: those outside the row; items: pieces of N lanes, in which strides are counted
    FastDiv pieces;     // of a row
    u32 length_stride;  // from one lane of a row to the next
    u32 lanes;          // N
};

static constexpr u32 LOADS_IN_FLIGHT = 8;  // rows that a thread loads before it stages the first
}  // namespace columns

namespace transposed {
// The elements of a tensor that are contiguous: a dimension, and the one around it if they are contiguous together.
struct Along {
    ReverseDim inner, outer;  // outer: of one element where there is none
    u32 size;                 // elements of both
};

// How elements of 1 and 2 bytes are reversed.
static constexpr u32 READ = 0;
static constexpr u32 WRITE = 1;
static constexpr u32 REVERSE_ROWS = 2;
static constexpr u32 REVERSE_COLUMNS = 3;

struct Transposed {
    Reverse r;        // dims: all but the tile's
    Along along_in;   // contiguous in the input
    Along along_out;  // contiguous in the output
    FastDiv tiles;    // tiles for one position in the other dimensions
    FastDiv tiles_along_out;
    u32 how;   // READ or another of these
    u32 two;   // 1 if a row is along two dimensions
    u32 tile;  // elements of 4 bytes: TILE or SMALL_TILE
    u32 reserved;
};

static constexpr u32 TILE = 64;            // elements of 4 bytes along each dimension of a tile
static constexpr u32 SMALL_TILE = 32;      // and of a small one
static constexpr u32 TILE_OUT = 128;       // elements of 1 and 2 bytes along the output's contiguous dimension
static constexpr u32 TILE_IN_BYTES = 128;  // and bytes along the input's
static constexpr u32 TILE_DIMS = 5;        // the most of a tile without shared memory: two of each tensor, and the axis
static constexpr u32 TILES_PER_BLOCK = 4;  // without shared memory

struct Direct {
    Reverse r;  // dims: those of a tile, innermost first, with their thread blocks as sizes; then all others
    FastDiv threads[TILE_DIMS];  // along the dimensions of a tile
    u32 steps[TILE_DIMS];        // elements from one thread block to the next
    u32 sizes[TILE_DIMS];        // elements of the dimension
    ReverseDim next;             // from one tile of a thread block to the next: elements as the size, and strides
    u32 repeated;                // along which dimension of the tile that is
    u32 tiles;                   // of a thread block: TILES_PER_BLOCK, or 1
    u32 tile_rank;               // dimensions of a tile
    u32 scatters;                // 1 if elements are read where they are, and written where the length says
};
}  // namespace transposed
