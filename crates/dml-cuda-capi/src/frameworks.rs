//! What the operators for ONNX Runtime, PyTorch and JAX share.

use std::ops::RangeInclusive;

use dml::lowering::{ForeignTensor, Lowered};
use dml::{Address, Device, Error, RawStream};

use crate::input::compile_options;

/// Compiles an operator, or finds it in the cache, and dispatches it on a stream, which is null on the host.
///
/// # Safety
///
/// The addresses are those of tensors as `lowered` describes them, in memory of the device. Until the work on the stream is done, they
/// stay, and nobody else writes them. A GPU's device is one of `device::cuda_device`.
pub unsafe fn dispatch(
    device: &Device,
    lowered: &Lowered,
    inputs: &[Address],
    output: Address,
    stream: RawStream,
) -> Result<(), Error> {
    // No kernel depends on the alignment of the lengths.
    let input = inputs.first().copied();
    let options = compile_options(input.unwrap_or(0) | output, Some(input == Some(output)));
    let operator = device.compile_lowered(lowered, options)?;
    // SAFETY: the caller's promise. Kernels stay loaded, because a device of `cuda_device` is never closed.
    Ok(unsafe { operator.dispatch_raw(inputs, output, stream) }?)
}

/// The number of elements of a shape, below 2³².
pub fn element_count(shape: &[i64]) -> Result<u32, String> {
    let count = shape.iter().try_fold(1u64, |count, &size| count.checked_mul(u64::try_from(size).ok()?));
    let fits = count.and_then(|count| u32::try_from(count).ok());
    fits.ok_or_else(|| format!("the shape is {shape:?}, must have sizes of at least 0 and fewer than 2³² elements"))
}

/// The first length outside of a range in row-major order, and its place, such as `[1, 0]`. Signed lengths pass on as unsigned numbers,
/// as which negative ones would be huge.
///
/// # Safety
///
/// The tensor is on the host, and has initialized signed integers of `width` bytes, 4 or 8, aligned or not. Nobody writes them now.
pub unsafe fn first_outside(
    range: RangeInclusive<i64>,
    address: Address,
    lengths: ForeignTensor<'_>,
    width: usize,
) -> Option<(i64, String)> {
    let sizes = lengths.sizes;
    if sizes.contains(&0) {
        return None;
    }
    let mut packed = width as i64;
    let mut steps: Vec<_> = sizes.iter().map(|&size| (0, size, 0)).collect(); // the index, the size, the stride
    for (d, step) in steps.iter_mut().enumerate().rev() {
        step.2 = lengths.strides_in_bytes.map_or(packed, |strides| strides[d]);
        packed = packed.wrapping_mul(step.1);
    }
    let mut address = address;
    loop {
        let found = match width {
            // SAFETY: the caller's promise, at the indices of `steps`.
            4 => i64::from(unsafe { (address as *const i32).read_unaligned() }),
            // SAFETY: the same.
            _ => unsafe { (address as *const i64).read_unaligned() },
        };
        if !range.contains(&found) {
            let at: Vec<_> = steps.iter().map(|step| step.0).collect();
            return Some((found, if at.is_empty() { String::new() } else { format!("{at:?}") }));
        }
        // To the next indices, the last one first. Behind the last length there are none.
        steps.iter_mut().rev().find_map(|(at, size, stride)| {
            *at += 1;
            address = address.wrapping_add_signed(*stride);
            let goes_on = *at < *size;
            if !goes_on {
                (*at, address) = (0, address.wrapping_add_signed(-(*stride * *size)));
            }
            goes_on.then_some(())
        })?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_length_outside_of_a_range_is_named_by_its_place() {
        let lengths = [4i32, 1, 0, -2, 5, -7];
        let find = |range, sizes: &[i64], strides_in_bytes| {
            let tensor = ForeignTensor { sizes, strides_in_bytes };
            // SAFETY: every tensor below is in this array.
            unsafe { first_outside(range, lengths.as_ptr() as Address, tensor, 4) }
        };
        let place = |at: &str| at.to_owned();
        assert_eq!(find(0..=i64::MAX, &[3, 2], None), Some((-2, place("[1, 1]"))));
        assert_eq!(find(0..=i64::MAX, &[2, 3], Some(&[4, 8])), Some((-2, place("[1, 1]"))));
        assert_eq!(find(0..=4, &[2], Some(&[16])), Some((5, place("[1]"))));
        assert_eq!(find(0..=3, &[], None), Some((4, place(""))));
        assert_eq!(find(-7..=5, &[6], None), None);
        assert_eq!(find(0..=0, &[0, 7], None), None);
        assert_eq!(find(0..=0, &[0, i64::MAX, 3], None), None);
        let wide = [1i64, i64::MIN];
        let tensor = ForeignTensor { sizes: &[2], strides_in_bytes: None };
        // SAFETY: the tensor is this array.
        let found = unsafe { first_outside(0..=i64::MAX, wide.as_ptr() as Address, tensor, 8) };
        assert_eq!(found, Some((i64::MIN, place("[1]"))));
    }
}
