//! Primary contexts, which this crate shares with every other user of the GPU in the process.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::capture::Unrestricted;
use super::failure::cuda_error;
use crate::error::CudaError;

/// A GPU's primary context, retained.
#[derive(Debug)]
pub(crate) struct PrimaryContext {
    pub(super) device: sys::CUdevice,
    raw: sys::CUcontext,
}

// SAFETY: a CUcontext is a handle that any thread may make current.
unsafe impl Send for PrimaryContext {}
// SAFETY: nothing changes after `retain`.
unsafe impl Sync for PrimaryContext {}

impl PrimaryContext {
    pub(super) fn retain(ordinal: usize) -> Result<Self, DriverError> {
        let device = result::device::get(i32::try_from(ordinal).unwrap_or(i32::MAX))?;
        // SAFETY: the device comes from cuDeviceGet; `drop` releases it once.
        let raw = unsafe { result::primary_ctx::retain(device) }?;
        Ok(Self { device, raw })
    }

    /// Makes it current on the calling thread until the returned guard is dropped, for calls that queue work on a
    /// caller's stream, or record an event there.
    pub(super) fn enter_to_queue(&self) -> Result<Entered, CudaError> {
        let enter = || {
            let before = result::ctx::get_current()?.unwrap_or(std::ptr::null_mut());
            if before == self.raw {
                return Ok(Entered {
                    before: None,
                    _unrestricted: None,
                });
            }
            // SAFETY: the context is retained as long as `self`.
            unsafe { result::ctx::set_current(self.raw) }?;
            Ok(Entered {
                before: Some(before),
                _unrestricted: None,
            })
        };
        enter().map_err(cuda_error("making the device current"))
    }

    /// Makes it current, as [`enter_to_queue`](Self::enter_to_queue) does, for all other calls: allocating, freeing,
    /// loading, unloading and waiting, which would break a capture of this thread or of another one.
    pub(super) fn enter(&self) -> Result<Entered, CudaError> {
        let unrestricted =
            Unrestricted::enter().map_err(cuda_error("allowing calls during a capture"))?;
        let mut entered = self.enter_to_queue()?;
        entered._unrestricted = Some(unrestricted);
        Ok(entered)
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: `retain` retained it, and only this call releases it.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// While this guard lives, a primary context is current on this thread. Dropping it makes the caller's previous context
/// (or none) current again. It has that context if it was a different one.
#[must_use]
#[derive(Debug)]
pub(crate) struct Entered {
    before: Option<sys::CUcontext>,
    _unrestricted: Option<Unrestricted>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was current on this thread a moment ago, so it is a live context of the caller, or null.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}
