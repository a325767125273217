//! The work of a case: what it does, how many bytes it must move, and the name by which results files share it.
//!
//! The bytes are those that any program must read and write for this result, not those that a kernel moves. So the rate of a
//! case, its bytes by its time, compares two programs fairly: a kernel that reads twice has half the rate.
//!
//! ```text
//! reversal   reads and writes each element once, and reads the lengths
//! in place   only the sectors of 32 bytes in which an element changes its place
//! fill       writes each element once
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes of the baselines by whose rate floors are computed.
pub const LARGE_BASELINE: u64 = 512 << 20;

/// What a case does. Two cases with equal work may be compared.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Work {
    /// The name of what is computed, such as `small fill of 64 bytes`, without type and mode.
    pub case: String,
    /// A letter and the bits, such as `f32` or `u8`.
    #[serde(rename = "type")]
    pub data_type: String,
    pub mode: Mode,
    /// Bytes that it must read and write at least.
    pub bytes: u64,
    /// Whether neighbours in memory belong to sequences with lengths of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub side_by_side: bool,
}

/// The groups of cases in a report, in their order.
pub const GROUPS: [&str; 5] = [
    "fills",
    "rows and blocks, each with one length",
    "interleaved lanes, each with a length",
    "less than 1 MB",
    "in place",
];

impl Work {
    /// One of `GROUPS`.
    pub fn group(&self) -> &'static str {
        let [fills, rows, lanes, small, in_place] = GROUPS;
        match self.mode {
            _ if self.bytes < 1_000_000 => small,
            Mode::Fill | Mode::BaselineOfFills => fills,
            Mode::InPlace => in_place,
            _ if self.side_by_side => lanes,
            _ => rows,
        }
    }

    /// Case, type and mode, by which the case is found in another results file.
    pub fn name(&self) -> String {
        format!("{}, {}, {}", self.case, self.data_type, self.mode)
    }
}

/// The way in which a case uses its memory.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Only the output is written.
    #[serde(rename = "fill")]
    Fill,
    /// The input is read and another output is written.
    #[serde(rename = "copy")]
    Copy,
    /// The output is the input.
    #[serde(rename = "in place")]
    InPlace,
    /// A copy as it is: the baseline of reversals out of place and in place.
    #[serde(rename = "baseline of copies")]
    BaselineOfCopies,
    /// A fill with one value: the baseline of fills.
    #[serde(rename = "baseline of fills")]
    BaselineOfFills,
}

/// Its name in a results file.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.serialize(f)
    }
}

impl Mode {
    /// The modes of cases, in the order of reports.
    pub const OF_CASES: [Self; 3] = [Self::Fill, Self::Copy, Self::InPlace];

    /// Whether it is the mode of a baseline.
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
