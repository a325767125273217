//! Binding: which bytes of which buffer each tensor of an operator uses.

use crate::device::buffer::Buffer;
use crate::device::operand::{Alignment, Memory};
use crate::device::operator::CompiledOperator;
use crate::error::BindingError;
use crate::trace::span;

/// `DML_BUFFER_BINDING`: a range of a buffer.
#[derive(Clone, Debug)]
pub struct BufferBinding {
    /// The buffer.
    pub buffer: Buffer,
    /// First byte of the range; a multiple of max(16, GuaranteedBaseOffsetAlignment).
    pub offset: u64,
    /// Bytes of the range; at least TotalTensorSizeInBytes.
    pub size_in_bytes: u64,
}

impl BufferBinding {
    /// All of a buffer.
    pub fn whole(buffer: &Buffer) -> Self {
        Self { buffer: buffer.clone(), offset: 0, size_in_bytes: buffer.size_in_bytes() }
    }

    /// A range of a buffer.
    pub fn range(buffer: &Buffer, offset: u64, size_in_bytes: u64) -> Self {
        Self { buffer: buffer.clone(), offset, size_in_bytes }
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
    pub(crate) inputs: Vec<BufferBinding>,
    pub(crate) output: BufferBinding,
    pub(crate) in_place: bool,
}

impl CompiledOperator {
    /// Binds buffers: the inputs that the descriptor has, in the order of its fields (InputTensor, SequenceLengthsTensor;
    /// none for a fill), and the output: a range, or a whole `&Buffer`.
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

    /// The same at offsets that DirectML refuses: they are multiples of the element size only, as raw pointers may be.
    ///
    /// # Errors
    ///
    /// As of [`bind`](Self::bind), but for that alignment.
    pub fn bind_at_elements(
        &self,
        inputs: &[BufferBinding],
        output: impl Into<BufferBinding>,
    ) -> Result<BindingTable, BindingError> {
        BindingTable::new(self, inputs, output.into(), Alignment::Element)
    }
}

impl BindingTable {
    fn new(
        operator: &CompiledOperator,
        inputs: &[BufferBinding],
        output: BufferBinding,
        alignment: Alignment,
    ) -> Result<Self, BindingError> {
        fn memory(binding: &BufferBinding) -> Memory<'_> {
            let BufferBinding { ref buffer, offset, size_in_bytes: bytes } = *binding;
            Memory::Bound { buffer, offset, bytes }
        }
        let in_place = operator.check_operands(inputs.iter().map(memory), memory(&output), alignment)?;
        Ok(Self { operator: operator.clone(), inputs: inputs.to_vec(), output, in_place })
    }

    /// The bound operator.
    pub fn operator(&self) -> &CompiledOperator {
        &self.operator
    }
}
