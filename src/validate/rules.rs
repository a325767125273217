//! Every rule: its public id, and the text of its message.
//!
//! An id is never renamed and never reused. Messages read `<place> is <found>, must be <required> (<rule id>)`. If a
//! higher feature level would accept what was found, they say `needs <feature level>` instead of `must be <required>`.

use std::fmt;

use crate::desc::data_type::TensorDataType;
use crate::desc::feature_level::{minimum_feature_level, FeatureLevel};
use crate::desc::OperatorType;

macro_rules! rules {
    ($($(#[doc = $text:literal])+ $name:ident => $id:literal,)*) => {
        /// A rule a descriptor can break.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[doc = $text])+ $name,)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Rule] = &[$(Rule::$name),*];

            /// The public id, such as `reverse.axis.range`.
            pub const fn id(self) -> &'static str {
                match self { $(Rule::$name => $id),* }
            }
        }
    };
}

rules! {
    /// The operator exists at the device's feature level.
    OperatorFeatureLevel => "operator.feature_level",
    /// The operator takes the tensor's data type at the device's feature level.
    TensorDataType => "tensor.data_type",
    /// Output tensors have no flags.
    OutputFlags => "output.flags",
    /// The operator takes that many dimensions at the device's feature level; always from 1 to 8.
    TensorDimensionCount => "tensor.dimension_count",
    /// Every size is at least 1.
    TensorSizesNonzero => "tensor.sizes.nonzero",
    /// A tensor has at most 2³² − 1 elements.
    TensorElementCount => "tensor.element_count",
    /// There are as many strides as sizes.
    TensorStridesCount => "tensor.strides.count",
    /// No output stride of a dimension of size above 1 is 0.
    OutputStridesNonzero => "output.strides.nonzero",
    /// The output strides of dimensions of size above 1 are pairwise distinct.
    OutputStridesDistinct => "output.strides.distinct",
    /// An output spans at least as many elements as it has.
    OutputStridesSpan => "output.strides.span",
    /// No two coordinates of an output share an element.
    OutputOverlap => "output.overlap",
    /// TotalTensorSizeInBytes reaches from the first element to the last, rounded up to 4 bytes.
    TensorTotalSizeMin => "tensor.total_size.min",
    /// TotalTensorSizeInBytes is at most the bytes of 2³² − 1 elements.
    TensorTotalSizeMax => "tensor.total_size.max",
    /// GuaranteedBaseOffsetAlignment is 0 or a power of two from 16 up.
    TensorAlignment => "tensor.alignment",
    /// ValueDataType is the data type of OutputTensor.
    FillValueDataType => "fill.value_data_type",
    /// SequenceLengthsTensor has the DimensionCount of InputTensor.
    ReverseLengthsDimensionCount => "reverse.lengths.dimension_count",
    /// SequenceLengthsTensor has the sizes of InputTensor, with 1 at Axis.
    ReverseLengthsSizes => "reverse.lengths.sizes",
    /// OutputTensor has the data type of InputTensor.
    ReverseOutputDataType => "reverse.output.data_type",
    /// OutputTensor has the sizes of InputTensor.
    ReverseOutputSizes => "reverse.output.sizes",
    /// Axis is below the DimensionCount of InputTensor.
    ReverseAxisRange => "reverse.axis.range",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// What the rule requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// No feature level accepts what was found. The text says what is required.
    MustBe(String),
    /// The feature level that accepts what was found.
    Needs(FeatureLevel),
}

/// One broken rule: which one, where, what was found there, and what is required.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} is {found}, {requirement} ({rule})")]
#[non_exhaustive]
pub struct ValidationError {
    /// The rule that is broken.
    pub rule: Rule,
    /// The field, by DirectML's names: `ReverseSubsequencesDesc.InputTensor.Sizes[2]`.
    pub place: String,
    /// The field's value.
    pub found: String,
    /// What the value must be, or the feature level that accepts it.
    pub requirement: Requirement,
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MustBe(required) => write!(f, "must be {required}"),
            Self::Needs(level) => write!(f, "needs {level}"),
        }
    }
}

fn broken(
    rule: Rule,
    place: &str,
    field: &str,
    found: impl fmt::Display,
    required: impl fmt::Display,
) -> ValidationError {
    ValidationError {
        rule,
        place: format!("{place}{field}"),
        found: found.to_string(),
        requirement: Requirement::MustBe(required.to_string()),
    }
}

fn needs(rule: Rule, place: &str, field: &str, found: impl fmt::Display, level: FeatureLevel) -> ValidationError {
    ValidationError {
        rule,
        place: format!("{place}{field}"),
        found: found.to_string(),
        requirement: Requirement::Needs(level),
    }
}

/// A number, or `None` if it is past 2^128.
fn count(value: Option<u128>) -> String {
    value.map_or_else(|| "more than 2^128".to_owned(), |value| value.to_string())
}

fn list<T: fmt::Display>(values: impl IntoIterator<Item = T>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    match values.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// The operator does not exist at that level.
pub(crate) fn operator_feature_level(operator: OperatorType, level: FeatureLevel) -> ValidationError {
    let found = format!("{} at {level}", operator.name());
    needs(Rule::OperatorFeatureLevel, operator.desc_name(), "", found, minimum_feature_level(operator))
}

pub(super) fn tensor_data_type(
    place: &str,
    found: TensorDataType,
    supported: &[TensorDataType],
    lowest: Option<FeatureLevel>,
) -> ValidationError {
    match lowest {
        Some(level) => needs(Rule::TensorDataType, place, ".DataType", found, level),
        None => broken(Rule::TensorDataType, place, ".DataType", found, list(supported)),
    }
}

pub(super) fn output_flags(place: &str, found: &str) -> ValidationError {
    broken(Rule::OutputFlags, place, ".Flags", found, "NONE, as for every output")
}

pub(super) fn tensor_dimension_count(
    place: &str,
    found: usize,
    supported: &std::ops::RangeInclusive<usize>,
    lowest: Option<FeatureLevel>,
) -> ValidationError {
    match lowest {
        Some(level) => needs(Rule::TensorDimensionCount, place, ".DimensionCount", found, level),
        None if supported.start() == supported.end() => {
            broken(Rule::TensorDimensionCount, place, ".DimensionCount", found, supported.start())
        }
        None => {
            let required = format!("from {} to {}", supported.start(), supported.end());
            broken(Rule::TensorDimensionCount, place, ".DimensionCount", found, required)
        }
    }
}

pub(super) fn tensor_sizes_nonzero(place: &str, dimension: usize) -> ValidationError {
    broken(Rule::TensorSizesNonzero, place, &format!(".Sizes[{dimension}]"), 0, "at least 1")
}

pub(super) fn tensor_element_count(place: &str, sizes: &[u32], elements: Option<u128>) -> ValidationError {
    let found = format!("{sizes:?}, which is {} elements", count(elements));
    broken(Rule::TensorElementCount, place, ".Sizes", found, "at most 4294967295 elements")
}

pub(super) fn tensor_strides_count(place: &str, strides: &[u32], sizes: usize) -> ValidationError {
    let found = format!("{strides:?}, which is {} strides", strides.len());
    broken(Rule::TensorStridesCount, place, ".Strides", found, format!("{sizes} strides, one for each of Sizes"))
}

pub(super) fn output_strides_nonzero(place: &str, dimension: usize, size: u32) -> ValidationError {
    let required = format!("at least 1, because the {size} elements of that dimension would share one");
    broken(Rule::OutputStridesNonzero, place, &format!(".Strides[{dimension}]"), 0, required)
}

pub(super) fn output_strides_distinct(place: &str, dimension: usize, stride: u32, earlier: usize) -> ValidationError {
    let required =
        format!("different from Strides[{earlier}], because coordinates of the two dimensions would share elements");
    broken(Rule::OutputStridesDistinct, place, &format!(".Strides[{dimension}]"), stride, required)
}

pub(super) fn output_strides_span(place: &str, strides: &[u32], span: u128, elements: u128) -> ValidationError {
    let found = format!("{strides:?}, which spans {span} elements");
    let required = format!("such that it spans at least the {elements} elements of Sizes");
    broken(Rule::OutputStridesSpan, place, ".Strides", found, required)
}

pub(super) fn output_overlap(place: &str, strides: &[u32], sizes: &[u32]) -> ValidationError {
    let found = format!("{strides:?}, with which two coordinates of Sizes {sizes:?} share an element");
    broken(Rule::OutputOverlap, place, ".Strides", found, "such that every coordinate has its own element")
}

pub(super) fn tensor_total_size_min(place: &str, found: u64, minimum: Option<u128>) -> ValidationError {
    let required =
        format!("at least {}, the bytes from the first element to the last, rounded up to 4", count(minimum));
    broken(Rule::TensorTotalSizeMin, place, ".TotalTensorSizeInBytes", found, required)
}

pub(super) fn tensor_total_size_max(
    place: &str,
    found: u64,
    data_type: TensorDataType,
    maximum: u128,
) -> ValidationError {
    let required = format!("at most {maximum}, the bytes of 4294967295 elements of {data_type}");
    broken(Rule::TensorTotalSizeMax, place, ".TotalTensorSizeInBytes", found, required)
}

pub(super) fn tensor_alignment(place: &str, found: u32) -> ValidationError {
    broken(Rule::TensorAlignment, place, ".GuaranteedBaseOffsetAlignment", found, "0 or a power of two of at least 16")
}

pub(super) fn fill_value_data_type(place: &str, found: TensorDataType, output: TensorDataType) -> ValidationError {
    let required = format!("{output}, the data type of OutputTensor");
    broken(Rule::FillValueDataType, place, ".ValueDataType", found, required)
}

pub(super) fn reverse_lengths_dimension_count(place: &str, found: usize, input: usize) -> ValidationError {
    let required = format!("{input}, the DimensionCount of InputTensor");
    broken(Rule::ReverseLengthsDimensionCount, place, ".SequenceLengthsTensor.DimensionCount", found, required)
}

pub(super) fn reverse_lengths_sizes(place: &str, found: &[u32], required: &[u32], axis: u32) -> ValidationError {
    let found = format!("{found:?}");
    let required = format!("{required:?}, the Sizes of InputTensor with 1 at Axis, which is {axis}");
    broken(Rule::ReverseLengthsSizes, place, ".SequenceLengthsTensor.Sizes", found, required)
}

pub(super) fn reverse_output_data_type(place: &str, found: TensorDataType, input: TensorDataType) -> ValidationError {
    let required = format!("{input}, the data type of InputTensor");
    broken(Rule::ReverseOutputDataType, place, ".OutputTensor.DataType", found, required)
}

pub(super) fn reverse_output_sizes(place: &str, found: &[u32], input: &[u32]) -> ValidationError {
    let (found, required) = (format!("{found:?}"), format!("{input:?}, the Sizes of InputTensor"));
    broken(Rule::ReverseOutputSizes, place, ".OutputTensor.Sizes", found, required)
}

pub(super) fn reverse_axis_range(place: &str, found: u32, dimension_count: usize) -> ValidationError {
    let required = format!("below {dimension_count}, the DimensionCount of InputTensor");
    broken(Rule::ReverseAxisRange, place, ".Axis", found, required)
}
