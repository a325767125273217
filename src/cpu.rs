//! The CPU backend: plain loops over plans, in safe Rust. It serves machines with no GPU, and is what the
//! tests hold the GPU to.

pub(crate) mod fill_value_sequence;
pub(crate) mod reverse_subsequences;

/// Visits every coordinate of `sizes` in row-major order.
fn for_each_coordinate(sizes: &[u32], mut visit: impl FnMut(&[u32])) {
    let mut coordinate = vec![0u32; sizes.len()];
    loop {
        visit(&coordinate);
        let Some(d) = (0..sizes.len()).rev().find(|&d| coordinate[d] + 1 < sizes[d]) else {
            return;
        };
        coordinate[d] += 1;
        coordinate[d + 1..].fill(0);
    }
}

/// Where a coordinate lies, in elements.
fn offset(coordinate: &[u32], strides: impl Iterator<Item = u32>) -> usize {
    coordinate.iter().zip(strides).map(|(&c, stride)| c as usize * stride as usize).sum()
}
