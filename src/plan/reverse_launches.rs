//! The launches of REVERSE_SUBSEQUENCES: which kernels can run a layout, fastest first, the one for any strides
//! last. A file below for each kernel file.
//!
//! Tuning numbers stand beside what they tune, each with what it was measured against: microseconds of the throughput
//! bench on one NVIDIA H200, 2026-11-21.

pub(crate) mod clusters;
pub(crate) mod columns;
pub(crate) mod lanes;
pub(crate) mod long_rows;
pub(crate) mod rows;
pub(crate) mod small;
pub(crate) mod staged;
pub(crate) mod strips;
pub(crate) mod tiny;
pub(crate) mod transposed;
pub(crate) mod units;

use bytemuck::Zeroable;

use super::reverse_subsequences::{Axis, Dim, Dimension, Params};
use super::{Entry, FastDiv, Launch, Module, Target, MAX_DIMENSIONS, SLOT};

/// Lanes of fewer bytes are staged where they lie one behind the other: they are mostly their two ends. Lanes of 100
/// f32, copying: staged 37, a slot at a time 44 (2026-11-20).
const STAGED_LANE_BYTES: u64 = 512;

/// The same in place. Lanes of 100 u8: staged 45, whole 59; of 100 i64, of 800 bytes, 25.3 and 26.3; of 1000 u8, 31 and 26.
const STAGED_LANE_BYTES_IN_PLACE: u64 = 900;

/// In place, elements of 8 bytes in shorter lanes are swapped one by one. Lanes of 4: 918, staged 1013.
const SHORT_WIDE_LANE_IN_PLACE: u32 = 16;

/// Blocks of more bytes are not staged whole, but in tiles. Copying, blocks of 33 u8, 16.5 KiB: staged 41.6, in tiles 44.2; of
/// 5 f32, 10 KiB: 35.7 and 39.7; but of 33 f16, 33 KiB: 39.3 and 38.2; [*, 16384, 3] u8, 48 KiB: 43.8 and 41.3.
const STAGED_BLOCK_BYTES: u64 = 24 << 10;

/// The same in place. Blocks of 33 f16, 33 KiB: 24.2 and 24.8; [*, 16384, 3] u8 29.6 and 28.4; blocks of 33 f32 25.0 and 22.5.
const STAGED_BLOCK_BYTES_IN_PLACE: u64 = 40 << 10;

/// In place is so many entries further, for each width of an element.
const SWAP: usize = 4;

/// Threads of the least block: two warps, as a multiprocessor holds at most 32 blocks, and 64 warps.
const LEAST_BLOCK: u32 = 64;

const NO_BLOCK: &str = "no contiguous block with one length lies behind the axis";
const NO_LANES: &str = "the axis is not contiguous";

/// A launch, or why there is none.
type Way = Result<Launch<Params>, &'static str>;

/// The launches of one mode, fastest first, up to one that takes any pointers; and the kernels that would have come before
/// them all, with why they cannot.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    pub launches: Vec<Launch<Params>>,
    pub refused: Vec<(&'static str, &'static str)>,
}

impl Ways {
    fn new() -> Self {
        Self { launches: Vec::with_capacity(4), refused: Vec::with_capacity(8) }
    }
}

/// What launches are made from.
pub(super) struct Launches<'a> {
    pub width: u32,
    pub wide_lengths: bool,
    pub axis: Axis,
    pub dimensions: &'a [Dimension],
    pub in_bytes: u64,
    pub target: &'a Target,
    /// Whether launches that no pointers get are wanted too, as tests want them.
    pub every: bool,
}

impl Launches<'_> {
    /// Ways to copy; the last takes any pointers.
    pub fn copy(&self) -> Ways {
        let mut ways = Ways::new();
        self.add_small(&mut ways, false);
        if self.block().is_some() {
            self.add(&mut ways, "reverse_copy_16", || self.units(false, SLOT));
            if self.width < 8 {
                self.add(&mut ways, "reverse_rows", || self.rows(false));
                self.add_each(&mut ways, "reverse_turned_rows", || self.staged_rows(false, STAGED_BLOCK_BYTES));
                self.add_each(&mut ways, "reverse_long_rows", || self.long_rows(false));
            }
        } else {
            self.add(&mut ways, "reverse_copy_16", || Err(NO_BLOCK));
            if self.axis.in_stride == 1 && self.axis.out_stride == 1 {
                self.add(&mut ways, "reverse_tiny", || self.tiny_lanes());
                self.add(&mut ways, "reverse_staged_lanes", || self.staged_lanes(false));
                self.add_each(&mut ways, "reverse_lanes", || self.lanes(false));
                self.add_each(&mut ways, "reverse_long_lanes", || self.long_lanes());
            } else {
                self.add(&mut ways, "reverse_lanes", || Err(NO_LANES));
            }
            self.add_strips(&mut ways, false);
        }
        self.add(&mut ways, "reverse_transposed", || self.transposed());
        self.add_units(&mut ways, false);
        ways
    }

    /// Ways to reverse in place, where both tensors have the same strides; no launch where nothing moves.
    pub fn in_place(&self) -> Ways {
        let mut ways = Ways::new();
        if self.axis.size < 2 {
            return ways;
        }
        self.add_small(&mut ways, true);
        if self.block().is_some() {
            self.add(&mut ways, "reverse_swap_16", || self.units(true, SLOT));
            if self.width < 8 {
                self.add(&mut ways, "reverse_rows_swap", || self.rows(true));
                self.add_each(&mut ways, "reverse_turned_rows_swap", || {
                    self.staged_rows(true, STAGED_BLOCK_BYTES_IN_PLACE)
                });
                self.add_each(&mut ways, "reverse_long_rows_swap", || self.long_rows(true));
            }
        } else {
            self.add(&mut ways, "reverse_swap_16", || Err(NO_BLOCK));
            if self.axis.out_stride != 1 {
                self.add(&mut ways, "reverse_lanes_swap", || Err(NO_LANES));
            } else if self.width == 8 && self.axis.size < SHORT_WIDE_LANE_IN_PLACE {
                self.add(&mut ways, "reverse_lanes_swap", || {
                    Err("lanes of fewer than 16 such elements are swapped faster one by one")
                });
            } else {
                self.add(&mut ways, "reverse_turned_lanes_swap", || self.staged_lanes(true));
                self.add_each(&mut ways, "reverse_lanes_swap", || self.lanes(true));
                self.add(&mut ways, "reverse_long_lanes_swap", || self.swap_long_lanes());
            }
            self.add_strips(&mut ways, true);
        }
        self.add_units(&mut ways, true);
        ways
    }

    /// Whether there is a launch that takes any pointers: those behind it need not be planned.
    fn is_complete(&self, ways: &Ways) -> bool {
        !self.every && ways.launches.last().is_some_and(|launch| launch.alignment == self.width)
    }

    fn add(&self, ways: &mut Ways, kernel: &'static str, way: impl FnOnce() -> Way) {
        self.add_each(ways, kernel, || [way()]);
    }

    fn add_each<I>(&self, ways: &mut Ways, kernel: &'static str, found: impl FnOnce() -> I)
    where
        I: IntoIterator<Item = Way>,
    {
        if self.is_complete(ways) {
            return;
        }
        for way in found() {
            match way {
                Ok(launch) => ways.launches.push(launch),
                Err(because) if ways.launches.is_empty() && ways.refused.last() != Some(&(kernel, because)) => {
                    ways.refused.push((kernel, because));
                }
                Err(_) => {}
            }
        }
    }

    /// Lanes side by side, each with a length of its own.
    fn add_strips(&self, ways: &mut Ways, in_place: bool) {
        let name = |copy, swap| if in_place { swap } else { copy };
        let add_clusters = |ways: &mut Ways| {
            self.add(ways, name("reverse_clusters", "reverse_clusters_swap"), || self.clusters(in_place))
        };
        self.add(ways, name("reverse_columns", "reverse_columns_swap"), || self.columns(in_place));
        if !self.fits_a_block() {
            add_clusters(ways);
        }
        self.add(ways, name("reverse_strips", "reverse_strips_swap"), || self.strips(in_place));
        self.add(ways, name("reverse_any_strips", "reverse_any_strips_swap"), || self.any_strips(in_place));
        if self.fits_a_block() {
            add_clusters(ways);
        }
    }

    /// Where there is little work, units of 16 bytes and of an element.
    fn add_small(&self, ways: &mut Ways, in_place: bool) {
        ways.launches.extend([SLOT, self.width].into_iter().filter_map(|unit| self.small(in_place, unit)));
    }

    /// Units of 8 bytes down to those of an element, which any layout is made of.
    fn add_units(&self, ways: &mut Ways, in_place: bool) {
        if !self.is_complete(ways) {
            let units = [8, 4, 2, 1].into_iter().filter(|&unit| unit >= self.width);
            ways.launches.extend(units.filter_map(|unit| self.units(in_place, unit).ok()));
        }
    }

    /// The dimension, if any, of a contiguous block that moves as one: one length for all of it.
    fn block(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|d| d.in_stride == 1 && d.out_stride == 1 && d.length_stride == 0)
    }

    /// Whether the rows of that block lie one behind the other in both tensors.
    fn rows_are_a_run(&self) -> bool {
        let rows = [self.axis.in_stride, self.axis.out_stride];
        self.block().is_some_and(|block| rows == [block.size; 2])
    }

    /// The dimension, if any, of contiguous lanes side by side.
    fn row(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|d| d.in_stride == 1 && d.out_stride == 1 && d.length_stride != 0)
    }

    fn is_block(d: &Dimension) -> bool {
        d.in_stride == 1 && d.out_stride == 1
    }

    /// The dimensions without the one of a block or a row.
    fn outside(&self) -> impl DoubleEndedIterator<Item = &Dimension> {
        self.dimensions.iter().filter(|d| !Self::is_block(d))
    }

    /// Puts the axis among dimensions ordered by output stride, so that neighbouring threads write neighbouring
    /// memory.
    pub(super) fn insert_axis(&self, dims: &mut Vec<Dim>, steps: u32, out_stride: u32) {
        let at = dims.iter().position(|dim| dim.out_stride < out_stride).unwrap_or(dims.len());
        dims.insert(at, self.axis_dim(steps));
    }

    /// The axis as a dimension of so many steps.
    fn axis_dim(&self, steps: u32) -> Dim {
        Dim { size: FastDiv::new(steps), in_stride: 0, out_stride: 0, length_stride: 0, axis: 1 }
    }

    /// 0 to 3 for elements of 1 to 8 bytes.
    fn width_index(&self) -> usize {
        self.width.trailing_zeros() as usize
    }

    /// `list` has the outermost dimension first.
    fn params(&self, items: u64, list: impl DoubleEndedIterator<Item = Dim>) -> Params {
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
fn teams(team: u32) -> (u32, u32) {
    let threads = team.max(LEAST_BLOCK);
    (threads, threads / team)
}

/// So many blocks of threads, if a grid can have them.
fn grid(blocks: u64) -> Result<u32, &'static str> {
    u32::try_from(blocks).ok().filter(|&blocks| blocks < 1 << 31).ok_or("there would be 2³¹ blocks of threads or more")
}

fn dim(d: &Dimension) -> Dim {
    dim_in(d, d.size, 1)
}

/// A dimension of `size` steps, whose strides are counted in units of `elements`.
fn dim_in(d: &Dimension, size: u32, elements: u32) -> Dim {
    Dim {
        size: FastDiv::new(size),
        in_stride: d.in_stride / elements,
        out_stride: d.out_stride / elements,
        length_stride: d.length_stride,
        axis: 0,
    }
}
