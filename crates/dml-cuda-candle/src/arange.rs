//! Sequences, made where they are to lie.

use candle_core::op::BackpropOp;
use candle_core::scalar::Scalar;
use candle_core::{bail, DType, Device, Error, Result, Storage, Tensor, WithDType};
use dml_cuda::lowering::{integer_range_count, range_count, Lowered, LoweredSequence};
use dml_cuda::TensorDataType;

use crate::cpu;
#[cfg(feature = "cuda")]
use crate::cuda;

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
/// The errors of [`arange_step`].
pub fn arange<D: WithDType>(start: D, end: D, device: &Device) -> Result<Tensor> {
    arange_step(start, end, D::one(), device)
}

/// A tensor of `start + i·step` for i from 0, while that is below `end` (above it where the step is negative), written
/// by the device itself: candle's own `Tensor::arange_step` adds on the host, element after element, and uploads the
/// sums.
///
/// U8, U32, I16, I32, I64, F16, BF16, F32 and F64. Each floating-point element is `i·step + start`, rounded once to F32
/// or F64, and from F32 to F16 or BF16.
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
    if dtype == DType::BF16 {
        let (start, end, step) = (
            start.to_f64() as f32,
            end.to_f64() as f32,
            step.to_f64() as f32,
        );
        return arange_step(start, end, step, device)?.to_dtype(dtype);
    }
    // Before the type is known, `to_f64` may not return.
    let [Some((data_type, first)), Some((_, last)), Some((_, delta))] =
        [start, end, step].map(|x| bits(x.to_scalar()))
    else {
        bail!("the dtype of arange is {dtype:?}, but must be u8, u32, i16, i32, i64, f16, bf16, f32 or f64");
    };
    for (name, value) in [("start", start), ("end", end), ("step", step)] {
        if !value.to_f64().is_finite() {
            bail!(
                "the {name} of arange is {}, but must be finite",
                value.to_f64()
            );
        }
    }
    if step.to_f64() == 0.0 {
        bail!("the step of arange is 0, but must be another number");
    }
    let count = match data_type {
        TensorDataType::Float16 | TensorDataType::Float32 | TensorDataType::Float64 => {
            range_count([start, end, step].map(D::to_f64))
        }
        _ => integer_range_count([first, last, delta].map(|bits| bits as i64)),
    };
    let count = count.map_err(Error::wrap)?;
    if count == 0 {
        return Tensor::zeros(0, dtype, device);
    }
    let sequence = Lowered::Sequence(LoweredSequence::packed(data_type, count, first, delta));
    let shape = (count as usize).into();
    let storage = match device {
        Device::Cpu => Storage::Cpu(cpu::computed(&sequence, &[], &shape, dtype)?),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            Storage::Cuda(cuda::computed(&sequence, &[], device, &shape, dtype)?)
        }
        _ => {
            bail!(
                "arange is for the CPU and, with the feature cuda, for CUDA devices, not for {:?}",
                device.location()
            )
        }
    };
    Ok(Tensor::from_storage(
        storage,
        shape,
        BackpropOp::none(),
        false,
    ))
}

/// The type of a scalar and its bits, those of an integer extended to 64. `None` if no sequence fills the type.
fn bits(value: Scalar) -> Option<(TensorDataType, u64)> {
    Some(match value {
        Scalar::U8(value) => (TensorDataType::UInt8, value.into()),
        Scalar::U32(value) => (TensorDataType::UInt32, value.into()),
        Scalar::I16(value) => (TensorDataType::Int16, value as u64),
        Scalar::I32(value) => (TensorDataType::Int32, value as u64),
        Scalar::I64(value) => (TensorDataType::Int64, value as u64),
        Scalar::F16(value) => (TensorDataType::Float16, value.to_bits().into()),
        Scalar::F32(value) => (TensorDataType::Float32, value.to_bits().into()),
        Scalar::F64(value) => (TensorDataType::Float64, value.to_bits()),
        _ => return None,
    })
}
