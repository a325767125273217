//! Where the elements of a tensor are in memory: counts, spans and overlap, in arithmetic that cannot wrap.

mod overlap;

pub(crate) use overlap::has_overlap;

use crate::desc::data_type::TensorDataType;

/// `DML_TENSOR_DIMENSION_COUNT_MAX1`.
pub(crate) const MAX_DIMENSIONS: usize = 8;

/// Πsizes, or `None` past 2^128.
pub(crate) fn element_count(sizes: &[u32]) -> Option<u128> {
    sizes.iter().try_fold(1u128, |count, &size| count.checked_mul(u128::from(size)))
}

/// Elements from the first to the last, both included: Πsizes if packed, else 1 + Σ(size − 1)·stride. `None` past
/// 2^128, or if there are not as many strides as sizes.
pub(crate) fn span(sizes: &[u32], strides: Option<&[u32]>) -> Option<u128> {
    let Some(strides) = strides else {
        return element_count(sizes);
    };
    if strides.len() != sizes.len() {
        return None;
    }
    let distance = |(&size, &stride): (&u32, &u32)| u128::from(size.saturating_sub(1)) * u128::from(stride);
    Some(1 + sizes.iter().zip(strides).map(distance).sum::<u128>())
}

/// The bytes from the first element of a validated tensor to the last, not rounded up. Saturates at 2^64 − 1.
pub(crate) fn span_in_bytes(data_type: TensorDataType, sizes: &[u32], strides: Option<&[u32]>) -> u64 {
    let bytes = span(sizes, strides).map(|span| span * u128::from(data_type.size_in_bits()) / 8);
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(u64::MAX)
}

/// The bytes of `span` elements, rounded up to a multiple of 4.
pub(crate) fn bytes_of_span(data_type: TensorDataType, span: u128) -> Option<u128> {
    let bits = span.checked_mul(u128::from(data_type.size_in_bits()))?;
    Some(bits.div_ceil(32) * 4)
}

/// The smallest TotalTensorSizeInBytes of a tensor; `None` past 2^64.
pub(crate) fn minimum_size_in_bytes(data_type: TensorDataType, sizes: &[u32], strides: Option<&[u32]>) -> Option<u64> {
    let bytes = bytes_of_span(data_type, span(sizes, strides)?)?;
    u64::try_from(bytes).ok()
}

/// The strides of a packed row-major tensor. For a validated tensor they fit in 32 bits.
pub(crate) fn packed_strides(sizes: &[u32]) -> Vec<u32> {
    let mut strides = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d];
    }
    strides
}
