//! Whether a case computes what it must: elements of the output at sampled places.

use dml_cuda::{Buffer, BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc};

use super::cases::Case;
use super::repeated::Result;

/// Elements that are looked at.
const PLACES: u64 = 64;

/// A byte of the output, and the element that must begin there.
type Required = Vec<(u64, Vec<u8>)>;

/// Dispatches once more on these buffers, and compares elements of the output. In place both buffers are one.
pub fn check(
    case: &Case,
    lengths: &[u32],
    input: &Buffer,
    output: &Buffer,
    dispatch: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let read = |buffer: &Buffer, at: u64, width: usize| -> Result<Vec<u8>> {
        let mut bytes = vec![0; width];
        buffer.read(case.misaligned + at, &mut bytes)?;
        Ok(bytes)
    };
    let required = match &case.desc {
        OperatorDesc::ReverseSubsequences(desc) => reversed(desc, lengths, |at, width| read(input, at, width))?,
        OperatorDesc::FillValueSequence(desc) => filled(desc),
        desc => return Err(format!("{} has no check", desc.operator_type().name()).into()),
    };
    // What an earlier dispatch left there proves nothing.
    for (at, element) in required.iter().filter(|_| !case.in_place) {
        let other: Vec<u8> = element.iter().map(|byte| !byte).collect();
        output.write(case.misaligned + at, &other)?;
    }
    dispatch()?;
    for (at, element) in required {
        let found = read(output, at, element.len())?;
        if found != element {
            let number = |bytes: &[u8]| bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
            let (found, required) = (number(&found), number(&element));
            return Err(format!("the element at byte {at} of the output is 0x{found}, must be 0x{required}").into());
        }
    }
    Ok(())
}

fn width(desc: &BufferTensorDesc) -> u64 {
    u64::from(desc.data_type.size_in_bits() / 8)
}

/// Coordinates of elements: at the ends, in the middle, and anywhere.
fn sampled(tensor: &BufferTensorDesc) -> impl Iterator<Item = (u64, Vec<u64>)> + '_ {
    let count: u64 = tensor.sizes.iter().map(|&size| u64::from(size)).product();
    (0..PLACES).map(move |place| {
        let n = match place {
            0 => 0,
            1 => count - 1,
            2 => count / 2,
            _ => place.wrapping_mul(0x9E37_79B9_7F4A_7C15) % count,
        };
        let mut rest = count;
        let coordinate = |&size: &u32| {
            rest /= u64::from(size);
            n / rest % u64::from(size)
        };
        (n, tensor.sizes.iter().map(coordinate).collect())
    })
}

/// The byte of an element.
fn place(tensor: &BufferTensorDesc, coordinates: &[u64]) -> u64 {
    let element: u64 = match &tensor.strides {
        Some(strides) => coordinates.iter().zip(strides).map(|(c, &stride)| c * u64::from(stride)).sum(),
        None => coordinates.iter().zip(&tensor.sizes).fold(0, |at, (c, &size)| at * u64::from(size) + c),
    };
    element * width(tensor)
}

fn reversed(
    desc: &ReverseSubsequencesDesc,
    lengths: &[u32],
    input: impl Fn(u64, usize) -> Result<Vec<u8>>,
) -> Result<Required> {
    let axis = desc.axis as usize;
    let element = |(_, mut coordinates): (u64, Vec<u64>)| {
        let to = place(&desc.output_tensor, &coordinates);
        let t = std::mem::take(&mut coordinates[axis]);
        let lane = place(&desc.sequence_lengths_tensor, &coordinates) / width(&desc.sequence_lengths_tensor);
        let length = u64::from(lengths[lane as usize].min(desc.input_tensor.sizes[axis]));
        coordinates[axis] = if t < length { length - 1 - t } else { t };
        let from = place(&desc.input_tensor, &coordinates);
        Ok((to, input(from, width(&desc.input_tensor) as usize)?))
    };
    sampled(&desc.input_tensor).map(element).collect()
}

/// Integers only: they show that every index is where it belongs, and tests check the arithmetic of floats.
fn filled(desc: &FillValueSequenceDesc) -> Required {
    let tensor = &desc.output_tensor;
    if tensor.data_type.is_float() {
        return Vec::new();
    }
    let element = |(n, coordinates): (u64, Vec<u64>)| {
        let value = desc.value_start.to_bits().wrapping_add(n.wrapping_mul(desc.value_delta.to_bits()));
        (place(tensor, &coordinates), value.to_le_bytes()[..width(tensor) as usize].to_vec())
    };
    sampled(tensor).map(element).collect()
}
