//! A cache line of neighbouring lanes.

/// A cache line of a row: 64 bytes.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Line<T, const LANES: usize>(pub [T; LANES]);

/// Swaps elements one by one, lane by lane.
pub(super) fn swap<T, const LANES: usize>(strip: &mut [Line<T, LANES>], lengths: &[usize; LANES]) {
    for (j, &length) in lengths.iter().enumerate() {
        let (front, back) = strip[..length].split_at_mut(length / 2);
        for (a, b) in front.iter_mut().zip(back.iter_mut().rev()) {
            std::mem::swap(&mut a.0[j], &mut b.0[j]);
        }
    }
}
