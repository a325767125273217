//! reverse_transposed.cu: tensors that are contiguous along different dimensions, so that a reversal is also a
//! transposition; not in place.
//!
//! ```text
//! input rows along one dimension  ->  tile  ->  output rows along another
//! ```
//!
//! A tile goes through shared memory ([`tiles`]), so that both tensors are accessed in whole rows, or each of its
//! elements goes directly from global to global memory ([`direct`]).

mod direct;
mod places;
mod tiles;

pub(super) use direct::DirectTiles;
pub(super) use tiles::Tiles;
