//! `libdml_cuda_torch.so` registers PyTorch's operators of `libdml_cuda.so` when it is loaded: by
//! `torch.ops.load_library`, by `dlopen`, as a linked library, or by `LD_PRELOAD`.
//!
//! It has no code of its own but this. It names `libtorch_cpu.so` and `libdml_cuda.so.0.3` as needed, so the loader
//! initializes both before it. Elsewhere than on Linux it is empty.
#![cfg(target_os = "linux")]

use std::ffi::{c_char, c_void, CStr};
use std::ptr::null_mut;

extern "C" {
    fn dml_cuda_register_torch(error: *mut *mut c_void) -> u32;
    fn dml_cuda_error_message(error: *const c_void) -> *const c_char;
    fn dml_cuda_destroy_error(error: *mut c_void);
}

/// The loader calls the functions of this section when it has loaded the library.
#[used]
#[link_section = ".init_array"]
static REGISTER: extern "C" fn() = register;

/// Registers the operators. A library that is loading cannot return an error, so errors go to stderr.
extern "C" fn register() {
    let mut error = null_mut();
    // SAFETY: dml_cuda.h's contract: an error object is written there.
    if unsafe { dml_cuda_register_torch(&mut error) } != 0 {
        // SAFETY: the object is the one of the call above. Its message is valid until it is destroyed.
        let message = unsafe { CStr::from_ptr(dml_cuda_error_message(error)) };
        eprintln!("libdml_cuda_torch.so: {}", message.to_string_lossy());
        // SAFETY: it came from the call above, and is not used again.
        unsafe { dml_cuda_destroy_error(error) };
    }
}
