//! Tensors that a kernel owns.

use std::ptr::null_mut;

use dml_cuda::lowering::ForeignTensor;
use dml_cuda::Address;

use super::libtorch::{check, Handle, Torch, Value};
use crate::input::list;
use crate::status::{wrong, Failure};

/// The most dimensions of a tensor: those of PyTorch's own operators.
pub const MAX_RANK: usize = 64;

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

/// The properties of a tensor that a kernel needs.
pub struct Description<'a> {
    pub tensor: &'a Tensor<'a>,
    pub sizes: &'a [i64],
    /// In elements.
    strides: &'a [i64],
    pub dtype: i32,
    pub device_type: i32,
    pub device_index: i32,
    pub address: Address,
    /// Bytes of an element.
    pub width: usize,
    strides_in_bytes: [i64; MAX_RANK],
}

impl Description<'_> {
    pub fn foreign(&self) -> ForeignTensor<'_> {
        let (address, sizes) = (self.address, self.sizes);
        ForeignTensor {
            address,
            sizes,
            strides_in_bytes: Some(&self.strides_in_bytes[..sizes.len()]),
        }
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
    fn get<T>(
        &self,
        from: unsafe extern "C" fn(Handle, *mut T) -> i32,
        name: &str,
        zero: T,
    ) -> Result<T, Failure> {
        let mut value = zero;
        // SAFETY: the handle is live, and the function writes a `T`.
        check(unsafe { from(self.handle, &mut value) }, name)?;
        Ok(value)
    }

    /// Reads what a kernel needs to know. Errors call the tensor `name`.
    pub fn describe(&self, name: &str) -> Result<Description<'_>, Failure> {
        let cpu = &self.torch.cpu;
        let rank = self.get(cpu.dim, "aoti_torch_get_dim", 0)? as usize;
        if rank > MAX_RANK {
            return wrong(format!(
                "{name} has {rank} dimensions, but must have at most {MAX_RANK}"
            ));
        }
        // SAFETY: PyTorch keeps `rank` sizes and strides in the tensor, which lives as long as `self`. No kernel
        // changes them.
        let numbers = |from: *const i64| unsafe { list(from, rank) };
        let dtype = self.get(cpu.dtype, "aoti_torch_get_dtype", 0)?;
        // SAFETY: the dtype is a tensor's.
        let width = unsafe { (cpu.element_size)(dtype) };
        let strides = numbers(self.get(cpu.strides, "aoti_torch_get_strides", std::ptr::null())?);
        let mut strides_in_bytes = [0; MAX_RANK];
        strides_in_bytes
            .iter_mut()
            .zip(strides)
            .for_each(|(to, &stride)| *to = stride.saturating_mul(width as i64));
        Ok(Description {
            tensor: self,
            sizes: numbers(self.get(cpu.sizes, "aoti_torch_get_sizes", std::ptr::null())?),
            strides,
            dtype,
            device_type: self.get(cpu.device_type, "aoti_torch_get_device_type", 0)?,
            device_index: self.get(cpu.device_index, "aoti_torch_get_device_index", 0)?,
            address: self
                .get(cpu.data, "aoti_torch_get_data_ptr", null_mut())?
                .into(),
            width,
            strides_in_bytes,
        })
    }

    /// `torch.empty_like`. Dense tensors, whose strides it keeps, take a shorter way.
    pub fn empty_like(like: &Description<'a>) -> Result<Self, Failure> {
        if is_dense(like.sizes, like.strides) {
            return Self::empty(like.sizes, like.strides, like);
        }
        let (torch, mut handle) = (like.tensor.torch, null_mut());
        // SAFETY: the handle is live. The function writes another one of the same tensor.
        let called = unsafe { (torch.cpu.again)(like.tensor.handle, &mut handle) };
        check(called, "aoti_torch_new_tensor_handle")?;
        let mut stack = [handle as Value, 0, 0, 0, 0, 0];
        // SAFETY: these are the operator's arguments: a tensor, which PyTorch then owns, and five options, which 0
        // leaves out. PyTorch leaves a tensor there, which the caller owns.
        let called = unsafe {
            (torch.cpu.call)(
                c"aten::empty_like".as_ptr(),
                c"".as_ptr(),
                stack.as_mut_ptr(),
            )
        };
        check(called, "aoti_torch_call_dispatcher")?;
        Ok(Self {
            torch,
            handle: stack[0] as Handle,
        })
    }

    /// A new tensor of a dtype and a device, with at least as many strides as sizes.
    fn empty(sizes: &[i64], strides: &[i64], like: &Description<'a>) -> Result<Self, Failure> {
        let torch = like.tensor.torch;
        let (dtype, device_type, device_index) = (like.dtype, like.device_type, like.device_index);
        let (make, mut handle) = (torch.cpu.empty_strided, null_mut());
        let (rank, sizes, strides) = (sizes.len() as i64, sizes.as_ptr(), strides.as_ptr());
        // SAFETY: both arrays have `rank` numbers. The function writes a handle, which the caller owns.
        let status = unsafe {
            make(
                rank,
                sizes,
                strides,
                dtype,
                device_type,
                device_index,
                &mut handle,
            )
        };
        check(status, "aoti_torch_empty_strided")?;
        Ok(Self { torch, handle })
    }

    /// A packed copy, broadcast to sizes.
    pub fn packed(of: &Description<'a>, sizes: &[i64]) -> Result<Self, Failure> {
        let mut strides = vec![1; sizes.len()];
        for d in (1..sizes.len()).rev() {
            strides[d - 1] = strides[d] * sizes[d];
        }
        let made = Self::empty(sizes, &strides, of)?;
        made.copy(of.tensor)?;
        Ok(made)
    }

    /// `self.copy_(from)`.
    pub fn copy(&self, from: &Tensor<'_>) -> Result<(), Failure> {
        // SAFETY: both handles are live.
        check(
            unsafe { (self.torch.cpu.copy)(self.handle, from.handle, 0) },
            "aoti_torch_copy_",
        )
    }
}

/// Whether the elements fill a range of memory, each place once. Dimensions may be in any order. PyTorch counts every
/// empty tensor.
fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let moving = || sizes.iter().zip(strides).filter(|(&size, _)| size > 1);
    let mut packed = 1i64;
    for _ in moving() {
        let Some((&size, _)) = moving().find(|(_, &stride)| stride == packed) else {
            return sizes.contains(&0);
        };
        packed = packed.saturating_mul(size);
    }
    true
}
