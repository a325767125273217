// REVERSE_SUBSEQUENCES for interleaved lanes, each with its own length: few lanes in groups that are adjacent in
// memory, or any number of lanes with few rows. See reverse.cuh for the contract.
//
//   out[g][t][j] = in[g][source(t, L[g][j])][j]      group g, row t, lane j
//
//   group 0: | a0 b0 c0 | a1 b1 c1 | ... | group 1: | a0 b0 c0 | ...      lanes a, b, c; rows 0, 1, ...
//
// Algorithm
//   `columns`: a thread block stages as many whole groups as fit in its shared memory, and then writes every element
//   from its source there.
//   `thread_columns`: a thread stages all rows of its own lanes, and writes them from there.
//
//   shared memory of `columns`:
//     | lengths of all lanes | groups, aligned as in memory |
//
// Mapping of threads to columns
//   `columns`: a thread keeps its lane and walks down the rows of all groups. The threads take whole rows at once, so
//   that they write neighbouring elements.
//   `thread_columns`: a thread keeps one word of every row, or one element if rows are not whole words.
//
// Variants: `columns` and `thread_columns`, for elements of each size. Elements of 4 and 8 bytes also have a
// `thread_columns` that moves only what is below the length, in place.
//
// In-place safety: a group belongs to one thread block, which reads before a barrier and writes only after it. In
// `thread_columns` a lane belongs to one thread, which reads all of it before it writes.
#include <type_traits>

#include "staging.cuh"

using namespace columns;

// The groups of this thread block, staged.
struct Groups {
    u8* out;
    const u32* lengths;
    const u8* elements;  // the first element of the first group, in shared memory
    u32 rows;            // of all groups together
};

__device__ __forceinline__ u32 vectors_of(u32 bytes) { return (bytes + 15) / 16; }

__device__ __forceinline__ Groups stage_groups(const Columns& p) {
    const u32 first = blockIdx.x * p.groups_per_block, columns = p.columns.divisor;
    const u32 groups = min(p.groups_per_block, p.r.items - first);
    const u64 offset = static_cast<u64>(first) * p.group_bytes.divisor;
    u32* const lengths = reinterpret_cast<u32*>(smem);
    const u32 vectors_at = vectors_of(p.groups_per_block * columns * 4);
    const u32 lanes = groups * columns;
    const auto load_length_of = [&](u32 i) {
        const u32 g = divide(i, p.columns);
        return load_length(locate(first + g, p.r).length + (i - g * columns) * p.length_stride, p.r);
    };
    // A thread loads its first length together with its first vectors.
    const Length loaded = threadIdx.x < lanes ? load_length_of(threadIdx.x) : Length{0, 0};
    for (u32 i = threadIdx.x + THREADS; i < lanes; i += THREADS) lengths[i] = clamp_length(load_length_of(i), p.r);

    const u8* const in = static_cast<const u8*>(p.r.input) + offset;
    const u32 lead = lead_of(in);
    const u32 span = groups * p.group_bytes.divisor;
    stage_run(smem + vectors_at, in - lead, vectors_of(lead + span), whole_block(), input_bounds(p.r));
    if (threadIdx.x < lanes) lengths[threadIdx.x] = clamp_length(loaded, p.r);
    __syncthreads();
    return {static_cast<u8*>(p.r.out) + offset, lengths, reinterpret_cast<const u8*>(smem + vectors_at) + lead,
            groups * p.r.axis_size};
}

// A thread keeps its column and goes down the rows of all groups. All threads together take as many rows at once as the
// thread block can, so that they write neighbouring elements.
template <class Element>
__device__ __forceinline__ void reverse_columns(const Columns& p) {
    const Groups s = stage_groups(p);
    const u32 columns = p.columns.divisor, rows_at_once = divide(THREADS, p.columns);
    const u32 first = divide(threadIdx.x, p.columns), column = threadIdx.x - first * columns;
    if (first >= rows_at_once) return;
    u32 group = divide(first, p.axis), t = first - group * p.r.axis_size;
    if (first >= s.rows) return;
    u32 length = s.lengths[group * columns + column];
    const Element* from = reinterpret_cast<const Element*>(s.elements) + group * p.r.axis_size * columns + column;
    Element* out = reinterpret_cast<Element*>(s.out) + threadIdx.x;
#pragma unroll 4
    for (u32 row = first; row < s.rows; row += rows_at_once, out += rows_at_once * columns, t += rows_at_once) {
        // In a later group. At most once: where all sizes are known, the compiler would compute a branch in every round.
        while (t >= p.r.axis_size) {
            const u32 on = divide(t, p.axis);
            t -= on * p.r.axis_size;
            group += on;
            from += on * p.r.axis_size * columns;
            length = s.lengths[group * columns + column];
        }
        *out = from[source(t, length) * columns];
    }
}

// ---- A column for each thread --------------------------------------------------------------------------------
// A thread takes N lanes: a word of every row or, if rows are not whole words, an element. It stages what it reads, and
// writes what it makes of the staged elements. Threads never wait for each other, because no other thread touches a
// thread's lanes, in shared memory or in place.
//
//   shared memory: | row 0: a word for each thread | row 1 | ... |      neighbouring threads are in different banks at any rows

template <class Element, class Piece, bool IN_PLACE>
__device__ __forceinline__ void reverse_pieces(const ThreadColumns& p) {
    using Word = std::conditional_t<sizeof(Element) == 8, u64, u32>;
    constexpr u32 N = sizeof(Piece) / sizeof(Element);
    const u64 item = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (item >= p.r.items) return;
    const u32 row = divide(static_cast<u32>(item), p.pieces), piece = static_cast<u32>(item) - row * p.pieces.divisor;
    const Position at_row = locate(row, p.r);
    Length loaded[N];
#pragma unroll
    for (u32 k = 0; k < N; ++k) loaded[k] = load_length(at_row.length + (piece * N + k) * p.length_stride, p.r);
    // In place, a single element does not move.
    u32 length[N], longest = p.r.axis_size, shortest = p.r.axis_size;
    const auto clamp = [&] {
        longest = 0;
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            length[k] = clamp_length(loaded[k], p.r);
            if (IN_PLACE && length[k] == 1) length[k] = 0;
            longest = max(longest, length[k]);
            shortest = min(shortest, length[k]);
        }
    };
    if (IN_PLACE) clamp();
    const u32 rows = longest;

    Word* const staged = reinterpret_cast<Word*>(smem) + threadIdx.x;
    Word* stage = staged;
    const Piece* in = at(static_cast<const Piece*>(p.r.input), at_row.in) + piece;
#pragma unroll 1
    for (u32 first = 0; first < rows; first += LOADS_IN_FLIGHT) {
        Piece read[LOADS_IN_FLIGHT];
#pragma unroll
        for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k, in = at(in, p.r.axis_in_stride)) {
            if (first + k < rows) read[k] = *in;
        }
        issue_loads();
#pragma unroll
        for (u32 k = 0; k < LOADS_IN_FLIGHT; ++k) {
            if (first + k < rows) stage[k * blockDim.x] = read[k];
        }
        stage += LOADS_IN_FLIGHT * blockDim.x;
    }
    if (!IN_PLACE) clamp();

    Piece* out = at(static_cast<Piece*>(p.r.out), at_row.out) + piece;
#pragma unroll 4
    for (u32 t = 0; t < rows; ++t, out = at(out, p.r.axis_out_stride)) {
        union {
            Element element[N];
            Piece piece;
        } value;
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            value.element[k] = reinterpret_cast<const Element*>(staged + source(t, length[k]) * blockDim.x)[k];
        }
        if (!IN_PLACE || t < shortest) {
            *out = value.piece;
        } else {
#pragma unroll
            for (u32 k = 0; k < N; ++k) {
                if (t < length[k]) reinterpret_cast<Element*>(out)[k] = value.element[k];
            }
        }
    }
}

template <class Element, bool IN_PLACE>
__device__ __forceinline__ void reverse_thread_columns(const ThreadColumns& p) {
    if constexpr (sizeof(Element) < 4) {
        if (p.lanes > 1) return reverse_pieces<Element, u32, IN_PLACE>(p);
    }
    reverse_pieces<Element, Element, IN_PLACE>(p);
}

ENTRIES_TO_4((THREADS), Columns, reverse_columns, reverse_columns)
ENTRIES_TO_8((THREADS), ThreadColumns, reverse_thread_columns, reverse_thread_columns, false)
ENTRY((THREADS), ThreadColumns, reverse_thread_columns_in_place_4, reverse_thread_columns<u32, true>)
ENTRY((THREADS), ThreadColumns, reverse_thread_columns_in_place_8, reverse_thread_columns<u64, true>)
