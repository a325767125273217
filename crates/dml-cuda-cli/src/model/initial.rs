//! Initial values: bytes of a file or an array, or how to compute them. Only parts of computed values are in memory at a time.

use dml_cuda::TensorDataType;
use half::f16;

use super::value::truncated;

/// Bytes of a part.
const PART: u64 = 4 << 20;

pub enum Values {
    Bytes(Vec<u8>),
    /// The same element `count` times.
    Constant {
        element: Vec<u8>,
        count: u64,
    },
    /// A running sum in the arithmetic of the type, as in DxDispatch.
    Sequence {
        data_type: TensorDataType,
        start: Vec<u8>,
        delta: Vec<u8>,
        count: u64,
    },
}

impl Values {
    /// In bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Constant { element, count } => element.len() as u64 * count,
            Self::Sequence { start, count, .. } => start.len() as u64 * count,
        }
    }

    /// Bytes that are in memory already.
    pub fn held(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.capacity() as u64,
            _ => 0,
        }
    }

    /// Hands all bytes to `write`, part by part.
    pub fn write<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Bytes(bytes) => bytes.chunks(PART as usize).try_for_each(write),
            Self::Constant { element, count } => {
                let width = element.len() as u64;
                let part = element.repeat((PART / width).min(*count) as usize);
                let mut left = width * count;
                while left > 0 {
                    let now = left.min(part.len() as u64);
                    write(&part[..now as usize])?;
                    left -= now;
                }
                Ok(())
            }
            Self::Sequence { data_type, start, delta, count } => {
                let mut next = sums(*data_type, start, delta);
                let mut left = *count;
                let mut part = Vec::new();
                while left > 0 {
                    let now = left.min(PART / start.len() as u64);
                    part.clear();
                    next(now, &mut part);
                    write(&part)?;
                    left -= now;
                }
                Ok(())
            }
        }
    }

    /// All bytes at once.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length() as usize);
        let Ok(()) = self.write(|part| {
            bytes.extend_from_slice(part);
            Ok::<(), std::convert::Infallible>(())
        });
        bytes
    }
}

/// Appends the next elements of a running sum.
type Sums = Box<dyn FnMut(u64, &mut Vec<u8>)>;

fn sums(data_type: TensorDataType, start: &[u8], delta: &[u8]) -> Sums {
    use TensorDataType as T;
    match data_type {
        T::Float16 => added(start, delta, |a: f16, b: f16| truncated(a.to_f32() + b.to_f32())),
        T::Float32 => added(start, delta, |a: f32, b| a + b),
        T::Float64 => added(start, delta, |a: f64, b| a + b),
        T::UInt64 | T::Int64 => added(start, delta, u64::wrapping_add),
        T::UInt32 | T::Int32 => added(start, delta, u32::wrapping_add),
        T::UInt16 | T::Int16 => added(start, delta, u16::wrapping_add),
        // Values have no type of less than a byte.
        T::UInt8 | T::Int8 | T::UInt4 | T::Int4 => added(start, delta, u8::wrapping_add),
    }
}

fn added<N: bytemuck::Pod>(start: &[u8], delta: &[u8], add: fn(N, N) -> N) -> Sums {
    let value = |bytes: &[u8]| bytemuck::pod_read_unaligned::<N>(bytes);
    let (mut sum, delta) = (value(start), value(delta));
    Box::new(move |count, bytes| {
        for _ in 0..count {
            bytes.extend_from_slice(bytemuck::bytes_of(&sum));
            sum = add(sum, delta);
        }
    })
}
