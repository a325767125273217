//! Initial values: bytes of a file or an array, or how to compute them.
//!
//! A resource may be larger than the memory of the host, if a GPU has room for it. So only parts of computed values are in
//! memory at a time:
//!
//! ```text
//! valueStart 0, valueDelta 1, valueCount 1 000 000 000
//! part 0: 0, 1, 2, …      part 1: goes on where part 0 ended      …
//! ```

use dml_cuda::TensorDataType;
use half::f16;

use crate::value::truncated;

/// Bytes of a part.
const PART: u64 = 1 << 20;

/// The values of a resource, in memory or as a rule.
pub enum Values {
    /// The bytes of all elements, little endian.
    Bytes(Vec<u8>),
    /// `count` elements, by their bits: each is the first one, or the one before it plus `delta`.
    Computed {
        data_type: TensorDataType,
        first: u64,
        delta: Option<u64>,
        count: u64,
    },
}

impl Values {
    /// In bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Computed {
                data_type, count, ..
            } => u64::from(data_type.size_in_bits() / 8) * count,
        }
    }

    /// Hands all bytes to `write`, part by part.
    pub fn write<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let (data_type, first, delta, count) = match self {
            Self::Bytes(bytes) => return bytes.chunks(PART as usize).try_for_each(write),
            Self::Computed {
                data_type,
                first,
                delta,
                count,
            } => (*data_type, *first, *delta, *count),
        };
        let width = (data_type.size_in_bits() / 8) as usize;
        // Elements of a part.
        let most = count.min(PART / width as u64);
        let (mut next, mut done) = (first, 0);
        // A part of one value is the same every time. One that counts up is overwritten.
        let mut part = first.to_le_bytes()[..width].repeat(most as usize);
        while done < count {
            let now = most.min(count - done);
            let part = &mut part[..now as usize * width];
            if let Some(delta) = delta {
                next = count_up(part, data_type, next, delta);
            }
            write(part)?;
            done += now;
        }
        Ok(())
    }
}

/// Fills a part with elements from `next` on. Returns the element after them.
fn count_up(part: &mut [u8], data_type: TensorDataType, mut next: u64, delta: u64) -> u64 {
    let (width, plus) = ((data_type.size_in_bits() / 8) as usize, plus(data_type));
    for element in part.chunks_exact_mut(width) {
        element.copy_from_slice(&next.to_le_bytes()[..width]);
        next = plus(next, delta);
    }
    next
}

/// The sum of two elements in the arithmetic of the type, as in DxDispatch.
fn plus(data_type: TensorDataType) -> fn(u64, u64) -> u64 {
    /// The value of a FLOAT16.
    fn half(bits: u64) -> f32 {
        f16::from_bits(bits as u16).into()
    }
    match data_type {
        TensorDataType::Float16 => |a, b| truncated(half(a) + half(b)).to_bits().into(),
        TensorDataType::Float32 => |a, b| {
            (f32::from_bits(a as u32) + f32::from_bits(b as u32))
                .to_bits()
                .into()
        },
        TensorDataType::Float64 => |a, b| (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        // The low bits of a sum are those of the integers of any width.
        _ => u64::wrapping_add,
    }
}
