//! The one check of the memory that a caller hands over for an operator's tensors, in whatever way.

use crate::desc::{BufferTensorDesc, TensorRole};
use crate::device::buffer::Buffer;
use crate::device::operator::CompiledOperator;
use crate::error::BindingError;

type Tensor<'a> = (TensorRole, &'a BufferTensorDesc);

/// Memory for one tensor: a range of a buffer, a slice, or a raw pointer.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    /// `None` for memory that this crate does not own.
    pub buffer: Option<&'a Buffer>,
    /// The offset in the buffer, or the address.
    pub address: u64,
    /// As many as there can be for a raw pointer, whose caller promises them.
    pub bytes: u64,
}

impl CompiledOperator {
    /// Checks that operands fit the tensors, that they overlap only where the operator allows it, and that it was
    /// compiled for them. Returns whether the output is the first input.
    pub(crate) fn check_operands<'a>(
        &self,
        inputs: impl ExactSizeIterator<Item = Operand<'a>> + Clone,
        output: Operand<'a>,
        least_alignment: fn(&BufferTensorDesc) -> u32,
    ) -> Result<bool, BindingError> {
        let signature = self.signature();
        let (found, required) = (inputs.len(), signature.inputs().len());
        if found != required {
            return Err(BindingError::Count { found, required });
        }
        for (n, (tensor, operand)) in signature.tensors().zip(inputs.clone().chain([output])).enumerate() {
            // Only the first input and the output have a promised alignment.
            let is_promised = n == 0 || tensor.0 == TensorRole::Output;
            let promised = if is_promised { self.inner.options.pointer_alignment } else { 1 };
            self.check(tensor, operand, promised.max(least_alignment(tensor.1)))?;
        }

        let mut in_place = false;
        let end = |operand: Operand<'_>, desc: &BufferTensorDesc| {
            let bytes = if operand.buffer.is_some() { desc.total_tensor_size_in_bytes } else { desc.span_in_bytes() };
            operand.address.saturating_add(bytes)
        };
        for (n, (&(tensor, desc), input)) in signature.inputs().iter().zip(inputs).enumerate() {
            let other_buffer = input.buffer.zip(output.buffer).is_some_and(|(input, output)| !input.same_as(output));
            if other_buffer || input.address >= end(output, signature.output) || output.address >= end(input, desc) {
                continue;
            }
            if n > 0 || input.address != output.address {
                let required = if n == 0 { "be the same range, to run in place, or lie apart" } else { "lie apart" };
                let pointers = input.buffer.is_none().then_some((output.address, input.address));
                let found = input.address.max(output.address);
                return Err(BindingError::Overlap { tensor, found, pointers, required });
            }
            if !self.inner.plan.runs_in_place() {
                return Err(BindingError::InPlace);
            }
            in_place = true;
        }
        match self.inner.options.in_place {
            Some(promised) if promised != in_place => Err(BindingError::Promise { promised }),
            _ => Ok(in_place),
        }
    }

    /// Checks an operand apart from the others.
    fn check(&self, (tensor, desc): Tensor<'_>, operand: Operand<'_>, alignment: u32) -> Result<(), BindingError> {
        let Operand { buffer, address, bytes } = operand;
        let aligned = |what, alignment: u32| match u64::from(alignment) {
            required if address.is_multiple_of(required) => Ok(()),
            required => Err(BindingError::Alignment { tensor, what, found: address, required }),
        };
        let Some(buffer) = buffer else {
            let required = desc.span_in_bytes();
            if bytes < required {
                return Err(BindingError::Slice { tensor, found: bytes, required });
            }
            if address == 0 {
                return Err(BindingError::Null { tensor });
            }
            return aligned("pointer", alignment);
        };
        if !buffer.device().same_as(self.device()) {
            let (found, required) = (buffer.device().to_string(), self.device().to_string());
            return Err(BindingError::Device { tensor, found, required });
        }
        let (size_in_bytes, required) = (buffer.size_in_bytes(), desc.total_tensor_size_in_bytes);
        if address.checked_add(bytes).is_none_or(|end| end > size_in_bytes) {
            return Err(BindingError::Range { tensor, offset: address, length: bytes, size_in_bytes });
        }
        aligned("offset", alignment.max(desc.guaranteed_base_offset_alignment))?;
        if bytes < required {
            return Err(BindingError::Size { tensor, found: bytes, required });
        }
        Ok(())
    }
}
