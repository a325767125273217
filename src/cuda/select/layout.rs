//! A layout of REVERSE_SUBSEQUENCES for the choice of a kernel, and the parameters that all its kernels take.

use bytemuck::{Pod, Zeroable};

use super::fast_div::FastDiv;
use super::{reject_if, RejectReason};
use crate::cuda::kernels::{Entry, Family};
use crate::cuda::target::GpuTarget;
use crate::cuda::tuning::lanes::*;
use crate::cuda::tuning::segments::MIN_WIDE_LANE_IN_PLACE;
use crate::cuda::tuning::transposed::MIN_DIMENSION;
use crate::cuda::tuning::{clusters, elementwise, strips, SECTOR, VEC16};
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

pub(super) const NO_BLOCK: &str = "there is no contiguous block with one length behind the axis";
pub(super) const NOT_DIVIDED: &str = "a size or a stride of the block is not a multiple of the unit";

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
    /// Whether gathered vectors can copy it. Then every family rejects what they do faster.
    pub gathers: bool,
}

impl<'a> Layout<'a> {
    pub fn new(plan: &'a Plan, mode: Mode, target: &'a GpuTarget) -> Self {
        let &Plan { width, wide_lengths, axis, ref dimensions, input_bytes, .. } = plan;
        let steps = dimensions.iter().chain([&axis]).map(|d| u64::from(d.size - 1) * u64::from(d.out_stride));
        let mut layout = Self { width, wide_lengths, axis, dimensions, input_bytes, mode, target, gathers: false };
        let is_unrolled = dimensions.len() < elementwise::UNROLLED_DIMENSIONS as usize;
        layout.gathers = !layout.in_place() && is_unrolled && layout.elements() == 1 + steps.sum::<u64>();
        layout
    }

    /// Rejects what gathered vectors copy faster: at most that many elements. Each family has its own number.
    pub fn exceeds(&self, most: u64) -> Result<(), RejectReason> {
        reject_if(self.gathers && most == u64::MAX, "elements are gathered faster")?;
        let is_little = self.gathers && self.elements() <= most;
        reject_if(is_little, ("up to {} elements are gathered faster", most))
    }

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
    pub fn row(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|d| is_contiguous(d) && d.length_stride != 0)
    }

    /// Checks what every kernel for contiguous lanes requires.
    pub fn contiguous_lanes(&self) -> Result<(), RejectReason> {
        let is_contiguous = self.block().is_none() && [self.axis.in_stride, self.axis.out_stride] == [1; 2];
        reject_if(!is_contiguous, "the axis is not contiguous")?;
        let is_slow = self.in_place() && self.width == 8 && self.axis.size < MIN_WIDE_LANE_IN_PLACE;
        let text = "lanes of fewer than {} elements of 8 bytes are swapped faster one by one";
        reject_if(is_slow, (text, MIN_WIDE_LANE_IN_PLACE))
    }

    /// The same, and rejects what gathered vectors copy faster: lanes that are not whole vectors, or very long.
    /// Lanes of `middle` bytes are long enough for staging.
    pub fn lanes_exceeding_gathered(&self, middle: u64) -> Result<(), RejectReason> {
        self.contiguous_lanes()?;
        let bytes = self.bytes(self.axis.size);
        self.exceeds(match bytes {
            _ if bytes <= LONG_LANE_BYTES && bytes.is_multiple_of(VEC16.into()) => 0,
            // Lanes of one element in long rows are a copy.
            _ if self.axis.size == 1 && self.row_exceeding(strips::MOST_GATHERED).is_ok() => 0,
            _ if bytes < MIN_LANE_BYTES => MOST_GATHERED,
            _ if bytes < middle => MOST_GATHERED_OF_SHORT_LANES,
            _ if bytes < STAGED_LANE_BYTES => 0,
            _ => MOST_GATHERED,
        })
    }

    /// The places of the two dimensions along which the input and the output are contiguous; the axis is the last.
    pub fn transposed_sides(&self) -> Result<[usize; 2], RejectReason> {
        let all = || self.dimensions.iter().chain([&self.axis]);
        let [Some(place_in), Some(place_out)] = [
            all().position(|d| d.in_stride == 1 && d.size >= MIN_DIMENSION),
            all().position(|d| d.out_stride == 1 && d.size >= MIN_DIMENSION),
        ] else {
            return Err(("a tensor is not contiguous along any dimension of {} elements or more", MIN_DIMENSION).into());
        };
        reject_if(place_in == place_out, "both tensors are contiguous along one dimension")?;
        Ok([place_in, place_out])
    }

    /// Whether elements that are adjacent in the output are of lanes with lengths of their own.
    pub fn lengths_vary_along_the_output(&self) -> bool {
        self.dimensions.iter().any(|d| d.out_stride == 1 && d.length_stride != 0)
    }

    /// Strips of `strip` bytes in rows of lanes side by side.
    pub fn strips(&self, row: &Dimension, strip: u32) -> u64 {
        self.outside_count() * self.bytes(row.size).div_ceil(strip.into())
    }

    /// Whether a thread block can hold a strip of whole sectors, and does not take longer than a cluster.
    pub fn strips_fit_a_block(&self, row: &Dimension) -> bool {
        let most = match self.mode {
            _ if self.strips_are_fewer(row, clusters::FEW) => clusters::MOST_OF_FEW_STRIPS,
            Mode::InPlace => clusters::MOST_IN_PLACE,
            Mode::Copying => u32::MAX,
        };
        let strip = u64::from(self.axis.size) * u64::from(strips::MIN_STRIP_BYTES);
        strip <= u64::from(most.min(self.target.shared_memory))
    }

    /// Whether strips of a sector are fewer than that part of the multiprocessors.
    fn strips_are_fewer(&self, row: &Dimension, part: u64) -> bool {
        self.strips(row, strips::MIN_STRIP_BYTES) < u64::from(self.target.multiprocessors) / part
    }

    /// Whether rows of lanes side by side are short, not whole words (or vectors, of 4-byte elements), or few strips.
    fn strips_are_slow(&self, row: &Dimension) -> bool {
        let whole = if self.width == 4 { VEC16 } else { 4 };
        self.strips_are_fewer(row, strips::STRIPS_ARE_FEW)
            || self.bytes(row.size) < strips::SHORT_ROW_BYTES
            || !self.rows_divide(row, whole, whole)
    }

    /// Rejects lanes that are too short to be staged: a thread block would have little work.
    pub fn lanes_are_at_least(&self, least: &[[u32; 4]; 2]) -> Result<(), RejectReason> {
        let least = self.mode.of(least)[self.width.ilog2() as usize];
        let are_short = (2..least).contains(&self.axis.size);
        reject_if(
            are_short,
            ("lanes side by side of fewer than {} elements are moved faster without being staged", least),
        )
    }

    /// The dimension of contiguous lanes side by side. Of rows whose strips are slow, it rejects what gathered vectors
    /// copy faster: at most that many elements. Very few strips are always slower.
    pub fn row_exceeding(&self, most: u64) -> Result<&Dimension, RejectReason> {
        let row = self.row().ok_or("there are no contiguous lanes side by side, each with its own length")?;
        let very_few = if self.width == 8 { strips::VERY_FEW_OF_8_BYTES } else { strips::VERY_FEW };
        if self.strips_are_fewer(row, very_few) {
            self.exceeds(u64::MAX)?;
        }
        self.exceeds(if self.strips_are_slow(row) { most } else { 0 })?;
        Ok(row)
    }

    /// The same, and rejects rows of at most a sector of elements below 8 bytes.
    pub fn wide_row_exceeding(&self, most: u64) -> Result<&Dimension, RejectReason> {
        let row = self.row_exceeding(most)?;
        let is_narrow = self.gathers && self.width < 8 && self.bytes(row.size) <= u64::from(SECTOR);
        reject_if(is_narrow, ("rows of lanes of at most {} bytes are gathered faster", SECTOR))?;
        Ok(row)
    }

    /// The dimension of a block. Rejects what gathered vectors copy faster: at most that many elements.
    pub fn block_exceeding(&self, most: u64, most_of_4_bytes: u64) -> Result<&Dimension, RejectReason> {
        let block = self.block().ok_or(NO_BLOCK)?;
        self.exceeds(if self.width == 4 { most_of_4_bytes } else { most })?;
        Ok(block)
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

    /// Whether rows are multiples of `long` bytes long, and multiples of `apart` bytes apart.
    pub fn rows_divide(&self, row: &Dimension, long: u32, apart: u32) -> bool {
        let strides = |size: u32, a: u32, b: u32| size == 1 || (self.divides(a, apart) && self.divides(b, apart));
        self.divides(row.size, long)
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

    /// The entry point for this mode that moves units of `unit` bytes.
    pub fn entry(&self, family: &Family, unit: u32) -> Entry {
        family.entry(self.mode, ["_1", "_2", "_4", "_8", "_16"][unit.trailing_zeros() as usize])
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
