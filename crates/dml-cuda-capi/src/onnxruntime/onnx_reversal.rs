//! Reversals: ONNX's ReverseSequence, and `dml_cuda.ReverseSubsequences`.

use dml_cuda::lowering::{ForeignTensor, Lowered, LoweredReversal, Names, ReversalArrays};
use dml_cuda::Address;
use ort_sys::{ONNXTensorElementDataType as Type, OrtKernelContext};

use super::element::element;
use super::node::NodeDevice;
use super::ort::Result;
use crate::frameworks::{element_count, zeros, Lengths};

const NAMES: Names<'_> = Names { input: "input", lengths: "sequence_lengths", output: "output", axis: "axis" };

/// The two conventions for lengths: their type, their shape, and what a length outside [0, T] means.
pub enum Reverse {
    /// ONNX's: lengths are int64 [B]. A length above T is an error on the host. On a GPU nothing may read it, and it
    /// acts as T.
    Sequence { batch: usize, time: usize },
    /// DirectML's: lengths have any type of DirectML, or int64, and broadcast to the lanes. A length above T acts as T.
    Subsequences { axis: i64 },
}

impl Reverse {
    pub fn run(&self, node: &NodeDevice, context: *mut OrtKernelContext) -> Result<()> {
        let ort = node.ort;
        let (input, lengths) = (ort.input(context, 0)?, ort.input(context, 1)?);
        let lengths_address = Address::from(ort.data(lengths)?);
        ort.shape(input, |element_type, shape| {
            let strings = element_type == Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING as i32;
            let width = if strings { Some(4) } else { element(element_type).map(|(_, width, _)| width) };
            let width = width.ok_or_else(|| {
                format!("the element type of input is {element_type}, must be of 1, 2, 4 or 8 bytes, or string")
            })?;
            let reversal = ort.shape(lengths, |length_type, sizes| {
                let of = element(length_type).and_then(|(.., data_type)| data_type);
                let (name, tensor) = (self.lengths_name(), ForeignTensor::packed(lengths_address, sizes));
                let lengths = Lengths::new(name, tensor, of, format_args!("the element type {length_type}"))?;
                let reversal = self.lower(shape, &lengths, width)?;
                if node.is_on_host() {
                    let most = matches!(self, Self::Sequence { .. }).then(|| reversal.axis_size());
                    // SAFETY: ONNX Runtime's tensor is packed and on the host, and nobody writes it now.
                    unsafe { lengths.check(most) }?;
                }
                Ok(reversal)
            })?;
            let output = ort.output(context, shape)?;
            if shape.contains(&0) {
                return Ok(());
            }
            // The indices of strings are reversed. Then the texts are copied in that order.
            let count = if strings { element_count(shape)? as usize } else { 0 };
            let (mut indices, mut order) = (zeros::<u32>(count)?, zeros::<u32>(count)?);
            indices.iter_mut().zip(0..).for_each(|(place, index)| *place = index);
            let (from, to) = match strings {
                true if !node.is_on_host() => return Err("strings are reversed on the CPU only".into()),
                true => (indices.as_ptr().into(), order.as_mut_ptr().into()),
                false => (ort.data(input)?.into(), ort.data(output)?.into()),
            };
            // SAFETY: these are ONNX Runtime's tensors, with the shapes that were lowered, in memory of the node's
            // device, or vectors of as many numbers on the host.
            unsafe { node.run(&Lowered::Reversal(reversal), &[from, lengths_address], to, context) }?;
            if strings {
                ort.copy_strings(input, output, &order)?;
            }
            Ok(())
        })
    }

    /// What ONNX calls the lengths, and what this library does.
    fn lengths_name(&self) -> &'static str {
        match self {
            Self::Sequence { .. } => "sequence_lens",
            Self::Subsequences { .. } => NAMES.lengths,
        }
    }

    fn lower(&self, shape: &[i64], lengths: &Lengths<'_>, width: usize) -> Result<LoweredReversal> {
        // The sizes of the lengths in the input's rank: all are 1 except the batch's.
        let mut broadcast = [1; 32];
        let (of_lanes, axis) = match *self {
            Self::Subsequences { axis } => (lengths.tensor.sizes, axis),
            Self::Sequence { batch, time } => {
                if shape.len() < 2 {
                    return Err(format!("input has {} dimensions, must have at least 2", shape.len()).into());
                }
                let (lanes, found) = (shape[batch], lengths.tensor.sizes);
                if found != [lanes] {
                    let required = format!("must be [{lanes}], the batch size");
                    return Err(format!("the shape of sequence_lens is {found:?}, {required}").into());
                }
                broadcast[batch] = lanes;
                (broadcast.get(..shape.len()).ok_or("input has more than 32 dimensions")?, time as i64)
            }
        };
        // ONNX Runtime's tensors are aligned, but for some on the host.
        let tensor = |sizes| ForeignTensor::packed(Address(0), sizes);
        let (input, lengths, length_type) = (tensor(shape), tensor(of_lanes), lengths.passed_as);
        let arrays = ReversalArrays { input, lengths, output: input, axis, element_size: width, length_type };
        LoweredReversal::new(&arrays).map_err(|error| error.message(&NAMES).into())
    }
}
