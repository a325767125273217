//! FILL_VALUE_SEQUENCE on the CPU.

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::for_each;
use crate::plan::fill_value_sequence::{Arithmetic, Dimension, Plan};

/// Writes the sequence to the bytes of the output tensor, which begin at its first element and are aligned
/// to it.
pub(crate) fn run(plan: &Plan, out: &mut [u8]) {
    let dimensions = &plan.dimensions;
    /// Indices do not wrap, so that a run's elements are multiples of one distance apart.
    macro_rules! integers {
        ($type:ty) => {{
            let (start, delta) = (plan.start as $type, plan.delta as $type);
            fill(dimensions, typed(out), |first, step, run: &mut [$type]| {
                let first = start.wrapping_add((first as $type).wrapping_mul(delta));
                let distance = (step as $type).wrapping_mul(delta);
                for (j, element) in run.iter_mut().enumerate() {
                    *element = first.wrapping_add((j as $type).wrapping_mul(distance));
                }
            });
        }};
    }
    match plan.arithmetic {
        Arithmetic::Int8 => integers!(u8),
        Arithmetic::Int16 => integers!(u16),
        Arithmetic::Int32 => integers!(u32),
        Arithmetic::Int64 => integers!(u64),
        Arithmetic::Float32 => {
            let floats = Floats::new(f32::from_bits(plan.start as u32), f32::from_bits(plan.delta as u32), dimensions);
            fill(dimensions, typed(out), |first, step, run| floats.write(first, step, run));
        }
        Arithmetic::Float16 => {
            let widen = |bits: u64| f16::from_bits(bits as u16).to_f32();
            let floats = Floats::new(widen(plan.start), widen(plan.delta), dimensions);
            let mut wide = [0.0; 1024];
            fill(dimensions, typed(out), |first, step, run: &mut [f16]| {
                for (n, part) in run.chunks_mut(wide.len()).enumerate() {
                    let wide = &mut wide[..part.len()];
                    floats.write(first + (n * 1024) as u32 * step, step, wide);
                    part.convert_from_f32_slice(wide);
                }
            });
        }
    }
}

/// Runs of float values: the index rounded to the nearest float, then one fused multiply-add.
struct Floats {
    start: f32,
    delta: f32,
    /// Whether every sum is exact in an f64, so that rounding it is all there is to do.
    exact: bool,
}

impl Floats {
    fn new(start: f32, delta: f32, dimensions: &[Dimension]) -> Self {
        let last: f64 = dimensions.iter().map(|d| f64::from(d.size - 1) * f64::from(d.step)).sum();
        // All sums are multiples of the lowest bits of start and delta, and no larger than this: an index below 2³¹ is
        // rounded up by less than 256. Not finite where start or delta is not.
        let largest = f64::from(start).abs() + (last + 256.0) * f64::from(delta).abs();
        let lowest = lowest_bit(start).min(lowest_bit(delta));
        // Indices below 2³¹: their signed conversion is the fast one.
        let exact = largest < lowest * 2f64.powi(53) && last < f64::from(i32::MAX);
        Self { start, delta, exact }
    }

    fn write(&self, first: u32, step: u32, run: &mut [f32]) {
        let Self { start, delta, exact } = *self;
        let index = |j: usize| first.wrapping_add((j as u32).wrapping_mul(step));
        let elements = run.iter_mut().enumerate();
        if exact {
            let (start, delta) = (f64::from(start), f64::from(delta));
            elements.for_each(|(j, element)| *element = (f64::from(index(j) as i32 as f32) * delta + start) as f32);
        } else {
            elements.for_each(|(j, element)| *element = float(index(j), start, delta));
        }
    }
}

/// What the lowest bit that is set in a finite float is worth: it is a multiple of that. Zero is one of anything.
fn lowest_bit(value: f32) -> f64 {
    if value == 0.0 {
        return f64::INFINITY;
    }
    let (exponent, fraction) = ((value.to_bits() >> 23 & 0xff) as i32, value.to_bits() & 0x7f_ffff);
    let mantissa = if exponent == 0 { fraction } else { fraction | 0x80_0000 };
    2f64.powi(exponent.max(1) - 127 - 23 + mantissa.trailing_zeros() as i32)
}

/// The index rounded to the nearest float, times delta, plus start, rounded once.
///
/// The product is exact in an f64. The sum is rounded to odd there (Boldo & Melquiond, 2008): where it is not exact,
/// its last bit is made 1, so that rounding it to an f32 sees on which side of a middle it lies. `f32::mul_add` is the
/// same, by a library call for each element where the compiler may not use the machine's instruction.
fn float(i: u32, start: f32, delta: f32) -> f32 {
    let (product, start) = (f64::from(i as f32) * f64::from(delta), f64::from(start));
    let sum = product + start;
    // What rounding left out (Knuth's two-sum): exact, and NaN where the sum is not finite.
    let back = sum - product;
    let error = (product - (sum - back)) + (start - back);
    let bits = sum.to_bits();
    let outwards = (error > 0.0) == (sum > 0.0);
    let odd = if outwards { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact_and_even = error.abs() > 0.0 && bits & 1 == 0;
    f64::from_bits(if inexact_and_even { odd } else { bits }) as f32
}

/// Has `write` make every run of elements: from an index, in steps of the index.
fn fill<T: Copy + Default>(dimensions: &[Dimension], out: &mut [T], mut write: impl FnMut(u32, u32, &mut [T])) {
    let Some((inner, outer)) = dimensions.split_last() else {
        return write(0, 0, &mut out[..1]);
    };
    let outer: Vec<(u32, [u32; 2])> = outer.iter().map(|d| (d.size, [d.stride, d.step])).collect();
    if inner.stride == 1 {
        for_each(&outer, |[at, first]| write(first as u32, inner.step, &mut out[at..at + inner.size as usize]));
        return;
    }
    let mut run = [T::default(); 256];
    for_each(&outer, |[at, first]| {
        let elements = out[at..].iter_mut().step_by(inner.stride as usize).take(inner.size as usize);
        for (j, element) in elements.enumerate() {
            if j % run.len() == 0 {
                let left = run.len().min(inner.size as usize - j);
                write(first as u32 + j as u32 * inner.step, inner.step, &mut run[..left]);
            }
            *element = run[j % run.len()];
        }
    });
}

/// The whole elements of `bytes`.
pub(super) fn typed<T: bytemuck::Pod>(bytes: &mut [u8]) -> &mut [T] {
    let whole = bytes.len() / size_of::<T>() * size_of::<T>();
    bytemuck::cast_slice_mut(&mut bytes[..whole])
}

#[cfg(test)]
mod tests {
    use super::{float, Floats};
    use crate::common::exact;

    /// Where sums are exact, the short way gives the same.
    #[test]
    fn exact_runs_are_the_contracts_fma() {
        let bits = [
            0u32,
            1,
            0x8000_0001,
            0x3f80_0000,
            0xbf7f_ffff,
            0x3dcc_cccd,
            0x4b00_0001,
            0x7f7f_ffff,
            0x7f80_0000,
            0x0080_0000,
        ];
        let mut exact_pairs = 0;
        for (start, delta) in bits.iter().flat_map(|&start| bits.map(|delta| (start, delta))) {
            let size = 1 << 20;
            let dimension = crate::plan::fill_value_sequence::Dimension { size, stride: 1, step: 1 };
            let floats = Floats::new(f32::from_bits(start), f32::from_bits(delta), &[dimension]);
            exact_pairs += u32::from(floats.exact);
            let mut run = [0.0; 300];
            for first in [0, 70_000, size - 300] {
                floats.write(first, 1, &mut run);
                for (j, &found) in run.iter().enumerate() {
                    let required = f32::from_bits(exact::fill_f32(first + j as u32, start, delta));
                    let same = found.to_bits() == required.to_bits() || (found.is_nan() && required.is_nan());
                    assert!(same, "{} · {delta:#x} + {start:#x} is {found}, must be {required}", first + j as u32);
                }
            }
        }
        assert!((10..90).contains(&exact_pairs), "{exact_pairs}");
        let dimension = crate::plan::fill_value_sequence::Dimension { size: 1 << 30, stride: 1, step: 1 };
        assert!(Floats::new(0.0, 1.0, &[dimension]).exact, "what most sequences are");
        assert!(!Floats::new(1.0e8, 1.0e-9, &[dimension]).exact, "a sum of 27 + 30 bits and more");
    }

    /// Indices that no test machine's memory reaches, up to the last there can be.
    #[test]
    fn float_is_the_contracts_fma_at_every_index() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 32) as u32
        };
        for n in 0..1_000_000 {
            let i = if n % 4 == 0 { u32::MAX - 1 - n } else { random() };
            let (start, delta) = (random(), random());
            let found = float(i, f32::from_bits(start), f32::from_bits(delta));
            let required = f32::from_bits(exact::fill_f32(i, start, delta));
            let same = found.to_bits() == required.to_bits() || (found.is_nan() && required.is_nan());
            assert!(same, "{i} · {delta:#x} + {start:#x} is {found}, must be {required}");
        }
    }
}
