//! A layout of REVERSE_SUBSEQUENCES for the choice of a kernel: its blocks, rows and lanes.
//!
//! A plan has dimensions in the output's memory order. Kernel families ask for shapes instead, and find them here:
//!
//! ```text
//! inner block          | row 0 | row 1 | ...        `block`: contiguous elements inside the axis, with one length
//! interleaved lanes    | a0 b0 c0 | a1 b1 c1 |      `interleaved`: contiguous elements, with a length each
//! contiguous lanes     | a0 a1 a2 ... |             `contiguous_lanes`: the axis itself is contiguous
//! ```
//!
//! `traffic` counts the memory traffic that a kernel would cause, and `parameters` makes what kernels take.

pub(super) mod parameters;
pub(super) mod traffic;

use super::{reject_if, RejectReason};
use crate::cuda::estimate::Work;
use crate::cuda::kernels::{Entry, Family};
use crate::cuda::parameters::elementwise;
use crate::cuda::target::GpuTarget;
use crate::placement::Placement;
use crate::plan::reverse_plan::{Dimension, Plan};

pub(super) const NO_ROW: &str = "there are no interleaved lanes";
pub(super) const NOT_IN_PLACE: &str = "it does not run in place";
pub(super) const ONLY_IN_PLACE: &str = "it only runs in place";
pub(super) const NO_BLOCK: &str = "there is no inner block with one length";
pub(super) const NOT_DIVIDED: &str =
    "a size or a stride of the block is not a multiple of the unit";

/// A dimension of a walk through all elements in the order of the output's memory.
#[derive(Clone, Copy, Debug)]
struct Walked {
    size: u32,
    /// The strides of the input, of the output and of the lengths.
    strides: [u32; 3],
    /// Whether lanes along it have lengths of their own.
    varies: bool,
    is_axis: bool,
}

/// Counts that all kernels of a layout share, made once.
#[derive(Default)]
struct Traffic {
    /// All dimensions of more than one element, innermost first.
    walk: Vec<Walked>,
    /// Different sectors of the input and the output.
    sectors: [f64; 2],
    least: Work,
    /// By side, and by whether lanes are at random positions. `apart`: accesses of threads with one element each.
    apart: [[f64; 2]; 2],
    missed_parts: [[f64; 2]; 2],
}

/// A layout in one placement, and the GPU that kernels are selected for.
pub(super) struct Layout<'a> {
    /// Bytes of an element.
    pub width: u32,
    pub wide_lengths: bool,
    pub axis: Dimension,
    /// All but the axis, outermost in the output's memory first.
    pub dimensions: &'a [Dimension],
    pub input_bytes: u64,
    pub placement: Placement,
    /// Whether the output is the input, although the placement is out of place.
    pub is_copied_in_place: bool,
    pub target: &'a GpuTarget,
    traffic: Traffic,
}

impl<'a> Layout<'a> {
    pub fn new(plan: &'a Plan, placement: Placement, target: &'a GpuTarget) -> Self {
        let &Plan {
            width,
            wide_lengths,
            axis,
            ref dimensions,
            input_bytes,
            ..
        } = plan;
        let traffic = Traffic::default();
        let mut layout = Self {
            width,
            wide_lengths,
            axis,
            dimensions,
            input_bytes,
            placement,
            is_copied_in_place: false,
            target,
            traffic,
        };
        layout.count();
        layout
    }

    /// The layout of a plan whose output is its input, for kernels that copy.
    pub fn copied_in_place(plan: &'a Plan, target: &'a GpuTarget) -> Self {
        let mut layout = Self::new(plan, Placement::OutOfPlace, target);
        layout.is_copied_in_place = true;
        layout
    }

    /// Whether a thread can gather adjacent elements of the output: it is packed, in few dimensions.
    pub fn gathers(&self) -> bool {
        let steps = self
            .dimensions
            .iter()
            .chain([&self.axis])
            .map(|d| u64::from(d.size - 1) * u64::from(d.out_stride));
        !self.in_place()
            && self.has_at_most(elementwise::FEW_DIMENSIONS)
            && self.elements() == 1 + steps.sum::<u64>()
    }

    /// Whether it has at most this number of dimensions, including the axis.
    pub fn has_at_most(&self, dimensions: u32) -> bool {
        self.dimensions.len() < dimensions as usize
    }

    pub fn in_place(&self) -> bool {
        self.placement == Placement::InPlace
    }

    /// What moves along the axis: positions or, in place, pairs of them.
    pub fn steps(&self) -> u32 {
        if self.in_place() {
            self.axis.size / 2
        } else {
            self.axis.size
        }
    }

    /// The dimension, if any, of a contiguous block that moves as one, with one length.
    pub fn block(&self) -> Option<&Dimension> {
        self.dimensions
            .iter()
            .find(|d| is_contiguous(d) && d.length_stride == 0)
    }

    /// Whether the rows of that block are adjacent in both tensors.
    pub fn rows_are_a_run(&self) -> bool {
        let rows = [self.axis.in_stride, self.axis.out_stride];
        self.block().is_some_and(|block| rows == [block.size; 2])
    }

    /// The dimension of interleaved lanes, if there are any.
    pub fn interleaved(&self) -> Option<&Dimension> {
        self.dimensions
            .iter()
            .find(|d| is_contiguous(d) && d.length_stride != 0)
    }

    /// Checks what every kernel for contiguous lanes requires.
    pub fn contiguous_lanes(&self) -> Result<(), RejectReason> {
        let is_contiguous =
            self.block().is_none() && [self.axis.in_stride, self.axis.out_stride] == [1; 2];
        reject_if(!is_contiguous, "the axis is not contiguous")
    }

    /// Whether kernels that copy may be right in place: what moves together is contiguous.
    pub fn may_be_copied_in_place(&self) -> bool {
        self.interleaved().is_some() || self.rows_are_a_run() || self.contiguous_lanes().is_ok()
    }

    /// Whether elements that are adjacent in the output belong to lanes with lengths of their own.
    pub fn lengths_vary_along_the_output(&self) -> bool {
        self.dimensions
            .iter()
            .any(|d| d.out_stride == 1 && d.length_stride != 0)
    }

    /// Strips of `strip` bytes in rows of interleaved lanes.
    pub fn strips(&self, row: &Dimension, strip: u32) -> u64 {
        self.outside_count() * self.bytes(row.size).div_ceil(strip.into())
    }

    /// The bytes of a number of elements.
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

    /// The entry point of a family for units of `unit` bytes.
    pub fn entry(&self, family: &Family, unit: u32) -> Result<Entry, RejectReason> {
        family
            .find(self.placement, unit)
            .ok_or("it is not built for units of that width".into())
    }

    /// Whether the bytes of a number of elements are a multiple of `bytes`.
    pub fn divides(&self, elements: u32, bytes: u32) -> bool {
        self.bytes(elements).is_multiple_of(bytes.into())
    }

    /// Whether rows of the elements of `contiguous` are multiples of `length_unit` bytes long, and multiples of
    /// `pitch_unit` bytes apart.
    pub fn rows_divide(&self, contiguous: &Dimension, length_unit: u32, pitch_unit: u32) -> bool {
        let strides = |size: u32, a: u32, b: u32| {
            size == 1 || (self.divides(a, pitch_unit) && self.divides(b, pitch_unit))
        };
        self.divides(contiguous.size, length_unit)
            && strides(self.axis.size, self.axis.in_stride, self.axis.out_stride)
            && self
                .outside()
                .all(|d| strides(d.size, d.in_stride, d.out_stride))
    }
}

impl Walked {
    fn new(d: &Dimension, is_axis: bool) -> Self {
        let strides = [d.in_stride, d.out_stride, d.length_stride];
        Self {
            size: d.size,
            strides,
            varies: d.length_stride != 0,
            is_axis,
        }
    }
}

pub(super) fn is_contiguous(d: &Dimension) -> bool {
    d.in_stride == 1 && d.out_stride == 1
}

/// Whether pieces of `size` elements follow each other without gaps in both tensors, in the order of the dimensions.
pub(super) fn are_adjacent<'a>(
    dimensions: impl DoubleEndedIterator<Item = &'a Dimension>,
    size: u64,
) -> bool {
    let mut next = size;
    dimensions.rev().all(|d| {
        let follows = [d.in_stride, d.out_stride].map(u64::from) == [next; 2];
        next *= u64::from(d.size);
        follows
    })
}
