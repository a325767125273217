//! Outputs of small models in two runs, byte by byte.

use std::collections::BTreeMap;

use serde::Serialize;

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
