//! REVERSE_SUBSEQUENCES on the CPU.
//!
//! The innermost dimensions of a plan decide what one step moves:
//!
//! | [`Inner`] | memory | a step |
//! | --- | --- | --- |
//! | `Block` | `| row 0 | row 1 | …`, one length | copies or swaps rows |
//! | `Row` | `| a0 b0 c0 | a1 b1 c1 | …`, a length each | reverses many lanes in a tile (`transpose.rs`) |
//! | `Lane` | `| a0 | a1 | a2 | …` | reverses a slice, or moves single elements |
//!
//! The rest is a walk over the outer dimensions. Where no way above is faster, the whole tensor is copied, and the copy is
//! then reversed in place.

use bytemuck::{pod_read_unaligned, Pod};

use super::transpose::Tile;
use super::{for_each, whole, whole_mut, Operands};
use crate::plan::reverse_plan::{Dimension, Plan};
use crate::plan::{merge, StridedDimension};

/// Lanes of fewer bytes, but of more than `MAX_SELECTED` elements, are copied all at once and then reversed, not copied
/// one by one (benches/TUNING.md).
const MIN_COPIED_BYTES: usize = 64;

/// Lanes of at most this number of elements are copied without a branch that depends on the length, which a CPU would
/// often predict wrongly (benches/TUNING.md).
const MAX_SELECTED: usize = 8;

/// Reverses into the output tensor.
pub(crate) fn run(plan: &Plan, Operands { inputs, output }: Operands<'_>) {
    let (&lengths, input) = inputs
        .split_last()
        .expect("binding.count: a reversal has lengths");
    let input = input.first().copied(); // in place, the output is the input
    let plan = plan.blocks_as_elements.as_deref().unwrap_or(plan);
    let is_aligned = |bytes: &[u8]| (bytes.as_ptr() as usize).is_multiple_of(plan.width as usize);
    // The second number is the elements of a cache line.
    match (
        plan.width,
        input.is_none_or(is_aligned) && is_aligned(output),
    ) {
        (1, _) => run_typed::<u8, 64>(plan, input, lengths, output),
        (2, true) => run_typed::<u16, 32>(plan, input, lengths, output),
        (4, true) => run_typed::<u32, 16>(plan, input, lengths, output),
        (8, true) => run_typed::<u64, 8>(plan, input, lengths, output),
        (2, _) => run_typed::<[u8; 2], 32>(plan, input, lengths, output),
        (3, _) => run_typed::<[u8; 3], 21>(plan, input, lengths, output),
        (4, _) => run_typed::<[u8; 4], 16>(plan, input, lengths, output),
        (5, _) => run_typed::<[u8; 5], 12>(plan, input, lengths, output),
        (6, _) => run_typed::<[u8; 6], 10>(plan, input, lengths, output),
        (7, _) => run_typed::<[u8; 7], 9>(plan, input, lengths, output),
        _ => run_typed::<[u8; 8], 8>(plan, input, lengths, output),
    }
}

fn run_typed<T: Pod, const LANES: usize>(
    plan: &Plan,
    input: Option<&[u8]>,
    lengths: &[u8],
    output: &mut [u8],
) {
    match input {
        Some(input) => copy::<T, LANES>(
            plan,
            whole(&input[..plan.input_bytes as usize]),
            lengths,
            whole_mut(output),
        ),
        None => swap::<T, LANES>(plan, lengths, whole_mut(output)),
    }
}

/// min(L, axis size), compared at the length's full width. Lengths need not be aligned.
fn length(plan: &Plan, lengths: &[u8], at: usize) -> usize {
    let length = match plan.wide_lengths {
        true => pod_read_unaligned(&lengths[8 * at..][..8]),
        false => u64::from(pod_read_unaligned::<u32>(&lengths[4 * at..][..4])),
    };
    length.min(u64::from(plan.axis.size)) as usize
}

/// The position that the element at `t` of a lane comes from.
fn source(t: usize, length: usize) -> usize {
    if t < length {
        length - 1 - t
    } else {
        t
    }
}

fn copy<T: Pod, const LANES: usize>(plan: &Plan, input: &[T], lengths: &[u8], out: &mut [T]) {
    let size = plan.axis.size as usize;
    let (in_step, out_step) = (plan.axis.in_stride as usize, plan.axis.out_stride as usize);
    let contiguous = in_step == 1 && out_step == 1;
    // Lanes too short to move one by one, and rows for which no tile pays.
    let reverse_copy = |out: &mut [T]| {
        copy_as_it_is(plan, input, out);
        swap::<T, LANES>(plan, lengths, out);
    };
    match inner(plan) {
        Inner::Block(outer, block) => for_each(&outer, |[at_in, at_out, at_length]| {
            let length = length(plan, lengths, at_length);
            for t in 0..size {
                let (from, to) = (at_in + source(t, length) * in_step, at_out + t * out_step);
                out[to..to + block].copy_from_slice(&input[from..from + block]);
            }
        }),
        Inner::Lane(outer) if contiguous && size <= MAX_SELECTED => {
            for_each(&outer, |[at_in, at_out, at_length]| {
                let length = length(plan, lengths, at_length);
                let (lane, out) = (&input[at_in..at_in + size], &mut out[at_out..at_out + size]);
                for (t, element) in out.iter_mut().enumerate() {
                    *element = lane[source(t, length)];
                }
            })
        }
        Inner::Lane(_) if contiguous && size * size_of::<T>() < MIN_COPIED_BYTES => {
            reverse_copy(out)
        }
        Inner::Lane(outer) if contiguous => for_each(&outer, |[at_in, at_out, at_length]| {
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
        Inner::Row {
            outer,
            lanes: row,
            length_stride: length_step,
        } => {
            let Some(mut tile) = Tile::<T, LANES>::that_pays(size, row) else {
                return reverse_copy(out);
            };
            for_each(&outer, |[at_in, at_out, at_length]| {
                for lanes in tile.pieces(row) {
                    (0..size)
                        .for_each(|t| tile.read(t, &input[at_in + t * in_step..][lanes.clone()]));
                    let first = at_length + lanes.start * length_step;
                    tile.reverse(lanes.len(), |j| {
                        length(plan, lengths, first + j * length_step)
                    });
                    (0..size).for_each(|t| {
                        tile.write(t, &mut out[at_out + t * out_step..][lanes.clone()])
                    });
                }
            });
        }
    }
}

/// Reverses in place, by the strides of the output.
fn swap<T: Pod, const LANES: usize>(plan: &Plan, lengths: &[u8], out: &mut [T]) {
    let (size, step) = (plan.axis.size as usize, plan.axis.out_stride as usize);
    match inner(plan) {
        Inner::Lane(outer) if step == 1 => for_each(&outer, |[_, at, at_length]| {
            out[at..at + length(plan, lengths, at_length)].reverse();
        }),
        Inner::Row {
            outer,
            lanes: row,
            length_stride: length_step,
        } => {
            let Some(mut tile) = Tile::<T, LANES>::that_pays(size, row) else {
                return for_each(&outer, |[_, at, at_length]| {
                    for j in 0..row {
                        let length = length(plan, lengths, at_length + j * length_step);
                        let (mut front, mut back) =
                            (at + j, at + j + length.saturating_sub(1) * step);
                        while front < back {
                            out.swap(front, back);
                            front += step;
                            back -= step;
                        }
                    }
                });
            };
            for_each(&outer, |[_, at, at_length]| {
                for lanes in tile.pieces(row) {
                    let first = at_length + lanes.start * length_step;
                    let length = |j: usize| length(plan, lengths, first + j * length_step);
                    let longest = (0..lanes.len()).map(length).max().unwrap_or(0);
                    (0..longest).for_each(|t| tile.read(t, &out[at + t * step..][lanes.clone()]));
                    tile.reverse(lanes.len(), length);
                    (0..longest)
                        .for_each(|t| tile.write(t, &mut out[at + t * step..][lanes.clone()]));
                }
            });
        }
        Inner::Lane(outer) => swap_blocks(plan, lengths, out, &outer, 1),
        Inner::Block(outer, block) => swap_blocks(plan, lengths, out, &outer, block),
    }
}

fn swap_blocks<T: Pod>(plan: &Plan, lengths: &[u8], out: &mut [T], outer: &Outer, block: usize) {
    let step = plan.axis.out_stride as usize;
    for_each(outer, |[_, at, at_length]| {
        let length = length(plan, lengths, at_length);
        for t in 0..length / 2 {
            // No two output elements share memory (output.overlap), so a step along the axis is longer than the block.
            let (front, back) = (at + t * step, at + (length - 1 - t) * step);
            let (low, high) = out.split_at_mut(back);
            low[front..front + block].swap_with_slice(&mut high[..block]);
        }
    });
}

/// Copies the input without reversing it, in the largest possible pieces.
fn copy_as_it_is<T: Pod>(plan: &Plan, input: &[T], out: &mut [T]) {
    let mut all = Vec::with_capacity(plan.dimensions.len() + 1);
    for d in plan.dimensions.iter().chain([&plan.axis]) {
        all.push(StridedDimension::new(d.size, [d.out_stride, d.in_stride]));
    }
    let mut outer = merge(all);
    let contiguous = outer.pop_if(|d| d.strides == [1, 1]);
    let piece = contiguous.map_or(1, |d| d.size as usize);
    for_each(&outer, |[to, from]| {
        out[to..to + piece].copy_from_slice(&input[from..from + piece])
    });
}

/// The outer dimensions, each with its strides in the input, the output and the lengths.
type Outer = Vec<StridedDimension<3>>;

/// The inner part of a plan, which one step moves, and the outer dimensions that the steps walk.
enum Inner {
    /// A contiguous block with one length and its number of elements: its rows move whole.
    Block(Outer, usize),
    /// Interleaved lanes, and the stride of their lengths.
    Row {
        outer: Outer,
        lanes: usize,
        length_stride: usize,
    },
    /// A single lane.
    Lane(Outer),
}

fn inner(plan: &Plan) -> Inner {
    match plan.dimensions.split_last() {
        Some((d, outer)) if d.in_stride == 1 && d.out_stride == 1 => match d.length_stride {
            0 => Inner::Block(outer_of(outer), d.size as usize),
            step => Inner::Row {
                outer: outer_of(outer),
                lanes: d.size as usize,
                length_stride: step as usize,
            },
        },
        _ => Inner::Lane(outer_of(&plan.dimensions)),
    }
}

fn outer_of(dimensions: &[Dimension]) -> Outer {
    let mut outer = Vec::with_capacity(dimensions.len());
    for d in dimensions {
        let strides = [d.in_stride, d.out_stride, d.length_stride];
        outer.push(StridedDimension::new(d.size, strides));
    }
    outer
}
