//! Dispatch on raw pointers and a raw stream, for memory and streams of other frameworks.
#![allow(unsafe_code)]

use crate::binding::Aliasing;
use crate::cpu::Operands;
#[cfg(feature = "cuda")]
use crate::cuda::{Addresses, StreamHandle};
use crate::desc::{BufferTensorDesc, TensorRole};
use crate::error::{BindingError, DispatchError};
use crate::operator::CompiledOperator;
use crate::raw::{Address, RawStream};
use crate::trace::span;

impl CompiledOperator {
    /// Runs the operator on raw pointers: on a GPU queued on a raw stream, on the CPU device on host memory, before it returns.
    ///
    /// On a GPU there is no copy, no allocation, no event, no wait, and one `cuLaunchKernel`, also while the stream is being
    /// captured into a CUDA graph. The context that was current on the calling thread is current again when this returns.
    ///
    /// `inputs` are the addresses of the first elements of the input tensors that the descriptor has, in the order of its fields
    /// (InputTensor, SequenceLengthsTensor; none for a fill), `output` that of the output tensor's. Unlike bound
    /// buffers they need be aligned to their elements only, or to what the operator was compiled for. `output` equal to
    /// InputTensor's address runs in place. `stream` is a `CUstream` or a `cudaStream_t`; null and `CU_STREAM_LEGACY` (1) are
    /// the legacy default stream, `CU_STREAM_PER_THREAD` (2) the calling thread's. On the CPU device it is null.
    ///
    /// # Errors
    ///
    /// [`DispatchError`], with nothing queued and nothing written: the wrong number of inputs, a null or misaligned pointer, an
    /// output that overlaps the lengths, overlaps the input in part, or equals it with other strides; a dispatch that the
    /// operator was not compiled for; a stream for a CPU operator; an error of the driver.
    ///
    /// # Safety
    ///
    /// The caller promises that, from this call until the queued work is done (for a captured call: until the
    /// last replay of every graph it became part of is done),
    ///
    /// 1. each pointer is the first of the bytes from its tensor's first element to its last, in memory that the operator's
    ///    device can read, and for the output write; on the CPU device the inputs' bytes are initialized, the output's too;
    /// 2. no other work reads or writes the output's bytes, or writes the inputs' bytes, unless a stream order
    ///    or an event puts it before or after;
    /// 3. `stream` is a live stream of the operator's device and its primary context, or 0, 1 or 2;
    /// 4. this operator, or a clone of it, is alive.
    pub unsafe fn dispatch_raw(
        &self,
        inputs: &[Address],
        output: Address,
        stream: RawStream,
    ) -> Result<(), DispatchError> {
        let in_place = self.check_addresses(inputs, output)?;
        span!("dispatch", operator = self.operator_type().name(), device = self.device(), in_place = in_place);
        let signature = self.signature();
        #[cfg(feature = "cuda")]
        if let Some(launcher) = self.launcher() {
            let inputs = signature.by_position(inputs.iter().copied());
            let addresses = Addresses { inputs: &inputs, output };
            // SAFETY: promise 3 is the handle's: a live stream of the context the functions were loaded into.
            // Promises 1, 2 and 4 are what `driver::launch` asks of the pointers in its parameters.
            let handle = unsafe { StreamHandle::borrow(stream) };
            return Ok(launcher.launch(&addresses, in_place, handle)?);
        }
        if !stream.is_null() {
            return Err(DispatchError::Stream { found: stream as u64 });
        }
        let read = signature.inputs().iter().zip(inputs).enumerate().map(|(n, ((_, desc), &address))| {
            let bytes = desc.span_in_bytes() as usize;
            // SAFETY: promise 1: initialized bytes of this process; `check_addresses` found them not null, aligned, and apart
            // from the output. Promise 2: nobody writes them meanwhile.
            (n > 0 || !in_place).then(|| unsafe { std::slice::from_raw_parts(address as *const u8, bytes) })
        });
        let inputs = signature.by_position(read);
        let bytes = signature.output.span_in_bytes() as usize;
        // SAFETY: as for the inputs; in place, no slice of the first input is made, so that this is the only one.
        let output = unsafe { std::slice::from_raw_parts_mut(output as *mut u8, bytes) };
        self.plan().run_on_cpu(Operands { inputs: &inputs, output });
        Ok(())
    }

    /// Whether the output is the input, where the addresses are right.
    pub(crate) fn check_addresses(&self, inputs: &[Address], output: Address) -> Result<bool, BindingError> {
        let signature = self.signature();
        let roles = signature.inputs();
        if inputs.len() != roles.len() {
            return Err(BindingError::Count { found: inputs.len(), required: roles.len() });
        }
        let output_tensor = (TensorRole::Output, signature.output);
        for (n, &(tensor, desc)) in roles.iter().chain([&output_tensor]).enumerate() {
            let address = inputs.get(n).copied().unwrap_or(output);
            let promised = self.options().alignment_of(n, tensor);
            let required = u64::from((desc.data_type.size_in_bits() / 8).max(promised));
            if address == 0 {
                return Err(BindingError::Null { tensor });
            }
            if address % required != 0 {
                return Err(BindingError::Alignment { tensor, what: "pointer", found: address, required });
            }
        }
        let mut aliasing = Aliasing::new(self, output, BufferTensorDesc::span_in_bytes);
        for (n, (&(tensor, desc), &address)) in roles.iter().zip(inputs).enumerate() {
            aliasing.check(n, tensor, desc, address)?;
        }
        aliasing.check_promise()?;
        Ok(aliasing.in_place)
    }
}
