//! candle's tensors in a GPU's memory.
#![allow(unsafe_code)]

use candle_core::backend::{BackendDevice, BackendStorage};
use candle_core::cuda::{CudaStorage, CudaStorageSlice};
use candle_core::{bail, CudaDevice, DType, Error, Layout, Result, Shape};
use cudarc::driver::CudaStream;
use dml::lowering::Lowered;
use dml::{CompiledOperator, CudaBytes, CudaBytesMut};

/// Binds a slice of a storage.
macro_rules! by_type {
    ($storage:expr, $slice:ident => $then:expr) => {
        match $storage {
            CudaStorageSlice::U8($slice) => $then,
            CudaStorageSlice::U32($slice) => $then,
            CudaStorageSlice::I16($slice) => $then,
            CudaStorageSlice::I32($slice) => $then,
            CudaStorageSlice::I64($slice) => $then,
            CudaStorageSlice::BF16($slice) => $then,
            CudaStorageSlice::F16($slice) => $then,
            CudaStorageSlice::F32($slice) => $then,
            CudaStorageSlice::F64($slice) => $then,
            CudaStorageSlice::F8E4M3($slice) => $then,
            _ => bail!("the type is not for these operators"),
        }
    };
}

/// The memory from the first element of a layout on.
fn bytes<'a>(storage: &'a CudaStorage, layout: &Layout) -> Result<Box<dyn CudaBytes + 'a>> {
    by_type!(&storage.slice, slice => Ok(Box::new(slice.slice(layout.start_offset()..))))
}

fn bytes_mut<'a>(storage: &'a mut CudaStorage, layout: &Layout) -> Result<Box<dyn CudaBytesMut + 'a>> {
    by_type!(&mut storage.slice, slice => Ok(Box::new(slice.slice_mut(layout.start_offset()..))))
}

fn compile(lowered: &Lowered, stream: &CudaStream) -> Result<CompiledOperator> {
    let device = dml::Device::cuda(stream.context().ordinal()).map_err(Error::wrap)?;
    device.compile_lowered(lowered, dml::CompileOptions::default()).map_err(Error::wrap)
}

/// The reversed elements, contiguous, queued on the device's stream.
pub fn reverse(
    reversal: &Lowered,
    (x, x_layout): (&CudaStorage, &Layout),
    (lengths, lengths_layout): (&CudaStorage, &Layout),
) -> Result<CudaStorage> {
    let (device, stream) = (x.device(), x.device().cuda_stream());
    let operator = compile(reversal, &stream)?;
    // SAFETY: the kernel writes every element before work that is queued later reads any.
    let mut output = unsafe { device.alloc_uninit(x_layout.shape(), x.dtype()) }?;
    let inputs = [&*bytes(x, x_layout)?, &*bytes(lengths, lengths_layout)?];
    let layout = Layout::contiguous(x_layout.shape());
    operator.dispatch_on(&stream, &inputs, &mut *bytes_mut(&mut output, &layout)?).map_err(Error::wrap)?;
    Ok(output)
}

/// Reverses in place, queued on the device's stream.
pub fn reverse_in_place(
    reversal: &Lowered,
    (x, x_layout): (&mut CudaStorage, &Layout),
    (lengths, lengths_layout): (&CudaStorage, &Layout),
) -> Result<()> {
    let stream = x.device().cuda_stream();
    let operator = compile(reversal, &stream)?;
    let (lengths, x) = (bytes(lengths, lengths_layout)?, &mut *bytes_mut(x, x_layout)?);
    operator.dispatch_in_place_on(&stream, &*lengths, x).map_err(Error::wrap)
}

/// A new storage with the sequence's elements, queued on the device's stream.
pub fn fill(sequence: &Lowered, device: &CudaDevice, shape: &Shape, dtype: DType) -> Result<CudaStorage> {
    let (stream, layout) = (device.cuda_stream(), Layout::contiguous(shape));
    let operator = compile(sequence, &stream)?;
    // SAFETY: the kernel writes every element before work that is queued later reads any.
    let mut output = unsafe { device.alloc_uninit(shape, dtype) }?;
    operator.dispatch_on(&stream, &[], &mut *bytes_mut(&mut output, &layout)?).map_err(Error::wrap)?;
    Ok(output)
}
