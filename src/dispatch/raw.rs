//! Dispatch on raw pointers and a raw stream, for memory and streams of other frameworks.
#![allow(unsafe_code)]

use crate::address::{Address, RawStream};
use crate::cpu::Operands;
use crate::cuda::{self, Addresses, Mode, StreamHandle};
use crate::device::graph::Graph;
use crate::device::operand::{Alignment, Memory};
use crate::device::operator::CompiledOperator;
use crate::device::Device;
use crate::error::DispatchError;
use crate::trace::span;

impl Device {
    /// Records what `queue` queues on a stream of the GPU, such as raw dispatches, and copies, fills and kernels of other
    /// libraries: as a graph, which is launched like one of [`record_graph`](Self::record_graph). `None` on the CPU.
    ///
    /// `queue` is called once, with the GPU's primary context current. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// [`DispatchError::Cuda`].
    ///
    /// # Safety
    ///
    /// The caller promises that `queue` leaves the stream's capture as it is, and that the work may run whenever the graph
    /// is launched: memory and kernels are there as long as the graph, and until its last launch is done.
    pub unsafe fn record_raw_graph(&self, queue: impl FnOnce(RawStream)) -> Result<Option<Graph>, DispatchError> {
        let Some(context) = &self.context else { return Ok(None) };
        let recorded = cuda::Graph::record(context, |stream| {
            queue(RawStream(stream.raw().cast()));
            Ok(())
        })?;
        Ok(Some(Graph::of_recorded(self, recorded)))
    }
}

impl CompiledOperator {
    /// Runs the operator on raw pointers. On a GPU it queues the work on a raw stream; on the CPU device it works on
    /// host memory and is done when it returns.
    ///
    /// On a GPU this is one `cuLaunchKernel`, with no copy, no allocation, no event and no wait, also while the stream
    /// is being captured into a CUDA graph. It leaves the calling thread's current context as it was.
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
    /// - the output overlaps the lengths, overlaps a part of the input, or equals the input with other strides;
    /// - the operator was not compiled for this dispatch;
    /// - the operator is of the CPU and the stream is not null;
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
    /// // SAFETY: the pointer is that of four initialized bytes, which nothing else uses. The CPU device is done when the call returns.
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
        // SAFETY: the caller's promises.
        unsafe { self.dispatch_at(inputs, output, stream, Alignment::Element) }
    }

    /// Runs the operator like `dispatch_raw`, at addresses of another least alignment. On a GPU that is the element's.
    ///
    /// # Safety
    ///
    /// The promises of [`dispatch_raw`](Self::dispatch_raw).
    pub(crate) unsafe fn dispatch_at(
        &self,
        inputs: &[Address],
        output: Address,
        stream: RawStream,
        alignment: Alignment,
    ) -> Result<(), DispatchError> {
        let memory = |Address(address)| Memory::Raw { address };
        let in_place = self.check_operands(inputs.iter().copied().map(memory), memory(output), alignment)?;
        span!("dispatch", operator = self.operator_type().name(), device = self.device(), in_place = in_place);
        if let Some(launcher) = &self.inner.launcher {
            let addresses = Addresses { inputs: bytemuck::cast_slice(inputs), output: output.0 };
            // SAFETY: promise 3 is what the handle needs: a live stream of the context that the functions were loaded
            // into. Promises 1, 2 and 4 are what the launch needs of the addresses.
            return unsafe { launcher.launch(&addresses, Mode::new(in_place), StreamHandle::borrow(stream)) };
        }
        if stream != RawStream::NULL {
            return Err(DispatchError::Stream { found: stream.0 as u64 });
        }
        let signature = self.signature();
        let read = signature.inputs().iter().zip(inputs).skip(usize::from(in_place)).map(|((_, desc), address)| {
            // SAFETY: promise 1 makes these initialized bytes of this process. `check_operands` has found that they
            // are not null, and that they do not overlap the output. Promise 2: nobody writes them meanwhile.
            unsafe { std::slice::from_raw_parts(address.0 as *const u8, desc.span_in_bytes() as usize) }
        });
        let inputs: Vec<&[u8]> = read.collect();
        let bytes = signature.output.span_in_bytes() as usize;
        // SAFETY: as for the inputs. In place, no slice of the first input is made, so this is the only one.
        let output = unsafe { std::slice::from_raw_parts_mut(output.0 as *mut u8, bytes) };
        self.inner.plan.run_on_cpu(Operands { inputs: &inputs, output })
    }
}
