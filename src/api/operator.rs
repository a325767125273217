//! The methods of [`Operator`] and [`CompiledOperator`].

use crate::address::{Address, RawStream};
use crate::cuda::GpuTarget;
use crate::desc::{OperatorType, Signature};
use crate::device::binding::{BindingTable, BufferBinding};
use crate::device::operand::Alignment;
use crate::device::operator::{BindingProperties, CompiledOperator, Operator};
use crate::device::Device;
use crate::dispatch::{host, raw};
use crate::error::{BindingError, DispatchError};
use crate::explain::{self, Explanation};
use crate::trace::span;

impl Operator {
    /// What a dispatch would do on such a GPU, which need not exist: merged dimensions, bytes, kernels with
    /// their estimates, grids, and why other kernels cannot run.
    pub fn explain(&self, target: &GpuTarget) -> Explanation {
        explain::of_plan(&self.plan(), Some(target))
    }
}

impl CompiledOperator {
    /// The operator it was made from.
    pub fn operator(&self) -> &Operator {
        &self.inner.operator
    }

    /// The device it was made for.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// What a dispatch needs besides its tensors.
    pub fn binding_properties(&self) -> BindingProperties {
        BindingProperties::default()
    }

    /// The tensors to bind.
    pub(crate) fn signature(&self) -> Signature<'_> {
        self.operator().desc().signature()
    }

    /// Which operator this is.
    pub fn operator_type(&self) -> OperatorType {
        self.operator().desc().operator_type()
    }

    /// What a dispatch will do: merged dimensions, bytes and, on a GPU, kernels with their estimates, grids,
    /// and why other kernels cannot run.
    pub fn explain(&self) -> Explanation {
        explain::of_compiled(self)
    }

    /// Binds buffers: the inputs that the descriptor has, in the order of its fields (InputTensor,
    /// SequenceLengthsTensor; none for a fill), and the output: a range, or a whole `&Buffer`.
    ///
    /// Binding the output to exactly the first input's range runs in place.
    ///
    /// # Errors
    ///
    /// [`BindingError`], before anything is queued:
    /// - the number of inputs is wrong;
    /// - a buffer belongs to another device;
    /// - a range leaves its buffer, or is smaller than its tensor's TotalTensorSizeInBytes;
    /// - an offset is not a multiple of max(16, GuaranteedBaseOffsetAlignment);
    /// - the output overlaps the lengths, overlaps a part of the input, or equals the input with other strides.
    pub fn bind(
        &self,
        inputs: &[BufferBinding],
        output: impl Into<BufferBinding>,
    ) -> Result<BindingTable, BindingError> {
        span!("bind", operator = self.operator_type().name());
        BindingTable::new(self, inputs, output.into(), Alignment::Binding)
    }

    /// Binds buffers at offsets that DirectML refuses: they are multiples of the element size only, as raw pointers may
    /// be.
    ///
    /// # Errors
    ///
    /// The errors of [`bind`](Self::bind), except for that alignment.
    pub fn bind_at_elements(
        &self,
        inputs: &[BufferBinding],
        output: impl Into<BufferBinding>,
    ) -> Result<BindingTable, BindingError> {
        BindingTable::new(self, inputs, output.into(), Alignment::Element)
    }

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
    /// [`DispatchError`], with nothing written: the operator is of a GPU; the number of inputs is wrong; a slice is
    /// smaller than its tensor or not aligned to its elements; the operator was compiled for in-place work.
    pub fn dispatch_on_host(&self, inputs: &[&[u8]], output: &mut [u8]) -> Result<(), DispatchError> {
        host::dispatch(self, inputs, output, false)
    }

    /// Runs in place on slices of host memory, for an operator with two inputs. `data` is the first input and the
    /// output; `second` is the other input, such as SequenceLengthsTensor.
    ///
    /// # Errors
    ///
    /// The errors of [`dispatch_on_host`](Self::dispatch_on_host); the input and the output have different strides.
    pub fn dispatch_in_place_on_host(&self, second: &[u8], data: &mut [u8]) -> Result<(), DispatchError> {
        host::dispatch(self, &[second], data, true)
    }

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
    /// - an element of the output overlaps one of the lengths or the input, unless the output is the input with the
    ///   same strides; elements may lie between each other, as those of two columns do;
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
        // SAFETY: promises 1 to 4 above are those of `raw::dispatch`.
        unsafe { raw::dispatch(self, inputs, output, stream, Alignment::Element) }
    }
}
