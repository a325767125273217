//! Errors as objects that the caller owns.
#![allow(non_camel_case_types, clippy::missing_safety_doc)] // `device` says why

use std::ffi::c_char;
use std::ptr::null_mut;

use dml_cuda::lowering::Names;
use dml_cuda::TensorRole;

use crate::input::{follow, sized, string};
use crate::output::{destroy, enter};
use crate::status::{text, Failure, DML_CUDA_ERROR, DML_CUDA_STATUS, DML_CUDA_STATUS_OK};
use crate::types::{DML_CUDA_NAMES, DML_CUDA_VIOLATION};

/// Returns the status of an error, or 0 for NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_status(error: *const DML_CUDA_ERROR) -> DML_CUDA_STATUS {
    enter!([error], DML_CUDA_STATUS_OK, error.failure.status)
}

/// Returns the message: what went wrong, where, and what is required. It has one line per broken rule, else one line.
/// The text belongs to the error. Returns NULL for NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_message(error: *const DML_CUDA_ERROR) -> *const c_char {
    enter!([error], std::ptr::null(), error.message.as_ptr())
}

/// Returns how many rules the descriptor breaks, or 0 if the error has another cause.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_violation_count(error: *const DML_CUDA_ERROR) -> u32 {
    enter!([error], 0, error.violations.len() as u32)
}

/// Reads the broken rule with this index. The texts belong to the error.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_violation(
    error: *const DML_CUDA_ERROR,
    index: u32,
    violation: *mut DML_CUDA_VIOLATION,
) -> DML_CUDA_STATUS {
    enter!(null_mut(), [error], write(violation), {
        let violations = &error.violations;
        let required = || format!("below {}, the number of violations", violations.len());
        let found = violations.get(index as usize);
        found
            .ok_or_else(|| {
                Failure::argument(format!("index is {index}, but must be {}", required()))
            })?
            .found
    })
}

/// Returns the message of a call on arrays with the caller's names for its arguments. Free the string with
/// `dml_cuda_free_string`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_message_with_names(
    error: *const DML_CUDA_ERROR,
    names: *const DML_CUDA_NAMES,
    message: *mut *mut c_char,
) -> DML_CUDA_STATUS {
    enter!(null_mut(), [error, sized(names)], write(message), {
        // SAFETY: DML_CUDA_NAMES has texts that end in a NUL.
        let name = |pointer, member| unsafe { string(pointer, member) };
        let tensors = [
            (TensorRole::Input, name(names.Input, "names.Input")?),
            (
                TensorRole::SequenceLengths,
                name(names.Lengths, "names.Lengths")?,
            ),
            (TensorRole::Output, name(names.Output, "names.Output")?),
        ];
        let names = Names::new(name(names.Axis, "names.Axis")?, &tensors);
        let failure = &error.failure;
        let message = failure
            .error
            .as_ref()
            .map_or(failure.message.clone(), |error| error.message(&names));
        text(&message).into_raw()
    })
}

/// Destroys an error. Ignores NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_error(error: *mut DML_CUDA_ERROR) {
    // SAFETY: `run` made it, and the program that owns it destroys it once.
    unsafe { destroy(error) }
}
