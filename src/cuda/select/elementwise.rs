//! reverse_elementwise.cu: units of one element or up to 16 bytes, at any strides.

use super::layout::{
    dim_in_units, Layout, Reverse, ReverseDim, GATHERED, GATHERED_HALF_VECTORS, GATHERED_VECTORS, NOT_DIVIDED,
    NO_BLOCK, SCATTERED,
};
use super::{blocks, reject_if, RejectReason};
use crate::cuda::tuning::elementwise::*;
use crate::cuda::tuning::{rows, strips, SECTOR, VEC16};
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

/// The same for what gathered vectors do not copy faster, if no other kernel can copy it.
pub(super) fn many_units<const UNIT: u32>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    // Only blocks have units of several elements.
    if UNIT > layout.width {
        layout.block_exceeding(rows::MOST_GATHERED, rows::MOST_GATHERED_OF_4_BYTES)?;
        return units::<UNIT>(layout);
    }
    // Of lanes side by side, the bytes of a row.
    let row = layout.row().map_or(0, |row| layout.bytes(row.size));
    layout.exceeds(match layout.width {
        4 if row >= strips::SHORT_ROW_BYTES => 0,
        2 | 4 if row > SECTOR.into() => strips::MOST_GATHERED,
        8 if row > 0 => strips::MOST_GATHERED,
        _ => u64::MAX,
    })?;
    units::<UNIT>(layout)
}

/// A vector of adjacent elements of the output per thread, or half a vector of bytes; not in place. Half as much for few
/// elements, except those of contiguous lanes.
pub(super) fn vectors(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    reject_if(!layout.gathers, "there are too many dimensions, or the output is not packed")?;
    let mut params = parameters(layout, layout.width)?;
    let items = layout.elements();
    let whole = VEC16.min(8 * layout.width);
    let few = if layout.block().is_some() { FEW_UNITS_OF_BLOCKS } else { FEW_UNITS };
    let is_half = items <= few && layout.width < 8 && layout.contiguous_lanes().is_err();
    let (form, access) = if is_half { (GATHERED_HALF_VECTORS, whole / 2) } else { (GATHERED_VECTORS, whole) };
    params.form = form;
    let entry = layout.entry(&kernels::ELEMENTWISE, layout.width);
    let blocks = blocks(items, access / layout.width);
    Ok(Launch::new(entry, blocks, access, params))
}

/// Little work: one unit of `UNIT` bytes per thread.
pub(super) fn small<const UNIT: u32>(layout: &Layout<'_>) -> Result<Launch, RejectReason> {
    let in_place = layout.in_place();
    let mut params = parameters(layout, UNIT)?;
    let most = match UNIT {
        VEC16 => SMALL_VECTORS,
        _ if layout.row().is_some() || !in_place && layout.lengths_vary_along_the_output() => SMALL_UNITS_SIDE_BY_SIDE,
        8 if !in_place && layout.contiguous_lanes().is_ok() => SMALL_LANES_OF_8_BYTES,
        _ if UNIT > layout.width && in_place => SMALL_VECTORS,
        _ if UNIT > layout.width => SMALL_WIDE_UNITS,
        _ if in_place => SMALL_UNITS_IN_PLACE,
        _ => SMALL_UNITS,
    };
    let units = u64::from(params.items) * if in_place { 2 } else { 1 };
    let is_too_much = params.rank > UNROLLED_DIMENSIONS || units > most;
    reject_if(is_too_much, "there is too much work, or there are too many dimensions")?;
    // If scattered, neighbouring lanes would be written far apart.
    params.form = if layout.lengths_vary_along_the_output() && !in_place { GATHERED } else { SCATTERED };
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
