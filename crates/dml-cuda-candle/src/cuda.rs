//! candle's tensors in a GPU's memory.
#![allow(unsafe_code)]

use candle_core::backend::{BackendDevice, BackendStorage};
use candle_core::cuda::{CudaStorage, CudaStorageSlice};
use candle_core::{CudaDevice, DType, Error, Layout, Result, Shape};
use cudarc::driver::CudaStream;
use dml_cuda::lowering::Lowered;
use dml_cuda::{CompiledOperator, CudaBytes, CudaBytesMut};

use crate::View;

/// The memory from the first element of a view on.
fn bytes<'a>((storage, layout): View<'a, CudaStorage>) -> Result<Box<dyn CudaBytes + 'a>> {
    let (dtype, at) = (storage.dtype(), layout.start_offset());
    by_type!(CudaStorageSlice, &storage.slice, dtype, slice => Ok(Box::new(slice.slice(at..))))
}

fn bytes_mut<'a>(
    storage: &'a mut CudaStorage,
    layout: &Layout,
) -> Result<Box<dyn CudaBytesMut + 'a>> {
    let (dtype, at) = (storage.dtype(), layout.start_offset());
    by_type!(CudaStorageSlice, &mut storage.slice, dtype, slice => Ok(Box::new(slice.slice_mut(at..))))
}

fn compile(lowered: &Lowered, stream: &CudaStream) -> Result<CompiledOperator> {
    let device = dml_cuda::Device::cuda(stream.context().ordinal()).map_err(Error::wrap)?;
    let device = device.with_environment().map_err(Error::wrap)?;
    device
        .compile_lowered(lowered, device.compile_options())
        .map_err(Error::wrap)
}

/// A new contiguous storage, which `lowered` fills from the inputs, queued on the device's stream.
pub fn computed(
    lowered: &Lowered,
    inputs: &[&dyn CudaBytes],
    device: &CudaDevice,
    shape: &Shape,
    dtype: DType,
) -> Result<CudaStorage> {
    let stream = device.cuda_stream();
    let operator = compile(lowered, &stream)?;
    // SAFETY: the kernel writes every element before work that is queued later reads any.
    let mut output = unsafe { device.alloc_uninit(shape, dtype) }?;
    let layout = Layout::contiguous(shape);
    operator
        .dispatch_on(&stream, inputs, &mut *bytes_mut(&mut output, &layout)?)
        .map_err(Error::wrap)?;
    Ok(output)
}

/// The reversed elements, contiguous, queued on the device's stream.
pub fn reverse(
    reversal: &Lowered,
    x: View<CudaStorage>,
    lengths: View<CudaStorage>,
) -> Result<CudaStorage> {
    computed(
        reversal,
        &[&*bytes(x)?, &*bytes(lengths)?],
        x.0.device(),
        x.1.shape(),
        x.0.dtype(),
    )
}

/// Reverses in place, queued on the device's stream.
pub fn reverse_in_place(
    reversal: &Lowered,
    x: (&mut CudaStorage, &Layout),
    lengths: View<CudaStorage>,
) -> Result<()> {
    let stream = x.0.device().cuda_stream();
    let operator = compile(reversal, &stream)?;
    let (lengths, x) = (bytes(lengths)?, &mut *bytes_mut(x.0, x.1)?);
    operator
        .dispatch_in_place_on(&stream, &*lengths, x)
        .map_err(Error::wrap)
}
