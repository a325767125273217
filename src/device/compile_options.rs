//! Options of compiled operators.

use std::sync::OnceLock;

use crate::address::Address;
use crate::environment::{variable, EnvironmentError};
use crate::specialize::Specialize;

/// Properties that all dispatches of a compiled operator share. A dispatch that differs fails.
///
/// ```
/// use dml_cuda::lowering::{ForeignTensor, LoweredReversal, ReversalArrays};
/// use dml_cuda::{Address, CompileOptions, Device, DispatchError, TensorDataType};
/// let device = Device::cpu();
/// let (input, lengths) = ([[1u8, 2, 3]], [[2u32]]);
/// let [data, lengths_array] = [&[1, 3], &[1, 1]].map(|sizes| ForeignTensor::packed(Address(0), sizes));
/// let (axis, element_size, length_type) = (1, 1, TensorDataType::UInt32);
/// let arrays = ReversalArrays { input: data, lengths: lengths_array, output: data, axis, element_size, length_type };
/// let desc = LoweredReversal::new(&arrays)?.desc();
/// let options = CompileOptions::default().with_in_place(true);
/// let operator = device.compile_operator_with(&device.create_operator(desc)?, options)?;
/// let mut output = [[0u8; 3]];
/// let inputs = [input.as_flattened(), bytemuck::cast_slice(&lengths)];
/// let copying = operator.dispatch_on_host(&inputs, output.as_flattened_mut());
/// assert!(matches!(copying, Err(DispatchError::Binding(_)))); // it was compiled for in-place dispatches only
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CompileOptions {
    /// The guaranteed alignment, in bytes, of the first elements of the first input and of the output: a power of two,
    /// or 0 if they are only known to be aligned to their elements. For bound buffers, 16 is always right.
    pub pointer_alignment: u32,
    /// Whether the output is the input: always, never, or either (`None`).
    pub in_place: Option<bool>,
    /// Whether kernels are compiled for this operator only.
    pub specialize: Specialize,
    /// Whether kernels are timed on the GPU, instead of chosen by an estimate: the four with the lowest estimates in
    /// each mode, with scratch memory of the tensors' sizes. That takes milliseconds, and memory for both tensors or
    /// three times the L2 cache, whichever is more. If they cannot be timed, the estimate chooses, without an error.
    pub measure: bool,
}

impl CompileOptions {
    /// These options with a [`pointer_alignment`](Self::pointer_alignment).
    pub fn with_pointer_alignment(self, pointer_alignment: u32) -> Self {
        Self { pointer_alignment, ..self }
    }

    /// These options for dispatches that are always (`true`), never or sometimes (`None`) [`in_place`](Self::in_place).
    pub fn with_in_place(self, in_place: impl Into<Option<bool>>) -> Self {
        Self { in_place: in_place.into(), ..self }
    }

    /// These options with [specialized](Specialize) kernels or generic ones.
    pub fn with_specialize(self, specialize: Specialize) -> Self {
        Self { specialize, ..self }
    }

    /// These options with kernels that are chosen by [measuring](Self::measure) them, or by an estimate.
    pub fn with_measure(self, measure: bool) -> Self {
        Self { measure, ..self }
    }

    /// The options for dispatches with the first input and the output at these addresses, or at others that are as
    /// aligned to 16 bytes, and in place or not, as these are. No kernel depends on the alignment of the lengths.
    pub fn with_addresses(self, input: Option<Address>, output: Address) -> Self {
        let is_aligned = (input.unwrap_or_default().0 | output.0).is_multiple_of(16);
        self.with_pointer_alignment(if is_aligned { 16 } else { 0 }).with_in_place(input == Some(output))
    }

    /// The defaults with what the environment sets when the process first asks.
    pub(crate) fn read_environment() -> Result<Self, EnvironmentError> {
        static READ: OnceLock<Result<CompileOptions, EnvironmentError>> = OnceLock::new();
        let read = || {
            let specialize = variable("DML_CUDA_SPECIALIZE", &[("0", Specialize::Never), ("1", Specialize::Kept)])?;
            let measure = variable("DML_CUDA_SELECT", &[("measure", true), ("estimate", false)])?;
            let (specialize, measure) = (specialize.unwrap_or_default(), measure.unwrap_or_default());
            Ok(Self { specialize, measure, ..Self::default() })
        };
        READ.get_or_init(read).clone()
    }
}
