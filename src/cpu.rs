//! The CPU backend: walks plans over slices, in safe Rust, on the calling thread. It serves machines with no GPU, and
//! the tests compare the GPU with it.
//!
//! The standard library copies and reverses contiguous runs. Small blocks with one length move as single elements of
//! their size. Interleaved lanes are copied, some at a time, to a tile that fits in the cache, and are reversed there
//! (`transpose.rs`).

pub(crate) mod cpu_fill;
pub(crate) mod cpu_reverse;
mod transpose;

use bytemuck::Pod;

use crate::plan::StridedDimension;

/// The memory of an operator's tensors. Every slice begins at its tensor's first element, and need not be aligned to
/// it.
pub(crate) struct Operands<'a> {
    /// The bytes of the inputs, in the order of the descriptor's fields, without the first one if the output is the
    /// same memory.
    pub inputs: &'a [&'a [u8]],
    pub output: &'a mut [u8],
}

/// The whole elements of `bytes`.
fn whole<T: Pod>(bytes: &[u8]) -> &[T] {
    let length = bytes.len() / size_of::<T>() * size_of::<T>();
    bytemuck::cast_slice(&bytes[..length])
}

/// The whole elements of `bytes`, to write.
fn whole_mut<T: Pod>(bytes: &mut [u8]) -> &mut [T] {
    let length = bytes.len() / size_of::<T>() * size_of::<T>();
    bytemuck::cast_slice_mut(&mut bytes[..length])
}

/// Visits every coordinate of the dimensions in row-major order, with its offsets in the tensors.
fn for_each<const N: usize>(dimensions: &[StridedDimension<N>], mut visit: impl FnMut([usize; N])) {
    match dimensions.split_first() {
        Some(dimensions) => walk(dimensions, [0; N], &mut visit),
        None => visit([0; N]),
    }
}

fn walk<const N: usize>(
    (outer, inner): (&StridedDimension<N>, &[StridedDimension<N>]),
    mut at: [usize; N],
    visit: &mut impl FnMut([usize; N]),
) {
    for _ in 0..outer.size {
        match inner.split_first() {
            Some(inner) => walk(inner, at, visit),
            None => visit(at),
        }
        for (at, &stride) in at.iter_mut().zip(&outer.strides) {
            *at += stride as usize;
        }
    }
}
