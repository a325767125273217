//! The strides of `torch.empty_like`: `at::empty_like` and `at::infer_dense_strides` in ATen.

/// The most dimensions of a tensor: those of PyTorch's own operators.
pub const MAX_RANK: usize = 64;

/// The strides, in elements, of an output of the same shape. A dense input's strides stay. Other inputs keep only the order of their
/// dimensions.
pub fn empty_like(sizes: &[i64], strides: &[i64]) -> [i64; MAX_RANK] {
    let (rank, mut output) = (sizes.len(), [0; MAX_RANK]);
    if is_dense(sizes, strides) {
        output[..rank].copy_from_slice(strides);
        return output;
    }
    let mut order = [0; MAX_RANK];
    let order = &mut order[..rank];
    sort(order, |outer, inner| {
        // Broadcast dimensions stay where they are.
        if strides[outer] == 0 || strides[inner] == 0 {
            return None;
        }
        match strides[outer].cmp(&strides[inner]) {
            std::cmp::Ordering::Equal => (sizes[outer] > sizes[inner]).then_some(true),
            order => Some(order.is_gt()),
        }
    });
    let mut packed = 1i64;
    for &dimension in order.iter() {
        output[dimension] = packed;
        packed = packed.saturating_mul(sizes[dimension].max(1));
    }
    output
}

/// Whether the elements fill a range of memory, each place once. Dimensions may be in any order. PyTorch counts every empty tensor.
fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    if sizes.contains(&0) {
        return true;
    }
    let mut order: [usize; MAX_RANK] = std::array::from_fn(|dimension| dimension);
    let order = &mut order[..sizes.len()];
    order.sort_by_key(|&dimension| (sizes[dimension] < 2, strides[dimension]));
    let mut packed = 1i64;
    order.iter().take_while(|&&dimension| sizes[dimension] >= 2).all(|&dimension| {
        let fits = strides[dimension] == packed;
        packed = packed.saturating_mul(sizes[dimension]);
        fits
    })
}

/// Insertion sort of the dimensions, from the innermost on. `swaps` says whether two dimensions must change places. `None` is "they are not
/// comparable": the search goes on with the next dimension.
fn sort(order: &mut [usize], swaps: impl Fn(usize, usize) -> Option<bool>) {
    let rank = order.len();
    order.iter_mut().enumerate().for_each(|(at, dimension)| *dimension = rank - 1 - at);
    for start in 1..rank {
        let mut moving = start;
        for other in (0..start).rev() {
            match swaps(order[other], order[moving]) {
                Some(true) => {
                    order.swap(other, moving);
                    moving = other;
                }
                Some(false) => break,
                None => {}
            }
        }
    }
}
