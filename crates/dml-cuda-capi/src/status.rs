//! Status codes, and the reason of a failed call.
#![allow(non_camel_case_types)] // the header's names

use std::ffi::CString;
use std::panic::{catch_unwind, AssertUnwindSafe};

use dml_cuda::lowering::Names;
use dml_cuda::{DispatchError, Error, FeatureLevel, Requirement, ValidationError};

use crate::types::*;

/// The return value of a function.
pub type DML_CUDA_STATUS = u32;

/// Success.
pub const DML_CUDA_STATUS_OK: DML_CUDA_STATUS = 0;
/// A required pointer is NULL, or a value is not in its enumeration.
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
    pub(crate) failure: Failure,
    pub(crate) message: CString,
    pub(crate) violations: Vec<Violation>,
}

impl DML_CUDA_ERROR {
    pub(crate) fn new(failure: Failure) -> Self {
        let broken = match failure.error.as_deref() {
            Some(Error::Validation(errors)) => errors.errors(),
            _ => &[],
        };
        Self {
            message: text(&failure.message),
            violations: broken.iter().map(Violation::new).collect(),
            failure,
        }
    }
}

/// A broken rule for C.
pub(crate) struct Violation {
    pub found: DML_CUDA_VIOLATION,
    /// The strings that it points to.
    _texts: [Option<CString>; 5],
}

impl Violation {
    fn new(error: &ValidationError) -> Self {
        let (required, level) = match &error.requirement {
            Requirement::MustBe(required) => (Some(required.as_str()), 0),
            Requirement::Needs(level) => (None, level_value(*level)),
            _ => (None, 0),
        };
        let (place, whole_place) = (&error.place, error.place.to_string());
        let texts = [
            Some(error.rule.id()),
            Some(&whole_place),
            Some(&error.found),
            required,
            place.field,
        ];
        let texts = texts.map(|found| found.map(text));
        let [rule, whole_place, found, required, field] = texts.each_ref().map(|found| {
            found
                .as_ref()
                .map_or(std::ptr::null(), |found| found.as_ptr())
        });
        Self {
            found: DML_CUDA_VIOLATION {
                Rule: rule,
                Place: whole_place,
                Found: found,
                Required: required,
                NeededFeatureLevel: level,
                Tensor: place.tensor.map_or(DML_CUDA_TENSOR_ROLE_NONE, |tensor| {
                    tensor as DML_CUDA_TENSOR_ROLE
                }),
                Index: place.index.map_or(-1, |index| index as i32),
                Field: field,
            },
            _texts: texts,
        }
    }
}

/// DirectML's number of a feature level: 0x5200 for 5_2.
pub(crate) fn level_value(level: FeatureLevel) -> DML_CUDA_FEATURE_LEVEL {
    let mut numbers = level
        .name()
        .split('_')
        .map(|number| number.parse::<u32>().unwrap_or(0));
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
    pub status: DML_CUDA_STATUS,
    pub message: String,
    /// The error, which has the broken rules, and the message with other names.
    pub error: Option<Box<Error>>,
}

impl Failure {
    pub fn new(status: DML_CUDA_STATUS, message: impl ToString) -> Self {
        Self {
            status,
            message: message.to_string(),
            error: None,
        }
    }

    pub fn argument(message: impl ToString) -> Self {
        Self::new(DML_CUDA_STATUS_INVALID_ARGUMENT, message)
    }

    /// An error with the caller's names for its arguments.
    pub fn of(error: Error, names: &Names<'_>) -> Self {
        let status = match &error {
            Error::Validation(_) => DML_CUDA_STATUS_VALIDATION,
            Error::Lowering(_) | Error::CompileOptions(_) => DML_CUDA_STATUS_INVALID_ARGUMENT,
            Error::Compile(_) => DML_CUDA_STATUS_COMPILE,
            Error::Device(_) => DML_CUDA_STATUS_DEVICE,
            Error::Binding(_)
            | Error::Dispatch(DispatchError::Binding(_) | DispatchError::Stream { .. }) => {
                DML_CUDA_STATUS_BINDING
            }
            Error::Dispatch(_) => DML_CUDA_STATUS_DISPATCH,
            _ => DML_CUDA_STATUS_INTERNAL,
        };
        Self {
            status,
            message: error.message(names),
            error: Some(Box::new(error)),
        }
    }

    /// Whether the caller's arguments are at fault.
    pub fn is_of_caller(&self) -> bool {
        matches!(
            self.status,
            DML_CUDA_STATUS_INVALID_ARGUMENT | DML_CUDA_STATUS_VALIDATION | DML_CUDA_STATUS_BINDING
        )
    }
}

/// A failure for which the caller's arguments are at fault.
pub(crate) fn wrong<T>(message: impl ToString) -> Result<T, Failure> {
    Err(Failure::argument(message))
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl<T: Into<Error>> From<T> for Failure {
    fn from(error: T) -> Self {
        Self::of(error.into(), &Names::DIRECTML)
    }
}

/// Runs a body that C called. Turns a panic into a failure.
pub(crate) fn caught<E: From<Failure>>(body: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let what = what
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(Failure::new(
            DML_CUDA_STATUS_INTERNAL,
            format!("a fault of dml-cuda: {what}; please report it"),
        )
        .into())
    })
}
