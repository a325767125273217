//! Turns tensors of other libraries into descriptors, from which plans are made as for any caller: signed sizes and
//! strides, any rank, broadcast lengths, elements of any number of whole bytes.
//!
//! A lowered operator is small and `Copy`, so that [`Device::compile_lowered`](crate::Device::compile_lowered) can look
//! up the compiled one without allocating.

mod cache;
mod foreign;
mod lengths;
mod lowered_reversal;
mod lowered_sequence;
mod range;
mod run;

pub use crate::desc::Names;
use crate::desc::OperatorDesc;
pub use crate::error::LoweringError;
pub use foreign::{ForeignTensor, ReversalArrays};
pub use lowered_reversal::LoweredReversal;
pub use lowered_sequence::LoweredSequence;
pub use range::{integer_range_count, range_count, RangeError};

/// An operator on tensors of other libraries, with everything that its descriptor depends on.
///
/// ```
/// use dml_cuda::lowering::{Lowered, LoweredSequence};
/// use dml_cuda::{CompileOptions, Device, TensorDataType};
/// let sequence = LoweredSequence::packed(TensorDataType::Float64, 3, 1f64.to_bits(), 0.5f64.to_bits());
/// let operator = Device::cpu().compile_lowered(&Lowered::Sequence(sequence), CompileOptions::default())?;
/// let mut output = [0f64; 3];
/// operator.dispatch_on_host(&[], bytemuck::cast_slice_mut(&mut output))?;
/// assert_eq!(output, [1.0, 1.5, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lowered {
    /// REVERSE_SUBSEQUENCES.
    Reversal(LoweredReversal),
    /// FILL_VALUE_SEQUENCE.
    Sequence(LoweredSequence),
}

impl Lowered {
    /// The operator's descriptor.
    pub fn desc(&self) -> OperatorDesc {
        match self {
            Self::Reversal(reversal) => reversal.desc().into(),
            Self::Sequence(sequence) => sequence.desc().into(),
        }
    }
}

#[cfg(test)]
mod tests;
