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
    /// `inputs` are the addresses of the input tensors' first elements in the order of the descriptor's fields
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
        let input = |n: usize| inputs.get(n).copied().unwrap_or(0);
        #[cfg(feature = "cuda")]
        if let Some(launcher) = self.launcher() {
            let addresses = Addresses { input: input(0), lengths: input(1), output };
            // SAFETY: promise 3 is the handle's: a live stream of the context the functions were loaded into.
            // Promises 1, 2 and 4 are what `driver::launch` asks of the pointers in its parameters.
            let handle = unsafe { StreamHandle::borrow(stream) };
            return Ok(launcher.launch(&addresses, in_place, handle)?);
        }
        if !stream.is_null() {
            return Err(DispatchError::Stream { found: stream as u64 });
        }
        let signature = self.signature();
        let bytes = |n: usize| signature.inputs().get(n).map_or(0, |(_, desc)| desc.span_in_bytes() as usize);
        // SAFETY: promise 1: initialized bytes of this process; `check_addresses` found them not null, aligned, and apart from
        // the output. Promise 2: nobody writes them meanwhile.
        let slice = |n: usize| unsafe { slice(input(n), bytes(n)) };
        let operands = Operands {
            input: (!in_place && bytes(0) > 0).then(|| slice(0)),
            lengths: slice(1),
            // SAFETY: as for the inputs; in place, no slice of the input is made, so that this is the only one.
            output: unsafe {
                std::slice::from_raw_parts_mut(output as *mut u8, signature.output.span_in_bytes() as usize)
            },
        };
        self.plan().run_on_cpu(operands);
        Ok(())
    }

    /// Whether the output is the input, where the addresses are right.
    pub(crate) fn check_addresses(&self, inputs: &[Address], output: Address) -> Result<bool, BindingError> {
        let signature = self.signature();
        let roles = signature.inputs();
        if inputs.len() != roles.len() {
            return Err(BindingError::Count { found: inputs.len(), required: roles.len() });
        }
        let tensors = roles.iter().copied().zip(inputs.iter().copied());
        for ((tensor, desc), address) in tensors.clone().chain([((TensorRole::Output, signature.output), output)]) {
            let required = u64::from((desc.data_type.size_in_bits() / 8).max(self.options().alignment_of(tensor)));
            if address == 0 {
                return Err(BindingError::Null { tensor });
            }
            if address % required != 0 {
                return Err(BindingError::Alignment { tensor, what: "pointer", found: address, required });
            }
        }
        let mut aliasing = Aliasing::new(self, output, BufferTensorDesc::span_in_bytes);
        for ((tensor, desc), address) in tensors {
            aliasing.check(tensor, desc, address)?;
        }
        aliasing.check_promise()?;
        Ok(aliasing.in_place)
    }
}

/// Bytes of this process; none of no bytes, whatever the address.
///
/// # Safety
///
/// As of [`std::slice::from_raw_parts`], but where `bytes` is 0.
unsafe fn slice<'a>(address: Address, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }
}
