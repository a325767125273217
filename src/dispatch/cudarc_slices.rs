//! Safe dispatch on slices and streams of cudarc. Only this module has cudarc's types in its public API. Its feature
//! names cudarc's version: a new cudarc gets a new feature, so that the crate's own version need not change.
#![allow(unsafe_code)]

use bytemuck::Pod;
use cudarc::driver::{
    CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop,
};

use crate::address::{Address, RawStream};
use crate::desc::{BufferTensorDesc, TensorRole};
use crate::device::operator::CompiledOperator;
use crate::error::{BindingError, DispatchError};

/// Device memory that can be an input: a [`CudaSlice`], [`CudaView`] or [`CudaViewMut`] of any plain type.
pub trait CudaBytes: sealed::Read {}

/// Device memory that can also be an output: a [`CudaSlice`] or a [`CudaViewMut`].
pub trait CudaBytesMut: CudaBytes + sealed::Write {}

mod sealed {
    use cudarc::driver::{CudaStream, SyncOnDrop};

    use crate::address::Address;

    pub trait Read {
        /// The size of the memory in bytes, and the ordinal of its GPU.
        fn size_and_ordinal(&self) -> (u64, usize);
        fn read_on<'a>(&'a self, stream: &'a CudaStream) -> (Address, SyncOnDrop<'a>);
    }

    pub trait Write: Read {
        fn write_on<'a>(&'a mut self, stream: &'a CudaStream) -> (Address, SyncOnDrop<'a>);
    }
}

macro_rules! cuda_bytes {
    ($($memory:ty),*; mutable $($mutable:ty),*) => {
        $(impl<T: Pod> sealed::Read for $memory {
            fn size_and_ordinal(&self) -> (u64, usize) {
                (self.num_bytes() as u64, DeviceSlice::stream(self).context().ordinal())
            }
            fn read_on<'a>(&'a self, stream: &'a CudaStream) -> (Address, SyncOnDrop<'a>) {
                let (address, guard) = self.device_ptr(stream);
                (Address(address), guard)
            }
        }
        impl<T: Pod> CudaBytes for $memory {})*
        $(impl<T: Pod> sealed::Write for $mutable {
            fn write_on<'a>(&'a mut self, stream: &'a CudaStream) -> (Address, SyncOnDrop<'a>) {
                let (address, guard) = self.device_ptr_mut(stream);
                (Address(address), guard)
            }
        }
        impl<T: Pod> CudaBytesMut for $mutable {})*
    };
}

cuda_bytes!(CudaSlice<T>, CudaView<'_, T>, CudaViewMut<'_, T>; mutable CudaSlice<T>, CudaViewMut<'_, T>);

impl CompiledOperator {
    /// Queues the operator on a stream of cudarc. The inputs are in the order of the descriptor's fields, each from its
    /// tensor's first element on. If cudarc tracks its slices' own streams, it orders this work with theirs.
    ///
    /// The kernels stay loaded and the GPU's primary context stays retained until the process ends.
    ///
    /// # Errors
    ///
    /// [`DispatchError`], with nothing queued: the errors of [`dispatch_raw`](Self::dispatch_raw); a slice is smaller
    /// than its tensor; a slice or the stream belongs to another GPU.
    pub fn dispatch_on(
        &self,
        stream: &CudaStream,
        inputs: &[&dyn CudaBytes],
        output: &mut dyn CudaBytesMut,
    ) -> Result<(), DispatchError> {
        let signature = self.signature();
        for (&tensor, input) in signature.inputs().iter().zip(inputs) {
            self.check_slice(tensor, input.size_and_ordinal())?;
        }
        self.check_slice(
            (TensorRole::Output, signature.output),
            output.size_and_ordinal(),
        )?;
        let guarded: Vec<(Address, SyncOnDrop<'_>)> =
            inputs.iter().map(|input| input.read_on(stream)).collect();
        let addresses: Vec<Address> = guarded.iter().map(|(address, _)| *address).collect();
        let (output, _guard) = output.write_on(stream);
        self.dispatch_guarded(stream, &addresses, output)
    }

    /// Queues the operator in place, for one with two inputs. `data` is the first input and the output; `second` is the
    /// other input, such as SequenceLengthsTensor.
    ///
    /// # Errors
    ///
    /// The errors of [`dispatch_on`](Self::dispatch_on).
    pub fn dispatch_in_place_on(
        &self,
        stream: &CudaStream,
        second: &dyn CudaBytes,
        data: &mut dyn CudaBytesMut,
    ) -> Result<(), DispatchError> {
        let signature = self.signature();
        let &[_, lengths] = signature.inputs() else {
            return Err(BindingError::Count {
                found: 2,
                required: signature.inputs().len(),
            }
            .into());
        };
        self.check_slice(lengths, second.size_and_ordinal())?;
        self.check_slice(
            (TensorRole::Output, signature.output),
            data.size_and_ordinal(),
        )?;
        let (second, _guard) = second.read_on(stream);
        let (data, _guard) = data.write_on(stream);
        self.dispatch_guarded(stream, &[data, second], data)
    }

    fn check_slice(
        &self,
        (tensor, desc): (TensorRole, &BufferTensorDesc),
        (found, ordinal): (u64, usize),
    ) -> Result<(), BindingError> {
        if self.device().ordinal() != Some(ordinal) {
            let (found, required) = (format!("GPU {ordinal}"), self.device().to_string());
            return Err(BindingError::Device {
                tensor,
                found,
                required,
            });
        }
        let required = desc.span_in_bytes();
        if found < required {
            return Err(BindingError::Slice {
                tensor,
                found,
                required,
            });
        }
        Ok(())
    }

    /// Dispatches on addresses of slices that are checked, and borrowed until the work is queued.
    fn dispatch_guarded(
        &self,
        stream: &CudaStream,
        inputs: &[Address],
        output: Address,
    ) -> Result<(), DispatchError> {
        let ordinal = stream.context().ordinal();
        let Some(launcher) = self
            .inner
            .launcher
            .as_ref()
            .filter(|_| self.device().ordinal() == Some(ordinal))
        else {
            let (found, required) = (format!("GPU {ordinal}"), self.device().to_string());
            return Err(DispatchError::Device { found, required });
        };
        launcher.keep();
        // SAFETY: 1: the slices are as large as their tensors (`check_slice`), and cudarc frees memory in stream order,
        // after this work. 2: they are borrowed (exclusively if they are written), and cudarc orders streams. 3: the
        // stream is borrowed, and belongs to the GPU's primary context, the only one that cudarc opens. 4: its
        // kernels are kept.
        unsafe { self.dispatch_raw(inputs, output, RawStream(stream.cu_stream().cast())) }
    }
}
