//! Addresses and streams of other libraries, in types that no other crate defines.

use std::ffi::c_void;

/// An address: a `CUdeviceptr` in device memory, or a pointer of the process for the CPU device.
pub type Address = u64;

/// A stream of the CUDA driver: a `CUstream`, or the runtime's `cudaStream_t`.
pub type RawStream = *mut c_void;
