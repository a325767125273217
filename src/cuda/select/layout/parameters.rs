//! The part of the parameters that all kernels of REVERSE_SUBSEQUENCES share. Each family has a structure around it.

use bytemuck::Zeroable;

use super::Layout;
use crate::cuda::parameters::{FastDiv, Reverse, ReverseDim, MAX_DIMS};
use crate::plan::reverse_plan::Dimension;

impl Layout<'_> {
    /// Parameters with strides in elements. `list` has the outermost dimension first. There are at most as many items
    /// as elements.
    pub fn parameters(
        &self,
        items: u64,
        list: impl DoubleEndedIterator<Item = ReverseDim>,
    ) -> Reverse {
        let mut dims = [ReverseDim::zeroed(); MAX_DIMS as usize];
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
            form: 0,
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
        let outside = self
            .dims()
            .iter()
            .rposition(|dim| steps == 1 || dim.out_stride < out_stride);
        self.insert(outside.map_or(0, |inside| inside + 1), axis_dim(steps));
    }
}

/// The axis as a dimension of `steps` steps.
pub(in crate::cuda::select) fn axis_dim(steps: u32) -> ReverseDim {
    ReverseDim {
        size: FastDiv::new(steps),
        in_stride: 0,
        out_stride: 0,
        length_stride: 0,
        axis: 1,
    }
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
