//! `manifest.json`: what a suite holds.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::schema;

/// The version of the schema that this program writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;

/// The models of a suite's folder.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Manifest {
    pub schema: u32,
    /// Tier and release, which say what the suite holds.
    pub id: String,
    pub tier: String,
    pub cases: Vec<Entry>,
    /// Names of small models that write their output to a file of their name and `.bin`, to be compared byte by byte.
    pub checks: Vec<String>,
    /// As `checks`, with lengths above the axis size. DirectML's outputs differ, and `--strict` refuses them. Older suites have none.
    #[serde(default)]
    pub over_long: Vec<String>,
    /// Files of lengths, which the models name. Older suites do not say them.
    #[serde(default)]
    pub lengths: Vec<String>,
    /// What `run_onnx.py` times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnx: Option<OnnxModels>,
}

/// How the name of each `over_long` model begins.
pub const OVER_LONG: &str = "over_long.";

/// One model, timed. Its file and its dispatchable have its name.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Entry {
    pub name: String,
    #[serde(flatten)]
    pub work: Work,
}

/// What is timed.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Work {
    pub case: String,
    #[serde(rename = "type")]
    pub data_type: String,
    pub mode: Mode,
    /// Bytes that it must move at least.
    pub bytes: u64,
    /// Dispatches in an iteration.
    pub dispatches: u32,
}

/// The models that `run_onnx.py` makes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OnnxModels {
    pub cases: Vec<OnnxModel>,
    /// Small models whose outputs are compared byte by byte.
    pub checks: Vec<OnnxModel>,
}

/// A model of one node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OnnxModel {
    #[serde(flatten)]
    pub entry: Entry,
    pub opset: u32,
    #[serde(flatten)]
    pub node: Node,
    /// Some providers have no kernel for it, which is no failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "op")]
pub enum Node {
    ReverseSequence { shape: Vec<u32>, batch_axis: usize, time_axis: usize },
    Range { start: Number, limit: Number, delta: Number, count: u32 },
}

/// What two runs share of a case.
pub type Key = (Mode, String, String);

impl Work {
    pub fn key(&self) -> Key {
        (self.mode, self.case.clone(), self.data_type.clone())
    }

    /// Case, type and mode.
    pub fn name(&self) -> String {
        format!("{}, {}, {}", self.case, self.data_type, self.mode.name())
    }
}

/// What a case does with its memory.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    #[serde(rename = "fill")]
    Fill,
    #[serde(rename = "copy")]
    Copy,
    #[serde(rename = "in place")]
    InPlace,
    /// A plain copy: the baseline of copying and of working in place.
    #[serde(rename = "roof of copies")]
    BaselineOfCopies,
    /// A plain fill: the baseline of fills.
    #[serde(rename = "roof of fills")]
    BaselineOfFills,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Copy => "copy",
            Self::InPlace => "in place",
            Self::BaselineOfCopies => "roof of copies",
            Self::BaselineOfFills => "roof of fills",
        }
    }

    /// Whether DxDispatch is asked for it. In place DirectML returns wrong data; a plain fill is not one of its operators.
    pub fn is_directmls(self) -> bool {
        !matches!(self, Self::InPlace | Self::BaselineOfFills)
    }

    pub fn is_baseline(self) -> bool {
        self.baseline() == self
    }

    /// The mode whose time is this one's baseline.
    pub fn baseline(self) -> Self {
        match self {
            Self::Fill | Self::BaselineOfFills => Self::BaselineOfFills,
            Self::Copy | Self::InPlace | Self::BaselineOfCopies => Self::BaselineOfCopies,
        }
    }
}

impl Manifest {
    pub fn new(tier: &str, cases: Vec<Entry>) -> Self {
        let id = format!("{tier} {}", env!("CARGO_PKG_VERSION"));
        let (checks, over_long, lengths) = Default::default();
        Self { schema: SCHEMA, id, tier: tier.to_owned(), cases, checks, over_long, lengths, onnx: None }
    }

    /// The small models whose outputs are compared.
    pub fn outputs(&self) -> impl Iterator<Item = &String> {
        self.checks.iter().chain(&self.over_long)
    }

    pub fn has_output(&self, name: &str) -> bool {
        self.outputs().any(|output| output == name)
    }

    /// Reads the manifest of a suite's folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join("manifest.json");
        let failed = |error: String| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|error| {
            failed(format!("the manifest of a suite cannot be read ({error}); `dml-cuda suite` writes one"))
        })?;
        schema::check(&text, SCHEMA).map_err(failed)?;
        serde_json::from_str(&text).map_err(|error| failed(format!("this is no manifest of a suite: {error}")))
    }
}
