//! Division by a number that the host knows: the host computes a multiplier and shifts, and a thread multiplies.
//! `kernels/common.cuh` divides with them.

use crate::cuda::parameters::FastDiv;

impl FastDiv {
    /// Granlund & Montgomery, "Division by Invariant Integers using Multiplication" (1994), figure 4.1.
    pub fn new(divisor: u32) -> Self {
        debug_assert!(divisor > 0);
        let log = 32 - (divisor - 1).leading_zeros();
        let multiplier =
            ((1u64 << 32) * ((1u64 << log) - u64::from(divisor)) / u64::from(divisor) + 1) as u32;
        Self {
            divisor,
            multiplier,
            shift1: log.min(1),
            shift2: log.saturating_sub(1),
        }
    }
}

/// The multiplier by which `n * multiplier / 2³²` is `n / divisor` for all n below `numbers`, if there is one: see
/// `SmallDim` of kernels/reverse_elementwise.cu. The divisor is at least 2.
pub(crate) fn multiplier(divisor: u32, numbers: u32) -> Option<u32> {
    let multiplier = (1u64 << 32).div_ceil(divisor.into());
    let error = multiplier * u64::from(divisor) - (1 << 32);
    (u64::from(numbers - 1) * error < 1 << 32).then_some(multiplier as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Divides as `divide` in kernels/common.cuh does.
    fn divide(by: FastDiv, n: u32) -> u32 {
        let t = ((u64::from(by.multiplier) * u64::from(n)) >> 32) as u32;
        (t + ((n - t) >> by.shift1)) >> by.shift2
    }

    #[test]
    fn one_multiplication_divides_the_numbers_that_it_is_for() {
        let mut exact = 0;
        for divisor in (2..1000).chain([4096, 4097, 65535, 65536, 65537, 1 << 31, u32::MAX]) {
            for numbers in [
                divisor,
                1 << 16,
                1 << 20,
                (1 << 22) - 1,
                1 << 24,
                1 << 28,
                u32::MAX,
            ] {
                let Some(multiplier) = multiplier(divisor, numbers) else {
                    continue;
                };
                let last = (numbers - 1) / divisor * divisor;
                for n in [
                    0,
                    1,
                    divisor - 1,
                    divisor,
                    last.saturating_sub(1),
                    last,
                    numbers - 1,
                    numbers / 2,
                ] {
                    let n = n.min(numbers - 1);
                    let quotient = (u64::from(n) * u64::from(multiplier)) >> 32;
                    assert_eq!(
                        quotient,
                        u64::from(n / divisor),
                        "{n} / {divisor}, below {numbers}"
                    );
                }
                exact += 1;
            }
        }
        assert!(exact > 4000, "{exact}");
        assert_eq!(multiplier(1000, 1 << 28), None);
    }

    #[test]
    fn fast_division_is_division() {
        let small = [1, 2, 3, 5, 7, 10, 255, 256, 257, 641, 65535, 65536, 65537];
        let large = [1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX];
        let edges: Vec<u32> = small.into_iter().chain(large).collect();
        let mut n = 12345u32;
        for divisor in edges.iter().copied().chain(1..2000) {
            let fast = FastDiv::new(divisor);
            for edge in edges.iter().copied().chain([0]) {
                for n in [
                    edge,
                    edge.wrapping_sub(1),
                    edge.wrapping_mul(divisor),
                    edge.wrapping_mul(divisor).wrapping_sub(1),
                ] {
                    assert_eq!(divide(fast, n), n / divisor, "{n} / {divisor}");
                }
            }
            for _ in 0..100 {
                n = n.wrapping_mul(1664525).wrapping_add(1013904223);
                assert_eq!(divide(fast, n), n / divisor, "{n} / {divisor}");
            }
        }
    }
}
