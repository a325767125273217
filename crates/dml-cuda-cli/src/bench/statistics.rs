//! Medians, quartiles and intervals of times.
//!
//! Times of a dispatch are no normal distribution: most lie close together, and some are much longer because something
//! else took the machine. Medians, quartiles and intervals are therefore made of ranks, which a few long times among many
//! hardly move. An interval of fewer than 10 samples spans all of them:
//!
//! ```text
//! sorted times   ├──┼┼┼┼┼┼──┼─────┼───────────────┤
//!                  k-th  median   k-th largest      the interval of the median
//! ```

use serde::Serialize;

/// The numbers from `low` to `high`. In JSON it is a list of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(into = "[f64; 2]")]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl From<Interval> for [f64; 2] {
    fn from(Interval { low, high }: Interval) -> Self {
        [low, high]
    }
}

impl Interval {
    /// The interval of a number that is known exactly.
    pub fn at(value: f64) -> Self {
        Self {
            low: value,
            high: value,
        }
    }
}

/// A ratio of two medians, and an interval that holds it with a probability of at least 95 % if both are of at least `FEW`
/// samples.
#[derive(Debug, PartialEq)]
pub struct Ratio {
    pub value: f64,
    pub interval: Interval,
}

/// The median of at least one sample.
pub fn median(samples: &[f64]) -> f64 {
    quartile(samples, 2.0)
}

/// How far the middle half of the samples spreads: (q75 − q25) / median.
pub fn noise(samples: &[f64]) -> f64 {
    (quartile(samples, 3.0) - quartile(samples, 1.0)) / median(samples)
}

/// A quantile of at least one sample, in quarters. Between two samples it is interpolated.
fn quartile(samples: &[f64], quarters: f64) -> f64 {
    let sorted = sorted(samples);
    let place = quarters / 4.0 * (sorted.len() - 1) as f64;
    let (below, above) = (
        sorted[place.floor() as usize],
        sorted[place.ceil() as usize],
    );
    below + (above - below) * place.fract()
}

/// The samples from the smallest to the largest.
pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The geometric mean, in which 2× and 0.5× cancel out. None without values.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    Some((sum / values.len() as f64).exp())
}

/// With fewer values, the interval of a median spans all of them, and is still too narrow.
pub const FEW: usize = 7;

/// An interval that holds the median of at least `FEW` samples with a probability of at least 97.5 %, whatever the
/// distribution: from the k-th smallest to the k-th largest value, by the binomial distribution of the number of values
/// below the median (order statistics).
fn median_interval(samples: &[f64]) -> Interval {
    let sorted = sorted(samples);
    let count = sorted.len();
    // The probability that the median is below the k-th smallest value, or above the k-th largest.
    let mut outside = 0.0;
    let mut logarithm = count as f64 * 0.5f64.ln();
    let mut k = 0;
    while outside + 2.0 * logarithm.exp() <= 0.025 {
        outside += 2.0 * logarithm.exp();
        logarithm += ((count - k) as f64 / (k + 1) as f64).ln();
        k += 1;
    }
    let at = k.saturating_sub(1);
    Interval {
        low: sorted[at],
        high: sorted[count - 1 - at],
    }
}

/// The ratio of the medians of `a` and `b`. With at least `FEW` samples, each median is outside of its interval in at most
/// 2.5 % of all cases, so that both are inside in at least 95 % (Bonferroni), and the ratio is between those of the
/// intervals' ends.
pub fn ratio(a: &[f64], b: &[f64]) -> Ratio {
    let (dividend, divisor) = (median_interval(a), median_interval(b));
    Ratio {
        value: median(a) / median(b),
        interval: Interval {
            low: dividend.low / divisor.high,
            high: dividend.high / divisor.low,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_samples() {
        let samples = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(
            [1.0, 2.0, 3.0].map(|quarters| quartile(&samples, quarters)),
            [1.75, 2.5, 3.25]
        );
        assert_eq!(
            (noise(&samples), median(&[7.0]), noise(&[7.0])),
            (0.6, 7.0, 0.0)
        );
    }

    #[test]
    fn an_interval_of_a_median_knows_the_number_of_samples() {
        let counted = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        // Tables of order statistics: at 97.5 % or a little more, 1 to 7, 1 to 9, 2 to 9, 2 to 11, 9 to 22, 39 to 62.
        for (count, interval) in [
            (1, (1, 1)),
            (7, (1, 7)),
            (9, (1, 9)),
            (10, (2, 9)),
            (12, (2, 11)),
            (30, (9, 22)),
            (100, (39, 62)),
        ] {
            assert_eq!(
                <[f64; 2]>::from(median_interval(&counted(count))),
                [interval.0, interval.1].map(f64::from),
                "{count}"
            );
        }
        let Ratio { value, interval } = ratio(&counted(30), &[10.0; 30]);
        assert_eq!((value, <[f64; 2]>::from(interval)), (1.55, [0.9, 2.2]));
        assert_eq!(
            (geometric_mean(&[2.0, 0.5]), geometric_mean(&[])),
            (Some(1.0), None)
        );
    }
}
