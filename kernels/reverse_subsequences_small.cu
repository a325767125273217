// REVERSE_SUBSEQUENCES for little work: a unit, or in place a pair of them, a thread, in at most three dimensions, the
// axis among them. The contract is in the header.
//
// Such a launch takes about as long as its instructions take to be fetched, and as what it waits for, so there are few
// instructions: no loops, one item a thread. PLAIN has fewest: for two dimensions, the axis among them, and lengths of 32
// bits. Why in place is right: as in reverse_subsequences_units.cu.
#include "reverse_subsequences.cuh"

template <class Unit>
__device__ __forceinline__ void copy_small(const Reverse& p) {
    const u32 n = static_cast<u32>(global_thread());
    if (n >= static_cast<u32>(p.items)) return;
    const Position at_item = locate_near(n, p);
    const u32 from = source(at_item.t, lane_length(at_item.length, p));
    *at(static_cast<Unit*>(p.out), at_item.out + at_item.t * p.axis_out_stride) =
        *at(static_cast<const Unit*>(p.in), at_item.in + from * p.axis_in_stride);
}

// The same without waiting for L before the item is loaded: what comes from source(t, L) goes there too, so it is L that
// says where an item is written. Where lanes lie side by side, neighbours would be written apart, which costs more than
// to read them apart.
template <class Unit, bool PLAIN>
__device__ __forceinline__ void send_small(const Reverse& p) {
    const u32 n = static_cast<u32>(global_thread());
    if (n >= static_cast<u32>(p.items)) return;
    const Position at_item = locate_near<PLAIN ? 2 : 3>(n, p);
    const Length length = load_length<!PLAIN>(at_item.length, p);
    const Unit unit = *at(static_cast<const Unit*>(p.in), at_item.in + at_item.t * p.axis_in_stride);
    const u32 to = source(at_item.t, clamp_length(length, p));
    *at(static_cast<Unit*>(p.out), at_item.out + to * p.axis_out_stride) = unit;
}

template <class Unit, bool PLAIN>
__device__ __forceinline__ void swap_small(const Reverse& p) {
    const u32 n = static_cast<u32>(global_thread());
    if (n >= static_cast<u32>(p.items)) return;
    const Position at_item = locate_near<PLAIN ? 2 : 3>(n, p);
    const u32 length = clamp_length(load_length<!PLAIN>(at_item.length, p), p);
    if (at_item.t >= length / 2) return;
    Unit* const lane = at(static_cast<Unit*>(p.out), at_item.out);
    Unit* const front = at(lane, at_item.t * p.axis_out_stride);
    Unit* const back = at(lane, (length - 1 - at_item.t) * p.axis_out_stride);
    const Unit from_front = *front, from_back = *back;
    *front = from_back;
    *back = from_front;
}

REVERSE_ENTRY(reverse_small_1, copy_small<u8>)
REVERSE_ENTRY(reverse_small_2, copy_small<u16>)
REVERSE_ENTRY(reverse_small_4, copy_small<u32>)
REVERSE_ENTRY(reverse_small_8, copy_small<u64>)
REVERSE_ENTRY(reverse_small_swap_1, (swap_small<u8, false>))
REVERSE_ENTRY(reverse_small_swap_2, (swap_small<u16, false>))
REVERSE_ENTRY(reverse_small_swap_4, (swap_small<u32, false>))
REVERSE_ENTRY(reverse_small_swap_8, (swap_small<u64, false>))
REVERSE_ENTRY(reverse_small_swap_16, (swap_small<uint4, false>))
REVERSE_ENTRY(reverse_small_send_1, (send_small<u8, false>))
REVERSE_ENTRY(reverse_small_send_2, (send_small<u16, false>))
REVERSE_ENTRY(reverse_small_send_4, (send_small<u32, false>))
REVERSE_ENTRY(reverse_small_send_8, (send_small<u64, false>))
REVERSE_ENTRY(reverse_small_send_16, (send_small<uint4, false>))
REVERSE_ENTRY(reverse_small_plain_swap_1, (swap_small<u8, true>))
REVERSE_ENTRY(reverse_small_plain_swap_2, (swap_small<u16, true>))
REVERSE_ENTRY(reverse_small_plain_swap_4, (swap_small<u32, true>))
REVERSE_ENTRY(reverse_small_plain_swap_8, (swap_small<u64, true>))
REVERSE_ENTRY(reverse_small_plain_swap_16, (swap_small<uint4, true>))
REVERSE_ENTRY(reverse_small_plain_send_1, (send_small<u8, true>))
REVERSE_ENTRY(reverse_small_plain_send_2, (send_small<u16, true>))
REVERSE_ENTRY(reverse_small_plain_send_4, (send_small<u32, true>))
REVERSE_ENTRY(reverse_small_plain_send_8, (send_small<u64, true>))
REVERSE_ENTRY(reverse_small_plain_send_16, (send_small<uint4, true>))
