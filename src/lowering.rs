//! Turns tensors of other libraries into descriptors: signed sizes and strides, any rank, broadcast lengths, elements
//! of any number of whole bytes.
//!
//! A lowered operator is small and `Copy`, so that [`Device::compile_lowered`] can look up the compiled one without
//! allocating.

mod cache;
mod range;

use crate::desc::data_type::{ScalarUnion, TensorDataType};
use crate::desc::layout::MAX_DIMENSIONS;
use crate::desc::{BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc, TensorRole};
use crate::device::operator::Operator;
use crate::device::Device;
use crate::error::Error;
pub use range::{integer_range_count, range_count, RangeError};

/// A tensor as NumPy, DLPack or ONNX Runtime describe it.
#[derive(Clone, Copy, Debug)]
pub struct ForeignTensor<'a> {
    /// Of any rank. None may be negative.
    pub sizes: &'a [i64],
    /// One for each size. `None` if the tensor is packed in row-major order.
    pub strides_in_bytes: Option<&'a [i64]>,
}

impl ForeignTensor<'_> {
    /// The stride of a dimension; `packed` is the stride that it has in a packed tensor. Strides of dimensions of size
    /// 1 have no meaning.
    fn stride(&self, dimension: usize, packed: i64) -> i64 {
        self.strides_in_bytes.map_or(packed, |strides| strides[dimension])
    }

    fn check(&self, tensor: TensorRole) -> Result<(), LoweringError> {
        match self.strides_in_bytes.map(<[i64]>::len) {
            Some(found) if found != self.sizes.len() => {
                Err(LoweringError::Strides { tensor, found, required: self.sizes.len() })
            }
            _ => Ok(()),
        }
    }
}

/// What a caller calls the tensors of a reversal and its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The input.
    pub input: &'static str,
    /// The lengths.
    pub lengths: &'static str,
    /// The output.
    pub output: &'static str,
    /// The axis.
    pub axis: &'static str,
}

impl Names {
    /// DirectML's own, which [`LoweringError`] shows.
    pub const DIRECTML: Self = Self {
        input: TensorRole::Input.name(),
        lengths: TensorRole::SequenceLengths.name(),
        output: TensorRole::Output.name(),
        axis: "axis",
    };

    fn of(&self, tensor: TensorRole) -> &'static str {
        match tensor {
            TensorRole::Input => self.input,
            TensorRole::SequenceLengths => self.lengths,
            TensorRole::Output => self.output,
        }
    }
}

/// Why tensors cannot be described.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoweringError {
    /// The axis is not one of the input's dimensions.
    Axis {
        /// The axis given.
        found: i64,
        /// The input's dimensions.
        rank: usize,
    },
    /// The lengths do not broadcast to the input's lanes.
    Lengths {
        /// Their shape.
        found: Vec<i64>,
        /// The input's shape with 1 at the axis.
        required: Vec<i64>,
    },
    /// There are not as many strides as sizes.
    Strides {
        /// Whose.
        tensor: TensorRole,
        /// The strides given.
        found: usize,
        /// Its dimensions.
        required: usize,
    },
    /// A size that is not possible.
    Size {
        /// Whose.
        tensor: TensorRole,
        /// Which dimension.
        dimension: usize,
        /// Its size.
        found: i64,
        /// What it must be.
        required: String,
    },
    /// A stride that is not possible.
    Stride {
        /// Whose.
        tensor: TensorRole,
        /// Of which dimension.
        dimension: usize,
        /// The stride.
        found: i64,
        /// What it must be.
        required: String,
    },
    /// Too many dimensions, which do not fold into those of a descriptor.
    Fold {
        /// The input's sizes.
        shape: Vec<i64>,
    },
}

impl LoweringError {
    /// The message in the caller's words.
    pub fn message(&self, names: &Names) -> String {
        let Names { input, lengths, axis, .. } = *names;
        match self {
            Self::Axis { found, rank: 0 } => {
                format!("{axis} is {found}, must be a dimension of {input}, which has none")
            }
            Self::Axis { found, rank } => {
                let end = *rank as i64;
                format!("{axis} is {found}, must be from {} to {}, of an {input} of {rank} dimensions", -end, end - 1)
            }
            Self::Lengths { found, required } => {
                format!("{lengths} has shape {found:?}, must broadcast to {required:?}, {input}'s with 1 at {axis}")
            }
            Self::Strides { tensor, found, required } => {
                format!("{} has {found} strides, must have {required}, one for each dimension", names.of(*tensor))
            }
            Self::Size { tensor, dimension, found, required } => {
                format!("dimension {dimension} of {} is {found}, must be {required}", names.of(*tensor))
            }
            Self::Stride { tensor, dimension, found, required } => {
                format!("stride {dimension} of {} is {found} bytes, must be {required}", names.of(*tensor))
            }
            Self::Fold { shape } => format!(
                "{input} has shape {shape:?}, must fold into {MAX_DIMENSIONS} dimensions for these strides and lengths"
            ),
        }
    }
}

impl std::fmt::Display for LoweringError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message(&Names::DIRECTML))
    }
}

impl std::error::Error for LoweringError {}

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
    /// FILL_VALUE_SEQUENCE, and sequences of FLOAT64.
    Sequence(LoweredSequence),
}

impl Lowered {
    /// The operator's descriptor. DirectML does not accept the one of a FLOAT64 sequence.
    pub fn desc(&self) -> OperatorDesc {
        match self {
            Self::Reversal(reversal) => reversal.desc().into(),
            Self::Sequence(sequence) => sequence.desc().into(),
        }
    }

    pub(crate) fn operator(&self, device: &Device) -> Result<Operator, Error> {
        match self {
            Self::Sequence(sequence) if sequence.data_type == TensorDataType::Float64 => {
                let packed = sequence.rank == 1 && sequence.strides[0] == 1;
                assert!(packed, "`LoweredSequence::strided` takes DirectML's types only");
                Ok(Operator::beyond_directml(sequence.desc()))
            }
            _ => Ok(device.create_operator(self.desc())?),
        }
    }
}

/// A reversal with as few dimensions as possible. Each element becomes one or more unsigned integers of 1 to 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoweredReversal {
    /// The dimensions are the last ones of these arrays; zeros before them.
    sizes: [u32; MAX_DIMENSIONS],
    input_strides: [u32; MAX_DIMENSIONS],
    length_strides: [u32; MAX_DIMENSIONS],
    output_strides: [u32; MAX_DIMENSIONS],
    /// Indices of the outermost dimension and of the axis.
    first: usize,
    axis: usize,
    data_type: TensorDataType,
    length_type: TensorDataType,
}

impl LoweredReversal {
    /// A reversal of `input` along `axis` (negative: counted from the end) into a tensor of the same sizes. The shape
    /// of `lengths` broadcasts, by NumPy's rules, to the input's shape with 1 at the axis.
    ///
    /// `element_size` is in bytes. `addresses` is the bitwise or of the input's and the output's addresses, or 0 if
    /// they are multiples of 8. Elements move as the largest integers that the addresses, the strides and the element
    /// size allow. A size of 0 is accepted here, but the descriptor is then invalid.
    ///
    /// ```
    /// use dml_cuda::lowering::{ForeignTensor, LoweredReversal};
    /// use dml_cuda::TensorDataType;
    ///
    /// // [batch, time, 2, 3] complex64, a length for each batch.
    /// let input = ForeignTensor { sizes: &[5, 7, 2, 3], strides_in_bytes: None };
    /// let lengths = ForeignTensor { sizes: &[5, 1, 1, 1], strides_in_bytes: None };
    /// let lowered = LoweredReversal::new(input, lengths, None, 1, 8, TensorDataType::UInt32, 0)?;
    /// assert_eq!(lowered.desc().input_tensor.sizes, [5, 7, 6]);
    /// assert_eq!(lowered.desc().sequence_lengths_tensor.strides.as_deref(), Some(&[1, 0, 0][..]));
    /// # Ok::<(), dml_cuda::lowering::LoweringError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LoweringError`]: the axis, sizes or strides do not fit, or the tensor needs more than 8 dimensions.
    pub fn new(
        input: ForeignTensor<'_>,
        lengths: ForeignTensor<'_>,
        output_strides_in_bytes: Option<&[i64]>,
        axis: i64,
        element_size: usize,
        length_type: TensorDataType,
        addresses: u64,
    ) -> Result<Self, LoweringError> {
        use TensorRole::{Input, Output, SequenceLengths};
        let rank = input.sizes.len();
        let output = ForeignTensor { sizes: input.sizes, strides_in_bytes: output_strides_in_bytes };
        input.check(Input)?;
        lengths.check(SequenceLengths)?;
        output.check(Output)?;
        let from_front = if axis < 0 { axis + rank as i64 } else { axis };
        if !(0..rank as i64).contains(&from_front) {
            return Err(LoweringError::Axis { found: axis, rank });
        }
        let axis = from_front as usize;
        let of_lanes = |d: usize| if d == axis { 1 } else { input.sizes[d] };
        let missing = rank.checked_sub(lengths.sizes.len());
        let broadcasts = |missing: &usize| {
            lengths.sizes.iter().zip(*missing..).all(|(&found, d)| found == 1 || found == of_lanes(d))
        };
        let Some(missing) = missing.filter(broadcasts) else {
            let required = (0..rank).map(of_lanes).collect();
            return Err(LoweringError::Lengths { found: lengths.sizes.to_vec(), required });
        };

        let mut bits = element_size as u64 | addresses | 8;
        for strides in [input.strides_in_bytes, output.strides_in_bytes].into_iter().flatten() {
            let moving = strides.iter().zip(input.sizes).filter(|(_, &size)| size > 1);
            bits |= moving.fold(0, |bits, (&stride, _)| bits | stride as u64);
        }
        let unit = 1 << bits.trailing_zeros();
        let length_size = i64::from(length_type.size_in_bits() / 8);
        let mut lowered = Self::empty(unit, length_type);
        let units = element_size as i64 >> unit.trailing_zeros();
        if units > 1 {
            lowered.add(units as u32, [1, 0, 1], false, input.sizes)?;
        }
        // From the innermost dimension out, keeping track of the strides that packed tensors have.
        let (mut packed, mut packed_lengths) = (element_size as i64, length_size);
        for d in (0..rank).rev() {
            let (found, is_axis) = (input.sizes[d], d == axis);
            let size = size_of(Input, d, found)?;
            let length_stride = match d.checked_sub(missing) {
                None => 0,
                Some(k) => {
                    let of_lengths = lengths.sizes[k];
                    let stride = lengths.stride(k, packed_lengths);
                    packed_lengths = packed_lengths.saturating_mul(of_lengths);
                    if of_lengths == 1 {
                        0
                    } else {
                        units_of(SequenceLengths, k, stride, length_size)?
                    }
                }
            };
            let (of_input, of_output) = (input.stride(d, packed), output.stride(d, packed));
            packed = packed.saturating_mul(found);
            if size == 1 {
                if is_axis {
                    lowered.add(1, [0; 3], true, input.sizes)?;
                }
                continue;
            }
            let strides = [units_of(Input, d, of_input, unit)?, length_stride, units_of(Output, d, of_output, unit)?];
            lowered.add(size, strides, is_axis, input.sizes)?;
        }
        Ok(lowered)
    }

    /// The size of the axis.
    pub fn axis_size(&self) -> u32 {
        self.sizes[self.axis]
    }

    /// The operator's descriptor.
    pub fn desc(&self) -> ReverseSubsequencesDesc {
        let mut length_sizes = self.sizes;
        length_sizes[self.axis] = 1;
        let tensor = |data_type, sizes: &[u32; MAX_DIMENSIONS], strides: &[u32; MAX_DIMENSIONS]| {
            BufferTensorDesc::strided(data_type, &sizes[self.first..], &strides[self.first..])
        };
        ReverseSubsequencesDesc {
            input_tensor: tensor(self.data_type, &self.sizes, &self.input_strides),
            sequence_lengths_tensor: tensor(self.length_type, &length_sizes, &self.length_strides),
            output_tensor: tensor(self.data_type, &self.sizes, &self.output_strides),
            axis: (self.axis - self.first) as u32,
        }
    }
}

impl LoweredReversal {
    /// No dimensions yet.
    fn empty(unit: i64, length_type: TensorDataType) -> Self {
        let data_type = match unit {
            1 => TensorDataType::UInt8,
            2 => TensorDataType::UInt16,
            4 => TensorDataType::UInt32,
            _ => TensorDataType::UInt64,
        };
        let none = [0; MAX_DIMENSIONS];
        Self {
            sizes: none,
            input_strides: none,
            length_strides: none,
            output_strides: none,
            first: MAX_DIMENSIONS,
            axis: MAX_DIMENSIONS,
            data_type,
            length_type,
        }
    }

    /// Adds a dimension outside of the others, or merges it with the outermost, if it continues that one in every tensor.
    fn add(&mut self, size: u32, strides: [u32; 3], is_axis: bool, shape: &[i64]) -> Result<(), LoweringError> {
        if self.first < MAX_DIMENSIONS && self.first != self.axis && !is_axis {
            let inner = self.sizes[self.first];
            let of_inner = [&self.input_strides, &self.length_strides, &self.output_strides];
            let continues = of_inner
                .iter()
                .zip(strides)
                .all(|(of_inner, stride)| u64::from(of_inner[self.first]) * u64::from(inner) == u64::from(stride));
            if let (true, Some(joined)) = (continues, inner.checked_mul(size)) {
                self.sizes[self.first] = joined;
                return Ok(());
            }
        }
        self.first = self.first.checked_sub(1).ok_or_else(|| LoweringError::Fold { shape: shape.to_vec() })?;
        self.sizes[self.first] = size;
        self.input_strides[self.first] = strides[0];
        self.length_strides[self.first] = strides[1];
        self.output_strides[self.first] = strides[2];
        if is_axis {
            self.axis = self.first;
        }
        Ok(())
    }
}

/// A sequence, with the dimensions of its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoweredSequence {
    sizes: [u32; MAX_DIMENSIONS],
    /// In elements.
    strides: [u32; MAX_DIMENSIONS],
    rank: usize,
    data_type: TensorDataType,
    start: u64,
    delta: u64,
}

impl LoweredSequence {
    /// `count` packed elements. `start` and `delta` are the bits of scalars of the type. The type may also be FLOAT64,
    /// which DirectML does not fill.
    pub fn packed(data_type: TensorDataType, count: u32, start: u64, delta: u64) -> Self {
        let (mut sizes, mut strides) = ([0; MAX_DIMENSIONS], [0; MAX_DIMENSIONS]);
        (sizes[0], strides[0]) = (count, 1);
        // Clears bits above the type's, so that equal sequences compare equal.
        let [start, delta] = [start, delta].map(|scalar| scalar & u64::MAX >> (64 - data_type.size_in_bits()));
        Self { sizes, strides, rank: 1, data_type, start, delta }
    }

    /// A tensor of 0 to 8 dimensions.
    ///
    /// # Errors
    ///
    /// [`LoweringError`]: the sizes or strides do not fit, there are more than 8 dimensions, or FLOAT64 is not packed.
    pub fn strided(
        data_type: TensorDataType,
        output: ForeignTensor<'_>,
        start: u64,
        delta: u64,
    ) -> Result<Self, LoweringError> {
        let tensor = TensorRole::Output;
        output.check(tensor)?;
        let rank = output.sizes.len();
        if rank > MAX_DIMENSIONS {
            return Err(LoweringError::Fold { shape: output.sizes.to_vec() });
        }
        let mut lowered = Self::packed(data_type, 1, start, delta);
        lowered.rank = rank.max(1);
        let width = i64::from(data_type.size_in_bits() / 8).max(1);
        let mut packed = width;
        for d in (0..rank).rev() {
            lowered.sizes[d] = size_of(tensor, d, output.sizes[d])?;
            let stride = if output.sizes[d] > 1 { output.stride(d, packed) } else { packed };
            lowered.strides[d] = units_of(tensor, d, stride, width)?;
            packed = packed.saturating_mul(output.sizes[d].max(1));
        }
        if data_type == TensorDataType::Float64 && (lowered.rank, lowered.strides[0]) != (1, 1) {
            return Err(LoweringError::Fold { shape: output.sizes.to_vec() });
        }
        Ok(lowered)
    }

    /// The operator's descriptor. DirectML does not accept the one of a FLOAT64 sequence.
    pub fn desc(&self) -> FillValueSequenceDesc {
        let (sizes, strides) = (&self.sizes[..self.rank], &self.strides[..self.rank]);
        let output_tensor = match strides {
            [1] => BufferTensorDesc::packed(self.data_type, sizes),
            _ => BufferTensorDesc::strided(self.data_type, sizes, strides),
        };
        FillValueSequenceDesc {
            output_tensor,
            value_data_type: self.data_type,
            value_start: ScalarUnion::Bytes(self.start.to_le_bytes()),
            value_delta: ScalarUnion::Bytes(self.delta.to_le_bytes()),
        }
    }
}

fn size_of(tensor: TensorRole, dimension: usize, found: i64) -> Result<u32, LoweringError> {
    let required = || if found < 0 { "at least 0" } else { "below 2³²" }.to_owned();
    u32::try_from(found).map_err(|_| LoweringError::Size { tensor, dimension, found, required: required() })
}

/// A stride in bytes as a number of units. A unit is a power of two of bytes.
fn units_of(tensor: TensorRole, dimension: usize, found: i64, unit: i64) -> Result<u32, LoweringError> {
    debug_assert!(unit.count_ones() == 1, "{unit}");
    let units = if found & (unit - 1) == 0 { u32::try_from(found >> unit.trailing_zeros()).ok() } else { None };
    units.ok_or_else(|| {
        let required = match found {
            ..0 => "at least 0".to_owned(),
            _ if found % unit != 0 => format!("a multiple of {unit}, the bytes of an element"),
            _ => format!("below {}", (1i128 << 32) * i128::from(unit)),
        };
        LoweringError::Stride { tensor, dimension, found, required }
    })
}

#[cfg(test)]
mod tests;
