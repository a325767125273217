//! The launches of REVERSE_SUBSEQUENCES: which kernels can run a layout, fastest first, the one for any strides
//! last. A file below for each kernel file.
//!
//! Tuning numbers stand beside what they tune, each with what it was measured against: microseconds of the throughput
//! bench on one NVIDIA H200, 2026-11-21.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use super::{Because, Candidates, FastDiv, Selection, SLOT};
use crate::cuda::launch::{Draft, Parameters};
use crate::cuda::GpuTarget;
use crate::layout::MAX_DIMENSIONS;
use crate::plan::reverse_subsequences::{Axis, Dimension, Plan};

/// Lanes of fewer bytes are staged where they lie one behind the other: they are mostly their two ends. Lanes of 100
/// f32, copying: staged 37, a slot at a time 44 (2026-11-20).
pub(super) const STAGED_LANE_BYTES: u64 = 512;

/// The same in place. Lanes of 100 u8: staged 45, whole 59; of 100 i64, of 800 bytes, 25.3 and 26.3; of 1000 u8, 31 and 26.
pub(super) const STAGED_LANE_BYTES_IN_PLACE: u64 = 900;

/// In place, elements of 8 bytes in shorter lanes are swapped one by one. Lanes of 4: 918, staged 1013.
const SHORT_WIDE_LANE_IN_PLACE: u32 = 16;

/// Blocks of more bytes are not staged whole, but in tiles. Copying, blocks of 33 u8, 16.5 KiB: staged 41.6, in tiles 44.2; of
/// 5 f32, 10 KiB: 35.7 and 39.7; but of 33 f16, 33 KiB: 39.3 and 38.2; [*, 16384, 3] u8, 48 KiB: 43.8 and 41.3.
const STAGED_BLOCK_BYTES: u64 = 24 << 10;

/// The same in place. Blocks of 33 f16, 33 KiB: 24.2 and 24.8; [*, 16384, 3] u8 29.6 and 28.4; blocks of 33 f32 25.0 and 22.5.
const STAGED_BLOCK_BYTES_IN_PLACE: u64 = 40 << 10;

/// Threads of the least block: two warps, as a multiprocessor holds at most 32 blocks, and 64 warps.
const LEAST_BLOCK: u32 = 64;

pub(super) const NO_BLOCK: Because = "no contiguous block with one length lies behind the axis";

/// `ReverseDim` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct Dim {
    pub size: FastDiv,
    pub in_stride: u32,
    pub out_stride: u32,
    pub length_stride: u32,
    pub axis: u32,
}

/// `Reverse` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct Params {
    pub input: u64,
    pub lengths: u64,
    pub out: u64,
    pub items: u64,
    pub axis_size: u32,
    pub axis_in_stride: u32,
    pub axis_out_stride: u32,
    pub wide_lengths: u32,
    pub dims: [Dim; MAX_DIMENSIONS],
    pub in_bytes: u64,
    pub parts: FastDiv,
    pub block: FastDiv,
    pub group: FastDiv,
    pub together: u32,
    pub unit: u32,
    pub pitch: u32,
    pub team_log: u32,
    pub length_stride: u32,
    pub rank: u32,
}

impl Parameters for Params {
    const POINTERS: [Option<usize>; 3] =
        [Some(offset_of!(Params, input)), Some(offset_of!(Params, lengths)), Some(offset_of!(Params, out))];
}

/// A launch, or why there is none.
pub(super) type Way = Result<Draft<Params>, Because>;

/// A layout, and the GPU that kernels are selected for.
pub(super) struct Layout<'a> {
    pub width: u32,
    pub wide_lengths: bool,
    pub axis: Axis,
    pub dimensions: &'a [Dimension],
    pub in_bytes: u64,
    pub target: &'a GpuTarget,
}

/// Adds its launches for a layout, copying or in place, to the candidates, or says why it has none.
type Kernel = fn(&Layout<'_>, bool, &mut Candidates) -> Result<(), Because>;

/// Kernels with their names, copying and in place.
type Order = &'static [(&'static str, &'static str, Kernel)];

fn one(found: &mut Candidates, way: Way) -> Result<(), Because> {
    found.push(way?);
    Ok(())
}

/// Several launches, or why there are none.
fn each(found: &mut Candidates, ways: Vec<Way>) -> Result<(), Because> {
    ways.into_iter().try_for_each(|way| one(found, way))
}

/// Little work, whatever the layout.
const SMALL: Order = &[("", "", |layout, in_place, found| {
    [SLOT, layout.width].into_iter().filter_map(|unit| layout.small(in_place, unit)).for_each(|way| found.push(way));
    Ok(())
})];

/// Blocks behind the axis, each with one length.
const BLOCKS: Order =
    &[("reverse_copy_16", "reverse_swap_16", |layout, in_place, found| one(found, layout.units(in_place, SLOT)))];

/// The same with elements that are narrower than 8 bytes, whose rows need not be whole units.
const NARROW_BLOCKS: Order = &[
    ("reverse_rows", "reverse_rows_swap", |layout, in_place, found| one(found, layout.rows(in_place))),
    ("reverse_turned_rows", "reverse_turned_rows_swap", |layout, in_place, found| {
        let most = if in_place { STAGED_BLOCK_BYTES_IN_PLACE } else { STAGED_BLOCK_BYTES };
        each(found, layout.staged_rows(in_place, most))
    }),
    ("reverse_long_rows", "reverse_long_rows_swap", |layout, in_place, found| each(found, layout.long_rows(in_place))),
];

/// Anything else.
const NO_BLOCKS: Order = &[("reverse_copy_16", "reverse_swap_16", |_, _, _| Err(NO_BLOCK))];

/// Contiguous lanes.
const LANES: Order = &[
    ("reverse_tiny", "", |layout, in_place, found| if in_place { Ok(()) } else { one(found, layout.tiny_lanes()) }),
    ("reverse_staged_lanes", "reverse_turned_lanes_swap", |layout, in_place, found| {
        one(found, layout.staged_lanes(in_place))
    }),
    ("reverse_lanes", "reverse_lanes_swap", |layout, in_place, found| each(found, layout.lanes(in_place))),
    ("reverse_long_lanes", "reverse_long_lanes_swap", |layout, in_place, found| {
        if in_place {
            one(found, layout.swap_long_lanes())
        } else {
            each(found, layout.long_lanes())
        }
    }),
];

/// The same of few elements of 8 bytes, in place.
const SHORT_WIDE_LANES: Order =
    &[("", "reverse_lanes_swap", |_, _, _| Err("lanes of fewer than 16 such elements are swapped faster one by one"))];

/// Lanes that are not contiguous.
const NO_LANES: Order = &[("reverse_lanes", "reverse_lanes_swap", |_, _, _| Err("the axis is not contiguous"))];

/// Lanes side by side, each with a length of its own, of which a thread block holds a strip.
const STRIPS: Order = &[
    ("reverse_columns", "reverse_columns_swap", |layout, in_place, found| one(found, layout.columns(in_place))),
    ("reverse_strips", "reverse_strips_swap", |layout, in_place, found| one(found, layout.strips(in_place))),
    ("reverse_any_strips", "reverse_any_strips_swap", |layout, in_place, found| {
        one(found, layout.any_strips(in_place))
    }),
    CLUSTERS,
];

/// The same where no thread block holds a strip of whole sectors: a cluster is tried first.
const LONG_STRIPS: Order = &[STRIPS[0], CLUSTERS, STRIPS[1], STRIPS[2]];

const CLUSTERS: (&str, &str, Kernel) =
    ("reverse_clusters", "reverse_clusters_swap", |layout, in_place, found| one(found, layout.clusters(in_place)));

/// Tensors that are contiguous along different dimensions.
const TRANSPOSED: Order =
    &[(
        "reverse_transposed",
        "",
        |layout, in_place, found| {
            if in_place {
                Ok(())
            } else {
                one(found, layout.transposed())
            }
        },
    )];

/// Units of 8 bytes down to those of an element, which any layout is made of.
const UNITS: Order = &[("", "", |layout, in_place, found| {
    let units = [8, 4, 2, 1].into_iter().filter(|&unit| unit >= layout.width);
    units.filter_map(|unit| layout.units(in_place, unit).ok()).for_each(|way| found.push(way));
    Ok(())
})];

/// The launches of both modes.
pub(crate) fn select(plan: &Plan, target: &GpuTarget) -> Selection {
    let layout = Layout::new(plan, target);
    Selection { out_of_place: layout.candidates(false), in_place: plan.in_place.then(|| layout.candidates(true)) }
}

/// The same with launches that no pointers get, as they come after one that takes any.
#[cfg(test)]
pub(crate) fn select_all(plan: &Plan, target: &GpuTarget) -> Selection {
    let layout = Layout::new(plan, target);
    let all = |in_place| layout.candidates_until(in_place, |_| false);
    Selection { out_of_place: all(false), in_place: plan.in_place.then(|| all(true)) }
}

impl<'a> Layout<'a> {
    fn new(plan: &'a Plan, target: &'a GpuTarget) -> Self {
        let &Plan { width, wide_lengths, axis, ref dimensions, input_bytes, .. } = plan;
        Self { width, wide_lengths, axis, dimensions, in_bytes: input_bytes, target }
    }
}

impl Layout<'_> {
    /// The launches up to one that takes any pointers; none where nothing moves.
    fn candidates(&self, in_place: bool) -> Candidates {
        self.candidates_until(in_place, |found| {
            found.launches.last().is_some_and(|launch| launch.alignment == self.width)
        })
    }

    fn candidates_until(&self, in_place: bool, complete: impl Fn(&Candidates) -> bool) -> Candidates {
        let mut found = Candidates::new();
        if in_place && self.axis.size < 2 {
            return found;
        }
        for &(copying, swapping, kernel) in self.order(in_place).into_iter().flatten() {
            if complete(&found) {
                break;
            }
            if let Err(because) = kernel(self, in_place, &mut found) {
                found.reject(if in_place { swapping } else { copying }, because);
            }
        }
        found
    }

    /// The kernels to try, fastest first; the last runs any layout.
    fn order(&self, in_place: bool) -> [Order; 6] {
        if self.block().is_some() {
            return [SMALL, BLOCKS, if self.width < 8 { NARROW_BLOCKS } else { &[] }, &[], TRANSPOSED, UNITS];
        }
        let lanes = if self.axis.out_stride != 1 || self.axis.in_stride != 1 {
            NO_LANES
        } else if in_place && self.width == 8 && self.axis.size < SHORT_WIDE_LANE_IN_PLACE {
            SHORT_WIDE_LANES
        } else {
            LANES
        };
        let strips = if self.fits_a_block() { STRIPS } else { LONG_STRIPS };
        [SMALL, NO_BLOCKS, lanes, strips, TRANSPOSED, UNITS]
    }

    /// The dimension, if any, of a contiguous block that moves as one: one length for all of it.
    pub(super) fn block(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|d| d.in_stride == 1 && d.out_stride == 1 && d.length_stride == 0)
    }

    /// Whether the rows of that block lie one behind the other in both tensors.
    pub(super) fn rows_are_a_run(&self) -> bool {
        let rows = [self.axis.in_stride, self.axis.out_stride];
        self.block().is_some_and(|block| rows == [block.size; 2])
    }

    /// The dimension, if any, of contiguous lanes side by side.
    pub(super) fn row(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|d| d.in_stride == 1 && d.out_stride == 1 && d.length_stride != 0)
    }

    pub(super) fn is_block(d: &Dimension) -> bool {
        d.in_stride == 1 && d.out_stride == 1
    }

    /// The dimensions without the one of a block or a row.
    pub(super) fn outside(&self) -> impl DoubleEndedIterator<Item = &Dimension> {
        self.dimensions.iter().filter(|d| !Self::is_block(d))
    }

    /// Puts the axis among dimensions ordered by output stride, so that neighbouring threads write neighbouring
    /// memory.
    pub(super) fn insert_axis(&self, dims: &mut Vec<Dim>, steps: u32, out_stride: u32) {
        let at = dims.iter().position(|dim| dim.out_stride < out_stride).unwrap_or(dims.len());
        dims.insert(at, self.axis_dim(steps));
    }

    /// The axis as a dimension of so many steps.
    pub(super) fn axis_dim(&self, steps: u32) -> Dim {
        Dim { size: FastDiv::new(steps), in_stride: 0, out_stride: 0, length_stride: 0, axis: 1 }
    }

    /// 0 to 3 for elements of 1 to 8 bytes.
    pub(super) fn width_index(&self) -> usize {
        self.width.trailing_zeros() as usize
    }

    /// `list` has the outermost dimension first.
    pub(super) fn params(&self, items: u64, list: impl DoubleEndedIterator<Item = Dim>) -> Params {
        let mut dims = [Dim::zeroed(); MAX_DIMENSIONS];
        let mut rank = 0;
        for (place, dim) in dims.iter_mut().zip(list.rev()) {
            *place = dim;
            rank += 1;
        }
        Params {
            input: 0,
            lengths: 0,
            out: 0,
            items,
            axis_size: self.axis.size,
            axis_in_stride: self.axis.in_stride,
            axis_out_stride: self.axis.out_stride,
            wide_lengths: self.wide_lengths.into(),
            dims,
            in_bytes: self.in_bytes,
            parts: FastDiv::new(1),
            block: FastDiv::new(1),
            group: FastDiv::new(1),
            together: 0,
            unit: self.width,
            pitch: 0,
            team_log: 0,
            length_stride: 0,
            rank,
        }
    }
}

/// Threads of a block of teams, and how many teams: one, if it is as large as the least block, so that none waits until
/// another has done. Blocks of 5 u8 in place: 30, with 256 threads a block 34.
pub(super) fn teams(team: u32) -> (u32, u32) {
    let threads = team.max(LEAST_BLOCK);
    (threads, threads / team)
}

pub(super) fn dim(d: &Dimension) -> Dim {
    dim_in(d, d.size, 1)
}

/// A dimension of `size` steps, whose strides are counted in units of `elements`.
pub(super) fn dim_in(d: &Dimension, size: u32, elements: u32) -> Dim {
    Dim {
        size: FastDiv::new(size),
        in_stride: d.in_stride / elements,
        out_stride: d.out_stride / elements,
        length_stride: d.length_stride,
        axis: 0,
    }
}
