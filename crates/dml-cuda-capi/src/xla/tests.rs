//! The handlers, called as XLA calls them. `python/tests/test_jax.py` calls them through JAX.

use std::cell::RefCell;
use std::ffi::{c_int, c_void, CStr};
use std::mem::{size_of, zeroed};
use std::ptr::{null, null_mut};

use super::ffi::*;
use super::*;

thread_local! {
    /// The code and the message of the last error that was made.
    static ERROR: RefCell<Option<(c_int, String)>> = const { RefCell::new(None) };
}

unsafe extern "C" fn error_create(args: *mut XLA_FFI_Error_Create_Args) -> *mut XLA_FFI_Error {
    // SAFETY: the handler passes live arguments, whose message is a text.
    let (args, message) = unsafe { (&*args, CStr::from_ptr((*args).message)) };
    assert_eq!(args.struct_size, size_of::<XLA_FFI_Error_Create_Args>());
    ERROR.set(Some((args.errc, message.to_string_lossy().into_owned())));
    std::ptr::dangling_mut()
}

/// Fails with the call's context as its error, if it is not null.
unsafe extern "C" fn stream_get(args: *mut XLA_FFI_Stream_Get_Args) -> *mut XLA_FFI_Error {
    // SAFETY: the handler passes live arguments.
    unsafe { (*args).ctx.cast() }
}

fn version(major_version: c_int, minor_version: c_int) -> XLA_FFI_Api_Version {
    XLA_FFI_Api_Version {
        struct_size: 24,
        extension_start: null_mut(),
        major_version,
        minor_version,
    }
}

fn api(major: c_int, minor: c_int) -> XLA_FFI_Api {
    XLA_FFI_Api {
        struct_size: size_of::<XLA_FFI_Api>(),
        extension_start: null_mut(),
        api_version: version(major, minor),
        internal_api: null(),
        XLA_FFI_Error_Create: error_create,
        XLA_FFI_Error_GetMessage: null(),
        XLA_FFI_Error_Destroy: null(),
        XLA_FFI_Handler_Register: null(),
        XLA_FFI_Stream_Get: stream_get,
    }
}

/// A frame without arguments, results and attributes.
fn frame(api: &XLA_FFI_Api, stage: c_int) -> XLA_FFI_CallFrame {
    // SAFETY: numbers and pointers, which may be zero and null.
    let mut frame: XLA_FFI_CallFrame = unsafe { zeroed() };
    (frame.api, frame.stage) = (api, stage);
    frame
}

#[test]
fn a_handler_says_its_version_and_traits() {
    for (handler, traits) in [
        (
            dml_cuda_xla_reverse_subsequences_cpu as unsafe extern "C" fn(_) -> _,
            0,
        ),
        (dml_cuda_xla_fill_value_sequence_cpu, 0),
        (dml_cuda_xla_reverse_subsequences_cuda, 1),
        (dml_cuda_xla_fill_value_sequence_cuda, 1),
    ] {
        for (xla, answer) in [((0, 1), (0, 1)), ((0, 5), (0, 5)), ((1, 7), (0, 1))] {
            let mut metadata = XLA_FFI_Metadata {
                struct_size: 48,
                api_version: version(9, 9),
                traits: 9,
            };
            let mut extension = XLA_FFI_Metadata_Extension {
                extension_base: XLA_FFI_Extension_Base {
                    struct_size: 24,
                    r#type: XLA_FFI_EXTENSION_METADATA,
                    next: null_mut(),
                },
                metadata: &mut metadata,
            };
            let api = api(xla.0, xla.1);
            let mut frame = frame(&api, XLA_FFI_EXECUTION_STAGE_EXECUTE);
            frame.extension_start = (&raw mut extension).cast();
            // SAFETY: a frame as XLA makes it.
            assert!(unsafe { handler(&mut frame) }.is_null());
            let found = &metadata.api_version;
            assert_eq!(
                ((found.major_version, found.minor_version), metadata.traits),
                (answer, traits)
            );
        }
    }
}

#[test]
fn only_an_execution_runs() {
    let api = api(0, 1);
    for stage in 0..5 {
        ERROR.take();
        // SAFETY: a frame as XLA makes it.
        let failed =
            !unsafe { dml_cuda_xla_reverse_subsequences_cpu(&mut frame(&api, stage)) }.is_null();
        assert_eq!(failed, stage == XLA_FFI_EXECUTION_STAGE_EXECUTE);
        let words = "the call has 0 arguments and 0 results, but must have 2 and 1".to_owned();
        assert_eq!(
            ERROR.take(),
            failed.then_some((XLA_FFI_ERROR_CODE_INVALID_ARGUMENT, words))
        );
    }
}

#[test]
fn panics_and_errors_of_xla_are_errors_of_the_call() {
    let api = api(0, 1);
    let mut frame = frame(&api, XLA_FFI_EXECUTION_STAGE_EXECUTE);
    // SAFETY: a frame as XLA makes it.
    let error = unsafe { call::handle(&mut frame, Platform::Cpu, |_| panic!("on purpose")) };
    assert!(!error.is_null());
    let words = "a fault of dml-cuda: on purpose; please report it".to_owned();
    assert_eq!(ERROR.take(), Some((XLA_FFI_ERROR_CODE_INTERNAL, words)));
    frame.ctx = std::ptr::dangling_mut();
    // SAFETY: the frame lives on this stack, and `handle` reads what it has.
    let error = unsafe { call::handle(&mut frame, Platform::Cuda, |_| Ok(())) };
    assert!(!error.is_null() && ERROR.take().is_none());
}

/// Without a driver, or without a current context, which this thread does not have.
#[test]
fn a_call_on_a_gpu_needs_its_context() {
    let api = api(0, 1);
    let mut frame = frame(&api, XLA_FFI_EXECUTION_STAGE_EXECUTE);
    let (mut memory, sizes, kind) = ([7u8; 4], [4i64], XLA_FFI_BUFFER);
    let buffer = XLA_FFI_Buffer {
        struct_size: 48,
        extension_start: null_mut(),
        dtype: 6, // U8
        data: memory.as_mut_ptr().cast(),
        rank: 1,
        dims: sizes.as_ptr(),
    };
    let results = [(&raw const buffer).cast::<c_void>()];
    (frame.rets.size, frame.rets.types, frame.rets.rets) = (1, &kind, results.as_ptr());
    let (value, scalar) = (3i64, XLA_FFI_ATTR_TYPE_SCALAR);
    let attribute = XLA_FFI_Scalar {
        dtype: XLA_FFI_DATA_TYPE_S64,
        value: (&raw const value).cast(),
    };
    let spans = ["delta", "start"].map(|name| XLA_FFI_ByteSpan {
        ptr: name.as_ptr(),
        len: name.len(),
    });
    let (types, names, attributes) = (
        [scalar; 2],
        [&raw const spans[0], &raw const spans[1]],
        [(&raw const attribute).cast::<c_void>(); 2],
    );
    frame.attrs.size = 2;
    (frame.attrs.types, frame.attrs.names, frame.attrs.attrs) =
        (types.as_ptr(), names.as_ptr(), attributes.as_ptr());
    // SAFETY: a frame as XLA makes it, with a buffer of 4 bytes.
    assert!(!unsafe { dml_cuda_xla_fill_value_sequence_cuda(&mut frame) }.is_null());
    let (code, words) = ERROR.take().expect("an error");
    assert!(
        code == XLA_FFI_ERROR_CODE_INTERNAL && words.starts_with("cuda: "),
        "{code} {words}"
    );
    assert_eq!(memory, [7; 4]);
    // SAFETY: the frame lives on this stack, with a buffer on the host.
    assert!(unsafe { dml_cuda_xla_fill_value_sequence_cpu(&mut frame) }.is_null());
    assert_eq!(memory, [3, 6, 9, 12]);
}
