//! Calls during a capture of a stream into a graph.

use std::cell::Cell;

use cudarc::driver::result::DriverError;
use cudarc::driver::sys;

/// While this guard lives, the calling thread may allocate, free, load, unload and wait, although it captures a stream,
/// as XLA does when it first runs a program, or another thread does. These calls queue nothing on that stream, so the
/// capture stays valid.
#[must_use]
#[derive(Debug)]
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

thread_local! {
    static LOADS: Cell<bool> = const { Cell::new(true) };
}

/// Whether the calling thread may load a kernel: not while a [`NoLoading`] lives.
pub(super) fn may_load() -> bool {
    LOADS.get()
}

/// While this guard lives, loading a kernel on this thread is an error.
#[must_use]
pub(crate) struct NoLoading(bool);

impl NoLoading {
    pub fn enter() -> Self {
        Self(LOADS.replace(false))
    }
}

impl Drop for NoLoading {
    fn drop(&mut self) {
        LOADS.set(self.0);
    }
}
