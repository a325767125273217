//! Sequences: ONNX's Range, and `dml_cuda.FillValueSequence`. Their scalars are on the host.

use std::num::NonZeroU32;

use dml::{Device, Operator, TensorDataType};
use ort_sys::{ONNXTensorElementDataType as Type, OrtKernelContext, OrtValue};

use super::api::{Ort, Result};
use super::kernel::{Kernel, Lowered};
use super::lower::{element_count, integer_range_count, range_count, Sequence};

impl Sequence {
    pub fn operator(&self, device: &Device) -> Result<Operator> {
        if self.data_type == TensorDataType::Float64 {
            let count = NonZeroU32::new(self.count).ok_or("a sequence of no elements")?;
            return Ok(device.create_float64_sequence(count, f64::from_bits(self.start), f64::from_bits(self.delta)));
        }
        Ok(device.create_operator(self.desc())?)
    }
}

/// The data type of a sequence by ONNX's number.
pub fn data_type(element_type: i32) -> Option<TensorDataType> {
    use TensorDataType as T;
    use Type::*;
    [
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, T::Float32),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, T::Float64),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, T::Float16),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, T::Int8),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, T::Int16),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, T::Int32),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, T::Int64),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, T::UInt8),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, T::UInt16),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, T::UInt32),
        (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, T::UInt64),
    ]
    .into_iter()
    .find_map(|(number, data_type)| (number as i32 == element_type).then_some(data_type))
}

/// The bits of a scalar on the host: a tensor of one element.
fn scalar(ort: Ort, value: *const OrtValue, name: &str) -> Result<(TensorDataType, u64)> {
    let data_type = ort.shape(value, |element_type, shape| {
        if shape.iter().any(|&size| size != 1) {
            return Err(format!("the shape of {name} is {shape:?}, must be that of one element").into());
        }
        data_type(element_type)
            .ok_or_else(|| format!("the element type of {name} is {element_type}, must be numeric").into())
    })?;
    let mut bytes = [0u8; 8];
    let width = data_type.size_in_bits() as usize / 8;
    let from = ort.data(value)?;
    // SAFETY: a tensor of one element of that width, which ONNX Runtime holds on the host (`GetInputMemoryType`).
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), bytes.as_mut_ptr(), width) };
    Ok((data_type, u64::from_le_bytes(bytes)))
}

impl Kernel {
    /// ONNX's Range: as many elements as ONNX says, with this library's values.
    pub fn range(&self, context: *mut OrtKernelContext) -> Result<()> {
        let ort = self.ort;
        let read = |index, name| scalar(ort, ort.input(context, index)?, name);
        let ((data_type, start), (_, limit), (_, delta)) = (read(0, "start")?, read(1, "limit")?, read(2, "delta")?);
        let count = match data_type {
            TensorDataType::Float32 => {
                let [start, limit, delta] = [start, limit, delta].map(|bits| f32::from_bits(bits as u32));
                range_count(f64::from(limit - start), delta.into())?
            }
            TensorDataType::Float64 => {
                let [start, limit, delta] = [start, limit, delta].map(f64::from_bits);
                range_count(limit - start, delta)?
            }
            TensorDataType::Float16 => {
                return Err("Range of float16 is not of any opset that ONNX Runtime takes".into())
            }
            _ => {
                let unused = 64 - data_type.size_in_bits();
                let [start, limit, delta] = [start, limit, delta].map(|bits| ((bits << unused) as i64) >> unused);
                integer_range_count(start, limit, delta)?
            }
        };
        let count =
            u32::try_from(count).map_err(|_| format!("the output has {count} elements, must have fewer than 2³²"))?;
        self.sequence(context, Sequence { data_type, count, start, delta }, &[count.into()])
    }

    /// `dml_cuda.FillValueSequence`: a shape, and DirectML's two scalars.
    pub fn fill(&self, context: *mut OrtKernelContext) -> Result<()> {
        let ort = self.ort;
        let shape = ort.input(context, 0)?;
        let rank = ort.shape(shape, |_, of_shape| match *of_shape {
            [rank @ 0..=32] => Ok(rank as usize),
            _ => Err(format!("the shape of `shape` is {of_shape:?}, must be [rank], of at most 32 dimensions").into()),
        })?;
        let mut sizes = [0i64; 32];
        let from = ort.data(shape)?;
        // SAFETY: an int64 tensor of `rank` elements, at most 32, which ONNX Runtime holds on the host.
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<i64>(), sizes.as_mut_ptr(), rank) };
        let sizes = &sizes[..rank];
        let count = element_count(sizes)?;
        let read = |index, name| scalar(ort, ort.input(context, index)?, name);
        let ((data_type, start), (_, delta)) = (read(1, "start")?, read(2, "delta")?);
        self.sequence(context, Sequence { data_type, count, start, delta }, sizes)
    }

    fn sequence(&self, context: *mut OrtKernelContext, sequence: Sequence, shape: &[i64]) -> Result<()> {
        let output = self.ort.output(context, shape)?;
        if sequence.count == 0 {
            return Ok(());
        }
        let address = self.ort.data(output)? as dml::Address;
        // SAFETY: ONNX Runtime's tensor of that many elements, in memory of the node's device.
        unsafe { self.dispatch(Lowered::Sequence(sequence), &[], address, context) }
    }
}
