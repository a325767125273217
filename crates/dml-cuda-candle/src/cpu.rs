//! candle's tensors in host memory.

use candle_core::backend::{BackendDevice, BackendStorage};
use candle_core::cpu_backend::CpuDevice;
use candle_core::{CpuStorage, DType, Error, Layout, Result, Shape};
use dml_cuda::lowering::{ForeignTensor, Lowered};
use dml_cuda::CompiledOperator;

use crate::{candle_error, in_bytes, length_type, View};

/// The bytes from the first element of a view on.
fn bytes((storage, layout): View<'_, CpuStorage>) -> Result<&[u8]> {
    let (dtype, at) = (storage.dtype(), layout.start_offset());
    by_type!(CpuStorage, storage, dtype, elements => Ok(bytemuck::cast_slice(&elements[at..])))
}

fn bytes_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [u8]> {
    let (dtype, at) = (storage.dtype(), layout.start_offset());
    by_type!(CpuStorage, storage, dtype, elements => Ok(bytemuck::cast_slice_mut(&mut elements[at..])))
}

fn compile(lowered: &Lowered) -> Result<CompiledOperator> {
    dml_cuda::Device::cpu()
        .compile_lowered(lowered, dml_cuda::CompileOptions::default())
        .map_err(Error::wrap)
}

/// The lengths, none of which may be negative.
#[allow(unsafe_code)]
fn checked(lengths: View<'_, CpuStorage>) -> Result<&[u8]> {
    let (bytes, dtype) = (bytes(lengths)?, lengths.0.dtype());
    let (sizes, strides) = in_bytes(lengths.1, dtype.size_in_bytes());
    let tensor = ForeignTensor {
        address: bytes.as_ptr().into(),
        sizes: &sizes,
        strides_in_bytes: Some(&strides),
    };
    // SAFETY: the bytes are those of candle's tensor, which is on the host and borrowed.
    unsafe { tensor.check_lengths(length_type(dtype)?, None) }.map_err(candle_error)?;
    Ok(bytes)
}

/// A new contiguous storage, which `lowered` fills from the inputs.
pub fn computed(
    lowered: &Lowered,
    inputs: &[&[u8]],
    shape: &Shape,
    dtype: DType,
) -> Result<CpuStorage> {
    let mut output = CpuDevice.zeros_impl(shape, dtype)?;
    let to = bytes_mut(&mut output, &Layout::contiguous(shape))?;
    compile(lowered)?
        .dispatch_on_host(inputs, to)
        .map_err(Error::wrap)?;
    Ok(output)
}

/// The reversed elements, contiguous.
pub fn reverse(
    reversal: &Lowered,
    x: View<CpuStorage>,
    lengths: View<CpuStorage>,
) -> Result<CpuStorage> {
    computed(
        reversal,
        &[bytes(x)?, checked(lengths)?],
        x.1.shape(),
        x.0.dtype(),
    )
}

/// Reverses in place.
pub fn reverse_in_place(
    reversal: &Lowered,
    x: (&mut CpuStorage, &Layout),
    lengths: View<CpuStorage>,
) -> Result<()> {
    let (operator, lengths) = (compile(reversal)?, checked(lengths)?);
    operator
        .dispatch_in_place_on_host(lengths, bytes_mut(x.0, x.1)?)
        .map_err(Error::wrap)
}
