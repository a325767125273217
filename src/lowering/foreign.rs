//! A tensor of another library, and its sizes and strides as a descriptor has them.
//!
//! Other libraries count strides in bytes or elements, allow negative ones, and have sizes of 64 bits. A descriptor has
//! 32 unsigned bits for each, in elements. The functions here convert one number, and name its tensor and its dimension
//! if it does not fit.

use crate::address::Address;
use crate::desc::{TensorDataType, TensorRole};
use crate::error::Error;
use crate::error::LoweringError;

/// A tensor as NumPy, DLPack or ONNX Runtime describe it.
#[derive(Clone, Copy, Debug)]
pub struct ForeignTensor<'a> {
    /// The address of the first element. Lowering only reads how it is aligned: 0 is aligned to any element.
    pub address: Address,
    /// The sizes, at any rank. None may be negative.
    pub sizes: &'a [i64],
    /// One for each size. `None` if the tensor is packed in row-major order.
    pub strides_in_bytes: Option<&'a [i64]>,
}

/// The arrays of a reversal, and its axis.
///
/// ```
/// use dml_cuda::lowering::{ForeignTensor, ReversalArrays};
/// use dml_cuda::{Device, RawStream, TensorDataType};
/// let (mut x, lengths) = ([[1u8, 2, 3], [4, 5, 6]], [[3u32], [2]]);
/// let x_in_place = ForeignTensor { address: x.as_mut_ptr().into(), sizes: &[2, 3], strides_in_bytes: None };
/// let arrays = ReversalArrays {
///     input: x_in_place,
///     lengths: ForeignTensor { address: lengths.as_ptr().into(), sizes: &[2, 1], strides_in_bytes: None },
///     output: x_in_place,
///     axis: 1,
///     element_size: 1,
///     length_type: TensorDataType::UInt32,
/// };
/// // SAFETY: these are arrays of this function, which nothing else uses. The CPU device is done when the call returns.
/// unsafe { Device::cpu().reverse_arrays(&arrays, RawStream::NULL)? };
/// assert_eq!(x, [[3, 2, 1], [5, 4, 6]]);
/// # Ok::<(), dml_cuda::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ReversalArrays<'a> {
    /// The array to read.
    pub input: ForeignTensor<'a>,
    /// Its shape broadcasts, by NumPy's rules, to the input's shape with 1 at the axis.
    pub lengths: ForeignTensor<'a>,
    /// The array to write, with the input's sizes. To run in place, it is the input.
    pub output: ForeignTensor<'a>,
    /// A negative axis is counted from the end.
    pub axis: i64,
    /// Bytes of an element of the input and of the output.
    pub element_size: usize,
    /// Integers of 32 or 64 bits. A negative length is an error on the host, and acts as the size of the axis on a GPU.
    pub length_type: TensorDataType,
}

impl<'a> ForeignTensor<'a> {
    /// A packed tensor at an address.
    pub fn packed(address: impl Into<Address>, sizes: &'a [i64]) -> Self {
        Self {
            address: address.into(),
            sizes,
            strides_in_bytes: None,
        }
    }

    /// An error of an operator that writes this tensor, with the tensor's own sizes and strides where elements overlap.
    pub fn with_own_strides(&self, error: Error) -> Error {
        match error {
            Error::Validation(errors) => errors
                .of_array(self.sizes, self.strides_in_bytes.unwrap_or_default())
                .into(),
            error => error,
        }
    }

    /// The number of elements of a packed tensor, if it is packed in row-major order with elements of `width` bytes and
    /// the number fits.
    pub(super) fn packed_count(&self, width: i64) -> Option<u32> {
        let packed = Self {
            strides_in_bytes: None,
            ..*self
        };
        let mut count = 1i64;
        for (d, &size) in self.sizes.iter().enumerate() {
            if size != 1 && self.stride(d, width) != packed.stride(d, width) {
                return None;
            }
            count = count.checked_mul(size)?;
        }
        u32::try_from(count).ok()
    }

    /// The stride of a dimension, in bytes, with elements of `width` bytes. Strides of dimensions of size 1 have no
    /// meaning.
    pub(super) fn stride(&self, dimension: usize, width: i64) -> i64 {
        match self.strides_in_bytes {
            Some(strides) => strides[dimension],
            None => self.sizes[dimension + 1..]
                .iter()
                .fold(width, |stride, &size| stride.saturating_mul(size)),
        }
    }

    pub(super) fn check(&self, tensor: TensorRole) -> Result<(), LoweringError> {
        match self.strides_in_bytes.map(<[i64]>::len) {
            Some(found) if found != self.sizes.len() => Err(LoweringError::Strides {
                tensor,
                found,
                required: self.sizes.len(),
            }),
            _ => Ok(()),
        }
    }
}

pub(super) fn size_of(
    tensor: TensorRole,
    dimension: usize,
    found: i64,
) -> Result<u32, LoweringError> {
    let required = || {
        if found < 0 {
            "at least 0"
        } else {
            "below 2³²"
        }
        .to_owned()
    };
    u32::try_from(found).map_err(|_| LoweringError::Size {
        tensor,
        dimension,
        found,
        required: required(),
    })
}

/// A stride in bytes as a number of units. A unit is a power of two of bytes.
pub(super) fn units_of(
    tensor: TensorRole,
    dimension: usize,
    found: i64,
    unit: i64,
) -> Result<u32, LoweringError> {
    debug_assert!(unit.count_ones() == 1, "{unit}");
    let units = if found & (unit - 1) == 0 {
        u32::try_from(found >> unit.trailing_zeros()).ok()
    } else {
        None
    };
    units.ok_or_else(|| {
        let required = match found {
            ..0 => "at least 0".to_owned(),
            _ if found % unit != 0 => format!("a multiple of {unit}, the bytes of an element"),
            _ => format!("below {}", (1i128 << 32) * i128::from(unit)),
        };
        LoweringError::Stride {
            tensor,
            dimension,
            found,
            required,
        }
    })
}
