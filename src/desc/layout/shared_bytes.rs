//! Decides whether two strided tensors share a byte, as an operator's input and output must not.
//!
//! They do if Σ aᵢ·strideᵢ − Σ bⱼ·strideⱼ is the distance of their first elements. With bⱼ counted from the end, all
//! terms are positive. `is_reached` searches them from the largest on, within what those after it can reach. Equal
//! strides are one term, so that views of one array need few steps.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::overlap::{gcd, Dimension};

/// Sizes, strides, and the bytes of an element.
pub(crate) type Layout<'a> = (&'a [u32], &'a [u32], u32);

/// Whether two tensors share a byte. The second one's first element is `distance` bytes behind that of the first. A
/// search that does not end in a million steps counts as found.
pub(crate) fn share_a_byte([first, second]: [Layout<'_>; 2], distance: i64) -> bool {
    let mut reaches = BTreeMap::new();
    let mut target = distance;
    for Dimension { stride, reach } in steps_of(first) {
        *reaches.entry(Reverse(stride)).or_default() += reach;
    }
    for Dimension { stride, reach } in steps_of(second) {
        *reaches.entry(Reverse(stride)).or_default() += reach;
        // Its coordinates are counted from the end, so that all terms are positive.
        target += reach * stride;
    }
    let mut terms = Vec::new();
    for (Reverse(stride), reach) in reaches {
        terms.push(Dimension { stride, reach });
    }
    is_reached(&terms, target, &mut 1_000_000)
}

/// The steps from a tensor's first byte to its others: along its dimensions, and along the bytes of an element.
fn steps_of((sizes, strides, width): Layout<'_>) -> Vec<Dimension> {
    let mut steps = Vec::new();
    for (&size, &stride) in sizes.iter().zip(strides) {
        if stride > 0 {
            steps.push(Dimension {
                stride: i64::from(stride) * i64::from(width),
                reach: i64::from(size) - 1,
            });
        }
    }
    steps.push(Dimension {
        stride: 1,
        reach: i64::from(width) - 1,
    });
    steps
}

/// Whether `target` is a sum of strides, each at most `reach` times. The terms are in falling order of their strides.
fn is_reached(terms: &[Dimension], target: i64, steps: &mut u32) -> bool {
    *steps = steps.saturating_sub(1);
    let total: i64 = terms.iter().map(|term| term.reach * term.stride).sum();
    if is_out_of_reach(terms, target, total) {
        return false;
    }
    if *steps == 0 {
        return true;
    }
    let Some((term, smaller)) = terms.split_first() else {
        return target == 0;
    };
    let of_smaller = total - term.reach * term.stride;
    // The smaller terms have to reach what is left.
    let fewest = (target - of_smaller + term.stride - 1).div_euclid(term.stride);
    let most = target.div_euclid(term.stride);
    (fewest.max(0)..=most.min(term.reach))
        .any(|times| is_reached(smaller, target - times * term.stride, steps))
}

/// Whether `target` cannot be a sum: what a common divisor of the larger strides leaves of it is more than the smaller
/// terms reach. `total` is the sum of all terms.
fn is_out_of_reach(terms: &[Dimension], target: i64, total: i64) -> bool {
    let mut divisor = 0;
    let mut of_smaller = total;
    for term in terms {
        divisor = gcd(divisor, term.stride);
        of_smaller -= term.reach * term.stride;
        if target.rem_euclid(divisor) > of_smaller {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::overlap::tests::each;
    use super::{share_a_byte, Layout};

    /// Two tensors at every distance, compared with the bytes that each has.
    #[test]
    fn tensors_that_share_a_byte_are_told_as_by_brute_force() {
        let bytes = |(sizes, strides, width): Layout<'_>, at: i64| {
            let count: u32 = sizes.iter().product();
            let element =
                move |n: u32| u64::from(n % sizes[0] * strides[0] + n / sizes[0] * strides[1]);
            let of = move |n| {
                (0..i64::from(width))
                    .map(move |byte| at + element(n) as i64 * i64::from(width) + byte)
            };
            (0..count)
                .flat_map(of)
                .collect::<std::collections::HashSet<i64>>()
        };
        let mut answers = [0; 2];
        each(4, 4, |numbers| {
            let [a, b, c, d] = numbers else {
                unreachable!()
            };
            for (strides, others, width) in [
                ([1 + a, 5], [1 + c, 7], 1),
                ([2, 7 * a], [3 * c, 7], 2),
                ([3, 8], [3, 8], 4),
            ] {
                let tensors = [
                    (&[1 + a, 1 + b][..], &strides[..], width),
                    (&[1 + c, 1 + d], &others, 2),
                ];
                for distance in -40..40 {
                    let required = !bytes(tensors[0], 0).is_disjoint(&bytes(tensors[1], distance));
                    assert_eq!(
                        share_a_byte(tensors, distance),
                        required,
                        "{tensors:?} {distance}"
                    );
                    answers[usize::from(required)] += 1;
                }
            }
        });
        assert!(answers[0].min(answers[1]) > 10_000, "{answers:?}");
        // Large ones take few steps: columns, and every third element beside every sixth.
        let large =
            |sizes, strides: [u32; 2], distance| share_a_byte([(sizes, &strides, 4); 2], distance);
        assert_eq!(
            [32, 28].map(|at| large(&[1 << 20, 8], [1000, 1], at)),
            [false, true]
        );
        assert_eq!(
            [4, 6 << 24].map(|at| large(&[1 << 24, 2], [6, 3], at)),
            [false, true]
        );
    }
}
