//! reverse_elementwise.cu, its kernels for little work: one unit per thread.

use bytemuck::{Pod, Zeroable};

use super::elementwise::{self, work};
use super::fast_div::multiplier;
use super::layout::parameters::{ReverseDim, SCATTERED};
use super::layout::{Layout, Sketch};
use super::{blocks, reject_if, RejectReason};
use crate::cuda::costs;
use crate::cuda::estimate::Grid;
use crate::cuda::kernels;
use crate::cuda::launch::words;
use crate::cuda::tuning::elementwise::*;
use crate::cuda::tuning::{THREADS, VEC16};

/// `SmallDim` of kernels/reverse_elementwise.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct SmallDim {
    multiplier: u32,
    divisor: u32,
    in_stride: u32,
    out_stride: u32,
    length_stride: u32,
}

/// `Small` of kernels/reverse_elementwise.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Small {
    input: u64,
    lengths: u64,
    out: u64,
    items: u32,
    flags: u32,
    axis_size: u32,
    axis_in_stride: u32,
    axis_out_stride: u32,
    dims: [SmallDim; UNROLLED_DIMENSIONS as usize],
}

const _: () = assert!(size_of::<SmallDim>() == 20 && size_of::<Small>() == 144);

/// Flags (same in the kernel). `AXIS` times the number of a dimension: it is the axis.
const WIDE_LENGTHS: u32 = 1;
const MANY_DIMENSIONS: u32 = 2;
const AXIS: u32 = 16;
const GATHERS: u32 = 1 << 31;

pub(super) fn small(layout: &Layout<'_>, unit: u32) -> Result<Sketch, RejectReason> {
    let items = parameters(layout, unit)?.items;
    let grid = Grid { blocks: blocks(items.into(), 1), threads: THREADS, shared: 0 };
    let scatters = unit == VEC16 || !layout.lengths_vary_along_the_output();
    let work = work(layout, unit, grid, 1, scatters, false);
    let parameters =
        |layout: &Layout<'_>, sketch: &Sketch, _| words(parameters(layout, sketch.unit).expect("there is a sketch"));
    let (family, costs) = (&kernels::SMALL, &costs::SMALL);
    Ok(Sketch { family, costs, unit, grid, alignment: unit, access: unit, work, parameters })
}

fn parameters(layout: &Layout<'_>, unit: u32) -> Result<Small, RejectReason> {
    elementwise::items(layout, unit)?;
    reject_if(!layout.has_at_most(UNROLLED_DIMENSIONS), ("it takes at most {} dimensions", UNROLLED_DIMENSIONS))?;
    let general = elementwise::parameters(layout, unit, SCATTERED);
    let mut dims = general.dims;
    let dims = &mut dims[..general.rank as usize];
    // The kernel does not divide by 1, but may have dimensions of one step outermost.
    dims.sort_by_key(|dim| dim.size.divisor == 1);
    let mut small = Small {
        items: general.items,
        flags: if layout.wide_lengths { WIDE_LENGTHS } else { 0 },
        axis_size: general.axis_size,
        axis_in_stride: general.axis_in_stride,
        axis_out_stride: general.axis_out_stride,
        ..Small::zeroed()
    };
    if dims.len() > FEW_DIMENSIONS as usize {
        small.flags |= MANY_DIMENSIONS;
    }
    // If scattered, neighbouring lanes would be written far apart.
    if layout.lengths_vary_along_the_output() && !layout.in_place() {
        small.flags |= GATHERS;
    }
    let mut numbers = general.items;
    for (n, (dim, small_dim)) in (0..).zip(dims.iter().zip(&mut small.dims)) {
        let &ReverseDim { size, in_stride, out_stride, length_stride, axis } = dim;
        let divisor = size.divisor;
        let multiplier = if numbers == divisor { Some(0) } else { multiplier(divisor, numbers) };
        let multiplier = multiplier.ok_or("positions need more than one multiplication for each dimension")?;
        *small_dim = SmallDim { multiplier, divisor, in_stride, out_stride, length_stride };
        small.flags += axis * n * AXIS;
        numbers /= divisor;
    }
    Ok(small)
}
