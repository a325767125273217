// REVERSE_SUBSEQUENCES for many small groups: in place, and copying where lanes or rows are no multiple of 16 bytes. The
// contract is in the header.
//
// Groups are read into shared memory and turned around there, pair by pair: elements of a lane, or rows of a block unit by
// unit. At last they are written as they lie, 16 bytes at a time. A team of 2^team_log threads takes a group.
//
// Short lanes in place are not turned there: a thread writes an element from where it comes, so that a sector is written
// by one warp at once, however many of its lanes end in it.
//
// Why in place is right: a group belongs to one block of threads, or one team of them, which reads all of it before a
// barrier and writes after it. Slots are read where they hold a byte below a length, or two lanes; what else they hold
// is not used.
// Bytes at or past the length are not written.
#include "staged_groups.cuh"

// Turns a group around in shared memory, of which `length` bytes are to be. Rows are of one unit in a lane.
template <class Unit, bool LANES>
__device__ __forceinline__ void turn_group(u8* group, int length, const Reverse& p) {
    const int row = LANES ? static_cast<int>(sizeof(Unit)) : static_cast<int>(p.block.divisor);
    const int step = row << p.team_log;
    int front = static_cast<int>(threadIdx.x & ((1u << p.team_log) - 1)) * row, back = length - row - front;
    for (; front < back; front += step, back -= step) {
#pragma unroll 1
        for (int c = 0; c < row; c += sizeof(Unit)) {
            Unit* const a = reinterpret_cast<Unit*>(group + front + c);
            Unit* const b = reinterpret_cast<Unit*>(group + back + c);
            const Unit from_a = *a, from_b = *b;
            *a = from_b;
            *b = from_a;
        }
    }
}

// ---- Copying ------------------------------------------------------------------------------------------------
template <class Unit, bool LANES>
__device__ __forceinline__ void copy_groups(const Reverse& p) {
    const Stage s = stage<false>(p, LANES ? sizeof(Unit) : p.block.divisor);
    for (u32 g = threadIdx.x >> p.team_log; g < s.groups; g += THREADS >> p.team_log) {
        u8* const group = reinterpret_cast<u8*>(staged) + s.begin + g * p.group.divisor;
        turn_group<Unit, LANES>(group, s.lengths[g], p);
    }
    __syncthreads();
    const int out_lead = static_cast<int>(reinterpret_cast<u64>(s.out) & 15);
    const bool alike = (s.begin & 15) == static_cast<u32>(out_lead);
    for (int x = static_cast<int>(threadIdx.x * 16) - out_lead; x < s.span; x += THREADS * 16) {
        const uint4 v = alike ? staged[(s.begin + x) / 16] : staged_window(s.begin + x);
        store_part<sizeof(Unit)>(s.out + x, v, -x, min(16, s.span - x));
    }
}

// ---- Lanes, in place ----------------------------------------------------------------------------------------
template <class Element>
__device__ __forceinline__ void swap_lanes(const Reverse& p) {
    constexpr u32 W = sizeof(Element);
    const Stage s = stage<true>(p, W);
    // `parts` are the elements of a lane. Every step of THREADS elements is so many lanes and so many elements more.
    const u32 step_lanes = divide(THREADS, p.parts), step = THREADS - step_lanes * p.parts.divisor;
    u32 lane = divide(threadIdx.x, p.parts), i = threadIdx.x - lane * p.parts.divisor;
    const u8* at_element = reinterpret_cast<const u8*>(staged) + s.begin + threadIdx.x * W;
    Element* out = reinterpret_cast<Element*>(s.out) + threadIdx.x;
    for (; lane < s.groups; at_element += THREADS * W, out += THREADS) {
        const int rest = s.lengths[lane] - static_cast<int>((i + 1) * W);  // from the lane's begin to where it comes from
        if (rest >= 0) *out = *reinterpret_cast<const Element*>(at_element + rest - static_cast<int>(i * W));
        lane += step_lanes;
        i += step;
        if (i >= p.parts.divisor) i -= p.parts.divisor, ++lane;
    }
}

// ---- Blocks, in place ---------------------------------------------------------------------------------------
// A team takes one group, of which it reads, turns and writes no more than what is below the length.
template <class Unit>
__device__ __forceinline__ void swap_blocks(const Reverse& p) {
    const Team team = team_of(p);
    const u32 g = team.index;
    uint4* const slots = staged + team.in_block * p.pitch;
    u8* const group = static_cast<u8*>(p.out) + static_cast<u64>(g) * p.group.divisor;
    const int lead = static_cast<int>(reinterpret_cast<u64>(group) & 15);
    int length = 0;
    if (g < p.items) {
        const u32 rows = lane_length(locate(g, p).length, p);
        if (rows > 1) length = static_cast<int>(rows * p.block.divisor);  // one row stays where it is
        const Bounds bounds = {static_cast<const u8*>(p.out), static_cast<const u8*>(p.out) + p.in_bytes};
        const u32 count = length == 0 ? 0 : (lead + length + 15) / 16;
        read_run(slots, group - lead, count, team, bounds);
    }
    sync_team(team);
    turn_group<Unit, false>(reinterpret_cast<u8*>(slots) + lead, length, p);
    sync_team(team);
    for (int x = static_cast<int>(team.thread * 16) - lead; x < length; x += static_cast<int>(team.size * 16)) {
        store_part<sizeof(Unit)>(group + x, slots[(x + lead) / 16], -x, length - x);
    }
}

REVERSE_ENTRY(reverse_turned_lanes_1, (copy_groups<u8, true>))
REVERSE_ENTRY(reverse_turned_lanes_2, (copy_groups<u16, true>))
REVERSE_ENTRY(reverse_turned_lanes_4, (copy_groups<u32, true>))
REVERSE_ENTRY(reverse_turned_lanes_8, (copy_groups<u64, true>))
REVERSE_ENTRY(reverse_turned_lanes_swap_1, swap_lanes<u8>)
REVERSE_ENTRY(reverse_turned_lanes_swap_2, swap_lanes<u16>)
REVERSE_ENTRY(reverse_turned_lanes_swap_4, swap_lanes<u32>)
REVERSE_ENTRY(reverse_turned_lanes_swap_8, swap_lanes<u64>)
REVERSE_ENTRY(reverse_turned_rows_1, (copy_groups<u8, false>))
REVERSE_ENTRY(reverse_turned_rows_2, (copy_groups<u16, false>))
REVERSE_ENTRY(reverse_turned_rows_4, (copy_groups<u32, false>))
REVERSE_ENTRY_BLOCKS(6, reverse_turned_rows_swap_1, swap_blocks<u8>)
REVERSE_ENTRY_BLOCKS(6, reverse_turned_rows_swap_2, swap_blocks<u16>)
REVERSE_ENTRY_BLOCKS(6, reverse_turned_rows_swap_4, swap_blocks<u32>)
