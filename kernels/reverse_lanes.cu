// REVERSE_SUBSEQUENCES for contiguous lanes. See reverse.cuh for the contract.
//
//   out[lane * pitch + t] = in[lane * pitch + source(t, L)]
//
//   | lane 0: in[L-1] ... in[0] in[L] ... | lane 1 ... |     threads write 16-byte vectors at aligned addresses
//
// Algorithm
//   The 16 bytes of an output vector come from the same lane, at any alignment. A thread reads the two aligned vectors
//   that contain them and shifts. Below the length it then reverses their elements in registers. Vectors that contain
//   an end of the lane are stored in part, and so are, in place, those that contain the length.
//
// Mapping of threads to vectors
//   Neighbouring threads write neighbouring vectors. A thread group of 2^group_size_log2 threads takes a whole lane. A
//   thread block takes one tile of a long lane or, in place, several.
//
// Variants: `lanes` stages lanes that fit in shared memory, so that every sector is read once. `long_lanes` cuts longer
// lanes into tiles, which are read from global memory.
//
// In-place safety: a lane belongs to one thread group, or a tile and its mirror image to one thread block. Either reads
// all of it before the barrier and writes only after it. The sections below have the details.
#include "staging.cuh"

using namespace lanes;

// ---- Whole lanes ------------------------------------------------------------------------------------------
// A thread group stages a whole lane, so that each thread has a few vectors of it.
//
//   shared memory: | 1 vector | the lane, aligned as in memory | 2 vectors |     the extra vectors are for unaligned reads
//
// In-place safety: a lane belongs to one thread group, which reads all of it before the barrier and writes after
// it. It reads the vectors that contain an element below the length. It does not write elements at or past the length.

template <class Element, bool IN_PLACE>
__device__ __forceinline__ void reverse_lanes(const Lanes& p) {
    constexpr u32 W = sizeof(Element);
    const ThreadGroup group = this_group(p.group_size_log2);
    const u32 lane = group.index;
    const bool active = lane < p.r.items;

    int length = 0;
    Length loaded = {0, 0};  // out of place: the thread waits for L and for the lane together
    const u8* in = nullptr;
    u8* run = nullptr;
    if (active) {
        const Position at_lane = locate(lane, p.r);
        if (IN_PLACE) {
            length = static_cast<int>(lane_length(at_lane.length, p.r) * W);
        } else {
            loaded = load_length(at_lane.length, p.r);
        }
        in = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.r.input), at_lane.in));
        run = reinterpret_cast<u8*>(at(static_cast<Element*>(p.r.out), at_lane.out));
    }
    const int size = IN_PLACE ? length : static_cast<int>(p.r.axis_size * W);
    const u32 in_lead = lead_of(in);
    uint4* const vectors = smem + group.in_block * p.vectors_per_lane + 1;
    if (active) {
        const u32 count = size == 0 ? 0 : (in_lead + size + 15) / 16;
        stage_run(vectors, in - in_lead, count, group, input_bounds(p.r));
    }
    sync(group);
    if (!active) return;
    if (!IN_PLACE) length = static_cast<int>(clamp_length(loaded, p.r) * W);

    // x: bytes from the lane's first byte to the vector to be written. Its 16 bytes are in shared memory, at byte `back
    // - x` in reversed order or at byte `same + x` as they are.
    const int out_lead = static_cast<int>(lead_of(run));
    const int same = static_cast<int>((group.in_block * p.vectors_per_lane + 1) * 16 + in_lead);
    const int back = same + length - 16;
    for (int x = static_cast<int>(group.thread) * 16 - out_lead; x < size; x += static_cast<int>(group.size) * 16) {
        uint4 v;
        if (x < length) {
            v = reverse_elements<W>(smem_unaligned(static_cast<u32>(back - x)));
            if (!IN_PLACE && x + 16 > length) {
                v = select(bytes_from(length - x), v, smem_unaligned(static_cast<u32>(same + x)));
            }
        } else {
            v = smem_unaligned(static_cast<u32>(same + x));
        }
        store_partial<W>(run + x, v, -x, size - x);
    }
}

// ---- Long lanes, out of place -----------------------------------------------------------------------------------
// A thread block copies one tile of a lane, so that everything that depends on the lane, alignments included, is the
// same for all its threads. Within a tile every distance fits in 32 bits.
//
//   lane:   | reversed, [0, length)              | stays, [length, size) |
//   tiles:  |  tile 0  |  tile 1  |  tile 2  | ...      distances count from the tile's first byte

struct Tile {
    u8* out;         // the tile's first vector
    const u8* back;  // the 16 bytes that go there reversed; those of the next vector are 16 bytes before
    const u8* same;  // the 16 bytes that go there as they are; those of the next vector are 16 bytes after
    int begin;       // distance to the lane's first byte: negative if the tile begins inside the lane
    int length;
    int size;
};

__device__ __forceinline__ int within(i64 distance, int tile) {
    return static_cast<int>(distance < -16 ? -16 : distance > tile ? tile : distance);
}

template <u32 W>
__device__ __forceinline__ void copy_vector(const Tile& tile, int x, uint4 v, const Bounds& bounds) {
    const bool reversed = x < tile.length;
    const int end = reversed ? tile.length : tile.size;
    if (x >= tile.begin && x + 16 <= end) {
        store_vec16(tile.out + x, v);
        return;
    }
    store_partial<W>(tile.out + x, v, tile.begin - x, end - x);
    // The vector that contains the length also has the first elements that stay.
    if (reversed && x + 16 > tile.length && tile.length < tile.size) {
        store_partial<W>(tile.out + x, load_unaligned(tile.same + x, bounds), tile.length - x, tile.size - x);
    }
}

template <class Element>
__device__ __forceinline__ void copy_long_lanes(const Lanes& p) {
    constexpr u32 W = sizeof(Element);
    constexpr int BYTES = THREADS * VECTORS_PER_THREAD * 16;
    const u32 lane = divide(blockIdx.x, p.tiles_per_lane);
    const u32 part = blockIdx.x - lane * p.tiles_per_lane.divisor;
    const Position at_lane = locate(lane, p.r);
    const i64 length = static_cast<i64>(lane_length(at_lane.length, p.r)) * W;
    const u8* in = reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.r.input), at_lane.in));
    u8* run = reinterpret_cast<u8*>(at(static_cast<Element*>(p.r.out), at_lane.out));
    const i64 cut = static_cast<i64>(part) * BYTES - lead_of(run);
    const Tile tile = {
        run + cut,           in + (length - cut - 16),    in + cut,
        within(-cut, BYTES), within(length - cut, BYTES), within(static_cast<i64>(p.r.axis_size) * W - cut, BYTES)};
    const Bounds bounds = input_bounds(p.r);
    const u32 back_shift = lead_of(tile.back);
    const u32 same_shift = lead_of(tile.same);

    uint4 value[VECTORS_PER_THREAD];
#pragma unroll
    for (u32 k = 0; k < VECTORS_PER_THREAD; ++k) {
        const int x = static_cast<int>(k * THREADS + threadIdx.x) * 16;
        if (x >= tile.size) continue;
        const bool reversed = x < tile.length;
        const u8* from = reversed ? tile.back - x : tile.same + x;
        const u32 shift = reversed ? back_shift : same_shift;
        const u8* first = from - shift;
        const bool inside = first >= bounds.begin && first + 32 <= bounds.end;
        const uint4 v = inside ? load_unaligned_inside(from, shift) : load_unaligned_at_edge(from, bounds);
        value[k] = reversed ? reverse_elements<W>(v) : v;
    }
#pragma unroll
    for (u32 k = 0; k < VECTORS_PER_THREAD; ++k) {
        const int x = static_cast<int>(k * THREADS + threadIdx.x) * 16;
        if (x < tile.size) copy_vector<W>(tile, x, value[k], bounds);
    }
}

// ---- Long lanes, in place -----------------------------------------------------------------------------------
// A thread block reverses TILES_PER_BLOCK tiles of a lane, one after another.
//
//   | front of tile 0 | front of tile 1 | ...  | back of tile 1 | back of tile 0 | stays, from `length` on |
//
// In-place safety: a tile is FRONT vectors of the first half of a length and the bytes that mirror them in the
// second half. The thread block reads every byte of a tile before the barrier and writes it after. The bytes that go to
// a tile come from the same tile, so no thread block reads or writes bytes of another one. (Vectors at a tile's edges
// are loaded whole, but never past the length. Bytes outside the tile are dropped.)

// Waits for all threads and for their loads, because storing to a line with loads in flight is slow. A plain barrier
// waits for the threads only.
__device__ __forceinline__ void sync_arrived(u32 loaded) { __syncthreads_or(loaded == 1); }

template <class Element>
__device__ __forceinline__ void swap_long_lanes(const Lanes& p) {
    constexpr u32 W = sizeof(Element);
    constexpr int FRONT = THREADS * VECTORS_PER_THREAD / 2 - 1;
    const u32 lane = divide(blockIdx.x, p.tiles_per_lane);
    const u32 part = blockIdx.x - lane * p.tiles_per_lane.divisor;
    const Position at_lane = locate(lane, p.r);
    const u32 elements = lane_length(at_lane.length, p.r);
    u8* const run = reinterpret_cast<u8*>(at(static_cast<Element*>(p.r.out), at_lane.out));
    const i64 length = static_cast<i64>(elements) * W;
    const i64 half = static_cast<i64>(elements / 2) * W;
    const Bounds bounds = {run, run + length};

#pragma unroll 1
    for (u32 tile = part * TILES_PER_BLOCK; tile < (part + 1) * TILES_PER_BLOCK; ++tile) {
        // The tile's front [front, front_end) and its back [back, back_end), in bytes from the lane's first byte.
        const i64 cut = static_cast<i64>(tile) * (FRONT * 16) - lead_of(run);
        const i64 front = cut < 0 ? 0 : cut;
        const i64 front_end = cut + FRONT * 16 < half ? cut + FRONT * 16 : half;
        if (front >= front_end) break;  // the same for all threads
        const i64 back = length - front_end, back_end = length - front;
        const i64 back_cut = back - static_cast<i64>((reinterpret_cast<u64>(run) + back) & 15);

        // A thread's vectors: their addresses, which of their bytes are in the tile, and the shift of the bytes that go
        // there.
        u8* out[VECTORS_PER_THREAD];
        int begin[VECTORS_PER_THREAD], end[VECTORS_PER_THREAD];
        u32 shift[VECTORS_PER_THREAD];
        // Issues all loads before it waits for the first.
        uint4 low[VECTORS_PER_THREAD], high[VECTORS_PER_THREAD];
#pragma unroll
        for (u32 k = 0; k < VECTORS_PER_THREAD; ++k) {
            low[k] = high[k] = make_uint4(0, 0, 0, 0);
            const int vector = static_cast<int>(k * THREADS + threadIdx.x);
            const bool in_front = vector < FRONT;
            const i64 at_vector = (in_front ? cut : back_cut) + (in_front ? vector : vector - FRONT) * 16;
            begin[k] = clamp_to_vec16((in_front ? front : back) - at_vector);
            end[k] = clamp_to_vec16((in_front ? front_end : back_end) - at_vector);
            out[k] = run + at_vector;
            const u8* const from = run + (length - at_vector - 16);
            shift[k] = lead_of(from);
            if (end[k] == 0) continue;
            const u8* const first = from - shift[k];
            if (first >= bounds.begin && first + 32 <= bounds.end) {
                low[k] = *reinterpret_cast<const uint4*>(first);
                if (shift[k] != 0) high[k] = *reinterpret_cast<const uint4*>(first + 16);
            } else {
                low[k] = load_vec16(first, bounds);
                high[k] = load_vec16(first + 16, bounds);
            }
        }
#pragma unroll
        for (u32 k = 0; k < VECTORS_PER_THREAD; ++k)
            low[k] = reverse_elements<W>(shift_pair(low[k], high[k], shift[k]));
        static_assert(VECTORS_PER_THREAD == 2, "all vectors are waited for");
        sync_arrived(low[0].x | low[1].x);
#pragma unroll
        for (u32 k = 0; k < VECTORS_PER_THREAD; ++k) {
            if (end[k] != 0) store_partial<W>(out[k], low[k], begin[k], end[k]);
        }
    }
}

ENTRIES_TO_4((THREADS, 6), Lanes, reverse_lanes, reverse_lanes, false)
ENTRIES_TO_4((THREADS, 6), Lanes, reverse_lanes_in_place, reverse_lanes, true)
ENTRIES_TO_2((THREADS, 8), Lanes, reverse_long_lanes, copy_long_lanes)
ENTRIES_TO_8((THREADS, 5), Lanes, reverse_long_lanes_in_place, swap_long_lanes)
