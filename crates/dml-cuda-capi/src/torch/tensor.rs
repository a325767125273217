//! Tensors that a kernel owns.

use std::ptr::null_mut;

use dml_cuda::lowering::ForeignTensor;
use dml_cuda::Address;

use super::layout::{empty_like, MAX_RANK};
use super::libtorch::{check, Handle, Torch};
use crate::input::list;
use crate::status::Failure;

/// A tensor of PyTorch. Dropping it gives PyTorch's reference back.
pub struct Tensor<'a> {
    pub torch: &'a Torch,
    /// A live tensor's, and this object's own.
    pub handle: Handle,
}

impl Drop for Tensor<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is owned, and not used again. A failure leaves nothing to do.
        let _ = unsafe { (self.torch.cpu.delete_tensor)(self.handle) };
    }
}

/// What a kernel needs to know of a tensor.
pub struct Description<'a> {
    pub sizes: &'a [i64],
    /// In elements.
    pub strides: &'a [i64],
    pub dtype: i32,
    pub device_type: i32,
    pub device_index: i32,
    pub address: Address,
    /// Bytes of an element.
    pub width: usize,
    strides_in_bytes: [i64; MAX_RANK],
}

impl Description<'_> {
    /// The tensor of a reversal, which has at most [`MAX_RANK`] dimensions.
    pub fn foreign(&self) -> ForeignTensor<'_> {
        let (address, sizes) = (self.address, self.sizes);
        ForeignTensor { address, sizes, strides_in_bytes: Some(&self.strides_in_bytes[..sizes.len()]) }
    }
}

impl<'a> Tensor<'a> {
    /// Whether autograd would have to follow a change of this tensor now.
    pub fn has_gradient(&self) -> bool {
        let cpp = &self.torch.cpp;
        // SAFETY: the handle is a live `at::Tensor`, which is a pointer to its `TensorImpl`.
        unsafe { (cpp.grad_mode)() && (cpp.requires_grad)(*self.handle.cast()) }
    }

    /// Tells autograd that the tensor has changed, so that a backward pass that saved it is an error. Inference tensors
    /// have no version.
    pub fn bump_version(&self) {
        let cpp = &self.torch.cpp;
        // SAFETY: the handle is a live `at::Tensor`, and no inference tensor.
        unsafe {
            if !(cpp.is_inference)(self.handle) {
                (cpp.bump_version)(self.handle);
            }
        }
    }

    /// Reads a value with one of libtorch's functions.
    fn get<T>(&self, from: unsafe extern "C" fn(Handle, *mut T) -> i32, name: &str, zero: T) -> Result<T, Failure> {
        let mut value = zero;
        // SAFETY: the handle is live, and the function writes a `T`.
        check(unsafe { from(self.handle, &mut value) }, name)?;
        Ok(value)
    }

    pub fn describe(&self) -> Result<Description<'_>, Failure> {
        let cpu = &self.torch.cpu;
        let rank = self.get(cpu.dim, "aoti_torch_get_dim", 0)? as usize;
        // SAFETY: PyTorch keeps `rank` sizes and strides in the tensor, which lives as long as `self`. No kernel
        // changes them.
        let numbers = |from: *const i64| unsafe { list(from, rank) };
        let dtype = self.get(cpu.dtype, "aoti_torch_get_dtype", 0)?;
        // SAFETY: the dtype is a tensor's.
        let width = unsafe { (cpu.element_size)(dtype) };
        let strides = numbers(self.get(cpu.strides, "aoti_torch_get_strides", std::ptr::null())?);
        let mut strides_in_bytes = [0; MAX_RANK];
        strides_in_bytes.iter_mut().zip(strides).for_each(|(to, &stride)| *to = stride.saturating_mul(width as i64));
        Ok(Description {
            sizes: numbers(self.get(cpu.sizes, "aoti_torch_get_sizes", std::ptr::null())?),
            strides,
            dtype,
            device_type: self.get(cpu.device_type, "aoti_torch_get_device_type", 0)?,
            device_index: self.get(cpu.device_index, "aoti_torch_get_device_index", 0)?,
            address: self.get(cpu.data, "aoti_torch_get_data_ptr", null_mut())?.into(),
            width,
            strides_in_bytes,
        })
    }

    /// `torch.empty_like` of a tensor of at most [`MAX_RANK`] dimensions.
    pub fn empty_like(torch: &'a Torch, like: &Description<'_>) -> Result<Self, Failure> {
        Self::empty(torch, like.sizes, &empty_like(like.sizes, like.strides), like)
    }

    /// A new tensor of a dtype and a device, with at least as many strides as sizes.
    fn empty(torch: &'a Torch, sizes: &[i64], strides: &[i64], like: &Description<'_>) -> Result<Self, Failure> {
        let (dtype, device_type, device_index) = (like.dtype, like.device_type, like.device_index);
        let (make, mut handle) = (torch.cpu.empty_strided, null_mut());
        let (rank, sizes, strides) = (sizes.len() as i64, sizes.as_ptr(), strides.as_ptr());
        // SAFETY: both arrays have `rank` numbers. The function writes a handle, which the caller owns.
        let status = unsafe { make(rank, sizes, strides, dtype, device_type, device_index, &mut handle) };
        check(status, "aoti_torch_empty_strided")?;
        Ok(Self { torch, handle })
    }

    /// A packed copy, broadcast to sizes.
    pub fn packed(&self, sizes: &[i64]) -> Result<Self, Failure> {
        let mut strides = vec![1; sizes.len()];
        for d in (1..sizes.len()).rev() {
            strides[d - 1] = strides[d] * sizes[d];
        }
        let made = Self::empty(self.torch, sizes, &strides, &self.describe()?)?;
        made.copy(self)?;
        Ok(made)
    }

    /// `self.copy_(from)`.
    pub fn copy(&self, from: &Tensor<'_>) -> Result<(), Failure> {
        // SAFETY: both handles are live.
        check(unsafe { (self.torch.cpu.copy)(self.handle, from.handle, 0) }, "aoti_torch_copy_")
    }
}
