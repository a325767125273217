//! Layouts of reversals: drawn at random by kind, or read from a file.

use std::path::Path;

use dml_cuda::{BufferTensorDesc, OperatorDesc, ReverseSubsequencesDesc, TensorDataType};
use serde::Deserialize;

use crate::out::shown_path;

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
        let data_type = match self.width {
            1 => TensorDataType::UInt8,
            2 => TensorDataType::UInt16,
            4 => TensorDataType::UInt32,
            _ => TensorDataType::UInt64,
        };
        let packed = packed(&self.length_sizes, &(0..self.length_sizes.len()).collect::<Vec<_>>());
        let strides: Vec<u32> =
            self.length_sizes.iter().zip(packed).map(|(&size, stride)| if size > 1 { stride } else { 0 }).collect();
        let mut sizes = self.sizes.clone();
        if let Some(size) = sizes.get_mut(self.axis) {
            *size = 1;
        }
        ReverseSubsequencesDesc {
            input_tensor: BufferTensorDesc::strided(data_type, &self.sizes, &self.in_strides),
            sequence_lengths_tensor: BufferTensorDesc::strided(TensorDataType::UInt32, &sizes, &strides),
            output_tensor: BufferTensorDesc::strided(data_type, &self.sizes, &self.out_strides),
            axis: self.axis as u32,
        }
        .into()
    }

    pub fn elements(&self) -> u64 {
        self.sizes.iter().map(|&size| u64::from(size)).product()
    }

    pub fn runs_in_place(&self) -> bool {
        let strides = self.in_strides.iter().zip(&self.out_strides);
        strides.zip(&self.sizes).all(|((input, output), size)| *size == 1 || input == output)
    }

    /// The columns of a table of times.
    pub fn columns(&self) -> String {
        let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
        let Self { kind, width, sizes, axis, in_strides, out_strides, length_sizes } = self;
        let lists = [in_strides, out_strides, length_sizes].map(|numbers| list(numbers)).join(",");
        format!("{kind},{width},{},{axis},{lists}", list(sizes))
    }
}

/// Reads a layout a line, as JSON objects.
pub fn read(path: &Path) -> Result<Vec<Layout>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", shown_path(path)))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let layout = |(n, line): (usize, &str)| {
        let in_line = |error: String| format!("{}: line {}: {error}", shown_path(path), n + 1);
        let layout: Layout = serde_json::from_str(line).map_err(|error| in_line(error.to_string()))?;
        let rank = layout.sizes.len();
        let lists = [&layout.in_strides, &layout.out_strides, &layout.length_sizes];
        if lists.iter().any(|list| list.len() != rank) || layout.axis >= rank || ![1, 2, 4, 8].contains(&layout.width) {
            return Err(in_line(
                "must have lists of one length, an axis below that, and a width of 1, 2, 4 or 8".to_owned(),
            ));
        }
        if layout.kind.contains([',', '"', '\n']) {
            return Err(in_line("the kind must have no comma and no quote".to_owned()));
        }
        Ok(layout)
    };
    lines.map(layout).collect()
}

/// Xorshift.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
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
fn packed(sizes: &[u32], order: &[usize]) -> Vec<u32> {
    let (mut strides, mut next) = (vec![0; sizes.len()], 1u32);
    for &d in order.iter().rev() {
        strides[d] = next;
        next = next.saturating_mul(sizes[d]);
    }
    strides
}

const KINDS: &[(&str, u32)] = &[
    ("block", 5),
    ("block time first", 2),
    ("lanes", 4),
    ("side", 3),
    ("side alone", 2),
    ("between", 2),
    ("transposed in", 2),
    ("transposed out", 1),
    ("padded block", 2),
    ("padded lanes", 1),
    ("padded side", 1),
    ("sliced", 1),
    ("any", 2),
];

/// Bytes of the least and of the largest tensor, as powers of two.
const BYTES: (f64, f64) = (9.0, 27.0);

/// Layouts at random. A seed always draws the same ones.
pub fn draw(seed: u64, count: usize) -> Vec<Layout> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let _ = (0..16).map(|_| random.next()).last();
    std::iter::repeat_with(|| one(&mut random)).flatten().take(count).collect()
}

/// A layout, unless it is too large.
fn one(r: &mut Random) -> Option<Layout> {
    let all: u32 = KINDS.iter().map(|(_, weight)| weight).sum();
    let mut place = (r.next() % u64::from(all)) as u32;
    let (kind, _) = KINDS.iter().find(|(_, weight)| place.checked_sub(*weight).map(|left| place = left).is_none())?;
    let width = r.one_of(&[1, 2, 2, 4, 4, 8]);
    let count = (((BYTES.0 + (BYTES.1 - BYTES.0) * r.part()).exp2() as u32) / width).max(64);
    let longest = if r.part() < 0.2 { 40 } else { 65_536 };
    let widest = if r.part() < 0.25 { 16 } else { 4096 };
    let axis_of = |r: &mut Random, most: u32| r.size(2, most.clamp(2, longest));
    let (mut axis, mut order, mut strides) = (1, None, None);
    let (sizes, lengths) = match *kind {
        "block" | "padded block" | "sliced" | "side" | "padded side" => {
            let inner = r.size(1, (count / 2).clamp(1, widest));
            let steps = axis_of(r, count / inner);
            let outer = (count / (steps * inner)).max(1);
            (vec![outer, steps, inner], vec![outer, 1, if kind.ends_with("side") { inner } else { 1 }])
        }
        "block time first" => {
            axis = 0;
            let inner = r.size(1, (count / 4).clamp(1, widest));
            let steps = axis_of(r, count / inner / 2);
            let outer = (count / (steps * inner)).max(1);
            (vec![steps, outer, inner], vec![1, outer, 1])
        }
        "lanes" | "padded lanes" => {
            let steps = r.size(2, count.min(if longest == 40 { 40 } else { 1 << 22 }));
            let outer = (count / steps).max(1);
            (vec![outer, steps], vec![outer, 1])
        }
        "side alone" => {
            axis = 0;
            let steps = axis_of(r, count / 2);
            let inner = (count / steps).max(1);
            (vec![steps, inner], vec![1, inner])
        }
        "between" => {
            let inner = r.size(1, (count / 8).clamp(1, widest));
            let heads = r.size(2, 64);
            let steps = axis_of(r, count / inner / heads);
            let outer = (count / (steps * heads * inner)).max(1);
            (vec![outer, steps, heads, inner], vec![outer, 1, r.one_of(&[1, heads]), 1])
        }
        "transposed in" | "transposed out" => {
            let inner = r.size(8, (count / 8).clamp(8, 4096));
            let steps = axis_of(r, count / inner);
            let outer = (count / (steps * inner)).max(1);
            order = Some(r.one_of(&[[0, 2, 1], [2, 0, 1], [1, 2, 0], [2, 1, 0]]));
            (vec![outer, steps, inner], vec![outer, 1, r.one_of(&[1, inner])])
        }
        _ => {
            let rank = 2 + (r.next() % 4) as usize;
            let (mut sizes, mut left) = (vec![1; rank], count);
            for (n, size) in sizes.iter_mut().enumerate() {
                *size = r.size(1, (f64::from(left).powf(1.0 / (rank - n) as f64) * 3.0).max(1.0) as u32);
                left = (left / *size).max(1);
            }
            axis = (r.next() % rank as u64) as usize;
            sizes[axis] = sizes[axis].max(2);
            let shared = |n: usize, size: u32, r: &mut Random| if n == axis || r.part() < 0.4 { 1 } else { size };
            let lengths = sizes.iter().enumerate().map(|(n, &size)| shared(n, size, r)).collect();
            let mut orders =
                [0.5, 0.3].map(|part| if r.part() < part { r.shuffled(rank) } else { (0..rank).collect() });
            strides = Some([packed(&sizes, &orders[0]), packed(&sizes, &std::mem::take(&mut orders[1]))]);
            (sizes, lengths)
        }
    };
    let rank = sizes.len();
    let plain = packed(&sizes, &(0..rank).collect::<Vec<_>>());
    let [mut input, mut output] = strides.unwrap_or([plain.clone(), plain]);
    match *kind {
        "transposed in" => input = packed(&sizes, &order?),
        "transposed out" => output = packed(&sizes, &order?),
        "sliced" if r.part() < 0.5 => input.iter_mut().for_each(|stride| *stride *= 2),
        _ if *kind == "sliced" || kind.starts_with("padded") => {
            let pad = r.one_of(&[1, 3, 8, 16, 64]);
            let multiple = r.one_of(&[1, 1, 8, 32]);
            let mut pitched = sizes.clone();
            let row = pitched.last_mut()?;
            *row = if *kind == "sliced" { *row * r.one_of(&[2, 3]) } else { (*row + pad).next_multiple_of(multiple) };
            let pitched = packed(&pitched, &(0..rank).collect::<Vec<_>>());
            let which = if *kind == "sliced" { 0 } else { r.next() % 3 };
            if which != 1 {
                input = pitched.clone();
            }
            if which != 0 {
                output = pitched;
            }
        }
        _ => {}
    }
    let layout = Layout {
        kind: (*kind).to_owned(),
        width,
        sizes,
        axis,
        in_strides: input,
        out_strides: output,
        length_sizes: lengths,
    };
    ((layout.elements() * u64::from(width)) as f64 <= 1.3 * BYTES.1.exp2()).then_some(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_valid_layouts_of_every_kind() {
        let drawn = draw(1, 400);
        let columns = |layouts: Vec<Layout>| layouts.iter().map(Layout::columns).collect::<Vec<_>>();
        assert_eq!(columns(draw(1, 400)), columns(drawn.clone()));
        assert_ne!(columns(draw(2, 400)), columns(drawn.clone()));
        for layout in &drawn {
            dml_cuda::Device::cpu().create_operator(layout.desc()).expect("a valid layout");
        }
        for (kind, _) in KINDS {
            assert!(drawn.iter().any(|layout| layout.kind == *kind), "{kind}");
        }
    }
}
