//! The positions of a tensor's elements in memory: counts, spans and overlap, in arithmetic that cannot wrap.

mod overlap;
mod shared_bytes;

pub(crate) use overlap::has_overlap;
pub(crate) use shared_bytes::share_a_byte;

use crate::desc::data_type::TensorDataType;

/// `DML_TENSOR_DIMENSION_COUNT_MAX1`.
pub(crate) const MAX_DIMENSIONS: usize = 8;

/// Πsizes, or `None` past 2^128.
pub(crate) fn element_count(sizes: &[u32]) -> Option<u128> {
    sizes
        .iter()
        .try_fold(1u128, |count, &size| count.checked_mul(u128::from(size)))
}

/// The bytes of `span` elements, rounded up to a multiple of 4.
pub(crate) fn bytes_of_span(data_type: TensorDataType, span: u128) -> Option<u128> {
    let bits = span.checked_mul(u128::from(data_type.size_in_bits()))?;
    Some(bits.div_ceil(32) * 4)
}

/// The strides of a packed row-major tensor. For a validated tensor they fit in 32 bits.
pub(crate) fn packed_strides(sizes: &[u32]) -> Vec<u32> {
    let mut strides = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d];
    }
    strides
}

/// A dimension of several tensors of the same sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StridedDimension<const N: usize> {
    pub size: u32,
    /// How far one step along the dimension advances in each tensor.
    pub strides: [u32; N],
}

impl<const N: usize> StridedDimension<N> {
    pub fn new(size: u32, strides: [u32; N]) -> Self {
        Self { size, strides }
    }
}

/// The dimension that two are together, if they are contiguous in every tensor. `None` if they are not, or if the size
/// does not fit.
pub(crate) fn join<const N: usize>(
    outer: StridedDimension<N>,
    inner: StridedDimension<N>,
) -> Option<StridedDimension<N>> {
    for (&outer_stride, &inner_stride) in outer.strides.iter().zip(&inner.strides) {
        if u64::from(outer_stride) != u64::from(inner_stride) * u64::from(inner.size) {
            return None;
        }
    }
    let size = outer.size.checked_mul(inner.size)?;
    Some(StridedDimension { size, ..inner })
}
