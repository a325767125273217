//! Medians and quartiles.

/// Where samples lie.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quartiles {
    pub lower: f64,
    pub median: f64,
    pub upper: f64,
}

impl Quartiles {
    /// Of one sample or more.
    pub fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |quarters: f64| {
            let place = quarters / 4.0 * (sorted.len() - 1) as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Self { lower: at(1.0), median: at(2.0), upper: at(3.0) }
    }

    /// (q75 − q25) / median.
    pub fn noise(&self) -> f64 {
        (self.upper - self.lower) / self.median
    }
}

/// The geometric mean; none of nothing.
pub fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value.ln(), count + 1));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_samples() {
        let quartiles = Quartiles::of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!(quartiles, Quartiles { lower: 1.75, median: 2.5, upper: 3.25 });
        assert_eq!(quartiles.noise(), 0.6);
        assert_eq!(Quartiles::of(&[7.0]), Quartiles { lower: 7.0, median: 7.0, upper: 7.0 });
    }

    #[test]
    fn a_geometric_mean_is_of_ratios() {
        assert_eq!(geometric_mean([2.0, 0.5].into_iter()), Some(1.0));
        assert_eq!(geometric_mean(std::iter::empty()), None);
    }
}
