//! Binding: which bytes of which buffer each tensor of an operator uses; and dispatch of what is bound.

use crate::cpu::Operands;
use crate::cuda::{Addresses, StreamHandle};
use crate::desc::MAX_INPUTS;
use crate::device::buffer::{lock_to_read, lock_to_write, Buffer};
use crate::device::operator::CompiledOperator;
use crate::device::stream::Stream;
use crate::dispatch::check::{check, Alignment, Memory};
use crate::dispatch::{dispatch, Tensors, OTHER_DEVICE};
use crate::error::{BindingError, DispatchError};
use crate::trace::span;

/// `DML_BUFFER_BINDING`: a range of a buffer.
#[derive(Clone, Debug)]
pub struct BufferBinding {
    /// The buffer.
    pub buffer: Buffer,
    /// First byte of the range: a multiple of max(16, GuaranteedBaseOffsetAlignment), or with
    /// [`bind_at_elements`](CompiledOperator::bind_at_elements) of max(element size, GuaranteedBaseOffsetAlignment).
    pub offset: u64,
    /// Bytes of the range; at least TotalTensorSizeInBytes.
    pub size_in_bytes: u64,
}

impl BufferBinding {
    /// All of a buffer.
    pub fn whole(buffer: &Buffer) -> Self {
        Self {
            buffer: buffer.clone(),
            offset: 0,
            size_in_bytes: buffer.size_in_bytes(),
        }
    }

    /// A range of a buffer.
    pub fn range(buffer: &Buffer, offset: u64, size_in_bytes: u64) -> Self {
        Self {
            buffer: buffer.clone(),
            offset,
            size_in_bytes,
        }
    }
}

impl From<&Buffer> for BufferBinding {
    fn from(buffer: &Buffer) -> Self {
        Self::whole(buffer)
    }
}

impl From<&BufferBinding> for BufferBinding {
    fn from(binding: &BufferBinding) -> Self {
        binding.clone()
    }
}

/// An operator with its buffers: `IDMLBindingTable`. It keeps the buffers alive and can be dispatched any number of
/// times.
///
/// ```
/// use dml_cuda::{BufferBinding, BufferTensorDesc, Device, FillValueSequenceDesc, ScalarUnion, TensorDataType};
/// let device = Device::cpu();
/// let operator = device.create_operator(FillValueSequenceDesc {
///     output_tensor: BufferTensorDesc::packed(TensorDataType::UInt32, &[4]),
///     value_data_type: TensorDataType::UInt32,
///     value_start: ScalarUnion::UInt32(5),
///     value_delta: ScalarUnion::Int32(-1),
/// })?;
/// let buffer = device.create_buffer(32)?;
/// let table = device.compile_operator(&operator)?.bind(&[], BufferBinding::range(&buffer, 16, 16))?;
/// let stream = device.create_stream()?;
/// table.dispatch(&stream)?;
/// stream.synchronize()?;
/// assert_eq!(buffer.to_vec::<u32>()?, [0, 0, 0, 0, 5, 4, 3, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BindingTable {
    operator: CompiledOperator,
    inputs: Vec<BufferBinding>,
    output: BufferBinding,
    in_place: bool,
}

impl CompiledOperator {
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
        self.bind_aligned(inputs, output.into(), Alignment::Binding)
    }

    /// Binds buffers at offsets that DirectML refuses, as raw pointers may have them: multiples of max(element size,
    /// GuaranteedBaseOffsetAlignment).
    ///
    /// # Errors
    ///
    /// The errors of [`bind`](Self::bind), except for that alignment.
    pub fn bind_at_elements(
        &self,
        inputs: &[BufferBinding],
        output: impl Into<BufferBinding>,
    ) -> Result<BindingTable, BindingError> {
        self.bind_aligned(inputs, output.into(), Alignment::Element)
    }

    fn bind_aligned(
        &self,
        inputs: &[BufferBinding],
        output: BufferBinding,
        alignment: Alignment,
    ) -> Result<BindingTable, BindingError> {
        fn memory(binding: &BufferBinding) -> Memory<'_> {
            let BufferBinding {
                ref buffer,
                offset,
                size_in_bytes: bytes,
            } = *binding;
            Memory::Bound {
                buffer,
                offset,
                bytes,
            }
        }
        let in_place = check(self, inputs.iter().map(memory), memory(&output), alignment)?;
        Ok(BindingTable {
            operator: self.clone(),
            inputs: inputs.to_vec(),
            output,
            in_place,
        })
    }
}

impl BindingTable {
    /// The bound operator.
    pub fn operator(&self) -> &CompiledOperator {
        &self.operator
    }

    /// Queues the operator on a stream of its device.
    ///
    /// On a GPU this returns when the kernel is queued. It does not allocate, copy or wait, except that the first
    /// captured dispatch of a layout loads a kernel: see [`dispatch_raw`](CompiledOperator::dispatch_raw). On the CPU
    /// it returns when the work is done. Work on one stream runs in the order of the calls.
    ///
    /// Work queued on this crate's streams may outlive the table: dropping a buffer waits for it. If you capture the
    /// stream into your own CUDA graph, keep the table, or its operator and buffers, until the last replay is done. A
    /// [`Graph`](crate::Graph) keeps them itself.
    pub fn dispatch(&self, stream: &Stream) -> Result<(), DispatchError> {
        let operator = self.operator();
        let device = operator.device();
        if !stream.device().same_as(device) {
            return Err(DispatchError::Device {
                found: stream.device().to_string(),
                required: device.to_string(),
            });
        }
        if let Some(stream) = &stream.queue {
            return self.queue(stream.handle());
        }
        self.run_on_cpu()
    }

    /// Queues the launch on a stream of the operator's GPU.
    #[allow(unsafe_code)]
    pub(crate) fn queue(&self, stream: StreamHandle) -> Result<(), DispatchError> {
        // A CUDA operator binds only CUDA buffers (binding.device), and `bind` has checked the ranges.
        let memory =
            |binding: &BufferBinding| binding.buffer.cuda_memory().expect(OTHER_DEVICE).address();
        let address = |binding: &BufferBinding| memory(binding) + binding.offset;
        let mut inputs = [0; MAX_INPUTS];
        for (input, binding) in inputs.iter_mut().zip(&self.inputs) {
            *input = address(binding);
        }
        let output = address(&self.output);
        let addresses = Addresses {
            inputs: &inputs[..self.inputs.len()],
            output,
        };
        // SAFETY: the ranges are as large as their tensors (binding.range, binding.size) and overlap only as the
        // operator allows (binding.overlap). They live until the work is done, because dropping a buffer waits for it.
        unsafe {
            dispatch(
                &self.operator,
                Tensors::Gpu(addresses, stream),
                self.in_place,
            )
        }
    }

    /// Runs a bound operator on the CPU. The binding rules guarantee aligned ranges, and an output that is disjoint
    /// from the inputs or equal to the first.
    #[allow(unsafe_code)]
    fn run_on_cpu(&self) -> Result<(), DispatchError> {
        let (output, signature) = (&self.output, self.operator.signature());
        let totals = signature
            .inputs()
            .iter()
            .map(|(_, desc)| desc.total_tensor_size_in_bytes as usize);
        // The inputs that are separate from the output: in place, all but the first.
        let read: Vec<_> = self
            .inputs
            .iter()
            .zip(totals)
            .skip(usize::from(self.in_place))
            .collect();

        // Locks the buffers in the order of their addresses: otherwise two threads that each hold one buffer and want
        // the other's would deadlock. A CPU operator binds only CPU buffers (binding.device).
        let mut buffers: Vec<&Buffer> = read
            .iter()
            .map(|(binding, _)| &binding.buffer)
            .chain([&output.buffer])
            .collect();
        buffers.sort_by_key(|buffer| buffer.host().map(std::ptr::from_ref));
        buffers.dedup_by(|a, b| a.same_as(b));
        let (mut written, mut others) = (None, Vec::new());
        for buffer in buffers {
            let memory = buffer.host().expect(OTHER_DEVICE);
            match buffer.same_as(&output.buffer) {
                true => written = Some(lock_to_write(memory)),
                false => others.push((buffer, lock_to_read(memory))),
            }
        }
        let mut written = written.expect("the output is one of the buffers");

        let (before, at_output) = written.bytes_mut().split_at_mut(output.offset as usize);
        let (output_bytes, behind) =
            at_output.split_at_mut(signature.output.total_tensor_size_in_bytes as usize);
        let bytes_of = |&(binding, total): &(&BufferBinding, usize)| -> &[u8] {
            let offset = binding.offset as usize;
            match others
                .iter()
                .find(|(buffer, _)| buffer.same_as(&binding.buffer))
            {
                Some((_, memory)) => &memory.bytes()[offset..][..total],
                None if binding.offset < output.offset => &before[offset..][..total],
                None => &behind[offset - before.len() - output_bytes.len()..][..total],
            }
        };
        let inputs: Vec<&[u8]> = read.iter().map(bytes_of).collect();
        // SAFETY: this is the host's memory.
        unsafe {
            dispatch(
                &self.operator,
                Tensors::Host(Operands {
                    inputs: &inputs,
                    output: output_bytes,
                }),
                self.in_place,
            )
        }
    }
}
