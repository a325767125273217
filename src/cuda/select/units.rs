//! Units: an element, or up to 16 bytes of a contiguous block, wherever they lie.

use super::reverse_subsequences::{dim_in, Dim, Layout, Params, Way};
use super::{blocks, THREADS};
use crate::cuda::kernels;
use crate::cuda::launch::Draft;
use crate::layout::MAX_DIMENSIONS;

/// Items that a thread takes (template arguments in the kernel file). Swapping one pair a thread in place of two: block
/// f32 173, not 145.
const ITEMS_OF_COPY: u32 = 4;
const ITEMS_OF_SWAP: u32 = 2;

impl Layout<'_> {
    /// Units of that many bytes, where the layout is made of them: any layout is of its elements.
    pub(super) fn units(&self, in_place: bool, unit: u32) -> Way {
        let params = self.params_of_units(in_place, unit)?;
        let items_of_thread = if in_place { ITEMS_OF_SWAP } else { ITEMS_OF_COPY };
        let kernel = if in_place { &kernels::UNITS_IN_PLACE } else { &kernels::UNITS };
        let entry = kernel.entry(unit.trailing_zeros() as usize);
        let blocks = blocks(params.items, items_of_thread);
        Ok(Draft { entry, blocks, threads: THREADS, shared: 0, alignment: unit, access: unit, params })
    }

    /// Items are units, or pairs of them in place, in dimensions with the axis among them.
    pub(super) fn params_of_units(&self, in_place: bool, unit: u32) -> Result<Params, &'static str> {
        let elements = unit / self.width;
        let divides = |value: u32| value % elements == 0;
        let strides_divide = |size: u32, a: u32, b: u32| size == 1 || (divides(a) && divides(b));
        let fits = elements == 1
            || (elements > 1
                && self.block().is_some_and(|block| divides(block.size))
                && strides_divide(self.axis.size, self.axis.in_stride, self.axis.out_stride)
                && self.outside().all(|d| strides_divide(d.size, d.in_stride, d.out_stride)));
        if !fits {
            return Err("a size or a stride of the block is no multiple of the unit");
        }
        let mut dims: Vec<Dim> = Vec::with_capacity(MAX_DIMENSIONS);
        for d in self.dimensions {
            let inside = elements > 1 && Self::is_block(d);
            let (size, divisor) = if inside { (d.size / elements, 1) } else { (d.size, elements) };
            dims.push(dim_in(d, size, divisor));
        }
        let steps = if in_place { self.axis.size / 2 } else { self.axis.size };
        self.insert_axis(&mut dims, steps, self.axis.out_stride / elements);
        let items = dims.iter().map(|dim| u64::from(dim.size.divisor)).product();
        let mut params = self.params(items, dims.into_iter());
        params.axis_in_stride /= elements;
        params.axis_out_stride /= elements;
        Ok(params)
    }
}
