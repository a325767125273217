//! Binding: which bytes of which buffer each tensor of an operator uses.

use crate::desc::{BufferTensorDesc, TensorRole};
use crate::device::buffer::Buffer;
use crate::device::operator::CompiledOperator;
use crate::error::BindingError;
use crate::trace::span;

/// The smallest alignment of a bound range's offset.
const MIN_ALIGNMENT: u32 = 16;

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
/// let table = device.compile_operator(&operator)?.bind(&[], &BufferBinding::range(&buffer, 16, 16))?;
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
    /// Binds buffers: the inputs that the descriptor has, in the order of its fields (InputTensor, SequenceLengthsTensor;
    /// none for a fill), and the output.
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
    pub fn bind(&self, inputs: &[BufferBinding], output: &BufferBinding) -> Result<BindingTable, BindingError> {
        span!("bind", operator = self.operator_type().name());
        BindingTable::new(self, inputs, output, |_| MIN_ALIGNMENT)
    }

    /// The same at offsets that DirectML refuses: they are multiples of the element size only, as raw pointers may be. The
    /// runner's bench times such dispatches.
    #[doc(hidden)]
    pub fn bind_at_elements(
        &self,
        inputs: &[BufferBinding],
        output: &BufferBinding,
    ) -> Result<BindingTable, BindingError> {
        BindingTable::new(self, inputs, output, |desc| desc.data_type.size_in_bits() / 8)
    }
}

impl BindingTable {
    fn new(
        operator: &CompiledOperator,
        inputs: &[BufferBinding],
        output: &BufferBinding,
        least_alignment: fn(&BufferTensorDesc) -> u32,
    ) -> Result<Self, BindingError> {
        let signature = operator.signature();
        let (roles, output_desc) = (signature.inputs(), signature.output);
        if inputs.len() != roles.len() {
            return Err(BindingError::Count { found: inputs.len(), required: roles.len() });
        }
        let output_tensor = (TensorRole::Output, output_desc);
        let tensors = roles.iter().chain([&output_tensor]).zip(inputs.iter().chain([output]));
        for (n, (&(role, desc), binding)) in tensors.enumerate() {
            let alignment = operator.options().alignment_of(n, role).max(least_alignment(desc));
            check_range(operator, alignment, role, desc, binding)?;
        }

        let mut aliasing = Aliasing::new(operator, output.offset, |desc| desc.total_tensor_size_in_bytes);
        aliasing.in_buffer = true;
        for (n, (&(role, desc), binding)) in roles.iter().zip(inputs).enumerate() {
            if binding.buffer.same_as(&output.buffer) {
                aliasing.check(n, role, desc, binding.offset)?;
            }
        }
        aliasing.check_compile_options()?;
        Ok(Self {
            operator: operator.clone(),
            in_place: aliasing.in_place,
            inputs: inputs.to_vec(),
            output: output.clone(),
        })
    }

    /// The bound operator.
    pub fn operator(&self) -> &CompiledOperator {
        &self.operator
    }

    pub(crate) fn inputs(&self) -> &[BufferBinding] {
        &self.inputs
    }

    pub(crate) fn output(&self) -> &BufferBinding {
        &self.output
    }

    pub(crate) fn in_place(&self) -> bool {
        self.in_place
    }
}

fn check_range(
    operator: &CompiledOperator,
    alignment: u32,
    tensor: TensorRole,
    desc: &BufferTensorDesc,
    binding: &BufferBinding,
) -> Result<(), BindingError> {
    let BufferBinding { buffer, offset, size_in_bytes: length } = binding;
    let (offset, length) = (*offset, *length);
    if !buffer.device().same_as(operator.device()) {
        let (found, required) = (buffer.device().to_string(), operator.device().to_string());
        return Err(BindingError::Device { tensor, found, required });
    }
    let size_in_bytes = buffer.size_in_bytes();
    if offset.checked_add(length).is_none_or(|end| end > size_in_bytes) {
        return Err(BindingError::Range { tensor, offset, length, size_in_bytes });
    }
    let required = u64::from(desc.guaranteed_base_offset_alignment.max(alignment));
    if offset % required != 0 {
        return Err(BindingError::Alignment { tensor, what: "offset", found: offset, required });
    }
    if length < desc.total_tensor_size_in_bytes {
        return Err(BindingError::Size { tensor, found: length, required: desc.total_tensor_size_in_bytes });
    }
    Ok(())
}

/// Checks whether an output may share memory with the inputs. Addresses are offsets in one buffer, or raw pointers.
pub(crate) struct Aliasing<'a> {
    operator: &'a CompiledOperator,
    output: u64,
    /// How many bytes of a tensor nothing else may overlap.
    extent: fn(&BufferTensorDesc) -> u64,
    /// Whether addresses are offsets in one buffer. Only the error's text depends on it.
    in_buffer: bool,
    /// Set by `check` if the output is the first input.
    pub in_place: bool,
}

impl<'a> Aliasing<'a> {
    pub fn new(operator: &'a CompiledOperator, output: u64, extent: fn(&BufferTensorDesc) -> u64) -> Self {
        Self { operator, output, extent, in_buffer: false, in_place: false }
    }

    /// Checks the n-th input, which is at `address` in the output's memory.
    pub fn check(
        &mut self,
        n: usize,
        tensor: TensorRole,
        desc: &BufferTensorDesc,
        address: u64,
    ) -> Result<(), BindingError> {
        let output_desc = self.operator.signature().output;
        let end = |address: u64, desc: &BufferTensorDesc| address.saturating_add((self.extent)(desc));
        if address >= end(self.output, output_desc) || self.output >= end(address, desc) {
            return Ok(());
        }
        if n > 0 || address != self.output {
            let required = match n {
                0 => "be the same range, to run in place, or lie apart",
                _ => "lie apart",
            };
            let pointers = (!self.in_buffer).then_some((self.output, address));
            return Err(BindingError::Overlap { tensor, found: address.max(self.output), pointers, required });
        }
        self.in_place = true;
        if self.operator.plan().runs_in_place() {
            Ok(())
        } else {
            Err(BindingError::InPlace)
        }
    }

    /// To call after all inputs are checked: whether the operator was compiled for this dispatch.
    pub fn check_compile_options(&self) -> Result<(), BindingError> {
        match self.operator.options().in_place {
            Some(promised) if promised != self.in_place => Err(BindingError::Promise { promised }),
            _ => Ok(()),
        }
    }
}
