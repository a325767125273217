//! Reversals of tensors of other libraries.

use super::foreign::{size_of, units_of, ReversalArrays};
use super::lengths::passed_as;
use crate::desc::layout::{join, Steps};
use crate::desc::{
    BufferTensorDesc, ReverseSubsequencesDesc, TensorDataType, TensorRole, MAX_DIMENSIONS,
};
use crate::error::LoweringError;

/// A reversal with as few dimensions as possible. Each element becomes one or more unsigned integers of 1 to 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoweredReversal {
    /// Innermost first, with the strides of the input, the lengths and the output. Zeros behind the last.
    dimensions: [Steps<3>; MAX_DIMENSIONS],
    rank: usize,
    /// Index of the axis in `dimensions`.
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
    /// lengths are not integers of 32 or 64 bits, or the tensor needs more than 8 dimensions.
    pub fn new(arrays: &ReversalArrays<'_>) -> Result<Self, LoweringError> {
        let length_type = passed_as(arrays.length_type)?;
        let (axis, missing) = check_shapes(arrays)?;
        let unit = largest_unit(arrays)?;
        let data_type = match unit {
            1 => TensorDataType::UInt8,
            2 => TensorDataType::UInt16,
            4 => TensorDataType::UInt32,
            _ => TensorDataType::UInt64,
        };
        let (dimensions, no_axis) = ([(0, [0; 3]); MAX_DIMENSIONS], MAX_DIMENSIONS);
        let mut lowered = Self {
            dimensions,
            rank: 0,
            axis: no_axis,
            data_type,
            length_type,
        };
        let too_many = || LoweringError::Fold {
            shape: arrays.input.sizes.to_vec(),
        };
        let units_of_element = ((arrays.element_size as i64 / unit) as u32, [1, 0, 1]);
        lowered.fold(units_of_element, false).ok_or_else(too_many)?;
        for d in (0..arrays.input.sizes.len()).rev() {
            lowered
                .fold(dimension(arrays, d, missing, unit)?, d == axis)
                .ok_or_else(too_many)?;
        }
        Ok(lowered)
    }

    /// Adds a dimension outside of the others, or joins it with the outermost one. Drops a size of 1. The axis is
    /// neither joined nor dropped. `None` if there are too many dimensions.
    fn fold(&mut self, dimension: Steps<3>, is_axis: bool) -> Option<()> {
        if dimension.0 == 1 && !is_axis {
            return Some(());
        }
        let outermost = self
            .rank
            .checked_sub(1)
            .filter(|&outermost| !is_axis && outermost != self.axis);
        if let Some(outermost) = outermost.map(|outermost| &mut self.dimensions[outermost]) {
            if let Some(joined) = join(dimension, *outermost) {
                *outermost = joined;
                return Some(());
            }
        }
        *self.dimensions.get_mut(self.rank)? = dimension;
        if is_axis {
            self.axis = self.rank;
        }
        self.rank += 1;
        Some(())
    }

    /// The size of the axis.
    pub fn axis_size(&self) -> u32 {
        self.dimensions[self.axis].0
    }

    /// The operator's descriptor.
    pub fn desc(&self) -> ReverseSubsequencesDesc {
        let outermost_first = || self.dimensions[..self.rank].iter().rev();
        let sizes: Vec<u32> = outermost_first().map(|(size, _)| *size).collect();
        let strides = |tensor: usize| -> Vec<u32> {
            outermost_first()
                .map(|(_, strides)| strides[tensor])
                .collect()
        };
        let axis = self.rank - 1 - self.axis;
        let mut length_sizes = sizes.clone();
        length_sizes[axis] = 1;
        ReverseSubsequencesDesc {
            input_tensor: BufferTensorDesc::strided(self.data_type, &sizes, &strides(0)),
            sequence_lengths_tensor: BufferTensorDesc::strided(
                self.length_type,
                &length_sizes,
                &strides(1),
            ),
            output_tensor: BufferTensorDesc::strided(self.data_type, &sizes, &strides(2)),
            axis: axis as u32,
        }
    }
}

/// Checks shapes. Returns the axis, counted from the front, and how many of the input's dimensions the lengths do not
/// have.
fn check_shapes(arrays: &ReversalArrays<'_>) -> Result<(usize, usize), LoweringError> {
    let ReversalArrays {
        input,
        lengths,
        output,
        axis,
        ..
    } = *arrays;
    let rank = input.sizes.len();
    input.check(TensorRole::Input)?;
    lengths.check(TensorRole::SequenceLengths)?;
    output.check(TensorRole::Output)?;
    for (d, &size) in input.sizes.iter().enumerate() {
        size_of(TensorRole::Input, d, size)?;
    }
    if output.sizes != input.sizes {
        return Err(LoweringError::Output {
            found: output.sizes.to_vec(),
            required: input.sizes.to_vec(),
        });
    }
    let from_front = if axis < 0 { axis + rank as i64 } else { axis };
    if !(0..rank as i64).contains(&from_front) {
        return Err(LoweringError::Axis { found: axis, rank });
    }
    let axis = from_front as usize;
    let lanes = |d: usize| if d == axis { 1 } else { input.sizes[d] };
    let broadcasts = |missing: &usize| {
        lengths
            .sizes
            .iter()
            .zip(*missing..)
            .all(|(&found, d)| found == 1 || found == lanes(d))
    };
    let missing = rank
        .checked_sub(lengths.sizes.len())
        .filter(broadcasts)
        .ok_or_else(|| {
            let required = (0..rank).map(lanes).collect();
            LoweringError::Lengths {
                found: lengths.sizes.to_vec(),
                required,
            }
        })?;
    Ok((axis, missing))
}

/// The bytes of the largest integers, up to 8, as which elements can move: the power of two that divides the element's
/// size, the addresses, and all strides that matter.
fn largest_unit(arrays: &ReversalArrays<'_>) -> Result<i64, LoweringError> {
    let ReversalArrays {
        input,
        output,
        element_size,
        ..
    } = *arrays;
    let strides = [input.strides_in_bytes, output.strides_in_bytes]
        .into_iter()
        .flatten();
    let strides = strides.flat_map(|strides| strides.iter().zip(input.sizes));
    let strides = strides
        .filter(|(_, &size)| size > 1)
        .map(|(&stride, _)| stride as u64);
    let numbers = [element_size as u64, input.address.0, output.address.0]
        .into_iter()
        .chain(strides);
    let unit = 1 << numbers.map(u64::trailing_zeros).fold(3, u32::min);
    let most = u64::from(u32::MAX) * unit;
    if !(1..=most).contains(&(element_size as u64)) {
        return Err(LoweringError::ElementSize {
            found: element_size,
            most,
        });
    }
    Ok(unit as i64)
}

/// Dimension `d` of the input, with the strides of the input and the output in units. Strides are 0 where they have no
/// meaning.
fn dimension(
    arrays: &ReversalArrays<'_>,
    d: usize,
    missing: usize,
    unit: i64,
) -> Result<Steps<3>, LoweringError> {
    let ReversalArrays {
        input,
        lengths,
        output,
        element_size,
        length_type,
        ..
    } = *arrays;
    let (width, length_width) = (
        element_size as i64,
        i64::from(length_type.size_in_bits() / 8),
    );
    let size = size_of(TensorRole::Input, d, input.sizes[d])?;
    let lengths_stride = match d.checked_sub(missing) {
        Some(k) if lengths.sizes[k] != 1 => units_of(
            TensorRole::SequenceLengths,
            k,
            lengths.stride(k, length_width),
            length_width,
        )?,
        _ => 0,
    };
    if size == 1 {
        return Ok((size, [0, lengths_stride, 0]));
    }
    let input_stride = units_of(TensorRole::Input, d, input.stride(d, width), unit)?;
    let output_stride = units_of(TensorRole::Output, d, output.stride(d, width), unit)?;
    Ok((size, [input_stride, lengths_stride, output_stride]))
}
