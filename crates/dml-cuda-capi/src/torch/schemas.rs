//! The operators' schemas, and their registration.

use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use super::libtorch::{check, BoxedKernel, Cpu, Torch};
use super::torch_kernels::{kernel, TORCH};
use super::torch_reversal::{IN_PLACE, OUT_OF_PLACE, PADDED};
use crate::status::Failure;

/// Schemas, names and kernels. The Python package gives the first two what autograd needs, in Python, which costs more
/// time than a launch. It calls the others where nothing watches a call: directly, or from its `Reversal` if x requires
/// a gradient.
const OPERATORS: [(&CStr, &CStr, BoxedKernel); 5] = [
    (
        c"reverse_subsequences(Tensor x, Tensor lengths, int dim) -> Tensor",
        c"reverse_subsequences",
        kernel::<OUT_OF_PLACE>,
    ),
    (
        c"reverse_subsequences_(Tensor(a!) x, Tensor lengths, int dim) -> ()",
        c"reverse_subsequences_",
        kernel::<IN_PLACE>,
    ),
    (
        c"_reverse_subsequences(Tensor x, Tensor lengths, int dim) -> Tensor",
        c"_reverse_subsequences",
        kernel::<OUT_OF_PLACE>,
    ),
    (
        c"_reverse_subsequences_(Tensor(a!) x, Tensor lengths, int dim) -> ()",
        c"_reverse_subsequences_",
        kernel::<IN_PLACE>,
    ),
    (
        c"_reverse_padded(Tensor x, Tensor lengths, int dim) -> Tensor",
        c"_reverse_padded",
        kernel::<PADDED>,
    ),
];

/// Registers the operators, once in a process. They exist until it ends.
pub fn register() -> Result<(), Failure> {
    static REGISTERED: Mutex<bool> = Mutex::new(false);
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*registered {
        let found = Torch::find()?;
        register_with(&TORCH.get_or_init(|| found).cpu)?;
        *registered = true;
    }
    Ok(())
}

fn register_with(cpu: &Cpu) -> Result<(), Failure> {
    let (name, mut library) = (c"dml_cuda".as_ptr(), null_mut());
    // SAFETY: the text ends in a NUL, and PyTorch copies it.
    let made = unsafe { (cpu.library_fragment)(name, name, 0, &mut library) };
    check(made, "aoti_torch_library_init_fragment")?;
    for (schema, ..) in OPERATORS {
        // SAFETY: the schema ends in a NUL and is copied; `library` is live, because it is never deleted.
        let defined = unsafe { (cpu.define)(library, schema.as_ptr()) };
        check(defined, "aoti_torch_library_def")?;
    }
    // PyTorch's dispatch keys.
    for device in [c"CPU", c"CUDA"] {
        // SAFETY: the texts end in a NUL, and PyTorch copies them.
        let made = unsafe { (cpu.library_impl)(name, device.as_ptr(), name, 0, &mut library) };
        check(made, "aoti_torch_library_init_impl")?;
        for (_, name, kernel) in OPERATORS {
            // SAFETY: `library` is live, and the kernels have the schemas' arguments and results.
            let implemented = unsafe { (cpu.implement)(library, name.as_ptr(), kernel) };
            check(implemented, "aoti_torch_library_impl")?;
        }
    }
    Ok(())
}
