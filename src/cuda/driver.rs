//! The driver, wrapped thinly: contexts, modules, memory, streams, events, launches. The only place in the
//! crate that calls it.
//!
//! Calls go through cudarc's `result` layer on raw handles. Its safe layer records an event for every buffer
//! and launch, which costs time and breaks graph capture.
#![allow(unsafe_code)]

use std::ffi::{c_void, CStr, CString};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytemuck::Pod;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::driver::CudaContext;

use crate::error::{BufferError, CudaError, DeviceError};
use crate::plan::{Module, Target, THREADS};

/// What is known of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Major and minor number of the compute capability, such as (9, 0).
    pub compute_capability: (u32, u32),
    /// The highest CUDA version the driver supports, as 1000·major + 10·minor.
    pub driver_version: u32,
    /// Bytes of device memory.
    pub total_memory: u64,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of the L2 cache.
    pub l2_cache: u64,
}

/// How many GPUs the driver reports.
pub(crate) fn device_count() -> Result<usize, DeviceError> {
    // SAFETY: the call looks for a library by name and closes it again.
    if !unsafe { sys::is_culib_present() } {
        return Err(DeviceError::NoDriver);
    }
    match result::init().and_then(|()| result::device::get_count()) {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(0),
        Err(error) => Err(explain("initializing the driver")(error).into()),
    }
}

/// The name and properties of a GPU, without opening it.
pub(crate) fn describe(ordinal: usize) -> Result<(String, Properties), DeviceError> {
    let count = device_count()?;
    if ordinal >= count {
        return Err(DeviceError::NoSuchDevice { ordinal, count });
    }
    let read = || {
        let device = result::device::get(i32::try_from(ordinal).unwrap_or(i32::MAX))?;
        Ok((result::device::get_name(device)?, properties(device)?))
    };
    Ok(read().map_err(explain("reading the device's properties"))?)
}

/// The live streams of this crate, with the ordinals of their GPUs: what reading, writing and freeing memory waits
/// for. Waiting for the whole context would also wait for strangers, is forbidden while any thread captures a
/// stream, and crashes in drivers (seen with 580.159) while another thread instantiates a graph.
static STREAMS: RwLock<Vec<(usize, StreamHandle)>> = RwLock::new(Vec::new());

/// Waits for all work queued on this crate's streams of a GPU, whose context is current.
fn settle(ordinal: usize) -> Result<(), CudaError> {
    let streams = STREAMS.read().unwrap_or_else(PoisonError::into_inner);
    streams.iter().filter(|(of, _)| *of == ordinal).try_for_each(|(_, stream)| wait(*stream))
}

fn wait(stream: StreamHandle) -> Result<(), CudaError> {
    // SAFETY: a handle is of a live stream: `STREAMS` holds those not yet dropped, and is locked while one is used.
    unsafe { result::stream::synchronize(stream.0) }.map_err(explain("waiting for a stream"))
}

/// A GPU's primary context, and the modules loaded into it.
#[derive(Debug)]
pub(crate) struct Context {
    cuda: Arc<CudaContext>,
    ordinal: usize,
    name: String,
    properties: Properties,
    target: Target,
    /// Memory is copied and set on this stream.
    copies: StreamHandle,
    modules: Mutex<[Option<Arc<LoadedModule>>; Module::COUNT]>,
}

impl Context {
    pub fn new(ordinal: usize) -> Result<Self, DeviceError> {
        let (name, properties) = describe(ordinal)?;
        let cuda = CudaContext::new(ordinal).map_err(explain(&format!("opening device {ordinal}")))?;
        let shared_memory =
            attribute(cuda.cu_device(), Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
                .map_err(explain("reading the device's shared memory"))?;
        let target = Target { shared_memory };
        let copies = new_stream()?;
        Ok(Self { cuda, ordinal, name, properties, target, copies, modules: Mutex::default() })
    }

    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    pub fn target(&self) -> Target {
        self.target
    }

    /// The module in slot `index`, loaded on first use from what `source` gives: its name, PTX and entry points.
    pub fn module<'a>(
        &self,
        index: usize,
        source: impl FnOnce() -> (&'a str, &'a str, &'a [&'a CStr]),
    ) -> Result<Arc<LoadedModule>, CudaError> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = &modules[index] {
            return Ok(module.clone());
        }
        let (name, ptx, entries) = source();
        let module = Arc::new(LoadedModule::new(&self.cuda, name, ptx, entries, self.target.shared_memory)?);
        modules[index] = Some(module.clone());
        Ok(module)
    }

    fn make_current(&self) -> Result<(), CudaError> {
        make_current(&self.cuda)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.make_current().is_ok() {
            // SAFETY: the stream was created by `new`, is destroyed here only, and every copy was waited for.
            let _ = unsafe { result::stream::destroy(self.copies.0) };
        }
    }
}

/// A stream that waits for no other, of the current context.
fn new_stream() -> Result<StreamHandle, CudaError> {
    result::stream::create(result::stream::StreamKind::NonBlocking)
        .map(StreamHandle)
        .map_err(explain("creating a stream"))
}

fn attribute(device: sys::CUdevice, which: Attribute) -> Result<u32, DriverError> {
    // SAFETY: `device` comes from cuDeviceGet, which is all that reading its attributes asks for.
    unsafe { result::device::get_attribute(device, which) }.map(|value| value as u32)
}

fn properties(device: sys::CUdevice) -> Result<Properties, DriverError> {
    let read = |which| attribute(device, which);
    let mut driver_version = 0;
    // SAFETY: the driver writes one int to the address of a live one.
    unsafe { sys::cuDriverGetVersion(&mut driver_version) }.result()?;
    Ok(Properties {
        compute_capability: (
            read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        driver_version: driver_version as u32,
        // SAFETY: as in `attribute`.
        total_memory: unsafe { result::device::total_mem(device) }? as u64,
        multiprocessors: read(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_cache: u64::from(read(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
    })
}

fn make_current(cuda: &CudaContext) -> Result<(), CudaError> {
    cuda.bind_to_thread().map_err(explain("making the device current"))
}

/// A loaded module and its entry points; unloaded when the last operator that uses it is gone.
#[derive(Debug)]
pub(crate) struct LoadedModule {
    cuda: Arc<CudaContext>,
    module: sys::CUmodule,
    functions: Vec<Function>,
}

/// An entry point of a [`LoadedModule`], which must outlive it.
#[derive(Debug)]
pub(crate) struct Function(sys::CUfunction);

// SAFETY: a CUmodule and its CUfunctions are handles, which the driver lets any thread use whose current
// context is theirs; `launch` and `drop` make it current first.
unsafe impl Send for LoadedModule {}
// SAFETY: as for Send; nothing here changes after `new`.
unsafe impl Sync for LoadedModule {}

impl LoadedModule {
    fn new(
        cuda: &Arc<CudaContext>,
        name: &str,
        ptx: &str,
        entries: &[&CStr],
        shared_memory: u32,
    ) -> Result<Self, CudaError> {
        make_current(cuda)?;
        let verb = format!("loading {name}");
        let failed = explain(&verb);
        let image = CString::new(ptx).map_err(|_| failed(DriverError(sys::CUresult::CUDA_ERROR_INVALID_PTX)))?;
        // SAFETY: the image is PTX text that ends in a NUL and outlives the call.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }.map_err(&failed)?;
        let mut loaded = Self { cuda: cuda.clone(), module, functions: Vec::with_capacity(entries.len()) };
        for &entry in entries {
            // SAFETY: the module was loaded above; `loaded` unloads it if this fails.
            let function = unsafe { result::module::get_function(module, entry.to_owned()) }
                .map_err(explain(&format!("looking up {} in {name}", entry.to_string_lossy())))?;
            // A plan may give a block all the shared memory there is; without this it would get 48 KiB.
            // SAFETY: the function was looked up above.
            unsafe {
                result::function::set_function_attribute(
                    function,
                    sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    shared_memory as i32,
                )
            }
            .map_err(&failed)?;
            loaded.functions.push(Function(function));
        }
        Ok(loaded)
    }

    pub fn function(&self, index: usize) -> &Function {
        &self.functions[index]
    }
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        if make_current(&self.cuda).is_ok() {
            // The driver waits for the module's kernels itself. A module that cannot be unloaded is leaked.
            // SAFETY: `module` was loaded by `new` and is unloaded here only.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// Device memory, zeroed when made.
#[derive(Debug)]
pub(crate) struct Memory {
    context: Arc<Context>,
    address: sys::CUdeviceptr,
}

impl Memory {
    pub fn new(context: &Arc<Context>, size_in_bytes: u64) -> Result<Self, BufferError> {
        let failed = |reason: String| BufferError::OutOfMemory { backend: "cuda", size_in_bytes, reason };
        context.make_current()?;
        let (free, total) = result::mem_get_info().map_err(explain("asking for free memory"))?;
        if size_in_bytes > total as u64 {
            return Err(failed(format!("the GPU has {total} bytes, of which {free} are free")));
        }
        // The driver refuses to allocate nothing.
        let bytes = (size_in_bytes as usize).max(1);
        // SAFETY: the context is current.
        let address = unsafe { result::malloc_sync(bytes) }.map_err(|error| match error {
            DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                failed(format!("the GPU has {total} bytes, of which {free} are free"))
            }
            error => explain(&format!("allocating {size_in_bytes} bytes"))(error).into(),
        })?;
        let memory = Self { context: context.clone(), address };
        // SAFETY: `address` is `bytes` bytes that nothing else knows of yet; the stream is the context's.
        unsafe { result::memset_d8_async(address, 0, bytes, context.copies.0) }.map_err(explain("zeroing a buffer"))?;
        wait(context.copies)?;
        Ok(memory)
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    /// Writes bytes that the caller has checked to lie inside, after all work queued before and before any
    /// that is queued later.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), CudaError> {
        self.settle()?;
        let copies = self.context.copies;
        // SAFETY: the range lies inside the allocation (Buffer::check_range), no queued work uses it, and `bytes`
        // outlives the copy, which is waited for below: a kernel on another stream would not wait for it.
        unsafe { result::memcpy_htod_async(self.address + offset, bytes, copies.0) }
            .map_err(explain("writing a buffer"))?;
        wait(copies)
    }

    /// Reads bytes that the caller has checked to lie inside, after all work queued before.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), CudaError> {
        self.settle()?;
        let copies = self.context.copies;
        // SAFETY: as for `write`; the destination is a live slice of the length copied.
        unsafe { result::memcpy_dtoh_async(bytes, self.address + offset, copies.0) }
            .map_err(explain("reading a buffer"))?;
        wait(copies)
    }

    fn settle(&self) -> Result<(), CudaError> {
        self.context.make_current()?;
        settle(self.context.ordinal)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Queued work may still use the memory: wait for it. Where waiting fails, as while a stream of this
        // thread is being captured, the memory is leaked rather than pulled from under a kernel.
        if self.settle().is_ok() {
            // SAFETY: `address` was allocated by `new`, is freed here only, and no work uses it any more.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

/// A stream of a context.
#[derive(Debug)]
pub(crate) struct Stream {
    context: Arc<Context>,
    handle: StreamHandle,
}

impl Stream {
    pub fn new(context: &Arc<Context>) -> Result<Self, CudaError> {
        context.make_current()?;
        let handle = new_stream()?;
        STREAMS.write().unwrap_or_else(PoisonError::into_inner).push((context.ordinal, handle));
        Ok(Self { context: context.clone(), handle })
    }

    pub fn raw(&self) -> sys::CUstream {
        self.handle.0
    }

    pub fn handle(&self) -> StreamHandle {
        self.handle
    }

    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.context.make_current()?;
        wait(self.handle)
    }

    pub fn record_event(&self) -> Result<Event, CudaError> {
        self.context.make_current()?;
        let raw = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(explain("creating an event"))?;
        let event = Event { context: self.context.clone(), raw };
        // SAFETY: both handles are live and of one context.
        unsafe { result::event::record(raw, self.raw()) }.map_err(explain("recording an event"))?;
        Ok(event)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Memory may be freed once its streams are gone from the list, so their work must be done. Where waiting
        // fails, as while the stream is being captured, it stays in the list and is leaked.
        if self.synchronize().is_ok() {
            let mut streams = STREAMS.write().unwrap_or_else(PoisonError::into_inner);
            streams.retain(|(_, stream)| stream.0 != self.handle.0);
            // SAFETY: the stream was created by `new`, is destroyed here only, and is in the list no more.
            let _ = unsafe { result::stream::destroy(self.handle.0) };
        }
    }
}

/// A live stream of the context that a launch is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamHandle(sys::CUstream);

// SAFETY: a CUstream is a handle that the driver lets any thread use; calls on it are made with its context
// current.
unsafe impl Send for StreamHandle {}
// SAFETY: as for Send; the driver orders concurrent calls on one stream.
unsafe impl Sync for StreamHandle {}

impl StreamHandle {
    /// # Safety
    ///
    /// `raw` is null, or a live stream of the context it is used with, until the handle is last used.
    pub unsafe fn borrow(raw: sys::CUstream) -> Self {
        Self(raw)
    }
}

/// A timed event, recorded.
#[derive(Debug)]
pub(crate) struct Event {
    context: Arc<Context>,
    raw: sys::CUevent,
}

// SAFETY: a CUevent is a handle that the driver lets any thread use.
unsafe impl Send for Event {}
// SAFETY: as for Send; nothing changes after it is recorded.
unsafe impl Sync for Event {}

impl Event {
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<f64, CudaError> {
        self.context.make_current()?;
        let failed = explain("timing two events");
        for event in [earlier, self] {
            // SAFETY: both events were created and recorded by `record_event` and live as long as `self`.
            unsafe { result::event::synchronize(event.raw) }.map_err(&failed)?;
        }
        elapsed(earlier.raw, self.raw).map_err(failed)
    }
}

/// `cuEventElapsedTime`, asked of the driver by name: the bindings of CUDA 13 know only its second version,
/// which drivers before 12.8 do not have.
fn elapsed(start: sys::CUevent, end: sys::CUevent) -> Result<f64, DriverError> {
    type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;
    let mut function: *mut c_void = std::ptr::null_mut();
    let mut found = sys::CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    // SAFETY: the name ends in a NUL; the driver writes one pointer and one status to live variables.
    unsafe { sys::cuGetProcAddress_v2(c"cuEventElapsedTime".as_ptr(), &mut function, 12000, 0, &mut found) }
        .result()?;
    if function.is_null() {
        return Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND));
    }
    // SAFETY: for CUDA 12.0 the driver gives the function of this name the signature its documentation states.
    let function: ElapsedTime = unsafe { std::mem::transmute::<*mut c_void, ElapsedTime>(function) };
    let mut milliseconds = 0f32;
    // SAFETY: the events are live and recorded (the caller has waited for them), the result is a live f32.
    unsafe { function(&mut milliseconds, start, end) }.result()?;
    Ok(f64::from(milliseconds))
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: `raw` was created by `record_event` and is destroyed here only.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}

/// Launches a kernel that takes one structure by value, in blocks of [`THREADS`] with so many bytes of dynamic
/// shared memory.
///
/// Safe to call within this crate because the parameters come from a plan, and the pointers in them from
/// bound buffers, which are live and large enough (binding.range, binding.size) and stay so until the work
/// is done (`Memory::drop` waits), or from `dispatch_raw`, whose caller promises the same.
pub(crate) fn launch<P: Pod>(
    context: &Context,
    function: &Function,
    (blocks, shared): (u32, u32),
    params: &P,
    stream: StreamHandle,
) -> Result<(), CudaError> {
    context.make_current()?;
    let mut arguments = [std::ptr::from_ref(params).cast_mut().cast::<c_void>()];
    // SAFETY: the function belongs to a module loaded into this context, and takes one parameter of P's layout:
    // P is the `repr(C)` twin of the kernel's structure (held by the tests that run every entry point). The
    // driver copies it before it returns. What the kernel may touch is argued above and in the kernel file.
    unsafe { result::launch_kernel(function.0, (blocks, 1, 1), (THREADS, 1, 1), shared, stream.0, &mut arguments) }
        .map_err(explain("launching a kernel"))
}

/// Turns the driver's error into one that says what was being done and what to do about it.
fn explain(verb: &str) -> impl Fn(DriverError) -> CudaError + '_ {
    use sys::CUresult as E;
    move |error| {
        CudaError {
        verb: verb.to_owned(),
        code: error.0 as u32,
        reason: error.error_string().map_or_else(
            |_| format!("{error:?}"),
            |reason| reason.to_string_lossy().into_owned(),
        ),
        advice: match error.0 {
            E::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
                "the PTX is newer than the driver: update the driver, or build with an older nvcc or with DML_CUDA_PREBUILT=1"
            }
            E::CUDA_ERROR_INVALID_PTX | E::CUDA_ERROR_NO_BINARY_FOR_GPU => {
                "the GPU must be of compute capability 7.5 or higher"
            }
            E::CUDA_ERROR_OUT_OF_MEMORY => "free GPU memory",
            E::CUDA_ERROR_NO_DEVICE | E::CUDA_ERROR_INVALID_DEVICE => "check that nvidia-smi shows the GPU",
            E::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH | E::CUDA_ERROR_SYSTEM_NOT_READY => "reinstall or restart NVIDIA's driver",
            E::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED | E::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => {
                "end the stream's capture first"
            }
            E::CUDA_ERROR_ILLEGAL_ADDRESS | E::CUDA_ERROR_LAUNCH_FAILED | E::CUDA_ERROR_MISALIGNED_ADDRESS => {
                "an earlier kernel of this process touched memory it must not; the process must end"
            }
            _ => "see this error in the documentation of the CUDA driver API",
        }
        .to_owned(),
    }
    }
}
