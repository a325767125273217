//! ONNX Runtime's functions, wrapped to return `Result`. They are called through the table that ONNX Runtime passes.
//! Nothing is linked.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use dml_cuda::RawStream;
use ort_sys::{
    OrtApi, OrtApiBase, OrtErrorCode, OrtKernelContext, OrtKernelInfo, OrtLoggingLevel, OrtMemType,
    OrtSessionOptions, OrtStatusPtr, OrtValue,
};

use crate::frameworks::zeros;
use crate::input::list;
use crate::status::text;

/// The version of the interface that this library is written for, which is ONNX Runtime 1.18's.
pub const VERSION: u32 = 18;

/// From this version on, a session's configuration entries can be listed.
const CONFIG_ENTRIES: u32 = 23;

/// From this version on, a shape can be read without a copy.
const SHAPES_BY_REFERENCE: u32 = 24;

/// The most dimensions of a tensor.
pub const MAX_RANK: usize = 32;

/// The message of a failure, of this library or of ONNX Runtime.
pub struct Failure(String);

impl<T: std::fmt::Display> From<T> for Failure {
    fn from(message: T) -> Self {
        Self(message.to_string())
    }
}

pub type Result<T> = std::result::Result<T, Failure>;

/// ONNX Runtime's table of functions.
#[derive(Clone, Copy)]
pub struct Ort {
    api: *const OrtApi,
    /// The version of the table: `VERSION`, or one of the later versions above.
    version: u32,
}

// SAFETY: the table is constant, and its functions may be called from any thread.
unsafe impl Send for Ort {}
// SAFETY: the table is constant, and its functions may be called from several threads at once.
unsafe impl Sync for Ort {}

/// Calls a function of the table and turns a status into a failure. The wrappers take objects of ONNX Runtime only,
/// which are valid during a callback.
macro_rules! call {
    ($ort:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the table is live (`Ort::new`), and its version is at least 18, which has the function; the arguments
        // are ONNX Runtime's own objects, valid during the callback they came with, and live variables of this thread.
        let status = unsafe { ((*$ort.api).$function)($($argument),*) };
        if status.0.is_null() { Ok(()) } else { Err(Failure($ort.message(status))) }
    }};
}

impl Ort {
    /// Gets the table for this library. `None` if ONNX Runtime is older than 1.18.
    ///
    /// # Safety
    ///
    /// `base` is ONNX Runtime's argument of `RegisterCustomOps`. ONNX Runtime is never unloaded.
    pub unsafe fn new(base: *const OrtApiBase) -> Option<Self> {
        // SAFETY: `base` is ONNX Runtime's table. `GetApi` returns null for a version that it does not have, but prints
        // an error too. So read the version first.
        let (get_api, version) =
            unsafe { ((*base).GetApi, CStr::from_ptr(((*base).GetVersionString)())) };
        let mut numbers = version
            .to_str()
            .ok()?
            .split('.')
            .map(|number| number.parse::<u32>().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        let newest = if major > 1 { u32::MAX } else { minor };
        let version = [SHAPES_BY_REFERENCE, CONFIG_ENTRIES, VERSION]
            .into_iter()
            .find(|version| newest >= *version)?;
        // SAFETY: `base` is ONNX Runtime's table, and has this version.
        let api = unsafe { get_api(version) };
        (!api.is_null()).then_some(Self { api, version })
    }

    /// A failure as a status for ONNX Runtime. Its message begins with the name of what failed.
    pub fn status(self, name: &str, Failure(message): Failure) -> OrtStatusPtr {
        let message = text(&format!("{name}: {message}"));
        // SAFETY: the table is live (`Ort::new`), and the text is copied.
        unsafe { ((*self.api).CreateStatus)(OrtErrorCode::ORT_INVALID_ARGUMENT, message.as_ptr()) }
    }

    /// Takes the message from a status, and releases the status.
    fn message(self, status: OrtStatusPtr) -> String {
        // SAFETY: the text belongs to the status, which this call owns and releases once.
        unsafe {
            let message = CStr::from_ptr(((*self.api).GetErrorMessage)(status.0))
                .to_string_lossy()
                .into_owned();
            ((*self.api).ReleaseStatus)(status.0);
            message
        }
    }

    pub fn create_domain(self, name: &'static CStr) -> Result<*mut ort_sys::OrtCustomOpDomain> {
        read(null_mut(), |domain| {
            call!(self, CreateCustomOpDomain(name.as_ptr(), domain))
        })
    }

    /// `'static`, because ONNX Runtime keeps the operator's address.
    pub fn add_op(
        self,
        domain: *mut ort_sys::OrtCustomOpDomain,
        op: &'static ort_sys::OrtCustomOp,
    ) -> Result<()> {
        call!(self, CustomOpDomain_Add(domain, op))
    }

    pub fn add_domain(
        self,
        options: *mut OrtSessionOptions,
        domain: *mut ort_sys::OrtCustomOpDomain,
    ) -> Result<()> {
        call!(self, AddCustomOpDomain(options, domain))
    }

    /// Reads an entry of a session's configuration.
    pub fn config_entry(
        self,
        options: *const OrtSessionOptions,
        key: &CStr,
    ) -> Result<Option<String>> {
        if read(0, |has| {
            call!(self, HasSessionConfigEntry(options, key.as_ptr(), has))
        })? == 0
        {
            return Ok(None);
        }
        read_text(|to, size| call!(self, GetSessionConfigEntry(options, key.as_ptr(), to, size)))
            .map(Some)
    }

    pub fn add_config_entry(
        self,
        options: *mut OrtSessionOptions,
        key: &CStr,
        value: &CStr,
    ) -> Result<()> {
        call!(
            self,
            AddSessionConfigEntry(options, key.as_ptr(), value.as_ptr())
        )
    }

    /// Lists the keys of a session's configuration. Empty before ONNX Runtime 1.23, which cannot list them.
    pub fn config_keys(self, options: *const OrtSessionOptions) -> Result<Vec<String>> {
        if self.version < CONFIG_ENTRIES {
            return Ok(Vec::new());
        }
        let (mut entries, mut keys, mut values, mut count) = (null_mut(), null(), null(), 0);
        call!(self, GetSessionOptionsConfigEntries(options, &mut entries))?;
        // SAFETY: this call owns the object and releases it once; it has `count` texts.
        unsafe {
            ((*self.api).GetKeyValuePairs)(entries, &mut keys, &mut values, &mut count);
            let found = (0..count)
                .map(|k| CStr::from_ptr(*keys.add(k)).to_string_lossy().into_owned())
                .collect();
            ((*self.api).ReleaseKeyValuePairs)(entries);
            Ok(found)
        }
    }

    /// Reads an attribute. An absent one is the default, if there is one. ONNX Runtime has one status, ORT_FAIL, for an
    /// absent attribute and for one of another type: only its text tells them apart.
    pub fn attribute(
        self,
        info: *const OrtKernelInfo,
        name: &CStr,
        default: Option<i64>,
    ) -> Result<i64> {
        let found = read(0, |value| {
            call!(
                self,
                KernelInfoGetAttribute_int64(info, name.as_ptr(), value)
            )
        });
        found.or_else(|Failure(message)| match default {
            Some(default) if message.contains("No attribute") => Ok(default),
            _ => Err(format!("{}: {message}", name.to_string_lossy()).into()),
        })
    }

    pub fn node_name(self, info: *const OrtKernelInfo) -> Result<String> {
        read_text(|to, size| call!(self, KernelInfo_GetNodeName(info, to, size)))
    }

    /// The ordinal of the device on which a node's provider allocates.
    pub fn device_ordinal(self, info: *const OrtKernelInfo) -> Result<usize> {
        let (mut allocator, mut memory, mut id): (_, _, c_int) = (null_mut(), null(), 0);
        call!(
            self,
            KernelInfoGetAllocator(info, OrtMemType::OrtMemTypeDefault, &mut allocator)
        )?;
        let asked = call!(self, AllocatorGetInfo(allocator, &mut memory))
            .and_then(|()| call!(self, MemoryInfoGetId(memory, &mut id)));
        // SAFETY: this call owns the allocator and releases it once.
        unsafe { ((*self.api).ReleaseAllocator)(allocator) };
        asked?;
        usize::try_from(id).map_err(|_| {
            format!("the device of the node is {id}, but must be a number from 0 on").into()
        })
    }

    /// Writes a line to the session's log, at level INFO.
    pub fn log(self, info: *const OrtKernelInfo, message: &str) -> Result<()> {
        let logger = read(null(), |logger| {
            call!(self, KernelInfo_GetLogger(info, logger))
        })?;
        let message = text(message);
        #[cfg(not(windows))]
        let file = c"dml_cuda".as_ptr();
        #[cfg(windows)]
        let file = [0u16].as_ptr();
        let level = OrtLoggingLevel::ORT_LOGGING_LEVEL_INFO;
        call!(
            self,
            Logger_LogMessage(
                logger,
                level,
                message.as_ptr(),
                file,
                0,
                c"CreateKernel".as_ptr()
            )
        )
    }

    pub fn input(self, context: *const OrtKernelContext, index: usize) -> Result<*const OrtValue> {
        read(null(), |value| {
            call!(self, KernelContext_GetInput(context, index, value))
        })
    }

    /// Allocates the output of a run with this shape.
    pub fn output(self, context: *mut OrtKernelContext, shape: &[i64]) -> Result<*mut OrtValue> {
        read(null_mut(), |value| {
            call!(
                self,
                KernelContext_GetOutput(context, 0, shape.as_ptr(), shape.len(), value)
            )
        })
    }

    pub fn stream(self, context: *const OrtKernelContext) -> Result<RawStream> {
        read(null_mut(), |stream| {
            call!(self, KernelContext_GetGPUComputeStream(context, stream))
        })
        .map(RawStream)
    }

    pub fn data(self, value: *const OrtValue) -> Result<*mut c_void> {
        read(null_mut(), |data| {
            call!(self, GetTensorMutableData(value.cast_mut(), data))
        })
    }

    /// Calls `look` with a tensor's element type, as a number of `ONNXTensorElementDataType`, and its shape.
    pub fn shape<R>(
        self,
        value: *const OrtValue,
        look: impl FnOnce(i32, &[i64]) -> Result<R>,
    ) -> Result<R> {
        // An i32, because ort_sys's enum lacks element types that are newer than it.
        let mut element_type = 0i32;
        let element_type_out = (&raw mut element_type).cast();
        if self.version >= SHAPES_BY_REFERENCE {
            let (mut dims, mut rank) = (null(), 0);
            call!(
                self,
                GetTensorElementTypeAndShapeDataReference(
                    value,
                    element_type_out,
                    &mut dims,
                    &mut rank
                )
            )?;
            // SAFETY: the numbers belong to the value, which is valid during the callback. For rank 0 the pointer may
            // be null.
            return look(element_type, unsafe { list(dims, rank) });
        }
        let info = read(null_mut(), |info| {
            call!(self, GetTensorTypeAndShape(value, info))
        })?;
        let (mut dims, mut rank) = ([0; MAX_RANK], 0);
        let asked = call!(self, GetTensorElementType(info, element_type_out))
            .and_then(|()| call!(self, GetDimensionsCount(info, &mut rank)))
            .and_then(|()| match rank {
                0..=MAX_RANK => call!(self, GetDimensions(info, dims.as_mut_ptr(), rank)),
                _ => Err(format!(
                    "the tensor has {rank} dimensions, but must have at most {MAX_RANK}"
                )
                .into()),
            });
        // SAFETY: this call owns the object and releases it once.
        unsafe { ((*self.api).ReleaseTensorTypeAndShapeInfo)(info) };
        asked?;
        look(element_type, &dims[..rank])
    }

    /// Copies texts: element n of `to` becomes element `order[n]` of `from`.
    pub fn copy_strings(
        self,
        from: *const OrtValue,
        to: *mut OrtValue,
        order: &[u32],
    ) -> Result<()> {
        let count = order.len();
        let length = read(0, |length| {
            call!(self, GetStringTensorDataLength(from, length))
        })?;
        let (mut bytes, mut offsets) = (zeros::<u8>(length)?, zeros::<usize>(count + 1)?);
        call!(
            self,
            GetStringTensorContent(
                from,
                bytes.as_mut_ptr().cast(),
                length,
                offsets.as_mut_ptr(),
                count
            )
        )?;
        offsets[count] = length;
        for (index, &from) in order.iter().enumerate() {
            let text = &bytes[offsets[from as usize]..offsets[from as usize + 1]];
            let mut buffer = null_mut();
            call!(
                self,
                GetResizedStringTensorElementBuffer(to, index, text.len(), &mut buffer)
            )?;
            // SAFETY: the buffer is the element's and has `text.len()` bytes; `text` is in this function's own copy.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), text.len()) };
        }
        Ok(())
    }

    /// Gives the output the first input's shape.
    ///
    /// The interface cannot leave one dimension unset: it would become the size -1. So a dimension with neither size
    /// nor name gets a new name, and later nodes still see the rank and the other sizes. A tensor of unknown rank looks
    /// like a scalar, which no reversal accepts. Then the output's shape stays unset.
    pub fn same_shape(self, context: *mut ort_sys::OrtShapeInferContext) -> Result<()> {
        let info = read(null_mut(), |info| {
            call!(self, ShapeInferContext_GetInputTypeShape(context, 0, info))
        })?;
        let rank = read(0, |rank| call!(self, GetDimensionsCount(info, rank)))?;
        if rank == 0 {
            return Ok(());
        }
        let (mut sizes, mut names) = (vec![0i64; rank], vec![null::<c_char>(); rank]);
        call!(self, GetDimensions(info, sizes.as_mut_ptr(), rank))?;
        call!(self, GetSymbolicDimensions(info, names.as_mut_ptr(), rank))?;
        let named: Vec<CString> = sizes
            .iter()
            .zip(names)
            .map(|(&size, name)| match size {
                // SAFETY: a name belongs to `info`, which is valid during the callback.
                _ if !name.is_null() && unsafe { *name } != 0 => {
                    // SAFETY: as above, and ONNX Runtime ends it in a NUL.
                    unsafe { CStr::from_ptr(name) }.to_owned()
                }
                0.. => CString::default(),
                _ => name_of_unknown(),
            })
            .collect();
        let mut names: Vec<*const c_char> = named.iter().map(|name| name.as_ptr()).collect();
        call!(self, SetSymbolicDimensions(info, names.as_mut_ptr(), rank))?;
        call!(self, ShapeInferContext_SetOutputTypeShape(context, 0, info))
    }

    /// Gives the output the first input's type and one dimension. Only a run knows its size.
    pub fn one_unknown_dimension(self, context: *mut ort_sys::OrtShapeInferContext) -> Result<()> {
        let (size, name) = ([-1], name_of_unknown());
        // The object belongs to this context alone. Writing to it changes no input.
        let info = read(null_mut(), |info| {
            call!(self, ShapeInferContext_GetInputTypeShape(context, 0, info))
        })?;
        call!(self, SetDimensions(info, size.as_ptr(), 1))?;
        call!(
            self,
            SetSymbolicDimensions(info, [name.as_ptr()].as_mut_ptr(), 1)
        )?;
        call!(self, ShapeInferContext_SetOutputTypeShape(context, 0, info))
    }
}

/// Reads a value with a function that writes it.
fn read<T>(mut value: T, write: impl FnOnce(&mut T) -> Result<()>) -> Result<T> {
    write(&mut value)?;
    Ok(value)
}

/// Reads a text with a function that tells the text's size if it gets no buffer.
fn read_text(read: impl Fn(*mut c_char, *mut usize) -> Result<()>) -> Result<String> {
    let mut size = 0;
    read(null_mut(), &mut size)?;
    let mut text = vec![0u8; size.max(1)];
    read(text.as_mut_ptr().cast(), &mut size)?;
    text.retain(|&byte| byte != 0);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A unique name for a dimension of unknown size.
fn name_of_unknown() -> CString {
    static NAMED: AtomicU64 = AtomicU64::new(0);
    text(&format!(
        "unk__dml_cuda_{}",
        NAMED.fetch_add(1, Ordering::Relaxed)
    ))
}
