//! A results file: samples of cases, outputs of small models, and what ran. docs/benchmark.md describes the format.
//!
//! ```text
//! { "schema": 2, "label", "machine": { … }, "timing", "samples", "planned", "notes", "suite",
//!   "cases":   [ { "case", "type", "mode", "bytes", "model", "dispatches", "each": [µs, …] }, … ],
//!   "outputs": { name: { "model", "bytes": "hexadecimal digits" } } }
//! ```
//!
//! Results files are kept for years and compared across releases. A member that is added later has a default, and the schema's
//! number grows only if an older release could misread a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::suite;
use super::work::Work;
use crate::model::file;
use crate::out::{in_file, shown};
use crate::schema;

/// The version of the schema that this program writes and reads.
pub const SCHEMA: u32 = 2;

/// The content of a results file.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(expecting = "an object")]
pub struct Results {
    pub schema: u32,
    /// The name of its file, without folder and ending.
    #[serde(skip)]
    pub file: String,
    /// Its name in reports.
    pub label: String,
    pub machine: Machine,
    /// How the samples were taken.
    pub timing: String,
    /// Samples of a case; 0 if unknown.
    #[serde(default)]
    pub samples: u32,
    /// Cases and outputs that there should be; 0 if unknown. A bench with fewer was interrupted.
    #[serde(default)]
    pub planned: usize,
    /// Notes for readers.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Tier and release of the cases; empty if unknown.
    #[serde(default)]
    pub suite: String,
    /// In the suite's order.
    pub cases: Vec<Timed>,
    /// The output of each small model.
    #[serde(default)]
    pub outputs: BTreeMap<String, Output>,
}

/// The program that ran, and its machine. Unknown strings are empty.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default)]
#[serde(expecting = "an object")]
pub struct Machine {
    /// Name and version of what was timed.
    pub tool: String,
    /// The commit of what was timed, if its program knows it.
    pub commit: String,
    /// The name of the GPU or the CPU.
    pub device: String,
    /// The version of the driver, and that of CUDA.
    pub driver: String,
    /// The clocks of the GPU while it worked.
    pub clocks: String,
    /// The processor and its cores.
    pub host: String,
    pub operating_system: String,
    /// RFC 3339, or a day.
    pub date: String,
    /// Without folders.
    pub command: String,
}

/// A case, timed or not.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(expecting = "an object")]
pub struct Timed {
    #[serde(flatten)]
    pub work: Work,
    /// Identifies descriptor, values and lengths; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Dispatches in an iteration.
    pub dispatches: u32,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The kernel that ran, with its variant; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    /// Microseconds of the case's own baseline, if it was timed with the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
}

/// Times are microseconds of a dispatch.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A sample of each iteration, in order, without the warm-up.
    Each(Vec<f64>),
    /// Medians of several iterations. Their samples are unknown.
    Medians(Vec<f64>),
    /// The output of a small model, in hexadecimal digits.
    Bytes(String),
    /// The case failed: the cause, in one line.
    Error(String),
    /// The device is known to be wrong here: why, in one line.
    NotCompared(String),
}

impl Outcome {
    /// The microseconds of a dispatch, or none if the case has no times.
    pub fn samples(&self) -> &[f64] {
        match self {
            Self::Each(samples) | Self::Medians(samples) => samples,
            _ => &[],
        }
    }

    /// Whether the case has times.
    pub fn has_samples(&self) -> bool {
        !self.samples().is_empty()
    }

    /// Adds the outcome of a second time.
    pub fn add(&mut self, later: Self) {
        match (self, later) {
            (Self::Each(samples), Self::Each(later))
            | (Self::Medians(samples), Self::Medians(later)) => samples.extend(later),
            // What fails once has failed.
            (earlier, failed @ Self::Error(_)) => *earlier = failed,
            _ => {}
        }
    }

    /// Why there are no samples.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Error(why) => Some(format!("failed: {why}")),
            Self::NotCompared(why) => Some(format!("not compared: {why}")),
            _ => None,
        }
    }

    /// Whether the case failed. A case that is known to be wrong has not failed.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

/// The output of a small model.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(expecting = "an object")]
pub struct Output {
    /// The model of the output, as in a case.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    #[serde(flatten)]
    pub written: Outcome,
    /// DirectML is known to compute other bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expected_to_differ: bool,
}

impl Results {
    /// Reads and checks a results file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = in_file(path);
        // It may come through a pipe, but not without end.
        let text = file::read_input(path, "")
            .and_then(file::text)
            .map_err(|error| failed(format!("the results cannot be read: {error}")))?;
        // Editors on Windows may add a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        schema::check(text, SCHEMA).map_err(failed)?;
        let mut results: Self = serde_json::from_str(text).map_err(|error| {
            failed(format!(
                "this is no results file: {}",
                shown(&schema::plain_message(&error))
            ))
        })?;
        results.complete();
        let stem = path.file_stem().unwrap_or_default();
        results.file = stem.to_string_lossy().into_owned();
        results.check().map_err(failed)?;
        Ok(results)
    }

    /// Adds what files of older releases do not say: which cases have interleaved sequences, and the driver in its own
    /// row, because 0.1.0 wrote its version before the clocks.
    fn complete(&mut self) {
        let machine = &mut self.machine;
        let old = machine.clocks.strip_prefix("driver ");
        if let Some((driver, clocks)) = old.and_then(|old| old.split_once(", ")) {
            machine.driver = format!("{driver}, {}", machine.driver);
            machine.clocks = clocks.to_owned();
        }
        let mut side_by_side = BTreeSet::new();
        for case in suite::all() {
            if let (Some(_), Some(work)) = (&case.descriptor, &case.work) {
                if work.side_by_side {
                    side_by_side.insert(&*work.case);
                }
            }
        }
        for Timed { work, .. } in &mut self.cases {
            work.side_by_side |= side_by_side.contains(&*work.case);
        }
    }

    /// Whether a file reads as results.
    pub fn is_at(path: &Path) -> bool {
        path.is_file() && Self::read(path).is_ok()
    }

    /// Fails if the figures of a case cannot be right.
    fn check(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for Timed {
            work,
            outcome,
            baseline,
            ..
        } in &self.cases
        {
            let wrong = outcome
                .samples()
                .iter()
                .chain(baseline)
                .find(|value| !(1e-6..=1e12).contains(*value));
            // The first one that holds. None of them can come from a bench, but files are edited and merged.
            let why = match (outcome, wrong) {
                _ if !seen.insert(work.name()) => "is there twice, but must be there once",
                _ if work.bytes == 0 => "has 0 bytes, but must move at least one",
                (Outcome::Each(samples) | Outcome::Medians(samples), _) if samples.is_empty() => {
                    "has no samples, but must have at least one"
                }
                (_, Some(wrong)) => {
                    &format!("has a time of {wrong:e}, but must be from 1e-6 to 1e12 microseconds")
                }
                _ => continue,
            };
            return Err(format!("the case '{}' {why}", shown(&work.name())));
        }
        Ok(())
    }

    /// The baselines that have samples.
    pub fn baselines(&self) -> impl Iterator<Item = &Timed> {
        self.cases
            .iter()
            .filter(|timed| timed.work.mode.is_baseline() && timed.outcome.has_samples())
    }

    /// How many of the planned cases and outputs are missing.
    pub fn missing(&self) -> usize {
        self.planned
            .saturating_sub(self.cases.len() + self.outputs.len())
    }

    /// The text of the file, with a line's end at its end.
    pub fn to_json(&self) -> Result<String, String> {
        Ok(serde_json::to_string_pretty(self).map_err(|error| error.to_string())? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn a_repetition_that_fails_is_a_failure() {
        let (mut twice, failed) = (Outcome::Each(vec![1.0]), Outcome::Error("why".to_owned()));
        twice.add(Outcome::Each(vec![2.0]));
        assert_eq!(twice, Outcome::Each(vec![1.0, 2.0]));
        twice.add(failed.clone());
        assert!(twice == failed && twice.is_failure());
        twice.add(Outcome::Each(vec![3.0]));
        assert_eq!(twice, failed);
    }
}
