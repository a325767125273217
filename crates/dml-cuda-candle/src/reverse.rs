//! The reversal as candle's custom operators.

use candle_core::backend::BackendStorage;
use candle_core::shape::Dim;
#[cfg(feature = "cuda")]
use candle_core::CudaStorage;
use candle_core::{bail, CpuStorage, CustomOp2, InplaceOp2, Layout, Result, Shape, Tensor};
use dml_cuda::lowering::{ForeignTensor, Lowered, LoweredReversal, ReversalArrays};
use dml_cuda::Address;

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{candle_error, cpu, in_bytes, length_type, View};

/// The operator of [`reverse_subsequences`], for `Tensor::apply_op2` and `Tensor::inplace_op2`: the first tensor is
/// reversed along this axis, the second has its shape with 1 there, or one that NumPy broadcasts to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReverseSubsequences {
    /// The dimension along which sequences lie.
    pub axis: usize,
}

/// Reverses the first `length` elements of every sequence of x along `axis`, and copies the rest, into a new contiguous
/// tensor on x's device. The gradient with respect to x is that of the result, reversed by the same lengths.
///
/// - `x`: any shape with a dimension or more, any strides, of U8, I16, I32, I64, U32, F8E4M3, F16, BF16, F32 or F64.
/// - `lengths`: U32, I32 or I64, of x's shape with 1 at the axis or broadcastable to it, on x's device. A length above
///   the axis size counts as it. A negative one is an error on the CPU; on a GPU, where no call may read it, it counts
///   as the axis size.
///
/// ```
/// use candle_core::{Device, Tensor};
///
/// let x = Tensor::new(&[[1u8, 2, 3, 4], [5, 6, 7, 8]], &Device::Cpu)?;
/// let lengths = Tensor::new(&[[3u32], [2]], &Device::Cpu)?;
/// let reversed = dml_cuda_candle::reverse_subsequences(&x, &lengths, 1)?;
/// assert_eq!(reversed.to_vec2::<u8>()?, [[3, 2, 1, 4], [6, 5, 7, 8]]);
/// # Ok::<(), candle_core::Error>(())
/// ```
///
/// # Errors
///
/// An axis that x does not have, lengths of another type or shape, tensors on two devices, more than 8 dimensions that
/// do not fold, and those of the driver. Nothing is queued then.
pub fn reverse_subsequences(x: &Tensor, lengths: &Tensor, axis: impl Dim) -> Result<Tensor> {
    let axis = axis.to_index(x.shape(), "reverse_subsequences")?;
    x.apply_op2(lengths, ReverseSubsequences { axis })
}

/// Reverses in place as [`reverse_subsequences`] does. Every tensor that shares x's memory changes. x must not be
/// broadcast.
///
/// ```
/// use candle_core::{Device, Tensor};
///
/// let x = Tensor::new(&[1f32, 2., 3.], &Device::Cpu)?;
/// dml_cuda_candle::reverse_subsequences_inplace(&x, &Tensor::new(&[2u32], &Device::Cpu)?, 0)?;
/// assert_eq!(x.to_vec1::<f32>()?, [2., 1., 3.]);
/// # Ok::<(), candle_core::Error>(())
/// ```
///
/// # Errors
///
/// The errors of [`reverse_subsequences`]; an x whose elements overlap, an x that backpropagation tracks, and lengths
/// in x's memory.
pub fn reverse_subsequences_inplace(x: &Tensor, lengths: &Tensor, axis: impl Dim) -> Result<()> {
    let axis = axis.to_index(x.shape(), "reverse_subsequences")?;
    if x.track_op() {
        bail!("x is tracked by backpropagation, which would not see the change: use reverse_subsequences");
    }
    if x.elem_count() == 0 {
        // candle takes dimensions inside one of size 0 for broadcast, and refuses them in place.
        return x.apply_op2(lengths, ReverseSubsequences { axis }).map(drop);
    }
    x.inplace_op2(lengths, &ReverseSubsequences { axis })
}

impl ReverseSubsequences {
    /// In place, or into a contiguous tensor. `None` if x has no elements.
    fn lower<S: BackendStorage>(
        &self,
        x: View<S>,
        lengths: View<S>,
        in_place: bool,
    ) -> Result<Option<Lowered>> {
        let width = x.0.dtype().size_in_bytes();
        let length_type = length_type(lengths.0.dtype())?;
        let (sizes, strides) = in_bytes(x.1, width);
        let (length_sizes, length_strides) = in_bytes(lengths.1, lengths.0.dtype().size_in_bytes());
        // candle's memory is aligned to its elements.
        let tensor = |sizes, strides_in_bytes| ForeignTensor {
            address: Address(0),
            sizes,
            strides_in_bytes,
        };
        let arrays = ReversalArrays {
            input: tensor(&sizes, Some(&strides)),
            lengths: tensor(&length_sizes, Some(&length_strides)),
            output: tensor(&sizes, in_place.then_some(&*strides)),
            axis: i64::try_from(self.axis).unwrap_or(i64::MAX),
            element_size: width,
            length_type,
        };
        let reversal = LoweredReversal::new(&arrays).map_err(candle_error)?;
        Ok((x.1.shape().elem_count() > 0).then_some(Lowered::Reversal(reversal)))
    }
}

impl CustomOp2 for ReverseSubsequences {
    fn name(&self) -> &'static str {
        "reverse_subsequences"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        lengths: &CpuStorage,
        lengths_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (view, lengths) = ((x, x_layout), (lengths, lengths_layout));
        let reversal = self.lower(view, lengths, false)?;
        let output = reversal.map_or_else(
            || x.try_clone(x_layout),
            |of| cpu::reverse(&of, view, lengths),
        );
        Ok((output?, x_layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        x_layout: &Layout,
        lengths: &CudaStorage,
        lengths_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let (view, lengths) = ((x, x_layout), (lengths, lengths_layout));
        let reversal = self.lower(view, lengths, false)?;
        let output = reversal.map_or_else(
            || x.try_clone(x_layout),
            |of| cuda::reverse(&of, view, lengths),
        );
        Ok((output?, x_layout.shape().clone()))
    }

    /// A reversal is its own transpose.
    fn bwd(
        &self,
        _: &Tensor,
        lengths: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok((Some(gradient.apply_op2(lengths, *self)?), None))
    }
}

impl InplaceOp2 for ReverseSubsequences {
    fn name(&self) -> &'static str {
        "reverse_subsequences_inplace"
    }

    fn cpu_fwd(
        &self,
        x: &mut CpuStorage,
        x_layout: &Layout,
        lengths: &CpuStorage,
        lengths_layout: &Layout,
    ) -> Result<()> {
        let lengths = (lengths, lengths_layout);
        let reversal = self.lower((&*x, x_layout), lengths, true)?;
        reversal.map_or(Ok(()), |of| {
            cpu::reverse_in_place(&of, (x, x_layout), lengths)
        })
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &mut CudaStorage,
        x_layout: &Layout,
        lengths: &CudaStorage,
        lengths_layout: &Layout,
    ) -> Result<()> {
        let lengths = (lengths, lengths_layout);
        let reversal = self.lower((&*x, x_layout), lengths, true)?;
        reversal.map_or(Ok(()), |of| {
            cuda::reverse_in_place(&of, (x, x_layout), lengths)
        })
    }
}
