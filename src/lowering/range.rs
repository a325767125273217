//! How many elements a range has: ONNX's Range.

/// The number of elements in `start`, `start + delta`, … below `limit` (above it if delta is negative). Counts like
/// ONNX's Range in ONNX Runtime 1.32.
///
/// # Errors
///
/// [`RangeError`]: delta is 0, the count is not finite, or it is 2³² or more.
pub fn range_count([start, limit, delta]: [f64; 3]) -> Result<u32, RangeError> {
    if delta == 0.0 {
        return Err(RangeError::Delta);
    }
    let count = ((limit - start) / delta).ceil();
    if !count.is_finite() {
        return Err(RangeError::NotFinite {
            start,
            limit,
            delta,
        });
    }
    as_count(count.max(0.0) as u128)
}

/// The number of elements of ONNX's Range of integers, exactly.
///
/// # Errors
///
/// [`RangeError`]: delta is 0, or the count is 2³² or more.
pub fn integer_range_count([start, limit, delta]: [i64; 3]) -> Result<u32, RangeError> {
    if delta == 0 {
        return Err(RangeError::Delta);
    }
    let distance = (i128::from(limit) - i128::from(start)) * i128::from(delta.signum());
    as_count(
        distance
            .max(0)
            .unsigned_abs()
            .div_ceil(delta.unsigned_abs().into()),
    )
}

fn as_count(found: u128) -> Result<u32, RangeError> {
    u32::try_from(found).map_err(|_| RangeError::Count { found })
}

/// Why a range has no valid number of elements.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// The delta is 0.
    #[error("delta is 0, but must be another number")]
    Delta,
    /// A scalar is infinite or not a number.
    #[error("start is {start}, limit {limit} and delta {delta}, but must give a finite number of elements")]
    NotFinite {
        /// The first element.
        start: f64,
        /// The end of the range.
        limit: f64,
        /// The distance between neighbours.
        delta: f64,
    },
    /// Too many elements.
    #[error("the output has {found} elements, but must have fewer than 2³²")]
    Count {
        /// The number of elements.
        found: u128,
    },
}

impl PartialEq for RangeError {
    /// Compares what they say: NaN is equal to NaN, and −0 is not 0.
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for RangeError {}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            integer_range_count([i64::MIN, i64::MAX, 1]),
            Err(RangeError::Count {
                found: u64::MAX.into()
            })
        );
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
        let infinite = range_count([0.0, f64::INFINITY, 1.0])
            .expect_err("refused")
            .to_string();
        assert_eq!(
            infinite,
            "start is 0, limit inf and delta 1, but must give a finite number of elements"
        );
        for range in [
            [f64::NAN, 1.0, 1.0],
            [0.0, f64::INFINITY, f64::INFINITY],
            [0.0, 1.0, f64::NAN],
        ] {
            assert!(
                matches!(range_count(range), Err(RangeError::NotFinite { .. })),
                "{range:?}"
            );
        }
        assert!(matches!(
            range_count([0.0, 1e300, 1.0]),
            Err(RangeError::Count { .. })
        ));
        assert_ne!(
            integer_range_count([0, 1, 0]),
            Err(RangeError::Count { found: 0 })
        );
    }
}
