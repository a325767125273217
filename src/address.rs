//! Addresses and streams of other libraries, in types that no other crate defines.

use std::ffi::c_void;

/// An address: a `CUdeviceptr` in device memory, or a pointer of the process for the CPU device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Address(pub u64);

impl<T> From<*const T> for Address {
    fn from(pointer: *const T) -> Self {
        Self(pointer as u64)
    }
}

impl<T> From<*mut T> for Address {
    fn from(pointer: *mut T) -> Self {
        Self(pointer as u64)
    }
}

/// A stream of the CUDA driver: a `CUstream`, or the runtime's `cudaStream_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct RawStream(pub *mut c_void);

impl RawStream {
    /// Null: the legacy default stream. The CPU device has no other.
    pub const NULL: Self = Self(std::ptr::null_mut());
}
