//! Calls that a capture forbids, though they do not touch the captured stream.

use cudarc::driver::result::DriverError;
use cudarc::driver::sys;

/// While this guard lives, the calling thread may create a stream and load a kernel although it captures another
/// library's stream, as XLA does when it first runs a program. These calls queue nothing, so the capture stays valid.
#[must_use]
pub(super) struct Unrestricted(sys::CUstreamCaptureMode);

impl Unrestricted {
    pub fn enter() -> Result<Self, DriverError> {
        exchange(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).map(Self)
    }
}

impl Drop for Unrestricted {
    fn drop(&mut self) {
        let _ = exchange(self.0);
    }
}

/// Sets the thread's mode, and returns the one before.
fn exchange(mut mode: sys::CUstreamCaptureMode) -> Result<sys::CUstreamCaptureMode, DriverError> {
    // SAFETY: the driver reads and writes a live variable. The modes that it writes are those of the enumeration, which
    // has not changed since CUDA 10.1.
    unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) }.result()?;
    Ok(mode)
}
