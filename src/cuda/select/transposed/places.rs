//! Places number the dimensions of a layout from the outermost on. The axis is the last.

use super::super::layout::parameters::{axis_dim, dim};
use super::super::layout::Layout;
use crate::cuda::parameters::ReverseDim;
use crate::plan::reverse_plan::Dimension;

/// The stride of a dimension in one of the tensors.
pub(super) type Stride = fn(&Dimension) -> u32;

/// The dimension at a place.
pub(super) fn dimension<'a>(layout: &'a Layout<'_>, place: usize) -> &'a Dimension {
    layout.dimensions.get(place).unwrap_or(&layout.axis)
}

/// The dimension at a place, as kernels take it.
pub(super) fn dim_of(layout: &Layout<'_>, place: usize) -> ReverseDim {
    match layout.dimensions.get(place) {
        Some(dimension) => dim(dimension),
        None => axis_dim(layout.axis.size),
    }
}

/// The places of all dimensions of more than one element.
pub(super) fn places(layout: &Layout<'_>) -> Vec<usize> {
    let all = 0..=layout.dimensions.len();
    all.filter(|&place| dimension(layout, place).size > 1)
        .collect()
}
