//! Tensors of other libraries as descriptors: signed sizes and strides of any rank, broadcast lengths, elements of any whole bytes.
//!
//! A lowered operator is small and `Copy`, so that [`Device::compile_lowered`] finds the compiled one without an allocation.

use crate::data_type::{ScalarUnion, TensorDataType};
use crate::desc::{BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc, TensorRole};
use crate::device::Device;
use crate::error::Error;
use crate::layout::MAX_DIMENSIONS;
use crate::operator::Operator;

/// A tensor as NumPy, DLPack or ONNX Runtime describe it.
#[derive(Clone, Copy, Debug)]
pub struct ForeignTensor<'a> {
    /// Of any rank; none of them below 0.
    pub sizes: &'a [i64],
    /// One for each size; packed in row-major order where `None`.
    pub strides_in_bytes: Option<&'a [i64]>,
}

impl ForeignTensor<'_> {
    /// The stride of a dimension, if `packed` is that of a packed tensor. Where the size is 1 it means nothing.
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

/// Why tensors have no descriptor. Tensors have DirectML's names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoweringError {
    /// The axis is not one of the input's dimensions.
    #[error("axis is {found}, must be from {} to {}, of an {} of {rank} dimensions", -(*rank as i64), *rank as i64 - 1, TensorRole::Input.name())]
    Axis {
        /// The axis given.
        found: i64,
        /// The input's dimensions.
        rank: usize,
    },
    /// The lengths have more dimensions than the input.
    #[error("{} has {found} dimensions, must have at most {required}, those of {}", TensorRole::SequenceLengths.name(), TensorRole::Input.name())]
    Rank {
        /// The lengths' dimensions.
        found: usize,
        /// The input's.
        required: usize,
    },
    /// There are not as many strides as sizes.
    #[error("{} has {found} strides, must have {required}, one for each dimension", .tensor.name())]
    Strides {
        /// Whose.
        tensor: TensorRole,
        /// The strides given.
        found: usize,
        /// Its dimensions.
        required: usize,
    },
    /// A size that cannot be.
    #[error("dimension {dimension} of {} is {found}, must be {required}", .tensor.name())]
    Size {
        /// Whose.
        tensor: TensorRole,
        /// Which dimension.
        dimension: usize,
        /// Its size.
        found: i64,
        /// What it has to be.
        required: String,
    },
    /// A stride that cannot be.
    #[error("stride {dimension} of {} is {found} bytes, must be {required}", .tensor.name())]
    Stride {
        /// Whose.
        tensor: TensorRole,
        /// Of which dimension.
        dimension: usize,
        /// The stride.
        found: i64,
        /// What it has to be.
        required: String,
    },
    /// Dimensions that do not fold into those of a descriptor.
    #[error("{} has shape {shape:?}, must fold into {MAX_DIMENSIONS} dimensions for these strides and lengths", TensorRole::Input.name())]
    Fold {
        /// The input's sizes.
        shape: Vec<i64>,
    },
}

/// An operator of other libraries' tensors, with everything that its descriptor depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lowered {
    /// REVERSE_SUBSEQUENCES.
    Reversal(LoweredReversal),
    /// FILL_VALUE_SEQUENCE, and sequences of FLOAT64.
    Sequence(LoweredSequence),
}

impl Lowered {
    /// The operator's descriptor. That of a FLOAT64 sequence is none of DirectML's.
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

/// A reversal with dimensions folded as far as they go, and elements as one or more unsigned integers of 1 to 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoweredReversal {
    sizes: [u32; MAX_DIMENSIONS],
    input_strides: [u32; MAX_DIMENSIONS],
    length_strides: [u32; MAX_DIMENSIONS],
    output_strides: [u32; MAX_DIMENSIONS],
    rank: usize,
    axis: usize,
    data_type: TensorDataType,
    length_type: TensorDataType,
}

impl LoweredReversal {
    /// A reversal of `input` along `axis` (from the end where negative) into a tensor of the same sizes, by lengths of a shape that
    /// NumPy broadcasts to the input's with 1 at the axis.
    ///
    /// `element_size` is in bytes. `addresses` are all bits of the two addresses, or 0 where they are multiples of 8: elements are
    /// moved by the largest integers whose alignment these, the strides and the element size allow. A size of 0 passes, but
    /// has no valid descriptor.
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
    /// [`LoweringError`]: an axis, sizes or strides that do not fit; more than 8 dimensions that do not fold.
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
        let missing = rank
            .checked_sub(lengths.sizes.len())
            .ok_or(LoweringError::Rank { found: lengths.sizes.len(), required: rank })?;

        let mut bits = element_size as u64 | addresses | 8;
        for strides in [input.strides_in_bytes, output.strides_in_bytes].into_iter().flatten() {
            let moving = strides.iter().zip(input.sizes).filter(|(_, &size)| size > 1);
            bits |= moving.fold(0, |bits, (&stride, _)| bits | stride as u64);
        }
        let unit = 1 << bits.trailing_zeros();
        let length_size = i64::from(length_type.size_in_bits() / 8);
        let mut folding = Folding::new(unit, length_type);
        let units = element_size as i64 / unit;
        if units > 1 {
            folding.add(units as u32, [1, 0, 1], false, input.sizes)?;
        }
        // From the innermost dimension out, with the strides of packed tensors.
        let (mut packed, mut packed_lengths) = (element_size as i64, length_size);
        for d in (0..rank).rev() {
            let (found, is_axis) = (input.sizes[d], d == axis);
            let size = size_of(Input, d, found)?;
            let length_stride = match d.checked_sub(missing) {
                None => 0,
                Some(k) => {
                    let of_lengths = lengths.sizes[k];
                    if of_lengths != 1 && (is_axis || of_lengths != found) {
                        let required = if is_axis || found == 1 { "1".to_owned() } else { format!("1 or {found}") };
                        let (tensor, dimension) = (SequenceLengths, k);
                        return Err(LoweringError::Size { tensor, dimension, found: of_lengths, required });
                    }
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
                    folding.add(1, [0; 3], true, input.sizes)?;
                }
                continue;
            }
            let strides = [units_of(Input, d, of_input, unit)?, length_stride, units_of(Output, d, of_output, unit)?];
            folding.add(size, strides, is_axis, input.sizes)?;
        }
        Ok(folding.finish())
    }

    /// The size of the axis.
    pub fn axis_size(&self) -> u32 {
        self.sizes[self.axis]
    }

    /// DirectML's descriptor.
    pub fn desc(&self) -> ReverseSubsequencesDesc {
        let sizes = &self.sizes[..self.rank];
        let mut length_sizes = self.sizes;
        length_sizes[self.axis] = 1;
        let tensor = |data_type, sizes: &[u32], strides: &[u32; MAX_DIMENSIONS]| {
            BufferTensorDesc::strided(data_type, sizes, &strides[..self.rank])
        };
        ReverseSubsequencesDesc {
            input_tensor: tensor(self.data_type, sizes, &self.input_strides),
            sequence_lengths_tensor: tensor(self.length_type, &length_sizes[..self.rank], &self.length_strides),
            output_tensor: tensor(self.data_type, sizes, &self.output_strides),
            axis: self.axis as u32,
        }
    }
}

/// Dimensions from the innermost out, in the last places; one that continues the one inside it in every tensor joins it.
struct Folding {
    lowered: LoweredReversal,
    at: usize,
}

impl Folding {
    fn new(unit: i64, length_type: TensorDataType) -> Self {
        let data_type = match unit {
            1 => TensorDataType::UInt8,
            2 => TensorDataType::UInt16,
            4 => TensorDataType::UInt32,
            _ => TensorDataType::UInt64,
        };
        let none = [0; MAX_DIMENSIONS];
        let lowered = LoweredReversal {
            sizes: none,
            input_strides: none,
            length_strides: none,
            output_strides: none,
            rank: 0,
            axis: MAX_DIMENSIONS,
            data_type,
            length_type,
        };
        Self { lowered, at: MAX_DIMENSIONS }
    }

    fn add(&mut self, size: u32, strides: [u32; 3], is_axis: bool, shape: &[i64]) -> Result<(), LoweringError> {
        let lowered = &mut self.lowered;
        if self.at < MAX_DIMENSIONS && self.at != lowered.axis && !is_axis {
            let inner = lowered.sizes[self.at];
            let of_inner = [lowered.input_strides, lowered.length_strides, lowered.output_strides];
            let continues = of_inner
                .iter()
                .zip(strides)
                .all(|(of_inner, stride)| u64::from(of_inner[self.at]) * u64::from(inner) == u64::from(stride));
            if let (true, Some(joined)) = (continues, inner.checked_mul(size)) {
                lowered.sizes[self.at] = joined;
                return Ok(());
            }
        }
        self.at = self.at.checked_sub(1).ok_or_else(|| LoweringError::Fold { shape: shape.to_vec() })?;
        lowered.sizes[self.at] = size;
        lowered.input_strides[self.at] = strides[0];
        lowered.length_strides[self.at] = strides[1];
        lowered.output_strides[self.at] = strides[2];
        if is_axis {
            lowered.axis = self.at;
        }
        Ok(())
    }

    /// Moves the dimensions to the first places. The axis is one of them.
    fn finish(self) -> LoweredReversal {
        let Self { mut lowered, at } = self;
        lowered.rank = MAX_DIMENSIONS - at;
        lowered.axis -= at;
        for numbers in
            [&mut lowered.sizes, &mut lowered.input_strides, &mut lowered.length_strides, &mut lowered.output_strides]
        {
            numbers.rotate_left(at);
        }
        lowered
    }
}

/// A sequence in the dimensions of its output.
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
    /// `count` elements, packed. `start` and `delta` are the bits of scalars of the type, which may be FLOAT64, too: a type that
    /// DirectML does not fill.
    pub fn packed(data_type: TensorDataType, count: u32, start: u64, delta: u64) -> Self {
        let (mut sizes, mut strides) = ([0; MAX_DIMENSIONS], [0; MAX_DIMENSIONS]);
        (sizes[0], strides[0]) = (count, 1);
        // Bits above the type's say nothing.
        let [start, delta] = [start, delta].map(|scalar| scalar & u64::MAX >> (64 - data_type.size_in_bits()));
        Self { sizes, strides, rank: 1, data_type, start, delta }
    }

    /// A tensor of 0 to 8 dimensions.
    ///
    /// # Errors
    ///
    /// [`LoweringError`]: sizes or strides that do not fit, more than 8 dimensions, FLOAT64 that is not packed.
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

    /// DirectML's descriptor; that of FLOAT64 is none of DirectML's.
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

/// How many elements `start`, `start + delta`, … has below `limit` (above it where delta is negative): those of ONNX's Range, as ONNX
/// Runtime 1.32 counts them.
///
/// # Errors
///
/// [`RangeError`]: a delta of 0, no finite number of elements, 2³² or more.
pub fn range_count([start, limit, delta]: [f64; 3]) -> Result<u32, RangeError> {
    if delta == 0.0 {
        return Err(RangeError::Delta);
    }
    let count = ((limit - start) / delta).ceil();
    if !count.is_finite() {
        return Err(RangeError::NotFinite { start, limit, delta });
    }
    fewer(count.max(0.0) as u128)
}

/// The same of integers, exactly.
///
/// # Errors
///
/// [`RangeError`]: a delta of 0, 2³² elements or more.
pub fn integer_range_count([start, limit, delta]: [i64; 3]) -> Result<u32, RangeError> {
    if delta == 0 {
        return Err(RangeError::Delta);
    }
    let (difference, delta) = (i128::from(limit) - i128::from(start), i128::from(delta));
    let (distance, step) = if delta < 0 { (-difference, -delta) } else { (difference, delta) };
    fewer(distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
}

fn fewer(found: u128) -> Result<u32, RangeError> {
    u32::try_from(found).map_err(|_| RangeError::Count { found })
}

/// Why a range has no elements to write.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// The delta is 0.
    #[error("delta is 0, must be another number")]
    Delta,
    /// A scalar is infinite or not a number.
    #[error("start is {start}, limit {limit} and delta {delta}, must give a finite number of elements")]
    NotFinite {
        /// The first element.
        start: f64,
        /// Where the range ends.
        limit: f64,
        /// The distance of neighbours.
        delta: f64,
    },
    /// Too many.
    #[error("the output has {found} elements, must have fewer than 2³²")]
    Count {
        /// How many.
        found: u128,
    },
}

fn size_of(tensor: TensorRole, dimension: usize, found: i64) -> Result<u32, LoweringError> {
    let required = || if found < 0 { "at least 0" } else { "below 2³²" }.to_owned();
    u32::try_from(found).map_err(|_| LoweringError::Size { tensor, dimension, found, required: required() })
}

/// A stride in units of so many bytes.
fn units_of(tensor: TensorRole, dimension: usize, found: i64, unit: i64) -> Result<u32, LoweringError> {
    let units = if found % unit == 0 { u32::try_from(found / unit).ok() } else { None };
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
mod tests {
    use super::*;

    fn packed(sizes: &[i64]) -> ForeignTensor<'_> {
        ForeignTensor { sizes, strides_in_bytes: None }
    }

    fn strided<'a>(sizes: &'a [i64], strides: &'a [i64]) -> ForeignTensor<'a> {
        ForeignTensor { sizes, strides_in_bytes: Some(strides) }
    }

    /// Of packed tensors of 4-byte elements, with lengths of 8 bytes: sizes, strides of the lengths, and the axis.
    fn lower(shape: &[i64], lengths: &[i64], axis: i64) -> Result<(Vec<u32>, Vec<u32>, u32), LoweringError> {
        let (input, lengths) = (packed(shape), packed(lengths));
        let desc = LoweredReversal::new(input, lengths, None, axis, 4, TensorDataType::UInt64, 0)?.desc();
        Device::cpu().create_operator(desc.clone()).expect("DirectML takes it");
        let strides = desc.sequence_lengths_tensor.strides.expect("written out");
        Ok((desc.input_tensor.sizes, strides, desc.axis))
    }

    #[test]
    fn dimensions_fold_to_outer_axis_and_inner() {
        for (shape, lengths, axis, required) in [
            // ONNX's [T, B, F, G] along time 0, and [B, T, F, G] along time 1.
            (&[5, 3, 7, 2][..], &[1, 3, 1, 1][..], 0, (vec![5, 3, 14], vec![0, 1, 0], 0)),
            (&[3, 5, 7, 2], &[3, 1, 1, 1], 1, (vec![3, 5, 14], vec![1, 0, 0], 1)),
            // Lengths of every lane; a scalar; lengths of lower rank; the axis alone, also from the end.
            (&[3, 2, 5, 7], &[3, 2, 1, 7], 2, (vec![6, 5, 7], vec![7, 0, 1], 1)),
            (&[3, 5], &[], 1, (vec![3, 5], vec![0, 0], 1)),
            (&[2, 3, 4], &[4], 1, (vec![2, 3, 4], vec![0, 0, 1], 1)),
            (&[5], &[1], -1, (vec![5], vec![0], 0)),
            (&[1, 1, 1], &[], 1, (vec![1], vec![0], 0)),
            // Ten dimensions become three.
            (&[2; 10], &[2, 2, 2, 1, 2, 2, 2, 2, 2, 2], 3, (vec![8, 2, 64], vec![64, 0, 1], 1)),
        ] {
            assert_eq!(lower(shape, lengths, axis).expect("fits"), required, "{shape:?} {lengths:?} {axis}");
        }
    }

    #[test]
    fn elements_move_as_the_largest_integers_that_everything_is_aligned_to() {
        let lengths = packed(&[]);
        for (size, strides, addresses, unit, sizes) in [
            (4, [12, 4], 0, TensorDataType::UInt32, &[2, 3][..]),
            (16, [48, 16], 0, TensorDataType::UInt64, &[2, 3, 2]),
            (12, [36, 12], 0, TensorDataType::UInt32, &[2, 3, 3]),
            (3, [9, 3], 0, TensorDataType::UInt8, &[2, 3, 3]),
            // Rows of 26 bytes; an address at 2.
            (4, [26, 4], 0, TensorDataType::UInt16, &[2, 3, 2]),
            (8, [24, 8], 0x7002, TensorDataType::UInt16, &[2, 3, 4]),
        ] {
            let input = strided(&[2, 3], &strides);
            let lowered =
                LoweredReversal::new(input, lengths, Some(&strides), 1, size, TensorDataType::UInt32, addresses);
            let desc = lowered.expect("fits").desc();
            assert_eq!(
                (desc.input_tensor.data_type, &desc.input_tensor.sizes[..]),
                (unit, sizes),
                "{size} {strides:?}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let refused =
            |shape: &[i64], lengths: &[i64], axis| lower(shape, lengths, axis).expect_err("refused").to_string();
        assert_eq!(refused(&[2, 3], &[3, 1], 1), "dimension 0 of SequenceLengthsTensor is 3, must be 1 or 2");
        assert_eq!(refused(&[2, 3], &[2, 3], 1), "dimension 1 of SequenceLengthsTensor is 3, must be 1");
        let rank = "SequenceLengthsTensor has 2 dimensions, must have at most 1, those of InputTensor";
        assert_eq!(refused(&[2], &[1, 2], 0), rank);
        assert_eq!(refused(&[1 << 32, 3], &[], 1), "dimension 0 of InputTensor is 4294967296, must be below 2³²");
        assert_eq!(refused(&[2, -3], &[], 0), "dimension 1 of InputTensor is -3, must be at least 0");
        assert_eq!(refused(&[2], &[], 1), "axis is 1, must be from -1 to 0, of an InputTensor of 1 dimensions");
        let striped: Vec<i64> = (0..20).map(|d| if d % 2 == 0 { 2 } else { 1 }).collect();
        assert!(refused(&[2; 20], &striped, 19).ends_with("must fold into 8 dimensions for these strides and lengths"));

        let strides = |of_input: &[i64], of_lengths: &[i64]| {
            let (input, lengths) = (strided(&[2, 3], of_input), strided(&[2, 1], of_lengths));
            let lowered = LoweredReversal::new(input, lengths, None, 1, 4, TensorDataType::UInt32, 0);
            lowered.expect_err("refused").to_string()
        };
        assert_eq!(strides(&[-12, 4], &[4, 4]), "stride 0 of InputTensor is -12 bytes, must be at least 0");
        assert_eq!(
            strides(&[1 << 40, 4], &[4, 4]),
            "stride 0 of InputTensor is 1099511627776 bytes, must be below 17179869184"
        );
        let odd = "stride 0 of SequenceLengthsTensor is 6 bytes, must be a multiple of 4, the bytes of an element";
        assert_eq!(strides(&[12, 4], &[6, 4]), odd);
        assert_eq!(strides(&[12], &[4, 4]), "InputTensor has 1 strides, must have 2, one for each dimension");
    }

    #[test]
    fn ranges_have_onnxs_counts() {
        for (range, required) in [
            ([0, 10, 3], 4),
            ([0, 9, 3], 3),
            ([10, 0, -3], 4),
            ([9, 0, -3], 3),
            ([0, 10, -1], 0),
            ([10, 0, 1], 0),
            ([5, 5, 1], 0),
            ([-7, 8, 5], 3),
            ([7, -8, -5], 3),
            ([i64::MIN, i64::MAX, i64::MAX], 3),
            ([i64::MAX, i64::MIN, i64::MIN], 2),
        ] {
            assert_eq!(integer_range_count(range), Ok(required), "{range:?}");
        }
        assert_eq!(integer_range_count([i64::MIN, i64::MAX, 1]), Err(RangeError::Count { found: u64::MAX.into() }));
        assert_eq!(integer_range_count([0, 1, 0]), Err(RangeError::Delta));
        assert_eq!(range_count([0.0, 1.0, -0.0]), Err(RangeError::Delta));
        let widened = [-3e38, 3e38, 1e38].map(|scalar: f64| f64::from(scalar as f32));
        for (range, required) in [
            ([0.0, 1.0, 0.3], 4),
            ([0.0, -1.0, 0.3], 0),
            (widened, 7),
            ([0.0, 1.0, f64::INFINITY], 0),
            ([5.0, 0.0, 1.0], 0),
        ] {
            assert_eq!(range_count(range), Ok(required), "{range:?}");
        }
        let infinite = range_count([0.0, f64::INFINITY, 1.0]).expect_err("refused").to_string();
        assert_eq!(infinite, "start is 0, limit inf and delta 1, must give a finite number of elements");
        for range in [[f64::NAN, 1.0, 1.0], [0.0, f64::INFINITY, f64::INFINITY], [0.0, 1.0, f64::NAN]] {
            assert!(matches!(range_count(range), Err(RangeError::NotFinite { .. })), "{range:?}");
        }
        assert!(matches!(range_count([0.0, 1e300, 1.0]), Err(RangeError::Count { .. })));
    }

    #[test]
    fn compiled_operators_are_found_again_by_everything_that_they_depend_on() {
        use crate::operator::CompileOptions;
        let device = Device::cpu();
        let of = |count| Lowered::Sequence(LoweredSequence::packed(TensorDataType::Int32, count, 1, 2));
        let compile = |lowered, options| device.compile_lowered(&lowered, options).expect("right");
        let (any, aligned) = (CompileOptions::default(), CompileOptions { pointer_alignment: 16, in_place: None });
        let first = compile(of(5), any);
        assert!(first.is_clone_of(&compile(of(5), any)));
        assert!(!first.is_clone_of(&compile(of(5), aligned)) && !first.is_clone_of(&compile(of(6), any)));
        // Kept while it is asked for; gone after two generations of others.
        for count in 1000..6000 {
            compile(of(count), any);
            if count % 500 == 0 {
                assert!(first.is_clone_of(&compile(of(5), any)));
            }
        }
        (6000..9000).for_each(|count| drop(compile(of(count), any)));
        assert!(!first.is_clone_of(&compile(of(5), any)));
    }
}
