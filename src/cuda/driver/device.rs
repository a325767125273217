//! GPUs as the driver describes them.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};

use super::failure::cuda_error;
use super::library;
use crate::error::DeviceError;

/// The properties of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Properties {
    /// Major and minor number of the compute capability, such as (9, 0).
    pub compute_capability: (u32, u32),
    /// The highest CUDA version the driver supports, as 1000·major + 10·minor.
    pub driver_version: u32,
    /// Bytes of device memory.
    pub total_memory: u64,
    /// Streaming multiprocessors (SMs).
    pub multiprocessors: u32,
    /// Bytes of the L2 cache.
    pub l2_cache: u64,
    /// The GPU's address on the PCI bus, such as `0000:1a:00.0`. NVIDIA's tools identify GPUs by it, whatever their
    /// ordinals.
    pub pci_bus_id: String,
}

/// How many GPUs the driver reports.
pub(crate) fn device_count() -> Result<usize, DeviceError> {
    library::check()?;
    match result::init().and_then(|()| result::device::get_count()) {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(0),
        Err(DriverError(sys::CUresult::CUDA_ERROR_STUB_LIBRARY)) => Err(DeviceError::Stub {
            path: library::path(),
        }),
        Err(error) => Err(cuda_error("initializing the driver")(error).into()),
    }
}

/// The ordinal of the GPU whose context is current on the calling thread.
pub(crate) fn current_ordinal() -> Result<usize, DeviceError> {
    library::check()?;
    let failed = cuda_error("finding the current device");
    let mut device = 0;
    // SAFETY: the driver writes one handle to the address of a live variable.
    unsafe { sys::cuCtxGetDevice(&mut device) }
        .result()
        .map_err(&failed)?;
    let mut devices = (0..).map_while(|ordinal| result::device::get(ordinal).ok());
    let unknown = || failed(DriverError(sys::CUresult::CUDA_ERROR_INVALID_DEVICE)).into();
    devices
        .position(|found| found == device)
        .ok_or_else(unknown)
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
    Ok(read().map_err(cuda_error("reading the device's properties"))?)
}

pub(super) fn attribute(device: sys::CUdevice, which: Attribute) -> Result<u32, DriverError> {
    // SAFETY: `device` comes from cuDeviceGet. Reading its attributes needs nothing else.
    unsafe { result::device::get_attribute(device, which) }.map(|value| value as u32)
}

/// Whether the GPU can launch clusters of thread blocks. cudarc's bindings before CUDA 11.8 have no name for this
/// attribute, so it is read by its number.
pub(super) fn launches_clusters(device: sys::CUdevice) -> Result<bool, DriverError> {
    type GetAttribute = unsafe extern "C" fn(*mut i32, i32, sys::CUdevice) -> sys::CUresult;
    const CLUSTER_LAUNCH: i32 = 120;
    let mut value = 0;
    // SAFETY: the driver documents this signature for the function of this name; its enumeration is an int.
    let function: Option<GetAttribute> = unsafe { library::function("cuDeviceGetAttribute") };
    let function = function.ok_or(DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND))?;
    // SAFETY: `device` comes from cuDeviceGet, and the result is a live int.
    unsafe { function(&mut value, CLUSTER_LAUNCH, device) }.result()?;
    Ok(value != 0)
}

fn properties(device: sys::CUdevice) -> Result<Properties, DriverError> {
    let read = |which| attribute(device, which);
    let mut driver_version = 0;
    // SAFETY: the driver writes one int to the address of a live variable.
    unsafe { sys::cuDriverGetVersion(&mut driver_version) }.result()?;
    Ok(Properties {
        compute_capability: (
            read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        driver_version: driver_version as u32,
        // SAFETY: the driver writes one number to the address of a live variable.
        total_memory: unsafe { result::device::total_mem(device) }? as u64,
        multiprocessors: read(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_cache: u64::from(read(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        pci_bus_id: format!(
            "{:04x}:{:02x}:{:02x}.0",
            read(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
            read(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
            read(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?
        ),
    })
}
