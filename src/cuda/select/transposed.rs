//! reverse_transposed.cu: tensors that are contiguous along different dimensions, so that a reversal is also a
//! transposition; not in place.
//!
//! ```text
//! input rows along one dimension  ->  tile  ->  output rows along another
//! ```
//!
//! A tile goes through shared memory ([`tiles`]), so that both tensors are accessed in whole rows, or each of its
//! elements goes directly from global to global memory ([`direct`]). Places number the dimensions from the outermost on,
//! and the axis is the last.

mod direct;
mod tiles;

pub(super) use direct::DirectTiles;
pub(super) use tiles::Tiles;

use super::layout::parameters::{axis_dim, dim};
use super::layout::Layout;
use crate::cuda::parameters::ReverseDim;
use crate::plan::reverse_plan::Dimension;

/// The stride of a dimension in one of the tensors.
type Stride = fn(&Dimension) -> u32;

/// The dimension at a place.
fn dimension<'a>(layout: &'a Layout<'_>, place: usize) -> &'a Dimension {
    layout.dimensions.get(place).unwrap_or(&layout.axis)
}

/// The dimension at a place, as kernels take it.
fn dim_of(layout: &Layout<'_>, place: usize) -> ReverseDim {
    match layout.dimensions.get(place) {
        Some(dimension) => dim(dimension),
        None => axis_dim(layout.axis.size),
    }
}

/// The places of all dimensions of more than one element.
fn places(layout: &Layout<'_>) -> Vec<usize> {
    let all = 0..=layout.dimensions.len();
    all.filter(|&place| dimension(layout, place).size > 1)
        .collect()
}
