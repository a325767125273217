//! Status codes, and errors as objects that the caller owns.
#![allow(non_camel_case_types, clippy::missing_safety_doc)] // as in `device`

use std::ffi::{c_char, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

use dml::{FeatureLevel, Requirement, ValidationError, ValidationErrors};

use crate::input::follow;
use crate::output::{destroy, write};
use crate::types::{DML_CUDA_FEATURE_LEVEL, DML_CUDA_VIOLATION};

/// What a function returns.
pub type DML_CUDA_STATUS = u32;

/// Success.
pub const DML_CUDA_STATUS_OK: DML_CUDA_STATUS = 0;
/// A pointer is NULL that must not be, or a value is not in its enumeration.
pub const DML_CUDA_STATUS_INVALID_ARGUMENT: DML_CUDA_STATUS = 1;
/// The descriptor breaks rules of its operator. The error lists them.
pub const DML_CUDA_STATUS_VALIDATION: DML_CUDA_STATUS = 2;
/// The device could not be opened: no driver, no such GPU.
pub const DML_CUDA_STATUS_DEVICE: DML_CUDA_STATUS = 3;
/// The operator could not be compiled for the device.
pub const DML_CUDA_STATUS_COMPILE: DML_CUDA_STATUS = 4;
/// The pointers do not fit the operator. Nothing was queued.
pub const DML_CUDA_STATUS_BINDING: DML_CUDA_STATUS = 5;
/// The work could not be queued.
pub const DML_CUDA_STATUS_DISPATCH: DML_CUDA_STATUS = 6;
/// A bug in this library. The message says where.
pub const DML_CUDA_STATUS_INTERNAL: DML_CUDA_STATUS = 7;
/// PyTorch is not in the process, is too old, or did not do what it was asked for.
pub const DML_CUDA_STATUS_TORCH: DML_CUDA_STATUS = 8;

/// Why a call failed. The caller owns it and destroys it with `dml_cuda_destroy_error`.
pub struct DML_CUDA_ERROR {
    pub(crate) status: DML_CUDA_STATUS,
    pub(crate) message: CString,
    pub(crate) violations: Vec<Violation>,
}

/// The texts of a [`DML_CUDA_VIOLATION`].
pub(crate) struct Violation {
    rule: CString,
    place: CString,
    found: CString,
    required: Option<CString>,
    level: DML_CUDA_FEATURE_LEVEL,
}

impl Violation {
    fn new(error: &ValidationError) -> Self {
        let (required, level) = match &error.requirement {
            Requirement::MustBe(required) => (Some(text(required)), 0),
            Requirement::Needs(level) => (None, level_value(*level)),
        };
        Self { rule: text(error.rule.id()), place: text(&error.place), found: text(&error.found), required, level }
    }

    pub fn as_c(&self) -> DML_CUDA_VIOLATION {
        DML_CUDA_VIOLATION {
            Rule: self.rule.as_ptr(),
            Place: self.place.as_ptr(),
            Found: self.found.as_ptr(),
            Required: self.required.as_ref().map_or(std::ptr::null::<c_char>(), |required| required.as_ptr()),
            NeededFeatureLevel: self.level,
        }
    }
}

/// DirectML's number of a feature level: 0x5200 for 5_2.
pub(crate) fn level_value(level: FeatureLevel) -> DML_CUDA_FEATURE_LEVEL {
    let mut numbers = level.name().split('_').map(|number| number.parse::<u32>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    major << 12 | minor << 8
}

/// A text for C. It ends at the first NUL, but no text of this library has one.
pub(crate) fn text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// A failure before it becomes a status and an error object.
pub(crate) struct Failure {
    status: DML_CUDA_STATUS,
    message: String,
    violations: Vec<ValidationError>,
}

impl Failure {
    pub fn new(status: DML_CUDA_STATUS, message: impl ToString) -> Self {
        Self { status, message: message.to_string(), violations: Vec::new() }
    }

    pub fn argument(message: impl ToString) -> Self {
        Self::new(DML_CUDA_STATUS_INVALID_ARGUMENT, message)
    }

    #[cfg(unix)] // PyTorch reads it
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<ValidationErrors> for Failure {
    fn from(errors: ValidationErrors) -> Self {
        let message = errors.to_string();
        Self { status: DML_CUDA_STATUS_VALIDATION, message, violations: errors.into_iter().collect() }
    }
}

impl From<dml::CompileError> for Failure {
    fn from(error: dml::CompileError) -> Self {
        let status = match error {
            dml::CompileError::PointerAlignment { .. } => DML_CUDA_STATUS_INVALID_ARGUMENT,
            _ => DML_CUDA_STATUS_COMPILE,
        };
        Self::new(status, error)
    }
}

impl From<dml::DeviceError> for Failure {
    fn from(error: dml::DeviceError) -> Self {
        Self::new(DML_CUDA_STATUS_DEVICE, error)
    }
}

impl From<dml::DispatchError> for Failure {
    fn from(error: dml::DispatchError) -> Self {
        let status = match error {
            dml::DispatchError::Binding(_) | dml::DispatchError::Stream { .. } => DML_CUDA_STATUS_BINDING,
            _ => DML_CUDA_STATUS_DISPATCH,
        };
        Self::new(status, error)
    }
}

/// Runs the body of a function of the header. Turns a failure or a panic into a status and an error object.
///
/// # Safety
///
/// `error` is null, or a pointer can be written there.
pub(crate) unsafe fn run(
    error: *mut *mut DML_CUDA_ERROR,
    body: impl FnOnce() -> Result<(), Failure>,
) -> DML_CUDA_STATUS {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let what = what.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Failure::new(DML_CUDA_STATUS_INTERNAL, format!("a fault of dml-cuda: {what}; please report it")))
    });
    let (status, object) = match outcome {
        Ok(()) => (DML_CUDA_STATUS_OK, std::ptr::null_mut()),
        Err(Failure { status, message, violations }) => {
            let object = DML_CUDA_ERROR {
                status,
                message: text(&message),
                violations: violations.iter().map(Violation::new).collect(),
            };
            (status, if error.is_null() { std::ptr::null_mut() } else { Box::into_raw(Box::new(object)) })
        }
    };
    if !error.is_null() {
        // SAFETY: the caller's promise.
        unsafe { error.write(object) };
    }
    status
}

/// Returns the status of an error, or 0 for NULL.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_error_status(error: *const DML_CUDA_ERROR) -> DML_CUDA_STATUS {
    // SAFETY: the header's contract.
    unsafe { follow(error, "error") }.map_or(DML_CUDA_STATUS_OK, |error| error.status)
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
    unsafe { follow(error, "error") }.map_or(0, |error| error.violations.len() as u32)
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
        let violations = &unsafe { follow(error, "error") }?.violations;
        let found = violations.get(index as usize).ok_or_else(|| {
            Failure::argument(format!("index is {index}, must be below {}, the number of violations", violations.len()))
        })?;
        // SAFETY: the header's contract.
        unsafe { write(violation, "violation", found.as_c()) }
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
