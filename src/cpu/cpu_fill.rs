//! FILL_VALUE_SEQUENCE on the CPU.
//!
//! A run is the innermost dimension. Its elements are computed from the index of its first element, by a loop that the
//! compiler vectorizes for each arithmetic. Runs that are not contiguous, or not aligned, are computed 256 elements at a
//! time in a buffer, and copied element by element. Floats are rounded as `kernels/fill_value_sequence.cu` describes.

use bytemuck::{bytes_of, Pod};
use half::f16;
use half::slice::HalfFloatSliceExt;
use multiversion::multiversion;
use multiversion::target::target_cfg_f;

use super::{for_each, whole_mut, Operands};
use crate::plan::fill_plan::{Arithmetic, Dimension, Plan};
use crate::plan::StridedDimension;

/// FLOAT16 elements that are computed in FLOAT32 at a time.
const WIDENED: usize = 1024;

/// Writes the sequence to the output tensor.
pub(crate) fn run(plan: &Plan, operands: Operands<'_>) {
    let (dimensions, out) = (&plan.dimensions, operands.output);
    /// Indices do not wrap, so a run's elements are multiples of one distance apart.
    macro_rules! integers {
        ($type:ty) => {{
            let (start, delta) = (plan.start as $type, plan.delta as $type);
            fill(dimensions, out, |first, step, run: &mut [$type]| {
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
            let [start, delta] = [plan.start, plan.delta].map(|bits| f32::from_bits(bits as u32));
            fill(dimensions, out, |first, step, run| {
                fused(first, step, start, delta, run)
            });
        }
        Arithmetic::Float64 => {
            let [start, delta] = [plan.start, plan.delta].map(f64::from_bits);
            fill(dimensions, out, |first, step, run| {
                fused_f64(first, step, start, delta, run)
            });
        }
        Arithmetic::Float16 => {
            let [start, delta] =
                [plan.start, plan.delta].map(|bits| f16::from_bits(bits as u16).to_f32());
            let mut wide = [0.0; WIDENED];
            fill(dimensions, out, |first, step, run: &mut [f16]| {
                for (n, part) in run.chunks_mut(wide.len()).enumerate() {
                    let wide = &mut wide[..part.len()];
                    fused(
                        first + (n * WIDENED) as u32 * step,
                        step,
                        start,
                        delta,
                        wide,
                    );
                    part.convert_from_f32_slice(wide);
                }
            });
        }
    }
}

/// A run of float values: rounds the index to the nearest float, then does one fused multiply-add. Compiled twice on
/// x86: once for processors with a fused multiply-add instruction, once for others, which compute the same bits more
/// slowly. It does not call the C library's function, because MinGW's rounds twice.
#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn fused(first: u32, step: u32, start: f32, delta: f32, run: &mut [f32]) {
    for (j, element) in run.iter_mut().enumerate() {
        let index = first.wrapping_add((j as u32).wrapping_mul(step)) as f32;
        *element = if target_cfg_f!(any(target_feature = "fma", target_arch = "aarch64")) {
            index.mul_add(delta, start)
        } else {
            libm::fmaf(index, delta, start)
        };
    }
}

/// Fills a run in double, where every index is exact, like `fused` in single.
#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn fused_f64(first: u32, step: u32, start: f64, delta: f64, run: &mut [f64]) {
    for (j, element) in run.iter_mut().enumerate() {
        let index = f64::from(first.wrapping_add((j as u32).wrapping_mul(step)));
        *element = if target_cfg_f!(any(target_feature = "fma", target_arch = "aarch64")) {
            index.mul_add(delta, start)
        } else {
            libm::fma(index, delta, start)
        };
    }
}

/// Calls `write` for every run of elements, or for each 256 elements of a run that is copied, with the first index and
/// the step of the index.
fn fill<T: Pod + Default>(
    dimensions: &[Dimension],
    out: &mut [u8],
    mut write: impl FnMut(u32, u32, &mut [T]),
) {
    let (inner, outer) = dimensions.split_last().unwrap_or((
        &Dimension {
            size: 1,
            stride: 1,
            step: 0,
        },
        &[],
    ));
    let outer: Vec<_> = outer
        .iter()
        .map(|d| StridedDimension::new(d.size, [d.stride, d.step]))
        .collect();
    if inner.stride == 1 && (out.as_ptr() as usize).is_multiple_of(align_of::<T>()) {
        let out = whole_mut(out);
        for_each(&outer, |[at, first]| {
            write(
                first as u32,
                inner.step,
                &mut out[at..at + inner.size as usize],
            )
        });
        return;
    }
    let mut run = [T::default(); 256];
    for_each(&outer, |[at, first]| {
        let elements = out[at * size_of::<T>()..]
            .chunks_exact_mut(size_of::<T>())
            .step_by(inner.stride as usize);
        for (j, element) in elements.take(inner.size as usize).enumerate() {
            if j % run.len() == 0 {
                let left = run.len().min(inner.size as usize - j);
                write(
                    first as u32 + j as u32 * inner.step,
                    inner.step,
                    &mut run[..left],
                );
            }
            element.copy_from_slice(bytes_of(&run[j % run.len()]));
        }
    });
}

#[cfg(all(test, in_repository))]
mod tests {
    use super::fused;
    use crate::dml_cuda_testing::exact;

    /// Tests whichever version the processor selects, up to the highest possible index: no test machine has the memory
    /// to reach it with a tensor.
    #[test]
    fn fused_is_the_contracts_fma_at_every_index() {
        let mut state = 1u64;
        let mut random = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 32) as u32
        };
        let mut run = [0.0; 37];
        for n in 0..30_000 {
            let step = random() % 5;
            let first = if n % 4 == 0 {
                u32::MAX - 1 - step * run.len() as u32 - n
            } else {
                random() >> 3
            };
            let (start, delta) = (random(), random());
            fused(
                first,
                step,
                f32::from_bits(start),
                f32::from_bits(delta),
                &mut run,
            );
            for (j, found) in run.iter().enumerate() {
                let i = first + j as u32 * step;
                let required = f32::from_bits(exact::fill_f32(i, start, delta));
                // The version for processors without the instruction.
                let computed = libm::fmaf(i as f32, f32::from_bits(delta), f32::from_bits(start));
                for found in [*found, computed] {
                    let same = found.to_bits() == required.to_bits()
                        || (found.is_nan() && required.is_nan());
                    assert!(
                        same,
                        "{i} · {delta:#x} + {start:#x} is {found}, but must be {required}"
                    );
                }
            }
        }
    }
}
