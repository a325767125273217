//! A reversal of tensors.

use std::mem::ManuallyDrop;

use dml_cuda::lowering::{LoweringError, Names, ReversalArrays};
use dml_cuda::TensorRole::{Input, Output, SequenceLengths};
use dml_cuda::{Error, RawStream, TensorDataType};

use super::libtorch::{current_stream, Handle, Torch, Value};
use super::tensor::{Description, Tensor, MAX_RANK};
use crate::device::{cpu_device, cuda_device};
use crate::status::{wrong, Failure};

/// Kinds of kernels.
pub const OUT_OF_PLACE: u8 = 0;
pub const IN_PLACE: u8 = 1;
/// Out of place. x is a batch with its time in dimension 0 or 1, and there is a length for each of its sequences.
pub const PADDED: u8 = 2;

/// Runs a kernel of `(Tensor x, Tensor lengths, int dim)`. A failure writes nothing, and leaves nothing on the stack.
///
/// # Safety
///
/// The stack is one that PyTorch passes to a [kernel](super::torch_kernels::kernel).
pub unsafe fn attempt(torch: &Torch, stack: *mut Value, kind: u8) -> Result<(), Failure> {
    // SAFETY: the stack has what the schema names: two tensors, and an int64.
    let (x, lengths, dim) = unsafe {
        let tensor = |at: usize| Tensor {
            torch,
            handle: *stack.add(at) as Handle,
        };
        (tensor(0), tensor(1), *stack.add(2) as i64)
    };
    let mut of_lanes = [1; MAX_RANK];
    let (x, mut lengths) = (x.describe("x")?, lengths.describe("lengths")?);
    if kind == PADDED {
        // The dimension of the batch, which is not the time.
        let batch = usize::from(dim == 0);
        // The 8 dimensions of a descriptor take them as they are, so that nothing is reversed on copies.
        if !(2..=8).contains(&x.sizes.len()) || lengths.sizes != [x.sizes[batch]] {
            return wrong(
                "lengths must have the batch size of x, which must have 2 to 8 dimensions",
            );
        }
        of_lanes[0] = lengths.sizes[0];
        lengths.sizes = &of_lanes[..x.sizes.len() - batch];
    }
    if kind == IN_PLACE {
        if x.tensor.has_gradient() {
            return wrong("x requires a gradient, so it cannot be reversed in place: use reverse_subsequences");
        }
        reverse(&x, &lengths, &x, dim)?;
        x.tensor.bump_version();
        return Ok(());
    }
    let output = Tensor::empty_like(&x)?;
    reverse(&x, &lengths, &output.describe("the result")?, dim)?;
    // SAFETY: the stack has place for the schema's result, which PyTorch then owns.
    unsafe { stack.write(ManuallyDrop::new(output).handle as Value) };
    Ok(())
}

/// Reverses x into the output. Dimensions that do not fold into those of a descriptor are reversed on copies.
fn reverse(
    x: &Description,
    lengths: &Description,
    output: &Description,
    dim: i64,
) -> Result<(), Failure> {
    check_places(x, lengths)?;
    let on_cpu = x.device_type == x.tensor.torch.on_cpu;
    let of_output = if output.address == x.address {
        "x"
    } else {
        "the result"
    };
    let roles = [
        (Input, "x"),
        (SequenceLengths, "lengths"),
        (Output, of_output),
    ];
    let names = Names::new("dim", &roles).with_attributes();
    let failure = |error: Error| Failure::of(error, &names);
    let length_type = type_of_lengths(lengths).map_err(|error| failure(error.into()))?;
    let arrays = ReversalArrays {
        input: x.foreign(),
        lengths: lengths.foreign(),
        output: output.foreign(),
        axis: dim,
        element_size: x.width,
        length_type,
    };
    let (device, stream) = if on_cpu || x.sizes.contains(&0) {
        (cpu_device()?, RawStream::NULL) // without elements, only the arguments are checked
    } else {
        (
            cuda_device(x.device_index as usize)?,
            current_stream(x.device_index)?,
        )
    };
    // SAFETY: these are live tensors in memory of the device. Until the work on PyTorch's current stream is done,
    // PyTorch's allocator gives their memory to work of that stream only. Kernels stay loaded, because a device of
    // `cuda_device` is never closed.
    match unsafe { device.reverse_arrays(&arrays, stream) } {
        Err(Error::Lowering(LoweringError::Fold { .. })) => {
            if on_cpu {
                // SAFETY: PyTorch's tensor on the host has integers of this type, and no one writes them now.
                unsafe { arrays.lengths.check_lengths(length_type, None) }
                    .map_err(|error| failure(error.into()))?;
            }
            reverse_on_copies(x, lengths, output, dim)
        }
        done => done.map_err(failure),
    }
}

/// Checks that x and the lengths are on one device.
fn check_places(x: &Description, lengths: &Description) -> Result<(), Failure> {
    let torch = x.tensor.torch;
    // A CPU has no index, or any.
    let same_index = x.device_index == lengths.device_index || x.device_type == torch.on_cpu;
    if x.device_type == lengths.device_type && same_index {
        return Ok(());
    }
    let [found, required] = [lengths, x].map(|tensor| place(torch, tensor));
    wrong(format!(
        "lengths is on {found}, but must be on {required}, as x"
    ))
}

/// The type of lengths, of PyTorch's dtypes for them.
fn type_of_lengths(lengths: &Description) -> Result<TensorDataType, LoweringError> {
    for &(dtype, length_type) in &lengths.tensor.torch.lengths {
        if dtype == lengths.dtype {
            return Ok(length_type);
        }
    }
    Err(LoweringError::ForeignLengthType {
        found: format!("PyTorch's dtype number {}", lengths.dtype),
    })
}

/// Reverses packed copies of x and of the lengths, broadcast to the lanes, and copies the result to the output. Packed
/// tensors fold into three dimensions.
fn reverse_on_copies(
    x: &Description,
    lengths: &Description,
    output: &Description,
    dim: i64,
) -> Result<(), Failure> {
    let mut lanes = x.sizes.to_vec();
    let rank = lanes.len() as i64;
    lanes[(if dim < 0 { dim + rank } else { dim }) as usize] = 1; // lowering has checked it
    let (copy, lengths) = (
        Tensor::packed(x, x.sizes)?,
        Tensor::packed(lengths, &lanes)?,
    );
    let of_copy = copy.describe("x")?;
    reverse(&of_copy, &lengths.describe("lengths")?, &of_copy, dim)?;
    output.tensor.copy(&copy)
}

/// PyTorch's name for the device of a tensor.
fn place(torch: &Torch, tensor: &Description<'_>) -> String {
    match (tensor.device_type, tensor.device_index) {
        (on, _) if on == torch.on_cpu => "cpu".to_owned(),
        (on, index) if on == torch.on_cuda => format!("cuda:{index}"),
        (other, index) => format!("the device {index} of PyTorch's type number {other}"),
    }
}
