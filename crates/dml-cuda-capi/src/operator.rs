//! Operators: validate, create, compile, dispatch, explain.
#![allow(non_camel_case_types, clippy::missing_safety_doc)] // as in `device`

use std::ffi::{c_char, c_void, CString};

use dml::{CompiledOperator, Operator};

use crate::device::DML_CUDA_DEVICE;
use crate::input::{self, follow, follow_all, string};
use crate::output::{check, create, destroy, run, write};
use crate::status::*;
use crate::types::*;

/// A validated descriptor: `IDMLOperator`. Belongs to no device. Usable from any thread.
pub struct DML_CUDA_OPERATOR(Operator);

/// An operator that was compiled for a device: `IDMLCompiledOperator`. Usable from several threads at once.
pub struct DML_CUDA_COMPILED_OPERATOR(pub(crate) CompiledOperator);

/// Validates a descriptor at a feature level (0: the highest). Needs no device.
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

/// Validates a descriptor as a version of DirectML does, such as `1.8.0`, including that version's mistakes.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_validate_as(
    desc: *const DML_CUDA_OPERATOR_DESC,
    directml_version: *const c_char,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let (desc, version) = unsafe { (input::operator(desc)?, string(directml_version, "directml_version")?) };
        let version: dml::DirectMlVersion = version.parse().map_err(Failure::argument)?;
        dml::validate_as(&desc, &version)?;
        Ok(())
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Validates and copies a descriptor, at the device's feature level: `IDMLDevice::CreateOperator`. Destroy the operator
/// with `dml_cuda_destroy_operator`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_create_operator(
    device: *const DML_CUDA_DEVICE,
    desc: *const DML_CUDA_OPERATOR_DESC,
    operator: *mut *mut DML_CUDA_OPERATOR,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let make = || {
        // SAFETY: the header's contract.
        let (device, desc) = unsafe { (follow(device, "device")?, input::operator(desc)?) };
        Ok(DML_CUDA_OPERATOR(device.device.create_operator(desc)?))
    };
    // SAFETY: the header's contract.
    unsafe { create(operator, "operator", error, make) }
}

/// Destroys an operator. Ignores NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_operator(operator: *mut DML_CUDA_OPERATOR) {
    // SAFETY: the header's contract.
    unsafe { destroy(operator) }
}

/// Plans an operator for a device and loads its kernels: `IDMLDevice::CompileOperator`. `options` may be NULL. Destroy
/// the result with `dml_cuda_destroy_compiled_operator`. Do not call this while this thread captures a stream.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_compile_operator(
    device: *const DML_CUDA_DEVICE,
    operator: *const DML_CUDA_OPERATOR,
    options: *const DML_CUDA_COMPILE_OPTIONS,
    compiled: *mut *mut DML_CUDA_COMPILED_OPERATOR,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let make = || {
        // SAFETY: the header's contract.
        let (device, operator) = unsafe { (follow(device, "device")?, follow(operator, "operator")?) };
        // SAFETY: as above.
        let options = (!options.is_null()).then(|| unsafe { follow(options, "options") }).transpose()?;
        let options = input::compile_options(device.device.compile_options(), options)?;
        Ok(DML_CUDA_COMPILED_OPERATOR(device.device.compile_operator_with(&operator.0, options)?))
    };
    // SAFETY: the header's contract.
    unsafe { create(compiled, "compiled", error, make) }
}

/// Destroys a compiled operator. Ignores NULL. Queued work still completes, because the kernels stay loaded.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_compiled_operator(compiled: *mut DML_CUDA_COMPILED_OPERATOR) {
    // SAFETY: the header's contract.
    unsafe { destroy(compiled) }
}

/// Reads what a dispatch needs besides its tensors, which is nothing: `IDMLDispatchable::GetBindingProperties`.
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
        let found = DML_CUDA_BINDING_PROPERTIES {
            RequiredDescriptorCount: compiled.0.operator().tensors().count() as u32,
            TemporaryResourceSize: found.temporary_resource_size,
            PersistentResourceSize: found.persistent_resource_size,
        };
        // SAFETY: the header's contract.
        unsafe { write(properties, "properties", found) }
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Runs a compiled operator. On a GPU it queues the work on `stream`: a CUstream or cudaStream_t, where NULL, 1 and 2
/// are the default streams. On the CPU device `stream` must be NULL, and the work is done when the call returns.
///
/// `inputs` are the addresses of the input tensors' first elements, in the order of the descriptor's fields:
/// InputTensor and SequenceLengthsTensor. A fill has no inputs: `input_count` is 0, and `inputs` may be NULL. `output`
/// is the address of the output's first element. A GPU needs device memory, the CPU device host memory. If `output`
/// equals InputTensor's address, the operator runs in place.
///
/// On a GPU the call allocates nothing, copies nothing and waits for nothing, and a CUDA graph can capture it. Keep the
/// memory until the work, or the last replay of its graph, is done. A failed call has queued and written nothing.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_dispatch(
    compiled: *const DML_CUDA_COMPILED_OPERATOR,
    inputs: *const *const c_void,
    input_count: u32,
    output: *mut c_void,
    stream: *mut c_void,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let compiled = unsafe { follow(compiled, "compiled") }?;
        let (found, required) = (input_count as usize, compiled.0.operator().tensors().count() - 1);
        if found != required {
            return Err(dml::DispatchError::from(dml::BindingError::Count { found, required }).into());
        }
        // SAFETY: the header's contract: if not null, it points to `input_count` addresses, which are as wide as
        // `Address`.
        let inputs = unsafe { follow_all(inputs.cast::<dml::Address>(), input_count, "inputs") }?;
        // SAFETY: the header's contract is that of `dispatch_raw`; the kernels stay loaded (`cuda_device`).
        Ok(unsafe { compiled.0.dispatch_raw(inputs, output.into(), dml::RawStream(stream)) }?)
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Explains what a dispatch does on a GPU: merged dimensions, bytes, grids, kernels with their estimates, and why others cannot run.
/// Needs no GPU. `target` is `t4`, `l4`, `a100`, `h100`, `b200`, or `shared=KIB,sm=COUNT[,clusters]`. Free the text
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
        let (operator, target) = unsafe { (follow(operator, "operator")?, string(target, "target")?) };
        let target: dml::GpuTarget = target.parse().map_err(Failure::argument)?;
        check(explanation, "explanation")?;
        let explained = text(&operator.0.explain(&target).to_string());
        // SAFETY: the header's contract.
        unsafe { write(explanation, "explanation", explained.into_raw()) }
    };
    // SAFETY: the header's contract.
    unsafe { run(error, body) }
}

/// Frees a text of `dml_cuda_explain` or `dml_cuda_error_words`. Ignores NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_free_string(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: the header's contract: it came from `CString::into_raw` in this library, and the caller frees it
        // once.
        drop(unsafe { CString::from_raw(string) });
    }
}
