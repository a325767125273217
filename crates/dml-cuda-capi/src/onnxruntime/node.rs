//! What all nodes share: a device, and a dispatch on the run's stream.

use std::sync::atomic::Ordering;

use dml::lowering::Lowered;
use dml::{Address, BindingError, BufferTensorDesc, Device, DispatchError, Error, RawStream};
use ort_sys::OrtKernelContext;

use super::ort::{Ort, Result};
use crate::frameworks;
use crate::library::IN_PLACE_RUNS;

/// The part of a node that does not depend on its operator. ONNX Runtime runs it from several threads at once.
pub struct NodeDevice {
    pub ort: Ort,
    pub device: Device,
}

impl NodeDevice {
    /// Whether the node's tensors are in host memory.
    pub fn is_on_host(&self) -> bool {
        self.device.ordinal().is_none()
    }

    /// Runs an operator on the run's stream.
    ///
    /// # Safety
    ///
    /// The addresses are those of tensors as `lowered` describes them. ONNX Runtime keeps them until the work on its stream is done, and
    /// nobody else writes them.
    pub unsafe fn dispatch(
        &self,
        lowered: &Lowered,
        inputs: &[Address],
        output: Address,
        context: *mut OrtKernelContext,
    ) -> Result<()> {
        let stream = if self.is_on_host() { RawStream::NULL } else { self.ort.stream(context)? };
        // SAFETY: the caller's promise; the stream is the run's; `op` opens GPUs with `device::cuda_device`.
        match unsafe { frameworks::dispatch(&self.device, lowered, inputs, output, stream) } {
            Ok(()) => {
                IN_PLACE_RUNS.fetch_add(u64::from(inputs.first() == Some(&output)), Ordering::Relaxed);
                Ok(())
            }
            Err(Error::Dispatch(DispatchError::Binding(BindingError::Alignment { .. }))) if self.is_on_host() => {
                // SAFETY: the caller's promise.
                unsafe { self.dispatch_copies(lowered, inputs, output, context) }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The same with copies of the tensors, which are on the host and not aligned to their elements: memory-mapped weights, parts of
    /// buffers.
    ///
    /// # Safety
    ///
    /// As for [`Self::dispatch`].
    unsafe fn dispatch_copies(
        &self,
        lowered: &Lowered,
        inputs: &[Address],
        output: Address,
        context: *mut OrtKernelContext,
    ) -> Result<()> {
        let (desc, span) = (lowered.desc(), |tensor: &BufferTensorDesc| tensor.span_in_bytes() as usize);
        let aligned = |bytes: usize| vec![0u64; bytes.div_ceil(8)];
        let mut copies = Vec::new();
        for (tensor, &from) in desc.input_tensors().into_iter().zip(inputs) {
            let mut copy = aligned(span(tensor));
            // SAFETY: the caller's promise, and the copy's size.
            unsafe { std::ptr::copy_nonoverlapping(from.0 as *const u8, copy.as_mut_ptr().cast(), span(tensor)) };
            copies.push(copy);
        }
        let bytes = span(desc.output_tensor());
        let mut to = aligned(bytes);
        let addresses: Vec<Address> = copies.iter().map(|copy| copy.as_ptr().into()).collect();
        // SAFETY: the copies are tensors of the same sizes, which only this call uses.
        unsafe { self.dispatch(lowered, &addresses, to.as_mut_ptr().into(), context) }?;
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(to.as_ptr().cast::<u8>(), output.0 as *mut u8, bytes) };
        Ok(())
    }
}
