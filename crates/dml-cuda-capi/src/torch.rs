//! The operators of PyTorch. [`dml_cuda_register_torch`] registers them through libtorch's C interface.
//!
//! | file | |
//! | --- | --- |
//! | libtorch | libtorch's functions, looked up in the process |
//! | tensor | owned tensors: reading one, allocating one |
//! | torch_kernels | the kernels that PyTorch calls |
//! | torch_reversal | a reversal of tensors |
//! | schemas | the operators' schemas, and their registration |
//!
//! Nothing of PyTorch is linked, so the library also loads where PyTorch is not installed.
#![allow(clippy::missing_safety_doc)] // `device` says why

mod libtorch;
mod schemas;
mod tensor;
mod torch_kernels;
mod torch_reversal;

use crate::output::enter;
use crate::status::{DML_CUDA_ERROR, DML_CUDA_STATUS};

/// Registers the operators `dml_cuda::reverse_subsequences` and `dml_cuda::reverse_subsequences_`, and three private
/// ones for this project's Python package, with the PyTorch of this process, for tensors on the CPU and on GPUs. Later
/// calls do nothing. `libdml_cuda_torch.so` calls this when it is loaded.
///
/// Fails with `DML_CUDA_STATUS_TORCH` if the process has not loaded PyTorch, if PyTorch is too old, or if another copy
/// of this library has registered the operators. It is for Linux: the library for Windows does not have it.
#[cfg(not(windows))] // the module has the same condition; here it is for the header
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_register_torch(
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(error, [], schemas::register()?)
}
