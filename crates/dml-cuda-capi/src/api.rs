//! The functions of the header.
#![allow(non_camel_case_types, clippy::missing_safety_doc)] // the header's contract stands in each doc comment and in its preamble

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void, CStr, CString};
use std::sync::{Mutex, PoisonError};

use dml::{CompileOptions, CompiledOperator, Device, Operator};

use crate::input::{self, follow};
use crate::status::*;
use crate::types::*;

/// A device: `IDMLDevice`. Usable from any thread.
pub struct DML_CUDA_DEVICE {
    pub(crate) device: Device,
    name: CString,
}

/// A validated descriptor: `IDMLOperator`. Knows no device; usable from any thread.
pub struct DML_CUDA_OPERATOR(Operator);

/// An operator made ready for a device: `IDMLCompiledOperator`. Usable from any thread, by several at once.
pub struct DML_CUDA_COMPILED_OPERATOR(CompiledOperator);

/// The GPUs that were opened, each for as long as the process lives: kernels stay loaded, so that nothing that is destroyed can
/// be missing to work that is still queued.
pub(crate) fn cuda_device(ordinal: usize) -> Result<Device, dml::DeviceError> {
    static OPENED: Mutex<BTreeMap<usize, Device>> = Mutex::new(BTreeMap::new());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = opened.get(&ordinal) {
        return Ok(device.clone());
    }
    let device = Device::cuda(ordinal)?;
    opened.insert(ordinal, device.clone());
    Ok(device)
}

/// Before anything is made: whether there is a place for the result.
fn place<T>(to: *mut T, name: &str) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::argument(format!("{name} is NULL, must be where the result goes")));
    }
    Ok(())
}

/// Writes a result.
///
/// # Safety
///
/// `to` is null, or a `T` can be written there.
unsafe fn give<T>(to: *mut T, name: &str, value: T) -> Result<(), Failure> {
    place(to, name)?;
    // SAFETY: the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes a compiled operator.
///
/// # Safety
///
/// `to` is null, or a pointer can be written there.
pub(crate) unsafe fn give_compiled(
    to: *mut *mut DML_CUDA_COMPILED_OPERATOR,
    made: CompiledOperator,
) -> Result<(), Failure> {
    place(to, "compiled")?;
    // SAFETY: the caller's promise.
    unsafe { give(to, "compiled", Box::into_raw(Box::new(DML_CUDA_COMPILED_OPERATOR(made)))) }
}

/// The library's version, such as `0.1.0`. The text lives as long as the process.
#[no_mangle]
pub extern "C" fn dml_cuda_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL"),
    };
    VERSION.as_ptr()
}

/// How many GPUs there are. A machine without NVIDIA's driver is an error, whose text says what is missing.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_cuda_device_count(
    count: *mut u32,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    // SAFETY: the header's contract.
    unsafe { run(error, || give(count, "count", Device::cuda_status()? as u32)) }
}

fn new_device(device: Device, level: DML_CUDA_FEATURE_LEVEL) -> Result<*mut DML_CUDA_DEVICE, Failure> {
    let device = device.with_feature_level(input::feature_level(level)?);
    let name = text(device.name());
    Ok(Box::into_raw(Box::new(DML_CUDA_DEVICE { device, name })))
}

/// The CPU as a device, held to a feature level (0: the highest). Destroy it with `dml_cuda_destroy_device`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_create_cpu_device(
    feature_level: DML_CUDA_FEATURE_LEVEL,
    device: *mut *mut DML_CUDA_DEVICE,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        place(device, "device")?;
        // SAFETY: the header's contract.
        unsafe { give(device, "device", new_device(Device::cpu(), feature_level)?) }
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// A GPU in its primary context, held to a feature level (0: the highest). Destroy it with `dml_cuda_destroy_device`; what
/// was loaded onto the GPU stays until the process ends.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_create_cuda_device(
    ordinal: u32,
    feature_level: DML_CUDA_FEATURE_LEVEL,
    device: *mut *mut DML_CUDA_DEVICE,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        place(device, "device")?;
        // SAFETY: the header's contract.
        unsafe { give(device, "device", new_device(cuda_device(ordinal as usize)?, feature_level)?) }
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Destroys a device; NULL is none. Operators that were compiled for it keep what they need.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_device(device: *mut DML_CUDA_DEVICE) {
    // SAFETY: the header's contract: made by this library, destroyed once.
    unsafe { destroy(device) }
}

/// # Safety
///
/// `object` is null, or came out of a box and goes nowhere else.
unsafe fn destroy<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller's promise.
        let object = unsafe { Box::from_raw(object) };
        // A panic may not leave; there is none to be expected.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(object)));
    }
}

/// The GPU's name, or `CPU`; NULL of NULL. The text belongs to the device.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_device_name(device: *const DML_CUDA_DEVICE) -> *const c_char {
    // SAFETY: the header's contract.
    match unsafe { follow(device, "device") } {
        Ok(device) => device.name.as_ptr(),
        Err(_) => std::ptr::null(),
    }
}

/// The feature level a device is held to; 0 of NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_device_feature_level(device: *const DML_CUDA_DEVICE) -> DML_CUDA_FEATURE_LEVEL {
    // SAFETY: the header's contract.
    match unsafe { follow(device, "device") } {
        Ok(device) => level_value(device.device.feature_level()),
        Err(_) => 0,
    }
}

/// What a device takes of a tensor of an operator: `DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT`, by operator and tensor.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_check_tensor_support(
    device: *const DML_CUDA_DEVICE,
    operator_type: DML_CUDA_OPERATOR_TYPE,
    tensor: DML_CUDA_TENSOR_ROLE,
    support: *mut DML_CUDA_TENSOR_SUPPORT,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let device = unsafe { follow(device, "device") }?;
        let (operator, role) = (input::operator_type(operator_type)?, input::tensor_role(tensor)?);
        let found = device.device.check_tensor_support(operator, role);
        let bit =
            |data_type| dml::TensorDataType::ALL.iter().position(|known| known == data_type).map_or(0, |at| 2 << at);
        let found = found.map(|found| DML_CUDA_TENSOR_SUPPORT {
            IsSupported: 1,
            MinimumDimensionCount: *found.dimension_counts.start() as u32,
            MaximumDimensionCount: *found.dimension_counts.end() as u32,
            DataTypeMask: found.data_types.iter().map(bit).sum(),
        });
        let none = DML_CUDA_TENSOR_SUPPORT {
            IsSupported: 0,
            MinimumDimensionCount: 0,
            MaximumDimensionCount: 0,
            DataTypeMask: 0,
        };
        // SAFETY: the header's contract.
        unsafe { give(support, "support", found.unwrap_or(none)) }
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Whether a descriptor is accepted at a feature level (0: the highest), with no device.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_validate(
    desc: *const DML_CUDA_OPERATOR_DESC,
    feature_level: DML_CUDA_FEATURE_LEVEL,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let desc = unsafe { input::operator(desc) }?;
        Ok(dml::validate(&desc, input::feature_level(feature_level)?)?)
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Whether a version of DirectML, such as `1.8.0`, accepts a descriptor: its verdict, its mistakes included.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_validate_as(
    desc: *const DML_CUDA_OPERATOR_DESC,
    directml_version: *const c_char,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let desc = unsafe { input::operator(desc) }?;
        // SAFETY: the header's contract.
        let version = unsafe { string(directml_version, "directml_version") }?;
        let version: dml::DirectMlVersion = version.parse().map_err(Failure::argument)?;
        dml::validate_as(&desc, &version)?;
        Ok(())
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// # Safety
///
/// `pointer` is null, or a text that ends in a NUL and stays as it is for `'a`.
unsafe fn string<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{name} is NULL, must be a text")));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::argument(format!("{name} is {text:?}, must be UTF-8")))
}

/// Validates a descriptor at the device's feature level: `IDMLDevice::CreateOperator`. The descriptor is copied. Destroy the
/// operator with `dml_cuda_destroy_operator`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_create_operator(
    device: *const DML_CUDA_DEVICE,
    desc: *const DML_CUDA_OPERATOR_DESC,
    operator: *mut *mut DML_CUDA_OPERATOR,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let device = unsafe { follow(device, "device") }?;
        place(operator, "operator")?;
        // SAFETY: the header's contract.
        let created = device.device.create_operator(unsafe { input::operator(desc) }?)?;
        // SAFETY: the header's contract.
        unsafe { give(operator, "operator", Box::into_raw(Box::new(DML_CUDA_OPERATOR(created)))) }
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Destroys an operator; NULL is none.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_operator(operator: *mut DML_CUDA_OPERATOR) {
    // SAFETY: the header's contract.
    unsafe { destroy(operator) }
}

/// Plans an operator for a device and loads its kernels: `IDMLDevice::CompileOperator`. `options` may be NULL. Destroy the
/// result with `dml_cuda_destroy_compiled_operator`. Not while a stream of this thread is being captured.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_compile_operator(
    device: *const DML_CUDA_DEVICE,
    operator: *const DML_CUDA_OPERATOR,
    options: *const DML_CUDA_COMPILE_OPTIONS,
    compiled: *mut *mut DML_CUDA_COMPILED_OPERATOR,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let (device, operator) = unsafe { (follow(device, "device")?, follow(operator, "operator")?) };
        place(compiled, "compiled")?;
        let options = match options.is_null() {
            true => CompileOptions::default(),
            false => {
                // SAFETY: the header's contract.
                let options = unsafe { follow(options, "options") }?;
                CompileOptions {
                    pointer_alignment: options.PointerAlignment,
                    in_place: input::in_place(options.InPlace)?,
                }
            }
        };
        let made = device.device.compile_operator_with(&operator.0, options)?;
        // SAFETY: the header's contract.
        unsafe { give_compiled(compiled, made) }
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Destroys a compiled operator; NULL is none. Work that it queued goes on: the kernels stay loaded.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_compiled_operator(compiled: *mut DML_CUDA_COMPILED_OPERATOR) {
    // SAFETY: the header's contract.
    unsafe { destroy(compiled) }
}

/// What a dispatch needs besides its tensors: nothing. `IDMLDispatchable::GetBindingProperties`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_get_binding_properties(
    compiled: *const DML_CUDA_COMPILED_OPERATOR,
    properties: *mut DML_CUDA_BINDING_PROPERTIES,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let compiled = unsafe { follow(compiled, "compiled") }?;
        let found = compiled.0.binding_properties();
        let tensors = compiled.0.operator().tensors().len() as u32;
        let found = DML_CUDA_BINDING_PROPERTIES {
            RequiredDescriptorCount: tensors,
            TemporaryResourceSize: found.temporary_resource_size,
            PersistentResourceSize: found.persistent_resource_size,
        };
        // SAFETY: the header's contract.
        unsafe { give(properties, "properties", found) }
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Runs a compiled operator: on a GPU queued on `stream` (a CUstream or cudaStream_t; NULL, 1 and 2 are the default streams), on
/// the CPU device before it returns, with `stream` NULL.
///
/// `inputs` are the addresses of the input tensors' first elements in the order of the descriptor's fields (InputTensor,
/// SequenceLengthsTensor; none for a fill), `output` that of the output's: device memory for a GPU, host memory for the CPU
/// device. `output` equal to InputTensor's address runs in place. On a GPU nothing is allocated, copied or waited for, and the
/// call may be captured into a CUDA graph. The memory stays as it is until the work, or the last replay of its graph, is done.
/// A failed call has queued and written nothing.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_dispatch(
    compiled: *const DML_CUDA_COMPILED_OPERATOR,
    inputs: *const *const c_void,
    input_count: u32,
    output: *mut c_void,
    stream: *mut c_void,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    /// More than an operator has, so that a wrong number up to here is the operator's to refuse.
    const MAX_INPUTS: usize = 8;
    let body = || {
        // SAFETY: the header's contract.
        let compiled = unsafe { follow(compiled, "compiled") }?;
        let count = input_count as usize;
        if count > MAX_INPUTS {
            // None of them is looked at.
            let required = compiled.0.operator().tensors().len() - 1;
            return Err(dml::DispatchError::from(dml::BindingError::Count { found: count, required }).into());
        }
        let mut addresses = [0; MAX_INPUTS];
        if count > 0 {
            // SAFETY: the header's contract: not null, it points to `input_count` addresses.
            let first = unsafe { follow(inputs, "inputs") }?;
            // SAFETY: as above.
            let inputs = unsafe { std::slice::from_raw_parts(first, count) };
            addresses.iter_mut().zip(inputs).for_each(|(address, input)| *address = *input as dml::Address);
        }
        // SAFETY: the header's contract is that of `dispatch_raw`; the kernels stay loaded (`cuda_device`).
        Ok(unsafe { compiled.0.dispatch_raw(&addresses[..count], output as dml::Address, stream) }?)
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// What a dispatch of an operator would do on a GPU, whether there is one or not: merged dimensions, kernels, grids, bytes, and
/// why no faster kernel runs. `target` is `t4`, `l4`, `a100`, `h100`, `b200`, or `shared=KIB,sm=COUNT[,clusters]`. Free the text
/// with `dml_cuda_free_string`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_explain(
    operator: *const DML_CUDA_OPERATOR,
    target: *const c_char,
    explanation: *mut *mut c_char,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let operator = unsafe { follow(operator, "operator") }?;
        // SAFETY: the header's contract.
        let target = unsafe { string(target, "target") }?;
        let target: dml::GpuTarget = target.parse().map_err(Failure::argument)?;
        place(explanation, "explanation")?;
        let explained = text(&operator.0.explain(&target).to_string());
        // SAFETY: the header's contract.
        unsafe { give(explanation, "explanation", explained.into_raw()) }
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Frees a text of `dml_cuda_explain`; NULL is none.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_free_string(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: the header's contract: it came from `CString::into_raw` in this library, and is freed once.
        drop(unsafe { CString::from_raw(string) });
    }
}

/// The status of an error; 0 of NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_status(error: *const DML_CUDA_ERROR) -> DML_CUDA_STATUS {
    // SAFETY: the header's contract.
    unsafe { follow(error, "error") }.map_or(DML_CUDA_STATUS_OK, |error| error.status)
}

/// What went wrong, where, and what would have been right: a line for each broken rule, else one. The text belongs to the
/// error; NULL of NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_message(error: *const DML_CUDA_ERROR) -> *const c_char {
    // SAFETY: the header's contract.
    unsafe { follow(error, "error") }.map_or(std::ptr::null(), |error| error.message.as_ptr())
}

/// How many rules the descriptor breaks; 0 where the error is of another kind.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_violation_count(error: *const DML_CUDA_ERROR) -> u32 {
    // SAFETY: the header's contract.
    unsafe { follow(error, "error") }.map_or(0, |error| error.violations.len() as u32)
}

/// A broken rule, by its place among them. The texts belong to the error.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_violation(
    error: *const DML_CUDA_ERROR,
    index: u32,
    violation: *mut DML_CUDA_VIOLATION,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let violations = &unsafe { follow(error, "error") }?.violations;
        let found = violations.get(index as usize).ok_or_else(|| {
            Failure::argument(format!("index is {index}, must be below {}, the number of violations", violations.len()))
        })?;
        // SAFETY: the header's contract.
        unsafe { give(violation, "violation", found.as_c()) }
    };
    // SAFETY: no error object is asked for.
    unsafe { run(std::ptr::null_mut(), body) }
}

/// Destroys an error; NULL is none.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_error(error: *mut DML_CUDA_ERROR) {
    // SAFETY: the header's contract.
    unsafe { destroy(error) }
}

/// What ONNX Runtime's sessions of this process have had this library do: a way to see that it is in use.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_onnxruntime_counters(
    counters: *mut DML_CUDA_ONNXRUNTIME_COUNTERS,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    #[cfg(feature = "onnxruntime")]
    let counts = {
        use crate::onnxruntime::{IN_PLACE_RUNS, KERNELS, RUNS};
        [&KERNELS, &RUNS, &IN_PLACE_RUNS].map(|count| count.load(std::sync::atomic::Ordering::Relaxed))
    };
    #[cfg(not(feature = "onnxruntime"))]
    let counts = [0; 3];
    let [nodes, runs, in_place_runs] = counts;
    let counts = DML_CUDA_ONNXRUNTIME_COUNTERS { Nodes: nodes, Runs: runs, InPlaceRuns: in_place_runs };
    // SAFETY: the header's contract.
    unsafe { run(error, || give(counters, "counters", counts)) }
}
