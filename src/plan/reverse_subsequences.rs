//! The plan of REVERSE_SUBSEQUENCES: the axis, the dimensions beside it, and the kernels that move the bits.

use std::ffi::CStr;

use bytemuck::{Pod, Zeroable};

use super::fill_value_sequence::follows;
use super::{blocks, slots_of_run, Entry, FastDiv, Launch, Module, MAX_DIMENSIONS, SLOT};
use crate::data_type::TensorDataType;
use crate::desc::{BufferTensorDesc, ReverseSubsequencesDesc};
use crate::layout;

/// A dimension beside the axis. Strides are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub size: u32,
    pub in_stride: u32,
    pub out_stride: u32,
    pub length_stride: u32,
}

/// The dimension along which lanes run. Strides are in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub size: u32,
    pub in_stride: u32,
    pub out_stride: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Bytes of an element.
    pub width: u32,
    /// Lengths are UINT64, not UINT32.
    pub wide_lengths: bool,
    pub axis: Axis,
    /// Of size above 1, merged, outermost in the output's memory first.
    pub dimensions: Vec<Dimension>,
    /// Ways to copy, fastest first; the last takes any pointers.
    pub copy: Vec<Launch<Params>>,
    /// The same in place: `None` where the two tensors have different strides, empty where nothing moves.
    pub in_place: Option<Vec<Launch<Params>>>,
}

/// `ReverseDim` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Dim {
    pub size: FastDiv,
    pub in_stride: u32,
    pub out_stride: u32,
    pub length_stride: u32,
    pub axis: u32,
}

/// `Reverse` of the kernel file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Params {
    pub input: u64,
    pub lengths: u64,
    pub out: u64,
    pub items: u64,
    pub in_bytes: u64,
    pub axis_size: u32,
    pub axis_in_stride: u32,
    pub axis_out_stride: u32,
    pub wide_lengths: u32,
    pub slots_of_lane: FastDiv,
    pub rank: u32,
    pub reserved: u32,
    pub dims: [Dim; MAX_DIMENSIONS],
}

/// Entry points: copying, swapping in place, contiguous lanes; narrowest unit first.
pub(crate) const ENTRIES: &[&CStr] = &[
    c"reverse_copy_1",
    c"reverse_copy_2",
    c"reverse_copy_4",
    c"reverse_copy_8",
    c"reverse_copy_16",
    c"reverse_swap_1",
    c"reverse_swap_2",
    c"reverse_swap_4",
    c"reverse_swap_8",
    c"reverse_swap_16",
    c"reverse_lanes_1",
    c"reverse_lanes_2",
    c"reverse_lanes_4",
    c"reverse_lanes_8",
];
const COPY: usize = 0;
const SWAP: usize = 5;
const LANES: usize = 10;

/// Units that a thread of `reverse_copy_*` moves.
const ITEMS_OF_COPY: u32 = 4;

/// Shorter lanes are mostly their two ends, which `reverse_lanes_*` moves element by element anyway.
const MIN_LANE_BYTES: u64 = 32;

impl Plan {
    /// The plan of a validated descriptor; `None` where it was not validated.
    pub fn new(desc: &ReverseSubsequencesDesc) -> Option<Self> {
        let (input, lengths, output) = (&desc.input_tensor, &desc.sequence_lengths_tensor, &desc.output_tensor);
        let (in_strides, length_strides, out_strides) = (strides(input), strides(lengths), strides(output));
        let a = desc.axis as usize;
        let axis =
            Axis { size: *input.sizes.get(a)?, in_stride: *in_strides.get(a)?, out_stride: *out_strides.get(a)? };
        let beside = (0..input.sizes.len()).filter(|&d| d != a).map(|d| Dimension {
            size: input.sizes[d],
            in_stride: in_strides[d],
            out_stride: out_strides[d],
            length_stride: length_strides[d],
        });
        let mut plan = Self {
            width: input.data_type.size_in_bits() / 8,
            wide_lengths: lengths.data_type == TensorDataType::UInt64,
            axis,
            dimensions: merge(beside.collect()),
            copy: Vec::new(),
            in_place: None,
        };
        let in_bytes = input.total_tensor_size_in_bytes;
        if plan.axis.in_stride == 1
            && plan.axis.out_stride == 1
            && u64::from(axis.size) * u64::from(plan.width) >= MIN_LANE_BYTES
        {
            plan.copy = plan.lanes(in_bytes);
        } else {
            plan.copy = plan.units(COPY, ITEMS_OF_COPY, axis.size, in_bytes);
        }
        if plan.may_run_in_place() {
            plan.in_place = Some(if axis.size < 2 { Vec::new() } else { plan.units(SWAP, 1, axis.size / 2, in_bytes) });
        }
        Some(plan)
    }

    fn may_run_in_place(&self) -> bool {
        let same_axis = self.axis.size == 1 || self.axis.in_stride == self.axis.out_stride;
        same_axis && self.dimensions.iter().all(|d| d.in_stride == d.out_stride)
    }

    /// The dimension, if any, of a contiguous block that moves as one: one length for all of it.
    fn block(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|d| d.in_stride == 1 && d.out_stride == 1 && d.length_stride == 0)
    }

    /// Launches of `copy` or `swap`, widest unit first: where a block lies behind the axis, a unit may be
    /// several of its elements. `steps` are the positions on the axis that are items.
    fn units(&self, kind: usize, items_of_thread: u32, steps: u32, in_bytes: u64) -> Vec<Launch<Params>> {
        let block = self.block().map(|block| block.size);
        let fits = |elements: u32| {
            let divides = |value: u32| value % elements == 0;
            block.is_some_and(divides)
                && (self.axis.size == 1 || (divides(self.axis.in_stride) && divides(self.axis.out_stride)))
                && self.dimensions.iter().all(|d| d.in_stride == 1 || (divides(d.in_stride) && divides(d.out_stride)))
        };
        let units = [16u32, 8, 4, 2, 1].into_iter().filter(|&unit| unit >= self.width);
        let units = units.filter(|&unit| unit == self.width || fits(unit / self.width));
        units.map(|unit| self.unit_launch(kind, items_of_thread, steps, in_bytes, unit)).collect()
    }

    fn unit_launch(&self, kind: usize, items_of_thread: u32, steps: u32, in_bytes: u64, unit: u32) -> Launch<Params> {
        let elements = unit / self.width;
        let mut dims: Vec<(u32, Dim)> = Vec::with_capacity(MAX_DIMENSIONS);
        for d in &self.dimensions {
            let inside = elements > 1 && d.in_stride == 1 && d.out_stride == 1 && d.length_stride == 0;
            let (size, divisor) = if inside { (d.size / elements, 1) } else { (d.size, elements) };
            let (in_stride, out_stride) = (d.in_stride / divisor, d.out_stride / divisor);
            let dim = Dim { size: FastDiv::new(size), in_stride, out_stride, length_stride: d.length_stride, axis: 0 };
            dims.push((out_stride, dim));
        }
        let (axis_in_stride, axis_out_stride) = (self.axis.in_stride / elements, self.axis.out_stride / elements);
        let axis = Dim { size: FastDiv::new(steps), in_stride: 0, out_stride: 0, length_stride: 0, axis: 1 };
        dims.push((axis_out_stride, axis));
        // Neighbouring threads write neighbouring memory.
        dims.sort_by_key(|&(out_stride, _)| std::cmp::Reverse(out_stride));
        let items = dims.iter().map(|(_, dim)| u64::from(dim.size.divisor)).product();
        let entry = Entry { module: Module::ReverseSubsequences, index: kind + unit.trailing_zeros() as usize };
        let mut params = self.params(in_bytes, items, 1, dims.into_iter().map(|(_, dim)| dim));
        params.axis_in_stride = axis_in_stride;
        params.axis_out_stride = axis_out_stride;
        Launch { entry, blocks: blocks(items, items_of_thread), alignment: unit, params }
    }

    /// Launches of `reverse_lanes_*`, fewest slots first.
    fn lanes(&self, in_bytes: u64) -> Vec<Launch<Params>> {
        let aligned =
            self.dimensions.iter().all(|d| u64::from(d.out_stride) * u64::from(self.width) % u64::from(SLOT) == 0);
        let lanes: u64 = self.dimensions.iter().map(|d| u64::from(d.size)).product();
        let entry = Entry { module: Module::ReverseSubsequences, index: LANES + self.width.trailing_zeros() as usize };
        let launch = |aligned: bool| {
            let slots = slots_of_run(self.axis.size, self.width, aligned);
            let items = lanes * u64::from(slots);
            let dims = self.dimensions.iter().map(|d| Dim {
                size: FastDiv::new(d.size),
                in_stride: d.in_stride,
                out_stride: d.out_stride,
                length_stride: d.length_stride,
                axis: 0,
            });
            let params = self.params(in_bytes, items, slots, dims);
            Launch { entry, blocks: blocks(items, 1), alignment: if aligned { SLOT } else { self.width }, params }
        };
        let ways: &[bool] = if aligned { &[true, false] } else { &[false] };
        ways.iter().map(|&aligned| launch(aligned)).collect()
    }

    fn params(&self, in_bytes: u64, items: u64, slots: u32, list: impl Iterator<Item = Dim>) -> Params {
        let mut dims = [Dim::zeroed(); MAX_DIMENSIONS];
        let mut rank = 0;
        for (place, dim) in dims.iter_mut().zip(list) {
            *place = dim;
            rank += 1;
        }
        Params {
            input: 0,
            lengths: 0,
            out: 0,
            items,
            in_bytes,
            axis_size: self.axis.size,
            axis_in_stride: self.axis.in_stride,
            axis_out_stride: self.axis.out_stride,
            wide_lengths: self.wide_lengths.into(),
            slots_of_lane: FastDiv::new(slots),
            rank,
            reserved: 0,
            dims,
        }
    }
}

fn strides(tensor: &BufferTensorDesc) -> Vec<u32> {
    tensor.strides.clone().unwrap_or_else(|| layout::packed_strides(&tensor.sizes))
}

/// Drops dimensions of size 1, orders the rest by output stride, and joins neighbours that are one in all
/// three tensors.
fn merge(mut dimensions: Vec<Dimension>) -> Vec<Dimension> {
    dimensions.retain(|d| d.size > 1);
    dimensions.sort_by_key(|d| std::cmp::Reverse(d.out_stride));
    let mut merged: Vec<Dimension> = Vec::with_capacity(dimensions.len());
    for inner in dimensions {
        match merged.last_mut() {
            Some(outer)
                if follows(outer.out_stride, inner.out_stride, inner.size)
                    && follows(outer.in_stride, inner.in_stride, inner.size)
                    && follows(outer.length_stride, inner.length_stride, inner.size) =>
            {
                *outer = Dimension { size: outer.size * inner.size, ..inner };
            }
            _ => merged.push(inner),
        }
    }
    merged
}
