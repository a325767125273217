//! The state that all nodes have: a device, and the run's stream.

use dml_cuda::{Device, RawStream};
use ort_sys::OrtKernelContext;

use super::ort::{Ort, Result};

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

    /// The run's stream. Until the work on it is done, ONNX Runtime keeps the run's tensors, and no one else writes
    /// them.
    pub fn stream(&self, context: *mut OrtKernelContext) -> Result<RawStream> {
        if self.is_on_host() {
            return Ok(RawStream::NULL);
        }
        self.ort.stream(context)
    }
}
