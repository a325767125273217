//! From values to places on an axis.

use super::{percent, significant};

/// A scale of positive numbers, with the places that are named.
pub struct Scale {
    least: f64,
    most: f64,
    logarithmic: bool,
    pub ticks: Vec<f64>,
}

impl Scale {
    /// From 0 on in equal steps, up to three times the whole; from there on logarithmic.
    pub fn of_fractions(values: impl Iterator<Item = f64> + Clone) -> Self {
        let most = values.clone().fold(1.0, f64::max);
        if most > 3.0 {
            return Self::logarithmic(values.chain([1.0]));
        }
        let step = if most <= 1.5 { 0.25 } else { 0.5 };
        let steps = (most / step - 0.02).ceil().max(1.0 / step);
        let ticks = (0..=steps as u32).map(|n| f64::from(n) * step).collect();
        Self { least: 0.0, most: steps * step, logarithmic: false, ticks }
    }

    /// Around all values, and wide enough to be read.
    pub fn logarithmic(values: impl Iterator<Item = f64>) -> Self {
        let values = values.filter(|value| value.is_finite() && *value > 0.0);
        let (least, most) =
            values.fold((f64::INFINITY, 0.0), |(least, most), value| (value.min(least), value.max(most)));
        // Values beyond that are drawn at its ends.
        let (least, most) = if least > most { (1.0, 1.0) } else { (least.clamp(1e-30, 1e30), most.clamp(1e-30, 1e30)) };
        let margin = 1.1f64.max((most / least).powf(0.03));
        let (least, most) = (least / margin, most * margin);
        let close = most / least < 5.0;
        let steps: &[f64] = if close {
            &[1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.5]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let decades = (least.log10().floor() as i32..=most.log10().ceil() as i32).map(|power| 10f64.powi(power));
        let mut ticks: Vec<f64> = decades.flat_map(|decade| steps.iter().map(move |step| step * decade)).collect();
        if most / least > 1e4 {
            ticks = ticks.into_iter().step_by(3).collect();
        }
        ticks.retain(|tick| (least..=most).contains(tick));
        Self { least, most, logarithmic: true, ticks }
    }

    /// Around all values, in powers of two.
    pub fn binary(values: impl Iterator<Item = f64>) -> Self {
        let mut scale = Self::logarithmic(values);
        let powers = (0..63).step_by(if scale.most / scale.least > 1e4 { 5 } else { 2 }).map(|power| 2f64.powi(power));
        scale.ticks = powers.filter(|tick| (scale.least..=scale.most).contains(tick)).collect();
        scale
    }

    pub fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// Where a value lies, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let place = if self.logarithmic {
            (value / self.least).ln() / (self.most / self.least).ln()
        } else {
            (value - self.least) / (self.most - self.least)
        };
        place.clamp(0.0, 1.0)
    }
}

/// A tick of a scale of percents.
pub fn percent_tick(value: f64) -> String {
    if value > 0.0 && value < 0.01 {
        return format!("{} %", tick(value * 100.0));
    }
    percent(value)
}

/// A tick with no more digits than it needs.
pub fn tick(value: f64) -> String {
    let text = significant(value, 3);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scale_is_finite_and_has_ticks() {
        let all: [&[f64]; 7] =
            [&[], &[0.0], &[1.0], &[1.0, 1.02], &[1e300, 1e-300], &[f64::INFINITY, f64::NAN, 3.0], &[5e-324, f64::MAX]];
        for values in all {
            let values = || values.iter().copied().chain([1.0]);
            for scale in [Scale::of_fractions(values()), Scale::logarithmic(values()), Scale::binary(values())] {
                assert!(!scale.ticks.is_empty() && scale.ticks.len() < 64, "{:?}", scale.ticks);
                assert!(values()
                    .chain(scale.ticks.iter().copied())
                    .all(|value| (0.0..=1.0).contains(&scale.place(value)) || value.is_nan()));
            }
        }
    }

    #[test]
    fn what_is_far_above_the_whole_has_a_place_of_its_own() {
        let (low, high) =
            (Scale::of_fractions([0.2, 1.3].into_iter()), Scale::of_fractions([0.2, 4.0, 8.0].into_iter()));
        assert!(!low.is_logarithmic() && low.place(1.3) > low.place(1.2) && low.place(1.3) < 1.0);
        assert!(high.is_logarithmic() && high.place(8.0) > high.place(4.0) && high.place(8.0) < 1.0);
    }
}
