//! Reversals of tensors of other libraries.

use super::foreign::{size_of, units_of, ForeignTensor, ReversalArrays};
use super::lowering_error::LoweringError;
use crate::desc::{BufferTensorDesc, ReverseSubsequencesDesc, TensorDataType, TensorRole, MAX_DIMENSIONS};

/// A reversal with as few dimensions as possible. Each element becomes one or more unsigned integers of 1 to 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoweredReversal {
    /// The dimensions are the last ones of these arrays; zeros before them.
    sizes: [u32; MAX_DIMENSIONS],
    /// Of the input, the lengths and the output.
    strides: [[u32; MAX_DIMENSIONS]; 3],
    /// Indices of the outermost dimension and of the axis.
    first: usize,
    axis: usize,
    data_type: TensorDataType,
    length_type: TensorDataType,
}

impl LoweredReversal {
    /// Elements move as the largest integers that the addresses, the strides and the element size allow. A size of 0 is
    /// accepted here, but the descriptor is then invalid.
    ///
    /// ```
    /// use dml_cuda::lowering::{ForeignTensor, LoweredReversal, ReversalArrays};
    /// use dml_cuda::{Address, TensorDataType};
    ///
    /// // [batch, time, 2, 3] complex64, a length for each batch.
    /// let input = ForeignTensor::packed(Address(0), &[5, 7, 2, 3]);
    /// let lengths = ForeignTensor::packed(Address(0), &[5, 1, 1, 1]);
    /// let length_type = TensorDataType::UInt32;
    /// let arrays = ReversalArrays { input, lengths, output: input, axis: 1, element_size: 8, length_type };
    /// let lowered = LoweredReversal::new(&arrays)?;
    /// assert_eq!(lowered.desc().input_tensor.sizes, [5, 7, 6]);
    /// assert_eq!(lowered.desc().sequence_lengths_tensor.strides.as_deref(), Some(&[1, 0, 0][..]));
    /// # Ok::<(), dml_cuda::lowering::LoweringError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LoweringError`]: the axis, sizes, strides or the element's size do not fit, the output has other sizes, the
    /// lengths have a type of less than a byte, or the tensor needs more than 8 dimensions.
    pub fn new(arrays: &ReversalArrays<'_>) -> Result<Self, LoweringError> {
        use TensorRole::{Input, Output, SequenceLengths};
        let ReversalArrays { input, lengths, output, axis, element_size, length_type } = *arrays;
        let rank = input.sizes.len();
        input.check(Input)?;
        lengths.check(SequenceLengths)?;
        output.check(Output)?;
        for (d, &size) in input.sizes.iter().enumerate() {
            size_of(Input, d, size)?;
        }
        if output.sizes != input.sizes {
            return Err(LoweringError::Output { found: output.sizes.to_vec(), required: input.sizes.to_vec() });
        }
        let from_front = if axis < 0 { axis + rank as i64 } else { axis };
        if !(0..rank as i64).contains(&from_front) {
            return Err(LoweringError::Axis { found: axis, rank });
        }
        let axis = from_front as usize;
        let missing = missing_dimensions(&input, &lengths, axis)?;
        let length_width = i64::from(length_type.size_in_bits() / 8);
        if length_width == 0 {
            return Err(LoweringError::LengthType { found: length_type });
        }

        let mut bits = element_size as u64 | input.address.0 | output.address.0 | 8;
        for strides in [input.strides_in_bytes, output.strides_in_bytes].into_iter().flatten() {
            let moving = strides.iter().zip(input.sizes).filter(|(_, &size)| size > 1);
            bits |= moving.fold(0, |bits, (&stride, _)| bits | stride as u64);
        }
        let unit = 1 << bits.trailing_zeros();
        let (width, most) = (element_size as i64, u64::from(u32::MAX) << bits.trailing_zeros());
        if !(1..=most).contains(&(element_size as u64)) {
            return Err(LoweringError::ElementSize { found: element_size, most });
        }
        let data_type = match unit {
            1 => TensorDataType::UInt8,
            2 => TensorDataType::UInt16,
            4 => TensorDataType::UInt32,
            _ => TensorDataType::UInt64,
        };
        let (sizes, strides) = ([0; MAX_DIMENSIONS], [[0; MAX_DIMENSIONS]; 3]);
        let mut lowered = Self { sizes, strides, first: MAX_DIMENSIONS, axis: MAX_DIMENSIONS, data_type, length_type };
        let fold = || LoweringError::Fold { shape: input.sizes.to_vec() };

        // From the innermost dimension out: the units of an element, then the tensors' dimensions.
        lowered.add((width / unit) as u32, [1, 0, 1], false).ok_or_else(fold)?;
        for d in (0..rank).rev() {
            let size = size_of(Input, d, input.sizes[d])?;
            let of_lengths = match d.checked_sub(missing) {
                Some(k) if lengths.sizes[k] != 1 => {
                    units_of(SequenceLengths, k, lengths.stride(k, length_width), length_width)?
                }
                _ => 0,
            };
            let mut strides = [0, of_lengths, 0];
            if size != 1 {
                strides[0] = units_of(Input, d, input.stride(d, width), unit)?;
                strides[2] = units_of(Output, d, output.stride(d, width), unit)?;
            }
            lowered.add(size, strides, d == axis).ok_or_else(fold)?;
        }
        Ok(lowered)
    }

    /// Adds a dimension outside of the others, or merges it with the outermost, if it continues that one in every
    /// tensor. Drops a size of 1, but for the axis. `None` if there are too many.
    fn add(&mut self, size: u32, strides: [u32; 3], is_axis: bool) -> Option<()> {
        if size == 1 && !is_axis {
            return Some(());
        }
        if self.first < MAX_DIMENSIONS && self.first != self.axis && !is_axis {
            let inner = self.sizes[self.first];
            let follows = |(of, stride): (&[u32; MAX_DIMENSIONS], u32)| {
                u64::from(of[self.first]) * u64::from(inner) == u64::from(stride)
            };
            let continues = self.strides.iter().zip(strides).all(follows);
            if let (true, Some(joined)) = (continues, inner.checked_mul(size)) {
                self.sizes[self.first] = joined;
                return Some(());
            }
        }
        self.first = self.first.checked_sub(1)?;
        self.sizes[self.first] = size;
        self.strides.iter_mut().zip(strides).for_each(|(of, stride)| of[self.first] = stride);
        if is_axis {
            self.axis = self.first;
        }
        Some(())
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
        let [of_input, of_lengths, of_output] = &self.strides;
        ReverseSubsequencesDesc {
            input_tensor: tensor(self.data_type, &self.sizes, of_input),
            sequence_lengths_tensor: tensor(self.length_type, &length_sizes, of_lengths),
            output_tensor: tensor(self.data_type, &self.sizes, of_output),
            axis: (self.axis - self.first) as u32,
        }
    }
}

/// How many of the input's dimensions the lengths do not have, which broadcast to its lanes.
fn missing_dimensions(
    input: &ForeignTensor<'_>,
    lengths: &ForeignTensor<'_>,
    axis: usize,
) -> Result<usize, LoweringError> {
    let of_lanes = |d: usize| if d == axis { 1 } else { input.sizes[d] };
    let rank = input.sizes.len();
    let broadcasts =
        |missing: &usize| lengths.sizes.iter().zip(*missing..).all(|(&found, d)| found == 1 || found == of_lanes(d));
    rank.checked_sub(lengths.sizes.len()).filter(broadcasts).ok_or_else(|| {
        let required = (0..rank).map(of_lanes).collect();
        LoweringError::Lengths { found: lengths.sizes.to_vec(), required }
    })
}
