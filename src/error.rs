//! Errors, with their messages. Each type can arise in one step only: a caller that has passed a step need not match
//! its errors again. [`Error`] is for the short paths, which take all steps at once. Those of validation are in
//! `validate`.

mod binding;
mod device;
mod dispatch;
mod lowering;

pub use binding::BindingError;
pub use device::{BufferError, CompileError, CudaError, DeviceError};
pub use dispatch::DispatchError;
pub use lowering::LoweringError;

use crate::cuda::ParseGpuTargetError;
use crate::desc::{
    Names, ParseFeatureLevelError, ParseOperatorTypeError, ParseTensorDataTypeError, TensorRole,
};
use crate::lowering::RangeError;
use crate::options::ParseCompileOptionsError;
use crate::validate::{ParseDirectMlVersionError, ParseRuleError, ValidationErrors};

/// Any error of the short paths, and of what comes before them: `?` converts each of the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The tensors break rules of the operator.
    #[error(transparent)]
    Validation(#[from] ValidationErrors),
    /// A slice does not have as many elements as its tensor.
    #[error("the slice of {} is {found} elements, but must be {required}, the product of its sizes (slice.length)", .tensor.name())]
    SliceLength {
        /// Which tensor.
        tensor: TensorRole,
        /// Elements given.
        found: usize,
        /// Elements of the tensor.
        required: u64,
    },
    /// A length is negative.
    #[error("lengths[{index}] is {found}, but must be at least 0")]
    NegativeLength {
        /// Which one.
        index: usize,
        /// The length.
        found: String,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Memory failed.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// Compilation failed.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Buffers do not fit.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// Dispatch failed.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
    /// Tensors of another library cannot be described.
    #[error(transparent)]
    Lowering(#[from] LoweringError),
    /// A range has no valid number of elements.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// A call of the CUDA driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// A text is not one of compile options.
    #[error(transparent)]
    CompileOptions(#[from] ParseCompileOptionsError),
    /// A text is not a feature level.
    #[error(transparent)]
    FeatureLevel(#[from] ParseFeatureLevelError),
    /// A text is not a data type.
    #[error(transparent)]
    TensorDataType(#[from] ParseTensorDataTypeError),
    /// A text is not an operator.
    #[error(transparent)]
    OperatorType(#[from] ParseOperatorTypeError),
    /// A text is not a rule.
    #[error(transparent)]
    Rule(#[from] ParseRuleError),
    /// A text is not a version of DirectML.
    #[error(transparent)]
    DirectMlVersion(#[from] ParseDirectMlVersionError),
    /// A text is not a GPU's limits.
    #[error(transparent)]
    GpuTarget(#[from] ParseGpuTargetError),
}

impl Error {
    /// The failed call of the CUDA driver, if that is the reason.
    pub fn cuda(&self) -> Option<&CudaError> {
        match self {
            Self::Cuda(error)
            | Self::Device(DeviceError::Cuda(error))
            | Self::Buffer(BufferError::Cuda(error))
            | Self::Compile(CompileError::Cuda(error))
            | Self::Dispatch(DispatchError::Cuda(error)) => Some(error),
            _ => None,
        }
    }

    /// The message with the caller's names for the tensors.
    pub fn message(&self, names: &Names<'_>) -> String {
        match self {
            Self::Validation(errors) => errors.message(names),
            Self::Lowering(error) => error.message(names),
            Self::Binding(error) | Self::Dispatch(DispatchError::Binding(error)) => {
                error.message(names)
            }
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_error_is_found_wherever_it_arose() {
        let [verb, reason, advice] = ["launching", "no reason", "wait"].map(str::to_owned);
        let cuda = CudaError {
            verb,
            code: 700,
            reason,
            advice,
        };
        let errors: [Error; 5] = [
            cuda.clone().into(),
            DeviceError::Cuda(cuda.clone()).into(),
            BufferError::Cuda(cuda.clone()).into(),
            CompileError::Cuda(cuda.clone()).into(),
            DispatchError::Cuda(cuda.clone()).into(),
        ];
        assert!(errors.iter().all(|error| error.cuda() == Some(&cuda)));
        assert_eq!(Error::from(DeviceError::NoDriver).cuda(), None);
    }
}
