//! A tensor of another library, and its sizes and strides as a descriptor has them.

use super::lowering_error::LoweringError;
use crate::desc::TensorRole;

/// A tensor as NumPy, DLPack or ONNX Runtime describe it.
#[derive(Clone, Copy, Debug)]
pub struct ForeignTensor<'a> {
    /// Of any rank. None may be negative.
    pub sizes: &'a [i64],
    /// One for each size. `None` if the tensor is packed in row-major order.
    pub strides_in_bytes: Option<&'a [i64]>,
}

impl ForeignTensor<'_> {
    /// The stride of a dimension, in bytes, with elements of `width` bytes. Strides of dimensions of size 1 have no
    /// meaning.
    pub(super) fn stride(&self, dimension: usize, width: i64) -> i64 {
        match self.strides_in_bytes {
            Some(strides) => strides[dimension],
            None => self.sizes[dimension + 1..].iter().fold(width, |stride, &size| stride.saturating_mul(size)),
        }
    }

    pub(super) fn check(&self, tensor: TensorRole) -> Result<(), LoweringError> {
        match self.strides_in_bytes.map(<[i64]>::len) {
            Some(found) if found != self.sizes.len() => {
                Err(LoweringError::Strides { tensor, found, required: self.sizes.len() })
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn size_of(tensor: TensorRole, dimension: usize, found: i64) -> Result<u32, LoweringError> {
    let required = || if found < 0 { "at least 0" } else { "below 2³²" }.to_owned();
    u32::try_from(found).map_err(|_| LoweringError::Size { tensor, dimension, found, required: required() })
}

/// A stride in bytes as a number of units. A unit is a power of two of bytes.
pub(super) fn units_of(tensor: TensorRole, dimension: usize, found: i64, unit: i64) -> Result<u32, LoweringError> {
    debug_assert!(unit.count_ones() == 1, "{unit}");
    let units = if found & (unit - 1) == 0 { u32::try_from(found >> unit.trailing_zeros()).ok() } else { None };
    units.ok_or_else(|| {
        let required = match found {
            ..0 => "at least 0".to_owned(),
            _ if found % unit != 0 => format!("a multiple of {unit}, the bytes of an element"),
            _ => format!("below {}", (1i128 << 32) * i128::from(unit)),
        };
        LoweringError::Stride { tensor, dimension, found, required }
    })
}
