//! Random layouts, like those that programs have.
//!
//! Layouts are drawn by kind, such as rows of features with a length per sequence, or interleaved sequences with a length
//! each. Uniform random sizes and strides would almost always be layouts that only one kernel can run, and
//! the cost model's choice between kernels would not be tested.
//!
//! A seed always draws the same layouts, so that times of two GPUs or two commits can be compared. Every change of the
//! order in which numbers are drawn changes them all.

use dml_cuda::Device;

use super::layouts::{packed, Layout};
use crate::bench::statistics::Interval;
use crate::bench::suite::random;

/// The bench's generator, from a seed on.
pub struct Random(pub u64);

impl Random {
    /// Any number of 64 bits.
    pub fn next(&mut self) -> u64 {
        random(&mut self.0)
    }

    /// From 0 up to, but not including, 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of the values, all of them equally likely.
    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// A number below `count`.
    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// The numbers below `count` in any order (Fisher and Yates).
    fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for n in 1..count {
            order.swap(n, self.below(n + 1));
        }
        order
    }

    /// A size, evenly by its logarithm: often a power of two, a multiple of 8, or one of 100. Sizes like these decide
    /// which kernels can run, so that they must not be rare.
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

/// A kind of layout. Dimensions are letters: batch, time, heads, groups and features.
struct Kind {
    name: &'static str,
    /// How often the kind is drawn, relative to the others.
    weight: u32,
    /// From the outermost dimension on.
    dimensions: &'static str,
    /// The dimensions with lengths of their own. One in upper case has such lengths in half of the layouts.
    own_lengths: &'static str,
    /// How likely the memory of input and output has the dimensions in another order.
    moved: [f64; 2],
}

/// A function, so that a kind takes one line.
const fn kind(
    name: &'static str,
    weight: u32,
    dimensions: &'static str,
    own_lengths: &'static str,
    moved: [f64; 2],
) -> Kind {
    Kind {
        name,
        weight,
        dimensions,
        own_lengths,
        moved,
    }
}

/// All kinds. The usual ones of programs have the largest weights.
const KINDS: [Kind; 13] = [
    kind("block", 5, "btf", "b", [0.0, 0.0]),
    kind("block time first", 2, "tbf", "b", [0.0, 0.0]),
    kind("lanes", 4, "bt", "b", [0.0, 0.0]),
    kind("side", 3, "btf", "bf", [0.0, 0.0]),
    kind("side alone", 2, "tf", "f", [0.0, 0.0]),
    kind("between", 2, "bthf", "bH", [0.0, 0.0]),
    kind("transposed in", 2, "btf", "bF", [1.0, 0.0]),
    kind("transposed out", 1, "btf", "bF", [0.0, 1.0]),
    kind("padded block", 2, "btf", "b", [0.0, 0.0]),
    kind("padded lanes", 1, "bt", "b", [0.0, 0.0]),
    kind("padded side", 1, "btf", "bf", [0.0, 0.0]),
    kind("sliced", 1, "btf", "b", [0.0, 0.0]),
    kind("any", 2, "bthgf", "BHGF", [0.5, 0.3]),
];

/// The usual sizes of tensors in bytes, as powers of two: from 512 bytes to 128 MiB.
const USUAL: Interval = Interval {
    low: 9.0,
    high: 27.0,
};

/// The sizes of a tenth of the layouts.
const LARGE: Interval = Interval {
    low: 27.0,
    high: 32.0,
};

/// Draws random layouts. A seed always draws the same ones.
pub fn draw(seed: u64, count: u32) -> Vec<Layout> {
    let mut random = Random(seed);
    let mut layouts = Vec::new();
    while layouts.len() < count as usize {
        layouts.extend(draw_one(&mut random));
    }
    layouts
}

/// Draws a layout. Returns none if it is too large, or has gaps that DirectML does not accept.
fn draw_one(random: &mut Random) -> Option<Layout> {
    let kind = draw_kind(random);
    let mut dimensions: Vec<char> = kind.dimensions.chars().collect();
    if kind.name == "any" {
        let order = random.shuffled(dimensions.len());
        dimensions = order.into_iter().map(|d| dimensions[d]).collect();
    }
    let width = random.one_of(&[1, 2, 2, 4, 4, 8]);
    let Interval { low, high } = if random.part() < 0.1 { LARGE } else { USUAL };
    // Evenly by the logarithm: as many layouts of 1 to 2 KiB as of 1 to 2 MiB.
    let bytes = (low + (high - low) * random.part()).exp2() as u32;
    let sizes = draw_sizes(random, &dimensions, (bytes / width).max(64));
    let length_sizes = draw_length_sizes(random, kind, &dimensions, &sizes);
    let [in_strides, out_strides] = draw_strides(random, kind, &sizes);
    let layout = Layout {
        kind: kind.name.to_owned(),
        width,
        axis: dimensions.iter().position(|letter| *letter == 't')?,
        sizes,
        in_strides,
        out_strides,
        length_sizes,
    };
    let is_too_large = (layout.elements() * u64::from(width)) as f64 > 1.3 * high.exp2();
    // A tensor with gaps may have more elements than DirectML counts.
    let is_valid = !is_too_large && Device::cpu().create_operator(layout.desc()).is_ok();
    is_valid.then_some(layout)
}

/// Draws a kind by its weight.
fn draw_kind(random: &mut Random) -> &'static Kind {
    let weights: u32 = KINDS.iter().map(|kind| kind.weight).sum();
    let mut place = (random.next() % u64::from(weights)) as u32;
    for kind in &KINDS {
        if place < kind.weight {
            return kind;
        }
        place -= kind.weight;
    }
    unreachable!("the place is below the sum of the weights")
}

/// Draws the size of each dimension, so that there are about as many elements as `elements`.
fn draw_sizes(random: &mut Random, dimensions: &[char], elements: u32) -> Vec<u32> {
    let most_features = if random.part() < 0.25 { 16 } else { 4096 };
    let most_steps = match random.part() {
        ..0.2 => 40,
        _ if dimensions == ['b', 't'] => 1 << 22,
        _ => 1 << 16,
    };
    let ranges = [
        ('f', 1, most_features),
        ('h', 2, 64),
        ('g', 1, 8),
        ('t', 2, most_steps),
    ];
    // The batch, or else the features, have what the other dimensions leave.
    let last = if dimensions.contains(&'b') { 'b' } else { 'f' };
    let mut left = elements;
    let mut sizes = vec![1; dimensions.len()];
    for (letter, low, high) in ranges {
        let place = dimensions.iter().position(|found| *found == letter);
        if let Some(d) = place.filter(|_| letter != last) {
            sizes[d] = random.size(low, high.min(left));
            left = (left / sizes[d]).max(1);
        }
    }
    for (size, letter) in sizes.iter_mut().zip(dimensions) {
        if *letter == last {
            *size = left;
        }
    }
    sizes
}

/// Draws which dimensions have lengths of their own. The size is 1 where a length is shared.
fn draw_length_sizes(
    random: &mut Random,
    kind: &Kind,
    dimensions: &[char],
    sizes: &[u32],
) -> Vec<u32> {
    let mut length_sizes = Vec::new();
    for (letter, &size) in dimensions.iter().zip(sizes) {
        length_sizes.push(if kind.own_lengths.contains(*letter) {
            size
        } else if kind.own_lengths.contains(letter.to_ascii_uppercase()) {
            random.one_of(&[1, size])
        } else {
            1
        });
    }
    length_sizes
}

/// Draws the strides of input and output.
fn draw_strides(random: &mut Random, kind: &Kind, sizes: &[u32]) -> [Vec<u32>; 2] {
    let rank = sizes.len();
    let [mut in_strides, mut out_strides] = kind.moved.map(|moved| {
        if random.part() < moved {
            packed(sizes, random.shuffled(rank).into_iter())
        } else {
            packed(sizes, 0..rank)
        }
    });
    // Every second or third element of a larger tensor.
    if kind.name == "sliced" {
        let step = random.one_of(&[2, 3]);
        for stride in &mut in_strides {
            *stride *= step;
        }
    }
    // Rows with unused elements after their ends.
    if kind.name.starts_with("padded") {
        let (pad, multiple) = (
            random.one_of(&[1, 3, 8, 16, 64]),
            random.one_of(&[1, 1, 8, 32]),
        );
        let mut pitched = sizes.to_vec();
        pitched[rank - 1] = (pitched[rank - 1] + pad).next_multiple_of(multiple);
        let pitched = packed(&pitched, 0..rank);
        let (pads_in, pads_out) = random.one_of(&[(true, false), (false, true), (true, true)]);
        if pads_in {
            in_strides = pitched.clone();
        }
        if pads_out {
            out_strides = pitched;
        }
    }
    [in_strides, out_strides]
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
        for Kind { name, .. } in KINDS {
            assert!(drawn.iter().any(|layout| layout.kind == name), "{name}");
        }
    }
}
