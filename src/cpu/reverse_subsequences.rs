//! REVERSE_SUBSEQUENCES on the CPU.

use bytemuck::Pod;

use super::fill_value_sequence::typed;
use super::tile::{Element, Tile};
use super::{for_each, Operands};
use crate::plan::reverse_subsequences::{Dimension, Plan};

/// Reverses into the output tensor.
pub(crate) fn run(plan: &Plan, operands: Operands<'_>) {
    match plan.width {
        1 => run_typed::<u8, 64>(plan, operands),
        2 => run_typed::<u16, 32>(plan, operands),
        4 => run_typed::<u32, 16>(plan, operands),
        _ => run_typed::<u64, 8>(plan, operands),
    }
}

fn run_typed<T: Element, const LANES: usize>(plan: &Plan, Operands { input, lengths, output }: Operands<'_>) {
    let lengths = &if plan.wide_lengths { Lengths::Wide(whole(lengths)) } else { Lengths::Narrow(whole(lengths)) };
    match input {
        Some(input) => copy::<T, LANES>(plan, whole(&input[..plan.input_bytes as usize]), lengths, typed(output)),
        None => swap::<T, LANES>(plan, lengths, typed(output)),
    }
}

/// The whole elements of `bytes`.
fn whole<T: Pod>(bytes: &[u8]) -> &[T] {
    bytemuck::cast_slice(&bytes[..bytes.len() / size_of::<T>() * size_of::<T>()])
}

/// The SequenceLengthsTensor.
enum Lengths<'a> {
    Narrow(&'a [u32]),
    Wide(&'a [u64]),
}

/// min(L, axis size), in the length's full width.
fn length(plan: &Plan, lengths: &Lengths<'_>, at: usize) -> usize {
    let length = match lengths {
        Lengths::Narrow(lengths) => u64::from(lengths[at]),
        Lengths::Wide(lengths) => lengths[at],
    };
    length.min(u64::from(plan.axis.size)) as usize
}

fn copy<T: Element, const LANES: usize>(plan: &Plan, input: &[T], lengths: &Lengths<'_>, out: &mut [T]) {
    let size = plan.axis.size as usize;
    let (in_step, out_step) = (plan.axis.in_stride as usize, plan.axis.out_stride as usize);
    let source = |t: usize, length: usize| if t < length { length - 1 - t } else { t };
    match inner(plan) {
        Inner::Block(outer, block) => for_each(&outer, |[at_in, at_out, at_length]| {
            let length = length(plan, lengths, at_length);
            for t in 0..size {
                let (from, to) = (at_in + source(t, length) * in_step, at_out + t * out_step);
                out[to..to + block].copy_from_slice(&input[from..from + block]);
            }
        }),
        Inner::Lane(outer) if in_step == 1 && out_step == 1 => for_each(&outer, |[at_in, at_out, at_length]| {
            let length = length(plan, lengths, at_length);
            let out = &mut out[at_out..at_out + size];
            out.copy_from_slice(&input[at_in..at_in + size]);
            out[..length].reverse();
        }),
        Inner::Lane(outer) => for_each(&outer, |[at_in, at_out, at_length]| {
            let length = length(plan, lengths, at_length);
            for t in 0..size {
                out[at_out + t * out_step] = input[at_in + source(t, length) * in_step];
            }
        }),
        // Copied as they are, and then reversed in place.
        Inner::Row(outer, row, _) if !Tile::<T, LANES>::pays(size, row) => {
            if let Some(count) = dense_count(plan) {
                out[..count].copy_from_slice(&input[..count]);
            } else {
                for_each(&outer, |[at_in, at_out, _]| {
                    for t in 0..size {
                        let (from, to) = (at_in + t * in_step, at_out + t * out_step);
                        out[to..to + row].copy_from_slice(&input[from..from + row]);
                    }
                });
            }
            swap::<T, LANES>(plan, lengths, out);
        }
        Inner::Row(outer, row, length_step) => {
            let mut tile = Tile::<T, LANES>::new(size, row);
            for_each(&outer, |[at_in, at_out, at_length]| {
                for lanes in tile.pieces(row) {
                    (0..size).for_each(|t| tile.read(t, &input[at_in + t * in_step..][lanes.clone()]));
                    let first = at_length + lanes.start * length_step;
                    tile.reverse(lanes.len(), |j| length(plan, lengths, first + j * length_step));
                    (0..size).for_each(|t| tile.write(t, &mut out[at_out + t * out_step..][lanes.clone()]));
                }
            });
        }
    }
}

/// Reverses in place; only the strides of the output count.
fn swap<T: Element, const LANES: usize>(plan: &Plan, lengths: &Lengths<'_>, out: &mut [T]) {
    let (size, step) = (plan.axis.size as usize, plan.axis.out_stride as usize);
    match inner(plan) {
        Inner::Row(outer, row, length_step) if !Tile::<T, LANES>::pays(size, row) => {
            for_each(&outer, |[_, at, at_length]| {
                for j in 0..row {
                    let length = length(plan, lengths, at_length + j * length_step);
                    let (mut front, mut back) = (at + j, at + j + length.saturating_sub(1) * step);
                    while front < back {
                        out.swap(front, back);
                        front += step;
                        back -= step;
                    }
                }
            });
        }
        Inner::Lane(outer) if step == 1 => for_each(&outer, |[_, at, at_length]| {
            out[at..at + length(plan, lengths, at_length)].reverse();
        }),
        Inner::Row(outer, row, length_step) => {
            let mut tile = Tile::<T, LANES>::new(size, row);
            for_each(&outer, |[_, at, at_length]| {
                for lanes in tile.pieces(row) {
                    let first = at_length + lanes.start * length_step;
                    let length = |j: usize| length(plan, lengths, first + j * length_step);
                    let longest = (0..lanes.len()).map(length).max().unwrap_or(0);
                    (0..longest).for_each(|t| tile.read(t, &out[at + t * step..][lanes.clone()]));
                    tile.reverse(lanes.len(), length);
                    (0..longest).for_each(|t| tile.write(t, &mut out[at + t * step..][lanes.clone()]));
                }
            });
        }
        Inner::Lane(outer) => swap_blocks(plan, lengths, out, &outer, 1),
        Inner::Block(outer, block) => swap_blocks(plan, lengths, out, &outer, block),
    }
}

fn swap_blocks<T: Pod>(plan: &Plan, lengths: &Lengths<'_>, out: &mut [T], outer: &Outer, block: usize) {
    let step = plan.axis.out_stride as usize;
    for_each(outer, |[_, at, at_length]| {
        let length = length(plan, lengths, at_length);
        for t in 0..length / 2 {
            // Outputs do not overlap (output.overlap), so a step along the axis passes the whole block.
            let (front, back) = (at + t * step, at + (length - 1 - t) * step);
            let (low, high) = out.split_at_mut(back);
            low[front..front + block].swap_with_slice(&mut high[..block]);
        }
    });
}

/// The elements of the tensors where both have the same strides and no gaps, so that all can be copied at once.
fn dense_count(plan: &Plan) -> Option<usize> {
    let axis = (plan.axis.size, plan.axis.out_stride);
    let mut all: Vec<(u32, u32)> = plan.dimensions.iter().map(|d| (d.size, d.out_stride)).chain([axis]).collect();
    all.retain(|(size, _)| *size > 1);
    all.sort_by_key(|(_, stride)| *stride);
    let mut count = 1u64;
    let dense = all.iter().all(|&(size, stride)| {
        let follows = u64::from(stride) == count;
        count *= u64::from(size);
        follows
    });
    (plan.in_place && dense).then_some(count as usize)
}

/// Sizes of dimensions, and their strides in the input, the output and the lengths.
type Outer = Vec<(u32, [u32; 3])>;

/// What is handled together, and the dimensions around it.
enum Inner {
    /// A contiguous block of so many elements with one length: its rows are moved whole.
    Block(Outer, usize),
    /// So many contiguous lanes side by side, whose lengths are a step apart.
    Row(Outer, usize, usize),
    /// A lane.
    Lane(Outer),
}

fn inner(plan: &Plan) -> Inner {
    let around = |dimensions: &[Dimension]| {
        dimensions.iter().map(|d| (d.size, [d.in_stride, d.out_stride, d.length_stride])).collect()
    };
    match plan.dimensions.split_last() {
        Some((d, outer)) if d.in_stride == 1 && d.out_stride == 1 => match d.length_stride {
            0 => Inner::Block(around(outer), d.size as usize),
            step => Inner::Row(around(outer), d.size as usize, step as usize),
        },
        _ => Inner::Lane(around(&plan.dimensions)),
    }
}
