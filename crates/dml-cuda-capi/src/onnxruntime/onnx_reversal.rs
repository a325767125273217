//! Reversals: ONNX's ReverseSequence, and `dml_cuda.ReverseSubsequences`.

use std::sync::atomic::Ordering;

use dml_cuda::lowering::{ForeignTensor, LoweringError, Names, ReversalArrays};
use dml_cuda::TensorRole::{Input, Output, SequenceLengths};
use dml_cuda::{Address, TensorDataType};
use ort_sys::{ONNXTensorElementDataType as Type, OrtKernelContext};

use super::element::element;
use super::node::NodeDevice;
use super::ort::{Result, MAX_RANK};
use crate::frameworks::{element_count, zeros};
use crate::library::IN_PLACE_RUNS;

/// ONNX's names for the tensors and the axis of ReverseSequence, and this library's.
const SEQUENCE: Names<'_> = Names::new(
    "the time axis",
    &[
        (Input, "input"),
        (SequenceLengths, "sequence_lens"),
        (Output, "output"),
    ],
);
const SUBSEQUENCES: Names<'_> = Names::new(
    "axis",
    &[
        (Input, "input"),
        (SequenceLengths, "sequence_lengths"),
        (Output, "output"),
    ],
);

/// The two conventions for lengths: their type, their shape, and what a length outside [0, T] means.
pub enum Reverse {
    /// ONNX's: lengths are int64 [B]. A length below 0 or above T is an error on the host. On a GPU the host must not
    /// read it, and it acts as T.
    Sequence { batch: usize, time: usize },
    /// DirectML's: lengths have any type of DirectML, or int64, and broadcast to the lanes. A length above T acts as T.
    Subsequences { axis: i64 },
}

impl Reverse {
    pub fn run(&self, node: &NodeDevice, context: *mut OrtKernelContext) -> Result<()> {
        let ort = node.ort;
        let (x, lengths) = (ort.input(context, 0)?, ort.input(context, 1)?);
        let lengths_address = Address::from(ort.data(lengths)?);
        ort.shape(x, |element_type, shape| {
            let strings = element_type == Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING as i32;
            let width = if strings { Some(4) } else { element(element_type).map(|known| known.width) };
            let element_size = width.ok_or_else(|| {
                format!("the element type of input is {element_type}, but must have 1, 2, 4 or 8 bytes, or be string")
            })?;
            ort.shape(lengths, |length_type, sizes| {
                let mut of_lanes = [1; MAX_RANK];
                let lengths = ForeignTensor::packed(lengths_address, sizes);
                let (lengths, length_type, axis) = match *self {
                    Self::Sequence { batch, time } => {
                        check_sequences(node, shape, lengths, batch, time)?;
                        of_lanes[batch] = shape[batch];
                        let of_lanes = of_lanes.get(..shape.len()).ok_or("input has more than 32 dimensions")?;
                        // On the host they are checked. On a GPU a negative one is a large unsigned number, which
                        // acts as T.
                        (ForeignTensor { sizes: of_lanes, ..lengths }, TensorDataType::UInt64, time as i64)
                    }
                    Self::Subsequences { axis } => {
                        let Some(length_type) = element(length_type).and_then(|known| known.data_type) else {
                            let found = format!("the element type {length_type}");
                            return Err(LoweringError::ForeignLengthType { found }.message(&SUBSEQUENCES).into());
                        };
                        (lengths, length_type, axis)
                    }
                };
                let y = ort.output(context, shape)?;
                // The indices of strings are reversed. Then the texts are copied in that order.
                let count = if strings { element_count(shape)? as usize } else { 0 };
                let (mut indices, mut order) = (zeros::<u32>(count)?, zeros::<u32>(count)?);
                indices.iter_mut().zip(0..).for_each(|(place, index)| *place = index);
                let addresses: [Address; 2] = match strings {
                    true if !node.is_on_host() => return Err("strings are reversed on the CPU only".into()),
                    true => [indices.as_ptr().into(), order.as_mut_ptr().into()],
                    false => [ort.data(x)?.into(), ort.data(y)?.into()],
                };
                let [input, output] = addresses.map(|address| ForeignTensor::packed(address, shape));
                let arrays = ReversalArrays { input, lengths, output, axis, element_size, length_type };
                // SAFETY: these are ONNX Runtime's tensors, in memory of the node's device, or vectors of as many
                // numbers on the host. The stream is the run's. Kernels stay loaded (`cuda_device`).
                let done = unsafe { node.device.reverse_arrays(&arrays, node.stream(context)?) };
                done.map_err(|error| error.message(&SUBSEQUENCES))?;
                if strings {
                    ort.copy_strings(x, y, &order)?;
                }
                let in_place = !shape.contains(&0) && addresses[0] == addresses[1];
                IN_PLACE_RUNS.fetch_add(in_place.into(), Ordering::Relaxed);
                Ok(())
            })
        })
    }
}

/// Checks the lengths of ONNX's convention: their shape and, on the host, their values.
fn check_sequences(
    node: &NodeDevice,
    shape: &[i64],
    lengths: ForeignTensor<'_>,
    batch: usize,
    time: usize,
) -> Result<()> {
    if shape.len() < 2 {
        return Err(format!(
            "input has {} dimensions, but must have at least 2",
            shape.len()
        )
        .into());
    }
    let (found, required) = (lengths.sizes, shape[batch]);
    if found != [required] {
        return Err(format!(
            "sequence_lens has shape {found:?}, but must have [{required}], the batch size"
        )
        .into());
    }
    if node.is_on_host() {
        // SAFETY: ONNX Runtime's tensor is packed and on the host, and no one writes it now.
        let checked = unsafe { lengths.check_lengths(TensorDataType::Int64, Some(shape[time])) };
        checked.map_err(|error| error.message(&SEQUENCE))?;
    }
    Ok(())
}
