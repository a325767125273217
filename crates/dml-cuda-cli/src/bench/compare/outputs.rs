//! Outputs of small models in two runs, byte by byte.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bench::numbers::counted;
use crate::bench::results::{Outcome, Results};

/// The outputs of the first run and of another.
#[derive(Default, Serialize)]
pub struct Outputs {
    pub equal: usize,
    /// Names of outputs that must be equal and are not.
    pub different: Vec<String>,
    /// Whether an older run does not say that its models of these are the same.
    pub of_unknown_models: bool,
    /// Names of outputs whose models differ between the two runs.
    pub other_models: Vec<String>,
    /// Names of outputs that differ as docs/directml.md describes.
    pub expected: Vec<String>,
    /// Outputs that a run is known to get wrong: name and why.
    pub not_compared: BTreeMap<String, String>,
    /// Outputs that the other run failed to write: name and error.
    pub failed: BTreeMap<String, String>,
    /// How many only one of the two runs has.
    pub missing: usize,
    /// How many of `failed` did not fail in the first run.
    #[serde(skip)]
    pub newly_failed: usize,
}

impl Outputs {
    pub fn new(first: &Results, other: &Results) -> Self {
        let mut found = Self::default();
        let is_directml = directml(first) || directml(other);
        for (name, b) in &other.outputs {
            let a = first.outputs.get(name);
            let model = a.map_or("", |a| &a.model);
            match (a.map(|a| &a.written), &b.written) {
                _ if is_other(model, &b.model) => found.other_models.push(name.clone()),
                (Some(Outcome::Bytes(a)), Outcome::Bytes(b)) if a == b => found.equal += 1,
                (Some(Outcome::Bytes(_)), Outcome::Bytes(_))
                    if b.expected_to_differ && is_directml =>
                {
                    found.expected.push(name.clone());
                }
                (Some(Outcome::Bytes(_)), Outcome::Bytes(_)) => {
                    found.of_unknown_models |= model.is_empty() || b.model.is_empty();
                    found.different.push(name.clone());
                }
                (Some(Outcome::NotCompared(why)), _) | (_, Outcome::NotCompared(why)) => {
                    found.not_compared.insert(name.clone(), why.clone());
                }
                (a, Outcome::Error(error)) => {
                    found.failed.insert(name.clone(), error.clone());
                    found.newly_failed += usize::from(!matches!(a, Some(Outcome::Error(_))));
                }
                (None, _) => found.missing += 1,
                _ => {}
            }
        }
        let is_alone = |name: &&String| !other.outputs.contains_key(*name);
        found.missing += first.outputs.keys().filter(is_alone).count();
        found
    }

    /// A clause that may explain why outputs are not equal.
    pub fn unknown(&self) -> &'static str {
        const UNKNOWN: &str = ", perhaps because the models are not, which older runs do not say";
        if self.of_unknown_models {
            UNKNOWN
        } else {
            ""
        }
    }

    /// A line about each kind of result, with the `names` of the first run and of the other.
    pub fn notes(&self, [first, other]: [&str; 2]) -> Vec<String> {
        let failed = self
            .failed
            .iter()
            .map(|(name, error)| format!("{name} ({error})"));
        let facts = [
            (
                self.equal,
                format!("equal to those of {first}, bit for bit"),
                String::new(),
            ),
            (
                self.different.len(),
                format!("different from {first}{}", self.unknown()),
                self.different.join(", "),
            ),
            (
                self.expected.len(),
                "different, as lengths above the axis size are".into(),
                self.expected.join(", "),
            ),
            (
                self.not_compared.len(),
                "not compared".into(),
                self.not_compared
                    .values()
                    .next()
                    .cloned()
                    .unwrap_or_default(),
            ),
            (
                self.failed.len(),
                "failed".into(),
                failed.collect::<Vec<_>>().join("; "),
            ),
            (
                self.missing,
                "that only one of the two runs has".into(),
                String::new(),
            ),
        ];
        let known = facts.into_iter().filter(|(count, ..)| *count > 0);
        let line = |(count, what, which): (usize, String, String)| {
            let which = if which.is_empty() {
                which
            } else {
                format!(": {which}")
            };
            format!("{other}: {} {what}{which}", counted(count, "output"))
        };
        known.map(line).collect()
    }

    /// How many both runs wrote.
    pub fn shared(&self) -> usize {
        self.equal + self.different.len() + self.expected.len()
    }
}

/// Whether two models of one name are known to be others.
pub fn is_other(a: &str, b: &str) -> bool {
    !a.is_empty() && !b.is_empty() && a != b
}

/// Whether DxDispatch or DirectML wrote a run.
pub fn directml(run: &Results) -> bool {
    let tool = run.machine.tool.to_ascii_lowercase();
    ["directml", "dxdispatch"]
        .iter()
        .any(|name| tool.starts_with(name))
        || tool.contains("with directml")
}
