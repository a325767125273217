//! The CPU backend: walks plans over slices, in safe Rust, on the calling thread. It serves machines with no GPU, and is
//! what the tests hold the GPU to.
//!
//! Contiguous runs are copied and reversed by the standard library. Lanes side by side are reversed in a tile, a copy of
//! some of them that the cache holds (`tile`), those of bytes transposed sixteen at a time (`byte_lanes`).

mod byte_lanes;
pub(crate) mod fill_value_sequence;
mod line;
pub(crate) mod reverse_subsequences;
mod tile;

/// The memory of an operator's tensors. Every slice begins at its tensor's first element, aligned to it.
pub(crate) struct Operands<'a> {
    /// The bytes of the first input; `None` where the output is the input, or there is none.
    pub input: Option<&'a [u8]>,
    /// The bytes of a SequenceLengthsTensor, if there is one.
    pub lengths: &'a [u8],
    pub output: &'a mut [u8],
}

/// Visits every coordinate of `sizes` in row-major order, with its offsets in `N` tensors of those strides.
fn for_each<const N: usize>(sizes_and_strides: &[(u32, [u32; N])], mut visit: impl FnMut([usize; N])) {
    let Some(((inner, inner_strides), outer)) = sizes_and_strides.split_last() else {
        return visit([0; N]);
    };
    let mut coordinate = vec![0; outer.len()];
    let mut row = [0; N];
    loop {
        let mut at = row;
        for _ in 0..*inner {
            visit(at);
            (0..N).for_each(|n| at[n] += inner_strides[n] as usize);
        }
        let Some(d) = (0..outer.len()).rev().find(|&d| coordinate[d] + 1 < outer[d].0) else {
            return;
        };
        coordinate[d] += 1;
        coordinate[d + 1..].fill(0);
        let offset = |n| {
            outer.iter().zip(&coordinate).map(|((_, strides), &c): (_, &u32)| c as usize * strides[n] as usize).sum()
        };
        row = std::array::from_fn(offset);
    }
}
