//! What other libraries hand over: addresses and streams, in types that are no other crate's.

use std::ffi::c_void;

/// An address: in device memory a `CUdeviceptr`, of the CPU device a pointer of the process.
pub type Address = u64;

/// A stream of the CUDA driver: a `CUstream`, or the runtime's `cudaStream_t`.
pub type RawStream = *mut c_void;
