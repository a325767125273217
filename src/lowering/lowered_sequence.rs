//! Sequences into tensors of other libraries.
//!
//! Unlike elements that are only moved, those of a sequence keep their type. A packed tensor of any rank is one dimension.
//! Others keep theirs, of which a descriptor takes 8.

use super::foreign::{size_of, units_of, ForeignTensor};
use crate::desc::{
    BufferTensorDesc, FillValueSequenceDesc, ScalarUnion, TensorDataType, TensorRole,
    MAX_DIMENSIONS,
};
use crate::error::LoweringError;

/// A sequence, with the dimensions of its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoweredSequence {
    sizes: [u32; MAX_DIMENSIONS],
    /// In elements.
    strides: [u32; MAX_DIMENSIONS],
    rank: usize,
    data_type: TensorDataType,
    start: u64,
    delta: u64,
}

impl LoweredSequence {
    /// `count` packed elements. `start` and `delta` are the bits of scalars of the type, which may be one of
    /// [`FeatureLevel::Extended`](crate::FeatureLevel::Extended) at every level of the device.
    pub fn packed(data_type: TensorDataType, count: u32, start: u64, delta: u64) -> Self {
        let (mut sizes, mut strides) = ([0; MAX_DIMENSIONS], [0; MAX_DIMENSIONS]);
        (sizes[0], strides[0]) = (count, 1);
        // Clears bits above the type's, so that equal sequences compare equal.
        let [start, delta] =
            [start, delta].map(|scalar| scalar & u64::MAX >> (64 - data_type.size_in_bits()));
        Self {
            sizes,
            strides,
            rank: 1,
            data_type,
            start,
            delta,
        }
    }

    /// A tensor that is packed, or has at most 8 dimensions.
    ///
    /// # Errors
    ///
    /// [`LoweringError`]: the sizes or strides do not fit, or there are more than 8 dimensions.
    pub fn strided(
        data_type: TensorDataType,
        output: ForeignTensor<'_>,
        start: u64,
        delta: u64,
    ) -> Result<Self, LoweringError> {
        let tensor = TensorRole::Output;
        output.check(tensor)?;
        let (rank, width) = (
            output.sizes.len(),
            i64::from(data_type.size_in_bits() / 8).max(1),
        );
        (0..rank).try_for_each(|d| size_of(tensor, d, output.sizes[d]).map(drop))?;
        if let Some(count) = output.packed_count(width) {
            return Ok(Self::packed(data_type, count, start, delta));
        }
        if rank > MAX_DIMENSIONS {
            return Err(LoweringError::Fold {
                shape: output.sizes.to_vec(),
            });
        }
        let mut lowered = Self::packed(data_type, 1, start, delta);
        lowered.rank = rank.max(1);
        let packed = ForeignTensor {
            strides_in_bytes: None,
            ..output
        };
        for d in (0..rank).rev() {
            lowered.sizes[d] = size_of(tensor, d, output.sizes[d])?;
            // The stride of a single element has no meaning, and need not fit.
            let of = if output.sizes[d] > 1 { output } else { packed };
            lowered.strides[d] = units_of(tensor, d, of.stride(d, width), width)?;
        }
        Ok(lowered)
    }

    /// The operator's descriptor.
    pub fn desc(&self) -> FillValueSequenceDesc {
        let (sizes, strides) = (&self.sizes[..self.rank], &self.strides[..self.rank]);
        let output_tensor = match strides {
            [1] => BufferTensorDesc::packed(self.data_type, sizes),
            _ => BufferTensorDesc::strided(self.data_type, sizes, strides),
        };
        FillValueSequenceDesc {
            output_tensor,
            value_data_type: self.data_type,
            value_start: ScalarUnion::Bytes(self.start.to_le_bytes()),
            value_delta: ScalarUnion::Bytes(self.delta.to_le_bytes()),
        }
    }
}
