//! What the operators for ONNX Runtime, PyTorch and JAX share.

use std::fmt::Display;

use dml_cuda::lowering::ForeignTensor;
use dml_cuda::TensorDataType::{self, Int32, Int64, UInt32, UInt64};

/// A zero for each element of a tensor, or an error if there is no memory for them.
#[cfg(feature = "onnxruntime")]
pub fn zeros<T: Copy + Default>(count: usize) -> Result<Vec<T>, String> {
    let mut zeros = Vec::new();
    let reserved = zeros.try_reserve_exact(count);
    reserved.map_err(|_| format!("there is no memory for a copy of the tensor's {count} elements"))?;
    zeros.resize(count, T::default());
    Ok(zeros)
}

/// The number of elements of a shape, below 2³².
pub fn element_count(shape: &[i64]) -> Result<u32, String> {
    let count = shape.iter().try_fold(1u64, |count, &size| count.checked_mul(u64::try_from(size).ok()?));
    let fits = count.and_then(|count| u32::try_from(count).ok());
    fits.ok_or_else(|| format!("the shape is {shape:?}, must have sizes of at least 0 and fewer than 2³² elements"))
}

/// The lengths of a reversal.
#[derive(Clone, Copy, Debug)]
pub struct Lengths<'a> {
    /// What the caller calls them.
    name: &'static str,
    pub tensor: ForeignTensor<'a>,
    /// The operator's type for them. Signed lengths pass as unsigned numbers, which is exact for lengths of at least 0.
    pub passed_as: TensorDataType,
    is_signed: bool,
}

impl<'a> Lengths<'a> {
    /// `data_type` is `None` if it is none of DirectML's. `found` is the type in the framework's words.
    pub fn new(
        name: &'static str,
        tensor: ForeignTensor<'a>,
        data_type: Option<TensorDataType>,
        found: impl Display,
    ) -> Result<Self, String> {
        let passed_as = match data_type {
            Some(Int32 | UInt32) => UInt32,
            Some(Int64 | UInt64) => UInt64,
            _ => return Err(format!("{name} has {found}, must have integers of 32 or 64 bits")),
        };
        Ok(Self { name, tensor, passed_as, is_signed: data_type != Some(passed_as) })
    }

    /// Checks lengths on the host: none may be negative, or above `most`. The error names the first wrong one in
    /// row-major order by its place, such as `lengths[1, 0]`.
    ///
    /// # Safety
    ///
    /// The tensor is on the host and initialized, aligned or not. Nobody writes it now.
    pub unsafe fn check(&self, most: Option<u32>) -> Result<(), String> {
        let (name, sizes) = (self.name, self.tensor.sizes);
        if !self.is_signed || sizes.contains(&0) {
            return Ok(());
        }
        let mut packed = i64::from(self.passed_as.size_in_bits() / 8);
        let mut strides = vec![0; sizes.len()];
        for d in (0..sizes.len()).rev() {
            strides[d] = self.tensor.strides_in_bytes.map_or(packed, |strides| strides[d]);
            packed = packed.wrapping_mul(sizes[d]);
        }
        let wrong = |at: u64| {
            let found = match self.passed_as {
                // SAFETY: the address of a length of 4 bytes, which `first` computes within the tensor.
                UInt32 => i64::from(unsafe { (at as *const i32).read_unaligned() }),
                // SAFETY: the address of a length of 8 bytes, which `first` computes within the tensor.
                _ => unsafe { (at as *const i64).read_unaligned() },
            };
            (found < 0 || most.is_some_and(|most| found > i64::from(most))).then_some(found)
        };
        let Some((indices, found)) = first(&wrong, self.tensor.address.0, sizes, &strides) else { return Ok(()) };
        let at = if indices.is_empty() { String::new() } else { format!("{indices:?}") };
        Err(match most {
            None => format!("{name}{at} is {found}, must be at least 0"),
            Some(most) => format!("{name}{at} is {found}, must be from 0 to {most}, the size of the time axis"),
        })
    }
}

/// The indices of a tensor's first element, in row-major order, for whose address `find` returns a number, and that
/// number.
fn first(find: &impl Fn(u64) -> Option<i64>, address: u64, sizes: &[i64], strides: &[i64]) -> Option<(Vec<i64>, i64)> {
    let ([size, sizes @ ..], [stride, strides @ ..]) = (sizes, strides) else {
        return Some((Vec::new(), find(address)?));
    };
    (0..*size).find_map(|index| {
        let (mut indices, found) = first(find, address.wrapping_add_signed(index * stride), sizes, strides)?;
        indices.insert(0, index);
        Some((indices, found))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_length_is_named_by_its_place() {
        let lengths = [4i32, 1, 0, -2, 5, -7];
        let check = |most, sizes: &[i64], strides_in_bytes| {
            let tensor = ForeignTensor { address: lengths.as_ptr().into(), sizes, strides_in_bytes };
            let lengths = Lengths::new("l", tensor, Some(Int32), "").expect("a type of lengths");
            // SAFETY: every tensor below is in this array.
            unsafe { lengths.check(most) }.err().unwrap_or_default()
        };
        let negative = "l[1, 1] is -2, must be at least 0";
        assert_eq!(check(None, &[3, 2], None), negative);
        assert_eq!(check(None, &[2, 3], Some(&[4, 8])), negative);
        assert_eq!(check(Some(4), &[2], Some(&[16])), "l[1] is 5, must be from 0 to 4, the size of the time axis");
        assert_eq!(check(Some(3), &[], None), "l is 4, must be from 0 to 3, the size of the time axis");
        for right in [&[3][..], &[0, 7], &[i64::MAX, 0, 3]] {
            assert_eq!(check(Some(4), right, None), "");
        }
        let wide = [1i64, i64::MIN];
        let lengths = |data_type| Lengths::new("l", ForeignTensor::packed(wide.as_ptr(), &[2]), Some(data_type), "i16");
        // SAFETY: the tensor is this array.
        let found = [Int64, UInt64].map(|data_type| unsafe { lengths(data_type).ok()?.check(None).err() });
        assert_eq!(found, [Some(format!("l[1] is {}, must be at least 0", i64::MIN)), None]);
        assert_eq!(lengths(TensorDataType::Int16).unwrap_err(), "l has i16, must have integers of 32 or 64 bits");
    }
}
