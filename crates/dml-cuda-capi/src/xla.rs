//! Handlers for XLA's foreign function interface, by which JAX calls the operators in compiled programs.
//!
//! | file | |
//! | --- | --- |
//! | ffi | XLA's structures |
//! | call | a call of a handler: its buffers, attributes, stream and errors |
//! | operators | the work of each handler |
//!
//! `dml_cuda.jax` registers the handlers. They use only what version 0.1 of the interface has, which later versions have too.

mod call;
mod ffi;
mod operators;
#[cfg(test)]
mod tests;

use call::Place;
use ffi::{XLA_FFI_CallFrame, XLA_FFI_Error, XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE};

/// Defines a handler for each platform. A CUDA call queues the same kernel on every run, so XLA may record it in a CUDA graph.
macro_rules! handlers {
    ($($name:ident, $place:expr, $traits:expr, $work:path;)*) => {$(
        #[no_mangle]
        #[doc = concat!("XLA's handler `", stringify!($work), "`.")]
        pub unsafe extern "C" fn $name(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
            // SAFETY: XLA passes a call frame, which it keeps during the call, with buffers as its program describes them.
            unsafe { call::handle(frame, $traits, |call| $work(call, $place)) }
        }
    )*};
}

handlers! {
    dml_cuda_xla_reverse_subsequences_cpu, Place::Host, 0, operators::reverse_subsequences;
    dml_cuda_xla_reverse_subsequences_cuda, Place::Gpu, XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE, operators::reverse_subsequences;
    dml_cuda_xla_fill_value_sequence_cpu, Place::Host, 0, operators::fill_value_sequence;
    dml_cuda_xla_fill_value_sequence_cuda, Place::Gpu, XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE, operators::fill_value_sequence;
}
