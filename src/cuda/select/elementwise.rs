//! reverse_elementwise.cu: units of one element or up to 16 bytes, wherever they lie.

use super::layout::{dim_in_units, Layout, Reverse, ReverseDim};
use super::{blocks, Because, Candidates};
use crate::cuda::kernels;
use crate::cuda::launch::Launch;
use crate::cuda::tuning::elementwise::*;
use crate::cuda::tuning::{THREADS, VEC16};
use crate::layout::MAX_DIMENSIONS;

/// Units of 16 bytes.
pub(super) fn vectors(layout: &Layout<'_>, in_place: bool, found: &mut Candidates) -> Result<(), Because> {
    found.push(of_unit(layout, in_place, VEC16)?);
    Ok(())
}

/// Units of 8 bytes down to those of an element, which any layout is made of.
pub(super) fn units(layout: &Layout<'_>, in_place: bool, found: &mut Candidates) -> Result<(), Because> {
    let units = [8, 4, 2, 1].into_iter().filter(|&unit| unit >= layout.width);
    units.filter_map(|unit| of_unit(layout, in_place, unit).ok()).for_each(|launch| found.push(launch));
    Ok(())
}

/// Little work: one unit per thread, of 16 bytes and of an element.
pub(super) fn small(layout: &Layout<'_>, in_place: bool, found: &mut Candidates) -> Result<(), Because> {
    let launches = [VEC16, layout.width].into_iter().filter_map(|unit| small_of_unit(layout, in_place, unit));
    launches.for_each(|launch| found.push(launch));
    Ok(())
}

fn of_unit(layout: &Layout<'_>, in_place: bool, unit: u32) -> Result<Launch<Reverse>, Because> {
    let params = parameters(layout, in_place, unit)?;
    let (kernel, per_thread) = if in_place {
        (&kernels::ELEMENTWISE_IN_PLACE, PAIRS_PER_THREAD)
    } else {
        (&kernels::ELEMENTWISE, ITEMS_PER_THREAD)
    };
    let entry = kernel.entry(unit.trailing_zeros() as usize);
    let blocks = blocks(params.items.into(), per_thread);
    Ok(Launch { entry, blocks, threads: THREADS, shared: 0, alignment: unit, access: unit, params })
}

fn small_of_unit(layout: &Layout<'_>, in_place: bool, unit: u32) -> Option<Launch<Reverse>> {
    /// Dimensions that the kernels take, the axis among them; the flat ones take UINT32 lengths only.
    const DIMENSIONS: u32 = 3;
    const FLAT_DIMENSIONS: u32 = 2;
    let mut params = parameters(layout, in_place, unit).ok()?;
    let units = u64::from(params.items) * if in_place { 2 } else { 1 };
    let side_by_side = layout.row().is_some();
    let most = match unit {
        VEC16 => SMALL_VECTORS,
        _ if side_by_side => SMALL_UNITS_SIDE_BY_SIDE,
        _ => SMALL_UNITS,
    };
    if params.rank > DIMENSIONS || units > most {
        return None;
    }
    // Scattered, neighbouring lanes would be written apart.
    params.gather = (side_by_side && !in_place).into();
    let kernel = if in_place {
        &kernels::SMALL_IN_PLACE
    } else if params.rank <= FLAT_DIMENSIONS && !layout.wide_lengths && !side_by_side {
        &kernels::SMALL_FLAT
    } else {
        &kernels::SMALL
    };
    let entry = kernel.entry(unit.trailing_zeros() as usize);
    let blocks = blocks(params.items.into(), 1);
    Some(Launch { entry, blocks, threads: THREADS, shared: 0, alignment: unit, access: unit, params })
}

/// Items are units, or in place pairs of them, in dimensions with the axis among them.
fn parameters(layout: &Layout<'_>, in_place: bool, unit: u32) -> Result<Reverse, Because> {
    let axis = &layout.axis;
    let elements = unit / layout.width;
    let divides = |value: u32| value.is_multiple_of(elements);
    let strides_divide = |size: u32, a: u32, b: u32| size == 1 || (divides(a) && divides(b));
    let fits = elements == 1
        || (elements > 1
            && layout.block().is_some_and(|block| divides(block.size))
            && strides_divide(axis.size, axis.in_stride, axis.out_stride)
            && layout.outside().all(|d| strides_divide(d.size, d.in_stride, d.out_stride)));
    if !fits {
        return Err("a size or a stride of the block is no multiple of the unit");
    }
    let mut dims: Vec<ReverseDim> = Vec::with_capacity(MAX_DIMENSIONS);
    for d in layout.dimensions {
        let inside = elements > 1 && d.in_stride == 1 && d.out_stride == 1;
        let (size, divisor) = if inside { (d.size / elements, 1) } else { (d.size, elements) };
        dims.push(dim_in_units(d, size, divisor));
    }
    let steps = if in_place { axis.size / 2 } else { axis.size };
    layout.insert_axis(&mut dims, steps, axis.out_stride / elements);
    let items = dims.iter().map(|dim| u64::from(dim.size.divisor)).product();
    let mut params = layout.parameters(items, dims.into_iter());
    params.axis_in_stride /= elements;
    params.axis_out_stride /= elements;
    Ok(params)
}
