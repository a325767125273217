//! Checks the driver library before cudarc loads it, because cudarc panics if the library or one of its functions is
//! missing.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::sync::OnceLock;

use libloading::Library;

use crate::error::DeviceError;

/// The names of the driver library, which are those that cudarc tries.
const NAMES: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else {
    &["libcuda.so", "libcuda.so.1"]
};

/// The driver's functions that this crate calls, and `cuGetProcAddress_v2`, which drivers before CUDA 12.0 lack. cudarc
/// would panic if one were missing.
const FUNCTIONS: [&str; 44] = [
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
    "cuEventElapsedTime",
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

/// Folders that have the driver where the loader does not search them: on NixOS, and under WSL in a container.
const FOLDERS: [&str; 2] = ["/run/opengl-driver/lib", "/usr/lib/wsl/lib"];

/// The driver library, which is never closed, because its functions are called until the process ends. If it is
/// missing, the next call looks again, because a driver may have been installed.
static DRIVER: OnceLock<Library> = OnceLock::new();

/// Checks that the driver library exists and has all functions that this crate calls.
///
/// # Errors
///
/// [`DeviceError::NoDriver`], [`DeviceError::DriverNotLoaded`], [`DeviceError::DriverTooOld`].
pub(super) fn check() -> Result<(), DeviceError> {
    check_in(&FOLDERS)
}

fn check_in(folders: &[&str]) -> Result<(), DeviceError> {
    if DRIVER.get().is_some() {
        return Ok(());
    }
    let library = by_name()
        .or_else(|| in_folders(folders))
        .ok_or_else(not_loaded)?;
    // SAFETY: the functions are looked up, not called.
    let has = |name: &str| unsafe { library.get::<unsafe extern "C" fn()>(name).is_ok() };
    if let Some(function) = FUNCTIONS.into_iter().find(|name| !has(name)) {
        return Err(DeviceError::DriverTooOld { function });
    }
    let _ = DRIVER.set(library);
    Ok(())
}

/// The library that cudarc takes.
fn by_name() -> Option<Library> {
    NAMES.iter().find_map(|name| load(name).ok())
}

/// The library in one of these folders. While it is open, the loader also finds it by its name, as cudarc asks for it.
fn in_folders(folders: &[&str]) -> Option<Library> {
    let _open = folders
        .iter()
        .find_map(|folder| load(&format!("{folder}/libcuda.so.1")).ok())?;
    by_name()
}

/// A function of the driver library, if [`check`] has found it.
///
/// # Safety
///
/// `T` must be the type of a pointer to the function of that name.
pub(super) unsafe fn function<T: Copy>(name: &str) -> Option<T> {
    // SAFETY: the caller gives the function's type, and the library is never closed.
    unsafe { DRIVER.get()?.get::<T>(name) }
        .ok()
        .map(|function| *function)
}

/// The path of the driver library, for an error: the file that is mapped where its first function is.
pub(super) fn path() -> String {
    // SAFETY: the function is not called.
    let address =
        unsafe { function::<unsafe extern "C" fn()>("cuInit") }.map_or(0, |init| init as usize);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let holds = |line: &&str| {
        let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        range.is_some_and(|(begin, end)| (number(begin)..number(end)).contains(&address))
    };
    let file = maps
        .lines()
        .find(holds)
        .and_then(|line| line.find('/').map(|at| line[at..].to_owned()));
    file.unwrap_or_else(|| NAMES[0].to_owned())
}

/// Loads a library, or returns the loader's message.
fn load(name: &str) -> Result<Library, String> {
    // SAFETY: loading runs the driver's own initializers, as in every process that uses CUDA.
    let loaded = unsafe { Library::new(name) };
    loaded.map_err(|error| {
        error
            .source()
            .map_or_else(|| error.to_string(), ToString::to_string)
    })
}

/// Why the driver library cannot be loaded. It is absent if the loader's message is the one for a name that no file
/// has, and if no file is where the loader skips those of another architecture without a word.
fn not_loaded() -> DeviceError {
    const ABSENT: &str = "libcuda.absent";
    let absent = load(ABSENT).err().unwrap_or_default();
    let usual = format!("/usr/lib64:/usr/lib/{}-linux-gnu", env::consts::ARCH).into();
    // The loader ignores an empty list, but an empty folder in a list is the current one.
    let listed = env::var_os("LD_LIBRARY_PATH").filter(|folders| !folders.is_empty());
    let folders: Vec<OsString> = listed.into_iter().chain([usual]).collect();
    let reason = NAMES.iter().find_map(|name| {
        let words = load(name).err()?;
        if words != absent.replace(ABSENT, name) {
            return Some(words);
        }
        let mut paths = folders
            .iter()
            .flat_map(env::split_paths)
            .map(|folder| folder.join(name));
        let skipped = paths.find(|path| path.symlink_metadata().is_ok())?;
        Some(format!("the loader skips {}: {words}", skipped.display()))
    });
    reason.map_or(DeviceError::NoDriver, |reason| {
        DeviceError::DriverNotLoaded { reason }
    })
}

#[cfg(all(test, target_os = "linux", in_repository))]
mod tests {
    use std::process::Command;

    use super::*;

    /// The loader and cudarc keep what they found, so each search has a process of its own.
    #[test]
    fn a_search() {
        let Ok(folder) = env::var("DRIVER_FOLDER") else {
            return;
        };
        let status = check_in(&[&folder]).and_then(|()| super::super::device_count());
        println!("SEARCHED {status:?}");
    }

    #[test]
    fn a_driver_where_the_loader_does_not_search_is_found() {
        let Some(folder) = dml_cuda_testing::driver_double::driver(None) else {
            return;
        };
        let searched = |folder: &str| {
            let mut this = Command::new(env::current_exe().expect("this program"));
            this.args([
                "--exact",
                "cuda::driver::library::tests::a_search",
                "--nocapture",
            ])
            .env("DRIVER_FOLDER", folder);
            String::from_utf8(
                this.env("FAKE_GPUS", "3")
                    .output()
                    .expect("it starts")
                    .stdout,
            )
            .expect("text")
        };
        if by_name().is_none() {
            let found = searched(folder.path().to_str().expect("text"));
            assert!(found.contains("SEARCHED Ok(3)"), "{found}");
            let found = searched("/no folder");
            assert!(found.contains("SEARCHED Err(NoDriver)"), "{found}");
        }
    }
}
