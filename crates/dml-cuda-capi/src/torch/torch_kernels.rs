//! The kernels that PyTorch calls, on any thread. They turn failures into C++ exceptions.

use std::ffi::{c_char, CString};
use std::ptr::null_mut;
use std::sync::OnceLock;

use super::libtorch::{failure, Torch, Value};
use super::torch_reversal::attempt;
use crate::status::{caught, text};

/// The PyTorch that the operators are registered with.
pub static TORCH: OnceLock<Torch> = OnceLock::new();

/// `reverse_subsequences(Tensor x, Tensor lengths, int dim) -> Tensor`, or
/// `reverse_subsequences_(Tensor(a!) x, Tensor lengths, int dim) -> ()`. Throws `std::runtime_error`.
///
/// # Safety
///
/// As for every kernel of `aoti_torch_library_impl`: the stack has `inputs` values, which are of the schema's types and belong to the
/// kernel, and place for `outputs` values.
pub unsafe extern "C-unwind" fn kernel<const IN_PLACE: bool>(stack: *mut Value, inputs: u64, outputs: u64) {
    // SAFETY: the caller's promise.
    let message = unsafe { run(stack, [inputs, outputs], IN_PLACE) };
    if !message.is_null() {
        // SAFETY: `run` returned it.
        unsafe { throw(message) }
    }
}

/// Throws a C++ exception with a message, which it frees.
///
/// The exception passes this function and a kernel. Both have the ABI `C-unwind`, and no variable that needs a destructor. So neither has a
/// landing pad: the exception passes them as it passes functions of C, no Rust code runs, and the unwinder of this library, which may be
/// another than libstdc++'s, is not used.
///
/// # Safety
///
/// `message` is of [`run`].
#[cold]
#[inline(never)]
unsafe extern "C-unwind" fn throw(message: *mut c_char) -> ! {
    let mut words: [c_char; 4096] = [0; 4096];
    // SAFETY: the caller's promise.
    unsafe { take(message, &mut words) };
    match TORCH.get() {
        // SAFETY: the words end in a NUL.
        Some(torch) => unsafe { (torch.stdcpp.throw_runtime_error)(words.as_ptr()) },
        // `run` has used it.
        None => std::process::abort(),
    }
}

/// Copies a message, as much of it as fits, and frees it.
///
/// # Safety
///
/// `message` is of [`run`], and not used again.
unsafe fn take(message: *mut c_char, words: &mut [c_char; 4096]) {
    // SAFETY: `run` made it with `into_raw`.
    let message = unsafe { CString::from_raw(message) };
    let fits = words.len() - 1;
    words[..fits].iter_mut().zip(message.as_bytes()).for_each(|(to, &from)| *to = from as c_char);
}

/// Runs a kernel. Returns null, or a message.
///
/// # Safety
///
/// As for [`kernel`].
unsafe fn run(stack: *mut Value, counts: [u64; 2], in_place: bool) -> *mut c_char {
    let body = || match TORCH.get() {
        // SAFETY: the caller's promise.
        Some(torch) => unsafe { attempt(torch, stack, counts, in_place) },
        None => Err(failure("no PyTorch is registered")),
    };
    let Err(failure) = caught(body) else { return null_mut() };
    let name = if in_place { "reverse_subsequences_" } else { "reverse_subsequences" };
    text(&format!("dml_cuda::{name}: {failure}")).into_raw()
}
