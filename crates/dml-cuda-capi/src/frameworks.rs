//! Code that the operators for ONNX Runtime, PyTorch and JAX share.

/// A zero for each element of a tensor, or an error if there is no memory for them.
#[cfg(feature = "onnxruntime")]
pub fn zeros<T: Copy + Default>(count: usize) -> Result<Vec<T>, String> {
    let mut zeros = Vec::new();
    let reserved = zeros.try_reserve_exact(count);
    reserved
        .map_err(|_| format!("there is no memory for a copy of the tensor's {count} elements"))?;
    zeros.resize(count, T::default());
    Ok(zeros)
}

/// The number of elements of a shape, below 2³².
pub fn element_count(shape: &[i64]) -> Result<u32, String> {
    let count = shape.iter().try_fold(1u64, |count, &size| {
        count.checked_mul(u64::try_from(size).ok()?)
    });
    let fits = count.and_then(|count| u32::try_from(count).ok());
    fits.ok_or_else(|| {
        format!(
            "the shape is {shape:?}, but must have sizes of at least 0 and fewer than 2³² elements"
        )
    })
}
