//! The differences between versions of DirectML: the feature level, and the computation of sizes.

use crate::desc::FeatureLevel;

/// The rules of one version of DirectML, or of this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuleSet {
    /// The level whose support tables apply.
    pub level: FeatureLevel,
    /// How the span of a strided tensor is computed.
    pub span: SpanArithmetic,
    /// Whether TotalTensorSizeInBytes may be the bytes of 2³² − 1 elements plus the last bits of one more. Otherwise it
    /// is at most those bytes.
    pub total_in_elements: bool,
    /// Whether outputs with two coordinates that share an element are rejected. Only this library does so.
    pub rejects_overlap: bool,
}

/// How the span of a strided tensor is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanArithmetic {
    /// Exactly.
    Exact,
    /// In elements modulo 2³².
    ElementsWrap,
    /// In elements and in bytes modulo 2³², before rounding up to 4 bytes.
    BytesWrap,
}

impl RuleSet {
    /// This library's rules at a level: those of the last DirectML with exact arithmetic, plus the rejection of
    /// overlapping outputs.
    pub const fn at(level: FeatureLevel) -> Self {
        Self {
            level,
            span: SpanArithmetic::Exact,
            total_in_elements: false,
            rejects_overlap: true,
        }
    }
}
