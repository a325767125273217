// REVERSE_SUBSEQUENCES for long lanes side by side in memory, each with a length of its own, on GPUs with clusters of blocks
// of threads. The contract is in the header.
//
// A cluster takes a strip: `unit` bytes of every row, as a single block does in strips.cuh, but of more rows than its shared
// memory holds. Rows are dealt to the blocks. A block reads its rows of the input, puts each element into the shared memory
// of the block that has the row it goes to, and when all have done so writes its rows of the output. Every sector moves once,
// but those that two strips share.
//
// In shared memory lanes lie one behind the other, `pitch` bytes apart: neighbouring threads store neighbouring rows of
// one lane, and take those of all lanes, from banks of their own (plan).
//
// Why in place is right: a strip belongs to one cluster, which has read all of it at the barrier and writes after it.
// Target: compute_90
#include "reverse_subsequences.cuh"

static constexpr u32 CLUSTER_LOG = 3, CLUSTER = 1 << CLUSTER_LOG;  // blocks of a cluster (plan)
static constexpr u32 DEAL_LOG = 6, DEAL = 1 << DEAL_LOG;           // rows that a block gets at a time (plan)
static constexpr u32 CLUSTER_THREADS = 512;                        // of a block (plan)

// Slots that a thread reads before it stores the first, and windows, which are two slots; half as many of 16 elements.
static constexpr u32 SLOTS_AT_ONCE = 4, WINDOWS_AT_ONCE = 2;

#ifdef __CUDACC__
// Waits for all threads of the cluster, and for what they have stored.
__device__ __forceinline__ void sync_cluster() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" : : : "memory");
}

// Stores to the shared memory of a block of the cluster, where this one has `byte`.
template <class Element>
__device__ __forceinline__ void store_in(u32 block, u32 byte, Element value) {
    u32 address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(static_cast<u32>(__cvta_generic_to_shared(staged)) + byte), "r"(block));
    if constexpr (sizeof(Element) == 1) {
        asm volatile("st.shared::cluster.u8 [%0], %1;" : : "r"(address), "r"(static_cast<u32>(value)) : "memory");
    } else if constexpr (sizeof(Element) == 2) {
        asm volatile("st.shared::cluster.u16 [%0], %1;" : : "r"(address), "h"(value) : "memory");
    } else if constexpr (sizeof(Element) == 4) {
        asm volatile("st.shared::cluster.u32 [%0], %1;" : : "r"(address), "r"(value) : "memory");
    } else {
        asm volatile("st.shared::cluster.u64 [%0], %1;" : : "r"(address), "l"(value) : "memory");
    }
}
#endif

// Element k of a slot.
template <class Element>
__device__ __forceinline__ Element element_of(const uint4& slot, u32 k) {
    constexpr u32 W = sizeof(Element);
    if constexpr (W == 8) {
        return k == 0 ? static_cast<u64>(slot.y) << 32 | slot.x : static_cast<u64>(slot.w) << 32 | slot.z;
    } else {
        const u32 words[4] = {slot.x, slot.y, slot.z, slot.w};
        return static_cast<Element>(words[k * W / 4] >> (k * W % 4 * 8));
    }
}

// The strip of a cluster: its first lane in the row, and how many the row has.
struct Strip {
    u32 first_lane, lanes;
};

// Rows are dealt to the blocks DEAL at a time, so that all have as much to do also where only the first rows of a strip lie
// below lengths: [*, 16384, 512] in place f32 67 microseconds, with one run of rows each 77 (H200, 2026-11-21). Row n of this
// block; its threads take a multiple of DEAL rows of it at once, so that a thread's next is CLUSTER times as many further.
__device__ __forceinline__ u32 row_of(u32 n) {
    return n >> DEAL_LOG << (DEAL_LOG + CLUSTER_LOG) | blockIdx.x % CLUSTER << DEAL_LOG | (n & (DEAL - 1));
}
// The block that has row t, and which of its rows that is.
__device__ __forceinline__ u32 block_of(u32 t) { return t >> DEAL_LOG & (CLUSTER - 1); }
__device__ __forceinline__ u32 place_of(u32 t) {
    return t >> (DEAL_LOG + CLUSTER_LOG) << DEAL_LOG | (t & (DEAL - 1));
}

// Reads a block's rows of the strip and sends each element to where it is written from; in place, those below a length.
template <class Element, bool IN_PLACE, bool ALIGNED>
__device__ __forceinline__ void send(const Reverse& p, const Position& at_outer, const Strip& strip) {
    constexpr u32 W = sizeof(Element), N = 16 / W;
    constexpr u32 AT_ONCE = (ALIGNED ? SLOTS_AT_ONCE : WINDOWS_AT_ONCE) / (W == 1 ? 2 : 1);
    const u32 log = 31 - __clz(p.unit / 16), column = threadIdx.x & ((1u << log) - 1);
    const u32 step = CLUSTER_THREADS >> log << CLUSTER_LOG;
    const u32 lane = column * N;
    const u8* const in =
        reinterpret_cast<const u8*>(at(static_cast<const Element*>(p.in), at_outer.in + strip.first_lane + lane));
    const u64 stride = static_cast<u64>(p.axis_in_stride) * W;
    const Bounds bounds = input_bounds(p);
    u32 length[N], longest = 0;
#pragma unroll
    for (u32 k = 0; k < N; ++k) {
        length[k] = 0;
        if (lane + k < strip.lanes) {
            length[k] = lane_length(at_outer.length + (strip.first_lane + lane + k) * p.length_stride, p);
        }
        longest = max(longest, length[k]);
    }
    const u32 end = lane >= strip.lanes ? 0 : IN_PLACE ? longest : p.axis_size;
    // All windows but those at the tensor's ends have both slots in it.
    const bool inside = in - 15 >= bounds.begin && in + (end - 1) * stride + 32 <= bounds.end;
    sync_cluster();  // a block must run before others store to its shared memory
    for (u32 first = row_of(threadIdx.x >> log); first < end; first += AT_ONCE * step) {
        uint4 loaded[AT_ONCE], high[AT_ONCE];
        u32 shift[AT_ONCE];
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; ++i) {
            const u32 t = first + i * step;
            if (t >= end) continue;
            const u8* const from = in + t * stride;
            if (ALIGNED) {
                loaded[i] = *reinterpret_cast<const uint4*>(from);
                continue;
            }
            shift[i] = static_cast<u32>(reinterpret_cast<u64>(from) & 15);
            const u8* const slot = from - shift[i];
            loaded[i] = inside ? reinterpret_cast<const uint4*>(slot)[0] : load_slot(slot, bounds);
            high[i] = inside ? reinterpret_cast<const uint4*>(slot)[1] : load_slot(slot + 16, bounds);
        }
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; ++i) {
            const u32 t = first + i * step;
            if (t >= end) continue;
            if (!ALIGNED) loaded[i] = shift_slots(loaded[i], high[i], shift[i]);
#pragma unroll
            for (u32 k = 0; k < N; ++k) {
                if (IN_PLACE ? t >= length[k] : !ALIGNED && lane + k >= strip.lanes) continue;
                const u32 to = source(t, length[k]);  // which is its own inverse
                store_in(block_of(to), (lane + k) * p.pitch + place_of(to) * W, element_of<Element>(loaded[i], k));
            }
        }
    }
}

// From words that each hold 4 rows of one lane, words that each hold one row of 4 lanes; the same of 2, and of 1.
__device__ __forceinline__ void turn_words(const u32 (&lane)[4], u32 (&row)[4]) {
    const uint4 rows = transpose_bytes(lane);
    row[0] = rows.x, row[1] = rows.y, row[2] = rows.z, row[3] = rows.w;
}
__device__ __forceinline__ void turn_words(const u32 (&lane)[2], u32 (&row)[2]) {
    row[0] = __byte_perm(lane[0], lane[1], 0x5410), row[1] = __byte_perm(lane[0], lane[1], 0x7632);
}
template <class Word>
__device__ __forceinline__ void turn_words(const Word (&lane)[1], Word (&row)[1]) {
    row[0] = lane[0];
}

// Copying: writes a block's rows of the strip, which are whole words at aligned addresses.
template <class Element, class Word>
__device__ __forceinline__ void write_rows(const Reverse& p, const Position& at_outer, const Strip& strip) {
    constexpr u32 W = sizeof(Element), N = sizeof(Word) / W;
    const u32 log = 31 - __clz(p.unit / sizeof(Word)), lane = (threadIdx.x & ((1u << log) - 1)) * N;
    const u32 at_once = CLUSTER_THREADS >> log;
    if (lane >= strip.lanes) return;
    Element* const out = at(static_cast<Element*>(p.out), at_outer.out + strip.first_lane + lane);
    const u64 stride = static_cast<u64>(p.axis_out_stride);
    const u8* from = reinterpret_cast<const u8*>(staged) + lane * p.pitch + (threadIdx.x >> log) * sizeof(Word);
#pragma unroll 2
    for (u32 t = row_of((threadIdx.x >> log) * N); t < p.axis_size; t += at_once * N * CLUSTER) {
        Word of_lane[N], row[N];
#pragma unroll
        for (u32 k = 0; k < N; ++k) of_lane[k] = *reinterpret_cast<const Word*>(from + k * p.pitch);
        turn_words(of_lane, row);
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            if (t + k < p.axis_size) *reinterpret_cast<Word*>(out + (t + k) * stride) = row[k];
        }
        from += at_once * sizeof(Word);
    }
}

// Writes a block's rows of the strip by element; in place, what lies below the lengths. A thread has a lane, so that a
// sector is written by one warp at once.
template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void write_lanes(const Reverse& p, const Position& at_outer, const Strip& strip) {
    constexpr u32 W = sizeof(Element), N = sizeof(Word) / W;
    const u32 log = 31 - __clz(p.unit / W), lane = threadIdx.x & ((1u << log) - 1), at_once = CLUSTER_THREADS >> log;
    if (lane >= strip.lanes) return;
    u32 end = p.axis_size;
    if (IN_PLACE) end = lane_length(at_outer.length + (strip.first_lane + lane) * p.length_stride, p);
    Element* const out = at(static_cast<Element*>(p.out), at_outer.out + strip.first_lane + lane);
    const u8* from = reinterpret_cast<const u8*>(staged) + lane * p.pitch + (threadIdx.x >> log) * sizeof(Word);
#pragma unroll 2
    for (u32 t = row_of((threadIdx.x >> log) * N); t < end; t += at_once * N * CLUSTER) {
        const Word word = *reinterpret_cast<const Word*>(from);
#pragma unroll
        for (u32 k = 0; k < N; ++k) {
            if (t + k < end) out[static_cast<u64>(t + k) * p.axis_out_stride] = static_cast<Element>(word >> (k * W * 8));
        }
        from += at_once * sizeof(Word);
    }
}

// `dims` are the dimensions outside the row; the row itself, of `block` lanes, is cut into `parts` strips.
template <class Element, class Word, bool IN_PLACE>
__device__ __forceinline__ void reverse_clusters(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    const u32 n = blockIdx.x / CLUSTER;
    const u32 outer = divide(n, p.parts);
    const Position at_outer = locate(outer, p);
    Strip strip;
    strip.first_lane = (n - outer * p.parts.divisor) * (p.unit / W);
    strip.lanes = min(p.unit / W, p.block.divisor - strip.first_lane);
    const u64 in = reinterpret_cast<u64>(at(static_cast<const Element*>(p.in), at_outer.in + strip.first_lane));
    if (strip.lanes * W == p.unit && ((in | static_cast<u64>(p.axis_in_stride) * W) & 15) == 0) {
        send<Element, IN_PLACE, true>(p, at_outer, strip);
    } else {
        send<Element, IN_PLACE, false>(p, at_outer, strip);
    }
    sync_cluster();
    const u64 out = reinterpret_cast<u64>(at(static_cast<Element*>(p.out), at_outer.out + strip.first_lane));
    const u64 words = out | static_cast<u64>(p.axis_out_stride) * W | strip.lanes * W;
    if (!IN_PLACE && words % sizeof(Word) == 0) {
        write_rows<Element, Word>(p, at_outer, strip);
    } else {
        write_lanes<Element, Word, IN_PLACE>(p, at_outer, strip);
    }
}

#define CLUSTER_ENTRY(name, body)                                                                              \
    extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(CLUSTER_THREADS, 2)             \
        name(const __grid_constant__ Reverse p) {                                                              \
        body(p);                                                                                               \
    }

CLUSTER_ENTRY(reverse_clusters_1, (reverse_clusters<u8, u32, false>))
CLUSTER_ENTRY(reverse_clusters_2, (reverse_clusters<u16, u32, false>))
CLUSTER_ENTRY(reverse_clusters_4, (reverse_clusters<u32, u32, false>))
CLUSTER_ENTRY(reverse_clusters_8, (reverse_clusters<u64, u64, false>))
CLUSTER_ENTRY(reverse_clusters_swap_1, (reverse_clusters<u8, u32, true>))
CLUSTER_ENTRY(reverse_clusters_swap_2, (reverse_clusters<u16, u32, true>))
CLUSTER_ENTRY(reverse_clusters_swap_4, (reverse_clusters<u32, u32, true>))
CLUSTER_ENTRY(reverse_clusters_swap_8, (reverse_clusters<u64, u64, true>))
