//! reverse_elementwise.cu: units of one element or up to 16 bytes, at any strides.

use super::layout::{
    dim_in_units, Layout, Reverse, ReverseDim, GATHERED, GATHERED_VECTORS, NOT_DIVIDED, NO_BLOCK, SCATTERED,
};
use super::packed_lanes::in_registers;
use super::rows::rows;
use super::{blocks, reject, strips, RejectReason};
use crate::cuda::kernels;
use crate::cuda::launch::Launch;
use crate::cuda::tuning::elementwise::*;
use crate::cuda::tuning::{THREADS, VEC16};
use crate::desc::layout::MAX_DIMENSIONS;

/// Units of `UNIT` bytes, several per thread. Units of one element fit any layout.
pub(super) fn units<const UNIT: u32>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let mut params = parameters(layout, UNIT)?;
    let is_scattered = layout.in_place || layout.block().is_some() && params.rank <= UNROLLED_DIMENSIONS;
    params.form = if is_scattered { SCATTERED } else { GATHERED };
    let (kernel, per_thread) = if layout.in_place {
        (&kernels::ELEMENTWISE_IN_PLACE, PAIRS_PER_THREAD)
    } else {
        (&kernels::ELEMENTWISE, if UNIT == VEC16 { 1 } else { ITEMS_PER_THREAD })
    };
    let entry = kernel.entry(UNIT.trailing_zeros() as usize);
    let blocks = blocks(params.items.into(), per_thread);
    Ok(Launch { entry, blocks, threads: THREADS, shared: 0, alignment: UNIT, access: UNIT, params }.erase())
}

/// Middle-sized work, copying: a vector of adjacent elements of the output per thread, or half a vector of bytes.
pub(super) fn vectors(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let mut params = parameters(layout, layout.width)?;
    let (axis, items) = (&layout.axis, u64::from(params.items));
    let lane = u64::from(axis.size) * u64::from(layout.width);
    let is_slow = match layout.block() {
        Some(_) => units::<VEC16>(layout).is_err() && rows(layout).is_err(),
        None => {
            let is_whole = layout.divides(axis.size, VEC16) || in_registers(layout).is_ok();
            !is_whole && !(MIDDLE_LANE_BYTES[0]..MIDDLE_LANE_BYTES[1]).contains(&lane)
        }
    };
    let most = match layout.row() {
        Some(row) if strips::are_slow(layout, row) => MIDDLE_UNITS_SIDE_BY_SIDE,
        None if layout.width < 8 && is_slow => MIDDLE_UNITS,
        _ => 0,
    };
    let steps = |size: u32, stride: u32| u64::from(size - 1) * u64::from(stride);
    let others = layout.dimensions.iter().map(|d| steps(d.size, d.out_stride));
    let span = 1 + steps(axis.size, axis.out_stride) + others.sum::<u64>();
    if params.rank > UNROLLED_DIMENSIONS || items > most || items != span {
        return reject("there is too much work, or there are too many dimensions, or the output is not packed");
    }
    params.form = GATHERED_VECTORS;
    let access = VEC16.min(8 * layout.width);
    let entry = kernels::ELEMENTWISE.entry(layout.width_index());
    let blocks = blocks(items, access / layout.width);
    Ok(Launch { entry, blocks, threads: THREADS, shared: 0, alignment: access, access, params }.erase())
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
    params.form = if layout.row().is_some() && !in_place { GATHERED } else { SCATTERED };
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
