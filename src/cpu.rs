//! The CPU backend: plain loops over plans, in safe Rust, on the calling thread. It serves machines with no GPU,
//! and is what the tests hold the GPU to.

mod byte_lanes;
mod fill_value_sequence;
mod reverse_subsequences;
mod tile;

use crate::binding::{BindingTable, BufferBinding};
use crate::buffer::lock;
use crate::operator::CompiledOperator;
use crate::plan::Plan;

/// Runs a bound operator on the CPU. The binding rules make the ranges aligned, and disjoint or the same.
pub(crate) fn dispatch(table: &BindingTable) {
    let output = table.output();
    let Some(output_memory) = output.buffer.host() else {
        return; // a CPU operator binds CPU buffers only (binding.device)
    };
    match table.operator().plan() {
        Plan::FillValueSequence(plan) => {
            let mut memory = lock(output_memory);
            fill_value_sequence::run(plan, &mut memory.bytes()[output.offset as usize..]);
        }
        Plan::ReverseSubsequences(plan) => {
            use reverse_subsequences::{run, Source};
            let [input, lengths] = table.inputs() else {
                return; // two inputs are bound (binding.count)
            };
            // A copy, so that at most two buffers are locked at once. Lengths are few beside the elements.
            let lengths = lengths_of(lengths, table.operator());
            let lengths = bytemuck::cast_slice(&lengths);
            let at = output.offset as usize;
            if table.in_place() {
                run(plan, Source::InPlace, lengths, &mut lock(output_memory).bytes()[at..]);
            } else if input.buffer.same_as(&output.buffer) {
                let mut memory = lock(output_memory);
                let (from, bytes) = (input.offset as usize, memory.bytes());
                if from < at {
                    let (low, high) = bytes.split_at_mut(at);
                    run(plan, Source::Input(&low[from..]), lengths, high);
                } else {
                    let (low, high) = bytes.split_at_mut(from);
                    run(plan, Source::Input(high), lengths, &mut low[at..]);
                }
            } else if let Some(input_memory) = input.buffer.host() {
                // Two threads that each hold one of two buffers and want the other would wait for ever:
                // all lock in the order of the addresses.
                let input_first = std::ptr::from_ref(input_memory) < std::ptr::from_ref(output_memory);
                let first = lock(if input_first { input_memory } else { output_memory });
                let second = lock(if input_first { output_memory } else { input_memory });
                let (mut from, mut to) = if input_first { (first, second) } else { (second, first) };
                run(plan, Source::Input(&from.bytes()[input.offset as usize..]), lengths, &mut to.bytes()[at..]);
            }
        }
    }
}

/// The bytes of a SequenceLengthsTensor, aligned for either type of length.
fn lengths_of(binding: &BufferBinding, operator: &CompiledOperator) -> Vec<u128> {
    let total = operator.signature().inputs().last().map_or(0, |(_, desc)| desc.total_tensor_size_in_bytes) as usize;
    let mut copy = vec![0u128; total.div_ceil(16)];
    if let Some(memory) = binding.buffer.host() {
        let mut memory = lock(memory);
        let bytes = &memory.bytes()[binding.offset as usize..][..total];
        bytemuck::cast_slice_mut(&mut copy)[..total].copy_from_slice(bytes);
    }
    copy
}

/// Visits every coordinate of `sizes` in row-major order, with its offsets in `N` tensors of those strides.
fn for_each<const N: usize>(sizes_and_strides: &[(u32, [u32; N])], mut visit: impl FnMut([usize; N])) {
    let Some(((inner, inner_strides), outer)) = sizes_and_strides.split_last() else {
        return visit([0; N]);
    };
    let mut coordinate = vec![0; outer.len()];
    let mut row = [0; N];
    loop {
        let mut at = row;
        for _ in 0..*inner {
            visit(at);
            (0..N).for_each(|n| at[n] += inner_strides[n] as usize);
        }
        let Some(d) = (0..outer.len()).rev().find(|&d| coordinate[d] + 1 < outer[d].0) else {
            return;
        };
        coordinate[d] += 1;
        coordinate[d + 1..].fill(0);
        let offset = |n| {
            outer.iter().zip(&coordinate).map(|((_, strides), &c): (_, &u32)| c as usize * strides[n] as usize).sum()
        };
        row = std::array::from_fn(offset);
    }
}
