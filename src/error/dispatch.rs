//! Errors of operators that were not queued.

use super::{BindingError, CudaError};

/// A bound operator could not be queued. Nothing has been written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The stream belongs to another device.
    #[error("the stream belongs to {found}, but the operator was compiled for {required} (dispatch.device)")]
    Device {
        /// The stream's device.
        found: String,
        /// The operator's device.
        required: String,
    },
    /// An operator of the graph belongs to another device.
    #[error(
        "the graph belongs to {found}, but the operator was compiled for {required} (graph.device)"
    )]
    Graph {
        /// The graph's device.
        found: String,
        /// The operator's device.
        required: String,
    },
    /// The CPU device has no kernels to measure.
    #[error("kernels can be measured only on a GPU, but the device is {found} (measure.device)")]
    Measure {
        /// The device.
        found: String,
    },
    /// The CPU device has no streams of the driver.
    #[error("the stream of the dispatch is {found:#x}, but must be null, because the operator was compiled for the CPU, which has no streams (dispatch.stream)")]
    Stream {
        /// The handle given.
        found: u64,
    },
    /// A raw pointer does not fit the operator.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}
