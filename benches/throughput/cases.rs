//! The cases: shapes, layouts and lengths, and the bytes each must move, in 32-byte sectors.

use dml_cuda::{
    BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc, ScalarUnion, TensorDataType,
};

const SECTOR: u64 = 32;

pub struct Case {
    pub name: String,
    pub desc: OperatorDesc,
    /// One for each element of the SequenceLengthsTensor.
    pub lengths: Vec<u32>,
    pub in_place: bool,
    pub floor_bytes: u64,
    /// Bytes that the big tensors begin past a multiple of 256.
    pub misaligned: u64,
}

impl Case {
    pub fn is_fill(&self) -> bool {
        matches!(self.desc, OperatorDesc::FillValueSequence(_))
    }

    pub fn output(&self) -> &BufferTensorDesc {
        match &self.desc {
            OperatorDesc::FillValueSequence(desc) => &desc.output_tensor,
            OperatorDesc::ReverseSubsequences(desc) => &desc.output_tensor,
        }
    }

    pub fn data_type(&self) -> &'static str {
        match self.output().data_type {
            TensorDataType::Float32 => "f32",
            TensorDataType::Float16 => "f16",
            TensorDataType::UInt8 => "u8",
            TensorDataType::UInt16 => "u16",
            TensorDataType::UInt32 => "u32",
            TensorDataType::UInt64 => "u64",
            TensorDataType::Int8 => "i8",
            TensorDataType::Int16 => "i16",
            TensorDataType::Int32 => "i32",
            TensorDataType::Int64 => "i64",
            _ => "f64",
        }
    }

    pub fn mode(&self) -> &'static str {
        if self.is_fill() {
            "fill"
        } else if self.in_place {
            "in place"
        } else {
            "copy"
        }
    }
}

const FILL_TYPES: [TensorDataType; 10] = {
    use TensorDataType::*;
    [Float32, Float16, Int64, Int32, Int16, Int8, UInt64, UInt32, UInt16, UInt8]
};
const WIDTHS: [TensorDataType; 4] =
    [TensorDataType::UInt8, TensorDataType::Float16, TensorDataType::Float32, TensorDataType::Int64];

/// A repeatable generator (splitmix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn fill(name: &str, output_tensor: BufferTensorDesc, floor_bytes: u64) -> Case {
    let (value_start, value_delta) = match output_tensor.data_type {
        TensorDataType::Float32 => (ScalarUnion::Float32(0.5), ScalarUnion::Float32(0.25)),
        TensorDataType::Float16 => (ScalarUnion::UInt16(0x3C01), ScalarUnion::UInt16(0x1401)),
        _ => (ScalarUnion::UInt64(0x0123_4567_89AB_CDEF), ScalarUnion::UInt64(0x9E37_79B9_7F4A_7C15)),
    };
    let value_data_type = output_tensor.data_type;
    let desc = FillValueSequenceDesc { output_tensor, value_data_type, value_start, value_delta };
    Case { name: name.to_owned(), desc: desc.into(), lengths: Vec::new(), in_place: false, floor_bytes, misaligned: 0 }
}

fn width(data_type: TensorDataType) -> u64 {
    u64::from(data_type.size_in_bits() / 8)
}

/// Lanes of a shape [before, axis, behind], with one length for each (before, behind) or each before only.
struct Shape {
    before: u32,
    axis: u32,
    behind: u32,
    length_behind: bool,
}

fn reverse(name: &str, data_type: TensorDataType, shape: &Shape, in_place: bool, misaligned: u64) -> Case {
    let Shape { before, axis, behind, length_behind } = *shape;
    let tensor = BufferTensorDesc::packed(data_type, &[before, axis, behind]);
    let behind_lengths = if length_behind { behind } else { 1 };
    let strides = [behind_lengths, 0, u32::from(length_behind)];
    let mut sequence_lengths_tensor = BufferTensorDesc::strided(TensorDataType::UInt32, &[before, 1, behind], &strides);
    let mut state = u64::from(before) << 32 | u64::from(axis);
    let lengths: Vec<u32> =
        (0..before * behind_lengths).map(|_| (random(&mut state) % (u64::from(axis) + 1)) as u32).collect();
    sequence_lengths_tensor.total_tensor_size_in_bytes = lengths.len() as u64 * 4;
    let desc = ReverseSubsequencesDesc {
        input_tensor: tensor.clone(),
        sequence_lengths_tensor,
        output_tensor: tensor.clone(),
        axis: 1,
    };
    let bytes = tensor.total_tensor_size_in_bytes;
    let floor_bytes =
        lengths.len() as u64 * 4 + if in_place { 2 * touched(shape, data_type, &lengths) } else { 2 * bytes };
    Case { name: name.to_owned(), desc: desc.into(), lengths, in_place, floor_bytes, misaligned }
}

/// Bytes of the sectors that hold an element below its lane's length and not in its middle.
fn touched(shape: &Shape, data_type: TensorDataType, lengths: &[u32]) -> u64 {
    let (axis, behind, width) = (u64::from(shape.axis), u64::from(shape.behind), width(data_type));
    let sectors = |begin: u64, end: u64| if end > begin { end.div_ceil(SECTOR) - begin / SECTOR } else { 0 };
    let moved = |length: u32| if length < 2 { 0 } else { u64::from(length) };
    let sum: u64 = if !shape.length_behind || behind == 1 {
        // A lane, or a block of them, is one run of bytes.
        let run = |(n, &length): (usize, &u32)| {
            let begin = n as u64 * axis * behind * width;
            sectors(begin, begin + moved(length) * behind * width)
        };
        lengths.iter().enumerate().map(run).sum()
    } else {
        // Side by side: a sector of a row is moved where any of its lanes is that long.
        let group = (SECTOR / width).min(behind) as usize;
        lengths.chunks(group).map(|lengths| lengths.iter().map(|&length| moved(length)).max().unwrap_or(0)).sum()
    };
    sum * SECTOR
}

/// Every case; small ones where only the code is to be run.
pub fn all(test: bool) -> Vec<Case> {
    let scale = if test { 64 } else { 1 };
    let mut cases = Vec::new();

    for bytes in [1u64 << 28, 1 << 32] {
        for data_type in FILL_TYPES {
            // The largest one-byte tensor is 4 bytes short of 4 GiB.
            let count = (bytes / scale / width(data_type)).min(u64::from(u32::MAX) - 3) as u32;
            let name = format!("fill packed {} MiB", bytes >> 20);
            cases.push(fill(&name, BufferTensorDesc::packed(data_type, &[count]), u64::from(count) * width(data_type)));
        }
    }
    for bytes in [64, 4096, 1 << 16] {
        let tensor = BufferTensorDesc::packed(TensorDataType::Float32, &[bytes / 4]);
        cases.push(fill(&format!("small fill of {bytes} bytes"), tensor, bytes.into()));
    }
    for data_type in WIDTHS {
        let w = width(data_type) as u32;
        // Rows of 1000 elements, 1024 apart; NHWC in memory with 64 channels, and with 3.
        let rows = (1 << 18) / w / scale as u32;
        let sector_row = (1000 * u64::from(w)).div_ceil(SECTOR) * SECTOR;
        let padded = BufferTensorDesc::strided(data_type, &[rows, 1000], &[1024, 1]);
        cases.push(fill("fill padded rows", padded, u64::from(rows) * sector_row));
        for channels in [64u32, 3] {
            let pixels = (1 << 28) / w / channels / 16 / scale as u32;
            let strides = [pixels * channels, 1, channels];
            let permuted = BufferTensorDesc::strided(data_type, &[16, channels, pixels], &strides);
            let bytes = u64::from(16 * channels * pixels) * u64::from(w);
            cases.push(fill(&format!("fill NHWC {channels}"), permuted, bytes));
        }
    }

    let scale = scale as u32;
    let mut both = |name: &str, data_type, shape: &Shape, misaligned| {
        for in_place in [false, true] {
            cases.push(reverse(name, data_type, shape, in_place, misaligned));
        }
    };
    for data_type in WIDTHS {
        let w = width(data_type) as u32;
        let shape = |before: u32, axis, behind, length_behind| Shape {
            before: before.div_ceil(scale),
            axis,
            behind,
            length_behind,
        };
        both("inner [16384, 8192]", data_type, &shape(16384, 8192, 1, true), 0);
        both("block [64, 2048, 1024]", data_type, &shape(64, 2048, 1024, false), 0);
        both("lanes [64, 512, 4096]", data_type, &shape(64, 512, 4096, true), 0);
        both("tokens [256, 4096]", data_type, &shape(256, 4096, 1, true), 0);
        for axis in [7, 31, 100, 1000, 4097] {
            both(&format!("inner odd [*, {axis}]"), data_type, &shape((1 << 26) / w / axis, axis, 1, true), 0);
        }
        for behind in [3, 5, 33] {
            both(
                &format!("block odd [*, 512, {behind}]"),
                data_type,
                &shape((1 << 26) / w / 512 / behind, 512, behind, false),
                0,
            );
        }
        both("inner misaligned [8192, 8192]", data_type, &shape(8192, 8192, 1, true), u64::from(w));
        both("block misaligned [64, 1024, 1024]", data_type, &shape(64, 1024, 1024, false), u64::from(w));
        both(
            "one lane of 2^28",
            data_type,
            &Shape { before: 1, axis: (1 << 28) / scale, behind: 1, length_behind: true },
            0,
        );
        both("2^26 lanes of 4", data_type, &shape(1 << 26, 4, 1, true), 0);
        both("small [16, 256]", data_type, &shape(16, 256, 1, true), 0);
    }
    cases
}
