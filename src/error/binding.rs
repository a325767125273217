//! Errors of buffers, slices or pointers that do not fit an operator.

use crate::desc::{Names, TensorRole};

/// Buffers do not fit the operator. DirectML removes the device for these; here nothing has been queued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message(&Names::DIRECTML))]
#[non_exhaustive]
pub enum BindingError {
    /// Too few inputs, or too many.
    Count {
        /// Inputs given.
        found: usize,
        /// Inputs of the operator.
        required: usize,
    },
    /// The buffer belongs to another device.
    Device {
        /// Which tensor.
        tensor: TensorRole,
        /// The buffer's device.
        found: String,
        /// The operator's device.
        required: String,
    },
    /// The range is smaller than the tensor.
    Size {
        /// Which tensor.
        tensor: TensorRole,
        /// Bytes bound.
        found: u64,
        /// Bytes of the tensor.
        required: u64,
    },
    /// The slice of another library is smaller than the tensor.
    Slice {
        /// Which tensor.
        tensor: TensorRole,
        /// Bytes of the slice.
        found: u64,
        /// Bytes of the tensor.
        required: u64,
    },
    /// The range leaves the buffer.
    Range {
        /// Which tensor.
        tensor: TensorRole,
        /// First byte bound.
        offset: u64,
        /// Bytes bound.
        length: u64,
        /// Bytes of the buffer.
        size_in_bytes: u64,
    },
    /// The offset, or the raw pointer, is not aligned.
    Alignment {
        /// Which tensor.
        tensor: TensorRole,
        /// `offset` or `pointer`.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The number of which it must be a multiple.
        required: u64,
    },
    /// A raw pointer is null.
    Null {
        /// Which tensor.
        tensor: TensorRole,
    },
    /// The output overlaps an input that it may not overlap.
    Overlap {
        /// Which input.
        tensor: TensorRole,
        /// The first byte that is in both: an offset in their buffer, or an address.
        found: u64,
        /// The pointers of OutputTensor and of the input; `None` for bound buffers.
        pointers: Option<(u64, u64)>,
        /// The requirement of the rule.
        required: &'static str,
    },
    /// The output is bound to the input's range, but the two tensors place their elements differently.
    InPlace,
}

impl BindingError {
    /// The message with the caller's names for the tensors.
    pub fn message(&self, names: &Names<'_>) -> String {
        let of = |tensor: &TensorRole| names.of(*tensor);
        match self {
            Self::Count { found, required } => {
                format!("the number of inputs is {found}, but must be {required} (binding.count)")
            }
            Self::Device { tensor, found, required } => format!(
                "the buffer of {} belongs to {found}, but the operator was compiled for {required} (binding.device)",
                of(tensor)
            ),
            Self::Size { tensor, found, required } => format!(
                "the binding of {} is {found} bytes, but must be at least {required}, its TotalTensorSizeInBytes (binding.size)",
                of(tensor)
            ),
            Self::Slice { tensor, found, required } => format!(
                "the slice of {} is {found} bytes, but must be at least {required}, from its first element to its last (binding.slice)",
                of(tensor)
            ),
            Self::Range { tensor, offset, length, size_in_bytes } => format!(
                "the binding of {} is {length} bytes at offset {offset}, but must be within the {size_in_bytes} bytes of its buffer (binding.range)",
                of(tensor)
            ),
            Self::Alignment { tensor, what, found, required } => format!(
                "the {what} of {} is {found:#x}, but must be a multiple of {required} (binding.alignment)",
                of(tensor)
            ),
            Self::Null { tensor } => {
                format!("the pointer of {} is null, but must be the address of its first element (binding.null)", of(tensor))
            }
            Self::Overlap { tensor, found, pointers, required } => {
                let (output, input) = (names.of(TensorRole::Output), of(tensor));
                let ranges = match pointers {
                    Some((to, from)) => {
                        format!("the range of {output} at pointer {to:#x} overlaps that of {input} at pointer {from:#x}")
                    }
                    None => format!("the range of {output} overlaps that of {input} from offset {found:#x} on"),
                };
                format!("{ranges}, but must {required} (binding.overlap)")
            }
            Self::InPlace => format!(
                "the layout of {} differs from that of {}, but must have the same strides to run in place (binding.in_place)",
                names.of(TensorRole::Output),
                names.of(TensorRole::Input)
            ),
        }
    }
}
