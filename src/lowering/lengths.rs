//! The lengths of a reversal: their type, and their values on the host.
//!
//! DirectML has unsigned lengths. Signed ones are passed as unsigned ones of the same width: a negative length then is a
//! large number, which acts as the axis size. On the host, where reading them costs little, a negative length is an error
//! instead. On a GPU nothing reads them before the kernel does.
#![allow(unsafe_code)]

use super::ForeignTensor;
use crate::desc::TensorDataType::{self, Int32, Int64, UInt32, UInt64};
use crate::desc::TensorRole;
use crate::error::LoweringError;

/// The operator's type for lengths. Signed lengths pass as unsigned numbers, which is exact for lengths of at least 0.
pub(super) fn passed_as(found: TensorDataType) -> Result<TensorDataType, LoweringError> {
    match found {
        Int32 | UInt32 => Ok(UInt32),
        Int64 | UInt64 => Ok(UInt64),
        _ => Err(LoweringError::LengthType { found }),
    }
}

impl ForeignTensor<'_> {
    /// Checks lengths on the host: none may be negative, or above `most`. Unsigned ones are not read without a `most`.
    ///
    /// # Errors
    ///
    /// [`LoweringError::Length`] names the first wrong one in row-major order. [`LoweringError::LengthType`]: the type is
    /// not integers of 32 or 64 bits. [`LoweringError::Strides`]: the number of strides is not that of sizes.
    ///
    /// # Safety
    ///
    /// The tensor is on the host, with initialized elements of this type, aligned or not. No one writes it now.
    pub unsafe fn check_lengths(
        &self,
        data_type: TensorDataType,
        most: Option<i64>,
    ) -> Result<(), LoweringError> {
        self.check(TensorRole::SequenceLengths)?;
        let width = i64::from(passed_as(data_type)?.size_in_bits() / 8);
        if self.sizes.contains(&0) || (most.is_none() && matches!(data_type, UInt32 | UInt64)) {
            return Ok(());
        }
        let strides: Vec<i64> = (0..self.sizes.len())
            .map(|d| self.stride(d, width))
            .collect();
        let wrong = |at: u64| {
            // SAFETY: `first` computes the address of an element, which has this type.
            let found = unsafe {
                match data_type {
                    Int32 => i128::from((at as *const i32).read_unaligned()),
                    UInt32 => i128::from((at as *const u32).read_unaligned()),
                    Int64 => i128::from((at as *const i64).read_unaligned()),
                    _ => i128::from((at as *const u64).read_unaligned()),
                }
            };
            (found < 0 || most.is_some_and(|most| found > i128::from(most))).then_some(found)
        };
        match first(&wrong, self.address.0, self.sizes, &strides) {
            Some((index, found)) => Err(LoweringError::Length { index, found, most }),
            None => Ok(()),
        }
    }
}

/// The index of a tensor's first element, in row-major order, for whose address `find` returns a number, and that
/// number.
fn first<T>(
    find: &impl Fn(u64) -> Option<T>,
    address: u64,
    sizes: &[i64],
    strides: &[i64],
) -> Option<(Vec<i64>, T)> {
    let ([size, sizes @ ..], [stride, strides @ ..]) = (sizes, strides) else {
        return Some((Vec::new(), find(address)?));
    };
    (0..*size).find_map(|k| {
        let (mut index, found) = first(
            find,
            address.wrapping_add_signed(k * stride),
            sizes,
            strides,
        )?;
        index.insert(0, k);
        Some((index, found))
    })
}
