//! Binding: which bytes of which buffer each tensor of an operator uses.

use crate::device::buffer::Buffer;
use crate::device::operand::{check_operands, Alignment, Memory};
use crate::device::operator::CompiledOperator;
use crate::error::BindingError;

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

impl BindingTable {
    pub(crate) fn new(
        operator: &CompiledOperator,
        inputs: &[BufferBinding],
        output: BufferBinding,
        alignment: Alignment,
    ) -> Result<Self, BindingError> {
        fn memory(binding: &BufferBinding) -> Memory<'_> {
            let BufferBinding { ref buffer, offset, size_in_bytes: bytes } = *binding;
            Memory::Bound { buffer, offset, bytes }
        }
        let in_place = check_operands(operator, inputs.iter().map(memory), memory(&output), alignment)?;
        Ok(Self { operator: operator.clone(), inputs: inputs.to_vec(), output, in_place })
    }

    /// The bound operator.
    pub fn operator(&self) -> &CompiledOperator {
        &self.operator
    }
}
