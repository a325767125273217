// REVERSE_SUBSEQUENCES for long interleaved lanes, each with its own length, on GPUs with thread block clusters. See
// reverse.cuh for the contract.
//
//   out[t][j] = in[source(t, L[j])][j]      row t, lane j
//
//            strip 0      strip 1
//   row 0  | l0 l1 ... | l8 l9 ... |     rows   0 ..  31 belong to thread block 0 of the cluster
//   row 1  | l0 l1 ... | l8 l9 ... |     rows  32 ..  63 belong to thread block 1
//   ...                                  rows 256 .. 287 belong to thread block 0 again
//
// Algorithm
//   A cluster moves a strip, `strip_bytes` of every row, as one thread block does in reverse_strips.cu, but with more
//   rows than the shared memory of one thread block can hold. Each thread block reads its rows of the input and stores
//   every element into the shared memory of the thread block that owns the row to which the element goes. After the
//   cluster's barrier each thread block writes its rows of the output. Every sector is read and written once, except
//   sectors that two strips share.
//
// Mapping of threads to columns
//   A thread reads one 16-byte column of the strip, down the rows of its thread block. It writes one lane, or one word
//   of neighbouring lanes. In shared memory a lane is contiguous, and lanes are `lane_pitch` bytes apart. Neighbouring
//   threads store to neighbouring rows of one lane and read from all lanes, without bank conflicts.
//
// Variants: aligned loads (whole strips of whole vectors) and unaligned loads; output rows are written word by word or,
// in place and at odd addresses, element by element.
//
// In-place safety: a strip belongs to one cluster, which reads all of it before the cluster's barrier and writes only
// after it. In place it writes no element at or past the length of its lane.
// Target: compute_90
#include "staging.cuh"

using namespace clusters;

static constexpr u32 CLUSTER_LOG = 3, DEAL_LOG = 5;
static_assert(CLUSTER == 1 << CLUSTER_LOG && DEAL == 1 << DEAL_LOG, "powers of two");

// Loads that a thread issues before it stores the first. Half as many if a vector has 16 elements.
static constexpr u32 LOADS_IN_FLIGHT = 4;
static constexpr u32 LOADS_IN_FLIGHT_UNALIGNED = 2;

#ifdef __CUDACC__
// Waits until all threads of the cluster have arrived: at the beginning, or with their stores.
__device__ __forceinline__ void arrive_at_begin() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory");
}
__device__ __forceinline__ void arrive_with_stores() { asm volatile("barrier.cluster.arrive.aligned;" : : : "memory"); }
__device__ __forceinline__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.aligned;" : : : "memory"); }

// The generic address of this thread block's shared memory. The shuffle changes nothing, but its result stays in
// registers. The compiler would otherwise read special registers for each store, which takes longer than the store.
__device__ __forceinline__ u64 shared_address() { return __shfl_sync(~0u, reinterpret_cast<u64>(smem), 0); }

// Byte `byte` of the shared memory of a thread block of the cluster. `address` is that of this one.
__device__ __forceinline__ u8* in_block(u64 address, u32 block, u32 byte) {
    u64 mapped;
    asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(address), "r"(block));
    return reinterpret_cast<u8*>(mapped) + byte;
}
#endif

// Element k of a vector.
template <class Element>
__device__ __forceinline__ Element element_of(const uint4& v, u32 k) {
    constexpr u32 W = sizeof(Element);
    if constexpr (W == 8) {
        return k == 0 ? static_cast<u64>(v.y) << 32 | v.x : static_cast<u64>(v.w) << 32 | v.z;
    } else {
        const u32 words[4] = {v.x, v.y, v.z, v.w};
        return static_cast<Element>(words[k * W / 4] >> (k * W % 4 * 8));
    }
}

// A cluster's strip: its first lane in the row, and how many lanes of the row it has.
struct ClusterStrip {
    u32 first_lane, lanes;
};

// Rows are dealt to the thread blocks DEAL at a time, so that all have the same work even if only the first rows of a
// strip are below lengths (TUNING.md: DEAL). `row_of` gives row n of this thread block. Its threads take a multiple of
// DEAL rows at once, so a thread's next row is CLUSTER times as far away.
__device__ __forceinline__ u32 row_of(u32 n) {
    return n >> DEAL_LOG << (DEAL_LOG + CLUSTER_LOG) | blockIdx.x % CLUSTER << DEAL_LOG | (n & (DEAL - 1));
}
// The thread block that has row t, and the place of that row among its rows.
__device__ __forceinline__ u32 block_of(u32 t) { return t >> DEAL_LOG & (CLUSTER - 1); }
__device__ __forceinline__ u32 place_of(u32 t) { return t >> (DEAL_LOG + CLUSTER_LOG) << DEAL_LOG | (t & (DEAL - 1)); }

// Reads this thread block's rows of the strip and scatters their elements to the thread blocks that write them. In
// place, it reads only rows that are below a length.
template <class Element, bool IN_PLACE, bool ALIGNED>
__device__ __forceinline__ void scatter(const Clusters& p, const Position& at_outer, const ClusterStrip& strip) {
    constexpr u32 W = sizeof(Element), N = 16 / W;
    constexpr u32 READ = (ALIGNED ? LOADS_IN_FLIGHT : LOADS_IN_FLIGHT_UNALIGNED) / (W == 1 ? 2 : 1);
    const u32 log = log2_of(p.strip_bytes / 16), column = threadIdx.x & ((1u << log) - 1);
    const u32 step = CLUSTER_THREADS >> log << CLUSTER_LOG;
    const u32 lane = column * N;
    const u8* const in =
        reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.r.input), at_outer.in + strip.first_lane + lane));
    const u64 stride = static_cast<u64>(p.r.axis_in_stride) * W;
    const Bounds bounds = input_bounds(p.r);
    u32 length[N], longest = 0;
#pragma unroll
    for (u32 k = 0; k < N; ++k) {
        length[k] = 0;
        if (lane + k < strip.lanes) {
            length[k] = lane_length(at_outer.length + (strip.first_lane + lane + k) * p.length_stride, p.r);
        }
        longest = max(longest, length[k]);
    }
    const u32 end = lane >= strip.lanes ? 0 : IN_PLACE ? longest : p.r.axis_size;
    const u64 address = shared_address();
    const auto put = [&](u32 t, const uint4& v) {
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            if (IN_PLACE ? t >= length[k] : !ALIGNED && lane + k >= strip.lanes) continue;
            const u32 to = source(t, length[k]);  // also where t goes to: it is its own inverse
            u8* const place = in_block(address, block_of(to), (lane + k) * p.lane_pitch + place_of(to) * W);
            *reinterpret_cast<Element*>(place) = element_of<Element>(v, k);
        }
    };
    const RowRange inside = ALIGNED ? RowRange{0, end} : rows_inside(in, stride, end, bounds);
    const u32 begin = row_of(threadIdx.x >> log);
    const u8* from = in + begin * stride;
    wait_for_cluster();  // a thread block must be running before others store to its shared memory
    for (u32 first = begin; first < end; first += READ * step) {
        uint4 loaded[READ], high[READ];
        u32 shift[READ];
#pragma unroll
        for (u32 i = 0; i < READ; ++i, from += step * stride) {
            if (!inside.has(first + i * step)) continue;
            shift[i] = ALIGNED ? 0 : lead_of(from);
            loaded[i] = reinterpret_cast<const uint4*>(from - shift[i])[0];
            if (!ALIGNED) high[i] = reinterpret_cast<const uint4*>(from - shift[i])[1];
        }
        issue_loads();
#pragma unroll
        for (u32 i = 0; i < READ; ++i) {
            if (!inside.has(first + i * step)) continue;
            if (!ALIGNED) loaded[i] = shift_pair(loaded[i], high[i], shift[i]);
            put(first + i * step, loaded[i]);
        }
    }
    if (inside.begin == 0 && inside.end == end) return;
#pragma unroll 1
    for (u32 t = begin; t < end; t += step) {
        if (!inside.has(t)) put(t, load_unaligned(in + t * stride, bounds));
    }
}

// Turns words that each hold 4 rows of one lane into words that each hold one row of 4 lanes. The same for 2, and for
// 1.
__device__ __forceinline__ void transpose_words(const u32 (&lane)[4], u32 (&row)[4]) {
    const uint4 rows = transpose_bytes(lane);
    row[0] = rows.x, row[1] = rows.y, row[2] = rows.z, row[3] = rows.w;
}
__device__ __forceinline__ void transpose_words(const u32 (&lane)[2], u32 (&row)[2]) {
    row[0] = __byte_perm(lane[0], lane[1], 0x5410), row[1] = __byte_perm(lane[0], lane[1], 0x7632);
}
template <class Word>
__device__ __forceinline__ void transpose_words(const Word (&lane)[1], Word (&row)[1]) {
    row[0] = lane[0];
}

// Out of place: writes this thread block's rows of the strip, in whole words at aligned addresses.
template <class Element, class Word>
__device__ __forceinline__ void write_rows(const Clusters& p, const Position& at_outer, const ClusterStrip& strip) {
    constexpr u32 W = sizeof(Element), N = sizeof(Word) / W;
    const u32 log = log2_of(p.strip_bytes / sizeof(Word)), lane = (threadIdx.x & ((1u << log) - 1)) * N;
    const u32 at_once = CLUSTER_THREADS >> log;
    if (lane >= strip.lanes) return;
    Element* const out = at(static_cast<Element*>(p.r.out), at_outer.out + strip.first_lane + lane);
    const u64 stride = static_cast<u64>(p.r.axis_out_stride);
    const u8* from = reinterpret_cast<const u8*>(smem) + lane * p.lane_pitch + (threadIdx.x >> log) * sizeof(Word);
    const u32 step = at_once * N * CLUSTER;
    u32 t = row_of((threadIdx.x >> log) * N);
    Element* to = out + t * stride;
#pragma unroll 2
    for (; t < p.r.axis_size; t += step, to += step * stride) {
        Word of_lane[N], row[N];
#pragma unroll
        for (u32 k = 0; k < N; ++k) of_lane[k] = *reinterpret_cast<const Word*>(from + k * p.lane_pitch);
        transpose_words(of_lane, row);
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            if (t + k < p.r.axis_size) *reinterpret_cast<Word*>(to + k * stride) = row[k];
        }
        from += at_once * sizeof(Word);
    }
}

// Writes this thread block's rows of the strip element by element; in place, only what is below the lengths. A thread
// keeps one lane, so that one warp writes a whole sector at once.
template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void write_lanes(const Clusters& p, const Position& at_outer, const ClusterStrip& strip) {
    constexpr u32 W = sizeof(Element), N = sizeof(Word) / W;
    const u32 log = log2_of(p.strip_bytes / W), lane = threadIdx.x & ((1u << log) - 1),
              at_once = CLUSTER_THREADS >> log;
    if (lane >= strip.lanes) return;
    u32 end = p.r.axis_size;
    if (IN_PLACE) end = lane_length(at_outer.length + (strip.first_lane + lane) * p.length_stride, p.r);
    Element* const out = at(static_cast<Element*>(p.r.out), at_outer.out + strip.first_lane + lane);
    const u64 stride = p.r.axis_out_stride;
    const u8* from = reinterpret_cast<const u8*>(smem) + lane * p.lane_pitch + (threadIdx.x >> log) * sizeof(Word);
    const u32 step = at_once * N * CLUSTER;
    u32 t = row_of((threadIdx.x >> log) * N);
    Element* to = out + t * stride;
#pragma unroll 2
    for (; t < end; t += step, to += step * stride) {
        const Word word = *reinterpret_cast<const Word*>(from);
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            if (t + k < end) to[k * stride] = static_cast<Element>(word >> (k * W * 8));
        }
        from += at_once * sizeof(Word);
    }
}

template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void reverse_clusters(const Clusters& p) {
    constexpr u32 W = sizeof(Element);
    arrive_at_begin();
    const u32 n = blockIdx.x / CLUSTER;
    const u32 outer = divide(n, p.strips_per_row);
    const Position at_outer = locate(outer, p.r);
    ClusterStrip strip;
    strip.first_lane = (n - outer * p.strips_per_row.divisor) * (p.strip_bytes / W);
    strip.lanes = min(p.strip_bytes / W, p.row_lanes - strip.first_lane);
    const u64 in = reinterpret_cast<u64>(at(static_cast<const Element*>(p.r.input), at_outer.in + strip.first_lane));
    if (strip.lanes * W == p.strip_bytes && ((in | static_cast<u64>(p.r.axis_in_stride) * W) & 15) == 0) {
        scatter<Element, IN_PLACE, true>(p, at_outer, strip);
    } else {
        scatter<Element, IN_PLACE, false>(p, at_outer, strip);
    }
    arrive_with_stores();
    wait_for_cluster();
    const u64 out = reinterpret_cast<u64>(at(static_cast<Element*>(p.r.out), at_outer.out + strip.first_lane));
    const u64 words = out | static_cast<u64>(p.r.axis_out_stride) * W | strip.lanes * W;
    if (!IN_PLACE && words % sizeof(Word) == 0) {
        write_rows<Element, Word>(p, at_outer, strip);
    } else {
        write_lanes<Element, Word, IN_PLACE>(p, at_outer, strip);
    }
}

#define CLUSTER_BOUNDS (CLUSTER_THREADS, 2) __cluster_dims__(CLUSTER, 1, 1)
ENTRIES_TO_4(CLUSTER_BOUNDS, Clusters, reverse_clusters, reverse_clusters, u32, false)
ENTRY(CLUSTER_BOUNDS, Clusters, reverse_clusters_8, reverse_clusters<u64, u64, false>)
ENTRIES_TO_4(CLUSTER_BOUNDS, Clusters, reverse_clusters_in_place, reverse_clusters, u32, true)
ENTRY(CLUSTER_BOUNDS, Clusters, reverse_clusters_in_place_8, reverse_clusters<u64, u64, true>)
