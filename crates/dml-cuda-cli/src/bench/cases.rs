//! The cases: shapes, layouts and lengths, and the bytes each must move, in 32-byte sectors.

use std::{iter, ops::Range};

use dml_cuda::{
    BufferTensorDesc, Device, FillValueSequenceDesc, OperatorDesc, OperatorType, ReverseSubsequencesDesc, ScalarUnion,
    TensorDataType, TensorRole,
};

use super::work::Mode;

const SECTOR: u64 = 32;

pub struct Case {
    pub name: String,
    pub desc: OperatorDesc,
    pub in_place: bool,
    /// Bytes that a fill must move.
    fill_bytes: u64,
    /// Bytes that the big tensors begin past a multiple of 256.
    pub misaligned: u64,
}

impl Case {
    /// One for each element of the SequenceLengthsTensor: random, from 0 to the axis size. Computed anew by each call.
    pub fn lengths(&self) -> Vec<u32> {
        let OperatorDesc::ReverseSubsequences(desc) = &self.desc else { return Vec::new() };
        let sizes = &desc.input_tensor.sizes;
        let axis = u64::from(sizes[desc.axis as usize]);
        let count = desc.sequence_lengths_tensor.total_tensor_size_in_bytes / 4;
        if count == 1 {
            return vec![(axis * 3 / 4) as u32]; // one draw says nothing
        }
        let mut state = u64::from(sizes[0]) << 32 | axis;
        (0..count).map(|_| (random(&mut state) % (axis + 1)) as u32).collect()
    }

    /// The bytes that must move with those lengths, in 32-byte sectors. Copying moves every element, whatever they are.
    pub fn floor_bytes(&self, lengths: &[u32]) -> u64 {
        let OperatorDesc::ReverseSubsequences(desc) = &self.desc else { return self.fill_bytes };
        let all = desc.output_tensor.total_tensor_size_in_bytes;
        let moved = if self.in_place { touched(desc, lengths, self.misaligned) } else { all };
        desc.sequence_lengths_tensor.total_tensor_size_in_bytes + 2 * moved
    }

    pub fn is_fill(&self) -> bool {
        matches!(self.desc, OperatorDesc::FillValueSequence(_))
    }

    /// Whether the innermost dimension has lengths of its own.
    pub fn is_side_by_side(&self) -> bool {
        let OperatorDesc::ReverseSubsequences(desc) = &self.desc else { return false };
        let innermost = desc.input_tensor.sizes.iter().rposition(|&size| size > 1);
        let strides = desc.sequence_lengths_tensor.strides.as_deref().unwrap_or_default();
        innermost.is_some_and(|d| strides[d] > 0)
    }

    pub fn data_type(&self) -> String {
        short_name(self.desc.output_tensor().data_type)
    }

    pub fn mode(&self) -> Mode {
        match (self.is_fill(), self.in_place) {
            (true, _) => Mode::Fill,
            (false, true) => Mode::InPlace,
            (false, false) => Mode::Copy,
        }
    }

    /// `reverse.inner_16384x8192.f32.copy`
    pub fn file_name(&self) -> String {
        let operator = if self.is_fill() { "fill" } else { "reverse" };
        // Commas between sizes, in brackets, become `x`.
        let (words, sizes) = self.name.split_once('[').unwrap_or((&self.name, ""));
        let name = format!("{words} {}", sizes.replace(", ", "x")).replace('*', "n").replace('^', "p");
        let words = name.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let words: Vec<&str> = words.skip_while(|word| *word == operator).collect();
        format!("{operator}.{}.{}.{}", words.join("_"), self.data_type(), self.mode().to_string().replace(' ', "_"))
    }
}

/// `f32`, as runs and file names have it.
pub fn short_name(data_type: TensorDataType) -> String {
    format!("{}{}", data_type.name()[..1].to_ascii_lowercase(), data_type.size_in_bits())
}

/// The types of fills.
pub fn fill_types() -> &'static [TensorDataType] {
    let support = Device::cpu().check_tensor_support(OperatorType::FillValueSequence, TensorRole::Output);
    support.map_or(&[], |support| support.data_types)
}

pub const WIDTHS: [TensorDataType; 4] =
    [TensorDataType::UInt8, TensorDataType::Float16, TensorDataType::Float32, TensorDataType::Int64];

/// A repeatable generator (splitmix64).
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Its elements are all that must move.
fn fill(name: &str, output_tensor: BufferTensorDesc) -> Case {
    let (value_start, value_delta) = match output_tensor.data_type {
        TensorDataType::Float32 => (ScalarUnion::Float32(0.5), ScalarUnion::Float32(0.25)),
        TensorDataType::Float16 => (ScalarUnion::UInt16(0x3C01), ScalarUnion::UInt16(0x1401)),
        _ => (ScalarUnion::UInt64(0x0123_4567_89AB_CDEF), ScalarUnion::UInt64(0x9E37_79B9_7F4A_7C15)),
    };
    let value_data_type = output_tensor.data_type;
    let count: u64 = output_tensor.sizes.iter().map(|&size| u64::from(size)).product();
    let fill_bytes = count * width(value_data_type);
    let desc = FillValueSequenceDesc { output_tensor, value_data_type, value_start, value_delta };
    Case { name: name.to_owned(), desc: desc.into(), in_place: false, fill_bytes, misaligned: 0 }
}

fn width(data_type: TensorDataType) -> u64 {
    u64::from(data_type.size_in_bits() / 8)
}

/// The sizes of a reversal, its axis, and the dimensions each of whose coordinates has lengths of its own.
struct Shape(Vec<u32>, usize, Vec<usize>);

/// [before, axis, behind], with a length for each (before, behind), or each before only.
fn lanes(before: u32, axis: u32, behind: u32, length_behind: bool) -> Shape {
    Shape(vec![before, axis, behind], 1, if length_behind { vec![0, 2] } else { vec![0] })
}

fn reverse(name: &str, data_type: TensorDataType, shape: &Shape, in_place: bool, misaligned: u64) -> Case {
    let Shape(sizes, axis, each) = shape;
    let tensor = BufferTensorDesc::packed(data_type, sizes);
    // Strides are 0 where a dimension shares its lengths.
    let (mut strides, mut count) = (vec![0; sizes.len()], 1);
    for &d in each.iter().rev() {
        strides[d] = count;
        count *= sizes[d];
    }
    let mut one = sizes.clone();
    one[*axis] = 1;
    let mut sequence_lengths_tensor = BufferTensorDesc::strided(TensorDataType::UInt32, &one, &strides);
    sequence_lengths_tensor.total_tensor_size_in_bytes = u64::from(count) * 4;
    let (input_tensor, output_tensor) = (tensor.clone(), tensor);
    let desc = ReverseSubsequencesDesc { input_tensor, sequence_lengths_tensor, output_tensor, axis: *axis as u32 };
    Case { name: name.to_owned(), desc: desc.into(), in_place, fill_bytes: 0, misaligned }
}

/// Bytes of the sectors with an element that a reversal in place moves: below its lane's length, and not in its middle.
/// A sector counts once, however many lanes it is of. The tensor begins `misaligned` bytes past a sector.
fn touched(desc: &ReverseSubsequencesDesc, lengths: &[u32], misaligned: u64) -> u64 {
    let (sizes, axis) = (&desc.input_tensor.sizes, desc.axis as usize);
    let (size, width) = (u64::from(sizes[axis]), width(desc.input_tensor.data_type));
    let strides = desc.sequence_lengths_tensor.strides.as_deref().unwrap_or_default();
    // The lengths of dimensions, in row-major order. Up to 67 million of them are not stored.
    let places = |dimensions: Range<usize>| {
        dimensions.fold(Box::new(iter::once(0usize)) as Box<dyn Iterator<Item = usize>>, |places, d| {
            let (size, stride) = (sizes[d] as usize, strides[d] as usize);
            Box::new(places.flat_map(move |place| (0..size).map(move |n| place + n * stride)))
        })
    };
    let with_lengths = sizes.len() - strides[axis + 1..].iter().rev().take_while(|&&stride| stride == 0).count();
    let block: u64 = sizes[with_lengths..].iter().map(|&size| u64::from(size)).product();
    let blocks: Vec<usize> = places(axis + 1..with_lengths).collect();
    // Elements come in the order of their addresses. The sectors before `next` are counted.
    let (mut next, mut sectors) = (0, 0);
    let mut add = |begin: u64, end: u64| {
        let (begin, end) = (misaligned + begin * width, misaligned + end * width);
        // 0 without an element. A branch on random lengths is slow.
        let past = end.div_ceil(SECTOR) * u64::from(begin < end);
        sectors += past.saturating_sub(next.max(begin / SECTOR));
        next = next.max(past);
        next
    };
    for (n, place) in (0..).zip(places(0..axis)) {
        if let [of_block] = blocks[..] {
            let (lane, length) = (n * size, u64::from(lengths[place + of_block]));
            add(lane * block, (lane + length / 2) * block);
            add((lane + length.div_ceil(2)) * block, (lane + length) * block);
            continue;
        }
        for t in 0..size {
            let (row, mut at) = ((n * size + t) * blocks.len() as u64, 0);
            while let Some(of_block) = blocks.get(at) {
                let length = u64::from(lengths[place + of_block]);
                at += 1;
                if t < length && 2 * t + 1 != length {
                    let begin = (row + at as u64 - 1) * block;
                    // The first element whose sector is not counted.
                    let first = (add(begin, begin + block) * SECTOR).saturating_sub(misaligned).div_ceil(width);
                    at = at.max((first / block).saturating_sub(row) as usize);
                }
            }
        }
    }
    sectors * SECTOR
}

/// Every case.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();

    for bytes in [1u64 << 28, 1 << 32] {
        for &data_type in fill_types() {
            // The largest one-byte tensor is 4 bytes short of 4 GiB.
            let count = (bytes / width(data_type)).min(u64::from(u32::MAX) - 3) as u32;
            let name = format!("fill packed {} MiB", bytes >> 20);
            cases.push(fill(&name, BufferTensorDesc::packed(data_type, &[count])));
        }
    }
    for bytes in [64, 4096, 1 << 16] {
        let tensor = BufferTensorDesc::packed(TensorDataType::Float32, &[bytes / 4]);
        cases.push(fill(&format!("small fill of {bytes} bytes"), tensor));
    }
    for data_type in WIDTHS {
        let w = width(data_type) as u32;
        // Rows of 1000 elements, 1024 apart; NHWC in memory with 64 channels, and with 3.
        let rows = (1 << 18) / w;
        let sector_row = (1000 * u64::from(w)).div_ceil(SECTOR) * SECTOR;
        let padded = BufferTensorDesc::strided(data_type, &[rows, 1000], &[1024, 1]);
        cases.push(Case { fill_bytes: u64::from(rows) * sector_row, ..fill("fill padded rows", padded) });
        for channels in [64u32, 3] {
            let pixels = (1 << 28) / w / channels / 16;
            let strides = [pixels * channels, 1, channels];
            let permuted = BufferTensorDesc::strided(data_type, &[16, channels, pixels], &strides);
            cases.push(fill(&format!("fill NHWC {channels}"), permuted));
        }
    }

    // A transposed matrix, as frameworks hand out views.
    for data_type in WIDTHS {
        let rows = 8192;
        let columns = (1 << 28) / 8192 / width(data_type) as u32;
        let tensor = BufferTensorDesc::strided(data_type, &[rows, columns], &[1, rows]);
        cases.push(fill("fill transposed [8192, *]", tensor));
    }

    let mut both = |name: &str, data_type, shape: &Shape, misaligned| {
        for in_place in [false, true] {
            cases.push(reverse(name, data_type, shape, in_place, misaligned));
        }
    };
    for data_type in WIDTHS {
        let w = width(data_type) as u32;
        both("inner [16384, 8192]", data_type, &lanes(16384, 8192, 1, true), 0);
        both("block [64, 2048, 1024]", data_type, &lanes(64, 2048, 1024, false), 0);
        both("lanes [64, 512, 4096]", data_type, &lanes(64, 512, 4096, true), 0);
        both("tokens [256, 4096]", data_type, &lanes(256, 4096, 1, true), 0);
        for axis in [7, 31, 100, 1000, 4097] {
            both(&format!("inner odd [*, {axis}]"), data_type, &lanes((1 << 26) / w / axis, axis, 1, true), 0);
        }
        for behind in [3, 5, 33] {
            let before = (1 << 26) / w / 512 / behind;
            both(&format!("block odd [*, 512, {behind}]"), data_type, &lanes(before, 512, behind, false), 0);
        }
        both("inner misaligned [8192, 8192]", data_type, &lanes(8192, 8192, 1, true), u64::from(w));
        both("block misaligned [64, 1024, 1024]", data_type, &lanes(64, 1024, 1024, false), u64::from(w));
        both("one lane of 2^28", data_type, &lanes(1, 1 << 28, 1, true), 0);
        // {before, lower, between, upper, after}, batch and sequence either way round.
        both("rank 5 [2, batch 32, 2, axis 1024, 1024]", data_type, &Shape(vec![2, 32, 2, 1024, 1024], 3, vec![1]), 0);
        both("rank 5 [2, axis 1024, 2, batch 32, 1024]", data_type, &Shape(vec![2, 1024, 2, 32, 1024], 1, vec![3]), 0);
        // Unusual layouts: each length of its own in odd rows, lanes and blocks beyond shared memory.
        let mut large = |name: &str, axis: u32, behind: u32, length_behind| {
            let before = (1u32 << 26) / w / axis / behind;
            both(&format!("{name} [*, {axis}, {behind}]"), data_type, &lanes(before, axis, behind, length_behind), 0);
        };
        large("lanes odd", 512, 3, true);
        large("lanes odd", 512, 33, true);
        large("lanes odd", 512, 1023, true);
        large("lanes long", 16384, 512, true);
        large("block long", 16384, 3, false);
        large("block long", 16384, 33, false);
        large("block long", 2048, 257, false);
        both("2^26 lanes of 4", data_type, &lanes(1 << 26, 4, 1, true), 0);
        both("small [16, 256]", data_type, &lanes(16, 256, 1, true), 0);
        both("lanes of 31 [1024, 31]", data_type, &lanes(1024, 31, 1, true), 0);
        both("lanes of 100 [1024, 100]", data_type, &lanes(1024, 100, 1, true), 0);
        both("lanes of 100 [8192, 100]", data_type, &lanes(8192, 100, 1, true), 0);
        // Sizes of real models: batch, sequence, features.
        both("model block [8, 512, 768]", data_type, &lanes(8, 512, 768, false), 0);
        both("model lanes [8, 512, 768]", data_type, &lanes(8, 512, 768, true), 0);
        both("blocks of 5 [64, 512, 5]", data_type, &lanes(64, 512, 5, false), 0);
    }
    // The memory of one tensor has the axis innermost, the other's does not.
    for data_type in WIDTHS {
        for (name, each) in [("block", false), ("lanes", true)] {
            for side in ["input", "output"] {
                let before = (1u32 << 26) / width(data_type) as u32 / 512 / 1024;
                let shape = lanes(before, 512, 1024, each);
                let mut case = reverse(&format!("transposed {side}, {name}"), data_type, &shape, false, 0);
                if let OperatorDesc::ReverseSubsequences(desc) = &mut case.desc {
                    let tensor = if side == "input" { &mut desc.input_tensor } else { &mut desc.output_tensor };
                    *tensor = BufferTensorDesc::strided(data_type, &shape.0, &[512 * 1024, 1, 512]);
                }
                cases.push(case);
            }
        }
    }
    cases
}

/// Cases that only ONNX models have: time first, a last dimension of 1, one feature, and small ranges of more types.
pub fn onnx() -> Vec<Case> {
    let mut cases = Vec::new();
    for data_type in WIDTHS {
        for (time, batch, features) in [(512, 8, 768), (2048, 64, 1024)] {
            let name = format!("time first [{time}, {batch}, {features}]");
            cases.push(reverse(&name, data_type, &Shape(vec![time, batch, features], 0, vec![1]), false, 0));
        }
    }
    let float = TensorDataType::Float32;
    cases.push(reverse("tokens [256, 4096, 1]", float, &lanes(256, 4096, 1, true), false, 0));
    // ONNX Runtime's DirectML provider is right for one feature only.
    for data_type in WIDTHS {
        for (batch, time) in [(8, 512 * 768), (64, 2048 * 512)] {
            let name = format!("one feature [{batch}, {time}, 1]");
            cases.push(reverse(&name, data_type, &lanes(batch, time, 1, true), false, 0));
        }
    }
    cases.push(reverse("time first [4096, 256]", float, &Shape(vec![4096, 256], 0, vec![1]), false, 0));
    use TensorDataType::{Float64, Int16, Int32, Int64};
    let small = [Int16, Int32, Int64, Float64].map(|data_type| ("small fill of 65536 bytes", data_type, 1 << 16));
    for (name, data_type, bytes) in small.into_iter().chain([("fill packed 256 MiB", Float64, 1 << 28)]) {
        let tensor = BufferTensorDesc::packed(data_type, &[(bytes / width(data_type)) as u32]);
        cases.push(fill(name, tensor));
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::suite::belongs;
    use crate::options::Tier;

    /// Looks at every element alone.
    fn counted(case: &Case) -> u64 {
        let OperatorDesc::ReverseSubsequences(desc) = &case.desc else { return 0 };
        let (sizes, axis, lengths) = (&desc.input_tensor.sizes, desc.axis as usize, case.lengths());
        let strides = desc.sequence_lengths_tensor.strides.as_deref().expect("written out");
        let width = width(desc.input_tensor.data_type);
        let elements: u64 = sizes.iter().map(|&size| u64::from(size)).product();
        let mut is_moved = vec![false; ((case.misaligned + elements * width) / SECTOR + 1) as usize];
        for n in 0..elements {
            let (mut rest, mut t, mut place) = (n, 0, 0);
            for d in (0..sizes.len()).rev() {
                let at = rest % u64::from(sizes[d]);
                rest /= u64::from(sizes[d]);
                place += at * u64::from(strides[d]);
                t = if d == axis { at } else { t };
            }
            let length = u64::from(lengths[place as usize]);
            if t < length && t != length - 1 - t {
                let begin = case.misaligned + n * width;
                is_moved[(begin / SECTOR) as usize] = true;
                is_moved[((begin + width - 1) / SECTOR) as usize] = true;
            }
        }
        lengths.len() as u64 * 4 + 2 * SECTOR * is_moved.iter().filter(|&&moved| moved).count() as u64
    }

    #[test]
    fn lanes_with_lengths_of_their_own_are_side_by_side() {
        let is_named = |case: &Case| case.name.contains("lanes") && !case.name.contains("lanes of");
        for case in all() {
            assert_eq!(case.is_side_by_side(), is_named(&case), "{}", case.name);
        }
    }

    #[test]
    fn bytes_in_place_are_those_of_the_union_of_sectors() {
        let five = |sizes: [u32; 5], axis, each: &[usize]| Shape(sizes.to_vec(), axis, each.to_vec());
        let mut shapes = vec![
            five([2, 3, 2, 16, 24], 3, &[1]),
            five([2, 16, 2, 3, 24], 1, &[3]),
            five([2, 9, 3, 5, 7], 1, &[0, 2, 4]),
        ];
        for length_behind in [false, true] {
            for (before, axis) in [(40, 7), (9, 31), (5, 100), (1, 1000), (300, 4), (64, 1)] {
                shapes.extend([1, 3, 5, 16, 33, 64].map(|behind| lanes(before, axis, behind, length_behind)));
            }
        }
        for data_type in WIDTHS {
            for shape in &shapes {
                for misaligned in [0, width(data_type)] {
                    let case = reverse("", data_type, shape, true, misaligned);
                    let found = case.floor_bytes(&case.lengths());
                    assert_eq!(found, counted(&case), "{data_type} {:?} along {} at {misaligned}", shape.0, shape.1);
                }
            }
        }
    }

    #[test]
    #[ignore = "CI runs it: it takes a minute"]
    fn bytes_in_place_of_the_quick_cases_are_those_of_the_union_of_sectors() {
        let quick = |case: &Case| case.in_place && belongs(case, Tier::Quick);
        let cases = all().into_iter().chain(onnx()).filter(quick);
        let checked =
            cases.map(|case| assert_eq!(case.floor_bytes(&case.lengths()), counted(&case), "{}", case.file_name()));
        assert!(checked.count() > 80);
    }
}
