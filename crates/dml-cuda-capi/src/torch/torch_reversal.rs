//! A reversal of tensors.

use std::mem::ManuallyDrop;

use dml_cuda::lowering::{LoweringError, Names, ReversalArrays};
use dml_cuda::{Error, RawStream};

use super::layout::MAX_RANK;
use super::libtorch::{current_stream, Handle, Torch, Value};
use super::tensor::{Description, Tensor};
use crate::device::{cpu_device, cuda_device};
use crate::frameworks::Lengths;
use crate::status::{wrong, Failure};

/// Runs a kernel of `(Tensor x, Tensor lengths, int dim)`. A failure writes nothing, and leaves nothing on the stack.
///
/// # Safety
///
/// The stack is one that PyTorch passes to a [kernel](super::torch_kernels::kernel).
pub unsafe fn attempt(torch: &Torch, stack: *mut Value, in_place: bool) -> Result<(), Failure> {
    // SAFETY: the stack has what the schema names: two tensors, and an int64.
    let (x, lengths, dim) = unsafe {
        let tensor = |at: usize| Tensor { torch, handle: *stack.add(at) as Handle };
        (tensor(0), tensor(1), *stack.add(2) as i64)
    };
    let (x_desc, lengths_desc) = (x.describe()?, lengths.describe()?);
    let reversal = Reversal::new(torch, &x_desc, &lengths_desc, dim)?;
    if in_place {
        if x.has_gradient() {
            return wrong("x requires a gradient, so it cannot be reversed in place: use reverse_subsequences");
        }
        reversal.run([&x, &lengths, &x], &x_desc)?;
        x.bump_version();
        return Ok(());
    }
    let output = Tensor::empty_like(torch, &x_desc)?;
    reversal.run([&x, &lengths, &output], &output.describe()?)?;
    // SAFETY: the stack has place for the schema's result, which PyTorch then owns.
    unsafe { stack.write(ManuallyDrop::new(output).handle as Value) };
    Ok(())
}

/// A reversal whose arguments are checked.
struct Reversal<'a> {
    torch: &'a Torch,
    x: &'a Description<'a>,
    lengths: Lengths<'a>,
    dim: i64,
}

impl<'a> Reversal<'a> {
    fn new(torch: &'a Torch, x: &'a Description<'a>, lengths: &'a Description<'a>, dim: i64) -> Result<Self, Failure> {
        let (rank, lengths_rank) = (x.sizes.len(), lengths.sizes.len());
        if rank == 0 || rank > MAX_RANK {
            return wrong(format!("x has {rank} dimensions, must have from 1 to {MAX_RANK}"));
        }
        if lengths_rank > MAX_RANK {
            return wrong(format!("lengths has {lengths_rank} dimensions, must have at most {MAX_RANK}"));
        }
        // A CPU has no index, or any.
        let same_index = x.device_index == lengths.device_index || x.device_type == torch.on_cpu;
        if x.device_type != lengths.device_type || !same_index {
            let [found, required] = [lengths, x].map(|tensor| place(torch, tensor));
            return wrong(format!("lengths is on {found}, must be on {required}, as x"));
        }
        let known = torch.lengths.iter().find(|(dtype, _)| *dtype == lengths.dtype);
        let (known, found) = (known.map(|&(_, of)| of), format_args!("PyTorch's dtype number {}", lengths.dtype));
        let lengths = Lengths::new("lengths", lengths.foreign(), known, found).map_err(Failure::argument)?;
        Ok(Self { torch, x, lengths, dim })
    }

    /// Reverses x into the output. Dimensions that do not fold into those of a descriptor are reversed on copies.
    fn run(&self, tensors: [&Tensor<'_>; 3], output: &Description<'_>) -> Result<(), Failure> {
        let (x, lengths) = (self.x, &self.lengths);
        let arrays = ReversalArrays {
            input: x.foreign(),
            lengths: lengths.tensor,
            output: output.foreign(),
            axis: self.dim,
            element_size: x.width,
            length_type: lengths.passed_as,
        };
        let (device, stream) = if x.device_type != self.torch.on_cpu && !x.sizes.contains(&0) {
            (cuda_device(x.device_index as usize)?, current_stream(x.device_index)?)
        } else {
            (cpu_device()?, RawStream::NULL) // without elements, only the arguments are checked
        };
        if x.device_type == self.torch.on_cpu && !x.sizes.contains(&0) {
            // SAFETY: PyTorch's tensor on the host has integers of this type at these places, and nobody writes them
            // now.
            unsafe { lengths.check(None) }.map_err(Failure::argument)?;
        }
        // SAFETY: these are live tensors in memory of the device. Until the work on PyTorch's current stream is done,
        // PyTorch's allocator gives their memory to work of that stream only. Kernels stay loaded, because a device of
        // `cuda_device` is never closed.
        match unsafe { device.reverse_arrays(&arrays, stream) } {
            Err(Error::Lowering(LoweringError::Fold { .. })) => self.run_on_copies(tensors),
            done => {
                let output = if output.address == x.address { "x" } else { "the result" };
                done.map_err(|error| Failure::of(error, &Names { input: "x", lengths: "lengths", output, axis: "dim" }))
            }
        }
    }

    /// Reverses packed copies of x and of the lengths, broadcast to the lanes, and copies the result to the output.
    /// Packed tensors fold into three dimensions.
    fn run_on_copies(&self, [x, lengths, output]: [&Tensor<'_>; 3]) -> Result<(), Failure> {
        let mut lanes = self.x.sizes.to_vec();
        let rank = lanes.len() as i64;
        lanes[(if self.dim < 0 { self.dim + rank } else { self.dim }) as usize] = 1; // lowering has checked it
        let (x, lengths) = (x.packed(self.x.sizes)?, lengths.packed(&lanes)?);
        let (x_desc, lengths_desc) = (x.describe()?, lengths.describe()?);
        let packed = Reversal::new(self.torch, &x_desc, &lengths_desc, self.dim)?;
        packed.run([&x, &lengths, &x], &x_desc)?;
        output.copy(&x)
    }
}

/// Where a tensor is, in PyTorch's words.
fn place(torch: &Torch, tensor: &Description<'_>) -> String {
    match (tensor.device_type, tensor.device_index) {
        (on, _) if on == torch.on_cpu => "cpu".to_owned(),
        (on, index) if on == torch.on_cuda => format!("cuda:{index}"),
        (other, index) => format!("the device {index} of PyTorch's type number {other}"),
    }
}
