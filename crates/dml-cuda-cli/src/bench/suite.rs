//! The cases of a bench, and `dml-cuda suite`, which writes them as models of DxDispatch.
//!
//! Each line of suite.jsonl is a case: a descriptor, the work that it does, and the node of ONNX that does the same. A runner
//! gets it as a model with its files, as a node, or by its name:
//!
//! ```text
//! suite.jsonl ─> Case ─┬─ files() ─> model.json, lengths.npy    dml-cuda, DxDispatch
//!                      ├─ onnx ────> a node                     ONNX Runtime
//!                      └─ name ────> `dml-cuda kernel NAME`     baselines, and all with a cold L2
//! ```
//!
//! A case with work is timed. A small one without it writes its output, which must be the same bytes everywhere.

mod model;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use super::work::{Mode, Work};
use crate::options::Tier;
use crate::out::{in_file, say, shown_path};
use crate::{output_file, unfinished};

/// A line of suite.jsonl. Names and order stay, so that results of older releases can be compared.
#[derive(Clone, Deserialize)]
pub struct Case {
    /// The name of the case, its model and its dispatchable.
    pub name: String,
    /// None if its output is compared instead of its time.
    #[serde(flatten)]
    pub work: Option<Work>,
    /// The smallest tier that has it. Without one it is for a cold L2 only: too large, or at odd addresses, while Direct3D
    /// binds at multiples of 16 bytes.
    tier: Option<Tier>,
    /// Bytes that the big tensors begin past a multiple of 256.
    #[serde(default)]
    pub misaligned: u64,
    /// How the lengths are made. They are not in suite.jsonl, because some are long lists.
    #[serde(default)]
    pub lengths: Lengths,
    /// The descriptor as DxDispatch writes it. Baselines of fills, which are no operator of DirectML, and cases of ONNX
    /// alone have none.
    pub descriptor: Option<Value>,
    /// The node that does the same in ONNX.
    pub onnx: Option<Value>,
    /// Dispatches in an iteration.
    #[serde(skip)]
    pub dispatches: u32,
}

/// The values of the SequenceLengthsTensor.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Lengths {
    /// From 0 to the axis size.
    #[default]
    Random,
    /// Three quarters of the axis size, because one draw says nothing.
    ThreeQuarters,
    /// From both ends in turn: 0, the axis size, 1, one less than that, and so on.
    InTurn,
    /// Counted up from 0, even above the axis size. There DirectML is known to compute other bytes.
    OverLong,
}

/// Every case, read once.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let mut cases = Vec::new();
    for line in include_str!("suite.jsonl").lines() {
        let mut case: Case = serde_json::from_str(line).expect("a test reads every line");
        case.dispatches = case.work.as_ref().map_or(1, |work| dispatches(work.bytes));
        cases.push(case);
    }
    cases
});

/// The dispatches of an iteration: they take 2 ms on a GPU whose memory moves 2 TB/s.
fn dispatches(bytes: u64) -> u32 {
    let microseconds = 2.0 + bytes as f64 / 2e6;
    (2000.0 / microseconds).ceil().clamp(1.0, 1000.0) as u32
}

/// A repeatable generator (splitmix64).
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Identifies the cases: version and tier.
pub fn id(tier: Option<Tier>) -> String {
    let name = tier.map_or("cold".to_owned(), |tier| format!("{tier:?}").to_lowercase());
    format!("{name} {}", env!("CARGO_PKG_VERSION"))
}

/// Every case of suite.jsonl.
pub fn all() -> impl Iterator<Item = &'static Case> {
    CASES.iter()
}

/// Baselines, the cases of a tier, small models whose outputs are compared, and baselines again: their two times tell
/// whether the machine stayed the same.
pub fn of_tier(tier: Tier) -> Vec<Case> {
    let is_alone = |case: &&Case| case.descriptor.is_none() && case.onnx.is_some();
    between_baselines(all().filter(|case| case.is_in(tier) && !is_alone(case)))
}

/// Every case that is timed, of any size and even at odd addresses, for a cold L2.
pub fn cold() -> Vec<Case> {
    let mut cases = between_baselines(all().filter(|case| case.is_cold()));
    for case in &mut cases {
        // Queued one by one, a launch alone would be timed with its way to the GPU.
        case.dispatches = case.dispatches.max(10);
    }
    cases
}

/// The cases that ONNX can express.
pub fn of_onnx(tier: Tier) -> Vec<Case> {
    all()
        .filter(|case| case.is_in(tier) && case.onnx.is_some())
        .cloned()
        .collect()
}

/// Appends the baselines, so that they are timed first and last.
fn between_baselines<'a>(cases: impl Iterator<Item = &'a Case>) -> Vec<Case> {
    let mut cases: Vec<Case> = cases.cloned().collect();
    let mut baselines = cases.clone();
    baselines.retain(Case::is_baseline);
    cases.extend(baselines);
    cases
}

/// The case of a name.
pub fn named(name: &str) -> Option<&'static Case> {
    all().find(|case| case.name == name)
}

/// Writes the models of a tier into a new or empty folder.
pub fn write(folder: &Path, tier: Tier) -> Result<ExitCode, String> {
    let mut models = 0;
    unfinished::fill(folder, || {
        models = write_models(folder, tier)?;
        Ok(())
    })
    .map_err(in_file(folder))?;
    say!(
        "Suite '{}' written to '{}': {models} models",
        id(Some(tier)),
        shown_path(folder)
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the files of each case. Returns the number of models.
fn write_models(folder: &Path, tier: Tier) -> Result<usize, String> {
    let mut written = BTreeSet::new();
    for case in of_tier(tier) {
        for (name, bytes) in case.files()? {
            // Several models read one file of lengths.
            if written.insert(name.clone()) {
                output_file::write(&folder.join(&name), &|file| file.write_all(&bytes))?;
            }
        }
    }
    let models = written.iter().filter(|name| name.ends_with(".json"));
    Ok(models.count())
}

impl Case {
    /// A tier has all cases of smaller tiers.
    fn is_in(&self, tier: Tier) -> bool {
        self.tier.is_some_and(|least| least as u64 <= tier as u64)
    }

    /// How the case uses its memory, if it is timed.
    fn mode(&self) -> Option<Mode> {
        self.work.as_ref().map(|work| work.mode)
    }

    /// Whether it is a baseline, and no operator.
    pub fn is_baseline(&self) -> bool {
        self.mode().is_some_and(Mode::is_baseline)
    }

    /// Whether the output replaces the input.
    pub fn is_in_place(&self) -> bool {
        self.mode() == Some(Mode::InPlace)
    }

    /// Whether it is timed with a cold L2: every operator, and baselines of one large size.
    fn is_cold(&self) -> bool {
        match &self.work {
            Some(work) if work.mode.is_baseline() => work.case == "512 MiB",
            Some(_) => self.descriptor.is_some(),
            None => false,
        }
    }

    /// Whether `--only` names a part of its name in files or in reports.
    pub fn is_wanted(&self, only: &str) -> bool {
        let work = self.work.as_ref();
        self.name.contains(only) || work.is_some_and(|work| work.case.contains(only))
    }
}

#[cfg(test)]
mod tests;
