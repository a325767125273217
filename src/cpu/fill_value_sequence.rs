//! FILL_VALUE_SEQUENCE on the CPU.

use half::f16;

use super::{for_each_coordinate, offset};
use crate::plan::fill_value_sequence::{Arithmetic, Dimension, Plan};

/// Writes the sequence to the bytes of the output tensor, which begin at its first element and are aligned
/// to it.
pub(crate) fn run(plan: &Plan, out: &mut [u8]) {
    let (start, delta, dimensions) = (plan.start, plan.delta, &plan.dimensions);
    match plan.arithmetic {
        Arithmetic::Int8 => {
            let (start, delta) = (start as u8, delta as u8);
            fill(dimensions, out, |i| start.wrapping_add((i as u8).wrapping_mul(delta)));
        }
        Arithmetic::Int16 => {
            let (start, delta) = (start as u16, delta as u16);
            fill(dimensions, typed(out), |i| start.wrapping_add((i as u16).wrapping_mul(delta)));
        }
        Arithmetic::Int32 => {
            let (start, delta) = (start as u32, delta as u32);
            fill(dimensions, typed(out), |i| start.wrapping_add(i.wrapping_mul(delta)));
        }
        Arithmetic::Int64 => {
            fill(dimensions, typed(out), |i| start.wrapping_add(u64::from(i).wrapping_mul(delta)));
        }
        Arithmetic::Float32 => {
            let (start, delta) = (f32::from_bits(start as u32), f32::from_bits(delta as u32));
            fill(dimensions, typed(out), |i| float(i, start, delta));
        }
        Arithmetic::Float16 => {
            let (start, delta) = (f16::from_bits(start as u16).to_f32(), f16::from_bits(delta as u16).to_f32());
            fill(dimensions, typed(out), |i| f16::from_f32(float(i, start, delta)));
        }
    }
}

/// The index rounded to the nearest float, then one fused multiply-add.
fn float(i: u32, start: f32, delta: f32) -> f32 {
    (i as f32).mul_add(delta, start)
}

fn fill<T: Copy>(dimensions: &[Dimension], out: &mut [T], value: impl Fn(u32) -> T) {
    let Some((inner, outer)) = dimensions.split_last() else {
        out[0] = value(0);
        return;
    };
    let sizes: Vec<u32> = outer.iter().map(|d| d.size).collect();
    for_each_coordinate(&sizes, |coordinate| {
        let at = offset(coordinate, outer.iter().map(|d| d.stride));
        let first = offset(coordinate, outer.iter().map(|d| d.step)) as u32;
        let values = (0..inner.size).map(|j| value(first + j * inner.step));
        if inner.stride == 1 {
            out[at..at + inner.size as usize].iter_mut().zip(values).for_each(|(element, value)| *element = value);
        } else {
            out[at..]
                .iter_mut()
                .step_by(inner.stride as usize)
                .zip(values)
                .for_each(|(element, value)| *element = value);
        }
    });
}

/// The whole elements of `bytes`.
pub(super) fn typed<T: bytemuck::Pod>(bytes: &mut [u8]) -> &mut [T] {
    let whole = bytes.len() / size_of::<T>() * size_of::<T>();
    bytemuck::cast_slice_mut(&mut bytes[..whole])
}

#[cfg(test)]
#[allow(dead_code)] // the tests of the public API use the rest
#[path = "../../tests/common/exact.rs"]
mod exact;

#[cfg(test)]
mod tests {
    use super::{exact, float};

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
