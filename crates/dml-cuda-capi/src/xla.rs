//! Handlers for XLA's foreign function interface, by which JAX calls the operators in compiled programs.
//!
//! | file | |
//! | --- | --- |
//! | ffi | XLA's structures |
//! | call | a call of a handler: its buffers, attributes, stream and errors |
//! | operators | the work of each handler |
//!
//! `dml_cuda.jax` registers the handlers. They use only what version 0.1 of the interface has, which later versions
//! have too.

mod call;
mod ffi;
mod operators;
#[cfg(test)]
mod tests;

use call::Platform;
use ffi::{XLA_FFI_CallFrame, XLA_FFI_Error};

macro_rules! handlers {
    ($($name:ident: $work:path, $platform:expr;)*) => {$(
        #[no_mangle]
        #[doc = concat!("XLA's handler `", stringify!($work), "`.")]
        pub unsafe extern "C" fn $name(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
            // SAFETY: XLA passes a call frame, which it keeps during the call, with buffers as its program describes
            // them.
            unsafe { call::handle(frame, $platform, $work) }
        }
    )*};
}

handlers! {
    dml_cuda_xla_reverse_subsequences_cpu: operators::reverse_subsequences, Platform::Cpu;
    dml_cuda_xla_reverse_subsequences_cuda: operators::reverse_subsequences, Platform::Cuda;
    dml_cuda_xla_fill_value_sequence_cpu: operators::fill_value_sequence, Platform::Cpu;
    dml_cuda_xla_fill_value_sequence_cuda: operators::fill_value_sequence, Platform::Cuda;
}
