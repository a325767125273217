//! candle's layouts as descriptors.

use candle_core::{bail, DType, Layout, Result};
use dml::{BufferTensorDesc, CompiledOperator, ReverseSubsequencesDesc, TensorDataType};

use crate::operators;

/// The most dimensions of a descriptor.
const MAX_DIMENSIONS: usize = 8;

/// One dimension, or several that are one in all tensors; strides in elements.
#[derive(Clone, Copy)]
struct Dimension {
    size: usize,
    x: usize,
    lengths: usize,
    is_axis: bool,
}

impl Dimension {
    /// This one and the next inside it as one, where all strides allow it.
    fn join(self, inner: Self) -> Option<Self> {
        let joins = self.x == inner.x * inner.size && self.lengths == inner.lengths * inner.size;
        (joins && !self.is_axis && !inner.is_axis).then(|| Self { size: self.size * inner.size, ..inner })
    }
}

/// A reversal in the crate's terms.
pub struct Reversal(ReverseSubsequencesDesc);

impl Reversal {
    /// Of `x` along `axis`, by lengths of x's shape with 1 there: in place, or into a contiguous tensor. x has elements.
    pub fn new(
        (x, dtype): (&Layout, DType),
        (lengths, length_dtype): (&Layout, DType),
        axis: usize,
        in_place: bool,
    ) -> Result<Self> {
        let (bits, length_type) = (bits(dtype)?, length_type(length_dtype)?);
        let mut dimensions: Vec<Dimension> = Vec::with_capacity(x.dims().len());
        let strides = x.stride().iter().zip(lengths.stride());
        for (d, (&size, (&of_x, &of_lengths))) in x.dims().iter().zip(strides).enumerate() {
            let is_axis = d == axis;
            if size == 1 && !is_axis {
                continue;
            }
            // Along the axis there is one length.
            let inner = Dimension { size, x: of_x, lengths: if is_axis { 0 } else { of_lengths }, is_axis };
            match dimensions.last_mut().and_then(|outer| Some((outer.join(inner)?, outer))) {
                Some((joined, outer)) => *outer = joined,
                None => dimensions.push(inner),
            }
        }
        if dimensions.len() > MAX_DIMENSIONS {
            let (shape, strides) = (x.shape(), x.stride());
            bail!("x has shape {shape:?} and strides {strides:?}, must fold into {MAX_DIMENSIONS} dimensions");
        }
        let numbers = |what: &str, of: fn(&Dimension) -> usize| -> Result<Vec<u32>> {
            let number = |dimension| match u32::try_from(of(dimension)) {
                Ok(number) => Ok(number),
                Err(_) => bail!("{what} is {}, must be below 2³²", of(dimension)),
            };
            dimensions.iter().map(number).collect()
        };
        let sizes = numbers("a dimension of x", |dimension| dimension.size)?;
        let mut length_sizes = sizes.clone();
        let axis = dimensions.iter().position(|dimension| dimension.is_axis).expect("the axis is kept");
        length_sizes[axis] = 1;
        let length_strides = numbers("a stride of lengths", |dimension| dimension.lengths)?;
        let input_tensor = BufferTensorDesc::strided(bits, &sizes, &numbers("a stride of x", |dimension| dimension.x)?);
        Ok(Self(ReverseSubsequencesDesc {
            output_tensor: if in_place { input_tensor.clone() } else { BufferTensorDesc::packed(bits, &sizes) },
            input_tensor,
            sequence_lengths_tensor: BufferTensorDesc::strided(length_type, &length_sizes, &length_strides),
            axis: axis as u32,
        }))
    }

    /// Compiled for the GPU of that ordinal; `None` is the CPU.
    pub fn operator(&self, ordinal: Option<usize>) -> Result<CompiledOperator> {
        operators::reversal(ordinal, &self.0)
    }
}

/// The unsigned integers that move a type's elements.
fn bits(dtype: DType) -> Result<TensorDataType> {
    Ok(match dtype {
        DType::U8 | DType::F8E4M3 => TensorDataType::UInt8,
        DType::I16 | DType::BF16 | DType::F16 => TensorDataType::UInt16,
        DType::U32 | DType::I32 | DType::F32 => TensorDataType::UInt32,
        DType::I64 | DType::F64 => TensorDataType::UInt64,
        _ => bail!("x is {dtype:?}, must have elements of whole bytes that candle moves: u8 to i64, f8e4m3 to f64"),
    })
}

/// The type of lengths. Those of I64 are not below 0, so that they are UINT64, too.
fn length_type(dtype: DType) -> Result<TensorDataType> {
    Ok(match dtype {
        DType::U32 => TensorDataType::UInt32,
        DType::I64 => TensorDataType::UInt64,
        _ => bail!("lengths are {dtype:?}, must be U32 or I64"),
    })
}
