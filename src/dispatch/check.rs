//! The check of a dispatch's memory, before anything is queued: count, device, size, alignment and overlap.
//!
//! Buffers that are bound, slices and raw pointers all become [`Memory`]. A binding table passes [`check`] when it is
//! bound, and other memory at each dispatch. The answer is whether the operator runs in place:
//!
//! ```text
//! first input  | . . . . |                     apart: out of place
//! output                   | . . . . |
//!
//! first input  | . . . . |                     both begin at one byte: in place, if the strides are the same
//! output       | . . . . |
//!
//! any input    | . . . . |                     anything else is an error, unless raw pointers interleave without
//! output           | . . . . |                 a shared byte
//! ```

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
    Bound {
        buffer: &'a Buffer,
        offset: u64,
        bytes: u64,
    },
    /// A slice that this crate does not own.
    Slice { address: u64, bytes: u64 },
    /// A raw pointer: its caller promises the tensor's bytes.
    Raw { address: u64 },
}

impl<'a> Memory<'a> {
    pub fn of_slice(slice: &[u8]) -> Self {
        Self::Slice {
            address: slice.as_ptr() as u64,
            bytes: slice.len() as u64,
        }
    }

    /// The bytes that a tensor has in this memory.
    fn range(self, desc: &BufferTensorDesc) -> Range<'a> {
        let (buffer, begin, bytes) = match self {
            Self::Bound { buffer, offset, .. } => {
                (Some(buffer), offset, desc.total_tensor_size_in_bytes)
            }
            Self::Slice { address, .. } | Self::Raw { address } => {
                (None, address, desc.span_in_bytes())
            }
        };
        Range {
            buffer,
            begin,
            end: begin.saturating_add(bytes),
        }
    }
}

/// The bytes of a tensor. They begin and end at offsets in a buffer, or without a buffer at addresses.
struct Range<'a> {
    buffer: Option<&'a Buffer>,
    begin: u64,
    end: u64,
}

impl Range<'_> {
    fn is_apart_from(&self, other: &Self) -> bool {
        if let (Some(own), Some(others)) = (self.buffer, other.buffer) {
            if !own.same_as(others) {
                return true;
            }
        }
        // Offsets in one buffer, or addresses.
        debug_assert_eq!(self.buffer.is_some(), other.buffer.is_some());
        self.begin >= other.end || other.begin >= self.end
    }
}

/// How an input's memory lies beside the output's.
enum Overlap {
    None,
    /// Both begin at one byte.
    Same,
    Part,
}

impl Overlap {
    /// How `input` lies beside `output`, each a tensor and its memory. The elements of raw pointers may interleave, like
    /// two columns of one array.
    fn of(input: (&BufferTensorDesc, Memory<'_>), output: (&BufferTensorDesc, Memory<'_>)) -> Self {
        let read = input.1.range(input.0);
        let written = output.1.range(output.0);
        if read.is_apart_from(&written) {
            return Self::None;
        }
        if read.begin == written.begin {
            return Self::Same;
        }
        let is_raw = matches!(output.1, Memory::Raw { .. });
        if is_raw && !input.0.shares_a_byte(read.begin, output.0, written.begin) {
            return Self::None;
        }
        Self::Part
    }
}

/// The alignment that the memory of a dispatch must have.
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

/// Checks that memory fits the tensors, and that it overlaps only where the operator allows it. Returns whether the
/// output is the first input.
pub(crate) fn check<'a>(
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
    for (tensor, memory) in signature.tensors().zip(inputs.clone().chain([output])) {
        check_tensor(operator.device(), tensor, memory, alignment.bytes(tensor.1))?;
    }

    let mut in_place = false;
    for (n, (&(tensor, desc), input)) in signature.inputs().iter().zip(inputs).enumerate() {
        let is_first = n == 0;
        match Overlap::of((desc, input), (signature.output, output)) {
            Overlap::None => {}
            Overlap::Same if is_first && operator.inner.plan.runs_in_place() => in_place = true,
            Overlap::Same if is_first => return Err(BindingError::InPlace),
            Overlap::Same | Overlap::Part => {
                let required = if is_first {
                    "be the same range, to run in place, or lie apart"
                } else {
                    "lie apart"
                };
                let (read, written) = (input.range(desc), output.range(signature.output));
                let is_unbound = read.buffer.is_none();
                return Err(BindingError::Overlap {
                    tensor,
                    // The first byte that both can have.
                    found: read.begin.max(written.begin),
                    pointers: is_unbound.then_some((written.begin, read.begin)),
                    required,
                });
            }
        }
    }
    Ok(in_place)
}

/// Checks the memory of one tensor.
fn check_tensor(
    device: &Device,
    (tensor, desc): Tensor<'_>,
    memory: Memory<'_>,
    alignment: u32,
) -> Result<(), BindingError> {
    match memory {
        Memory::Bound {
            buffer,
            offset,
            bytes,
        } => {
            if !buffer.device().same_as(device) {
                return Err(BindingError::Device {
                    tensor,
                    found: buffer.device().to_string(),
                    required: device.to_string(),
                });
            }
            let size_in_bytes = buffer.size_in_bytes();
            let end = offset.checked_add(bytes);
            if end.is_none_or(|end| end > size_in_bytes) {
                return Err(BindingError::Range {
                    tensor,
                    offset,
                    length: bytes,
                    size_in_bytes,
                });
            }
            let alignment = alignment.max(desc.guaranteed_base_offset_alignment);
            check_alignment(tensor, "offset", offset, alignment)?;
            let required = desc.total_tensor_size_in_bytes;
            if bytes < required {
                return Err(BindingError::Size {
                    tensor,
                    found: bytes,
                    required,
                });
            }
            Ok(())
        }
        Memory::Slice { bytes, .. } if bytes < desc.span_in_bytes() => Err(BindingError::Slice {
            tensor,
            found: bytes,
            required: desc.span_in_bytes(),
        }),
        Memory::Slice { address: 0, .. } | Memory::Raw { address: 0 } => {
            Err(BindingError::Null { tensor })
        }
        Memory::Slice { address, .. } | Memory::Raw { address } => {
            check_alignment(tensor, "pointer", address, alignment)
        }
    }
}

/// Checks the alignment of an offset or a pointer, which `what` names.
fn check_alignment(
    tensor: TensorRole,
    what: &'static str,
    found: u64,
    alignment: u32,
) -> Result<(), BindingError> {
    let required = u64::from(alignment);
    if !found.is_multiple_of(required) {
        return Err(BindingError::Alignment {
            tensor,
            what,
            found,
            required,
        });
    }
    Ok(())
}
