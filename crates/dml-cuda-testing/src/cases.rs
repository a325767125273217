//! The case table: descriptors around every edge case, with the inputs to run them on. All test runners use this table.

use dml_cuda::{
    BufferTensorDesc, OperatorDesc, ReverseSubsequencesDesc, ScalarUnion, TensorDataType,
};
use TensorDataType as T;

use super::{oracle, Random};

pub struct Case {
    pub desc: OperatorDesc,
    /// Bytes of the input tensors.
    pub inputs: Vec<Vec<u8>>,
    pub in_place: bool,
}

impl Case {
    pub fn inputs(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }

    pub fn expected(&self) -> Vec<u8> {
        oracle::expected(&self.desc, &self.inputs(), self.in_place)
    }
}

/// One type of each width: reversing moves bits, whatever they mean.
const WIDTHS: [T; 4] = [T::UInt8, T::Float16, T::Float32, T::Float64];

/// Element counts around a vector, a warp, a thread block, a page, and a thread block's worth of vectors.
const COUNTS: [u32; 24] = [
    1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 127, 128, 129, 255, 257, 1023, 4095, 4096, 4097,
    65537, 100_003,
];

/// Sizes and strides of outputs, in every order of dimensions and with every kind of gap.
const LAYOUTS: &[(&[u32], Option<&[u32]>)] = &[
    (&[2, 3, 4, 5], None),
    (&[5, 4], Some(&[1, 5])),                      // columns
    (&[5, 4], Some(&[1, 7])),                      // columns with gaps
    (&[6, 100], Some(&[128, 1])),                  // padded rows, aligned
    (&[6, 100], Some(&[101, 1])),                  // padded rows, unaligned
    (&[7, 1000], Some(&[1003, 1])),                // long rows
    (&[2, 3, 40, 50], Some(&[6000, 1, 150, 3])),   // NHWC in memory
    (&[2, 40, 50, 3], Some(&[6000, 50, 1, 2000])), // NCHW in memory
    (&[20, 600], Some(&[1202, 2])), // every second element, in runs that the CPU fills in parts
    (&[2, 2, 2], Some(&[3, 5, 7])), // dimensions that are not nested
    (&[3, 4, 5], Some(&[1, 3, 12])), // reversed order
    (&[1, 9, 1, 65, 1], Some(&[0, 70, 3, 1, 9])), // dimensions of size 1 may have any stride
    (
        &[2, 2, 2, 2, 2, 2, 2, 2],
        Some(&[1, 2, 4, 8, 16, 32, 64, 128]),
    ),
    (&[3, 2, 3, 2, 3, 2, 3, 5], None),
];

/// Shapes and their axis: contiguous lanes, blocks, interleaved lanes; odd and even sizes everywhere.
const SHAPES: &[(&[u32], u32)] = &[
    (&[1], 0),
    (&[2], 0),
    (&[100_003], 0),
    (&[5, 1], 1),
    (&[301, 2], 1),
    (&[300, 4], 1),
    (&[203, 8], 1),
    (&[101, 16], 1),
    (&[1000, 7], 1),
    (&[33, 31], 1),
    (&[3, 32], 1),
    (&[5, 100], 1),
    (&[9, 1000], 1),
    (&[3, 4097], 1),
    (&[2, 4096], 1),
    (&[2, 7, 16], 1),
    (&[3, 31, 33], 1),
    (&[2, 100, 5], 1),
    (&[4, 17, 3], 1),
    (&[2, 64, 64], 1),
    (&[129, 40], 0),
    (&[7, 1, 12], 1),
    (&[2, 3, 8, 3, 8], 2),
    (&[3, 2, 3, 2, 3, 2, 3, 2], 4),
    // Long lanes in several tiles; interleaved lanes in strips of every width; blocks of odd rows.
    (&[2, 20_000], 1),
    (&[3, 20, 100], 1),
    (&[2, 40, 256], 1),
    (&[2, 700, 64], 1),
    (&[1, 3000, 36], 1),
    (&[2, 12, 130], 1),
    (&[1, 9000, 8], 1),
    // Blocks in several tiles, of whole rows or of parts of one; few interleaved lanes, and more in unaligned rows.
    (&[1, 600, 37], 1),
    (&[1, 3, 8201], 1),
    (&[40, 50, 3], 1),
    (&[2, 60, 131], 1),
    // Small blocks, which the CPU moves as elements, alone and side by side.
    (&[50, 2, 2], 1),
    (&[9, 30, 6], 1),
    (&[5, 70, 7], 1),
    (&[2, 40, 70, 3], 1),
    (&[3, 5, 40, 5], 1),
    // Rows around 16 bytes, of blocks that are staged whole, and of blocks in tiles.
    (&[3, 40, 15], 1),
    (&[2, 41, 17], 1),
    (&[1, 3001, 17], 1),
];

fn fill(tensor: BufferTensorDesc, (start, delta): (ScalarUnion, ScalarUnion)) -> Case {
    let mut desc = super::fill(tensor.data_type, &[1], start, delta);
    desc.output_tensor = tensor;
    Case {
        desc: desc.into(),
        inputs: Vec::new(),
        in_place: false,
    }
}

fn tensor(data_type: T, sizes: &[u32], strides: Option<&[u32]>) -> BufferTensorDesc {
    match strides {
        Some(strides) => BufferTensorDesc::strided(data_type, sizes, strides),
        None => BufferTensorDesc::packed(data_type, sizes),
    }
}

/// Scalars that reveal a wrong width, sign, rounding or index.
fn scalars(data_type: T) -> (ScalarUnion, ScalarUnion) {
    match data_type {
        T::Float32 => (ScalarUnion::Float32(0.1), ScalarUnion::Float32(1.0e-3)),
        T::Float16 => (
            ScalarUnion::Float16(half::f16::from_f32(-3.0)),
            ScalarUnion::Float16(half::f16::from_f32(0.0117)),
        ),
        T::UInt8 | T::UInt16 => (ScalarUnion::Int64(10), ScalarUnion::Int64(-2)),
        _ => (
            ScalarUnion::UInt64(0x8123_4567_89AB_CDEF),
            ScalarUnion::UInt64(0xFEDC_BA98_7654_3211),
        ),
    }
}

/// Every fill.
pub fn fills() -> Vec<Case> {
    let mut cases = Vec::new();
    for &data_type in oracle::FILL {
        let scalars = scalars(data_type);
        cases.extend(COUNTS.map(|count| fill(tensor(data_type, &[count], None), scalars)));
        for &(sizes, strides) in LAYOUTS {
            let mut padded = tensor(data_type, sizes, strides);
            cases.push(fill(padded.clone(), scalars));
            padded.total_tensor_size_in_bytes += 37;
            padded.guaranteed_base_offset_alignment = 256;
            cases.push(fill(padded, scalars));
        }
    }
    cases
}

/// FLOAT64 sequences, which `FeatureLevel::Extended` adds.
pub fn float64_sequences() -> Vec<Case> {
    let scalars = (ScalarUnion::Float64(-0.7), ScalarUnion::Float64(0.1));
    COUNTS
        .map(|count| fill(tensor(T::Float64, &[count], None), scalars))
        .into()
}

/// Bytes of an operator's inputs.
pub fn inputs(random: &mut Random, desc: &OperatorDesc) -> Vec<Vec<u8>> {
    match desc {
        OperatorDesc::FillValueSequence(_) => Vec::new(),
        OperatorDesc::ReverseSubsequences(desc) => {
            let input = random.bytes(desc.input_tensor.total_tensor_size_in_bytes as usize);
            let axis_size = desc.input_tensor.sizes[desc.axis as usize];
            vec![
                input,
                lengths(random, &desc.sequence_lengths_tensor, axis_size),
            ]
        }
        #[allow(unreachable_patterns)] // in the library's unit tests
        _ => panic!("{desc:?} has no inputs here"),
    }
}

/// Lengths of every kind: 0, 1, the axis size, near it, above it, past 32 bits, random.
fn lengths(random: &mut Random, desc: &BufferTensorDesc, axis_size: u32) -> Vec<u8> {
    let (axis, wide) = (u64::from(axis_size), desc.data_type == T::UInt64);
    let width = oracle::width(desc);
    let count = desc.total_tensor_size_in_bytes as usize / width;
    let mut bytes: Vec<u8> = (0..count)
        .flat_map(|n| {
            let length = match random.below(12) + u64::from(n == 0) {
                0 => 0,
                1 => 1,
                2 => axis,
                3 => axis - 1,
                4 => axis + 1,
                5 => u64::MAX,
                6 if wide => 1 << 32, // its low 32 bits are 0
                7 if wide => (1 << 40) + random.below(axis), // its low 32 bits are below the axis size
                _ => random.below(axis + 1),
            };
            length.to_le_bytes()[..width].to_vec()
        })
        .collect();
    bytes.resize(desc.total_tensor_size_in_bytes as usize, 0xEE);
    bytes
}

/// Every reversal, out of place and in place.
pub fn reversals() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |input: &BufferTensorDesc,
                   lengths: &BufferTensorDesc,
                   output: &BufferTensorDesc,
                   axis: u32,
                   in_place: bool| {
        let [input_tensor, sequence_lengths_tensor, output_tensor] =
            [input, lengths, output].map(Clone::clone);
        let desc = ReverseSubsequencesDesc {
            input_tensor,
            sequence_lengths_tensor,
            output_tensor,
            axis,
        }
        .into();
        let seed = cases.len() as u64 + 1;
        cases.push(Case {
            inputs: inputs(&mut Random(seed), &desc),
            desc,
            in_place,
        });
    };
    for data_type in WIDTHS {
        for &(sizes, axis) in SHAPES {
            let mut one = sizes.to_vec();
            one[axis as usize] = 1;
            let strided = |strides: &[u32]| BufferTensorDesc::strided(data_type, sizes, strides);
            // One tensor: packed, column-major, padded after every dimension, and with all lanes in one memory.
            let packed = &BufferTensorDesc::packed(data_type, sizes);
            let columns = &strided(&column_strides(sizes));
            let padded = |pad: u32| strided(&padded_strides(sizes, pad));
            let mut one_lane = vec![0; sizes.len()];
            one_lane[axis as usize] = 1;
            for (length_type, in_place) in [
                (T::UInt32, false),
                (T::UInt64, false),
                (T::UInt32, true),
                (T::UInt64, true),
            ] {
                let lengths = &BufferTensorDesc::packed(length_type, &one);
                add(packed, lengths, packed, axis, in_place);
                // One length for everything inside the axis.
                let before_axis = nested_strides(&one, (0..axis as usize).rev(), || 0);
                let broadcast = &BufferTensorDesc::strided(length_type, &one, &before_axis);
                add(packed, broadcast, packed, axis, in_place);
                // One length for each row of the last dimension.
                if (axis as usize) + 2 < sizes.len() {
                    let mut row_strides =
                        padded_strides(&[&one[..one.len() - 1], &[1]].concat(), 0);
                    row_strides[sizes.len() - 1] = 0;
                    add(
                        packed,
                        &BufferTensorDesc::strided(length_type, &one, &row_strides),
                        packed,
                        axis,
                        in_place,
                    );
                }
                add(&padded(1), lengths, &padded(1), axis, in_place);
                add(&padded(4), broadcast, &padded(4), axis, in_place);
                if !in_place {
                    add(&padded(2), broadcast, packed, axis, false);
                    add(packed, lengths, &padded(3), axis, false);
                    add(columns, lengths, packed, axis, false);
                    add(packed, lengths, columns, axis, false);
                    add(&strided(&one_lane), lengths, packed, axis, false);
                }
            }
        }
        // An axis of one element, in front of rows in the order of the output's strides, and behind them.
        for (sizes, axis) in [([9, 64, 1], 2), ([9, 1, 64], 1)] {
            let packed = BufferTensorDesc::packed(data_type, &sizes);
            let strides = sizes.map(|size| match size {
                9 => 200,
                1 => 1,
                _ => 3,
            });
            let mut one = sizes;
            one[axis as usize] = 1;
            let lengths = BufferTensorDesc::packed(T::UInt32, &one);
            add(
                &BufferTensorDesc::strided(data_type, &sizes, &strides),
                &lengths,
                &packed,
                axis,
                false,
            );
        }
        // Transposed, around the kernel's tiles, on each axis, with lengths that vary along some of the other
        // dimensions. In the last shape two dimensions are contiguous together, in the input and in the output.
        for sizes in [&[144, 2, 160][..], &[131, 2, 141], &[36, 4, 4, 40]] {
            for axis in 0..sizes.len() {
                for varies in 1..1 << (sizes.len() - 1) {
                    let mut one = sizes.to_vec();
                    one[axis] = 1;
                    let mut strides = padded_strides(&one, 0);
                    let others = (0..sizes.len()).filter(|&d| d != axis);
                    others
                        .enumerate()
                        .for_each(|(n, d)| strides[d] *= varies >> n & 1);
                    let input = BufferTensorDesc::strided(data_type, sizes, &column_strides(sizes));
                    let lengths = BufferTensorDesc::strided(T::UInt32, &one, &strides);
                    let output = BufferTensorDesc::packed(data_type, sizes);
                    add(&input, &lengths, &output, axis as u32, false);
                    // No two dimensions are contiguous together.
                    if sizes[0] == 144 {
                        let gaps = BufferTensorDesc::strided(
                            data_type,
                            sizes,
                            &nested_strides(sizes, 0..3, || 16),
                        );
                        let padded =
                            BufferTensorDesc::strided(data_type, sizes, &padded_strides(sizes, 16));
                        add(&gaps, &lengths, &padded, axis as u32, false);
                    }
                }
            }
        }
    }
    cases
}

/// Strides of dimensions in this order in memory, each followed by a gap. Other dimensions have strides of 0.
pub fn nested_strides(
    sizes: &[u32],
    from_innermost: impl IntoIterator<Item = usize>,
    mut gap: impl FnMut() -> u32,
) -> Vec<u32> {
    let (mut strides, mut next) = (vec![0; sizes.len()], 1u32);
    for d in from_innermost {
        strides[d] = next;
        next = next.wrapping_mul(sizes[d]).wrapping_add(gap());
    }
    strides
}

fn padded_strides(sizes: &[u32], pad: u32) -> Vec<u32> {
    nested_strides(sizes, (0..sizes.len()).rev(), || pad)
}

fn column_strides(sizes: &[u32]) -> Vec<u32> {
    nested_strides(sizes, 0..sizes.len(), || 0)
}

/// The whole table.
pub fn all() -> Vec<Case> {
    fills().into_iter().chain(reversals()).collect()
}
