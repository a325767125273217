//! Kernels. Each is loaded as a separate module.

use std::ffi::{c_void, CString};
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::capture::may_load;
use super::failure::cuda_error;
use super::handle::StreamHandle;
use super::primary::PrimaryContext;
use crate::cuda::launch::{Addresses, Grid, Launch};
use crate::error::CudaError;

/// A loaded kernel. It is unloaded when the context and the last operator that uses it are gone.
#[derive(Debug)]
pub(crate) struct LoadedKernel {
    context: Arc<PrimaryContext>,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

// SAFETY: a CUmodule and its CUfunctions are handles that any thread may use while their context is current. Callers
// of `launch` make it current (`Context::enter_to_queue`), and `drop` does so itself.
unsafe impl Send for LoadedKernel {}
// SAFETY: nothing changes after `new`.
unsafe impl Sync for LoadedKernel {}

impl LoadedKernel {
    /// Loads PTX with that one entry point. The driver compiles it.
    pub(super) fn new(
        context: &Arc<PrimaryContext>,
        name: &str,
        ptx: String,
        shared_memory: u32,
    ) -> Result<Self, CudaError> {
        let _current = context.enter()?;
        let verb = format!("loading {name}");
        let failed = cuda_error(&verb);
        if !may_load() {
            let advice = "run the operator once before the capture, or update a driver that is older than CUDA 12.3";
            let error = failed(DriverError(
                sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            ));
            return Err(CudaError {
                advice: advice.to_owned(),
                ..error
            });
        }
        let invalid = |_| failed(DriverError(sys::CUresult::CUDA_ERROR_INVALID_PTX));
        let name = CString::new(name).map_err(invalid)?;
        let image = CString::new(ptx).map_err(invalid)?;
        // SAFETY: the image is PTX text that ends in a NUL and outlives the call.
        let module =
            unsafe { result::module::load_data(image.as_ptr().cast()) }.map_err(&failed)?;
        let mut kernel = Self {
            context: context.clone(),
            module,
            function: std::ptr::null_mut(),
        };
        // SAFETY: the module was loaded above; `kernel` unloads it if this fails.
        kernel.function = unsafe { result::module::get_function(module, name) }.map_err(&failed)?;
        // Without this, a thread block gets at most 48 KiB of shared memory. Selection may give it all that the GPU
        // has.
        let limit = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function was looked up above.
        unsafe {
            result::function::set_function_attribute(kernel.function, limit, shared_memory as i32)
        }
        .map_err(&failed)?;
        Ok(kernel)
    }

    /// Queues it, with the parameters of a selection. Its context is current.
    ///
    /// # Safety
    ///
    /// The addresses are those of the tensors of the operator that the launch was selected for. Until its work is done,
    /// the GPU can read the inputs and write the output, and no other work writes one of them or reads the output.
    pub(crate) unsafe fn launch(
        &self,
        launch: &Launch,
        addresses: &Addresses<'_>,
        stream: StreamHandle,
    ) -> Result<(), CudaError> {
        let mut words = launch.parameters(addresses);
        let mut arguments = [words.as_mut_ptr().cast::<c_void>()];
        let Grid {
            blocks,
            threads,
            shared,
        } = launch.grid;
        let (blocks, threads) = ((blocks, 1, 1), (threads, 1, 1));
        // SAFETY: the kernel takes one parameter: `words` are the bytes of the `repr(C)` twin of its structure (tests
        // run every entry point). The driver copies them before it returns. The caller promises that the kernel may use
        // the memory, and the kernel file says where in it.
        unsafe {
            result::launch_kernel(
                self.function,
                blocks,
                threads,
                shared,
                stream.raw(),
                &mut arguments,
            )
        }
        .map_err(cuda_error("launching a kernel"))
    }
}

impl Drop for LoadedKernel {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // If the module cannot be unloaded, it leaks.
            // SAFETY: `module` was loaded by `new` and is unloaded only here. No launch of its kernel is still running:
            // a kernel of the context outlives the streams and the memory, whose drops wait, and a kernel that is
            // loaded briefly runs on a stream that is dropped before it. Whoever queued work on raw pointers keeps the
            // operator until the work is done.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}
