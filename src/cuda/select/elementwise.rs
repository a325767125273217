//! reverse_elementwise.cu: units of one element or up to 16 bytes, at any strides.

use super::layout::{
    dim_in_units, Layout, Reverse, ReverseDim, GATHERED, GATHERED_HALF_VECTORS, GATHERED_VECTORS, NOT_DIVIDED,
    NO_BLOCK, SCATTERED,
};
use super::packed_lanes::in_registers;
use super::rows::rows;
use super::{blocks, lanes, reject_if, strips, transposed, RejectReason};
use crate::cuda::tuning::elementwise::*;
use crate::cuda::tuning::lanes::LONG_LANE_BYTES;
use crate::cuda::tuning::VEC16;
use crate::cuda::{kernels, Launch};

/// Units of `UNIT` bytes, several per thread. Units of one element fit any layout.
pub(super) fn units<const UNIT: u32>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let mut params = parameters(layout, UNIT)?;
    let is_scattered = layout.in_place() || layout.block().is_some() && params.rank <= UNROLLED_DIMENSIONS;
    params.form = if is_scattered { SCATTERED } else { GATHERED };
    let per_thread = match UNIT {
        _ if layout.in_place() => PAIRS_PER_THREAD,
        VEC16 => 1,
        _ => ITEMS_PER_THREAD,
    };
    let entry = layout.entry(&kernels::ELEMENTWISE, UNIT);
    let blocks = blocks(params.items.into(), per_thread);
    Ok(Launch::new(entry, blocks, UNIT, params))
}

/// The same for blocks only.
pub(super) fn units_of_blocks<const UNIT: u32>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    layout.block().ok_or(NO_BLOCK)?;
    units::<UNIT>(layout)
}

/// Middle-sized work, copying: a vector of adjacent elements of the output per thread, or half a vector of bytes. Half as much for
/// few elements, except those of contiguous lanes.
pub(super) fn vectors(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let mut params = parameters(layout, layout.width)?;
    let (axis, items) = (&layout.axis, u64::from(params.items));
    let steps = |size: u32, stride: u32| u64::from(size - 1) * u64::from(stride);
    let others = layout.dimensions.iter().map(|d| steps(d.size, d.out_stride));
    let span = 1 + steps(axis.size, axis.out_stride) + others.sum::<u64>();
    reject_if(
        params.rank > UNROLLED_DIMENSIONS || items != span || items > most_in_vectors(layout, items),
        "there is too much work, or there are too many dimensions, or the output is not packed",
    )?;
    let whole = VEC16.min(8 * layout.width);
    let is_half = items <= FEW_UNITS && layout.width < 8 && lanes::contiguous(layout).is_err();
    let (form, access) = if is_half { (GATHERED_HALF_VECTORS, whole / 2) } else { (GATHERED_VECTORS, whole) };
    params.form = form;
    let entry = layout.entry(&kernels::ELEMENTWISE, layout.width);
    let blocks = blocks(items, access / layout.width);
    Ok(Launch::new(entry, blocks, access, params))
}

/// The most elements for which `vectors` is faster than the candidates after it.
fn most_in_vectors(layout: &Layout<'_>, items: u64) -> u64 {
    if let Some(row) = layout.row() {
        return if strips::are_slow(layout, row) { MIDDLE_UNITS_OF_LANES } else { 0 };
    }
    if layout.block().is_some() {
        let is_slow = layout.width < 8 && units::<8>(layout).is_err() && rows(layout).is_err();
        return match layout.width {
            4 if is_slow => MIDDLE_UNITS_OF_4_BYTES,
            _ if is_slow => MIDDLE_UNITS,
            _ => 0,
        };
    }
    if lanes::contiguous(layout).is_err() {
        return match transposed::room(layout) {
            Ok(_) if transposed::transposed::<true>(layout).is_ok() && !lengths_vary_along_the_output(layout) => 0,
            Ok(room) => MIDDLE_UNITS_TRANSPOSED + EMPTY_UNITS_TRANSPOSED * (room - items) / room,
            Err(_) => MIDDLE_UNITS_OF_LANES,
        };
    }
    let lane = layout.bytes(layout.axis.size);
    let is_whole = layout.divides(layout.axis.size, VEC16) || in_registers(layout).is_ok();
    match lane {
        _ if is_whole && lane <= LONG_LANE_BYTES => 0,
        _ if lane < SHORT_LANE_BYTES => MIDDLE_UNITS_OF_LANES,
        _ if lane < MIDDLE_LANE_BYTES => MIDDLE_UNITS_OF_MIDDLE_LANES,
        _ if lane < STAGED_LANE_BYTES => 0,
        _ => MIDDLE_UNITS_OF_LANES,
    }
}

/// Whether elements that are adjacent in the output are of lanes with lengths of their own.
fn lengths_vary_along_the_output(layout: &Layout<'_>) -> bool {
    layout.dimensions.iter().any(|d| d.out_stride == 1 && d.length_stride != 0)
}

/// Little work: one unit of `UNIT` bytes per thread.
pub(super) fn small<const UNIT: u32>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let in_place = layout.in_place();
    let mut params = parameters(layout, UNIT)?;
    let most = match UNIT {
        VEC16 => SMALL_VECTORS,
        _ if layout.row().is_some() || !in_place && lengths_vary_along_the_output(layout) => SMALL_UNITS_SIDE_BY_SIDE,
        8 if !in_place && lanes::contiguous(layout).is_ok() => SMALL_LANES_OF_8_BYTES,
        _ if UNIT > layout.width && in_place => SMALL_VECTORS,
        _ if UNIT > layout.width => SMALL_WIDE_UNITS,
        _ if in_place => SMALL_UNITS_IN_PLACE,
        _ => SMALL_UNITS,
    };
    let units = u64::from(params.items) * if in_place { 2 } else { 1 };
    let is_too_much = params.rank > UNROLLED_DIMENSIONS || units > most;
    reject_if(is_too_much, "there is too much work, or there are too many dimensions")?;
    // If scattered, neighbouring lanes would be written far apart.
    params.form = if lengths_vary_along_the_output(layout) && !in_place { GATHERED } else { SCATTERED };
    let entry = layout.entry(&kernels::SMALL, UNIT);
    let blocks = blocks(params.items.into(), 1);
    Ok(Launch::new(entry, blocks, UNIT, params))
}

/// The parameters for units of `unit` bytes. An item is a unit or, in place, a pair of units; the axis is among the
/// dimensions.
fn parameters(layout: &Layout<'_>, unit: u32) -> Result<Reverse, RejectReason> {
    let axis = &layout.axis;
    let elements = unit / layout.width;
    let fits = elements == 1 || (elements > 1 && layout.rows_divide(layout.block().ok_or(NO_BLOCK)?, unit, unit));
    reject_if(!fits, NOT_DIVIDED)?;
    let dims = layout.dimensions.iter().map(|d| {
        let inside = elements > 1 && d.in_stride == 1 && d.out_stride == 1;
        let (size, divisor) = if inside { (d.size / elements, 1) } else { (d.size, elements) };
        dim_in_units(d, size, divisor)
    });
    let mut dims: Vec<ReverseDim> = dims.collect();
    let steps = if layout.in_place() { axis.size / 2 } else { axis.size };
    layout.insert_axis(&mut dims, steps, axis.out_stride / elements);
    let items = dims.iter().map(|dim| u64::from(dim.size.divisor)).product();
    let mut params = layout.parameters(items, dims.into_iter());
    params.axis_in_stride /= elements;
    params.axis_out_stride /= elements;
    Ok(params)
}
