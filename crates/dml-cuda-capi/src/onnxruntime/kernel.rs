//! What nodes of a session have in common: a device, and a dispatch on the run's stream.

use std::sync::atomic::{AtomicU64, Ordering};

use dml::lowering::Lowered;
use dml::{Address, BindingError, BufferTensorDesc, CompileOptions, Device, DispatchError};
use ort_sys::OrtKernelContext;

use super::api::{Ort, Result};

/// Kernels that sessions made, runs of them, and runs whose output was the input, in this process.
pub(crate) static KERNELS: AtomicU64 = AtomicU64::new(0);
pub(crate) static RUNS: AtomicU64 = AtomicU64::new(0);
pub(crate) static IN_PLACE_RUNS: AtomicU64 = AtomicU64::new(0);

/// A node's. ONNX Runtime runs it from several threads at once.
pub struct Kernel {
    pub ort: Ort,
    pub device: Device,
}

impl Kernel {
    pub fn new(ort: Ort, device: Device) -> Self {
        KERNELS.fetch_add(1, Ordering::Relaxed);
        Self { ort, device }
    }

    /// Whether memory of the node is the host's.
    pub fn is_on_host(&self) -> bool {
        self.device.ordinal().is_none()
    }

    /// Compiles, or finds, an operator and dispatches it on the run's stream.
    ///
    /// # Safety
    ///
    /// The addresses are those of tensors as `lowered` describes them, which ONNX Runtime keeps until the work on its stream is
    /// done, and lets nobody else write.
    pub unsafe fn dispatch(
        &self,
        lowered: &Lowered,
        inputs: &[Address],
        output: Address,
        context: *mut OrtKernelContext,
    ) -> Result<()> {
        // The lengths' alignment matters to no kernel.
        let input = inputs.first().copied();
        let aligned = (input.unwrap_or(0) | output).is_multiple_of(16);
        let in_place = input == Some(output);
        let options = CompileOptions { pointer_alignment: if aligned { 16 } else { 0 }, in_place: Some(in_place) };
        let operator = self.device.compile_lowered(lowered, options)?;
        let stream = if self.is_on_host() { std::ptr::null_mut() } else { self.ort.stream(context)? };
        // SAFETY: the caller's promise; the stream is the run's; kernels stay loaded (`api::cuda_device`).
        match unsafe { operator.dispatch_raw(inputs, output, stream) } {
            Ok(()) => {
                IN_PLACE_RUNS.fetch_add(u64::from(in_place), Ordering::Relaxed);
                Ok(())
            }
            Err(DispatchError::Binding(BindingError::Alignment { .. })) if self.is_on_host() => {
                // SAFETY: the caller's promise.
                unsafe { self.dispatch_on_copies(lowered, inputs, output, context) }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The same on copies, for tensors on the host that are not aligned to their elements: memory-mapped weights, parts of buffers.
    ///
    /// # Safety
    ///
    /// As of `dispatch`.
    unsafe fn dispatch_on_copies(
        &self,
        lowered: &Lowered,
        inputs: &[Address],
        output: Address,
        context: *mut OrtKernelContext,
    ) -> Result<()> {
        let desc = lowered.desc();
        let span = |tensor: &BufferTensorDesc| tensor.span_in_bytes() as usize;
        let of_inputs: Vec<usize> = desc.input_tensors().into_iter().map(span).collect();
        let of_output = span(desc.output_tensor());
        let aligned = |bytes: usize| vec![0u64; bytes.div_ceil(8)];
        let mut copies: Vec<Vec<u64>> = of_inputs.iter().map(|&bytes| aligned(bytes)).collect();
        for ((copy, &from), &bytes) in copies.iter_mut().zip(inputs).zip(&of_inputs) {
            // SAFETY: the caller's promise, and the copy's size.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, copy.as_mut_ptr().cast(), bytes) };
        }
        let mut to = aligned(of_output);
        let addresses: Vec<Address> = copies.iter().map(|copy| copy.as_ptr() as Address).collect();
        // SAFETY: tensors of those sizes, this call's own.
        unsafe { self.dispatch(lowered, &addresses, to.as_mut_ptr() as Address, context) }?;
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(to.as_ptr().cast::<u8>(), output as *mut u8, of_output) };
        Ok(())
    }
}
