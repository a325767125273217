//! Layouts of reversals: drawn at random by kind, or read from a file.

use std::path::Path;

use dml_cuda::{BufferTensorDesc, Device, OperatorDesc, ReverseSubsequencesDesc, TensorDataType};
use serde::Deserialize;

use crate::bench::suite::random;
use crate::model::file;
use crate::out::shown_path;
use crate::schema;

/// A reversal. Strides are in elements; `length_sizes` has 1 where a length is shared.
#[derive(Clone, Debug, Deserialize)]
pub struct Layout {
    #[serde(default)]
    pub kind: String,
    /// Bytes of an element.
    pub width: u32,
    pub sizes: Vec<u32>,
    pub axis: usize,
    pub in_strides: Vec<u32>,
    pub out_strides: Vec<u32>,
    /// Earlier files of layouts say `len_sizes`.
    #[serde(alias = "len_sizes")]
    pub length_sizes: Vec<u32>,
}

impl Layout {
    /// The descriptor.
    pub fn desc(&self) -> OperatorDesc {
        use TensorDataType::{UInt16, UInt32, UInt64, UInt8};
        let data_type = [UInt8, UInt16, UInt32, UInt64][self.width.ilog2() as usize];
        let packed = packed(&self.length_sizes, 0..self.length_sizes.len());
        let strides: Vec<u32> = self
            .length_sizes
            .iter()
            .zip(packed)
            .map(|(&size, stride)| if size > 1 { stride } else { 0 })
            .collect();
        let mut sizes = self.sizes.clone();
        sizes[self.axis] = 1;
        ReverseSubsequencesDesc {
            input_tensor: BufferTensorDesc::strided(data_type, &self.sizes, &self.in_strides),
            sequence_lengths_tensor: BufferTensorDesc::strided(UInt32, &sizes, &strides),
            output_tensor: BufferTensorDesc::strided(data_type, &self.sizes, &self.out_strides),
            axis: self.axis as u32,
        }
        .into()
    }

    pub fn elements(&self) -> u64 {
        self.sizes.iter().map(|&size| u64::from(size)).product()
    }

    /// The columns of a table of times.
    pub fn columns(&self) -> String {
        let list = |numbers: &[u32]| {
            numbers
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join("x")
        };
        let Self {
            kind,
            width,
            sizes,
            axis,
            in_strides,
            out_strides,
            length_sizes,
        } = self;
        let lists = [in_strides, out_strides, length_sizes]
            .map(|numbers| list(numbers))
            .join(",");
        format!("{kind},{width},{},{axis},{lists}", list(sizes))
    }
}

/// Reads a layout a line, as JSON objects.
pub fn read(path: &Path) -> Result<Vec<Layout>, String> {
    let text = file::read_input(path, "").and_then(file::text);
    let text = text.map_err(|error| format!("{}: {error}", shown_path(path)))?;
    let lines = text
        .trim_start_matches('\u{feff}')
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let cpu = Device::cpu();
    let layout = |(n, line): (usize, &str)| {
        let in_line = |error: String| format!("{}: line {}: {error}", shown_path(path), n + 1);
        // The file's line is known, and serde knows only this one.
        let unreadable = |error| {
            in_line(schema::plain_message(&error).replace(" at line 1 column", " at column"))
        };
        let layout: Layout = serde_json::from_str(line).map_err(unreadable)?;
        let rank = layout.sizes.len();
        let lists = [
            &layout.in_strides,
            &layout.out_strides,
            &layout.length_sizes,
        ];
        if lists.iter().any(|list| list.len() != rank)
            || layout.axis >= rank
            || ![1, 2, 4, 8].contains(&layout.width)
        {
            return Err(in_line(
                "must have lists of one length, an axis below that, and a width of 1, 2, 4 or 8"
                    .to_owned(),
            ));
        }
        if layout.kind.contains([',', '"', '\n']) {
            return Err(in_line(
                "the kind must have no comma and no quote".to_owned(),
            ));
        }
        let is_shared_or_whole =
            |(n, &size): (usize, &u32)| size == 1 || n != layout.axis && size == layout.sizes[n];
        if !layout
            .length_sizes
            .iter()
            .enumerate()
            .all(is_shared_or_whole)
        {
            return Err(in_line(
                "length_sizes must be 1 along the axis, and 1 or the size elsewhere".to_owned(),
            ));
        }
        cpu.create_operator(layout.desc())
            .map_err(|error| in_line(error.to_string()))?;
        Ok(layout)
    };
    let layouts: Vec<Layout> = lines.map(layout).collect::<Result<_, String>>()?;
    match layouts.is_empty() {
        true => Err(format!("{}: there are no layouts", shown_path(path))),
        false => Ok(layouts),
    }
}

/// The bench's generator, from a seed on.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        random(&mut self.0)
    }

    /// From 0 to 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }

    fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        (1..count).for_each(|n| order.swap(n, (self.next() % (n as u64 + 1)) as usize));
        order
    }

    /// A size, evenly by its logarithm: often a power of two, a multiple of 8, or one of 100.
    fn size(&mut self, least: u32, most: u32) -> u32 {
        let (low, high) = (f64::from(least).log2(), (f64::from(most) + 0.99).log2());
        let size = (low + (high - low) * self.part()).exp2();
        let size = match self.part() {
            ..0.3 => size.log2().round().exp2(),
            0.3..0.5 => 8.0 * (size / 8.0).round().max(1.0),
            0.5..0.6 if size >= 60.0 => 100.0 * (size / 100.0).round().max(1.0),
            _ => size,
        };
        (size as u32).clamp(least, most.max(least))
    }
}

/// The strides of a tensor whose memory has the dimensions in that order, outermost first.
fn packed(sizes: &[u32], order: impl DoubleEndedIterator<Item = usize>) -> Vec<u32> {
    let (mut strides, mut next) = (vec![0; sizes.len()], 1u32);
    for d in order.rev() {
        strides[d] = next;
        next = next.saturating_mul(sizes[d]);
    }
    strides
}

/// The kinds of layouts: name, weight, dimensions from the outermost on, the dimensions with lengths of their own, and
/// how likely the input's and the output's memory has the dimensions in another order. Dimensions are batch, time,
/// heads, groups and features. One in upper case has such lengths in half of the layouts.
const KINDS: [(&str, u32, &str, &str, [f64; 2]); 13] = [
    ("block", 5, "btf", "b", [0.0, 0.0]),
    ("block time first", 2, "tbf", "b", [0.0, 0.0]),
    ("lanes", 4, "bt", "b", [0.0, 0.0]),
    ("side", 3, "btf", "bf", [0.0, 0.0]),
    ("side alone", 2, "tf", "f", [0.0, 0.0]),
    ("between", 2, "bthf", "bH", [0.0, 0.0]),
    ("transposed in", 2, "btf", "bF", [1.0, 0.0]),
    ("transposed out", 1, "btf", "bF", [0.0, 1.0]),
    ("padded block", 2, "btf", "b", [0.0, 0.0]),
    ("padded lanes", 1, "bt", "b", [0.0, 0.0]),
    ("padded side", 1, "btf", "bf", [0.0, 0.0]),
    ("sliced", 1, "btf", "b", [0.0, 0.0]),
    ("any", 2, "bthgf", "BHGF", [0.5, 0.3]),
];

/// Bytes of the least and of the largest tensor, as powers of two, and of the tenth of the layouts that are large.
const USUAL: (f64, f64) = (9.0, 27.0);
const LARGE: (f64, f64) = (27.0, 32.0);

/// Layouts at random. A seed always draws the same ones.
pub fn draw(seed: u64, count: u32) -> Vec<Layout> {
    let mut random = Random(seed);
    std::iter::repeat_with(|| one(&mut random))
        .flatten()
        .take(count as usize)
        .collect()
}

/// A layout, unless it is too large or has too large gaps.
fn one(r: &mut Random) -> Option<Layout> {
    let all: u32 = KINDS.iter().map(|(_, weight, ..)| weight).sum();
    let mut place = (r.next() % u64::from(all)) as u32;
    let chosen = KINDS.iter().find(|(_, weight, ..)| {
        place
            .checked_sub(*weight)
            .map(|left| place = left)
            .is_none()
    });
    let &(kind, _, letters, own, moved) = chosen?;
    let mut dimensions: Vec<char> = letters.chars().collect();
    if kind == "any" {
        dimensions = r
            .shuffled(dimensions.len())
            .into_iter()
            .map(|d| dimensions[d])
            .collect();
    }
    let width = r.one_of(&[1, 2, 2, 4, 4, 8]);
    let (least, most) = if r.part() < 0.1 { LARGE } else { USUAL };
    let bytes = (least + (most - least) * r.part()).exp2() as u32;
    let mut left = (bytes / width).max(64);
    let features = if r.part() < 0.25 { 16 } else { 4096 };
    let steps = if r.part() < 0.2 {
        40
    } else {
        1 << if letters == "bt" { 22 } else { 16 }
    };
    let mut sizes = vec![1; dimensions.len()];
    let place_of = |letter: char| dimensions.iter().position(|found| *found == letter);
    // The batch, or else the features, have what is left.
    let last = if letters.contains('b') { 'b' } else { 'f' };
    for (letter, least, most) in [
        ('f', 1, features),
        ('h', 2, 64),
        ('g', 1, 8),
        ('t', 2, steps),
    ] {
        if let Some(d) = place_of(letter).filter(|_| letter != last) {
            sizes[d] = r.size(least, most.min(left));
            left = (left / sizes[d]).max(1);
        }
    }
    sizes[place_of(last)?] = left;
    let axis = place_of('t')?;
    let mut of_lengths = |(letter, size): (&char, &u32)| match own {
        _ if own.contains(*letter) => *size,
        _ if own.contains(letter.to_ascii_uppercase()) => r.one_of(&[1, *size]),
        _ => 1,
    };
    let length_sizes = dimensions.iter().zip(&sizes).map(&mut of_lengths).collect();
    let rank = sizes.len();
    let [mut in_strides, mut out_strides] = moved.map(|moved| match r.part() < moved {
        true => packed(&sizes, r.shuffled(rank).into_iter()),
        false => packed(&sizes, 0..rank),
    });
    if kind == "sliced" {
        let step = r.one_of(&[2, 3]);
        in_strides.iter_mut().for_each(|stride| *stride *= step);
    }
    if kind.starts_with("padded") {
        let (pad, multiple) = (r.one_of(&[1, 3, 8, 16, 64]), r.one_of(&[1, 1, 8, 32]));
        let mut pitched = sizes.clone();
        let row = pitched.last_mut()?;
        *row = (*row + pad).next_multiple_of(multiple);
        let pitched = packed(&pitched, 0..rank);
        let (pads_in, pads_out) = r.one_of(&[(true, false), (false, true), (true, true)]);
        if pads_in {
            in_strides = pitched.clone();
        }
        if pads_out {
            out_strides = pitched;
        }
    }
    let layout = Layout {
        kind: kind.to_owned(),
        width,
        sizes,
        axis,
        in_strides,
        out_strides,
        length_sizes,
    };
    let is_too_large = (layout.elements() * u64::from(width)) as f64 > 1.3 * most.exp2();
    // A tensor with gaps may have more elements than DirectML counts.
    let is_valid = !is_too_large && Device::cpu().create_operator(layout.desc()).is_ok();
    is_valid.then_some(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_valid_layouts_of_every_kind() {
        let drawn = draw(1, 400);
        let columns =
            |layouts: Vec<Layout>| layouts.iter().map(Layout::columns).collect::<Vec<_>>();
        assert_eq!(columns(draw(1, 400)), columns(drawn.clone()));
        assert_ne!(columns(draw(2, 400)), columns(drawn.clone()));
        for layout in &drawn {
            dml_cuda::Device::cpu()
                .create_operator(layout.desc())
                .expect("a valid layout");
        }
        for (kind, ..) in KINDS {
            assert!(drawn.iter().any(|layout| layout.kind == kind), "{kind}");
        }
    }
}
