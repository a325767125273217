//! Operators: validate, create, compile, dispatch, explain.
#![allow(non_camel_case_types, clippy::missing_safety_doc)] // `device` says why

use std::ffi::{c_char, c_void, CString};

use dml_cuda::{CompiledOperator, Operator};

use crate::device::DML_CUDA_DEVICE;
use crate::input::{self, follow, follow_all, operator_desc, optional, string};
use crate::output::{destroy, enter};
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
    enter!(
        error,
        [operator_desc(desc)],
        dml_cuda::validate(&desc, input::feature_level(feature_level)?)?
    )
}

/// Validates a descriptor as a version of DirectML does, such as `1.8.0`, including that version's mistakes.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_validate_as(
    desc: *const DML_CUDA_OPERATOR_DESC,
    directml_version: *const c_char,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(error, [operator_desc(desc), string(directml_version)], {
        let version: dml_cuda::DirectMlVersion =
            directml_version.parse().map_err(Failure::argument)?;
        dml_cuda::validate_as(&desc, &version)?
    })
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
    enter!(error, [device, operator_desc(desc)], create(operator), {
        DML_CUDA_OPERATOR(device.device.create_operator(desc)?)
    })
}

/// Destroys an operator. Ignores NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_operator(operator: *mut DML_CUDA_OPERATOR) {
    // SAFETY: `enter` made it, and the program destroys it once.
    unsafe { destroy(operator) }
}

/// Plans an operator for a device and loads its kernels: `IDMLDevice::CompileOperator`. Destroy the result with
/// `dml_cuda_destroy_compiled_operator`. With a driver older than CUDA 12.3, do not call this while this thread
/// captures a stream.
///
/// `options` is a string such as `specialize=always select=measure`, on top of `DML_CUDA_COMPILE_OPTIONS` in the
/// environment, or NULL. docs/compile-options.md lists all options.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_compile_operator(
    device: *const DML_CUDA_DEVICE,
    operator: *const DML_CUDA_OPERATOR,
    options: *const c_char,
    compiled: *mut *mut DML_CUDA_COMPILED_OPERATOR,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(
        error,
        [device, operator, optional(options)],
        create(compiled),
        {
            DML_CUDA_COMPILED_OPERATOR(
                device
                    .with_options(options)?
                    .compile_operator(&operator.0)?,
            )
        }
    )
}

/// Destroys a compiled operator. Ignores NULL. Queued work still completes, because the kernels stay loaded.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_compiled_operator(
    compiled: *mut DML_CUDA_COMPILED_OPERATOR,
) {
    // SAFETY: `enter` made it, and the program destroys it once.
    unsafe { destroy(compiled) }
}

/// Reads what a dispatch needs besides its tensors, which is nothing: `IDMLDispatchable::GetBindingProperties`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_get_binding_properties(
    compiled: *const DML_CUDA_COMPILED_OPERATOR,
    properties: *mut DML_CUDA_BINDING_PROPERTIES,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(error, [compiled], write(properties), {
        let found = compiled.0.binding_properties();
        DML_CUDA_BINDING_PROPERTIES {
            RequiredDescriptorCount: compiled.0.operator().tensors().count() as u32,
            TemporaryResourceSize: found.temporary_resource_size,
            PersistentResourceSize: found.persistent_resource_size,
        }
    })
}

/// Runs a compiled operator. On a GPU it queues the work on `stream`: a CUstream or cudaStream_t, where NULL, 1 and 2
/// are the default streams. On the CPU device `stream` must be NULL, and the work is done when the call returns.
///
/// The stream must belong to the GPU's primary context, which the CUDA runtime uses and `cuDevicePrimaryCtxRetain`
/// returns. A stream of a context that `cuCtxCreate` made must not be passed to this or to any other function.
///
/// `inputs` are the addresses of the input tensors' first elements, in the order of the descriptor's fields:
/// InputTensor and SequenceLengthsTensor. A fill has no inputs: `input_count` is 0, and `inputs` may be NULL. `output`
/// is the address of the output's first element. A GPU needs device memory, the CPU device host memory. If `output`
/// equals InputTensor's address, the operator runs in place.
///
/// On a GPU the call allocates nothing, copies nothing and waits for nothing. Keep the memory until the work, or the
/// last replay of its graph, is done. A failed call has queued and written nothing.
///
/// A CUDA graph can capture the call. By default, the first captured call of a layout also makes the driver compile and
/// load a kernel for it, in about 13 ms, or in less than 1 ms from the driver's cache. At most 1,024 such kernels stay
/// loaded per GPU. Calls of an operator that was compiled with `specialize=never` use what is already loaded, as fast
/// as any other call.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_dispatch(
    compiled: *const DML_CUDA_COMPILED_OPERATOR,
    inputs: *const *const c_void,
    input_count: u32,
    output: *mut c_void,
    stream: *mut c_void,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(error, [compiled], {
        let (found, required) = (
            input_count as usize,
            compiled.0.operator().tensors().count() - 1,
        );
        if found != required {
            // Before the addresses are read: there may be fewer than `input_count`.
            return Err(dml_cuda::BindingError::Count { found, required }.into());
        }
        // SAFETY: NULL, or `input_count` addresses, which are as wide as `Address`.
        let inputs =
            unsafe { follow_all(inputs.cast::<dml_cuda::Address>(), input_count, "inputs") }?;
        // SAFETY: dml_cuda.h has the promises of `dispatch_raw`. Kernels stay loaded (`cuda_device`).
        unsafe {
            compiled
                .0
                .dispatch_raw(inputs, output.into(), dml_cuda::RawStream(stream))
        }?
    })
}

/// Explains what a dispatch does on a GPU: merged dimensions, bytes, grids, kernels with their estimates, and why
/// others cannot run. Needs no GPU. `target` is `t4`, `l4`, `a100`, `h100`, `h200`, `b200`, or
/// `shared=KIB,sm=COUNT[,clusters][,bandwidth=GBPS][,clock=MHZ][,l2=KIB][,threads=COUNT]`. Free the text with
/// `dml_cuda_free_string`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_explain(
    operator: *const DML_CUDA_OPERATOR,
    target: *const c_char,
    explanation: *mut *mut c_char,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(error, [operator, string(target)], write(explanation), {
        let target: dml_cuda::GpuTarget = target.parse().map_err(Failure::argument)?;
        text(&operator.0.explain(&target).to_string()).into_raw()
    })
}

/// Frees a string of `dml_cuda_explain` or `dml_cuda_error_message_with_names`. Ignores NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_free_string(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: it came from `CString::into_raw` in this library, and the program frees it once.
        drop(unsafe { CString::from_raw(string) });
    }
}
