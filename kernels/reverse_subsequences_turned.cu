// REVERSE_SUBSEQUENCES for many small groups: in place, and copying where lanes or rows are no multiple of 16 bytes. The
// contract is in the header.
//
// Groups are read into shared memory and turned around there, pair by pair: elements of a lane, or rows of a block unit by
// unit. At last they are written as they lie, 16 bytes at a time. A team of 2^team_log threads takes a group.
//
// Short lanes in place are not turned there: a thread writes an element from where it comes, which spares a barrier and
// the slots that lengths cut.
//
// Why in place is right: a group belongs to one block of threads, or one team of them, which reads all of it before a
// barrier and writes after it. Slots are read where they hold a byte below a length, or two lanes; what else they hold
// is not used. Bytes at or past the length are not written.
#include "staged_groups.cuh"
#include "turn.cuh"

// ---- Copying ------------------------------------------------------------------------------------------------
template <class Unit, bool LANES>
__device__ __forceinline__ void copy_groups(const Reverse& p) {
    const Stage s = stage<false>(p, LANES ? sizeof(Unit) : p.block.divisor);
    const u32 team = 1u << p.team_log;
    const Turn<Unit, LANES> turn_group(p, threadIdx.x & (team - 1), team);
    for (u32 g = threadIdx.x >> p.team_log; g < s.groups; g += THREADS >> p.team_log) {
        turn_group(reinterpret_cast<u8*>(staged) + s.begin + g * p.group.divisor, s.lengths[g]);
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
    constexpr int W = sizeof(Element);
    const Stage s = stage<true>(p, W);
    const int first = static_cast<int>(threadIdx.x & ((1u << p.team_log) - 1)) * W, step = W << p.team_log;
    for (u32 g = threadIdx.x >> p.team_log; g < s.groups; g += THREADS >> p.team_log) {
        const u32 begin = g * p.group.divisor;
        const int length = s.lengths[g];
        const u8* from = reinterpret_cast<const u8*>(staged) + s.begin + begin + (length - W - first);
        u8* const out = s.out + begin;
#pragma unroll 1
        for (int x = first; x < length; x += step, from -= step) {
            *reinterpret_cast<Element*>(out + x) = *reinterpret_cast<const Element*>(from);
        }
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
        const u32 count = length == 0 ? 0 : (lead + length + 15) / 16;
        read_run(slots, group - lead, count, team, input_bounds(p));
    }
    sync_team(team);
    Turn<Unit, false>(p, team.thread, team.size)(reinterpret_cast<u8*>(slots) + lead, length);
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
