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

/// Defines structures whose sizes and whose fields' offsets are checked. `python/tests/test_jax_interface.py` reads this list, and
/// compares it with XLA's header.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident: $size:literal { $($offset:literal => $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            $(pub $field: $type,)*
        }

        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(offset_of!($name, $field) == $offset);)*
        };
    )*};
}

structures! {
    /// `XLA_FFI_InternalExtension` since version 0.4.
    XLA_FFI_Extension_Base: 24 {
        0 => struct_size: usize,
        8 => r#type: c_int,
        16 => next: *mut XLA_FFI_Extension_Base,
    }

    XLA_FFI_Api_Version: 24 {
        0 => struct_size: usize,
        8 => extension_start: *mut XLA_FFI_Extension_Base,
        16 => major_version: c_int,
        20 => minor_version: c_int,
    }

    /// Without its last fields.
    XLA_FFI_Metadata: 40 {
        0 => struct_size: usize,
        8 => api_version: XLA_FFI_Api_Version,
        32 => traits: u32,
    }

    XLA_FFI_Metadata_Extension: 32 {
        0 => extension_base: XLA_FFI_Extension_Base,
        24 => metadata: *mut XLA_FFI_Metadata,
    }

    XLA_FFI_Error_Create_Args: 32 {
        0 => struct_size: usize,
        8 => extension_start: *mut XLA_FFI_Extension_Base,
        16 => message: *const c_char,
        24 => errc: c_int,
    }

    XLA_FFI_Stream_Get_Args: 32 {
        0 => struct_size: usize,
        8 => extension_start: *mut XLA_FFI_Extension_Base,
        16 => ctx: *mut c_void,
        24 => stream: *mut c_void,
    }

    /// Without its last fields.
    XLA_FFI_Api: 88 {
        0 => struct_size: usize,
        8 => extension_start: *mut XLA_FFI_Extension_Base,
        16 => api_version: XLA_FFI_Api_Version,
        40 => internal_api: *const c_void,
        48 => XLA_FFI_Error_Create: unsafe extern "C" fn(*mut XLA_FFI_Error_Create_Args) -> *mut XLA_FFI_Error,
        56 => XLA_FFI_Error_GetMessage: *const c_void,
        64 => XLA_FFI_Error_Destroy: *const c_void,
        72 => XLA_FFI_Handler_Register: *const c_void,
        80 => XLA_FFI_Stream_Get: unsafe extern "C" fn(*mut XLA_FFI_Stream_Get_Args) -> *mut XLA_FFI_Error,
    }

    XLA_FFI_Buffer: 48 {
        0 => struct_size: usize,
        8 => extension_start: *mut XLA_FFI_Extension_Base,
        16 => dtype: c_int,
        24 => data: *mut c_void,
        32 => rank: i64,
        40 => dims: *const i64,
    }

    XLA_FFI_ByteSpan: 16 {
        0 => ptr: *const u8,
        8 => len: usize,
    }

    XLA_FFI_Scalar: 16 {
        0 => dtype: c_int,
        8 => value: *const c_void,
    }

    XLA_FFI_Args: 40 {
        0 => struct_size: usize,
        8 => extension_start: *mut XLA_FFI_Extension_Base,
        16 => size: i64,
        24 => types: *const c_int,
        32 => args: *const *const c_void,
    }

    XLA_FFI_Rets: 40 {
        0 => struct_size: usize,
        8 => extension_start: *mut XLA_FFI_Extension_Base,
        16 => size: i64,
        24 => types: *const c_int,
        32 => rets: *const *const c_void,
    }

    XLA_FFI_Attrs: 48 {
        0 => struct_size: usize,
        8 => extension_start: *mut XLA_FFI_Extension_Base,
        16 => size: i64,
        24 => types: *const c_int,
        32 => names: *const *const XLA_FFI_ByteSpan,
        40 => attrs: *const *const c_void,
    }

    /// Without its last field.
    XLA_FFI_CallFrame: 168 {
        0 => struct_size: usize,
        8 => extension_start: *mut XLA_FFI_Extension_Base,
        16 => api: *const XLA_FFI_Api,
        24 => ctx: *mut c_void,
        32 => stage: c_int,
        40 => args: XLA_FFI_Args,
        80 => rets: XLA_FFI_Rets,
        120 => attrs: XLA_FFI_Attrs,
    }
}
