//! Outputs of small models in two runs, byte by byte.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bench::numbers::counted;
use crate::bench::run::{Outcome, Run};

/// The outputs of the first run and of another.
#[derive(Default, Serialize)]
pub struct Outputs {
    pub equal: usize,
    /// Names of outputs that must be equal and are not.
    pub different: Vec<String>,
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
    pub fn new(first: &Run, other: &Run) -> Self {
        let mut found = Self::default();
        let is_directml = directml(first) || directml(other);
        for (name, b) in &other.outputs {
            let a = first.outputs.get(name);
            match (a.map(|a| &a.written), &b.written) {
                (Some(Outcome::Bytes(a)), Outcome::Bytes(b)) if a == b => found.equal += 1,
                (Some(Outcome::Bytes(_)), Outcome::Bytes(_)) if b.expected_to_differ && is_directml => {
                    found.expected.push(name.clone());
                }
                (Some(Outcome::Bytes(_)), Outcome::Bytes(_)) => found.different.push(name.clone()),
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

    /// What became of them, a line for each kind of result.
    pub fn notes(&self, run: char) -> Vec<String> {
        let failed = self.failed.iter().map(|(name, error)| format!("{name} ({error})"));
        let facts = [
            (self.equal, "equal to A's, bit for bit", String::new()),
            (self.different.len(), "different from A's", self.different.join(", ")),
            (self.expected.len(), "different, as lengths above the axis size are", self.expected.join(", ")),
            (self.not_compared.len(), "not compared", self.not_compared.values().next().cloned().unwrap_or_default()),
            (self.failed.len(), "failed", failed.collect::<Vec<_>>().join("; ")),
            (self.missing, "that only one of the two runs has", String::new()),
        ];
        let known = facts.into_iter().filter(|(count, ..)| *count > 0);
        let line = |(count, what, which): (usize, &str, String)| {
            let which = if which.is_empty() { which } else { format!(": {which}") };
            format!("{run}: {} {what}{which}", counted(count, "output"))
        };
        known.map(line).collect()
    }

    /// How many both runs wrote.
    pub fn shared(&self) -> usize {
        self.equal + self.different.len() + self.expected.len()
    }
}

/// Whether a run is of DxDispatch or DirectML.
pub fn directml(run: &Run) -> bool {
    let tool = run.machine.tool.to_ascii_lowercase();
    ["directml", "dxdispatch"].iter().any(|name| tool.starts_with(name)) || tool.contains("with directml")
}
