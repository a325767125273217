//! `r.json`: one run of a suite, with all its samples. docs/benchmark.md describes the schema.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bench::suite::manifest::Work;
use crate::schema;
use crate::whole_file;

/// The version of the schema that this program writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;

/// A run.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
pub struct Run {
    pub schema: u32,
    /// What reports call it.
    pub label: String,
    pub machine: Machine,
    /// How the samples were taken.
    pub timing: String,
    /// Samples that were asked of each case; 0 where that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub samples: u32,
    /// What a reader of the figures must know.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The suite's id; empty where the run is no suite's.
    #[serde(default)]
    pub suite: String,
    pub cases: Vec<Timing>,
    /// Cases that have an error in place of a time. No case is here and in `cases`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// The bytes, in hexadecimal digits, that each small model wrote.
    #[serde(default)]
    pub outputs: BTreeMap<String, String>,
    /// Small models that wrote no output: name and error.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_outputs: BTreeMap<String, String>,
}

/// What ran, and where. Empty strings where it is not known.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default)]
pub struct Machine {
    /// Name and version of what was timed.
    pub tool: String,
    pub commit: String,
    /// A hash of the program's file, where the commit is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
    pub device: String,
    pub driver: String,
    pub clocks: String,
    pub host: String,
    pub operating_system: String,
    /// RFC 3339, or a day.
    pub date: String,
    pub command: String,
}

/// The samples of one case.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Timing {
    #[serde(flatten)]
    pub work: Work,
    pub samples: Samples,
    /// Microseconds of the plainest work on as many bytes in the same run, where that was measured with the case.
    #[serde(default, rename = "roof", skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
}

/// A case that failed.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Failed {
    #[serde(flatten)]
    pub work: Work,
    /// The cause, in one line.
    pub error: String,
}

/// Microseconds of a dispatch.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Samples {
    /// One of each iteration, in the order they were taken, the warm-up left out.
    Each(Vec<f64>),
    /// All that is known are medians of several iterations.
    Medians(Vec<f64>),
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl Samples {
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Each(values) | Self::Medians(values) => values,
        }
    }
}

impl Run {
    /// Reads and checks a run.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: String| format!("{}: {error}", path.display());
        let unreadable = |error: &dyn std::fmt::Display| failed(format!("the run cannot be read: {error}"));
        let bytes = whole_file::read_regular(path).map_err(|error| unreadable(&error))?;
        let text = String::from_utf8(bytes).map_err(|error| unreadable(&error))?;
        // Editors on Windows may add a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        schema::check(text, SCHEMA).map_err(failed)?;
        let run: Self = serde_json::from_str(text).map_err(|error| failed(format!("this is no run: {error}")))?;
        run.check().map_err(failed)?;
        Ok(run)
    }

    /// An error where the figures of a case cannot be.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = std::collections::BTreeSet::new();
        for work in self.cases.iter().map(|timing| &timing.work).chain(self.failed.iter().map(|failed| &failed.work)) {
            if !seen.insert(work.key()) {
                return Err(format!("the case '{}' is there twice, must be there once", work.name()));
            }
            if work.bytes == 0 {
                return Err(format!("the case '{}' has 0 bytes, must move at least one", work.name()));
            }
        }
        if let Some(failed) = self.failed.iter().find(|failed| failed.error.trim().is_empty()) {
            return Err(format!("the failed case '{}' has no error, must have one", failed.work.name()));
        }
        if let Some(name) = self.failed_outputs.keys().find(|name| self.outputs.contains_key(*name)) {
            return Err(format!("the output '{name}' is there and failed, must be one of them"));
        }
        for timing in &self.cases {
            let (name, samples) = (timing.work.name(), &timing.samples);
            if samples.values().is_empty() {
                return Err(format!("the case '{name}' has no samples, must have at least one"));
            }
            let wrong =
                samples.values().iter().chain(&timing.baseline).find(|value| !value.is_finite() || **value <= 0.0);
            if let Some(wrong) = wrong {
                return Err(format!("the case '{name}' has a time of {wrong}, must be microseconds above 0"));
            }
        }
        Ok(())
    }

    /// Writes the run: the file is there whole, as it was or as it is to be. Returns its bytes.
    pub fn write(&self, path: &Path) -> Result<Vec<u8>, String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        whole_file::write_record(path, text.as_bytes()).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(text.into_bytes())
    }
}
