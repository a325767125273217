//! Device memory, and the waiting that makes access to it safe.

use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::context::Context;
use super::failure::cuda_error;
use super::handle::wait;
use super::stream::wait_for_streams;
use crate::error::{BufferError, CudaError};

/// Device memory.
#[derive(Debug)]
pub(crate) struct Memory {
    context: Arc<Context>,
    address: sys::CUdeviceptr,
}

impl Memory {
    /// Memory that is all zero.
    pub fn new(context: &Arc<Context>, size_in_bytes: u64) -> Result<Self, BufferError> {
        Self::repeating(context, size_in_bytes, &[])
    }

    /// Memory that begins with `values`, which repeat. Without any it is all zero.
    pub fn repeating(
        context: &Arc<Context>,
        size_in_bytes: u64,
        values: &[u8],
    ) -> Result<Self, BufferError> {
        let _current = context.enter()?;
        let (free, total) = result::mem_get_info().map_err(cuda_error("asking for free memory"))?;
        let out_of_memory = || {
            let reason = format!("the GPU has {total} bytes, of which {free} are free");
            BufferError::OutOfMemory {
                backend: "cuda",
                size_in_bytes,
                reason,
            }
        };
        if size_in_bytes > total as u64 {
            return Err(out_of_memory());
        }
        // The driver rejects an allocation of 0 bytes.
        let bytes = (size_in_bytes as usize).max(1);
        // SAFETY: the context is current.
        let address = unsafe { result::malloc_sync(bytes) }.map_err(|error| match error {
            DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY) => out_of_memory(),
            error => cuda_error(&format!("allocating {size_in_bytes} bytes"))(error).into(),
        })?;
        let memory = Self {
            context: context.clone(),
            address,
        };
        let copies = context.copies.handle;
        // SAFETY: the ranges are inside the allocation, which nothing else uses yet, and apart. The stream belongs to
        // the context. `values` outlives the copy, which is waited for below.
        let queued = (|| unsafe {
            if values.is_empty() {
                return result::memset_d8_async(address, 0, bytes, copies.raw());
            }
            let mut written = values.len().min(bytes);
            result::memcpy_htod_async(address, &values[..written], copies.raw())?;
            while written < bytes {
                let more = written.min(bytes - written);
                result::memcpy_dtod_async(address + written as u64, address, more, copies.raw())?;
                written += more;
            }
            Ok(())
        })();
        let waited = wait(copies);
        queued.map_err(cuda_error("initializing a buffer"))?;
        waited?;
        Ok(memory)
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    /// Writes bytes after all work queued before and before any queued later. The caller has checked that the range is
    /// inside.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), CudaError> {
        let _current = wait_for_streams(&self.context)?;
        let copies = self.context.copies.handle;
        // SAFETY: the range is inside the allocation (Buffer::check_range), and no queued work uses it. `bytes`
        // outlives the copy, which is waited for below: a kernel on another stream would not wait for it.
        unsafe { result::memcpy_htod_async(self.address + offset, bytes, copies.raw()) }
            .map_err(cuda_error("writing a buffer"))?;
        wait(copies)
    }

    /// Reads bytes after all work queued before. The caller has checked that the range is inside.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), CudaError> {
        let _current = wait_for_streams(&self.context)?;
        let copies = self.context.copies.handle;
        // SAFETY: the range is inside the allocation (Buffer::check_range), and no queued work uses it. `bytes` is a
        // live slice, which outlives the copy, because it is waited for below.
        unsafe { result::memcpy_dtoh_async(bytes, self.address + offset, copies.raw()) }
            .map_err(cuda_error("reading a buffer"))?;
        wait(copies)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Queued work may still use the memory, so wait for it. If waiting fails (for example because this thread
        // captures a stream), leak the memory: a kernel may still use it.
        if let Ok(_current) = wait_for_streams(&self.context) {
            // SAFETY: `address` was allocated by `new` and is freed only here, and no work uses it any more.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}
