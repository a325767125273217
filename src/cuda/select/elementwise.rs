//! reverse_elementwise.cu: units of one element or up to 16 bytes, at any strides.

use super::layout::{dim_in_units, Layout, Reverse, ReverseDim, NOT_DIVIDED, NO_BLOCK};
use super::{blocks, reject, RejectReason};
use crate::cuda::kernels;
use crate::cuda::launch::Launch;
use crate::cuda::tuning::elementwise::*;
use crate::cuda::tuning::{THREADS, VEC16};
use crate::layout::MAX_DIMENSIONS;

/// Units of `UNIT` bytes, several per thread. Units of one element fit any layout.
pub(super) fn units<const UNIT: u32>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let params = parameters(layout, UNIT)?;
    let (kernel, per_thread) = if layout.in_place {
        (&kernels::ELEMENTWISE_IN_PLACE, PAIRS_PER_THREAD)
    } else {
        (&kernels::ELEMENTWISE, if UNIT == VEC16 { 1 } else { ITEMS_PER_THREAD })
    };
    let entry = kernel.entry(UNIT.trailing_zeros() as usize);
    let blocks = blocks(params.items.into(), per_thread);
    Ok(Launch { entry, blocks, threads: THREADS, shared: 0, alignment: UNIT, access: UNIT, params }.erase())
}

/// Little work: one unit of 16 bytes per thread.
pub(super) fn small_vectors(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    small(layout, VEC16, SMALL_VECTORS)
}

/// Little work: one element per thread.
pub(super) fn small_elements(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let most = if layout.row().is_some() { SMALL_UNITS_SIDE_BY_SIDE } else { SMALL_UNITS };
    small(layout, layout.width, most)
}

fn small(layout: &Layout<'_>, unit: u32, most: u64) -> Result<Launch, RejectReason> {
    let in_place = layout.in_place;
    let mut params = parameters(layout, unit)?;
    if params.rank > UNROLLED_DIMENSIONS || u64::from(params.items) * if in_place { 2 } else { 1 } > most {
        return reject("there is too much work, or there are too many dimensions");
    }
    // If scattered, neighbouring lanes would be written far apart.
    params.gather = (layout.row().is_some() && !in_place).into();
    let kernel = if in_place { &kernels::SMALL_IN_PLACE } else { &kernels::SMALL };
    let entry = kernel.entry(unit.trailing_zeros() as usize);
    let blocks = blocks(params.items.into(), 1);
    Ok(Launch { entry, blocks, threads: THREADS, shared: 0, alignment: unit, access: unit, params }.erase())
}

/// The parameters for units of `unit` bytes. An item is a unit or, in place, a pair of units; the axis is among the
/// dimensions.
fn parameters(layout: &Layout<'_>, unit: u32) -> Result<Reverse, RejectReason> {
    let axis = &layout.axis;
    let elements = unit / layout.width;
    let divides = |value: u32| value.is_multiple_of(elements);
    let strides_divide = |size: u32, a: u32, b: u32| size == 1 || (divides(a) && divides(b));
    let fits = elements == 1
        || (elements > 1
            && divides(layout.block().ok_or(NO_BLOCK)?.size)
            && strides_divide(axis.size, axis.in_stride, axis.out_stride)
            && layout.outside().all(|d| strides_divide(d.size, d.in_stride, d.out_stride)));
    if !fits {
        return reject(NOT_DIVIDED);
    }
    let mut dims: Vec<ReverseDim> = Vec::with_capacity(MAX_DIMENSIONS);
    for d in layout.dimensions {
        let inside = elements > 1 && d.in_stride == 1 && d.out_stride == 1;
        let (size, divisor) = if inside { (d.size / elements, 1) } else { (d.size, elements) };
        dims.push(dim_in_units(d, size, divisor));
    }
    let steps = if layout.in_place { axis.size / 2 } else { axis.size };
    layout.insert_axis(&mut dims, steps, axis.out_stride / elements);
    let items = dims.iter().map(|dim| u64::from(dim.size.divisor)).product();
    let mut params = layout.parameters(items, dims.into_iter());
    params.axis_in_stride /= elements;
    params.axis_out_stride /= elements;
    Ok(params)
}
