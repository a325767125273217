//! Reversals of tensors of other libraries.
//!
//! Lowering checks shapes and the axis, broadcasts the lengths, and folds dimensions from the innermost one on, so that
//! most tensors of more than 8 dimensions fit a descriptor. The elements become unsigned integers, the largest that
//! divide everything:
//!
//! ```text
//! complex64 [5, 7, 2, 3], axis 1      ->      UINT64 [5, 7, 6], axis 1
//! lengths   [5, 1, 1, 1]              ->             [5, 1, 6] with strides [1, 0, 0]
//! ```
//!
//! The result is small and hashable: it is the key of the cache of operators.

use super::foreign::{size_of, units_of, ReversalArrays};
use super::lengths::passed_as;
use crate::desc::layout::{join, StridedDimension};
use crate::desc::{
    BufferTensorDesc, ReverseSubsequencesDesc, TensorDataType, TensorRole, MAX_DIMENSIONS,
};
use crate::error::LoweringError;

/// A reversal with as few dimensions as possible. Each element becomes one unsigned integer of 1 to 8 bytes, or several of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoweredReversal {
    /// Innermost first, with the strides of the input, the lengths and the output. Zeros behind the last.
    dimensions: [StridedDimension<3>; MAX_DIMENSIONS],
    rank: usize,
    /// Index of the axis in `dimensions`.
    axis: usize,
    data_type: TensorDataType,
    length_type: TensorDataType,
}

impl LoweredReversal {
    /// Lowers a reversal of arrays. Elements move as the largest integers that the addresses, the strides and the element
    /// size allow. A size of 0 is accepted here, but the descriptor is then invalid.
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
        let no_axis = MAX_DIMENSIONS;
        let mut lowered = Self {
            dimensions: [StridedDimension::new(0, [0; 3]); MAX_DIMENSIONS],
            rank: 0,
            axis: no_axis,
            data_type,
            length_type,
        };
        let units = (arrays.element_size as i64 / unit) as u32;
        lowered.fold(StridedDimension::new(units, [1, 0, 1]), false);
        for d in (0..arrays.input.sizes.len()).rev() {
            let dimension = dimension(arrays, d, missing, unit)?;
            if !lowered.fold(dimension, d == axis) {
                return Err(LoweringError::Fold {
                    shape: arrays.input.sizes.to_vec(),
                });
            }
        }
        Ok(lowered)
    }

    /// Adds a dimension outside of the others, or joins it with the outermost one. Drops a size of 1. The axis is
    /// neither joined nor dropped. Returns false if there are too many dimensions.
    fn fold(&mut self, dimension: StridedDimension<3>, is_axis: bool) -> bool {
        if dimension.size == 1 && !is_axis {
            return true;
        }
        if !is_axis && self.rank > 0 && self.rank - 1 != self.axis {
            let outermost = &mut self.dimensions[self.rank - 1];
            if let Some(joined) = join(dimension, *outermost) {
                *outermost = joined;
                return true;
            }
        }
        let Some(place) = self.dimensions.get_mut(self.rank) else {
            return false;
        };
        *place = dimension;
        if is_axis {
            self.axis = self.rank;
        }
        self.rank += 1;
        true
    }

    /// The size of the axis.
    pub fn axis_size(&self) -> u32 {
        self.dimensions[self.axis].size
    }

    /// The operator's descriptor.
    pub fn desc(&self) -> ReverseSubsequencesDesc {
        let mut sizes = Vec::with_capacity(self.rank);
        let mut strides = [const { Vec::new() }; 3];
        for dimension in self.dimensions[..self.rank].iter().rev() {
            sizes.push(dimension.size);
            for (of_tensor, stride) in strides.iter_mut().zip(dimension.strides) {
                of_tensor.push(stride);
            }
        }
        let [input, lengths, output] = &strides;
        let axis = self.rank - 1 - self.axis;
        let mut length_sizes = sizes.clone();
        length_sizes[axis] = 1;
        ReverseSubsequencesDesc {
            input_tensor: BufferTensorDesc::strided(self.data_type, &sizes, input),
            sequence_lengths_tensor: BufferTensorDesc::strided(
                self.length_type,
                &length_sizes,
                lengths,
            ),
            output_tensor: BufferTensorDesc::strided(self.data_type, &sizes, output),
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
    let mut required = input.sizes.to_vec();
    required[axis] = 1;
    let missing = missing_dimensions(lengths.sizes, &required).ok_or_else(|| {
        let found = lengths.sizes.to_vec();
        LoweringError::Lengths { found, required }
    })?;
    Ok((axis, missing))
}

/// The number of `required`'s first dimensions that the lengths do not have. `None` if the lengths do not broadcast.
fn missing_dimensions(found: &[i64], required: &[i64]) -> Option<usize> {
    let missing = required.len().checked_sub(found.len())?;
    for (&size, &required) in found.iter().zip(&required[missing..]) {
        if size != 1 && size != required {
            return None;
        }
    }
    Some(missing)
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
    // A power of two divides numbers if it divides their bits together. The 8 is the largest unit.
    let mut bits = 8 | element_size as u64 | input.address.0 | output.address.0;
    for tensor in [input, output] {
        let strides = tensor.strides_in_bytes.unwrap_or_default();
        for (&stride, &size) in strides.iter().zip(input.sizes) {
            if size > 1 {
                bits |= stride as u64;
            }
        }
    }
    let unit = 1u64 << bits.trailing_zeros();
    let most = u64::from(u32::MAX) * unit;
    if !(1..=most).contains(&(element_size as u64)) {
        return Err(LoweringError::ElementSize {
            found: element_size,
            most,
        });
    }
    Ok(unit as i64)
}

/// Dimension `d`, with the strides of the input and the output in units, and that of the lengths in lengths. Strides are
/// 0 where they have no meaning.
fn dimension(
    arrays: &ReversalArrays<'_>,
    d: usize,
    missing: usize,
    unit: i64,
) -> Result<StridedDimension<3>, LoweringError> {
    let ReversalArrays {
        input,
        lengths,
        output,
        element_size,
        length_type,
        ..
    } = *arrays;
    let width = element_size as i64;
    let length_width = i64::from(length_type.size_in_bits() / 8);
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
        return Ok(StridedDimension::new(size, [0, lengths_stride, 0]));
    }
    let input_stride = units_of(TensorRole::Input, d, input.stride(d, width), unit)?;
    let output_stride = units_of(TensorRole::Output, d, output.stride(d, width), unit)?;
    let strides = [input_stride, lengths_stride, output_stride];
    Ok(StridedDimension::new(size, strides))
}
