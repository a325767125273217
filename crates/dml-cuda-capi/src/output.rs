//! Writes results and errors through the pointers that callers pass.

use crate::status::{caught, wrong, Failure, DML_CUDA_ERROR, DML_CUDA_STATUS, DML_CUDA_STATUS_OK};

/// The body of a function of the header, with what its arguments point to: the one way in.
///
/// | call | result |
/// | --- | --- |
/// | `enter!(error, [arguments], body)` | a status; the body's value is ignored |
/// | `enter!(error, [arguments], write(to), body)` | a status, and the body's value at `to` |
/// | `enter!(error, [arguments], create(to), body)` | a status, and at `to` the body's value as an object |
/// | `enter!([argument], none, body)` | the body's value, or `none` for NULL |
///
/// An argument is a pointer's name, or `read(name)` with a function of the form of [`follow`](crate::input::follow),
/// which the caller imports. In the body the name is what the pointer points to, and `return` and `?` leave the body.
macro_rules! enter {
    (@read $pointer:ident) => {
        enter!(@read follow($pointer))
    };
    (@read $read:ident($pointer:ident)) => {
        // SAFETY: a program's pointer is NULL, or valid during the call (the preamble of dml_cuda.h).
        let $pointer = unsafe { $read($pointer, stringify!($pointer)) }?;
    };
    ([$pointer:ident], $none:expr, $body:expr) => {
        // SAFETY: a program's pointer is NULL, or valid during the call.
        unsafe { follow($pointer, stringify!($pointer)) }.map_or($none, |$pointer| $body)
    };
    ($error:expr, $arguments:tt, write($to:ident), $body:expr) => {
        enter!($error, $arguments, {
            $crate::output::check($to, stringify!($to))?;
            let value = $body;
            // SAFETY: not NULL (`check`), so a result can be written there.
            unsafe { $to.write(value) }
        })
    };
    ($error:expr, $arguments:tt, create($to:ident), $body:expr) => {
        enter!($error, $arguments, write($to), Box::into_raw(Box::new($body)))
    };
    ($error:expr, [$($read:ident $(($pointer:ident))?),*], $body:expr) => {{
        let body = || {
            $(enter!(@read $read $(($pointer))?);)*
            $body;
            Ok(())
        };
        // SAFETY: `$error` is NULL, or an error can be written there (the preamble of dml_cuda.h).
        unsafe { $crate::output::run($error, body) }
    }};
}
pub(crate) use enter;

/// Checks that there is a place for a result.
pub(crate) fn check<T>(to: *mut T, name: &str) -> Result<(), Failure> {
    if to.is_null() {
        return wrong(format!("{name} is NULL, but must be where the result goes"));
    }
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
    let status = failure
        .as_ref()
        .map_or(DML_CUDA_STATUS_OK, |failure| failure.status);
    if !error.is_null() {
        let object = |failure| Box::into_raw(Box::new(DML_CUDA_ERROR::new(failure)));
        let object = failure.map_or(std::ptr::null_mut(), object);
        // SAFETY: not null, so an error can be written there.
        unsafe { error.write(object) };
    }
    status
}

/// Destroys an object that [`enter`] created. Ignores null.
///
/// # Safety
///
/// `object` is null, or came from [`enter`] and is not used again.
pub(crate) unsafe fn destroy<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: `enter` made it with `Box::into_raw`, and it is destroyed once.
        let object = unsafe { Box::from_raw(object) };
        // No panic is expected here, but one must not cross into C.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(object)));
    }
}
