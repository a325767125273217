//! Reversals: ONNX's ReverseSequence, and `dml_cuda.ReverseSubsequences`.

use dml::lowering::{ForeignTensor, Lowered, LoweredReversal, Names};
use dml::{Address, TensorDataType};
use ort_sys::{ONNXTensorElementDataType as Type, OrtKernelContext, OrtValue};

use super::api::Result;
use super::kernel::Kernel;
use crate::frameworks::{element_count, first_outside};

/// The two conventions for lengths: their type, their shape, and what a length outside [0, T] means.
pub enum Reverse {
    /// ONNX's: lengths are int64 [B]. A length above T is an error on the host. On a GPU nothing may read it, and it acts as T.
    Sequence { batch: usize, time: usize },
    /// DirectML's: lengths have any type of DirectML and broadcast to the lanes. A length above T acts as T.
    Subsequences { axis: i64, lengths: TensorDataType },
}

/// The types whose elements move as bytes, with their sizes.
pub const BYTES: &[(Type, usize)] = &[
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ, 1),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, 2),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, 2),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 2),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 2),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, 4),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 4),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, 8),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8),
    (Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 8),
];

/// The bytes of an element, by ONNX's number of its type.
pub fn width(element_type: i32) -> Option<usize> {
    BYTES.iter().find_map(|&(known, width)| (known as i32 == element_type).then_some(width))
}

/// Of packed tensors, in the operator's own words.
fn lower(
    input: ForeignTensor<'_>,
    lengths: ForeignTensor<'_>,
    axis: i64,
    width: usize,
    length_type: TensorDataType,
) -> std::result::Result<LoweredReversal, String> {
    const NAMES: Names = Names { input: "input", lengths: "sequence_lengths", output: "output", axis: "axis" };
    LoweredReversal::new(input, lengths, None, axis, width, length_type, 0).map_err(|error| error.message(&NAMES))
}

impl Reverse {
    pub fn run(&self, kernel: &Kernel, context: *mut OrtKernelContext) -> Result<()> {
        let ort = kernel.ort;
        let (input, lengths) = (ort.input(context, 0)?, ort.input(context, 1)?);
        ort.shape(input, |element_type, shape| {
            // For strings, indices are reversed.
            let strings = element_type == Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING as i32;
            let width = if strings { Some(4) } else { width(element_type) };
            let width = width.ok_or_else(|| {
                format!("the element type of input is {element_type}, must be of 1, 2, 4 or 8 bytes, or string")
            })?;
            let reversal = ort.shape(lengths, |_, of_lengths| Ok(self.lower(shape, of_lengths, width)?))?;
            let of_lengths = ort.data(lengths)?;
            if kernel.is_on_host() {
                self.check(of_lengths as Address, lengths, kernel, &reversal)?;
            }
            let output = ort.output(context, shape)?;
            if shape.contains(&0) {
                return Ok(());
            }
            if strings {
                return reverse_strings(kernel, context, input, output, of_lengths as Address, &reversal, shape);
            }
            let (from, to) = (ort.data(input)? as Address, ort.data(output)? as Address);
            // SAFETY: these are ONNX Runtime's tensors, with the shapes that were lowered, in memory of the node's device.
            unsafe { kernel.dispatch(&Lowered::Reversal(reversal), &[from, of_lengths as Address], to, context) }
        })
    }

    fn lower(&self, shape: &[i64], of_lengths: &[i64], width: usize) -> std::result::Result<LoweredReversal, String> {
        let packed = |sizes| ForeignTensor { sizes, strides_in_bytes: None };
        let (lengths, axis, length_type) = match *self {
            Self::Sequence { batch, time } => {
                if shape.len() < 2 {
                    return Err(format!("input has {} dimensions, must have at least 2", shape.len()));
                }
                let lanes = shape[batch];
                if of_lengths != [lanes] {
                    return Err(format!(
                        "the shape of sequence_lens is {of_lengths:?}, must be [{lanes}], the batch size"
                    ));
                }
                // As many dimensions as the input, all 1 except the batch's.
                let mut broadcast = [1; 32];
                broadcast[batch] = lanes;
                let broadcast = broadcast.get(..shape.len()).ok_or("input has more than 32 dimensions")?;
                return lower(packed(shape), packed(broadcast), time as i64, width, TensorDataType::UInt64);
            }
            Self::Subsequences { axis, lengths } => (packed(of_lengths), axis, lengths),
        };
        lower(packed(shape), lengths, axis, width, length_type)
    }

    /// Checks lengths on the host. They pass on as UINT64, in which a negative int64 would be huge.
    fn check(
        &self,
        address: Address,
        lengths: *const OrtValue,
        kernel: &Kernel,
        reversal: &LoweredReversal,
    ) -> Result<()> {
        let most = match self {
            Self::Sequence { .. } => i64::from(reversal.axis_size()),
            Self::Subsequences { .. } => i64::MAX,
        };
        let outside = kernel.ort.shape(lengths, |element_type, sizes| {
            let signed = element_type == Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 as i32;
            let tensor = ForeignTensor { sizes, strides_in_bytes: None };
            // SAFETY: ONNX Runtime's int64 tensor is packed and on the host, and nobody writes it now.
            Ok(signed.then(|| unsafe { first_outside(0..=most, address, tensor, 8) }).flatten())
        })?;
        let Some((found, at)) = outside else { return Ok(()) };
        let (name, required) = match self {
            Self::Sequence { .. } => ("sequence_lens", format!("from 0 to {most}, the size of the time axis")),
            Self::Subsequences { .. } => ("sequence_lengths", "at least 0".to_owned()),
        };
        Err(format!("{name}{at} is {found}, must be {required}").into())
    }
}

/// Reverses strings on the CPU: reverses their indices as numbers, then copies the texts in that order.
fn reverse_strings(
    kernel: &Kernel,
    context: *mut OrtKernelContext,
    input: *const OrtValue,
    output: *mut OrtValue,
    lengths: Address,
    reversal: &LoweredReversal,
    shape: &[i64],
) -> Result<()> {
    if !kernel.is_on_host() {
        return Err("strings are reversed on the CPU only".into());
    }
    let count = element_count(shape)?;
    let (bytes, offsets) = kernel.ort.strings(input, count as usize)?;
    let places: Vec<u32> = (0..count).collect();
    let mut reversed = vec![0u32; count as usize];
    let lowered = Lowered::Reversal(*reversal);
    // SAFETY: both vectors have as many numbers as the shape has elements. The lengths are ONNX Runtime's, on the host.
    unsafe {
        kernel.dispatch(&lowered, &[places.as_ptr() as Address, lengths], reversed.as_mut_ptr() as Address, context)
    }?;
    for (at, &from) in reversed.iter().enumerate() {
        let from = from as usize;
        let end = offsets.get(from + 1).copied().unwrap_or(bytes.len());
        kernel.ort.set_string(output, at, &bytes[offsets[from]..end])?;
    }
    Ok(())
}
