//! Errors as objects that the caller owns.
#![allow(non_camel_case_types, clippy::missing_safety_doc)] // as in `device`

use std::ffi::c_char;

use crate::input::follow;
use crate::output::{destroy, run, write};
use crate::status::{Failure, DML_CUDA_ERROR, DML_CUDA_STATUS, DML_CUDA_STATUS_OK};
use crate::types::DML_CUDA_VIOLATION;

/// Returns the status of an error, or 0 for NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_status(error: *const DML_CUDA_ERROR) -> DML_CUDA_STATUS {
    // SAFETY: the header's contract.
    unsafe { follow(error, "error") }.map_or(DML_CUDA_STATUS_OK, |error| error.failure.status)
}

/// Returns the message: what went wrong, where, and what is required. It has one line per broken rule, else one line. The text
/// belongs to the error. Returns NULL for NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_message(error: *const DML_CUDA_ERROR) -> *const c_char {
    // SAFETY: the header's contract.
    unsafe { follow(error, "error") }.map_or(std::ptr::null(), |error| error.message.as_ptr())
}

/// Returns how many rules the descriptor breaks, or 0 if the error is of another kind.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_violation_count(error: *const DML_CUDA_ERROR) -> u32 {
    // SAFETY: the header's contract.
    unsafe { follow(error, "error") }.map_or(0, |error| error.failure.violations.len() as u32)
}

/// Reads the broken rule with this index. The texts belong to the error.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_violation(
    error: *const DML_CUDA_ERROR,
    index: u32,
    violation: *mut DML_CUDA_VIOLATION,
) -> DML_CUDA_STATUS {
    let body = || {
        // SAFETY: the header's contract.
        let violations = &unsafe { follow(error, "error") }?.failure.violations;
        let found = violations.get(index as usize).ok_or_else(|| {
            Failure::argument(format!("index is {index}, must be below {}, the number of violations", violations.len()))
        })?;
        let found = DML_CUDA_VIOLATION {
            Rule: found.rule.as_ptr(),
            Place: found.place.as_ptr(),
            Found: found.found.as_ptr(),
            Required: found.required.as_ref().map_or(std::ptr::null(), |required| required.as_ptr()),
            NeededFeatureLevel: found.level,
        };
        // SAFETY: the header's contract.
        unsafe { write(violation, "violation", found) }
    };
    // SAFETY: null asks for no error object.
    unsafe { run(std::ptr::null_mut(), body) }
}

/// Destroys an error. Ignores NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_destroy_error(error: *mut DML_CUDA_ERROR) {
    // SAFETY: the header's contract.
    unsafe { destroy(error) }
}
