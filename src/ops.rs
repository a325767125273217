//! Short paths: one call that creates, compiles, binds and runs. They add nothing else. For repeated work, compile once
//! and dispatch many times.

use crate::desc::{
    BufferTensorDesc, Delta, Element, FillValueSequenceDesc, Length, ReverseSubsequencesDesc,
    SequenceElement, TensorDataType,
};
use crate::device::buffer::Buffer;
use crate::device::compile::Dispatches;
use crate::device::operator::Operator;
use crate::device::Device;
use crate::dispatch::binding::BufferBinding;
use crate::error::Error;

/// A new packed tensor with those sizes, whose element i is `start + i·delta`.
///
/// ```
/// use dml_cuda::{fill_value_sequence, Device};
/// let countdown = fill_value_sequence(&Device::cpu(), &[1, 1, 1, 4], 10u8, -2i8)?;
/// assert_eq!(countdown, [10, 8, 6, 4]);
/// # Ok::<(), dml_cuda::Error>(())
/// ```
///
/// DirectML has no FLOAT64 sequences:
///
/// ```compile_fail,E0277
/// let doubles = dml_cuda::fill_value_sequence(&dml_cuda::Device::cpu(), &[4], 0f64, 1f64);
/// ```
pub fn fill_value_sequence<T: SequenceElement>(
    device: &Device,
    sizes: &[u32],
    start: T,
    delta: impl Delta<T>,
) -> Result<Vec<T>, Error> {
    let operator = device.create_operator(FillValueSequenceDesc {
        output_tensor: BufferTensorDesc::packed(T::DATA_TYPE, sizes),
        value_data_type: T::DATA_TYPE,
        value_start: start.into(),
        value_delta: delta.into(),
    })?;
    let output =
        device.create_buffer(operator.desc().output_tensor().total_tensor_size_in_bytes)?;
    run(device, &operator, &[], &output)?;
    Ok(output.read_elements(sizes.iter().map(|&size| size as usize).product())?)
}

/// Reverses the first `length` elements of every sequence of a packed tensor along `axis`.
///
/// `lengths` is a packed tensor with the same sizes, but 1 at `axis`, of any type of integers. A length above the size
/// of the axis acts as that. A negative one is an error.
///
/// ```
/// use dml_cuda::{reverse_subsequences, Device};
/// let input = [1, 2, 3, 4, 5, 6, 7, 8];
/// let output = reverse_subsequences(&Device::cpu(), &input, &[2, 4], 1, &[3u32, 2])?;
/// assert_eq!(output, [3, 2, 1, 4, 6, 5, 7, 8]);
/// # Ok::<(), dml_cuda::Error>(())
/// ```
pub fn reverse_subsequences<T: Element, L: Length>(
    device: &Device,
    input: &[T],
    sizes: &[u32],
    axis: u32,
    lengths: &[L],
) -> Result<Vec<T>, Error> {
    let mut length_sizes = sizes.to_vec();
    if let Some(size) = length_sizes.get_mut(axis as usize) {
        *size = 1;
    }
    let operator = device.create_operator(ReverseSubsequencesDesc {
        input_tensor: BufferTensorDesc::packed(T::DATA_TYPE, sizes),
        sequence_lengths_tensor: BufferTensorDesc::packed(TensorDataType::UInt32, &length_sizes),
        output_tensor: BufferTensorDesc::packed(T::DATA_TYPE, sizes),
        axis,
    })?;
    for ((tensor, desc), found) in operator.tensors().zip([input.len(), lengths.len()]) {
        let required = desc.sizes.iter().map(|&size| u64::from(size)).product();
        if found as u64 != required {
            return Err(Error::SliceLength {
                tensor,
                found,
                required,
            });
        }
    }
    let as_u32 = |(index, &length): (usize, &L)| match TryInto::<u64>::try_into(length) {
        Ok(length) => Ok(length.try_into().unwrap_or(u32::MAX)),
        Err(_) => Err(Error::NegativeLength {
            index,
            found: length.to_string(),
        }),
    };
    let lengths: Vec<u32> = lengths
        .iter()
        .enumerate()
        .map(as_u32)
        .collect::<Result<_, _>>()?;
    let buffer = device.create_buffer_from(input)?;
    let lengths = device.create_buffer_from(&lengths)?;
    run(device, &operator, &[&buffer, &lengths], &buffer)?;
    Ok(buffer.read_elements(input.len())?)
}

fn run(
    device: &Device,
    operator: &Operator,
    inputs: &[&Buffer],
    output: &Buffer,
) -> Result<(), Error> {
    let in_place = inputs.first().is_some_and(|input| input.same_as(output));
    let operator = device.compile_for(
        operator,
        device.compile_options(),
        Dispatches::of_buffers(in_place),
    )?;
    let inputs: Vec<BufferBinding> = inputs.iter().map(|&buffer| buffer.into()).collect();
    let stream = device.create_stream()?;
    operator.bind(&inputs, output)?.dispatch(&stream)?;
    Ok(stream.synchronize()?)
}
