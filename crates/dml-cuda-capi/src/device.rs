//! Devices.
// The doc comments and the header's preamble have the safety rules.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

use std::borrow::Cow;
use std::ffi::{c_char, CString};
use std::sync::OnceLock;

use dml_cuda::{Device, DeviceError, TensorDataType};

use crate::input::{self, follow};
use crate::output::{destroy, enter};
use crate::status::*;
use crate::types::*;

/// A device: `IDMLDevice`. Usable from any thread.
pub struct DML_CUDA_DEVICE {
    pub(crate) device: Device,
    name: CString,
}

impl DML_CUDA_DEVICE {
    /// The device with a call's options on top of its own. Most calls have none.
    pub(crate) fn with_options(&self, text: &str) -> Result<Cow<'_, Device>, Failure> {
        let own = self.device.compile_options();
        let options = own.with_text(text)?;
        Ok(match options == own {
            true => Cow::Borrowed(&self.device),
            false => Cow::Owned(self.device.clone().with_compile_options(options)),
        })
    }
}

/// The CPU, with the environment's options.
pub(crate) fn cpu_device() -> Result<Device, dml_cuda::ParseCompileOptionsError> {
    Device::cpu().with_environment()
}

/// Opens a GPU once in a process, and never closes it: kernels stay loaded, so queued work outlives its operator and
/// device.
pub(crate) fn cuda_device(ordinal: usize) -> Result<Device, dml_cuda::Error> {
    /// A place for each GPU. A call that finds its device takes no lock.
    static OPENED: OnceLock<Box<[OnceLock<Device>]>> = OnceLock::new();
    let place = || OPENED.get()?.get(ordinal);
    if let Some(device) = place().and_then(OnceLock::get) {
        return Ok(device.clone());
    }
    let (device, count) = (
        Device::cuda(ordinal)?.with_environment()?,
        Device::cuda_status()?,
    );
    OPENED.get_or_init(|| vec![OnceLock::new(); count].into());
    Ok(place().map_or(device.clone(), |place| place.get_or_init(|| device).clone()))
}

/// Counts the GPUs. On a machine without NVIDIA's driver this fails, and the message names what is missing.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_cuda_device_count(
    count: *mut u32,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(error, [], write(count), Device::cuda_status()? as u32)
}

fn at_level(device: Device, level: DML_CUDA_FEATURE_LEVEL) -> Result<DML_CUDA_DEVICE, Failure> {
    let device = device.with_feature_level(input::feature_level(level)?);
    let name = text(device.name());
    Ok(DML_CUDA_DEVICE { device, name })
}

/// Creates a CPU device with a feature level (0: the highest). Destroy it with `dml_cuda_destroy_device`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_create_cpu_device(
    feature_level: DML_CUDA_FEATURE_LEVEL,
    device: *mut *mut DML_CUDA_DEVICE,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(
        error,
        [],
        create(device),
        at_level(cpu_device()?, feature_level)?
    )
}

/// Creates a device for a GPU, in its primary context, with a feature level (0: the highest). Destroy it with
/// `dml_cuda_destroy_device`. Loaded kernels stay on the GPU until the process ends.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_create_cuda_device(
    ordinal: u32,
    feature_level: DML_CUDA_FEATURE_LEVEL,
    device: *mut *mut DML_CUDA_DEVICE,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(
        error,
        [],
        create(device),
        at_level(cuda_device(ordinal as usize)?, feature_level)?
    )
}

/// Creates a device for the first GPU, or, on a machine without NVIDIA's driver, for the CPU. A driver that fails, or
/// that reports no GPU, is an error.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_create_cuda_or_cpu_device(
    feature_level: DML_CUDA_FEATURE_LEVEL,
    device: *mut *mut DML_CUDA_DEVICE,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let first = || match cuda_device(0) {
        Err(dml_cuda::Error::Device(DeviceError::NoDriver)) => Ok(cpu_device()?),
        opened => opened,
    };
    enter!(
        error,
        [],
        create(device),
        at_level(first()?, feature_level)?
    )
}

/// Destroys a device. Ignores NULL. Operators that were compiled for it stay usable.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_device(device: *mut DML_CUDA_DEVICE) {
    // SAFETY: `enter` made it, and the program destroys it once.
    unsafe { destroy(device) }
}

/// Returns the GPU's name, or `CPU`. Returns NULL for NULL. The text belongs to the device.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_device_name(device: *const DML_CUDA_DEVICE) -> *const c_char {
    enter!([device], std::ptr::null(), device.name.as_ptr())
}

/// Returns the feature level of a device, or 0 for NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_device_feature_level(
    device: *const DML_CUDA_DEVICE,
) -> DML_CUDA_FEATURE_LEVEL {
    enter!([device], 0, level_value(device.device.feature_level()))
}

/// Queries which data types and dimension counts a device accepts for one tensor of an operator:
/// `DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT`, by operator and tensor.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_check_tensor_support(
    device: *const DML_CUDA_DEVICE,
    operator_type: DML_CUDA_OPERATOR_TYPE,
    tensor: DML_CUDA_TENSOR_ROLE,
    support: *mut DML_CUDA_TENSOR_SUPPORT,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(error, [device], write(support), {
        let (operator, role) = (
            input::operator_type(operator_type)?,
            input::tensor_role(tensor)?,
        );
        let found = device.device.check_tensor_support(operator, role);
        // The numbers of the header begin at 1, for the first data type.
        let bit = |&data_type: &TensorDataType| 2 << data_type as u32;
        let found = found.map(|found| DML_CUDA_TENSOR_SUPPORT {
            IsSupported: 1,
            MinimumDimensionCount: *found.dimension_counts.start() as u32,
            MaximumDimensionCount: *found.dimension_counts.end() as u32,
            DataTypeMask: found.data_types.iter().map(bit).sum(),
        });
        found.unwrap_or_default()
    })
}
