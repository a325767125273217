//! Initial values: bytes of a file or an array, or how to compute them. Only parts of computed values are in memory at
//! a time.

use dml_cuda::TensorDataType;
use half::f16;

use super::value::truncated;

/// Bytes of a part.
const PART: usize = 1 << 20;

pub enum Values {
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
            Self::Computed { data_type, count, .. } => u64::from(data_type.size_in_bits() / 8) * count,
        }
    }

    /// Hands all bytes to `write`, part by part.
    pub fn write<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let (data_type, first, delta, count) = match self {
            Self::Bytes(bytes) => return bytes.chunks(PART).try_for_each(write),
            Self::Computed { data_type, first, delta, count } => (*data_type, *first, *delta, *count),
        };
        let (unused, plus) = (8 - (data_type.size_in_bits() / 8) as usize, plus(data_type));
        let (mut part, mut next) = (Vec::with_capacity(PART + 8), first);
        for n in 1..=count {
            // All eight bytes are stored, because a constant number of bytes is faster.
            part.extend_from_slice(&next.to_le_bytes());
            part.truncate(part.len() - unused);
            next = delta.map_or(next, |delta| plus(next, delta));
            if part.len() >= PART || n == count {
                write(&part)?;
                part.clear();
            }
        }
        Ok(())
    }
}

/// The sum of two elements in the arithmetic of the type, as in DxDispatch.
fn plus(data_type: TensorDataType) -> fn(u64, u64) -> u64 {
    fn half(bits: u64) -> f32 {
        f16::from_bits(bits as u16).into()
    }
    match data_type {
        TensorDataType::Float16 => |a, b| truncated(half(a) + half(b)).to_bits().into(),
        TensorDataType::Float32 => |a, b| (f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits().into(),
        TensorDataType::Float64 => |a, b| (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        // The low bits of a sum are those of the integers of any width.
        _ => u64::wrapping_add,
    }
}
