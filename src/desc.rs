//! Descriptors: plain data that the caller writes, in DirectML's own terms.

mod data_type;
pub mod feature_level;
pub(crate) mod layout;
mod operator_type;
mod place;

pub use data_type::{
    Delta, Element, Length, ParseTensorDataTypeError, ScalarUnion, SequenceElement, TensorDataType,
};
pub(crate) use feature_level::{is_extension, lowest_level, minimum_feature_level, tensor_support};
pub use feature_level::{FeatureLevel, ParseFeatureLevelError, TensorSupport};
pub(crate) use layout::MAX_DIMENSIONS;
pub use operator_type::{OperatorType, ParseOperatorTypeError, TensorRole};
pub use place::{Names, Place};

/// `DML_TENSOR_FLAGS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorFlags {
    /// `DML_TENSOR_FLAG_NONE`.
    #[default]
    None,
    /// `DML_TENSOR_FLAG_OWNED_BY_DML`: accepted on inputs, with no effect.
    OwnedByDml,
}

impl TensorFlags {
    /// The suffix of DirectML's name: `NONE` or `OWNED_BY_DML`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::OwnedByDml => "OWNED_BY_DML",
        }
    }
}

/// `DML_BUFFER_TENSOR_DESC`: a tensor in a buffer. Its DimensionCount is `sizes.len()`.
///
/// ```
/// use dml_cuda::{BufferTensorDesc, TensorDataType};
/// let packed = BufferTensorDesc::packed(TensorDataType::Float16, &[2, 3]);
/// assert_eq!(packed.total_tensor_size_in_bytes, 12);
/// let transposed = BufferTensorDesc::strided(TensorDataType::Float16, &[3, 2], &[1, 3]);
/// assert_eq!(transposed.minimum_size_in_bytes(), Some(12));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BufferTensorDesc {
    /// Type of the elements.
    pub data_type: TensorDataType,
    /// None on outputs; none or OWNED_BY_DML on inputs.
    pub flags: TensorFlags,
    /// Elements in each dimension, outermost first; 1 to 8 dimensions, each at least 1.
    pub sizes: Vec<u32>,
    /// Distance in elements between neighbours of each dimension; `None` is packed row-major.
    pub strides: Option<Vec<u32>>,
    /// Bytes of the tensor: at least [`BufferTensorDesc::minimum_size_in_bytes`].
    pub total_tensor_size_in_bytes: u64,
    /// 0, or a power of two of at least 16: the alignment of every bound offset.
    pub guaranteed_base_offset_alignment: u32,
}

impl BufferTensorDesc {
    /// A packed tensor with the smallest TotalTensorSizeInBytes.
    pub fn packed(data_type: TensorDataType, sizes: &[u32]) -> Self {
        Self::new(data_type, sizes, None)
    }

    /// A tensor with strides, in elements, and the smallest TotalTensorSizeInBytes.
    pub fn strided(data_type: TensorDataType, sizes: &[u32], strides: &[u32]) -> Self {
        Self::new(data_type, sizes, Some(strides.to_vec()))
    }

    fn new(data_type: TensorDataType, sizes: &[u32], strides: Option<Vec<u32>>) -> Self {
        let mut desc = Self {
            data_type,
            flags: TensorFlags::None,
            sizes: sizes.to_vec(),
            strides,
            total_tensor_size_in_bytes: 0,
            guaranteed_base_offset_alignment: 0,
        };
        // Sizes past 2^64 bytes saturate. Validation then rejects them and names the size.
        desc.total_tensor_size_in_bytes = desc.minimum_size_in_bytes().unwrap_or(u64::MAX);
        desc
    }

    /// The smallest TotalTensorSizeInBytes for these sizes and strides: the bytes from the first element to the last,
    /// rounded up to a multiple of 4. `None` if it is past 2^64, or if there are not as many strides as sizes.
    ///
    /// It does not wrap in 32 bits, as `DMLCalcBufferTensorSize` does.
    pub fn minimum_size_in_bytes(&self) -> Option<u64> {
        let bytes = layout::bytes_of_span(self.data_type, self.span()?)?;
        bytes.try_into().ok()
    }

    /// Bytes from the begin of the first element to the end of the last: what the operator reads or writes.
    /// TotalTensorSizeInBytes rounds them up to a multiple of 4. Saturates at 2^64 − 1:
    ///
    /// ```
    /// use dml_cuda::{BufferTensorDesc, TensorDataType};
    /// assert_eq!(BufferTensorDesc::packed(TensorDataType::UInt64, &[u32::MAX; 4]).span_in_bytes(), u64::MAX);
    /// ```
    pub fn span_in_bytes(&self) -> u64 {
        let bits = self
            .span()
            .and_then(|span| span.checked_mul(self.data_type.size_in_bits().into()));
        bits.and_then(|bits| (bits / 8).try_into().ok())
            .unwrap_or(u64::MAX)
    }

    /// Whether this tensor shares a byte with another, at the addresses of their first elements.
    pub(crate) fn shares_a_byte(&self, address: u64, other: &Self, other_address: u64) -> bool {
        let strides = |desc: &Self| {
            desc.strides
                .clone()
                .unwrap_or_else(|| layout::packed_strides(&desc.sizes))
        };
        let (own, others) = (strides(self), strides(other));
        let layouts = [(self, &own), (other, &others)].map(|(desc, strides)| {
            (
                &desc.sizes[..],
                &strides[..],
                desc.data_type.size_in_bits() / 8,
            )
        });
        layout::share_a_byte(layouts, other_address.wrapping_sub(address) as i64)
    }

    /// Elements from the first to the last, both included: Πsizes if packed, else 1 + Σ(size − 1)·stride. `None` past
    /// 2^128, or if there are not as many strides as sizes.
    pub(crate) fn span(&self) -> Option<u128> {
        let Some(strides) = &self.strides else {
            return layout::element_count(&self.sizes);
        };
        if strides.len() != self.sizes.len() {
            return None;
        }
        let distance = |(&size, &stride): (&u32, &u32)| {
            u128::from(size.saturating_sub(1)) * u128::from(stride)
        };
        Some(1 + self.sizes.iter().zip(strides).map(distance).sum::<u128>())
    }
}

/// `DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC`: element i of the output, in row-major order of its coordinates,
/// becomes start + i·delta.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FillValueSequenceDesc {
    /// The tensor to fill.
    pub output_tensor: BufferTensorDesc,
    /// How the two scalars are read; must be the output's data type.
    pub value_data_type: TensorDataType,
    /// Element 0, except that an infinite or NaN delta makes it NaN (start + 0·delta).
    pub value_start: ScalarUnion,
    /// Difference between neighbours. Integers wrap, so an unsigned type can count down by a negative delta.
    pub value_delta: ScalarUnion,
}

/// `DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC`: the first `length` elements of every sequence along `axis` are
/// reversed, the rest are copied.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReverseSubsequencesDesc {
    /// The tensor to read.
    pub input_tensor: BufferTensorDesc,
    /// UINT32 or UINT64, with the sizes of the input but 1 at `axis`. A length above the axis size is clamped to it.
    pub sequence_lengths_tensor: BufferTensorDesc,
    /// The sizes and data type of the input. Its strides may differ.
    pub output_tensor: BufferTensorDesc,
    /// The dimension along which elements are reversed.
    pub axis: u32,
}

/// The most input tensors of an operator.
pub(crate) const MAX_INPUTS: usize = 2;

/// The tensors of a descriptor. The first input is always of the output's type: the output may be the same memory, and
/// kernels move both in vectors.
#[derive(Clone, Copy)]
pub(crate) struct Signature<'a> {
    inputs: [(TensorRole, &'a BufferTensorDesc); MAX_INPUTS],
    count: usize,
    pub output: &'a BufferTensorDesc,
}

impl<'a> Signature<'a> {
    /// The inputs, in the order of the descriptor's fields.
    pub fn inputs(&self) -> &[(TensorRole, &'a BufferTensorDesc)] {
        &self.inputs[..self.count]
    }

    /// The inputs, then the output.
    pub fn tensors(self) -> impl Iterator<Item = (TensorRole, &'a BufferTensorDesc)> {
        self.inputs
            .into_iter()
            .take(self.count)
            .chain([(TensorRole::Output, self.output)])
    }
}

/// `DML_OPERATOR_DESC`: any operator of this crate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperatorDesc {
    /// `DML_OPERATOR_FILL_VALUE_SEQUENCE`.
    FillValueSequence(FillValueSequenceDesc),
    /// `DML_OPERATOR_REVERSE_SUBSEQUENCES`.
    ReverseSubsequences(ReverseSubsequencesDesc),
}

impl From<FillValueSequenceDesc> for OperatorDesc {
    fn from(desc: FillValueSequenceDesc) -> Self {
        Self::FillValueSequence(desc)
    }
}

impl From<ReverseSubsequencesDesc> for OperatorDesc {
    fn from(desc: ReverseSubsequencesDesc) -> Self {
        Self::ReverseSubsequences(desc)
    }
}

impl OperatorDesc {
    /// Which operator this describes.
    pub const fn operator_type(&self) -> OperatorType {
        match self {
            Self::FillValueSequence(_) => OperatorType::FillValueSequence,
            Self::ReverseSubsequences(_) => OperatorType::ReverseSubsequences,
        }
    }

    pub(crate) fn signature(&self) -> Signature<'_> {
        match self {
            Self::FillValueSequence(FillValueSequenceDesc {
                output_tensor: output,
                ..
            }) => Signature {
                inputs: [(TensorRole::Output, output); MAX_INPUTS],
                count: 0,
                output,
            },
            Self::ReverseSubsequences(desc) => Signature {
                inputs: [
                    (TensorRole::Input, &desc.input_tensor),
                    (TensorRole::SequenceLengths, &desc.sequence_lengths_tensor),
                ],
                count: 2,
                output: &desc.output_tensor,
            },
        }
    }

    /// The input tensors, in the order of the fields.
    pub fn input_tensors(&self) -> Vec<&BufferTensorDesc> {
        self.signature()
            .inputs()
            .iter()
            .map(|(_, desc)| *desc)
            .collect()
    }

    /// The output tensor.
    pub fn output_tensor(&self) -> &BufferTensorDesc {
        self.signature().output
    }
}
