//! The strides of `torch.empty_like`: `at::empty_like` and `at::infer_dense_strides` in ATen.

use std::cmp::Ordering::{Equal, Greater, Less};

/// The most dimensions of a tensor: those of PyTorch's own operators.
pub const MAX_RANK: usize = 64;

/// The strides, in elements, of an output of the same shape. A dense input's strides stay. Other inputs keep only the
/// order of their dimensions.
pub fn empty_like(sizes: &[i64], strides: &[i64]) -> [i64; MAX_RANK] {
    let (rank, mut output) = (sizes.len(), [0; MAX_RANK]);
    if is_dense(sizes, strides) {
        output[..rank].copy_from_slice(strides);
        return output;
    }
    // Dimensions that are equal are not comparable: the search goes on with the next one. Broadcast dimensions stay
    // where they are.
    let compare = |outer: usize, inner: usize| match strides[outer].min(strides[inner]) {
        0 => Equal,
        _ => strides[outer].cmp(&strides[inner]).then(sizes[outer].cmp(&sizes[inner]).max(Equal)),
    };
    // An insertion sort, from the innermost dimension on.
    let mut order: [usize; MAX_RANK] = std::array::from_fn(|n| rank.saturating_sub(n + 1));
    for start in 1..rank {
        let mut moving = start;
        for other in (0..start).rev() {
            match compare(order[other], order[moving]) {
                Less => break,
                Equal => {}
                Greater => {
                    order.swap(other, moving);
                    moving = other;
                }
            }
        }
    }
    let mut packed = 1i64;
    for &dimension in &order[..rank] {
        output[dimension] = packed;
        packed = packed.saturating_mul(sizes[dimension].max(1));
    }
    output
}

/// Whether the elements fill a range of memory, each place once. Dimensions may be in any order. PyTorch counts every
/// empty tensor.
fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let moving = || sizes.iter().zip(strides).filter(|(&size, _)| size > 1);
    let mut packed = 1i64;
    for _ in moving() {
        let Some((&size, _)) = moving().find(|(_, &stride)| stride == packed) else { return sizes.contains(&0) };
        packed = packed.saturating_mul(size);
    }
    true
}
