// REVERSE_SUBSEQUENCES for few lanes side by side, each with a length of its own, in groups that lie one behind the other in
// memory. The contract is in the header.
//
// A group is the rows of its lanes. A block of threads takes so many whole groups as fit its shared memory, reads them as
// they lie, and writes every element from where it comes.
//
// Why in place is right: a group belongs to one block of threads, which reads before a barrier and writes after it. Slots
// are read up to the longest lane of their group; what lies there at or past a lane's length is not used and not written.
#include "reverse_subsequences.cuh"

// The groups of a block of threads. In shared memory lie the lengths of all lanes, then where each group's longest lane ends,
// then the groups at the alignment they have in memory.
struct Groups {
    u8* out;
    const u32* lengths;
    const u8* elements;  // the first group's first, in shared memory
    u32 rows;            // of all groups
};

// The slots of so many bytes.
__device__ __forceinline__ u32 slots_of(u32 bytes) { return (bytes + 15) / 16; }

template <class Element, bool IN_PLACE>
__device__ __forceinline__ Groups read_groups(const Reverse& p) {
    const u32 first = blockIdx.x * p.together, columns = p.block.divisor;
    const u32 groups = min(p.together, static_cast<u32>(p.items) - first);
    const u64 offset = static_cast<u64>(first) * p.group.divisor;
    u32* const lengths = reinterpret_cast<u32*>(staged);
    const u32 ends_at = slots_of(p.together * columns * 4), slots_at = ends_at + (IN_PLACE ? slots_of(p.together * 4) : 0);
    u32* const ends = reinterpret_cast<u32*>(staged + ends_at);
    if (IN_PLACE) {
        for (u32 g = threadIdx.x; g < groups; g += THREADS) ends[g] = 0;
        __syncthreads();
    }
    const u32 lanes = groups * columns;
    const auto load_length_of = [&](u32 i) {
        const u32 g = divide(i, p.block);
        return load_length(locate(first + g, p).length + (i - g * columns) * p.length_stride, p);
    };
    const auto keep = [&](u32 i, Length loaded) {
        u32 length = clamp_length(loaded, p);
        if (IN_PLACE && length == 1) length = 0;  // one element stays where it is
        lengths[i] = length;
        const u32 g = divide(i, p.block);
        if (IN_PLACE && length != 0) atomicMax(&ends[g], length * columns * static_cast<u32>(sizeof(Element)));
    };
    // Copying, a thread's first length is on its way together with its first slots.
    const Length loaded = threadIdx.x < lanes ? load_length_of(threadIdx.x) : Length{0, 0};
    if (IN_PLACE && threadIdx.x < lanes) keep(threadIdx.x, loaded);
    for (u32 i = threadIdx.x + THREADS; i < lanes; i += THREADS) keep(i, load_length_of(i));
    if (IN_PLACE) __syncthreads();

    const u8* const in = static_cast<const u8*>(p.in) + offset;
    const u32 lead = static_cast<u32>(reinterpret_cast<u64>(in) & 15);
    const u32 span = groups * p.group.divisor;
    // A slot is read where it, or what of the next group lies in it, holds something below a group's end.
    const auto wanted = [&](u32 slot) {
        if (!IN_PLACE) return true;
        const u32 begin = slot == 0 ? 0 : slot * 16 - lead, last = min(slot * 16 + 15 - lead, span - 1);
        const u32 g = divide(begin, p.group), last_group = divide(last, p.group);
        return begin < g * p.group.divisor + ends[g] || last_group != g;
    };
    const Team all = {THREADS, threadIdx.x, 0, 0};
    read_wanted<4>(staged + slots_at, in - lead, slots_of(lead + span), all, input_bounds(p), wanted);
    if (!IN_PLACE && threadIdx.x < lanes) keep(threadIdx.x, loaded);
    __syncthreads();
    return {static_cast<u8*>(p.out) + offset, lengths, reinterpret_cast<const u8*>(staged + slots_at) + lead,
            groups * p.axis_size};
}

// A thread keeps its column and goes down the rows of all groups, so many at once as the block's threads have room for: they
// write neighbouring elements.
template <class Element, bool IN_PLACE>
__device__ __forceinline__ void reverse_columns(const Reverse& p) {
    const Groups s = read_groups<Element, IN_PLACE>(p);
    const u32 columns = p.block.divisor, rows_at_once = divide(THREADS, p.block);
    const u32 first = divide(threadIdx.x, p.block), column = threadIdx.x - first * columns;
    if (first >= rows_at_once) return;
    u32 group = divide(first, p.parts), t = first - group * p.axis_size;
    if (first >= s.rows) return;
    u32 length = s.lengths[group * columns + column];
    const Element* from = reinterpret_cast<const Element*>(s.elements) + group * p.axis_size * columns + column;
    Element* out = reinterpret_cast<Element*>(s.out) + threadIdx.x;
#pragma unroll 4
    for (u32 row = first; row < s.rows; row += rows_at_once, out += rows_at_once * columns, t += rows_at_once) {
        if (t >= p.axis_size) {  // in a later group
            const u32 on = divide(t, p.parts);
            t -= on * p.axis_size;
            group += on;
            from += on * p.axis_size * columns;
            length = s.lengths[group * columns + column];
        }
        if (!IN_PLACE || t < length) *out = from[source(t, length) * columns];
    }
}

REVERSE_ENTRY(reverse_columns_1, (reverse_columns<u8, false>))
REVERSE_ENTRY(reverse_columns_2, (reverse_columns<u16, false>))
REVERSE_ENTRY(reverse_columns_4, (reverse_columns<u32, false>))
REVERSE_ENTRY(reverse_columns_8, (reverse_columns<u64, false>))
REVERSE_ENTRY(reverse_columns_swap_1, (reverse_columns<u8, true>))
REVERSE_ENTRY(reverse_columns_swap_2, (reverse_columns<u16, true>))
REVERSE_ENTRY(reverse_columns_swap_4, (reverse_columns<u32, true>))
REVERSE_ENTRY(reverse_columns_swap_8, (reverse_columns<u64, true>))
