//! The kernels that PyTorch calls, on any thread. They turn failures into C++ exceptions.

use std::cell::RefCell;
use std::ffi::{c_char, CString};
use std::ptr::null;
use std::sync::OnceLock;

use super::libtorch::{Torch, Value};
use super::torch_reversal::{attempt, IN_PLACE};
use crate::status::{caught, text};

/// The PyTorch that the operators are registered with.
pub static TORCH: OnceLock<Torch> = OnceLock::new();

thread_local! {
    /// The message of this thread's last failure, which stays until the next.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// The kernel of one of the [schemas](super::schemas). Throws `std::runtime_error`.
///
/// The exception passes this function, which has the ABI `C-unwind`, and no variable that needs a destructor. So it has
/// no landing pad: the exception passes it as it passes functions of C, no Rust code runs, and the unwinder of this
/// library, which may be another than libstdc++'s, is not used.
///
/// # Safety
///
/// PyTorch calls it as a kernel of `aoti_torch_library_impl`: the stack has the schema's arguments, which belong to the
/// kernel, and place for its results.
pub unsafe extern "C-unwind" fn kernel<const KIND: u8>(stack: *mut Value, _: u64, _: u64) {
    // Without it, no PyTorch could call this function, or catch an exception.
    let Some(torch) = TORCH.get() else {
        std::process::abort()
    };
    // SAFETY: PyTorch passes a stack with the schema's arguments.
    let message = unsafe { run(torch, stack, KIND) };
    if !message.is_null() {
        // SAFETY: a text that ends in a NUL. The function copies it.
        unsafe { (torch.cpp.throw_runtime_error)(message) }
    }
}

/// Runs a kernel. Returns null, or a message that stays until this thread's next failure.
///
/// # Safety
///
/// The stack is that of [`kernel`].
unsafe fn run(torch: &Torch, stack: *mut Value, kind: u8) -> *const c_char {
    // SAFETY: the stack is the kernel's.
    let Err(failure) = caught(|| unsafe { attempt(torch, stack, kind) }) else {
        return null();
    };
    let name = if kind == IN_PLACE {
        "reverse_subsequences_"
    } else {
        "reverse_subsequences"
    };
    let message = text(&format!("dml_cuda::{name}: {failure}"));
    let words = message.as_ptr();
    let kept = MESSAGE.try_with(|kept| kept.replace(message));
    kept.map_or(
        c"dml_cuda: a reversal failed in a thread that ends".as_ptr(),
        |_| words,
    )
}
