//! The parameters of every kernel of REVERSE_SUBSEQUENCES.

use bytemuck::{Pod, Zeroable};

use super::Layout;
use crate::cuda::select::fast_div::FastDiv;
use crate::desc::MAX_DIMENSIONS;
use crate::plan::reverse_plan::Dimension;

/// `ReverseDim` of kernels/reverse.cuh.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(in crate::cuda::select) struct ReverseDim {
    pub size: FastDiv,
    pub in_stride: u32,
    pub out_stride: u32,
    pub length_stride: u32,
    pub axis: u32,
}

/// `Reverse` of kernels/reverse.cuh: the parameters of every kernel but the small ones. Strides count the kernel's
/// units.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(in crate::cuda::select) struct Reverse {
    pub input: u64,
    pub lengths: u64,
    pub out: u64,
    pub items: u32,
    pub rank: u32,
    pub axis_size: u32,
    pub axis_in_stride: u32,
    pub axis_out_stride: u32,
    pub wide_lengths: u32,
    pub dims: [ReverseDim; MAX_DIMENSIONS],
    pub in_bytes: u64,
    pub form: u32,
    pub reserved: u32,
}

/// How elementwise kernels copy (same in reverse.cuh).
pub(in crate::cuda::select) const SINGLE_UNITS: u32 = 0;
pub(in crate::cuda::select) const GATHERED_VECTORS: u32 = 1;
pub(in crate::cuda::select) const GATHERED_HALF_VECTORS: u32 = 2;
/// Added to the last two: every vector is in one row of the output.
pub(in crate::cuda::select) const IN_ROWS: u32 = 4;

const _: () = assert!(size_of::<ReverseDim>() == 32 && size_of::<Reverse>() == 320);

impl Layout<'_> {
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
            rank,
            axis_size: self.axis.size,
            axis_in_stride: self.axis.in_stride,
            axis_out_stride: self.axis.out_stride,
            wide_lengths: self.wide_lengths.into(),
            dims,
            in_bytes: self.input_bytes,
            form: SINGLE_UNITS,
            reserved: 0,
        }
    }
}

impl Reverse {
    /// Its dimensions, innermost first.
    pub fn dims(&self) -> &[ReverseDim] {
        &self.dims[..self.rank as usize]
    }

    /// Inserts a dimension. `at` counts from the innermost one.
    pub fn insert(&mut self, at: usize, dim: ReverseDim) {
        self.dims.copy_within(at..self.rank as usize, at + 1);
        self.dims[at] = dim;
        self.rank += 1;
    }

    /// Inserts the axis into dimensions ordered by output stride, so that neighbouring threads write neighbouring
    /// memory. The stride of an axis of one step says nothing, so that axis is the outermost.
    pub fn insert_axis(&mut self, steps: u32, out_stride: u32) {
        let outside = self.dims().iter().rposition(|dim| steps == 1 || dim.out_stride < out_stride);
        self.insert(outside.map_or(0, |inside| inside + 1), axis_dim(steps));
    }
}

/// The axis as a dimension of `steps` steps.
pub(in crate::cuda::select) fn axis_dim(steps: u32) -> ReverseDim {
    ReverseDim { size: FastDiv::new(steps), in_stride: 0, out_stride: 0, length_stride: 0, axis: 1 }
}

pub(in crate::cuda::select) fn dim(d: &Dimension) -> ReverseDim {
    dim_in_units(d, d.size, 1)
}

/// A dimension of `size` steps. Its strides are counted in units of `elements`.
pub(in crate::cuda::select) fn dim_in_units(d: &Dimension, size: u32, elements: u32) -> ReverseDim {
    ReverseDim {
        size: FastDiv::new(size),
        in_stride: d.in_stride / elements,
        out_stride: d.out_stride / elements,
        length_stride: d.length_stride,
        axis: 0,
    }
}
