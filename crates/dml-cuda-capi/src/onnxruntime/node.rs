//! What all nodes share: a device, and a dispatch on the run's stream.

use std::sync::atomic::Ordering;

use dml_cuda::lowering::Lowered;
use dml_cuda::{Address, Device, RawStream};
use ort_sys::OrtKernelContext;

use super::ort::{Ort, Result};
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
    /// The addresses are those of tensors as `lowered` describes them. ONNX Runtime keeps them until the work on its
    /// stream is done, and nobody else writes them.
    pub unsafe fn run(
        &self,
        lowered: &Lowered,
        inputs: &[Address],
        output: Address,
        context: *mut OrtKernelContext,
    ) -> Result<()> {
        let stream = if self.is_on_host() { RawStream::NULL } else { self.ort.stream(context)? };
        // SAFETY: the tensors are as `lowered` says, and the stream is the run's. Kernels stay loaded (`cuda_device`).
        unsafe { self.device.run_lowered(lowered, inputs, output, stream) }?;
        IN_PLACE_RUNS.fetch_add(u64::from(inputs.first() == Some(&output)), Ordering::Relaxed);
        Ok(())
    }
}
