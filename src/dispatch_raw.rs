//! Dispatch on raw device pointers and a raw stream, for buffers and streams of other frameworks.
#![allow(unsafe_code)]

use crate::binding::Aliasing;
use crate::cuda::{Addresses, DevicePointer, RawStream, StreamHandle};
use crate::desc::TensorRole;
use crate::error::{BindingError, DispatchError};
use crate::operator::CompiledOperator;

impl CompiledOperator {
    /// Queues the operator on a raw stream, on raw device pointers: no copy, no allocation, no event, no wait,
    /// one `cuLaunchKernel`, also while the stream is being captured into a CUDA graph.
    ///
    /// `inputs` are the addresses of the input tensors' first elements in the order of the descriptor's fields
    /// (InputTensor, SequenceLengthsTensor; none for a fill), `output` that of the output tensor's. Unlike bound
    /// buffers they need be aligned to their elements only. `output` equal to InputTensor's address runs in
    /// place. A null `stream` is the default stream.
    ///
    /// # Errors
    ///
    /// [`DispatchError`], with nothing queued: the wrong number of inputs, a null or misaligned pointer, an
    /// output that overlaps the lengths, overlaps the input in part, or equals it with other strides; a CPU
    /// operator; an error of the driver.
    ///
    /// # Safety
    ///
    /// The caller promises that, from this call until the queued work is done (for a captured call: until the
    /// last replay of every graph it became part of is done),
    ///
    /// 1. each pointer is the first of TotalTensorSizeInBytes bytes of memory that the operator's device can
    ///    read, and for the output write;
    /// 2. no other work reads or writes the output's bytes, or writes the inputs' bytes, unless a stream order
    ///    or an event puts it before or after;
    /// 3. `stream` is a live stream of the operator's device and its primary context, or null;
    /// 4. this operator, or a clone of it, is alive.
    pub unsafe fn dispatch_raw(
        &self,
        inputs: &[DevicePointer],
        output: DevicePointer,
        stream: RawStream,
    ) -> Result<(), DispatchError> {
        let signature = self.signature();
        let (roles, output_desc) = (signature.inputs(), signature.output);
        if inputs.len() != roles.len() {
            return Err(BindingError::Count { found: inputs.len(), required: roles.len() }.into());
        }
        let Some(launcher) = self.launcher() else {
            return Err(DispatchError::Backend { found: self.device().to_string() });
        };
        let mut aliasing = Aliasing::new(self, output);
        let tensors = roles.iter().copied().zip(inputs.iter().copied());
        for ((tensor, desc), pointer) in tensors.clone().chain([((TensorRole::Output, output_desc), output)]) {
            let required = u64::from(desc.data_type.size_in_bits() / 8);
            if pointer == 0 {
                return Err(BindingError::Null { tensor }.into());
            }
            if pointer % required != 0 {
                return Err(BindingError::Alignment { tensor, what: "pointer", found: pointer, required }.into());
            }
        }
        for ((tensor, desc), pointer) in tensors {
            aliasing.check(tensor, desc, pointer)?;
        }
        let input = |n: usize| inputs.get(n).copied().unwrap_or(0);
        let addresses = Addresses { input: input(0), lengths: input(1), output };
        // SAFETY: promise 3 is the handle's: a live stream of the context the functions were loaded into.
        // Promises 1, 2 and 4 are what `driver::launch` asks of the pointers in its parameters.
        let handle = unsafe { StreamHandle::borrow(stream) };
        Ok(launcher.launch(&addresses, aliasing.in_place, handle)?)
    }
}
