//! Errors of devices, streams, buffers and compilations.

use crate::desc::FeatureLevel;
use crate::validate::ValidationErrors;

/// A device could not be opened, or one of its streams or events failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver library is not on this machine.
    #[error("cuda: loading the driver library (libcuda.so.1, nvcuda.dll) failed: it is not on this machine; install NVIDIA's driver, or use the CPU device")]
    NoDriver,
    /// The driver library is on this machine, but cannot be loaded.
    #[error("cuda: loading the driver library failed: {reason}; install an NVIDIA driver that this system can load, or use the CPU device")]
    DriverNotLoaded {
        /// The loader's message.
        reason: String,
    },
    /// The driver library lacks a function that drivers for CUDA 12.0 have.
    #[error("cuda: loading the driver library failed: it has no {function}; install an NVIDIA driver for CUDA 12.0 or newer, or use the CPU device")]
    DriverTooOld {
        /// The function that it lacks.
        function: &'static str,
    },
    /// The driver library is the stub of the CUDA toolkit, which programs are linked with.
    #[error("cuda: loading the driver library failed: {path} is the stub of the CUDA toolkit, which drives no GPU; remove its folder from LD_LIBRARY_PATH, or use the CPU device")]
    Stub {
        /// The library's file.
        path: String,
    },
    /// There is no GPU, or none with that ordinal.
    #[error("cuda: opening device {ordinal} failed: {}, or use the CPU device", gpus_to_choose(*count))]
    NoSuchDevice {
        /// The requested ordinal.
        ordinal: usize,
        /// How many devices there are.
        count: usize,
    },
    /// The CPU device has no events: its work is done when the call returns.
    #[error("cpu: recording an event failed: dispatches on the CPU run synchronously; time them with a host clock")]
    NoEvents,
    /// A graph has no time before it is launched.
    #[error("the graph must be launched before it is asked for its time")]
    NotLaunched,
    /// Two events, or an event and a stream, belong to different devices.
    #[error("the events, or the event and the stream, belong to different devices")]
    DifferentDevices,
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// A buffer could not be made, written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// Allocation failed.
    #[error("{backend}: allocating {size_in_bytes} bytes failed: {reason}; use smaller tensors or free memory")]
    OutOfMemory {
        /// `cpu` or `cuda`.
        backend: &'static str,
        /// The requested size.
        size_in_bytes: u64,
        /// Why it failed.
        reason: String,
    },
    /// The range to read or write leaves the buffer.
    #[error("the range of {length} bytes at offset {offset} is past the end, but must be within the {size_in_bytes} bytes of the buffer")]
    OutOfRange {
        /// First byte of the range.
        offset: u64,
        /// Bytes of the range.
        length: u64,
        /// Bytes of the buffer.
        size_in_bytes: u64,
    },
    /// The buffer's size is not a whole number of elements of the requested type.
    #[error("the buffer is {size_in_bytes} bytes, but must be a multiple of {element_size}, the bytes of an element")]
    PartialElement {
        /// Bytes of the buffer.
        size_in_bytes: u64,
        /// Bytes of an element.
        element_size: usize,
    },
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// A validated operator could not be made ready to run on the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The operator was created at a higher feature level than the device's, which rejects it.
    #[error("the device's feature level is {level}, which rejects the operator:\n{errors}")]
    FeatureLevel {
        /// The device's level.
        level: FeatureLevel,
        /// The rules that are broken at that level.
        #[source]
        errors: ValidationErrors,
    },
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// A call of the CUDA driver failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cuda: {verb} failed: {reason} (CUDA error {code}); {advice}")]
#[non_exhaustive]
pub struct CudaError {
    /// The operation that failed.
    pub verb: String,
    /// The driver's `CUresult`.
    pub code: u32,
    /// The driver's own description of it.
    pub reason: String,
    /// Advice for the reader.
    pub advice: String,
}

/// What to do if the driver reports this number of GPUs and another one was asked for.
fn gpus_to_choose(count: usize) -> String {
    match count {
        0 => "the driver reports no GPU; check CUDA_VISIBLE_DEVICES".to_owned(),
        _ => format!("GPUs that the driver reports: {count}; choose a lower number than that"),
    }
}
