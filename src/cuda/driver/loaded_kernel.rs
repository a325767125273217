//! Kernels. Each is loaded as a separate module.

use std::ffi::CString;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::capture::Unrestricted;
use super::failure::cuda_error;
use super::primary::PrimaryContext;
use crate::cuda::kernels::Entry;
use crate::error::CudaError;

/// A loaded kernel. It is unloaded when the context and the last operator that uses it are gone.
#[derive(Debug)]
pub(crate) struct LoadedKernel {
    context: Arc<PrimaryContext>,
    module: sys::CUmodule,
    pub(super) function: sys::CUfunction,
}

// SAFETY: a CUmodule and its CUfunctions are handles that any thread may use while their context is current; `launch`
// and `drop` make it current first.
unsafe impl Send for LoadedKernel {}
// SAFETY: as for Send; nothing here changes after `new`.
unsafe impl Sync for LoadedKernel {}

impl LoadedKernel {
    /// Loads one entry point from the PTX of a kernel file, as a separate module: the driver compiles PTX when it loads
    /// it, and the other entry points of the file are not needed.
    pub(super) fn new(context: &Arc<PrimaryContext>, entry: Entry, shared_memory: u32) -> Result<Self, CudaError> {
        let _current = context.enter()?;
        let verb = format!("loading {}", entry.name);
        let failed = cuda_error(&verb);
        let _unrestricted = Unrestricted::enter().map_err(&failed)?;
        let invalid = |_| failed(DriverError(sys::CUresult::CUDA_ERROR_INVALID_PTX));
        let name = CString::new(entry.name).map_err(invalid)?;
        let image = CString::new(only(entry.ptx(), entry.name)).map_err(invalid)?;
        // SAFETY: the image is PTX text that ends in a NUL and outlives the call.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }.map_err(&failed)?;
        let mut kernel = Self { context: context.clone(), module, function: std::ptr::null_mut() };
        // SAFETY: the module was loaded above; `kernel` unloads it if this fails.
        kernel.function = unsafe { result::module::get_function(module, name) }.map_err(&failed)?;
        // Without this, a thread block gets at most 48 KiB of shared memory. Selection may give it all that the GPU
        // has.
        let limit = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function was looked up above.
        unsafe { result::function::set_function_attribute(kernel.function, limit, shared_memory as i32) }
            .map_err(&failed)?;
        Ok(kernel)
    }
}

impl Drop for LoadedKernel {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // If the module cannot be unloaded, it leaks.
            // SAFETY: `module` was loaded by `new` and is unloaded only here. No launch of its kernel is still running: the
            // context, which owns the kernel, outlives the streams and the memory, whose drops wait; and whoever queued
            // work on raw pointers keeps the operator until the work is done.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// The PTX with only one of its entry points: what precedes the first one, and this one. Entry points do not call each
/// other.
fn only(ptx: &str, entry: &str) -> String {
    const BEGIN: &str = ".visible .entry ";
    let mut parts = ptx.split(BEGIN);
    let head = parts.next().unwrap_or_default();
    let body = parts.find(|part| part.split('(').next() == Some(entry)).unwrap_or_default();
    [head, BEGIN, body].concat()
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
