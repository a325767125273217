//! The one check of the memory that a caller hands over for an operator's tensors, in whatever way.

use crate::desc::{BufferTensorDesc, TensorRole};
use crate::device::buffer::Buffer;
use crate::device::operator::{bytes_of_element, CompiledOperator};
use crate::device::Device;
use crate::error::BindingError;

type Tensor<'a> = (TensorRole, &'a BufferTensorDesc);

/// The memory of one tensor.
#[derive(Clone, Copy)]
pub(crate) enum Memory<'a> {
    /// A range of a buffer.
    Bound { buffer: &'a Buffer, offset: u64, bytes: u64 },
    /// A slice that this crate does not own.
    Slice { address: u64, bytes: u64 },
    /// A raw pointer: its caller promises the tensor's bytes.
    Raw { address: u64 },
}

impl<'a> Memory<'a> {
    /// Where a tensor is: the buffer, and the begin and the end as offsets in it or as addresses.
    fn range(self, desc: &BufferTensorDesc) -> (Option<&'a Buffer>, u64, u64) {
        let (buffer, begin, bytes) = match self {
            Self::Bound { buffer, offset, .. } => (Some(buffer), offset, desc.total_tensor_size_in_bytes),
            Self::Slice { address, .. } | Self::Raw { address } => (None, address, desc.span_in_bytes()),
        };
        (buffer, begin, begin.saturating_add(bytes))
    }
}

/// The least alignment of the memory of a dispatch.
#[derive(Clone, Copy)]
pub(crate) enum Alignment {
    /// 16 bytes, as DirectML requires of bound ranges.
    Binding,
    /// The tensor's element.
    Element,
    /// None: the CPU reads and writes bytes.
    Byte,
}

impl Alignment {
    fn bytes(self, desc: &BufferTensorDesc) -> u32 {
        match self {
            Self::Binding => 16,
            Self::Element => bytes_of_element(desc),
            Self::Byte => 1,
        }
    }
}

/// Checks that memory fits the tensors, that it overlaps only where the operator allows it, and that the operator was
/// compiled for it. Returns whether the output is the first input.
pub(crate) fn check_operands<'a>(
    operator: &CompiledOperator,
    inputs: impl ExactSizeIterator<Item = Memory<'a>> + Clone,
    output: Memory<'a>,
    alignment: Alignment,
) -> Result<bool, BindingError> {
    let signature = operator.signature();
    let (found, required) = (inputs.len(), signature.inputs().len());
    if found != required {
        return Err(BindingError::Count { found, required });
    }
    for (n, (tensor, memory)) in signature.tensors().zip(inputs.clone().chain([output])).enumerate() {
        // Only the first input and the output have a promised alignment.
        let is_promised = n == 0 || tensor.0 == TensorRole::Output;
        let promised = if is_promised { operator.inner.options.pointer_alignment } else { 1 };
        check(operator.device(), tensor, memory, promised.max(alignment.bytes(tensor.1)))?;
    }

    let mut in_place = false;
    let (written, to, end_of_output) = output.range(signature.output);
    for (n, (&(tensor, desc), input)) in signature.inputs().iter().zip(inputs).enumerate() {
        let (read, from, end) = input.range(desc);
        let other_buffer = read.zip(written).is_some_and(|(read, written)| !read.same_as(written));
        if other_buffer || from >= end_of_output || to >= end {
            continue;
        }
        if n > 0 || from != to {
            let required = if n == 0 { "be the same range, to run in place, or lie apart" } else { "lie apart" };
            let pointers = read.is_none().then_some((to, from));
            return Err(BindingError::Overlap { tensor, found: from.max(to), pointers, required });
        }
        if !operator.inner.plan.runs_in_place() {
            return Err(BindingError::InPlace);
        }
        in_place = true;
    }
    match operator.inner.options.in_place {
        Some(promised) if promised != in_place => Err(BindingError::Promise { promised }),
        _ => Ok(in_place),
    }
}

/// Checks the memory of one tensor.
fn check(device: &Device, (tensor, desc): Tensor<'_>, memory: Memory<'_>, alignment: u32) -> Result<(), BindingError> {
    let aligned = |what, found: u64, alignment: u32| match u64::from(alignment) {
        required if found.is_multiple_of(required) => Ok(()),
        required => Err(BindingError::Alignment { tensor, what, found, required }),
    };
    match memory {
        Memory::Bound { buffer, offset, bytes } => {
            if !buffer.device().same_as(device) {
                let (found, required) = (buffer.device().to_string(), device.to_string());
                return Err(BindingError::Device { tensor, found, required });
            }
            let (size_in_bytes, required) = (buffer.size_in_bytes(), desc.total_tensor_size_in_bytes);
            if offset.checked_add(bytes).is_none_or(|end| end > size_in_bytes) {
                return Err(BindingError::Range { tensor, offset, length: bytes, size_in_bytes });
            }
            aligned("offset", offset, alignment.max(desc.guaranteed_base_offset_alignment))?;
            if bytes < required {
                return Err(BindingError::Size { tensor, found: bytes, required });
            }
            Ok(())
        }
        Memory::Slice { bytes, .. } if bytes < desc.span_in_bytes() => {
            Err(BindingError::Slice { tensor, found: bytes, required: desc.span_in_bytes() })
        }
        Memory::Slice { address: 0, .. } | Memory::Raw { address: 0 } => Err(BindingError::Null { tensor }),
        Memory::Slice { address, .. } | Memory::Raw { address } => aligned("pointer", address, alignment),
    }
}
