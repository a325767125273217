//! REVERSE_SUBSEQUENCES on the CPU.

use bytemuck::Pod;

use super::fill_value_sequence::typed;
use super::{for_each_coordinate, offset};
use crate::plan::reverse_subsequences::{Dimension, Plan};

/// Where the elements come from.
pub(crate) enum Source<'a> {
    /// The bytes of an input tensor of its own.
    Input(&'a [u8]),
    /// The output tensor itself.
    InPlace,
}

/// Reverses into the bytes of the output tensor. All slices begin at their tensor's first element and are
/// aligned to it.
pub(crate) fn run(plan: &Plan, source: Source<'_>, lengths: &[u8], out: &mut [u8]) {
    match plan.width {
        1 => run_typed::<u8>(plan, source, lengths, out),
        2 => run_typed::<u16>(plan, source, lengths, out),
        4 => run_typed::<u32>(plan, source, lengths, out),
        _ => run_typed::<u64>(plan, source, lengths, out),
    }
}

fn run_typed<T: Pod>(plan: &Plan, source: Source<'_>, lengths: &[u8], out: &mut [u8]) {
    match source {
        Source::Input(input) => copy::<T>(plan, whole(input), lengths, typed(out)),
        Source::InPlace => swap::<T>(plan, lengths, typed(out)),
    }
}

/// The whole elements of `bytes`.
fn whole<T: Pod>(bytes: &[u8]) -> &[T] {
    bytemuck::cast_slice(&bytes[..bytes.len() / size_of::<T>() * size_of::<T>()])
}

/// min(L, axis size), in the length's full width.
fn length(plan: &Plan, lengths: &[u8], at: usize) -> usize {
    let length = if plan.wide_lengths { whole::<u64>(lengths)[at] } else { u64::from(whole::<u32>(lengths)[at]) };
    length.min(u64::from(plan.axis.size)) as usize
}

fn copy<T: Pod>(plan: &Plan, input: &[T], lengths: &[u8], out: &mut [T]) {
    let size = plan.axis.size as usize;
    let (in_step, out_step) = (plan.axis.in_stride as usize, plan.axis.out_stride as usize);
    let source = |t: usize, length: usize| if t < length { length - 1 - t } else { t };
    let (outer, inner) = split_block(plan);
    for_each_lane(outer, |at_in, at_out, at_length| {
        if let Some(block) = inner {
            // One length for all of a contiguous block: whole blocks are moved.
            let length = length(plan, lengths, at_length);
            for t in 0..size {
                let (from, to) = (at_in + source(t, length) * in_step, at_out + t * out_step);
                out[to..to + block].copy_from_slice(&input[from..from + block]);
            }
        } else if in_step == 1 && out_step == 1 {
            let length = length(plan, lengths, at_length);
            let (input, out) = (&input[at_in..at_in + size], &mut out[at_out..at_out + size]);
            out[..length].iter_mut().zip(input[..length].iter().rev()).for_each(|(to, from)| *to = *from);
            out[length..].copy_from_slice(&input[length..]);
        } else {
            let length = length(plan, lengths, at_length);
            for t in 0..size {
                out[at_out + t * out_step] = input[at_in + source(t, length) * in_step];
            }
        }
    });
}

fn swap<T: Pod>(plan: &Plan, lengths: &[u8], out: &mut [T]) {
    let step = plan.axis.out_stride as usize;
    let (outer, inner) = split_block(plan);
    let block = inner.unwrap_or(1);
    for_each_lane(outer, |_, at, at_length| {
        let length = length(plan, lengths, at_length);
        if step == 1 && block == 1 {
            out[at..at + length].reverse();
            return;
        }
        for t in 0..length / 2 {
            // Outputs do not overlap (output.overlap), so a step along the axis passes the whole block.
            let (front, back) = (at + t * step, at + (length - 1 - t) * step);
            let (low, high) = out.split_at_mut(back);
            low[front..front + block].swap_with_slice(&mut high[..block]);
        }
    });
}

/// The dimensions without the innermost, and that one's size, where it is a contiguous block with one length.
fn split_block(plan: &Plan) -> (&[Dimension], Option<usize>) {
    match plan.dimensions.split_last() {
        Some((d, outer)) if d.in_stride == 1 && d.out_stride == 1 && d.length_stride == 0 => {
            (outer, Some(d.size as usize))
        }
        _ => (&plan.dimensions, None),
    }
}

/// Visits the first element of every lane, or block of lanes: its place in the input, the output and the lengths.
fn for_each_lane(dimensions: &[Dimension], mut visit: impl FnMut(usize, usize, usize)) {
    let sizes: Vec<u32> = dimensions.iter().map(|d| d.size).collect();
    for_each_coordinate(&sizes, |coordinate| {
        visit(
            offset(coordinate, dimensions.iter().map(|d| d.in_stride)),
            offset(coordinate, dimensions.iter().map(|d| d.out_stride)),
            offset(coordinate, dimensions.iter().map(|d| d.length_stride)),
        );
    });
}
