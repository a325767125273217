//! Primary contexts, which this crate shares with every other user of the GPU in the process.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::failure::explain;
use crate::error::CudaError;

/// A GPU's primary context, retained.
#[derive(Debug)]
pub(crate) struct PrimaryContext {
    device: sys::CUdevice,
    raw: sys::CUcontext,
}

// SAFETY: a CUcontext is a handle that the driver lets any thread make current.
unsafe impl Send for PrimaryContext {}
// SAFETY: as for Send; nothing changes after `retain`.
unsafe impl Sync for PrimaryContext {}

impl PrimaryContext {
    pub(super) fn retain(ordinal: usize) -> Result<Self, DriverError> {
        let device = result::device::get(i32::try_from(ordinal).unwrap_or(i32::MAX))?;
        // SAFETY: the device comes from cuDeviceGet; `drop` releases it once.
        let raw = unsafe { result::primary_ctx::retain(device) }?;
        Ok(Self { device, raw })
    }

    pub(super) fn device(&self) -> sys::CUdevice {
        self.device
    }

    /// Makes it current on the calling thread, until the answer is dropped.
    pub(super) fn enter(&self) -> Result<Entered, CudaError> {
        let enter = || {
            let before = result::ctx::get_current()?.unwrap_or(std::ptr::null_mut());
            if before == self.raw {
                return Ok(Entered { before: None });
            }
            // SAFETY: the context is retained as long as `self`.
            unsafe { result::ctx::set_current(self.raw) }?;
            Ok(Entered { before: Some(before) })
        };
        enter().map_err(explain("making the device current"))
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: retained by `retain`, released here only.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// While it lives, a primary context is current on this thread; then the caller's is again, or none.
#[must_use]
#[derive(Debug)]
pub(super) struct Entered {
    /// What was current, where it was another.
    before: Option<sys::CUcontext>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was current on this thread a moment ago: a live context of the caller's, or null.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}
