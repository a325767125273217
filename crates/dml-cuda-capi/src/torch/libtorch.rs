//! libtorch's functions, looked up in the process. libtorch promises that they stay, and that a tensor handle means the
//! same in every version (`torch/csrc/inductor/aoti_torch/c/shim.h`).

use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::LazyLock;

use dml_cuda::{RawStream, TensorDataType};
use libloading::os::unix::{Library, RTLD_NOW};

use crate::status::{Failure, DML_CUDA_STATUS_TORCH};

/// `at::Tensor *`.
pub type Handle = *mut c_void;
/// `torch::Library *`.
pub type Registry = *mut c_void;
/// An argument or a result of an operator: a tensor's handle, or the bits of an int64.
pub type Value = u64;
/// A kernel takes `inputs` values from the stack, owns them, and leaves `outputs` values there. It may throw C++
/// exceptions.
pub type BoxedKernel = unsafe extern "C-unwind" fn(*mut Value, u64, u64);
/// 0 is success.
type Status = i32;
/// A text that ends in a NUL.
type Text = *const c_char;

macro_rules! functions {
    ($(#[$doc:meta])* $set:ident $abi:literal {
        $($name:ident = $symbol:ident($($argument:ty),*) $(-> $result:ty)?;)*
    }) => {
        $(#[$doc])*
        pub struct $set { $(pub $name: unsafe extern $abi fn($($argument),*) $(-> $result)?),* }

        impl $set {
            /// Fails with the name of the first function that is missing.
            ///
            /// # Safety
            ///
            /// The library is never unloaded, and its functions of these names have these types.
            unsafe fn find(library: &Library) -> Result<Self, &'static str> {
                $(
                    let symbol = stringify!($symbol);
                    // SAFETY: the library stays loaded, and declares the function with this type.
                    let $name = *unsafe { library.get(symbol) }.map_err(|_| symbol)?;
                )*
                Ok(Self { $($name),* })
            }
        }
    };
}

functions! {
    /// Functions of libtorch_cpu.so. They catch C++ exceptions, and return a status.
    Cpu "C" {
        library_fragment = aoti_torch_library_init_fragment(Text, Text, u32, *mut Registry) -> Status;
        library_impl = aoti_torch_library_init_impl(Text, Text, Text, u32, *mut Registry) -> Status;
        define = aoti_torch_library_def(Registry, *const c_char) -> Status;
        implement = aoti_torch_library_impl(Registry, *const c_char, BoxedKernel) -> Status;
        delete_tensor = aoti_torch_delete_tensor_object(Handle) -> Status;
        dim = aoti_torch_get_dim(Handle, *mut i64) -> Status;
        sizes = aoti_torch_get_sizes(Handle, *mut *const i64) -> Status;
        strides = aoti_torch_get_strides(Handle, *mut *const i64) -> Status;
        dtype = aoti_torch_get_dtype(Handle, *mut i32) -> Status;
        device_type = aoti_torch_get_device_type(Handle, *mut i32) -> Status;
        device_index = aoti_torch_get_device_index(Handle, *mut i32) -> Status;
        data = aoti_torch_get_data_ptr(Handle, *mut *mut c_void) -> Status;
        empty_strided = aoti_torch_empty_strided(i64, *const i64, *const i64, i32, i32, i32, *mut Handle) -> Status;
        copy = aoti_torch_copy_(Handle, Handle, i32) -> Status;
        again = aoti_torch_new_tensor_handle(Handle, *mut Handle) -> Status;
        call = aoti_torch_call_dispatcher(Text, Text, *mut Value) -> Status;
        element_size = aoti_torch_dtype_element_size(i32) -> usize;
        device_cpu = aoti_torch_device_type_cpu() -> i32;
        device_cuda = aoti_torch_device_type_cuda() -> i32;
        int32 = aoti_torch_dtype_int32() -> i32;
        int64 = aoti_torch_dtype_int64() -> i32;
        uint32 = aoti_torch_dtype_uint32() -> i32;
        uint64 = aoti_torch_dtype_uint64() -> i32;
    }
}

functions! {
    /// Functions of libtorch_cuda.so.
    Cuda "C" {
        current_stream = aoti_torch_get_current_cuda_stream(i32, *mut *mut c_void) -> Status;
    }
}

functions! {
    /// Functions of libtorch_cpu.so, and of libc10.so and libstdc++, on which it depends. C++ has them, and the C
    /// interface does not. A `Handle` is a `const at::Tensor &`.
    Cpp "C-unwind" {
        // `c10::GradMode::is_enabled`.
        grad_mode = _ZN3c108GradMode10is_enabledEv() -> bool;
        // `c10::TensorImpl::requires_grad`, of the pointer that an `at::Tensor` is.
        requires_grad = _ZNK3c1010TensorImpl13requires_gradEv(*const c_void) -> bool;
        // `at::_ops::is_inference::call`.
        is_inference = _ZN2at4_ops12is_inference4callERKNS_6TensorE(Handle) -> bool;
        // `torch::autograd::impl::bump_version`. It throws for an inference tensor.
        bump_version = _ZN5torch8autograd4impl12bump_versionERKN2at6TensorE(Handle);
        // `std::__throw_runtime_error` copies the text.
        throw_runtime_error = _ZSt21__throw_runtime_errorPKc(*const c_char) -> !;
    }
}

/// A library of this process, which stays.
fn loaded(name: &str) -> Option<ManuallyDrop<Library>> {
    /// The value in glibc and in musl.
    const RTLD_NOLOAD: c_int = 4;
    // SAFETY: a library that is already loaded runs no code when it is opened again.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_NOLOAD) }
        .ok()
        .map(ManuallyDrop::new)
}

/// The PyTorch of this process.
pub struct Torch {
    pub cpu: Cpu,
    pub cpp: Cpp,
    /// PyTorch's numbers of device types.
    pub on_cpu: i32,
    pub on_cuda: i32,
    /// PyTorch's number of each dtype that lengths may have.
    pub lengths: [(i32, TensorDataType); 4],
}

impl Torch {
    pub fn find() -> Result<Self, Failure> {
        let library = loaded("libtorch_cpu.so").ok_or_else(|| {
            failure("PyTorch is not loaded: libtorch_cpu.so must be in the process before the operators are registered")
        })?;
        let too_old = |symbol| {
            failure(format!(
                "this PyTorch must be 2.8 or newer: {symbol} is missing"
            ))
        };
        // SAFETY: libtorch's header declares these functions. The handle is never closed, so they stay.
        let cpu = unsafe { Cpu::find(&library) }.map_err(too_old)?;
        // SAFETY: C++ headers declare them so since PyTorch 2.8 (python/tests/test_torch.py uses each). They also stay.
        let cpp = unsafe { Cpp::find(&library) };
        let cpp = cpp.map_err(|symbol| {
            failure(format!(
                "libtorch_cpu.so must have {symbol}, which is missing"
            ))
        })?;
        use TensorDataType::{Int32, Int64, UInt32, UInt64};
        // SAFETY: these functions return constants.
        let (on_cpu, on_cuda, lengths) = unsafe {
            let lengths = [
                ((cpu.int64)(), Int64),
                ((cpu.int32)(), Int32),
                ((cpu.uint32)(), UInt32),
                ((cpu.uint64)(), UInt64),
            ];
            ((cpu.device_cpu)(), (cpu.device_cuda)(), lengths)
        };
        Ok(Self {
            cpu,
            cpp,
            on_cpu,
            on_cuda,
            lengths,
        })
    }
}

/// PyTorch's current stream of a GPU.
pub fn current_stream(device_index: i32) -> Result<RawStream, Failure> {
    /// Found at the first use, because PyTorch may load this library before libtorch_cuda.so.
    static CUDA: LazyLock<Result<Cuda, String>> = LazyLock::new(|| {
        let library = loaded("libtorch_cuda.so")
            .ok_or("libtorch_cuda.so must be in the process for tensors on a GPU")?;
        // SAFETY: libtorch's header declares the function. The handle is never closed, so it stays.
        unsafe { Cuda::find(&library) }
            .map_err(|symbol| format!("libtorch_cuda.so has no {symbol}"))
    });
    let (cuda, mut stream) = (CUDA.as_ref().map_err(failure)?, null_mut());
    // SAFETY: the function writes the stream.
    let called = unsafe { (cuda.current_stream)(device_index, &mut stream) };
    check(called, "aoti_torch_get_current_cuda_stream")?;
    Ok(RawStream(stream))
}

pub fn failure(message: impl ToString) -> Failure {
    Failure::new(DML_CUDA_STATUS_TORCH, message)
}

/// Turns the status of a function into a result. PyTorch has written the reason to its log.
pub fn check(status: Status, function: &str) -> Result<(), Failure> {
    if status == 0 {
        return Ok(());
    }
    Err(failure(format!(
        "PyTorch's {function} failed; PyTorch has written why to its log"
    )))
}
