//! Decides whether two coordinates of a strided tensor share an element, exactly and in bounded time.
//!
//! They do if Σ dᵢ·strideᵢ = 0 for some d, not all zero, with |dᵢ| < sizeᵢ. NumPy solves the same problem for arrays
//! ("internal overlap") and limits its search. Here the search always ends: a tensor that gets this far has Πsizes ≤
//! span < 2³², so there are fewer than 2⁸·2³² = 2⁴⁰ differences.
//!
//! 1. *Split.* If the strides from some dimension up have a common divisor above the reach of all smaller ones, a sum
//!    can only be zero if both parts are zero. The parts are then searched separately. Packed, padded, permuted and
//!    interleaved layouts split into single dimensions, at the cost of a sort.
//! 2. *Two dimensions in closed form*: the smallest d with d₁·s₁ = d₂·s₂ is s₂/g, s₁/g.
//! 3. *Meet in the middle*: divides the dimensions into two halves, sorts the sums of the smaller half, and looks up
//!    those of the other. The worst legal layouts need about 5 million look-ups.

/// One dimension of size above 1: its stride, and the largest difference of two of its coordinates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dimension {
    pub stride: i64,
    pub reach: i64,
}

impl Dimension {
    /// The largest difference of two offsets along this dimension.
    fn span(self) -> i128 {
        i128::from(self.reach) * i128::from(self.stride)
    }
}

/// Whether two coordinates of a tensor with these sizes and strides share an element.
pub(crate) fn has_overlap(sizes: &[u32], strides: &[u32]) -> bool {
    let mut dimensions = Vec::new();
    for (&size, &stride) in sizes.iter().zip(strides) {
        if size > 1 {
            dimensions.push(Dimension {
                stride: i64::from(stride),
                reach: i64::from(size) - 1,
            });
        }
    }
    dimensions.sort_unstable_by_key(|dimension| dimension.stride);

    // The searches below are bounded only for tensors with fewer elements than they span.
    let mut count = 1u128;
    let mut span = 1u128;
    for dimension in &dimensions {
        if dimension.stride == 0 {
            return true;
        }
        count = count.saturating_mul(dimension.reach as u128 + 1);
        span += dimension.span() as u128;
    }
    count > span || split(&dimensions).into_iter().any(group_overlaps)
}

/// Splits dimensions, sorted by stride, into groups whose sums cannot cancel each other.
fn split(dimensions: &[Dimension]) -> Vec<&[Dimension]> {
    let mut groups = Vec::new();
    let (mut begin, mut reach) = (0, 0i128);
    for at in 0..dimensions.len() {
        let mut divisor = 0;
        for dimension in &dimensions[at..] {
            divisor = gcd(divisor, dimension.stride);
        }
        if at > begin && i128::from(divisor) > reach {
            groups.push(&dimensions[begin..at]);
            begin = at;
        }
        reach += dimensions[at].span();
    }
    groups.push(&dimensions[begin..]);
    groups
}

fn group_overlaps(group: &[Dimension]) -> bool {
    match *group {
        [] | [_] => false,
        [a, b] => {
            let divisor = gcd(a.stride, b.stride);
            b.stride / divisor <= a.reach && a.stride / divisor <= b.reach
        }
        _ => meet_in_the_middle(group),
    }
}

/// How many divisions a look-up of a sum is taken to cost. It is a binary search.
const DIVISIONS_OF_A_LOOK_UP: u128 = 4;

/// Searches a group of three dimensions or more.
fn meet_in_the_middle(group: &[Dimension]) -> bool {
    let group = within_reach(group);
    if group.len() < 3 {
        return group_overlaps(&group);
    }
    // Two methods: enumerate the sums of all but the largest dimension and solve that one by a division, or divide all
    // dimensions into two halves, and look the sums of one up in the other.
    let largest = (0..group.len())
        .max_by_key(|&d| group[d].reach)
        .unwrap_or(0);
    let by_division = sums(&without(&group, 1 << largest));
    let (halves, by_halves) = best_halves(&group);
    if by_division <= by_halves.saturating_mul(DIVISIONS_OF_A_LOOK_UP) {
        meets_by_division(&group, largest)
    } else {
        meets_by_halves(&group, halves)
    }
}

/// The group without the differences that are larger than what all other dimensions together can cancel.
fn within_reach(group: &[Dimension]) -> Vec<Dimension> {
    let total: i128 = group.iter().map(|dimension| dimension.span()).sum();
    let mut found = Vec::new();
    for &Dimension { stride, reach } in group {
        let others = total - i128::from(reach) * i128::from(stride);
        let reach = (others / i128::from(stride)).min(i128::from(reach)) as i64;
        if reach > 0 {
            found.push(Dimension { stride, reach });
        }
    }
    found
}

/// The halves of a group whose larger half has the fewest sums, as the mask of one half, and that number.
fn best_halves(group: &[Dimension]) -> (usize, u128) {
    let mut best = (1, u128::MAX);
    // The last dimension is always in the other half, because a mask and its complement are the same halves.
    for mask in 1..1 << (group.len() - 1) {
        let larger = sums(&without(group, mask)).max(sums(&without(group, !mask)));
        if larger < best.1 {
            best = (mask, larger);
        }
    }
    best
}

/// The number of sums that these dimensions' differences can have.
fn sums(dimensions: &[Dimension]) -> u128 {
    let mut count = 1u128;
    for dimension in dimensions {
        count = count.saturating_mul(2 * dimension.reach as u128 + 1);
    }
    count
}

/// Enumerates the sums of all dimensions but one, and divides.
fn meets_by_division(group: &[Dimension], divided: usize) -> bool {
    let (one, rest) = (group[divided], without(group, 1 << divided));
    any_positive_sum(&rest, &mut |sum| {
        sum % one.stride == 0 && (sum / one.stride).abs() <= one.reach
    })
}

/// Looks up the sums of one half in those of the other. The dimensions whose bit in `mask` is 0 are one half.
fn meets_by_halves(group: &[Dimension], mask: usize) -> bool {
    let mut halves = [without(group, mask), without(group, !mask)];
    halves.sort_by_key(|half| sums(half));
    let [small, large] = halves;
    // Half of the sums suffice: d and −d cancel together.
    let mut sums = Vec::new();
    let cancels_alone = any_positive_sum(&small, &mut |sum| {
        sums.push(sum.abs());
        sum == 0
    });
    if cancels_alone {
        return true;
    }
    sums.sort_unstable();
    any_positive_sum(&large, &mut |sum| {
        sum == 0 || sums.binary_search(&sum.abs()).is_ok()
    })
}

/// The dimensions whose bit in `mask` is 0.
fn without(group: &[Dimension], mask: usize) -> Vec<Dimension> {
    let mut kept = Vec::new();
    for (d, &dimension) in group.iter().enumerate() {
        if mask >> d & 1 == 0 {
            kept.push(dimension);
        }
    }
    kept
}

/// Calls `found` with the sum of every combination of differences whose first nonzero component is positive, until it
/// returns true.
fn any_positive_sum(dimensions: &[Dimension], found: &mut impl FnMut(i64) -> bool) -> bool {
    fn walk(dimensions: &[Dimension], sum: i64, found: &mut impl FnMut(i64) -> bool) -> bool {
        match dimensions.split_first() {
            None => {
                #[cfg(test)]
                tests::SUMS.set(tests::SUMS.get() + 1);
                found(sum)
            }
            Some((d, rest)) => (-d.reach..=d.reach).any(|k| walk(rest, sum + k * d.stride, found)),
        }
    }
    (0..dimensions.len()).any(|first| {
        let d = dimensions[first];
        (1..=d.reach).any(|k| walk(&dimensions[first + 1..], k * d.stride, found))
    })
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use super::{has_overlap, meets_by_division, meets_by_halves, Dimension};

    thread_local! {
        /// How many sums this thread has examined: the cost of a search.
        pub static SUMS: Cell<u64> = const { Cell::new(0) };
    }

    /// The answer, and how many sums were examined.
    fn counted(sizes: &[u32], strides: &[u32]) -> (bool, u64) {
        let before = SUMS.get();
        (has_overlap(sizes, strides), SUMS.get() - before)
    }

    fn brute_force(sizes: &[u32], strides: &[u32]) -> bool {
        let mut seen = std::collections::HashSet::new();
        let count: u32 = sizes.iter().product();
        (0..count).any(|mut n| {
            let mut offset = 0u64;
            for d in (0..sizes.len()).rev() {
                offset += u64::from(n % sizes[d]) * u64::from(strides[d]);
                n /= sizes[d];
            }
            !seen.insert(offset)
        })
    }

    /// Visits every list of `places` numbers below `choices`.
    pub fn each(choices: u32, places: usize, mut visit: impl FnMut(&[u32])) {
        let mut values = vec![0; places];
        for n in 0..choices.pow(places as u32) {
            let mut rest = n;
            for value in &mut values {
                *value = rest % choices;
                rest /= choices;
            }
            visit(&values);
        }
    }

    /// The search, and both of its methods, whichever one it would choose.
    #[test]
    fn every_small_layout_is_answered_as_by_brute_force() {
        let (mut layouts, mut searched) = (0, 0);
        let mut check = |rank: usize, largest_size: u32, largest_stride: u32| {
            each(largest_size, rank, |sizes| {
                let sizes: Vec<u32> = sizes.iter().map(|size| size + 1).collect();
                each(largest_stride + 1, rank, |strides| {
                    let required = brute_force(&sizes, strides);
                    assert_eq!(
                        has_overlap(&sizes, strides),
                        required,
                        "{sizes:?} {strides:?}"
                    );
                    layouts += 1;
                    if ![3, 4].contains(&rank) || sizes.contains(&1) || strides.contains(&0) {
                        return;
                    }
                    searched += u32::from(required);
                    let group = sizes.iter().zip(strides);
                    let group: Vec<Dimension> = group
                        .map(|(&size, &stride)| Dimension {
                            stride: stride.into(),
                            reach: i64::from(size) - 1,
                        })
                        .collect();
                    for divided in 0..rank {
                        assert_eq!(
                            meets_by_division(&group, divided),
                            required,
                            "{group:?}, {divided}"
                        );
                    }
                    for mask in 0..1 << rank {
                        assert_eq!(
                            meets_by_halves(&group, mask),
                            required,
                            "{group:?}, {mask:b}"
                        );
                    }
                });
            });
        };
        check(1, 6, 6);
        check(2, 6, 14);
        check(3, 4, 13);
        check(4, 3, 8);
        check(5, 2, 6);
        assert_eq!(layouts, 42 + 36 * 225 + 64 * 2744 + 81 * 6561 + 32 * 16807);
        assert!(searched > 1000, "{searched}");
    }

    /// Layouts without shortcuts: strides without structure, and as many elements as 2³² allows. Each overlaps at two
    /// coordinates with the given differences.
    #[test]
    fn overlaps_of_the_worst_layouts_are_found() {
        for (sizes, strides, apart) in [
            (
                &[15; 8][..],
                &[
                    10007, 10009, 10037, 99991, 1000003, 9999991, 99999989, 150000001,
                ][..],
                &[-13, -8, 1, 12, -11, -14, -12, 9][..],
            ),
            (
                &[83; 5],
                &[7, 591, 49993, 4149997, 44449999],
                &[-3, -1, -70, -42, 4],
            ),
            (
                &[23; 7],
                &[3, 71, 1637, 37663, 866261, 19923991, 158249999],
                &[0, 8, 7, -16, -21, -7, 1],
            ),
            (&[1600; 3], &[101, 161603, 2569999], &[-1126, -1526, 96]),
            (
                &[255; 4],
                &[3, 769, 196111, 16515073],
                &[-223, -162, -252, 3],
            ),
        ] {
            let distance: i64 = strides
                .iter()
                .zip(apart)
                .map(|(&stride, &d): (&u32, &i64)| i64::from(stride) * d)
                .sum();
            assert!(
                distance == 0
                    && sizes
                        .iter()
                        .zip(apart)
                        .all(|(&size, d)| d.abs() < i64::from(size)),
                "{sizes:?}"
            );
            let (overlaps, sums) = counted(sizes, strides);
            assert!(overlaps && sums < MOST_SUMS, "{sizes:?}: {sums} sums");
        }
    }

    /// A little more than the layouts below need.
    const MOST_SUMS: u64 = 300_000;

    /// Layouts without an overlap, which must be searched to the end.
    #[test]
    fn the_worst_layouts_end_soon() {
        // Each stride passes all smaller dimensions; then the last is 7·s₆ + 3·s₅ − 5·s₄ + 6·s₂.
        let mut strides = [1, 17, 277, 4523, 73973, 1209721, 19783397, 323509993];
        let mut layouts = vec![([16; 8], strides, false), ([8; 8], strides, false)];
        strides[7] = 7 * strides[6] + 3 * strides[5] - 5 * strides[4] + 6 * strides[2];
        layouts.push(([8; 8], strides, true));
        for (sizes, strides, expected) in layouts {
            let (overlaps, sums) = counted(&sizes, &strides);
            assert!(
                overlaps == expected && sums < MOST_SUMS,
                "{sizes:?} {strides:?}: {overlaps}, {sums} sums"
            );
        }
    }

    /// Layouts whose dimensions are nested, or that have more elements than they span, need no search.
    #[test]
    fn ordinary_layouts_take_no_search() {
        let padded = [14_000_000, 900_000, 60_000, 4000, 260, 17, 1];
        for (sizes, strides, expected) in [
            (
                &[16; 8][..],
                &[
                    1 << 28,
                    1 << 24,
                    1 << 20,
                    1 << 16,
                    1 << 12,
                    1 << 8,
                    1 << 4,
                    1,
                ][..],
                false,
            ),
            (&[15; 7], &padded, false),
            (&[65536, 65535], &[65535, 1], false), // close to 2³² elements
            (&[4, 5, 1, 1], &[5, 1, 0, 0], false),
            (&[1 << 16, 3, 1 << 14], &[1, 1 << 30, 1 << 16], false),
            (
                &[1 << 12; 8],
                &[101, 103, 107, 109, 113, 127, 131, 137],
                true,
            ),
            (
                &[16; 8],
                &[1, 17, 277, 4523, 73973, 1209721, 19783397, 323509993 / 2],
                true,
            ),
        ] {
            assert_eq!(
                counted(sizes, strides),
                (expected, 0),
                "{sizes:?} {strides:?}"
            );
        }
    }
}
