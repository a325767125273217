//! Dispatch: runs compiled operators on memory. Buffers that are bound, slices of the host, raw pointers and slices of
//! cudarc are ways to hand memory over. There is one check of it, and one call that runs an operator on it.
#![allow(unsafe_code)]

pub(crate) mod binding;
pub(crate) mod check;
#[cfg(feature = "cudarc-0_19")]
pub(crate) mod cudarc_slices;
pub(crate) mod graph;

use std::borrow::Cow;

use crate::address::{Address, RawStream};
use crate::cpu::Operands;
use crate::cuda::{Addresses, Placement, StreamHandle};
use crate::desc::TensorRole;
use crate::device::operator::CompiledOperator;
use crate::dispatch::check::{check, Alignment, Memory};
use crate::error::{BindingError, DispatchError};
use crate::trace::span;

/// The memory of all tensors of one dispatch, checked by [`check`].
pub(crate) enum Tensors<'a> {
    /// Slices of the host, for the CPU.
    Host(Operands<'a>),
    /// Addresses in a GPU's memory, and the stream.
    Gpu(Addresses<'a>, StreamHandle),
}

/// Runs an operator on the CPU, or queues it on a stream of its GPU. Every dispatch ends here.
///
/// # Safety
///
/// For [`Tensors::Gpu`], the promises of [`CompiledOperator::dispatch_raw`].
pub(crate) unsafe fn dispatch(
    operator: &CompiledOperator,
    tensors: Tensors<'_>,
    in_place: bool,
) -> Result<(), DispatchError> {
    let inner = &operator.inner;
    span!(
        "dispatch",
        operator = operator.operator_type().name(),
        device = inner.device,
        in_place = in_place
    );
    match (tensors, &inner.launcher) {
        (Tensors::Host(operands), None) => inner.plan.run_on_cpu(operands),
        // SAFETY: the caller's promises are those that a launch needs of the addresses and of the stream.
        (Tensors::Gpu(addresses, stream), Some(launcher)) => unsafe {
            launcher.launch(&addresses, Placement::new(in_place), stream)?
        },
        _ => panic!("{OTHER_DEVICE}"),
    }
    Ok(())
}

/// The invariant that binding and raw dispatches keep.
const OTHER_DEVICE: &str = "binding.device: buffers and operator have one device";

impl CompiledOperator {
    /// Runs an operator of the CPU device on slices of host memory. The work is done when this returns. The inputs are
    /// in the order of the descriptor's fields, each from its tensor's first element on.
    ///
    /// ```
    /// use dml_cuda::{BufferTensorDesc, Device, ReverseSubsequencesDesc, TensorDataType};
    ///
    /// let device = Device::cpu();
    /// let tensor = BufferTensorDesc::packed(TensorDataType::UInt8, &[4]);
    /// let operator = device.create_operator(ReverseSubsequencesDesc {
    ///     input_tensor: tensor.clone(),
    ///     sequence_lengths_tensor: BufferTensorDesc::packed(TensorDataType::UInt32, &[1]),
    ///     output_tensor: tensor,
    ///     axis: 0,
    /// })?;
    /// let mut output = [0; 4];
    /// let inputs: [&[u8]; 2] = [&[1, 2, 3, 4], bytemuck::cast_slice(&[3u32])];
    /// device.compile_operator(&operator)?.dispatch_on_host(&inputs, &mut output)?;
    /// assert_eq!(output, [3, 2, 1, 4]);
    /// # Ok::<(), dml_cuda::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DispatchError`], with nothing written: the operator was compiled for a GPU; the number of inputs is wrong; a
    /// slice is smaller than its tensor or not aligned to its elements.
    pub fn dispatch_on_host(
        &self,
        inputs: &[&[u8]],
        output: &mut [u8],
    ) -> Result<(), DispatchError> {
        self.run_on_host(inputs, output, false)
    }

    /// Runs in place on slices of host memory, for an operator with two inputs. `data` is the first input and the
    /// output; `second` is the other input, such as SequenceLengthsTensor.
    ///
    /// # Errors
    ///
    /// The errors of [`dispatch_on_host`](Self::dispatch_on_host); the input and the output have different strides.
    pub fn dispatch_in_place_on_host(
        &self,
        second: &[u8],
        data: &mut [u8],
    ) -> Result<(), DispatchError> {
        self.run_on_host(&[second], data, true)
    }

    /// `inputs` are those that are not the output: in place, all but the first.
    fn run_on_host(
        &self,
        inputs: &[&[u8]],
        output: &mut [u8],
        in_place: bool,
    ) -> Result<(), DispatchError> {
        if self.device().ordinal().is_some() {
            let (found, required) = ("host memory".to_owned(), self.device().to_string());
            return Err(BindingError::Device {
                tensor: TensorRole::Output,
                found,
                required,
            }
            .into());
        }
        let written = Memory::of_slice(output);
        let mut read = Vec::with_capacity(1 + inputs.len());
        if in_place {
            read.push(written);
        }
        for input in inputs {
            read.push(Memory::of_slice(input));
        }
        check(self, read.into_iter(), written, Alignment::Element)?;
        // SAFETY: this is the host's memory.
        unsafe { dispatch(self, Tensors::Host(Operands { inputs, output }), in_place) }
    }

    /// Runs the operator on raw pointers. On a GPU it queues the work on a raw stream; on the CPU device it works on
    /// host memory and is done when it returns.
    ///
    /// On a GPU this is one `cuLaunchKernel`, with no copy, no allocation, no event and no wait. It leaves the calling
    /// thread's current context as it was.
    ///
    /// A CUDA graph can capture the call. By default, the first captured call of a layout also makes the driver compile
    /// and load a kernel for it, in about 13 ms, or in less than 1 ms from the driver's cache. At most
    /// [`Specialize::MAX_KEPT`] such kernels stay loaded per GPU. An operator that was compiled with
    /// [`Specialize::Never`] captures what is already loaded, as fast as any other call.
    ///
    /// [`Specialize::MAX_KEPT`]: crate::Specialize::MAX_KEPT
    /// [`Specialize::Never`]: crate::Specialize::Never
    ///
    /// `inputs` are the addresses of the first elements of the descriptor's input tensors, in the order of its fields
    /// (InputTensor, SequenceLengthsTensor; none for a fill). `output` is the address of the output tensor's first
    /// element. Bound buffers are aligned to 16 bytes; these pointers need only be aligned to their elements, or to
    /// what the operator was compiled for. If `output` equals InputTensor's address, the operator runs in place.
    ///
    /// `stream` is a `CUstream` or a `cudaStream_t`. Null and `CU_STREAM_LEGACY` (1) are the legacy default stream,
    /// `CU_STREAM_PER_THREAD` (2) is the calling thread's. On the CPU device it is null.
    ///
    /// # Errors
    ///
    /// [`DispatchError`], with nothing queued and nothing written:
    /// - the number of inputs is wrong;
    /// - a pointer is null or misaligned;
    /// - an element of the output overlaps one of the lengths or the input, unless the output is the input with the
    ///   same strides; elements may lie between each other, as those of two columns do;
    /// - the operator was compiled for the CPU and the stream is not null;
    /// - the driver failed.
    ///
    /// # Safety
    ///
    /// The caller promises that, from this call until the queued work is done (for a captured call: until the last
    /// replay of every graph that contains it is done),
    ///
    /// 1. each pointer is the address of its tensor's first element, and the operator's device can read the tensor's
    ///    bytes from the first element to the last, and write the output's; on the CPU device all of them, the output's
    ///    too, are initialized;
    /// 2. no other work writes these bytes, or reads the output's, unless a stream order or an event puts it before or
    ///    after;
    /// 3. `stream` is a live stream of the operator's device and of its primary context, or 0, 1 or 2;
    /// 4. this operator, or a clone of it, is alive.
    ///
    /// # Examples
    ///
    /// ```
    /// use dml_cuda::lowering::{Lowered, LoweredSequence};
    /// use dml_cuda::{CompileOptions, Device, RawStream, TensorDataType};
    /// let sequence = Lowered::Sequence(LoweredSequence::packed(TensorDataType::UInt8, 4, 9, 3));
    /// let operator = Device::cpu().compile_lowered(&sequence, CompileOptions::default())?;
    /// let mut output = [0u8; 4];
    /// // SAFETY: the pointer is that of four initialized bytes, which nothing else uses. The CPU device is done when
    /// // the call returns.
    /// unsafe { operator.dispatch_raw(&[], output.as_mut_ptr().into(), RawStream::NULL)? };
    /// assert_eq!(output, [9, 12, 15, 18]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn dispatch_raw(
        &self,
        inputs: &[Address],
        output: Address,
        stream: RawStream,
    ) -> Result<(), DispatchError> {
        // SAFETY: promises 1 to 4 above.
        unsafe { self.run_at(inputs, output, stream, Alignment::Element) }
    }

    /// Runs at addresses of an alignment that they must have.
    ///
    /// # Safety
    ///
    /// The promises of [`dispatch_raw`](Self::dispatch_raw).
    pub(crate) unsafe fn run_at(
        &self,
        inputs: &[Address],
        output: Address,
        stream: RawStream,
        alignment: Alignment,
    ) -> Result<(), DispatchError> {
        let memory = |Address(address)| Memory::Raw { address };
        let read = inputs.iter().copied().map(memory);
        let in_place = check(self, read, memory(output), alignment)?;
        if self.device().ordinal().is_some() {
            let addresses = Addresses {
                inputs: bytemuck::cast_slice(inputs),
                output: output.0,
            };
            // SAFETY: promise 3 is what the handle needs: a live stream of the context that the kernels were loaded
            // into.
            let stream = unsafe { StreamHandle::borrow(stream) };
            // SAFETY: the other promises are what the dispatch needs.
            return unsafe { dispatch(self, Tensors::Gpu(addresses, stream), in_place) };
        }
        if stream != RawStream::NULL {
            return Err(DispatchError::Stream {
                found: stream.0 as u64,
            });
        }
        // SAFETY: the promises above, and `check` has passed.
        unsafe { self.run_at_on_host(inputs, output, in_place) }
    }

    /// Runs an operator of the CPU device at addresses of this process that [`check`] has passed.
    ///
    /// # Safety
    ///
    /// The promises of [`dispatch_raw`](Self::dispatch_raw).
    unsafe fn run_at_on_host(
        &self,
        inputs: &[Address],
        output: Address,
        in_place: bool,
    ) -> Result<(), DispatchError> {
        let signature = self.signature();
        let bytes = signature.output.span_in_bytes();
        let end = output.0 + bytes;
        let mut read: Vec<Cow<'_, [u8]>> = Vec::new();
        for (n, (&(_, desc), address)) in signature.inputs().iter().zip(inputs).enumerate() {
            if in_place && n == 0 {
                continue;
            }
            let length = desc.span_in_bytes();
            // SAFETY: promise 1 makes these initialized bytes of this process. `check` has found that they are not
            // null. Promise 2: no one writes them meanwhile. The output's slice is made when the copy is done.
            let slice =
                unsafe { std::slice::from_raw_parts(address.0 as *const u8, length as usize) };
            // Elements that lie between the output's are copied, because Rust's slices must be apart.
            let is_apart = end <= address.0 || address.0 + length <= output.0;
            read.push(if is_apart {
                Cow::Borrowed(slice)
            } else {
                Cow::Owned(slice.to_vec())
            });
        }
        let inputs: Vec<&[u8]> = read.iter().map(|slice| &**slice).collect();
        // SAFETY: promises 1 and 2, and `check`, also hold for the output. `read` is apart from it: in place, it has no
        // slice of the first input. So this is the only one.
        let output = unsafe { std::slice::from_raw_parts_mut(output.0 as *mut u8, bytes as usize) };
        let operands = Operands {
            inputs: &inputs,
            output,
        };
        // SAFETY: this is the host's memory.
        unsafe { dispatch(self, Tensors::Host(operands), in_place) }
    }
}
