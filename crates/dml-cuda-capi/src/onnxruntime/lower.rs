//! Shapes and lengths of ONNX tensors as descriptors of the crate.

use dml::{BufferTensorDesc, FillValueSequenceDesc, ReverseSubsequencesDesc, ScalarUnion, TensorDataType};

/// The most dimensions of a descriptor.
const MAX: usize = 8;

/// A reversal: the input packed, the lengths where their strides say. Dimensions are folded as far as they go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reversal {
    sizes: [u32; MAX],
    /// In elements; 0 where lengths repeat.
    length_strides: [u32; MAX],
    rank: usize,
    axis: usize,
    /// Bytes of an element.
    width: usize,
    length_type: TensorDataType,
}

impl Reversal {
    /// Of a tensor of that shape along `axis`, with lengths of a shape that NumPy broadcasts to it with 1 at the axis.
    ///
    /// # Errors
    ///
    /// Shapes that do not fit, and those with more dimensions or larger ones than there can be. A dimension of size 0 passes here;
    /// it has no descriptor.
    pub fn new(
        shape: &[i64],
        lengths: &[i64],
        axis: usize,
        width: usize,
        length_type: TensorDataType,
    ) -> Result<Self, String> {
        let mut lowered = Self { sizes: [1; MAX], length_strides: [0; MAX], rank: 0, axis: MAX, width, length_type };
        if lengths.len() > shape.len() {
            let (found, required) = (lengths.len(), shape.len());
            return Err(format!(
                "sequence_lengths has {found} dimensions, must have at most {required}, those of input"
            ));
        }
        let missing = shape.len() - lengths.len();
        // From the innermost dimension out, into the last places; a dimension that continues the one inside it joins it.
        let (mut at, mut stride) = (MAX, 1u64);
        for d in (0..shape.len()).rev() {
            let size = number(shape[d], "a dimension of input")?;
            let expected = if d == axis { 1 } else { size };
            let of_lengths =
                if d < missing { 1 } else { number(lengths[d - missing], "a dimension of sequence_lengths")? };
            if of_lengths != 1 && of_lengths != expected {
                let required = if expected == 1 { "1".to_owned() } else { format!("1 or {expected}") };
                let k = d - missing;
                return Err(format!("dimension {k} of sequence_lengths is {of_lengths}, must be {required}"));
            }
            let length_stride = if of_lengths == 1 { 0 } else { stride };
            stride *= u64::from(of_lengths);
            let length_stride =
                u32::try_from(length_stride).map_err(|_| "sequence_lengths has 2³² elements or more")?;
            if size == 1 && d != axis {
                continue;
            }
            let joins = d != axis
                && at < MAX
                && at != lowered.axis
                && u64::from(lowered.length_strides[at]) * u64::from(lowered.sizes[at]) == u64::from(length_stride);
            if joins {
                let product = u64::from(lowered.sizes[at]) * u64::from(size);
                lowered.sizes[at] = u32::try_from(product).map_err(|_| "input has 2³² elements or more")?;
                continue;
            }
            at = at.checked_sub(1).ok_or("input has more than 8 dimensions that do not join for these lengths")?;
            (lowered.sizes[at], lowered.length_strides[at]) = (size, length_stride);
            if d == axis {
                lowered.axis = at;
            }
        }
        // The axis is a dimension, so that there is one.
        lowered.rank = MAX - at;
        lowered.axis -= at;
        lowered.sizes.rotate_left(at);
        lowered.length_strides.rotate_left(at);
        Ok(lowered)
    }

    /// The same of elements of another width.
    pub fn of_width(self, width: usize) -> Self {
        Self { width, ..self }
    }

    /// The size of the axis.
    pub fn axis_size(&self) -> u32 {
        self.sizes[self.axis]
    }

    pub fn desc(&self) -> Result<ReverseSubsequencesDesc, String> {
        let data_type = match self.width {
            1 => TensorDataType::UInt8,
            2 => TensorDataType::UInt16,
            4 => TensorDataType::UInt32,
            8 => TensorDataType::UInt64,
            width => return Err(format!("elements of {width} bytes, must be 1, 2, 4 or 8")),
        };
        let sizes = &self.sizes[..self.rank];
        let mut length_sizes = self.sizes;
        length_sizes[self.axis] = 1;
        let strides = &self.length_strides[..self.rank];
        let input_tensor = BufferTensorDesc::packed(data_type, sizes);
        Ok(ReverseSubsequencesDesc {
            output_tensor: input_tensor.clone(),
            input_tensor,
            sequence_lengths_tensor: BufferTensorDesc::strided(self.length_type, &length_sizes[..self.rank], strides),
            axis: self.axis as u32,
        })
    }
}

/// A packed sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sequence {
    pub data_type: TensorDataType,
    pub count: u32,
    /// The bits of the two scalars.
    pub start: u64,
    pub delta: u64,
}

impl Sequence {
    pub fn desc(&self) -> FillValueSequenceDesc {
        FillValueSequenceDesc {
            output_tensor: BufferTensorDesc::packed(self.data_type, &[self.count]),
            value_data_type: self.data_type,
            value_start: ScalarUnion::Bytes(self.start.to_le_bytes()),
            value_delta: ScalarUnion::Bytes(self.delta.to_le_bytes()),
        }
    }
}

/// The number of elements of a shape, below 2³².
pub fn element_count(shape: &[i64]) -> Result<u32, String> {
    let count = shape.iter().try_fold(1u64, |count, &size| {
        let size = u64::try_from(size).ok()?;
        count.checked_mul(size)
    });
    let fits = count.and_then(|count| u32::try_from(count).ok());
    fits.ok_or_else(|| format!("the shape is {shape:?}, must have sizes of at least 0 and fewer than 2³² elements"))
}

fn number(size: i64, what: &str) -> Result<u32, String> {
    u32::try_from(size).map_err(|_| format!("{what} is {size}, must be below 2³²"))
}

/// The count of ONNX's Range of start, limit and delta, computed in double as ONNX Runtime 1.32 does.
pub fn range_count([start, limit, delta]: [f64; 3]) -> Result<u32, String> {
    if delta == 0.0 {
        return Err("delta is 0, must be another number".to_owned());
    }
    let count = ((limit - start) / delta).ceil();
    if !count.is_finite() {
        return Err(format!(
            "start is {start}, limit {limit} and delta {delta}, must give a finite number of elements"
        ));
    }
    fewer(count.max(0.0) as u128)
}

/// The same of integers, exactly.
pub fn integer_range_count(start: i64, limit: i64, delta: i64) -> Result<u32, String> {
    if delta == 0 {
        return Err("delta is 0, must be another number".to_owned());
    }
    let (difference, delta) = (i128::from(limit) - i128::from(start), i128::from(delta));
    // Euclid's quotient is rounded down where delta is positive, and up where it is negative.
    let up = delta > 0 && difference.rem_euclid(delta) != 0;
    fewer((difference.div_euclid(delta) + i128::from(up)).max(0) as u128)
}

fn fewer(count: u128) -> Result<u32, String> {
    u32::try_from(count).map_err(|_| format!("the output has {count} elements, must have fewer than 2³²"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_fold_to_outer_axis_and_inner() {
        let lower = |shape: &[i64], lengths: &[i64], axis| {
            Reversal::new(shape, lengths, axis, 4, TensorDataType::UInt64).and_then(|lowered| lowered.desc())
        };
        // ONNX's [T, B, F, G] along time 0, and [B, T, F, G] along time 1.
        let desc = lower(&[5, 3, 7, 2], &[1, 3, 1, 1], 0).expect("right");
        assert_eq!((&desc.input_tensor.sizes[..], desc.axis), (&[5, 3, 14][..], 0));
        assert_eq!(desc.sequence_lengths_tensor.sizes, [1, 3, 14]);
        assert_eq!(desc.sequence_lengths_tensor.strides.as_deref(), Some(&[0, 1, 0][..]));
        assert_eq!(desc.sequence_lengths_tensor.total_tensor_size_in_bytes, 24);
        let desc = lower(&[3, 5, 7, 2], &[3, 1, 1, 1], 1).expect("right");
        assert_eq!((&desc.input_tensor.sizes[..], desc.axis), (&[3, 5, 14][..], 1));
        assert_eq!(desc.sequence_lengths_tensor.strides.as_deref(), Some(&[1, 0, 0][..]));
        // Lengths of every lane; a scalar; the axis alone.
        let desc = lower(&[3, 2, 5, 7], &[3, 2, 1, 7], 2).expect("right");
        assert_eq!(desc.input_tensor.sizes, [6, 5, 7]);
        assert_eq!(desc.sequence_lengths_tensor.strides.as_deref(), Some(&[7, 0, 1][..]));
        assert_eq!(
            lower(&[3, 5], &[], 1).expect("right").sequence_lengths_tensor.strides.as_deref(),
            Some(&[0, 0][..])
        );
        assert_eq!(lower(&[5], &[1], 0).expect("right").input_tensor.sizes, [5]);
        assert_eq!(lower(&[1, 1, 1], &[], 1).expect("right").input_tensor.sizes, [1]);
        // Ten dimensions become three.
        let desc = lower(&[2; 10], &[2, 2, 2, 1, 2, 2, 2, 2, 2, 2], 3).expect("right");
        assert_eq!(desc.input_tensor.sizes, [8, 2, 64]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let lower = |shape: &[i64], lengths: &[i64], axis| {
            let lowered = Reversal::new(shape, lengths, axis, 4, TensorDataType::UInt64);
            lowered.err().expect("refused")
        };
        assert_eq!(lower(&[2, 3], &[3, 1], 1), "dimension 0 of sequence_lengths is 3, must be 1 or 2");
        assert_eq!(lower(&[2, 3], &[2, 3], 1), "dimension 1 of sequence_lengths is 3, must be 1");
        assert_eq!(lower(&[2], &[1, 2], 0), "sequence_lengths has 2 dimensions, must have at most 1, those of input");
        assert_eq!(lower(&[1 << 32, 3], &[], 1), "a dimension of input is 4294967296, must be below 2³²");
        let striped: Vec<i64> = (0..20).map(|d| if d % 2 == 0 { 2 } else { 1 }).collect();
        let error = lower(&[2; 20], &striped, 19);
        assert_eq!(error, "input has more than 8 dimensions that do not join for these lengths");
    }

    #[test]
    fn ranges_have_onnxs_counts() {
        let count = |start, limit, delta| integer_range_count(start, limit, delta).expect("right");
        for (start, limit, delta, required) in [
            (0, 10, 3, 4),
            (0, 9, 3, 3),
            (10, 0, -3, 4),
            (9, 0, -3, 3),
            (0, 10, -1, 0),
            (10, 0, 1, 0),
            (5, 5, 1, 0),
            (-7, 8, 5, 3),
            (7, -8, -5, 3),
            (i64::MIN, i64::MAX, i64::MAX, 3),
        ] {
            assert_eq!(count(start, limit, delta), required, "{start} {limit} {delta}");
        }
        assert_eq!(
            integer_range_count(i64::MIN, i64::MAX, 1).expect_err("refused"),
            "the output has 18446744073709551615 elements, must have fewer than 2³²"
        );
        assert_eq!(integer_range_count(0, 1, 0).expect_err("refused"), "delta is 0, must be another number");
        assert_eq!(range_count([0.0, 1.0, -0.0]).expect_err("refused"), "delta is 0, must be another number");
        let three = [-3e38, 3e38, 1e38].map(|scalar: f64| f64::from(scalar as f32));
        for (scalars, required) in [
            ([0.0, 1.0, 0.3], 4),
            ([0.0, -1.0, 0.3], 0),
            (three, 7),
            ([0.0, 1.0, f64::INFINITY], 0),
            ([5.0, 0.0, 1.0], 0),
        ] {
            assert_eq!(range_count(scalars).expect("right"), required, "{scalars:?}");
        }
        assert_eq!(
            range_count([0.0, f64::INFINITY, 1.0]).expect_err("refused"),
            "start is 0, limit inf and delta 1, must give a finite number of elements"
        );
        for scalars in [[f64::NAN, 1.0, 1.0], [0.0, f64::INFINITY, f64::INFINITY], [0.0, 1.0, f64::NAN]] {
            assert!(range_count(scalars).expect_err("refused").ends_with("must give a finite number of elements"));
        }
        assert!(range_count([0.0, 1e300, 1.0]).expect_err("refused").ends_with("must have fewer than 2³²"));
    }
}
