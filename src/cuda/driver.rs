//! The driver, wrapped thinly: contexts, modules and launches here, memory and streams below. The only place in
//! the crate that calls it.
//!
//! Calls go through cudarc's `result` layer on raw handles. Its safe layer records an event for every buffer
//! and launch, which costs time and breaks graph capture.
#![allow(unsafe_code)]

mod memory;
mod stream;

use std::ffi::{c_void, CStr, CString};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};
use cudarc::driver::CudaContext;

use crate::error::{CudaError, DeviceError};
use crate::plan::{Entry, Target};
pub(crate) use memory::Memory;
use stream::new_stream;
pub(crate) use stream::{Event, Stream, StreamHandle};

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

/// A GPU's primary context, and the kernels loaded into it.
#[derive(Debug)]
pub(crate) struct Context {
    cuda: Arc<CudaContext>,
    ordinal: usize,
    name: String,
    properties: Properties,
    target: Target,
    /// Memory is copied and set on this stream.
    copies: StreamHandle,
    kernels: Mutex<Vec<(Entry, Arc<Kernel>)>>,
}

impl Context {
    pub fn new(ordinal: usize) -> Result<Self, DeviceError> {
        let (name, properties) = describe(ordinal)?;
        let cuda = CudaContext::new(ordinal).map_err(explain(&format!("opening device {ordinal}")))?;
        let read =
            |which| attribute(cuda.cu_device(), which).map_err(explain("reading what blocks of threads can have"));
        let target = Target {
            shared_memory: read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            multiprocessors: properties.multiprocessors,
            clusters: properties.compute_capability >= (9, 0)
                && read(Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)? != 0,
        };
        let copies = new_stream()?;
        Ok(Self { cuda, ordinal, name, properties, target, copies, kernels: Mutex::default() })
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

    /// A kernel, loaded on first use from the PTX of its module.
    pub fn kernel(&self, entry: Entry, ptx: &str) -> Result<Arc<Kernel>, CudaError> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kernel)) = kernels.iter().find(|(loaded, _)| *loaded == entry) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(Kernel::new(&self.cuda, ptx, entry.name(), self.target.shared_memory)?);
        kernels.push((entry, kernel.clone()));
        Ok(kernel)
    }

    fn make_current(&self) -> Result<(), CudaError> {
        make_current(&self.cuda)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.make_current().is_ok() {
            // SAFETY: the stream was created by `new`, is destroyed here only, and every copy was waited for.
            let _ = unsafe { result::stream::destroy(self.copies.raw()) };
        }
    }
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

/// A loaded kernel; unloaded when the context and the last operator that uses it are gone.
#[derive(Debug)]
pub(crate) struct Kernel {
    cuda: Arc<CudaContext>,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

// SAFETY: a CUmodule and its CUfunctions are handles, which the driver lets any thread use whose current
// context is theirs; `launch` and `drop` make it current first.
unsafe impl Send for Kernel {}
// SAFETY: as for Send; nothing here changes after `new`.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Loads one entry point out of the PTX of a kernel file, as a module of its own: the driver compiles PTX when it
    /// is loaded, and the file's others are not wanted.
    fn new(cuda: &Arc<CudaContext>, ptx: &str, entry: &CStr, shared_memory: u32) -> Result<Self, CudaError> {
        make_current(cuda)?;
        let name = entry.to_string_lossy();
        let verb = format!("loading {name}");
        let failed = explain(&verb);
        let image =
            CString::new(only(ptx, &name)).map_err(|_| failed(DriverError(sys::CUresult::CUDA_ERROR_INVALID_PTX)))?;
        // SAFETY: the image is PTX text that ends in a NUL and outlives the call.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }.map_err(&failed)?;
        let mut kernel = Self { cuda: cuda.clone(), module, function: std::ptr::null_mut() };
        // SAFETY: the module was loaded above; `kernel` unloads it if this fails.
        kernel.function = unsafe { result::module::get_function(module, entry.to_owned()) }.map_err(&failed)?;
        // A plan may give a block all the shared memory there is; without this it would get 48 KiB.
        // SAFETY: the function was looked up above.
        unsafe {
            result::function::set_function_attribute(
                kernel.function,
                sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                shared_memory as i32,
            )
        }
        .map_err(&failed)?;
        Ok(kernel)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if make_current(&self.cuda).is_ok() {
            // The driver waits for the module's kernels itself. A module that cannot be unloaded is leaked.
            // SAFETY: `module` was loaded by `new` and is unloaded here only.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// PTX with one of its entry points: what stands before the first, and that one. They call nothing of each other.
fn only(ptx: &str, entry: &str) -> String {
    const BEGIN: &str = ".visible .entry ";
    let mut parts = ptx.split(BEGIN);
    let head = parts.next().unwrap_or_default();
    let body = parts.find(|part| part.split('(').next() == Some(entry)).unwrap_or_default();
    [head, BEGIN, body].concat()
}

/// Launches a kernel that takes one structure by value, in so many blocks of so many threads with so many bytes of dynamic
/// shared memory.
///
/// Safe to call within this crate because the parameters come from a plan, and the pointers in them from
/// bound buffers, which are live and large enough (binding.range, binding.size) and stay so until the work
/// is done (`Memory::drop` waits), or from `dispatch_raw`, whose caller promises the same.
pub(crate) fn launch<P: Pod>(
    context: &Context,
    kernel: &Kernel,
    (blocks, threads, shared): (u32, u32, u32),
    params: &P,
    stream: StreamHandle,
) -> Result<(), CudaError> {
    context.make_current()?;
    let mut arguments = [std::ptr::from_ref(params).cast_mut().cast::<c_void>()];
    // SAFETY: the kernel was loaded into this context, and takes one parameter of P's layout:
    // P is the `repr(C)` twin of the kernel's structure (held by the tests that run every entry point). The
    // driver copies it before it returns. What the kernel may touch is argued above and in the kernel file.
    unsafe {
        result::launch_kernel(kernel.function, (blocks, 1, 1), (threads, 1, 1), shared, stream.raw(), &mut arguments)
    }
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

#[cfg(test)]
mod tests {
    use super::only;

    #[test]
    fn one_entry_point_is_taken_with_what_all_share() {
        let ptx = ".version 6.3\n.extern .shared s;\n.visible .entry a(\n) { ret; }\n// .globl ab\n.visible .entry ab(\n) { exit; }\n";
        assert_eq!(only(ptx, "ab"), ".version 6.3\n.extern .shared s;\n.visible .entry ab(\n) { exit; }\n");
        assert!(only(ptx, "a").ends_with(".visible .entry a(\n) { ret; }\n// .globl ab\n"));
    }
}
