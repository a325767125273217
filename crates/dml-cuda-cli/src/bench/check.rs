//! Whether a case computes what it must: elements of the output at sampled places.

use dml_cuda::{Buffer, BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc};

use super::cases::Case;
use super::repeated::Result;

/// Elements of a reversal that are looked at.
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

/// The byte of an element.
fn place(tensor: &BufferTensorDesc, coordinates: &[u64]) -> u64 {
    let element: u64 = match &tensor.strides {
        Some(strides) => coordinates.iter().zip(strides).map(|(c, &stride)| c * u64::from(stride)).sum(),
        None => coordinates.iter().zip(&tensor.sizes).fold(0, |at, (c, &size)| at * u64::from(size) + c),
    };
    element * width(tensor)
}

/// At the ends, in the middle, and anywhere.
fn reversed(
    desc: &ReverseSubsequencesDesc,
    lengths: &[u32],
    input: impl Fn(u64, usize) -> Result<Vec<u8>>,
) -> Result<Required> {
    let sizes: Vec<u64> = desc.input_tensor.sizes.iter().map(|&size| u64::from(size)).collect();
    let axis = desc.axis as usize;
    let element = |n: u64| {
        let coordinate = |d: usize| match n {
            0 => 0,
            1 => sizes[d] - 1,
            2 => sizes[d] / 2,
            _ => n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(11 * d as u32) % sizes[d],
        };
        let mut coordinates: Vec<u64> = (0..sizes.len()).map(coordinate).collect();
        let to = place(&desc.output_tensor, &coordinates);
        let t = std::mem::take(&mut coordinates[axis]);
        let lane = place(&desc.sequence_lengths_tensor, &coordinates) / width(&desc.sequence_lengths_tensor);
        let length = u64::from(lengths[lane as usize]).min(sizes[axis]);
        coordinates[axis] = if t < length { length - 1 - t } else { t };
        let from = place(&desc.input_tensor, &coordinates);
        Ok((to, input(from, width(&desc.input_tensor) as usize)?))
    };
    (0..PLACES).map(element).collect()
}

/// Integers only: they show that every index is where it belongs, and tests check the arithmetic of floats.
fn filled(desc: &FillValueSequenceDesc) -> Required {
    let tensor = &desc.output_tensor;
    if tensor.data_type.is_float() {
        return Vec::new();
    }
    let count: u64 = tensor.sizes.iter().map(|&size| u64::from(size)).product();
    let element = |n: u64| {
        let mut rest = n;
        let mut coordinates: Vec<u64> = tensor
            .sizes
            .iter()
            .rev()
            .map(|&size| {
                let coordinate = rest % u64::from(size);
                rest /= u64::from(size);
                coordinate
            })
            .collect();
        coordinates.reverse();
        let value = desc.value_start.to_bits().wrapping_add(n.wrapping_mul(desc.value_delta.to_bits()));
        (place(tensor, &coordinates), value.to_le_bytes()[..width(tensor) as usize].to_vec())
    };
    [0, 1, count / 3, count / 2 + 1, count - 1].into_iter().map(element).collect()
}
