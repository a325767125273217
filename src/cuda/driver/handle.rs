//! Stream handles of the driver, and the calls that need nothing else.

use std::sync::Arc;

use cudarc::driver::result::stream::{self, StreamKind};
use cudarc::driver::sys;

use super::failure::cuda_error;
use super::primary::PrimaryContext;
use crate::address::RawStream;
use crate::error::CudaError;

/// A live stream of the context that work is launched on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamHandle(sys::CUstream);

// SAFETY: a CUstream is a handle that any thread may use; calls on it are made with its context current.
unsafe impl Send for StreamHandle {}
// SAFETY: the driver orders concurrent calls on one stream.
unsafe impl Sync for StreamHandle {}

impl StreamHandle {
    pub fn raw(self) -> sys::CUstream {
        self.0
    }

    /// # Safety
    ///
    /// `raw` is null or a live stream of the context it is used with, and stays so until the handle is last used.
    pub unsafe fn borrow(raw: RawStream) -> Self {
        Self(raw.0.cast())
    }
}

/// A stream that this crate made. It does not synchronize with the default stream.
#[derive(Debug)]
pub(super) struct OwnStream {
    context: Arc<PrimaryContext>,
    pub handle: StreamHandle,
}

impl OwnStream {
    /// A new stream of a context that is current.
    pub fn new(context: &Arc<PrimaryContext>) -> Result<Self, CudaError> {
        let raw = stream::create(StreamKind::NonBlocking).map_err(cuda_error("creating a stream"))?;
        Ok(Self { context: context.clone(), handle: StreamHandle(raw) })
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: `new` created the stream, it is destroyed only here, and nobody else has it. If work is left, the
            // driver destroys it when the work is done.
            let _ = unsafe { stream::destroy(self.handle.raw()) };
        }
    }
}

pub(super) fn wait(stream: StreamHandle) -> Result<(), CudaError> {
    // SAFETY: the stream is live: its owner calls this, or a thread that holds its `OwnStream`.
    unsafe { stream::synchronize(stream.0) }.map_err(cuda_error("waiting for a stream"))
}
