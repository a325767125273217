//! Outputs of small models in two runs: which are equal, and why others differ.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bench::record::Run;
use crate::bench::suite::checks::OVER_LONG_SHAPE;
use crate::bench::suite::manifest::OVER_LONG;

/// The outputs of the first run and of another.
#[derive(Serialize)]
pub struct Outputs {
    pub equal: usize,
    /// Those that must be equal and are not.
    pub different: Vec<String>,
    /// Why some of `different` differ.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, String>,
    /// Those that differ as documented, and how.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub expected: BTreeMap<String, String>,
    /// Those that the other run failed to write: name and error.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<String, String>,
    /// How many only one of the two runs has, and the other did not fail to write.
    #[serde(skip)]
    pub missing: usize,
    /// How many of `failed` did not fail in the first run.
    #[serde(skip)]
    pub newly_failed: usize,
}

impl Outputs {
    pub fn new(first: &Run, other: &Run) -> Self {
        let (mut equal, mut different) = (0, Vec::new());
        let (mut reasons, mut expected) = (BTreeMap::new(), BTreeMap::new());
        for (name, a) in &first.outputs {
            let Some(b) = other.outputs.get(name) else { continue };
            if a == b {
                equal += 1;
            } else if let Some(why) = over_long(name, (first, a), (other, b)) {
                expected.insert(name.clone(), why);
            } else {
                different.push(name.clone());
                if name.starts_with("check.fill.float32") && differ_in_last_bits(a, b) {
                    let why = "the last bits of FLOAT32: some adapters split the fused multiply-add";
                    reasons.insert(name.clone(), why.to_owned());
                }
            }
        }
        let alone = |run: &Run, from: &Run| {
            let is_alone =
                |name: &&String| !from.outputs.contains_key(*name) && !from.failed_outputs.contains_key(*name);
            run.outputs.keys().filter(is_alone).count()
        };
        let failed = other.failed_outputs.clone();
        let newly_failed = failed.keys().filter(|name| !first.failed_outputs.contains_key(*name)).count();
        let missing = alone(first, other) + alone(other, first);
        Self { equal, different, reasons, expected, failed, missing, newly_failed }
    }

    /// How many both runs wrote.
    pub fn shared(&self) -> usize {
        self.equal + self.different.len() + self.expected.len()
    }
}

/// DirectML's version in a run; an empty text if the run does not say it. `None` for other libraries.
pub fn directml(run: &Run) -> Option<&str> {
    let tool = &run.machine.tool;
    match tool.split_once("DirectML ") {
        Some((_, rest)) => rest.split([' ', ',', '+']).next(),
        None => {
            let tool = tool.to_ascii_lowercase();
            ["directml", "dxdispatch"].iter().any(|name| tool.starts_with(name)).then_some("")
        }
    }
}

/// How outputs with lengths above the axis size differ, if one is of DirectML and they differ in no other way.
fn over_long(name: &str, a: (&Run, &str), b: (&Run, &str)) -> Option<String> {
    let (version, directmls, other) = match (directml(a.0), directml(b.0)) {
        (Some(version), None) => (version, a.1, b.1),
        (None, Some(version)) => (version, b.1, a.1),
        _ => return None,
    };
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    let known = numbers.next().zip(numbers.next());
    let clamps = known.is_none_or(|version| version >= (1, 13));
    if !name.starts_with(OVER_LONG) || !differ_above_axis_only(directmls, other, clamps) {
        return None;
    }
    let does = if clamps { "clamps each index" } else { "does not clamp" };
    let version = if version.is_empty() { "1.13 or later" } else { version };
    Some(format!("DirectML {version} {does} where a length is above the axis size; the other clamps the length"))
}

/// Whether DirectML's output is the other's but for lanes whose length is above the axis size; if it clamps, also which elements are there.
fn differ_above_axis_only(directmls: &str, other: &str, clamps: bool) -> bool {
    let [before, axis, behind] = OVER_LONG_SHAPE.map(|size| size as usize);
    let count = before * axis * behind;
    if directmls.len() != other.len() || other.is_empty() || !other.len().is_multiple_of(count) {
        return false;
    }
    let digits = other.len() / count;
    let element = |text: &'_ str, at: usize| text.as_bytes()[at * digits..][..digits].to_vec();
    (0..count).all(|at| {
        let (batch, t, lane) = (at / (axis * behind), at / behind % axis, at % behind);
        // The lengths count up.
        let length = batch * behind + lane;
        if length > axis && !clamps {
            return true;
        }
        let source = (if t < length { length - 1 - t } else { t }).min(axis - 1);
        // Where the other output has that element of the input.
        let clamped = length.min(axis);
        let there = if source < clamped { clamped - 1 - source } else { source };
        element(directmls, at) == element(other, (batch * axis + there) * behind + lane)
    })
}

/// Whether floats differ by no more than two roundings of the largest of them.
fn differ_in_last_bits(a: &str, b: &str) -> bool {
    let floats = |text: &str| -> Option<Vec<f32>> {
        let digits = text.as_bytes().chunks(8);
        digits
            .map(|digits| {
                let bits = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
                Some(f32::from_bits(bits.swap_bytes()))
            })
            .collect()
    };
    let (Some(a), Some(b)) = (floats(a), floats(b)) else { return false };
    let largest = a.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= largest * f32::EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::compare::Comparison;
    use crate::bench::import::hexadecimal;

    /// The output of the model with one-byte elements, 0, 1, …, where `source` gives the index that is read.
    fn output(source: impl Fn(usize, usize) -> usize) -> String {
        let element = |at: usize| {
            let (batch, t, lane) = (at / 35, at / 5 % 7, at % 5);
            (batch * 7 + source(batch * 5 + lane, t)) * 5 + lane
        };
        (0..140).map(|at| format!("{:02x}", element(at))).collect()
    }

    fn run(tool: &str, output: &str) -> Run {
        let mut run = Run::default();
        tool.clone_into(&mut run.machine.tool);
        run.outputs.insert("over_long.x".to_owned(), output.to_owned());
        run
    }

    #[test]
    fn a_documented_difference_has_its_reason_and_any_other_has_none() {
        let turned = |length: usize, t: usize| if t < length { length - 1 - t } else { t };
        let clamped_length = output(|length, t| turned(length.min(7), t));
        let clamped_index = output(|length, t| turned(length, t).min(6));
        let not_clamped = output(|length, t| if length > 7 { 0 } else { turned(length, t) });
        let wrong = output(|_, t| t);
        let ours = run("dml-cuda 0.1.0", &clamped_length);
        let why = |tool: &str, output: &str| {
            let outputs = Outputs::new(&run(tool, output), &ours);
            assert_eq!(outputs.different.len() + outputs.expected.len(), 1);
            outputs.expected.into_values().next()
        };
        let new = "DxDispatch with DirectML 1.15.4";
        assert!(why(new, &clamped_index).is_some_and(|why| why.contains("DirectML 1.15.4 clamps each index")));
        assert!(why("dxdispatch", &clamped_index).is_some_and(|why| why.contains("1.13 or later clamps each index")));
        let old = "DxDispatch with DirectML 1.8.0";
        assert!(why(old, &not_clamped).is_some_and(|why| why.contains("DirectML 1.8.0 does not clamp")));
        assert_eq!(why(new, &not_clamped), None);
        assert_eq!((why(new, &wrong), why(old, &wrong)), (None, None));
        assert_eq!(why("another tool", &clamped_index), None);
        let guard =
            |output: &str| Comparison::new(&[run(new, output), ours.clone()], 5.0).regressions(false, false).join("; ");
        assert_eq!(guard(&clamped_index), "");
        assert!(guard(&wrong).contains("1 output differs"));
        assert_eq!(why(new, "00"), None);
    }

    #[test]
    fn floats_differ_in_their_last_bits_or_more() {
        let reason = |a: &[f32], b: &[f32]| {
            let mut runs = [Run::default(), Run::default()];
            for (run, values) in runs.iter_mut().zip([a, b]) {
                run.outputs.insert("check.fill.float32".to_owned(), hexadecimal(bytemuck::cast_slice(values)));
            }
            let outputs = Outputs::new(&runs[0], &runs[1]);
            assert_eq!(outputs.different.len(), 1, "a reason is no excuse");
            outputs.reasons.into_values().next()
        };
        assert!(reason(&[-3.7, -2e-8], &[-3.7, 0.0]).is_some_and(|why| why.contains("fused multiply-add")));
        assert_eq!(reason(&[-3.7, 0.1], &[-3.7, 0.2]), None);
        assert_eq!(reason(&[-3.7, 0.1], &[-3.7]), None);
    }
}
