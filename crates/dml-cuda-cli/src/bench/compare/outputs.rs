//! The outputs of small models in two results files, byte by byte.
//!
//! A bench times large models and keeps the outputs of small ones. Two programs that compute the same write the same bytes,
//! bit for bit, with one exception: DirectML does not clamp lengths above the size of the axis, and docs/directml.md
//! describes what it writes instead.
//!
//! ```text
//! first file: o = 00 01 02       equal        both are 00 01 02
//! other file: o = 00 01 03       different    unless docs/directml.md describes it: expected
//! ```

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bench::numbers::counted;
use crate::bench::results::{Outcome, Output, Results};

/// How the outputs of the first file and of another compare.
#[derive(Default, Serialize)]
pub struct Outputs {
    /// How many have the same bytes in both files.
    pub equal: usize,
    /// Names of outputs that must be equal and are not.
    pub different: Vec<String>,
    /// Whether a file of an older release does not say that its models of these are the same.
    pub of_unknown_models: bool,
    /// Names of outputs whose models differ between the two files.
    pub other_models: Vec<String>,
    /// Names of outputs that differ as docs/directml.md describes.
    pub expected: Vec<String>,
    /// Outputs that a program is known to get wrong: name and why.
    pub not_compared: BTreeMap<String, String>,
    /// Outputs that the other program failed to write: name and error.
    pub failed: BTreeMap<String, String>,
    /// How many only one of the two files has.
    pub missing: usize,
    /// How many of `failed` did not fail in the first file.
    #[serde(skip)]
    pub newly_failed: usize,
}

impl Outputs {
    /// Compares the outputs of two files by their names.
    pub fn new(first: &Results, other: &Results) -> Self {
        let mut found = Self::default();
        let is_directml = directml(first) || directml(other);
        for (name, output) in &other.outputs {
            found.add(name, first.outputs.get(name), output, is_directml);
        }
        for name in first.outputs.keys() {
            found.missing += usize::from(!other.outputs.contains_key(name));
        }
        found
    }

    /// Adds an output of the other file, next to that of the first file. `is_directml` says whether one of them comes
    /// from DirectML.
    fn add(&mut self, name: &str, first: Option<&Output>, other: &Output, is_directml: bool) {
        let name = name.to_owned();
        let first_model = first.map_or("", |first| &first.model);
        if is_other(first_model, &other.model) {
            self.other_models.push(name);
            return;
        }
        match (first.map(|first| &first.written), &other.written) {
            (Some(Outcome::Bytes(a)), Outcome::Bytes(b)) if a == b => self.equal += 1,
            (Some(Outcome::Bytes(_)), Outcome::Bytes(_))
                if other.expected_to_differ && is_directml =>
            {
                self.expected.push(name);
            }
            (Some(Outcome::Bytes(_)), Outcome::Bytes(_)) => {
                self.of_unknown_models |= first_model.is_empty() || other.model.is_empty();
                self.different.push(name);
            }
            (Some(Outcome::NotCompared(why)), _) | (_, Outcome::NotCompared(why)) => {
                self.not_compared.insert(name, why.clone());
            }
            (first, Outcome::Error(error)) => {
                self.failed.insert(name, error.clone());
                self.newly_failed += usize::from(!matches!(first, Some(Outcome::Error(_))));
            }
            (None, _) => self.missing += 1,
            // The output failed in the first file only.
            _ => {}
        }
    }

    /// A clause that may explain why outputs are not equal.
    pub fn unknown(&self) -> &'static str {
        const UNKNOWN: &str = ", perhaps because the models are not, which older files do not say";
        if self.of_unknown_models {
            UNKNOWN
        } else {
            ""
        }
    }

    /// A line about each kind of result, by the names of the first file and of the other.
    pub fn notes(&self, first: &str, other: &str) -> Vec<String> {
        let unknown = self.unknown();
        let equal = format!("equal to those of {first}, bit for bit");
        let different = format!("different from {first}{unknown}");
        let expected = "different, as lengths above the axis size are";
        let one_reason = self.not_compared.values().next().cloned();
        let failed = self
            .failed
            .iter()
            .map(|(name, error)| format!("{name} ({error})"));
        let failed = failed.collect::<Vec<_>>().join("; ");
        let missing = "that only one of the two files has";
        let notes = [
            note(self.equal, &equal, ""),
            note(self.different.len(), &different, &self.different.join(", ")),
            note(self.expected.len(), expected, &self.expected.join(", ")),
            note(
                self.not_compared.len(),
                "not compared",
                &one_reason.unwrap_or_default(),
            ),
            note(self.failed.len(), "failed", &failed),
            note(self.missing, missing, ""),
        ];
        let known = notes.into_iter().flatten();
        known.map(|note| format!("{other}: {note}")).collect()
    }

    /// How many both files have.
    pub fn shared(&self) -> usize {
        self.equal + self.different.len() + self.expected.len()
    }
}

/// A line about some outputs, with their names or the reason. None if there are none.
fn note(count: usize, what: &str, which: &str) -> Option<String> {
    let outputs = counted(count, "output");
    match which {
        _ if count == 0 => None,
        "" => Some(format!("{outputs} {what}")),
        _ => Some(format!("{outputs} {what}: {which}")),
    }
}

/// Whether two models of one name are known to be others.
pub fn is_other(a: &str, b: &str) -> bool {
    !a.is_empty() && !b.is_empty() && a != b
}

/// Whether DxDispatch or DirectML ran the cases.
pub fn directml(results: &Results) -> bool {
    let tool = results.machine.tool.to_ascii_lowercase();
    tool.starts_with("directml") || tool.starts_with("dxdispatch") || tool.contains("with directml")
}
