//! Versions of DirectML: what each accepts, as rows of a table.
//!
//! Sources: verdicts of the thirteen versions in the table on 22,069 descriptors, of which 2,442 are part of the tests;
//! for the levels of other versions, Microsoft's version history. `docs/directml.md` has the same table for people.

use std::fmt;
use std::str::FromStr;

use super::rule_set::{RuleSet, SpanArithmetic};
use crate::desc::FeatureLevel::{self, *};
use crate::desc::{layout, OperatorDesc, TensorDataType};
use crate::text::{echoed, number};

/// Major, minor and patch.
type Number = (u32, u32, u32);

/// The recorded versions by name, oldest first, each with its highest level.
static RECORDED: [(&str, Number, FeatureLevel); 13] = [
    ("1.0.200610", (1, 0, 200610), V2_1),
    ("1.3.0-dev2", (1, 3, 0), V3_0),
    ("1.4.0", (1, 4, 0), V3_0),
    ("1.5.1", (1, 5, 1), V3_1),
    ("1.7.0", (1, 7, 0), V4_1),
    ("1.8.0", (1, 8, 0), V5_0),
    ("1.9.0", (1, 9, 0), V5_0),
    ("1.10.1", (1, 10, 1), V5_2),
    ("1.12.0", (1, 12, 0), V6_1),
    ("1.13.1", (1, 13, 1), V6_2),
    ("1.14.1", (1, 14, 1), V6_3),
    ("1.15.1", (1, 15, 1), V6_4),
    ("1.15.4", (1, 15, 4), V6_4),
];

/// The highest level from each version on. Source: Microsoft's version history; for 1.0.200610, 1.3 and 1.14, the
/// records.
const LEVELS: &[(Number, FeatureLevel)] = &[
    ((1, 0, 0), V1_0),
    ((1, 0, 200610), V2_1),
    ((1, 1, 0), V2_0),
    ((1, 3, 0), V3_0),
    ((1, 5, 0), V3_1),
    ((1, 6, 0), V4_0),
    ((1, 7, 0), V4_1),
    ((1, 8, 0), V5_0),
    ((1, 9, 0), V5_1),
    ((1, 10, 0), V5_2),
    ((1, 11, 0), V6_0),
    ((1, 12, 0), V6_1),
    ((1, 13, 0), V6_2),
    ((1, 14, 0), V6_3),
    ((1, 15, 0), V6_4),
];

/// A version of DirectML, as a Windows machine has it or an application ships it.
///
/// A recorded version answers as recorded. Any other version answers by its documented highest feature level, with the
/// arithmetic of the nearest recorded version, and is marked as inferred.
///
/// ```
/// use dml_cuda::DirectMlVersion;
/// let version: DirectMlVersion = "1.8.0".parse()?;
/// assert!(!version.is_inferred());
/// assert_eq!("1.6.0".parse::<DirectMlVersion>()?.to_string(), "1.6.0 (inferred)");
/// # Ok::<(), dml_cuda::ParseDirectMlVersionError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectMlVersion {
    number: Number,
    level: FeatureLevel,
    /// The name of a recorded version; `None` if it is inferred.
    recorded: Option<&'static str>,
}

impl DirectMlVersion {
    /// The recorded versions, oldest first.
    pub fn recorded() -> impl Iterator<Item = Self> {
        RECORDED.iter().map(|&(name, number, level)| Self {
            number,
            level,
            recorded: Some(name),
        })
    }

    /// Its highest feature level.
    pub fn feature_level(&self) -> FeatureLevel {
        self.level
    }

    /// Whether it is not a recorded version.
    pub fn is_inferred(&self) -> bool {
        self.recorded.is_none()
    }

    /// Its arithmetic, as recorded: a version that was not recorded has that of the nearest one.
    pub(crate) fn rules(&self) -> RuleSet {
        let span = match self.number {
            (1, ..9, _) => SpanArithmetic::BytesWrap,
            (1, ..13, _) => SpanArithmetic::ElementsWrap,
            _ => SpanArithmetic::Exact,
        };
        RuleSet {
            level: self.level,
            span,
            total_in_elements: self.number < (1, 14, 0),
            rejects_overlap: false,
        }
    }

    /// The errors that it makes with a descriptor that it accepts.
    pub(crate) fn caveats(&self, desc: &OperatorDesc) -> Vec<Caveat> {
        let signature = desc.signature();
        let wraps = signature.tensors().any(|(_, tensor)| {
            tensor
                .minimum_size_in_bytes()
                .is_none_or(|exact| exact > tensor.total_tensor_size_in_bytes)
        });
        let mut caveats = Vec::new();
        if wraps {
            caveats.push(Caveat::SpanWraps);
        }
        let output = signature.output;
        let bounded = output
            .span()
            .is_some_and(|span| span <= u128::from(u32::MAX));
        if bounded
            && output
                .strides
                .as_ref()
                .is_some_and(|strides| layout::has_overlap(&output.sizes, strides))
        {
            caveats.push(Caveat::OutputOverlaps);
        }
        if let OperatorDesc::ReverseSubsequences(desc) = desc {
            // Microsoft's page says that a length above the axis size is clamped.
            caveats.push(match self.number {
                (1, ..13, _) => Caveat::LengthsUnclamped,
                _ => Caveat::LengthsIndexClamped,
            });
            if desc.sequence_lengths_tensor.data_type == TensorDataType::UInt64 {
                caveats.push(Caveat::LengthsTruncated);
            }
            caveats.push(Caveat::InPlace);
        }
        caveats
    }
}

/// Writes the version, followed by `(inferred)` if it was not recorded.
impl fmt::Display for DirectMlVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.number;
        match self.recorded {
            Some(name) => f.write_str(name),
            None => write!(f, "{major}.{minor}.{patch} (inferred)"),
        }
    }
}

/// The text is not a version of DirectML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a version of DirectML, but must be such as 1.8.0, from 1.0.0 on and below 2; recorded are {}", .0, recorded_names())]
pub struct ParseDirectMlVersionError(String);

fn recorded_names() -> String {
    RECORDED.map(|(name, ..)| name).join(", ")
}

impl FromStr for DirectMlVersion {
    type Err = ParseDirectMlVersionError;

    /// Reads a recorded version as it is spelled, or `major.minor` or `major.minor.patch`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(recorded) = Self::recorded().find(|version| version.recorded == Some(text)) {
            return Ok(recorded);
        }
        let failed = || ParseDirectMlVersionError(echoed(text));
        let parts: Option<Vec<u32>> = text.split('.').map(number).collect();
        // No other major version exists: 6.4 is a feature level.
        let number = match parts.as_deref() {
            Some(&[1, minor]) => (1, minor, 0),
            Some(&[1, minor, patch]) => (1, minor, patch),
            _ => return Err(failed()),
        };
        let &(_, level) = LEVELS
            .iter()
            .rfind(|(from, _)| *from <= number)
            .ok_or_else(failed)?;
        Ok(Self {
            number,
            level,
            recorded: None,
        })
    }
}

/// Something that a DirectML accepts and then gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caveat {
    /// A tensor's span was computed modulo 2³².
    SpanWraps,
    /// Two coordinates of the output share an element.
    OutputOverlaps,
    /// A length above the axis size is not clamped.
    LengthsUnclamped,
    /// A length above the axis size is clamped index by index.
    LengthsIndexClamped,
    /// A UINT64 length is read as its low 32 bits.
    LengthsTruncated,
    /// Running in place gives wrong data.
    InPlace,
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SpanWraps => "TotalTensorSizeInBytes is smaller than a tensor's span, which this version computes modulo 2^32: it reads or writes past the tensor",
            Self::OutputOverlaps => "coordinates of OutputTensor share elements, which are written in no order; dml-cuda rejects this",
            Self::LengthsUnclamped => "a length above the axis size is not clamped: elements of other lanes are read, or 0 outside the buffer; dml-cuda clamps it",
            Self::LengthsIndexClamped => "a length above the axis size is clamped index by index, not as a length; dml-cuda clamps the length",
            Self::LengthsTruncated => "only the low 32 bits of a UINT64 length are read; dml-cuda reads all",
            Self::InPlace => "OutputTensor bound to InputTensor's range is accepted and gives wrong data; dml-cuda runs it right",
        })
    }
}
