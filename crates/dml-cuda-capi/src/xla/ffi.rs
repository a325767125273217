//! The structures of XLA's `xla/ffi/api/c_api.h` that are used here, with XLA's names.
#![allow(non_camel_case_types, non_snake_case)]

use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

use dml_cuda::TensorDataType::{self, *};

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
pub const XLA_FFI_DATA_TYPE_S64: c_int = 5;

/// `XLA_FFI_DataType`: the number, the bytes of an element, and its type if DirectML fills it.
pub const DATA_TYPES: [(c_int, usize, Option<TensorDataType>); 23] = [
    (1, 1, None),           // PRED
    (2, 1, Some(Int8)),     // S8
    (3, 2, Some(Int16)),    // S16
    (4, 4, Some(Int32)),    // S32
    (5, 8, Some(Int64)),    // S64
    (6, 1, Some(UInt8)),    // U8
    (7, 2, Some(UInt16)),   // U16
    (8, 4, Some(UInt32)),   // U32
    (9, 8, Some(UInt64)),   // U64
    (10, 2, Some(Float16)), // F16
    (11, 4, Some(Float32)), // F32
    (12, 8, None),          // F64
    (15, 8, None),          // C64
    (16, 2, None),          // BF16
    (18, 16, None),         // C128
    (19, 1, None),          // F8E5M2
    (20, 1, None),          // F8E4M3FN
    (23, 1, None),          // F8E4M3B11FNUZ
    (24, 1, None),          // F8E5M2FNUZ
    (25, 1, None),          // F8E4M3FNUZ
    (28, 1, None),          // F8E4M3
    (29, 1, None),          // F8E3M4
    (33, 1, None),          // F8E8M0FNU
];

/// Opaque.
pub enum XLA_FFI_Error {}

/// Defines structures whose sizes and whose fields' offsets are checked. An extensible one begins with its size and its
/// extensions, 16 bytes. `python/tests/test_jax_interface.py` reads this list, and compares it with XLA's header.
macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident: $size:literal $($extensible:ident)? {
        $($offset:literal => $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            $(
                // A macro repeats only what names a variable of the repetition.
                #[doc = stringify!($extensible)]
                pub struct_size: usize,
                pub extension_start: *mut XLA_FFI_Extension_Base,
            )?
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

    XLA_FFI_Api_Version: 24 extensible {
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

    XLA_FFI_Error_Create_Args: 32 extensible {
        16 => message: *const c_char,
        24 => errc: c_int,
    }

    XLA_FFI_Stream_Get_Args: 32 extensible {
        16 => ctx: *mut c_void,
        24 => stream: *mut c_void,
    }

    /// Without its last fields.
    XLA_FFI_Api: 88 extensible {
        16 => api_version: XLA_FFI_Api_Version,
        40 => internal_api: *const c_void,
        48 => XLA_FFI_Error_Create: unsafe extern "C" fn(*mut XLA_FFI_Error_Create_Args) -> *mut XLA_FFI_Error,
        56 => XLA_FFI_Error_GetMessage: *const c_void,
        64 => XLA_FFI_Error_Destroy: *const c_void,
        72 => XLA_FFI_Handler_Register: *const c_void,
        80 => XLA_FFI_Stream_Get: unsafe extern "C" fn(*mut XLA_FFI_Stream_Get_Args) -> *mut XLA_FFI_Error,
    }

    XLA_FFI_Buffer: 48 extensible {
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

    XLA_FFI_Args: 40 extensible {
        16 => size: i64,
        24 => types: *const c_int,
        32 => args: *const *const c_void,
    }

    XLA_FFI_Rets: 40 extensible {
        16 => size: i64,
        24 => types: *const c_int,
        32 => rets: *const *const c_void,
    }

    XLA_FFI_Attrs: 48 extensible {
        16 => size: i64,
        24 => types: *const c_int,
        32 => names: *const *const XLA_FFI_ByteSpan,
        40 => attrs: *const *const c_void,
    }

    /// Without its last field.
    XLA_FFI_CallFrame: 168 extensible {
        16 => api: *const XLA_FFI_Api,
        24 => ctx: *mut c_void,
        32 => stage: c_int,
        40 => args: XLA_FFI_Args,
        80 => rets: XLA_FFI_Rets,
        120 => attrs: XLA_FFI_Attrs,
    }
}
