//! The operators' schemas, and their registration.

use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use super::libtorch::{check, BoxedKernel, Registry, Torch};
use super::torch_kernels::{kernel, TORCH};
use crate::status::Failure;

/// The namespace of the operators.
const NAMESPACE: &CStr = c"dml_cuda";

/// Schemas, names and kernels. The Python package gives the first two what autograd needs, in Python, which costs more
/// time than a launch. It calls the last two where autograd has nothing to do.
const OPERATORS: [(&CStr, &CStr, BoxedKernel); 4] = [
    (c"reverse_subsequences(Tensor x, Tensor lengths, int dim) -> Tensor", c"reverse_subsequences", kernel::<false>),
    (c"reverse_subsequences_(Tensor(a!) x, Tensor lengths, int dim) -> ()", c"reverse_subsequences_", kernel::<true>),
    (c"_reverse_subsequences(Tensor x, Tensor lengths, int dim) -> Tensor", c"_reverse_subsequences", kernel::<false>),
    (c"_reverse_subsequences_(Tensor(a!) x, Tensor lengths, int dim) -> ()", c"_reverse_subsequences_", kernel::<true>),
];

/// Registers the operators, once in a process.
pub fn register() -> Result<(), Failure> {
    /// Never dropped, so the operators exist until the process ends.
    static REGISTERED: Mutex<Option<Libraries>> = Mutex::new(None);
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if registered.is_none() {
        let found = Torch::find()?;
        *registered = Some(Libraries::new(TORCH.get_or_init(|| found))?);
    }
    Ok(())
}

/// Registrations of PyTorch. Dropping them takes their operators back.
struct Libraries {
    torch: &'static Torch,
    made: Vec<Registry>,
}

// SAFETY: PyTorch's libraries may be used and deleted on any thread.
unsafe impl Send for Libraries {}

impl Libraries {
    fn new(torch: &'static Torch) -> Result<Self, Failure> {
        let mut libraries = Self { torch, made: Vec::new() };
        let fragment = libraries.add(|made| {
            // SAFETY: the texts end in a NUL, and PyTorch copies them; here and below.
            unsafe { (torch.cpu.library_fragment)(NAMESPACE.as_ptr(), c"dml_cuda".as_ptr(), 0, made) }
        })?;
        for (schema, ..) in OPERATORS {
            // SAFETY: as above; `fragment` is a live library.
            check(unsafe { (torch.cpu.define)(fragment, schema.as_ptr()) }, "aoti_torch_library_def")?;
        }
        // PyTorch's dispatch keys.
        for device in [c"CPU", c"CUDA"] {
            let library = libraries.add(|made| {
                // SAFETY: as above.
                unsafe { (torch.cpu.library_impl)(NAMESPACE.as_ptr(), device.as_ptr(), c"dml_cuda".as_ptr(), 0, made) }
            })?;
            for (_, name, kernel) in OPERATORS {
                // SAFETY: as above; the kernels have the schemas' arguments and results.
                check(unsafe { (torch.cpu.implement)(library, name.as_ptr(), kernel) }, "aoti_torch_library_impl")?;
            }
        }
        Ok(libraries)
    }

    fn add(&mut self, make: impl FnOnce(&mut Registry) -> i32) -> Result<Registry, Failure> {
        let mut made = null_mut();
        check(make(&mut made), "torch::Library")?;
        self.made.push(made);
        Ok(made)
    }
}

impl Drop for Libraries {
    fn drop(&mut self) {
        for library in self.made.drain(..).rev() {
            // SAFETY: PyTorch made it, and it is not used again.
            let _ = unsafe { (self.torch.cpu.delete_library)(library) };
        }
    }
}
