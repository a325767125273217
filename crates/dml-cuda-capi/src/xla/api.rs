//! The structures of XLA's `xla/ffi/api/c_api.h` that are used here, with XLA's names.
#![allow(non_camel_case_types, non_snake_case)]

use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

/// The major version of the interface that this library serves.
pub const XLA_FFI_API_MAJOR: c_int = 0;
/// The oldest minor version that has everything that is used here.
pub const XLA_FFI_API_MINOR: c_int = 1;

pub const XLA_FFI_EXTENSION_METADATA: c_int = 1;
pub const XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE: u32 = 1;
pub const XLA_FFI_EXECUTION_STAGE_EXECUTE: c_int = 3;
/// `XLA_FFI_ArgType_BUFFER` and `XLA_FFI_RetType_BUFFER`.
pub const XLA_FFI_BUFFER: c_int = 1;
pub const XLA_FFI_ATTR_TYPE_SCALAR: c_int = 3;
pub const XLA_FFI_ERROR_CODE_INVALID_ARGUMENT: c_int = 3;
pub const XLA_FFI_ERROR_CODE_INTERNAL: c_int = 13;

/// `XLA_FFI_DataType`.
pub mod data_type {
    use std::ffi::c_int;

    pub const PRED: c_int = 1;
    pub const S8: c_int = 2;
    pub const S16: c_int = 3;
    pub const S32: c_int = 4;
    pub const S64: c_int = 5;
    pub const U8: c_int = 6;
    pub const U16: c_int = 7;
    pub const U32: c_int = 8;
    pub const U64: c_int = 9;
    pub const F16: c_int = 10;
    pub const F32: c_int = 11;
    pub const F64: c_int = 12;
    pub const C64: c_int = 15;
    pub const BF16: c_int = 16;
    pub const C128: c_int = 18;
    pub const F8E5M2: c_int = 19;
    pub const F8E4M3FN: c_int = 20;
    pub const F8E4M3B11FNUZ: c_int = 23;
    pub const F8E5M2FNUZ: c_int = 24;
    pub const F8E4M3FNUZ: c_int = 25;
    pub const F8E4M3: c_int = 28;
    pub const F8E3M4: c_int = 29;
    pub const F8E8M0FNU: c_int = 33;
}

#[repr(C)]
pub struct XLA_FFI_Error {
    _opaque: [u8; 0],
}

/// `XLA_FFI_InternalExtension` since version 0.4.
#[repr(C)]
pub struct XLA_FFI_Extension_Base {
    pub struct_size: usize,
    pub r#type: c_int,
    pub next: *mut XLA_FFI_Extension_Base,
}

#[repr(C)]
pub struct XLA_FFI_Api_Version {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_Extension_Base,
    pub major_version: c_int,
    pub minor_version: c_int,
}

/// Without its last fields.
#[repr(C)]
pub struct XLA_FFI_Metadata {
    pub struct_size: usize,
    pub api_version: XLA_FFI_Api_Version,
    pub traits: u32,
}

#[repr(C)]
pub struct XLA_FFI_Metadata_Extension {
    pub extension_base: XLA_FFI_Extension_Base,
    pub metadata: *mut XLA_FFI_Metadata,
}

#[repr(C)]
pub struct XLA_FFI_Error_Create_Args {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_Extension_Base,
    pub message: *const c_char,
    pub errc: c_int,
}

#[repr(C)]
pub struct XLA_FFI_Stream_Get_Args {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_Extension_Base,
    pub ctx: *mut c_void,
    pub stream: *mut c_void,
}

/// Without its last fields.
#[repr(C)]
pub struct XLA_FFI_Api {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_Extension_Base,
    pub api_version: XLA_FFI_Api_Version,
    pub internal_api: *const c_void,
    pub XLA_FFI_Error_Create: unsafe extern "C" fn(*mut XLA_FFI_Error_Create_Args) -> *mut XLA_FFI_Error,
    pub XLA_FFI_Error_GetMessage: *const c_void,
    pub XLA_FFI_Error_Destroy: *const c_void,
    pub XLA_FFI_Handler_Register: *const c_void,
    pub XLA_FFI_Stream_Get: unsafe extern "C" fn(*mut XLA_FFI_Stream_Get_Args) -> *mut XLA_FFI_Error,
}

#[repr(C)]
pub struct XLA_FFI_Buffer {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_Extension_Base,
    pub dtype: c_int,
    pub data: *mut c_void,
    pub rank: i64,
    pub dims: *const i64,
}

#[repr(C)]
pub struct XLA_FFI_ByteSpan {
    pub ptr: *const u8,
    pub len: usize,
}

#[repr(C)]
pub struct XLA_FFI_Scalar {
    pub dtype: c_int,
    pub value: *const c_void,
}

#[repr(C)]
pub struct XLA_FFI_Args {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_Extension_Base,
    pub size: i64,
    pub types: *const c_int,
    pub args: *const *const c_void,
}

#[repr(C)]
pub struct XLA_FFI_Rets {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_Extension_Base,
    pub size: i64,
    pub types: *const c_int,
    pub rets: *const *const c_void,
}

#[repr(C)]
pub struct XLA_FFI_Attrs {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_Extension_Base,
    pub size: i64,
    pub types: *const c_int,
    pub names: *const *const XLA_FFI_ByteSpan,
    pub attrs: *const *const c_void,
}

/// Without its last field.
#[repr(C)]
pub struct XLA_FFI_CallFrame {
    pub struct_size: usize,
    pub extension_start: *mut XLA_FFI_Extension_Base,
    pub api: *const XLA_FFI_Api,
    pub ctx: *mut c_void,
    pub stage: c_int,
    pub args: XLA_FFI_Args,
    pub rets: XLA_FFI_Rets,
    pub attrs: XLA_FFI_Attrs,
}

/// The sizes of the structures. `python/tests/test_jax_interface.py` reads this list and the next, and compares them with XLA's header.
macro_rules! sizes {
    ($($structure:ident = $size:literal,)*) => {
        const _: () = { $(assert!(size_of::<$structure>() == $size);)* };
    };
}

sizes! {
    XLA_FFI_Extension_Base = 24,
    XLA_FFI_Api_Version = 24,
    XLA_FFI_Metadata = 40,
    XLA_FFI_Metadata_Extension = 32,
    XLA_FFI_Error_Create_Args = 32,
    XLA_FFI_Stream_Get_Args = 32,
    XLA_FFI_Api = 88,
    XLA_FFI_Buffer = 48,
    XLA_FFI_ByteSpan = 16,
    XLA_FFI_Scalar = 16,
    XLA_FFI_Args = 40,
    XLA_FFI_Rets = 40,
    XLA_FFI_Attrs = 48,
    XLA_FFI_CallFrame = 168,
}

/// Where the fields of the structures are.
macro_rules! offsets {
    ($($structure:ident.$field:ident = $offset:literal,)*) => {
        const _: () = { $(assert!(offset_of!($structure, $field) == $offset);)* };
    };
}

offsets! {
    XLA_FFI_Extension_Base.struct_size = 0,
    XLA_FFI_Extension_Base.r#type = 8,
    XLA_FFI_Extension_Base.next = 16,
    XLA_FFI_Metadata_Extension.extension_base = 0,
    XLA_FFI_Metadata_Extension.metadata = 24,
    XLA_FFI_Metadata.struct_size = 0,
    XLA_FFI_Metadata.api_version = 8,
    XLA_FFI_Metadata.traits = 32,
    XLA_FFI_Api_Version.struct_size = 0,
    XLA_FFI_Api_Version.extension_start = 8,
    XLA_FFI_Api_Version.major_version = 16,
    XLA_FFI_Api_Version.minor_version = 20,
    XLA_FFI_Error_Create_Args.struct_size = 0,
    XLA_FFI_Error_Create_Args.extension_start = 8,
    XLA_FFI_Error_Create_Args.message = 16,
    XLA_FFI_Error_Create_Args.errc = 24,
    XLA_FFI_Stream_Get_Args.struct_size = 0,
    XLA_FFI_Stream_Get_Args.extension_start = 8,
    XLA_FFI_Stream_Get_Args.ctx = 16,
    XLA_FFI_Stream_Get_Args.stream = 24,
    XLA_FFI_Api.struct_size = 0,
    XLA_FFI_Api.extension_start = 8,
    XLA_FFI_Api.api_version = 16,
    XLA_FFI_Api.XLA_FFI_Error_Create = 48,
    XLA_FFI_Api.XLA_FFI_Stream_Get = 80,
    XLA_FFI_Buffer.struct_size = 0,
    XLA_FFI_Buffer.extension_start = 8,
    XLA_FFI_Buffer.dtype = 16,
    XLA_FFI_Buffer.data = 24,
    XLA_FFI_Buffer.rank = 32,
    XLA_FFI_Buffer.dims = 40,
    XLA_FFI_ByteSpan.ptr = 0,
    XLA_FFI_ByteSpan.len = 8,
    XLA_FFI_Scalar.dtype = 0,
    XLA_FFI_Scalar.value = 8,
    XLA_FFI_Args.struct_size = 0,
    XLA_FFI_Args.extension_start = 8,
    XLA_FFI_Args.size = 16,
    XLA_FFI_Args.types = 24,
    XLA_FFI_Args.args = 32,
    XLA_FFI_Rets.struct_size = 0,
    XLA_FFI_Rets.extension_start = 8,
    XLA_FFI_Rets.size = 16,
    XLA_FFI_Rets.types = 24,
    XLA_FFI_Rets.rets = 32,
    XLA_FFI_Attrs.struct_size = 0,
    XLA_FFI_Attrs.extension_start = 8,
    XLA_FFI_Attrs.size = 16,
    XLA_FFI_Attrs.types = 24,
    XLA_FFI_Attrs.names = 32,
    XLA_FFI_Attrs.attrs = 40,
    XLA_FFI_CallFrame.struct_size = 0,
    XLA_FFI_CallFrame.extension_start = 8,
    XLA_FFI_CallFrame.api = 16,
    XLA_FFI_CallFrame.ctx = 24,
    XLA_FFI_CallFrame.stage = 32,
    XLA_FFI_CallFrame.args = 40,
    XLA_FFI_CallFrame.rets = 80,
    XLA_FFI_CallFrame.attrs = 120,
}
