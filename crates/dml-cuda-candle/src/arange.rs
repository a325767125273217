//! Sequences, made where they are to lie.

use std::num::NonZeroU32;

use candle_core::op::BackpropOp;
use candle_core::scalar::Scalar;
use candle_core::{bail, DType, Device, Error, Result, Storage, Tensor, WithDType};
use dml::{BufferTensorDesc, CompiledOperator, FillValueSequenceDesc, ScalarUnion, TensorDataType};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{cpu, operators};

/// `start`, `start + 1`, … below `end`: [`arange_step`] with a step of 1.
///
/// ```
/// let positions = dml_cuda_candle::arange(2u32, 6, &candle_core::Device::Cpu)?;
/// assert_eq!(positions.to_vec1::<u32>()?, [2, 3, 4, 5]);
/// # Ok::<(), candle_core::Error>(())
/// ```
///
/// # Errors
///
/// As of [`arange_step`].
pub fn arange<D: WithDType>(start: D, end: D, device: &Device) -> Result<Tensor> {
    arange_step(start, end, D::one(), device)
}

/// A tensor of `start + i·step` for i from 0, while that is below `end` (above it where the step is negative), written by the
/// device itself: candle's own `Tensor::arange_step` adds on the host, element after element, and uploads the sums.
///
/// U8, U32, I16, I32, I64, F16, BF16, F32 and F64. Each floating-point element is `i·step + start`, rounded once to F32 or F64, and
/// from F32 to F16 or BF16.
///
/// ```
/// let values = dml_cuda_candle::arange_step(0f32, 1e5, 0.1, &candle_core::Device::Cpu)?;
/// assert_eq!(values.get(999_999)?.to_scalar::<f32>()?, 99_999.9);
/// # Ok::<(), candle_core::Error>(())
/// ```
///
/// # Errors
///
/// A step of 0, a value that is not finite, 2³² elements or more, another type, an error of the driver.
pub fn arange_step<D: WithDType>(start: D, end: D, step: D, device: &Device) -> Result<Tensor> {
    let dtype = D::DTYPE;
    let count = match (integer(start), integer(end), integer(step)) {
        (Some(start), Some(end), Some(step)) => count_of_integers(start, end, step)?,
        _ => count_of_floats(start.to_f64(), end.to_f64(), step.to_f64())?,
    };
    let Ok(count) = u32::try_from(count) else { bail!("arange has {count} elements, must have fewer than 2³²") };
    let Some(count) = NonZeroU32::new(count) else { return Tensor::zeros(0, dtype, device) };
    if dtype == DType::BF16 {
        let (start, end, step) = (start.to_f64() as f32, end.to_f64() as f32, step.to_f64() as f32);
        return arange_step(start, end, step, device)?.to_dtype(dtype);
    }
    let operator = operator(count, start.to_scalar(), step.to_scalar(), &operators::device(ordinal(device)?)?)?;
    let shape = (count.get() as usize).into();
    let storage = match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => Storage::Cuda(cuda::fill(&operator, device, &shape, dtype)?),
        _ => Storage::Cpu(cpu::fill(&operator, &shape, dtype)?),
    };
    Ok(Tensor::from_storage(storage, shape, BackpropOp::none(), false))
}

/// The ordinal of the GPU that candle's device is on; `None` is the CPU.
fn ordinal(device: &Device) -> Result<Option<usize>> {
    match device {
        Device::Cpu => Ok(None),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => Ok(Some(device.cuda_stream().context().ordinal())),
        _ => {
            bail!("arange is for the CPU and, with the feature cuda, for CUDA devices, not for {:?}", device.location())
        }
    }
}

/// The value of an integer type.
fn integer<D: WithDType>(value: D) -> Option<i128> {
    match value.to_scalar() {
        Scalar::U8(value) => Some(value.into()),
        Scalar::U32(value) => Some(value.into()),
        Scalar::I16(value) => Some(value.into()),
        Scalar::I32(value) => Some(value.into()),
        Scalar::I64(value) => Some(value.into()),
        _ => None,
    }
}

fn count_of_integers(start: i128, end: i128, step: i128) -> Result<u128> {
    let (distance, step) = if step < 0 { (start - end, -step) } else { (end - start, step) };
    if step == 0 {
        bail!("the step of arange is 0, must not be");
    }
    Ok(distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
}

fn count_of_floats(start: f64, end: f64, step: f64) -> Result<u128> {
    for (name, value) in [("start", start), ("end", end), ("step", step)] {
        if !value.is_finite() {
            bail!("the {name} of arange is {value}, must be finite");
        }
    }
    if step == 0.0 {
        bail!("the step of arange is 0, must not be");
    }
    Ok(((end - start) / step).ceil().max(0.0) as u128)
}

fn operator(count: NonZeroU32, start: Scalar, step: Scalar, device: &dml::Device) -> Result<CompiledOperator> {
    if let (Scalar::F64(start), Scalar::F64(step)) = (start, step) {
        return device.compile_operator(&device.create_float64_sequence(count, start, step)).map_err(Error::wrap);
    }
    let (Some((value_data_type, value_start)), Some((_, value_delta))) = (union(start), union(step)) else {
        bail!("arange is of {:?}, must be of u8, u32, i16, i32, i64, f16, bf16, f32 or f64", start.dtype());
    };
    let output_tensor = BufferTensorDesc::packed(value_data_type, &[count.get()]);
    operators::compile(device, FillValueSequenceDesc { output_tensor, value_data_type, value_start, value_delta })
}

/// The scalar of a type that DirectML fills.
fn union(value: Scalar) -> Option<(TensorDataType, ScalarUnion)> {
    Some(match value {
        Scalar::U8(value) => (TensorDataType::UInt8, ScalarUnion::UInt8(value)),
        Scalar::U32(value) => (TensorDataType::UInt32, ScalarUnion::UInt32(value)),
        Scalar::I16(value) => (TensorDataType::Int16, ScalarUnion::Int16(value)),
        Scalar::I32(value) => (TensorDataType::Int32, ScalarUnion::Int32(value)),
        Scalar::I64(value) => (TensorDataType::Int64, ScalarUnion::Int64(value)),
        Scalar::F16(value) => (TensorDataType::Float16, ScalarUnion::Float16(value)),
        Scalar::F32(value) => (TensorDataType::Float32, ScalarUnion::Float32(value)),
        _ => return None,
    })
}
