//! Stream handles of the driver, and the calls that need nothing else.

use std::sync::Arc;

use cudarc::driver::result::stream::{self, StreamKind};
use cudarc::driver::result::DriverError;
use cudarc::driver::sys;

use super::failure::cuda_error;
use super::primary::PrimaryContext;
use crate::address::RawStream;
use crate::error::CudaError;

/// `CU_STREAM_LEGACY`. The legacy default stream is also null.
const LEGACY: usize = 1;

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

    /// Whether its work is being captured into a graph. The legacy default stream never is.
    pub fn is_capturing(self) -> bool {
        let none = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let mut status = none;
        if self.0 as usize > LEGACY {
            // SAFETY: the stream is live, and the driver writes a status to a live variable. The statuses have not
            // changed since CUDA 10.1. If the call fails, it writes none.
            let _ = unsafe { sys::cuStreamIsCapturing(self.0, &mut status) };
        }
        status != none
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
    pub fn new(context: &Arc<PrimaryContext>) -> Result<Self, CudaError> {
        let _current = context.enter()?;
        let raw =
            stream::create(StreamKind::NonBlocking).map_err(cuda_error("creating a stream"))?;
        Ok(Self {
            context: context.clone(),
            handle: StreamHandle(raw),
        })
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: `new` created the stream, it is destroyed only here, and no one else has it. If work is left, the
            // driver destroys it when the work is done.
            let _ = unsafe { stream::destroy(self.handle.raw()) };
        }
    }
}

/// Waits for the work of a stream of the current context. Fails if it is being captured, because the driver would
/// fail as well and end the capture.
pub(super) fn wait(stream: StreamHandle) -> Result<(), CudaError> {
    let failed = cuda_error("waiting for a stream");
    if stream.is_capturing() {
        return Err(failed(DriverError(
            sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        )));
    }
    // SAFETY: the stream is live: its owner calls this, or a thread that holds its `OwnStream`.
    unsafe { stream::synchronize(stream.0) }.map_err(failed)
}
