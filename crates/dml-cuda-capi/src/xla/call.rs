//! A call of a handler: its buffers, attributes, stream and errors.

use std::ffi::c_int;
use std::mem::size_of;
use std::ptr::null_mut;

use dml_cuda::lowering::ForeignTensor;
use dml_cuda::{Address, Device, RawStream};

use super::ffi::*;
use crate::input::list;
use crate::status::{caught, text, wrong, Failure};

/// The platform of the buffers, with XLA's names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    Cpu,
    Cuda,
}

/// A buffer in the memory of the call's platform.
#[derive(Clone, Copy)]
pub struct Buffer<'a> {
    pub dtype: c_int,
    /// Packed.
    pub tensor: ForeignTensor<'a>,
}

/// A call of a handler.
pub struct Call<'a> {
    frame: &'a XLA_FFI_CallFrame,
    platform: Platform,
    /// A `CUstream`. Null on the host.
    stream: RawStream,
}

impl<'a> Call<'a> {
    /// Reads the buffers, of which there must be as many as asked for: arguments, then one result.
    pub fn buffers<const COUNT: usize>(&self) -> Result<[Buffer<'a>; COUNT], Failure> {
        let (args, rets, arguments) = (&self.frame.args, &self.frame.rets, COUNT - 1);
        if (args.size as usize, rets.size) != (arguments, 1) {
            let found = format!(
                "the call has {} arguments and {} results",
                args.size, rets.size
            );
            return wrong(format!("{found}, but must have {arguments} and 1"));
        }
        let mut buffers = [Buffer {
            dtype: 0,
            tensor: ForeignTensor::packed(Address(0), &[]),
        }; COUNT];
        for (n, buffer) in buffers.iter_mut().enumerate() {
            let (types, pointers, at) = if n < arguments {
                (args.types, args.args, n)
            } else {
                (rets.types, rets.rets, 0)
            };
            // SAFETY: XLA's call frame has as many types and pointers as its `size`, which was compared above.
            let (kind, pointer) = unsafe { (*types.add(at), *pointers.add(at)) };
            if kind != XLA_FFI_BUFFER {
                return wrong(format!(
                    "argument {n} has XLA's type {kind}, but must be a buffer"
                ));
            }
            // SAFETY: with this type, the pointer is that of a buffer of XLA's, which lives as long as the frame.
            let found = unsafe { &*pointer.cast::<XLA_FFI_Buffer>() };
            // SAFETY: a buffer has as many sizes as its rank.
            let sizes = unsafe { list(found.dims, found.rank as usize) };
            *buffer = Buffer {
                dtype: found.dtype,
                tensor: ForeignTensor::packed(found.data, sizes),
            };
        }
        Ok(buffers)
    }

    /// Reads an attribute that is an integer of 64 bits.
    pub fn attribute(&self, name: &str) -> Result<i64, Failure> {
        let attrs = &self.frame.attrs;
        for at in 0..attrs.size as usize {
            // SAFETY: XLA's call frame has as many names, types and attributes as its `size`. A name has `len` bytes.
            let (kind, value, found) = unsafe {
                let name = &**attrs.names.add(at);
                (
                    *attrs.types.add(at),
                    *attrs.attrs.add(at),
                    std::slice::from_raw_parts(name.ptr, name.len),
                )
            };
            if found != name.as_bytes() || kind != XLA_FFI_ATTR_TYPE_SCALAR {
                continue;
            }
            // SAFETY: with this type, the attribute is a scalar of XLA's, which lives as long as the frame.
            let scalar = unsafe { &*value.cast::<XLA_FFI_Scalar>() };
            if scalar.dtype == XLA_FFI_DATA_TYPE_S64 {
                // SAFETY: with this type, the value is an integer of 64 bits.
                return Ok(unsafe { scalar.value.cast::<i64>().read_unaligned() });
            }
        }
        wrong(format!(
            "the call must have an attribute `{name}` of type i64"
        ))
    }

    /// The device of the buffers, and the stream of the call. Until the work on its stream is done, XLA keeps the
    /// buffers, and no one else writes them.
    pub fn device(&self) -> Result<(Device, RawStream), Failure> {
        let device = match self.platform {
            Platform::Cpu => crate::device::cpu_device()?,
            // XLA makes the context of the call's GPU current. With another one, the driver refuses the stream.
            Platform::Cuda => crate::device::cuda_device(Device::current_cuda_ordinal()?)?,
        };
        Ok((device, self.stream))
    }
}

/// Runs a handler: answers XLA's question for the handler's version and traits, or does the work of a call. Turns a
/// failure or a panic into an error of XLA.
///
/// # Safety
///
/// `frame` is the argument that XLA passed to a handler.
pub unsafe fn handle(
    frame: *mut XLA_FFI_CallFrame,
    platform: Platform,
    work: impl FnOnce(&Call<'_>) -> Result<(), Failure>,
) -> *mut XLA_FFI_Error {
    // SAFETY: XLA's frame lives during the call, and its fields have the places that `ffi` lists.
    let frame = unsafe { &*frame };
    // SAFETY: XLA's table of functions lives as long as the process.
    let api = unsafe { frame.api.as_ref() };
    // SAFETY: the first extension of the frame, if any.
    if let Some(extension) = unsafe { frame.extension_start.as_ref() } {
        if extension.r#type == XLA_FFI_EXTENSION_METADATA {
            // SAFETY: an extension of this type is the base of this structure, whose `metadata` XLA gives to be
            // written.
            unsafe {
                describe(
                    (*frame.extension_start.cast::<XLA_FFI_Metadata_Extension>()).metadata,
                    api,
                    platform,
                )
            };
            return null_mut();
        }
    }
    let Some(api) = api.filter(|_| frame.stage == XLA_FFI_EXECUTION_STAGE_EXECUTE) else {
        return null_mut();
    };
    let stream = match platform {
        Platform::Cpu => RawStream::NULL,
        // SAFETY: the frame and its table of functions are XLA's.
        Platform::Cuda => match unsafe { stream_of(frame, api) } {
            Ok(stream) => stream,
            Err(error) => return error,
        },
    };
    let call = Call {
        frame,
        platform,
        stream,
    };
    match caught(|| work(&call)) {
        Ok(()) => null_mut(),
        // SAFETY: the table of functions is XLA's.
        Err(failure) => unsafe { error_of(&failure, api) },
    }
}

/// The stream of a call on a GPU, or XLA's error.
///
/// # Safety
///
/// The frame and its table of functions are XLA's.
unsafe fn stream_of(
    frame: &XLA_FFI_CallFrame,
    api: &XLA_FFI_Api,
) -> Result<RawStream, *mut XLA_FFI_Error> {
    let mut args = XLA_FFI_Stream_Get_Args {
        struct_size: size_of::<XLA_FFI_Stream_Get_Args>(),
        extension_start: null_mut(),
        ctx: frame.ctx,
        stream: null_mut(),
    };
    // SAFETY: XLA's own function and context, and arguments as its header has them.
    let error = unsafe { (api.XLA_FFI_Stream_Get)(&mut args) };
    if error.is_null() {
        Ok(RawStream(args.stream))
    } else {
        Err(error)
    }
}

/// Makes a failure an error of XLA.
///
/// # Safety
///
/// The table of functions is XLA's.
unsafe fn error_of(failure: &Failure, api: &XLA_FFI_Api) -> *mut XLA_FFI_Error {
    let message = text(&failure.message);
    let mut args = XLA_FFI_Error_Create_Args {
        struct_size: size_of::<XLA_FFI_Error_Create_Args>(),
        extension_start: null_mut(),
        message: message.as_ptr(),
        errc: if failure.is_of_caller() {
            XLA_FFI_ERROR_CODE_INVALID_ARGUMENT
        } else {
            XLA_FFI_ERROR_CODE_INTERNAL
        },
    };
    // SAFETY: XLA's own function, and arguments as its header has them. It copies the message.
    unsafe { (api.XLA_FFI_Error_Create)(&mut args) }
}

/// Answers with XLA's own minor version, because within a major version XLA only adds to what is used here. A call on a
/// GPU queues the same kernel on every run, so XLA may record it in a CUDA graph.
///
/// # Safety
///
/// `metadata` can be written.
unsafe fn describe(metadata: *mut XLA_FFI_Metadata, api: Option<&XLA_FFI_Api>, platform: Platform) {
    let minor = match api.map(|api| &api.api_version) {
        Some(found) if found.major_version == XLA_FFI_API_MAJOR => found.minor_version,
        _ => XLA_FFI_API_MINOR,
    };
    // SAFETY: XLA gives `metadata` to be written, and every field is a plain number or pointer.
    unsafe {
        (*metadata).api_version = XLA_FFI_Api_Version {
            struct_size: size_of::<XLA_FFI_Api_Version>(),
            extension_start: null_mut(),
            major_version: XLA_FFI_API_MAJOR,
            minor_version: minor,
        };
        (*metadata).traits = if platform == Platform::Cuda {
            XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE
        } else {
            0
        };
    }
}
