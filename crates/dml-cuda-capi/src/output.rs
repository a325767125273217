//! Writes results and errors through the pointers that callers pass.

use crate::status::{caught, text, wrong, Failure, DML_CUDA_ERROR, DML_CUDA_STATUS, DML_CUDA_STATUS_OK};

/// Checks that there is a place for a result.
pub(crate) fn check<T>(to: *mut T, name: &str) -> Result<(), Failure> {
    if to.is_null() {
        return wrong(format!("{name} is NULL, must be where the result goes"));
    }
    Ok(())
}

/// Writes a result.
///
/// # Safety
///
/// `to` is null, or a `T` can be written there.
pub(crate) unsafe fn write<T>(to: *mut T, name: &str, value: T) -> Result<(), Failure> {
    check(to, name)?;
    // SAFETY: the caller's promise.
    unsafe { to.write(value) };
    Ok(())
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
    let failure = caught(body).err();
    let status = failure.as_ref().map_or(DML_CUDA_STATUS_OK, |failure| failure.status);
    if !error.is_null() {
        let object = |failure: Failure| DML_CUDA_ERROR { message: text(&failure.message), failure };
        let object = failure.map_or(std::ptr::null_mut(), |failure| Box::into_raw(Box::new(object(failure))));
        // SAFETY: the caller's promise.
        unsafe { error.write(object) };
    }
    status
}

/// The body of a function that makes an object: `make` runs only if there is a place for the result.
///
/// # Safety
///
/// `to` and `error` are null, or a pointer can be written there.
pub(crate) unsafe fn create<T>(
    to: *mut *mut T,
    name: &str,
    error: *mut *mut DML_CUDA_ERROR,
    make: impl FnOnce() -> Result<T, Failure>,
) -> DML_CUDA_STATUS {
    let body = || {
        check(to, name)?;
        // SAFETY: the caller's promise.
        unsafe { write(to, name, Box::into_raw(Box::new(make()?))) }
    };
    // SAFETY: the caller's promise.
    unsafe { run(error, body) }
}

/// Destroys an object that [`create`] made. Ignores null.
///
/// # Safety
///
/// `object` is null, or came from [`create`] and is not used again.
pub(crate) unsafe fn destroy<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller's promise.
        let object = unsafe { Box::from_raw(object) };
        // No panic is expected here, but one must not cross into C.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(object)));
    }
}
