//! candle's tensors in host memory.

use candle_core::backend::{BackendDevice, BackendStorage};
use candle_core::cpu_backend::CpuDevice;
use candle_core::{bail, CpuStorage, DType, Error, Layout, Result, Shape};
use dml::lowering::Lowered;
use dml::CompiledOperator;

/// Binds the elements of a storage.
macro_rules! by_type {
    ($storage:expr, $elements:ident => $then:expr) => {
        match $storage {
            CpuStorage::U8($elements) => $then,
            CpuStorage::U32($elements) => $then,
            CpuStorage::I16($elements) => $then,
            CpuStorage::I32($elements) => $then,
            CpuStorage::I64($elements) => $then,
            CpuStorage::BF16($elements) => $then,
            CpuStorage::F16($elements) => $then,
            CpuStorage::F32($elements) => $then,
            CpuStorage::F64($elements) => $then,
            CpuStorage::F8E4M3($elements) => $then,
            _ => bail!("{:?} is not for these operators", $storage.dtype()),
        }
    };
}

/// The bytes from the first element of a layout on.
fn bytes<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [u8]> {
    by_type!(storage, elements => Ok(bytemuck::cast_slice(&elements[layout.start_offset()..])))
}

fn bytes_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [u8]> {
    by_type!(storage, elements => Ok(bytemuck::cast_slice_mut(&mut elements[layout.start_offset()..])))
}

fn compile(lowered: &Lowered) -> Result<CompiledOperator> {
    dml::Device::cpu().compile_lowered(lowered, dml::CompileOptions::default()).map_err(Error::wrap)
}

/// The lengths, none of which may be negative.
fn checked<'a>(lengths: &'a CpuStorage, layout: &Layout) -> Result<&'a [u8]> {
    if lengths.dtype() == DType::I64 {
        let packed = lengths.to_dtype(layout, DType::I64)?;
        if let Some(length) = packed.as_slice::<i64>()?.iter().find(|&&length| length < 0) {
            bail!("a length is {length}, must be 0 or more");
        }
    }
    bytes(lengths, layout)
}

/// The reversed elements, contiguous.
pub fn reverse(
    reversal: &Lowered,
    (x, x_layout): (&CpuStorage, &Layout),
    (lengths, lengths_layout): (&CpuStorage, &Layout),
) -> Result<CpuStorage> {
    let mut output = CpuDevice.zeros_impl(x_layout.shape(), x.dtype())?;
    let to = bytes_mut(&mut output, &Layout::contiguous(x_layout.shape()))?;
    let operator = compile(reversal)?;
    operator.dispatch_on_host(&[bytes(x, x_layout)?, checked(lengths, lengths_layout)?], to).map_err(Error::wrap)?;
    Ok(output)
}

/// Reverses in place.
pub fn reverse_in_place(
    reversal: &Lowered,
    (x, x_layout): (&mut CpuStorage, &Layout),
    (lengths, lengths_layout): (&CpuStorage, &Layout),
) -> Result<()> {
    let operator = compile(reversal)?;
    operator.dispatch_in_place_on_host(checked(lengths, lengths_layout)?, bytes_mut(x, x_layout)?).map_err(Error::wrap)
}

/// A new storage with the sequence's elements.
pub fn fill(sequence: &Lowered, shape: &Shape, dtype: DType) -> Result<CpuStorage> {
    let mut output = CpuDevice.zeros_impl(shape, dtype)?;
    let operator = compile(sequence)?;
    operator.dispatch_on_host(&[], bytes_mut(&mut output, &Layout::contiguous(shape))?).map_err(Error::wrap)?;
    Ok(output)
}
