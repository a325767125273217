//! A layout of REVERSE_SUBSEQUENCES for the choice of a kernel, and the parameters that all its kernels take.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::{reject_if, RejectReason};
use crate::cuda::estimate::{ceil, FamilyCosts, Grid, Work};
use crate::cuda::kernels::Family;
use crate::cuda::target::GpuTarget;
use crate::cuda::tuning::{elementwise, SECTOR};
use crate::desc::MAX_DIMENSIONS;
use crate::mode::Mode;
use crate::plan::reverse_plan::{Dimension, Plan};

/// `ReverseDim` of kernels/reverse.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct ReverseDim {
    pub size: FastDiv,
    pub in_stride: u32,
    pub out_stride: u32,
    pub length_stride: u32,
    pub axis: u32,
}

/// `Reverse` of kernels/reverse.cuh: the parameters of every kernel. Strides count the kernel's units.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct Reverse {
    pub input: u64,
    pub lengths: u64,
    pub out: u64,
    pub items: u32,
    pub form: u32,
    pub axis_size: u32,
    pub axis_in_stride: u32,
    pub axis_out_stride: u32,
    pub wide_lengths: u32,
    pub dims: [ReverseDim; MAX_DIMENSIONS],
    pub in_bytes: u64,
    pub rank: u32,
    pub reserved: u32,
}

/// How elementwise and small kernels copy (same in reverse.cuh).
pub(super) const SCATTERED: u32 = 0;
pub(super) const GATHERED: u32 = 1;
pub(super) const GATHERED_VECTORS: u32 = 2;
pub(super) const GATHERED_HALF_VECTORS: u32 = 3;

const _: () = assert!(size_of::<ReverseDim>() == 32 && size_of::<Reverse>() == 320);

pub(super) const NO_ROW: &str = "there are no contiguous lanes side by side, each with its own length";
pub(super) const NOT_IN_PLACE: &str = "it does not run in place";
pub(super) const NO_BLOCK: &str = "there is no contiguous block with one length behind the axis";
pub(super) const NOT_DIVIDED: &str = "a size or a stride of the block is not a multiple of the unit";

/// Threads of a warp, which access memory together.
pub(super) const WARP: f64 = 32.0;
/// Bytes of a line of the L1 cache, and how many lines of other thread blocks compete with each.
const LINE: f64 = 128.0;
const COMPETING: f64 = 4.0;

/// The input or the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Input,
    Output,
}

/// A dimension of a walk through all elements in the order of the output's memory.
#[derive(Clone, Copy, Debug)]
struct Walked {
    size: u32,
    /// The strides of the input and of the output.
    strides: [u32; 2],
    /// Whether lanes along it have lengths of their own.
    varies: bool,
}

/// A layout in one mode, and the GPU that kernels are selected for.
pub(super) struct Layout<'a> {
    /// Bytes of an element.
    pub width: u32,
    pub wide_lengths: bool,
    pub axis: Dimension,
    /// All but the axis, outermost in the output's memory first.
    pub dimensions: &'a [Dimension],
    pub input_bytes: u64,
    pub mode: Mode,
    pub target: &'a GpuTarget,
    /// All dimensions of more than one element, innermost first.
    walk: Vec<Walked>,
    /// Different sectors of the input and the output.
    sectors: [f64; 2],
    once: Work,
    /// By side, and by whether lanes are at random positions.
    missed_parts: [[f64; 2]; 2],
}

impl<'a> Layout<'a> {
    pub fn new(plan: &'a Plan, mode: Mode, target: &'a GpuTarget) -> Self {
        let &Plan { width, wide_lengths, axis, ref dimensions, input_bytes, .. } = plan;
        let mut walk = Vec::with_capacity(dimensions.len() + 1);
        walk.extend(dimensions.iter().rev().map(|d| Walked::new(d, d.length_stride != 0)));
        if axis.size > 1 {
            let at = walk.iter().position(|d| d.strides[1] > axis.out_stride).unwrap_or(walk.len());
            walk.insert(at, Walked::new(&axis, false));
        }
        let mut layout = Self {
            width,
            wide_lengths,
            axis,
            dimensions,
            input_bytes,
            mode,
            target,
            walk,
            sectors: [0.0; 2],
            once: Work::default(),
            missed_parts: [[0.0; 2]; 2],
        };
        layout.sectors = [Side::Input, Side::Output].map(|side| layout.different_sectors(side));
        layout.once = layout.work_once();
        layout.missed_parts =
            [Side::Input, Side::Output].map(|side| [false, true].map(|at_random| layout.missed_part(side, at_random)));
        layout
    }

    /// Whether a thread can gather adjacent elements of the output: it is packed, and positions need no loop.
    pub fn gathers(&self) -> bool {
        let steps = self.dimensions.iter().chain([&self.axis]).map(|d| u64::from(d.size - 1) * u64::from(d.out_stride));
        !self.in_place() && self.is_unrolled() && self.elements() == 1 + steps.sum::<u64>()
    }

    /// Whether positions are computed without a loop over dimensions.
    pub fn is_unrolled(&self) -> bool {
        self.dimensions.len() < elementwise::UNROLLED_DIMENSIONS as usize
    }

    // ---- Work --------------------------------------------------------------------------------------------------

    /// Work that accesses every sector once, which moves. `rounds` is 1, and nothing else is counted.
    pub fn work(&self) -> Work {
        self.once
    }

    fn work_once(&self) -> Work {
        let [input, output] = self.sectors;
        let lengths: f64 = self.dimensions.iter().filter(|d| d.length_stride != 0).map(|d| f64::from(d.size)).product();
        let lengths = lengths * if self.wide_lengths { 8.0 } else { 4.0 };
        let sector = f64::from(SECTOR);
        let moved = (input + output) * self.moving_sectors();
        let footprint = if self.in_place() { input } else { input + output };
        Work {
            bytes: moved * sector + lengths,
            footprint: footprint * sector + lengths,
            accesses: moved,
            misses: moved,
            steps: 0.0,
            details: 0.0,
            rounds: 1.0,
        }
    }

    /// The part of elements that moves: half of them in place.
    pub fn moving(&self) -> f64 {
        if self.in_place() {
            0.5
        } else {
            1.0
        }
    }

    /// The part of sectors that moves. In place, a sector moves if one of its lanes is long enough.
    pub fn moving_sectors(&self) -> f64 {
        let lanes = self.side_by_side().map_or(1, |row| row.size.min(SECTOR / self.width));
        if self.in_place() {
            f64::from(lanes) / f64::from(lanes + 1)
        } else {
            1.0
        }
    }

    /// Sectors of runs of `bytes` bytes at any alignment.
    pub fn sectors_of_run(&self, bytes: f64) -> f64 {
        let sector = f64::from(SECTOR);
        if ceil(bytes / sector) * sector == bytes {
            bytes / sector
        } else {
            (bytes + sector - f64::from(self.width)) / sector
        }
    }

    fn different_sectors(&self, side: Side) -> f64 {
        // Elements that are broadcast are in the same sectors.
        let steps = self.walk.iter().map(|d| (d.strides[side as usize], d.size)).filter(|(stride, _)| *stride > 0);
        let mut dims: Vec<(u32, u32)> = steps.collect();
        dims.sort_unstable();
        let elements: f64 = dims.iter().map(|(_, size)| f64::from(*size)).product();
        let mut run = 1.0;
        let mut of_run = None;
        for (stride, size) in dims {
            if f64::from(stride) != run {
                // Runs that are closer than a sector share sectors.
                of_run = Some(f64::from(stride) * f64::from(self.width) / f64::from(SECTOR));
                break;
            }
            run *= f64::from(size);
        }
        let alone = self.sectors_of_run(run * f64::from(self.width));
        elements / run * of_run.map_or(alone, |shared: f64| shared.min(alone))
    }

    /// Sectors that warps access in a tensor if their threads take units of `unit` bytes, `step` units apart, in the
    /// order of the output. With `at_random`, lanes with lengths of their own are at positions that differ.
    pub fn accesses(&self, side: Side, unit: u32, step: u32, at_random: bool) -> f64 {
        let elements = unit / self.width;
        let (mut left, mut distance, mut sectors) = (WARP, f64::from(step), 1.0);
        for (n, d) in self.walk.iter().enumerate() {
            let (size, stride) = match n {
                0 if elements > 1 => (f64::from((d.size / elements).max(1)), f64::from(unit)),
                _ => (f64::from(d.size), f64::from(d.strides[side as usize]) * f64::from(self.width)),
            };
            let threads = ceil(size / distance).min(left);
            let steps = if distance < size { distance } else { 1.0 };
            let at_one_position = (threads - 1.0) * steps * stride / f64::from(SECTOR) + 1.0;
            let positions = if d.varies && at_random { f64::from(self.axis.size) } else { 1.0 };
            sectors *= threads.min(at_one_position * positions);
            left = ceil(left / threads);
            distance = ceil(distance / size);
            if left <= 1.0 {
                break;
            }
        }
        let warps = self.elements() as f64 / f64::from(elements) / WARP;
        warps * if step == 1 { f64::max(sectors, unit.into()) } else { sectors }
    }

    /// Accesses that the L1 cache does not serve, besides the first to each sector: a sector that is accessed again
    /// after many others has left the cache.
    pub fn missed_again(&self, side: Side, accesses: f64, at_random: bool) -> f64 {
        self.again(side, accesses) * self.missed_parts[side as usize][usize::from(at_random)]
    }

    /// Accesses without the first to each sector.
    pub fn again(&self, side: Side, accesses: f64) -> f64 {
        (accesses - self.sectors[side as usize]).max(0.0)
    }

    fn missed_part(&self, side: Side, at_random: bool) -> f64 {
        let Some(at) = self.walk.iter().position(|d| d.strides[side as usize] == 1) else { return 0.5 };
        let between: f64 = self.walk[..at].iter().map(|d| f64::from(d.size)).product();
        let mut bytes = if between > 1.0 { between * LINE * COMPETING } else { 1.0 };
        if at_random && self.walk[at].varies {
            bytes = bytes.max(f64::from(self.axis.size) * self.bytes(self.walk[at].size) as f64);
        }
        part_of_cache(bytes, 13.0)
    }

    // ---- Blocks, rows and lanes ----------------------------------------------------------------------------------

    pub fn in_place(&self) -> bool {
        self.mode == Mode::InPlace
    }

    /// The dimension, if any, of a contiguous block that moves as one, with one length.
    pub fn block(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|d| is_contiguous(d) && d.length_stride == 0)
    }

    /// Whether the rows of that block are adjacent in both tensors.
    pub fn rows_are_a_run(&self) -> bool {
        let rows = [self.axis.in_stride, self.axis.out_stride];
        self.block().is_some_and(|block| rows == [block.size; 2])
    }

    /// The dimension, if any, of contiguous lanes side by side.
    pub fn side_by_side(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|d| is_contiguous(d) && d.length_stride != 0)
    }

    /// Checks what every kernel for contiguous lanes requires.
    pub fn contiguous_lanes(&self) -> Result<(), RejectReason> {
        let is_contiguous = self.block().is_none() && [self.axis.in_stride, self.axis.out_stride] == [1; 2];
        reject_if(!is_contiguous, "the axis is not contiguous")
    }

    /// Whether elements that are adjacent in the output are of lanes with lengths of their own.
    pub fn lengths_vary_along_the_output(&self) -> bool {
        self.dimensions.iter().any(|d| d.out_stride == 1 && d.length_stride != 0)
    }

    /// Strips of `strip` bytes in rows of lanes side by side.
    pub fn strips(&self, row: &Dimension, strip: u32) -> u64 {
        self.outside_count() * self.bytes(row.size).div_ceil(strip.into())
    }

    /// The bytes of that many elements.
    pub fn bytes(&self, elements: u32) -> u64 {
        u64::from(elements) * u64::from(self.width)
    }

    /// The dimensions without the one of a block or a row.
    pub fn outside(&self) -> impl DoubleEndedIterator<Item = &Dimension> {
        self.dimensions.iter().filter(|d| !is_contiguous(d))
    }

    /// Blocks, or rows of lanes, in all.
    pub fn outside_count(&self) -> u64 {
        self.outside().map(|d| u64::from(d.size)).product()
    }

    /// Lanes in all.
    pub fn lane_count(&self) -> u64 {
        self.dimensions.iter().map(|d| u64::from(d.size)).product()
    }

    pub fn elements(&self) -> u64 {
        self.lane_count() * u64::from(self.axis.size)
    }

    /// Whether the bytes of that many elements are a multiple of `bytes`.
    pub fn divides(&self, elements: u32, bytes: u32) -> bool {
        self.bytes(elements).is_multiple_of(bytes.into())
    }

    /// Whether rows of the elements of `contiguous` are multiples of `long` bytes long, and multiples of `apart` bytes
    /// apart.
    pub fn rows_divide(&self, contiguous: &Dimension, long: u32, apart: u32) -> bool {
        let strides = |size: u32, a: u32, b: u32| size == 1 || (self.divides(a, apart) && self.divides(b, apart));
        self.divides(contiguous.size, long)
            && strides(self.axis.size, self.axis.in_stride, self.axis.out_stride)
            && self.outside().all(|d| strides(d.size, d.in_stride, d.out_stride))
    }

    /// Inserts the axis into dimensions ordered by output stride, so that neighbouring threads write neighbouring
    /// memory.
    pub fn insert_axis(&self, dims: &mut Vec<ReverseDim>, steps: u32, out_stride: u32) {
        let at = dims.iter().position(|dim| dim.out_stride < out_stride).unwrap_or(dims.len());
        dims.insert(at, self.axis_dim(steps));
    }

    /// The axis as a dimension of `steps` steps.
    pub fn axis_dim(&self, steps: u32) -> ReverseDim {
        ReverseDim { size: FastDiv::new(steps), in_stride: 0, out_stride: 0, length_stride: 0, axis: 1 }
    }

    /// Parameters with strides in elements. `list` has the outermost dimension first. There are at most as many items
    /// as elements.
    pub fn parameters(&self, items: u64, list: impl DoubleEndedIterator<Item = ReverseDim>) -> Reverse {
        let mut dims = [ReverseDim::zeroed(); MAX_DIMENSIONS];
        let mut rank = 0;
        for (place, dim) in dims.iter_mut().zip(list.rev()) {
            *place = dim;
            rank += 1;
        }
        Reverse {
            input: 0,
            lengths: 0,
            out: 0,
            items: items as u32,
            form: SCATTERED,
            axis_size: self.axis.size,
            axis_in_stride: self.axis.in_stride,
            axis_out_stride: self.axis.out_stride,
            wide_lengths: self.wide_lengths.into(),
            dims,
            in_bytes: self.input_bytes,
            rank,
            reserved: 0,
        }
    }
}

impl Walked {
    fn new(d: &Dimension, varies: bool) -> Self {
        Self { size: d.size, strides: [d.in_stride, d.out_stride], varies }
    }
}

/// Which part of a cache that many bytes exceed: nothing up to 2 to the power of `least`, all at 64 times as many.
pub(super) fn part_of_cache(bytes: f64, least: f64) -> f64 {
    ((bytes.max(1.0).log2() - least) / 6.0).clamp(0.0, 1.0)
}

fn is_contiguous(d: &Dimension) -> bool {
    d.in_stride == 1 && d.out_stride == 1
}

pub(super) fn dim(d: &Dimension) -> ReverseDim {
    dim_in_units(d, d.size, 1)
}

/// Whether pieces of `size` elements follow each other without gaps in both tensors, in the order of the dimensions.
pub(super) fn are_adjacent<'a>(dimensions: impl DoubleEndedIterator<Item = &'a Dimension>, size: u64) -> bool {
    let mut next = size;
    dimensions.rev().all(|d| {
        let follows = [d.in_stride, d.out_stride].map(u64::from) == [next; 2];
        next *= u64::from(d.size);
        follows
    })
}

/// A dimension of `size` steps. Its strides are counted in units of `elements`.
pub(super) fn dim_in_units(d: &Dimension, size: u32, elements: u32) -> ReverseDim {
    ReverseDim {
        size: FastDiv::new(size),
        in_stride: d.in_stride / elements,
        out_stride: d.out_stride / elements,
        length_stride: d.length_stride,
        axis: 0,
    }
}

/// A launch without its parameters, and the work that it would do.
pub(super) struct Sketch {
    pub family: &'static Family,
    pub costs: &'static FamilyCosts,
    /// Bytes of a unit, which name the entry point of the family.
    pub unit: u32,
    pub grid: Grid,
    /// The alignment that the launch requires of pointers.
    pub alignment: u32,
    /// Bytes of a thread's widest store.
    pub access: u32,
    pub work: Work,
    /// Makes the parameters for a variant.
    pub parameters: fn(&Layout<'_>, &Sketch, u32) -> Box<[u64]>,
}
