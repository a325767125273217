//! GPUs as the driver describes them.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};

use super::failure::explain;
use crate::error::DeviceError;

/// What is known of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Major and minor number of the compute capability, such as (9, 0).
    pub compute_capability: (u32, u32),
    /// The highest CUDA version the driver supports, as 1000·major + 10·minor.
    pub driver_version: u32,
    /// Bytes of device memory.
    pub total_memory: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of the L2 cache.
    pub l2_cache: u64,
}

/// The driver's functions that this crate calls, of which cudarc would panic if one were missing.
const FUNCTIONS: [&str; 31] = [
    "cuCtxGetCurrent",
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
    "cuEventSynchronize",
    "cuFuncSetAttribute",
    "cuGetErrorString",
    "cuGetProcAddress_v2",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
];

/// How many GPUs the driver reports.
pub(crate) fn device_count() -> Result<usize, DeviceError> {
    // SAFETY: the call looks for a library by name and closes it again.
    if !unsafe { sys::is_culib_present() } {
        return Err(DeviceError::NoDriver);
    }
    // SAFETY: the library is there; its functions are looked up, not called.
    let has = |name: &str| unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()).is_ok() };
    if let Some(function) = FUNCTIONS.into_iter().find(|name| !has(name)) {
        return Err(DeviceError::DriverTooOld { function });
    }
    match result::init().and_then(|()| result::device::get_count()) {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(0),
        Err(error) => Err(explain("initializing the driver")(error).into()),
    }
}

/// The name and properties of a GPU, without opening it.
pub(crate) fn describe(ordinal: usize) -> Result<(String, Properties), DeviceError> {
    let count = device_count()?;
    if ordinal >= count {
        return Err(DeviceError::NoSuchDevice { ordinal, count });
    }
    let read = || {
        let device = result::device::get(i32::try_from(ordinal).unwrap_or(i32::MAX))?;
        Ok((result::device::get_name(device)?, properties(device)?))
    };
    Ok(read().map_err(explain("reading the device's properties"))?)
}

pub(super) fn attribute(device: sys::CUdevice, which: Attribute) -> Result<u32, DriverError> {
    // SAFETY: `device` comes from cuDeviceGet, which is all that reading its attributes asks for.
    unsafe { result::device::get_attribute(device, which) }.map(|value| value as u32)
}

fn properties(device: sys::CUdevice) -> Result<Properties, DriverError> {
    let read = |which| attribute(device, which);
    let mut driver_version = 0;
    // SAFETY: the driver writes one int to the address of a live one.
    unsafe { sys::cuDriverGetVersion(&mut driver_version) }.result()?;
    Ok(Properties {
        compute_capability: (
            read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        driver_version: driver_version as u32,
        // SAFETY: as in `attribute`.
        total_memory: unsafe { result::device::total_mem(device) }? as u64,
        multiprocessors: read(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_cache: u64::from(read(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
    })
}
