//! Sequences: ONNX's Range, and `dml_cuda.FillValueSequence`. Their scalars are on the host.

use dml_cuda::lowering::{integer_range_count, range_count, Lowered, LoweredSequence};
use dml_cuda::Address;
use dml_cuda::TensorDataType::{Float16, Float32, Float64};
use half::{bf16, f16};
use ort_sys::{ONNXTensorElementDataType as Type, OrtKernelContext, OrtValue};

use super::element::{element, Element};
use super::node::NodeDevice;
use super::ort::{Ort, Result};
use crate::frameworks::{element_count, zeros};

/// ONNX Runtime passes only types of `register`.
const NOT_NUMERIC: &str = "the element type of start must be numeric";

/// Reads a scalar on the host, which is a tensor of one element: its element type and its bits.
fn scalar(ort: Ort, value: *const OrtValue, name: &str) -> Result<(Element, u64)> {
    let of = ort.shape(value, |number, shape| {
        if shape.iter().any(|&size| size != 1) {
            return Err(format!(
                "the shape of {name} is {shape:?}, but must be that of one element"
            )
            .into());
        }
        element(number).ok_or_else(|| NOT_NUMERIC.into())
    })?;
    let (from, mut bytes) = (ort.data(value)?, [0u8; 8]);
    // SAFETY: a tensor of one element of that width. ONNX Runtime puts it on the host (`GetInputMemoryType`).
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), bytes.as_mut_ptr(), of.width) };
    Ok((of, u64::from_le_bytes(bytes)))
}

impl NodeDevice {
    /// ONNX's Range: ONNX defines the number of elements, this library their values. float16 and bfloat16 are computed
    /// in float.
    pub fn range(&self, context: *mut OrtKernelContext) -> Result<()> {
        let ort = self.ort;
        let read = |index, name| scalar(ort, ort.input(context, index)?, name);
        let ((of, start), (_, limit), (_, delta)) =
            (read(0, "start")?, read(1, "limit")?, read(2, "delta")?);
        // A bfloat16 is the upper half of a float.
        let bfloat16 = of.element_type == Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
        let (data_type, shift) = if bfloat16 {
            (Float32, 16)
        } else {
            (of.data_type.ok_or(NOT_NUMERIC)?, 0)
        };
        let scalars = [start, limit, delta].map(|bits| bits << shift);
        let float = |bits: u64| match data_type {
            Float16 => f16::from_bits(bits as u16).into(),
            Float32 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits),
        };
        let count = match data_type {
            Float16 | Float32 | Float64 => range_count(scalars.map(float))?,
            _ => {
                let unused = 64 - data_type.size_in_bits();
                integer_range_count(scalars.map(|bits| ((bits << unused) as i64) >> unused))?
            }
        };
        let [start, _, delta] = scalars;
        let sequence = LoweredSequence::packed(data_type, count, start, delta);
        if !bfloat16 || count == 0 {
            return self.sequence(context, sequence, &[count.into()]);
        }
        // On the host: rounds floats.
        let mut floats = zeros::<f32>(count as usize)?;
        // SAFETY: `floats` has `count` elements.
        unsafe { self.write(sequence, floats.as_mut_ptr().into(), context) }?;
        let to = ort
            .data(ort.output(context, &[count.into()])?)?
            .cast::<bf16>();
        for (k, &float) in floats.iter().enumerate() {
            // SAFETY: ONNX Runtime's tensor of `count` elements, on the host, aligned or not.
            unsafe { to.add(k).write_unaligned(bf16::from_f32(float)) };
        }
        Ok(())
    }

    /// `dml_cuda.FillValueSequence`: takes a shape and DirectML's two scalars.
    pub fn fill(&self, context: *mut OrtKernelContext) -> Result<()> {
        let ort = self.ort;
        let shape = ort.input(context, 0)?;
        let rank =
            ort.shape(shape, |_, of_shape| match *of_shape {
                [rank @ 0..=32] => Ok(rank as usize),
                _ => Err(format!("the shape of `shape` is {of_shape:?}, but must be [rank], of at most 32 dimensions")
                    .into()),
            })?;
        let mut sizes = [0i64; 32];
        let from = ort.data(shape)?;
        // SAFETY: an int64 tensor of `rank` elements, at most 32, which ONNX Runtime puts on the host, aligned or not.
        unsafe {
            std::ptr::copy_nonoverlapping(from.cast::<u8>(), sizes.as_mut_ptr().cast(), rank * 8)
        };
        let sizes = &sizes[..rank];
        let count = element_count(sizes)?;
        let read = |index, name| scalar(ort, ort.input(context, index)?, name);
        let ((of, start), (_, delta)) = (read(1, "start")?, read(2, "delta")?);
        let sequence =
            LoweredSequence::packed(of.data_type.ok_or(NOT_NUMERIC)?, count, start, delta);
        self.sequence(context, sequence, sizes)
    }

    fn sequence(
        &self,
        context: *mut OrtKernelContext,
        sequence: LoweredSequence,
        shape: &[i64],
    ) -> Result<()> {
        let output = self.ort.output(context, shape)?;
        if shape.contains(&0) {
            return Ok(());
        }
        let address = self.ort.data(output)?.into();
        // SAFETY: this is ONNX Runtime's tensor of `count` elements, in memory of the node's device.
        unsafe { self.write(sequence, address, context) }
    }

    /// Writes a sequence on the run's stream.
    ///
    /// # Safety
    ///
    /// The address is that of a tensor as `sequence` describes it, in memory of the node's device.
    unsafe fn write(
        &self,
        sequence: LoweredSequence,
        to: Address,
        context: *mut OrtKernelContext,
    ) -> Result<()> {
        let (sequence, stream) = (Lowered::Sequence(sequence), self.stream(context)?);
        // SAFETY: the tensor is as the sequence says, and the stream is the run's. Kernels stay loaded (`cuda_device`).
        Ok(unsafe { self.device.run_lowered(&sequence, &[], to, stream) }?)
    }
}
