//! A second, slow and simple model of validation and of both operators. It transcribes DirectML's rules and shares no
//! code with the library.

use dml_cuda::{
    BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc, TensorDataType,
    TensorFlags,
};

use super::exact;
use TensorDataType::*;

/// The data types of fills.
pub const FILL: &[TensorDataType] = &[
    Float32, Float16, Int64, Int32, Int16, Int8, UInt64, UInt32, UInt16, UInt8,
];

/// Whether the library must accept a descriptor at the highest feature level.
pub fn accepts(desc: &OperatorDesc) -> bool {
    const REVERSE: &[TensorDataType] = &[
        Float64, Float32, Float16, Int64, Int32, Int16, Int8, UInt64, UInt32, UInt16, UInt8,
    ];
    match desc {
        OperatorDesc::FillValueSequence(d) => {
            tensor(&d.output_tensor, FILL, true) && d.value_data_type == d.output_tensor.data_type
        }
        OperatorDesc::ReverseSubsequences(d) => {
            let (input, lengths, output) = (
                &d.input_tensor,
                &d.sequence_lengths_tensor,
                &d.output_tensor,
            );
            let mut with_one = input.sizes.clone();
            if d.axis as usize >= with_one.len() {
                return false;
            }
            with_one[d.axis as usize] = 1;
            tensor(input, REVERSE, false)
                && tensor(lengths, &[UInt32, UInt64], false)
                && tensor(output, REVERSE, true)
                && lengths.sizes == with_one
                && output.sizes == input.sizes
                && output.data_type == input.data_type
        }
        #[allow(unreachable_patterns)] // in the library's unit tests
        _ => panic!("{desc:?} has no oracle"),
    }
}

fn tensor(t: &BufferTensorDesc, types: &[TensorDataType], output: bool) -> bool {
    const MAX: u128 = (1 << 32) - 1;
    if !types.contains(&t.data_type) || !(1..=8).contains(&t.sizes.len()) || t.sizes.contains(&0) {
        return false;
    }
    let width = width(t) as u128;
    let mut elements = 1u128;
    for &size in &t.sizes {
        elements = elements.saturating_mul(u128::from(size));
    }
    let span = match &t.strides {
        None => elements,
        Some(strides) if strides.len() != t.sizes.len() => return false,
        Some(strides) => {
            1 + t
                .sizes
                .iter()
                .zip(strides)
                .map(|(&n, &s)| u128::from(n - 1) * u128::from(s))
                .sum::<u128>()
        }
    };
    if elements > MAX {
        return false;
    }
    let total = u128::from(t.total_tensor_size_in_bytes);
    if total > MAX * width || total < (span * width).div_ceil(4) * 4 {
        return false;
    }
    let alignment = t.guaranteed_base_offset_alignment;
    if alignment != 0 && (alignment < 16 || alignment & (alignment - 1) != 0) {
        return false;
    }
    if !output {
        return true;
    }
    t.flags == TensorFlags::None && (t.strides.is_none() || !overlaps(t, elements))
}

/// Marks every element, so only for small tensors.
fn overlaps(t: &BufferTensorDesc, elements: u128) -> bool {
    assert!(
        elements < 1 << 24,
        "the oracle walks every element of {t:?}"
    );
    let mut seen = std::collections::HashSet::new();
    coordinates(&t.sizes).any(|coordinate| !seen.insert(offset(t, &coordinate)))
}

/// Bytes of an element.
pub fn width(t: &BufferTensorDesc) -> usize {
    (t.data_type.size_in_bits() / 8) as usize
}

/// Every coordinate of at most 8 dimensions, in row-major order. What is past the dimensions is 0.
fn coordinates(sizes: &[u32]) -> impl Iterator<Item = [u32; 8]> + '_ {
    let count: u64 = sizes.iter().map(|&size| u64::from(size)).product();
    (0..count).map(move |mut n| {
        let mut coordinate = [0; 8];
        for d in (0..sizes.len()).rev() {
            coordinate[d] = (n % u64::from(sizes[d])) as u32;
            n /= u64::from(sizes[d]);
        }
        coordinate
    })
}

/// The element at a coordinate, counted from the tensor's first.
pub fn offset(t: &BufferTensorDesc, coordinate: &[u32]) -> usize {
    let mut stride = 1;
    let mut offset = 0;
    for d in (0..t.sizes.len()).rev() {
        let this = t
            .strides
            .as_ref()
            .map_or(stride, |strides| strides[d] as usize);
        offset += coordinate[d] as usize * this;
        stride *= t.sizes[d] as usize;
    }
    offset
}

/// Writes the required bytes into the output tensor, and leaves the others as they were.
pub fn fill(desc: &FillValueSequenceDesc, out: &mut [u8]) {
    let t = &desc.output_tensor;
    let (start, delta) = (desc.value_start.to_bits(), desc.value_delta.to_bits());
    for (i, coordinate) in coordinates(&t.sizes).enumerate() {
        let bits = match t.data_type {
            TensorDataType::Float32 => {
                u64::from(exact::fill_f32(i as u32, start as u32, delta as u32))
            }
            TensorDataType::Float16 => {
                u64::from(exact::fill_f16(i as u32, start as u16, delta as u16))
            }
            // Uses the C library, which rounds once. The values that the tests spell out do not come from here.
            TensorDataType::Float64 => (i as f64)
                .mul_add(f64::from_bits(delta), f64::from_bits(start))
                .to_bits(),
            _ => (i128::from(start) + i as i128 * i128::from(delta)) as u64,
        };
        let at = offset(t, &coordinate) * width(t);
        out[at..at + width(t)].copy_from_slice(&bits.to_le_bytes()[..width(t)]);
    }
}

/// Writes the required bytes into the output tensor, and leaves the others as they were. In place, `input` is a copy of
/// `out`.
pub fn reverse(desc: &ReverseSubsequencesDesc, input: &[u8], lengths: &[u8], out: &mut [u8]) {
    let (from, of, to) = (
        &desc.input_tensor,
        &desc.sequence_lengths_tensor,
        &desc.output_tensor,
    );
    let (axis, element) = (desc.axis as usize, width(from));
    let size = u128::from(from.sizes[axis]);
    for coordinate in coordinates(&from.sizes) {
        let mut lane = coordinate;
        lane[axis] = 0;
        let at = offset(of, &lane) * width(of);
        let bytes = lengths[at..at + width(of)].iter().rev();
        let length = bytes
            .fold(0u128, |length, &byte| length << 8 | u128::from(byte))
            .min(size);
        let t = u128::from(coordinate[axis]);
        let mut source = coordinate;
        source[axis] = if t < length {
            (length - 1 - t) as u32
        } else {
            coordinate[axis]
        };
        let (a, b) = (
            offset(from, &source) * element,
            offset(to, &coordinate) * element,
        );
        out[b..b + element].copy_from_slice(&input[a..a + element]);
    }
}

/// The bytes that a run must leave in the output tensor, which begins as poison or, in place, as the input.
pub fn expected(desc: &OperatorDesc, inputs: &[&[u8]], in_place: bool) -> Vec<u8> {
    let total = desc.output_tensor().total_tensor_size_in_bytes as usize;
    let mut out = vec![super::POISON; total];
    match desc {
        OperatorDesc::FillValueSequence(desc) => fill(desc, &mut out),
        OperatorDesc::ReverseSubsequences(desc) => {
            if in_place {
                out[..inputs[0].len()].copy_from_slice(inputs[0]);
            }
            reverse(desc, inputs[0], inputs[1], &mut out);
        }
        #[allow(unreachable_patterns)] // in the library's unit tests
        _ => panic!("{desc:?} has no oracle"),
    }
    out
}
