//! Checks the driver library before cudarc loads it, because cudarc panics if the library or one of its functions is
//! missing.

use std::env;
use std::error::Error;
use std::sync::OnceLock;

use libloading::Library;

use crate::error::DeviceError;

/// The names that cudarc tries, too.
const NAMES: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so", "libcuda.so.1"] };

/// The driver's functions that this crate calls. cudarc would panic if one were missing.
const FUNCTIONS: [&str; 43] = [
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventRecordWithFlags",
    "cuEventSynchronize",
    "cuFuncSetAttribute",
    "cuGetErrorString",
    "cuGetProcAddress_v2",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamIsCapturing",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuThreadExchangeStreamCaptureMode",
];

/// Checks that the driver library exists and has all functions that this crate calls.
///
/// # Errors
///
/// [`DeviceError::NoDriver`], [`DeviceError::DriverNotLoaded`], [`DeviceError::DriverTooOld`].
pub(super) fn check() -> Result<(), DeviceError> {
    /// Never closed, because the driver's functions are called until the process ends. If the library is missing, the
    /// next call looks again, because a driver may have been installed.
    static COMPLETE: OnceLock<Library> = OnceLock::new();
    if COMPLETE.get().is_some() {
        return Ok(());
    }
    let library = NAMES.iter().find_map(|name| load(name).ok()).ok_or_else(not_loaded)?;
    // SAFETY: the functions are looked up, not called.
    let has = |name: &str| unsafe { library.get::<unsafe extern "C" fn()>(name).is_ok() };
    if let Some(function) = FUNCTIONS.into_iter().find(|name| !has(name)) {
        return Err(DeviceError::DriverTooOld { function });
    }
    let _ = COMPLETE.set(library);
    Ok(())
}

/// Loads a library, or returns the loader's words.
fn load(name: &str) -> Result<Library, String> {
    // SAFETY: loading runs the driver's own initializers, as in every process that uses CUDA.
    let loaded = unsafe { Library::new(name) };
    loaded.map_err(|error| error.source().map_or_else(|| error.to_string(), ToString::to_string))
}

/// Why the driver library cannot be loaded. It is absent if the loader's words are those for a name that no file has,
/// and if no file is where the loader skips those of another architecture without a word.
fn not_loaded() -> DeviceError {
    const ABSENT: &str = "libcuda.absent";
    let absent = load(ABSENT).err().unwrap_or_default();
    let usual = format!("/usr/lib64:/usr/lib/{}-linux-gnu", env::consts::ARCH).into();
    let folders = [env::var_os("LD_LIBRARY_PATH").unwrap_or_default(), usual];
    let reason = NAMES.iter().find_map(|name| {
        let words = load(name).err()?;
        if words != absent.replace(ABSENT, name) {
            return Some(words);
        }
        let mut paths = folders.iter().flat_map(env::split_paths).map(|folder| folder.join(name));
        let skipped = paths.find(|path| path.symlink_metadata().is_ok())?;
        Some(format!("the loader skips {}: {words}", skipped.display()))
    });
    reason.map_or(DeviceError::NoDriver, |reason| DeviceError::DriverNotLoaded { reason })
}
