//! Feature levels: what each level of DirectML supports for the two operators, as data.
//!
//! Source: the "Tensor support" tables of Microsoft's pages of the two operators. The real DirectML does not enforce a
//! minimum level for the operators. This library does, to tell whether a model will run on an older Windows machine.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::desc::data_type::TensorDataType::{self, *};
use crate::desc::operator_type::OperatorType::{self, FillValueSequence, ReverseSubsequences};
use crate::desc::operator_type::TensorRole::{self, Input, Output, SequenceLengths};
use crate::text::echoed;

/// `DML_FEATURE_LEVEL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the variants have DirectML's names
#[non_exhaustive]
pub enum FeatureLevel {
    V1_0,
    V2_0,
    V2_1,
    V3_0,
    V3_1,
    V4_0,
    V4_1,
    V5_0,
    V5_1,
    V5_2,
    V6_0,
    V6_1,
    V6_2,
    V6_3,
    #[default]
    V6_4,
    /// What this library adds to the highest level of DirectML: packed fills of FLOAT64, which are the values of ONNX's
    /// `Range`, rounded once. No message advises this level.
    Extended,
}

use FeatureLevel::*;

impl FeatureLevel {
    /// Every level of DirectML, lowest first.
    pub const ALL: &'static [FeatureLevel] = &[
        V1_0, V2_0, V2_1, V3_0, V3_1, V4_0, V4_1, V5_0, V5_1, V5_2, V6_0, V6_1, V6_2, V6_3, V6_4,
    ];

    /// The highest level of DirectML, and the default of a device.
    pub const HIGHEST: FeatureLevel = V6_4;

    /// Major and minor number, joined as DirectML does: `5_0`.
    pub const fn name(self) -> &'static str {
        // In the order of the variants.
        const NAMES: [&str; 16] = [
            "1_0", "2_0", "2_1", "3_0", "3_1", "4_0", "4_1", "5_0", "5_1", "5_2", "6_0", "6_1",
            "6_2", "6_3", "6_4", "EXTENDED",
        ];
        NAMES[self as usize]
    }
}

/// Writes DirectML's full name, such as `DML_FEATURE_LEVEL_5_0`.
impl fmt::Display for FeatureLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DML_FEATURE_LEVEL_{}", self.name())
    }
}

/// The text is not the name of a [`FeatureLevel`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a feature level; known are 1_0, 2_0, 2_1, 3_0, 3_1, 4_0, 4_1, 5_0, 5_1, 5_2 and 6_0 to 6_4")]
pub struct ParseFeatureLevelError(String);

impl FromStr for FeatureLevel {
    type Err = ParseFeatureLevelError;

    /// Reads `5_0`, `5.0` or `DML_FEATURE_LEVEL_5_0`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text
            .strip_prefix("DML_FEATURE_LEVEL_")
            .unwrap_or(text)
            .replace('.', "_");
        let found = Self::ALL.iter().find(|level| level.name() == name);
        found
            .copied()
            .ok_or_else(|| ParseFeatureLevelError(echoed(text)))
    }
}

/// The data types and dimensions that one feature level supports for one tensor of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorSupport {
    /// How many dimensions the tensor may have.
    pub dimension_counts: RangeInclusive<usize>,
    /// Which data types it may have.
    pub data_types: &'static [TensorDataType],
}

const UP_TO_32_BITS: &[TensorDataType] =
    &[Float32, Float16, Int32, Int16, Int8, UInt32, UInt16, UInt8];
const AND_64_BIT_INTEGERS: &[TensorDataType] = &[
    Float32, Float16, Int64, Int32, Int16, Int8, UInt64, UInt32, UInt16, UInt8,
];
const AND_ALL_64_BITS: &[TensorDataType] = &[
    Float64, Float32, Float16, Int64, Int32, Int16, Int8, UInt64, UInt32, UInt16, UInt8,
];
const LENGTHS_32: &[TensorDataType] = &[UInt32];
const LENGTHS_32_64: &[TensorDataType] = &[UInt64, UInt32];

/// The operator takes these tensors from the level on, with these dimension counts and data types.
type Row = (
    OperatorType,
    &'static [TensorRole],
    FeatureLevel,
    RangeInclusive<usize>,
    &'static [TensorDataType],
);

/// The tables of the two pages, with one exception: a reversal may have 5 dimensions from 2_1 on, as in DirectML 1.0,
/// although the documentation lists four there, and five from 3_0 on. `Extended` is this library's. The last row of a
/// tensor whose level is reached applies.
const TABLE: &[Row] = &[
    (FillValueSequence, &[Output], V2_1, 4..=4, UP_TO_32_BITS),
    (FillValueSequence, &[Output], V4_0, 1..=8, UP_TO_32_BITS),
    (
        FillValueSequence,
        &[Output],
        V5_0,
        1..=8,
        AND_64_BIT_INTEGERS,
    ),
    (
        FillValueSequence,
        &[Output],
        Extended,
        1..=8,
        AND_ALL_64_BITS,
    ),
    (
        ReverseSubsequences,
        &[Input, Output],
        V2_1,
        4..=5,
        UP_TO_32_BITS,
    ),
    (
        ReverseSubsequences,
        &[Input, Output],
        V4_0,
        1..=8,
        UP_TO_32_BITS,
    ),
    (
        ReverseSubsequences,
        &[Input, Output],
        V5_0,
        1..=8,
        AND_ALL_64_BITS,
    ),
    (
        ReverseSubsequences,
        &[SequenceLengths],
        V2_1,
        4..=5,
        LENGTHS_32,
    ),
    (
        ReverseSubsequences,
        &[SequenceLengths],
        V4_0,
        1..=8,
        LENGTHS_32,
    ),
    (
        ReverseSubsequences,
        &[SequenceLengths],
        V5_0,
        1..=8,
        LENGTHS_32_64,
    ),
];

/// Returns what `level` supports for the tensor `role` of `operator`. `None` if the operator does not exist at that
/// level, or has no such tensor.
pub fn tensor_support(
    operator: OperatorType,
    role: TensorRole,
    level: FeatureLevel,
) -> Option<TensorSupport> {
    let applies =
        |(of, roles, from, ..): &&Row| *of == operator && roles.contains(&role) && *from <= level;
    let (.., dimension_counts, data_types) = TABLE.iter().rfind(applies)?;
    Some(TensorSupport {
        dimension_counts: dimension_counts.clone(),
        data_types,
    })
}

/// The lowest level whose support for the tensor `role` of `operator` satisfies `accepts`.
pub(crate) fn lowest_level(
    operator: OperatorType,
    role: TensorRole,
    accepts: impl Fn(&TensorSupport) -> bool,
) -> Option<FeatureLevel> {
    let accepted = |&level: &FeatureLevel| {
        tensor_support(operator, role, level)
            .as_ref()
            .is_some_and(&accepts)
    };
    FeatureLevel::ALL.iter().copied().find(accepted)
}

/// Whether this library, but no DirectML, takes a data type for the tensor `role` of `operator`.
pub(crate) fn is_extension(
    operator: OperatorType,
    role: TensorRole,
    data_type: TensorDataType,
) -> bool {
    let accepts = |support: &TensorSupport| support.data_types.contains(&data_type);
    lowest_level(operator, role, accepts).is_none()
        && tensor_support(operator, role, Extended)
            .as_ref()
            .is_some_and(accepts)
}

/// The lowest level at which `operator` exists.
pub fn minimum_feature_level(operator: OperatorType) -> FeatureLevel {
    // Every operator in TABLE has an output row, so the fallback is never used.
    lowest_level(operator, TensorRole::Output, |_| true).unwrap_or(FeatureLevel::HIGHEST)
}
