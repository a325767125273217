//! Every rule, with its public id. The function that checks a rule also writes its message.
//!
//! An id is never renamed and never reused. Messages read `<place> is <found>, but must be <required> (<rule id>)`. If
//! a higher feature level would accept what was found, they say `requires <feature level>` instead of
//! `must be <required>`.

use std::fmt;
use std::str::FromStr;

use crate::desc::{FeatureLevel, Names, Place};
use crate::text::echoed;

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
    /// The number of dimensions is one that the operator takes at the device's feature level; always from 1 to 8.
    TensorDimensionCount => "tensor.dimension_count",
    /// Every size is at least 1.
    TensorSizesNonzero => "tensor.sizes.nonzero",
    /// A tensor has at most 2³² − 1 elements.
    TensorElementCount => "tensor.element_count",
    /// The number of strides is the number of sizes.
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
    /// A tensor of a data type that DirectML does not fill is packed.
    FillPacked => "fill.packed",
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

/// The text is not the id of a [`Rule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a rule, such as reverse.axis.range")]
pub struct ParseRuleError(String);

impl FromStr for Rule {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .find(|rule| rule.id() == text)
            .copied()
            .ok_or_else(|| ParseRuleError(echoed(text)))
    }
}

/// The requirement of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requirement {
    /// No feature level accepts what was found. The text says what is required.
    MustBe(String),
    /// The feature level that accepts what was found.
    Needs(FeatureLevel),
}

/// One broken rule: which one, where, what was found there, and what is required.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message(&Names::DIRECTML))]
#[non_exhaustive]
pub struct ValidationError {
    /// The rule that is broken.
    pub rule: Rule,
    /// The field. As a text: `ReverseSubsequencesDesc.InputTensor.Sizes[2]`.
    pub place: Place,
    /// The field's value.
    pub found: String,
    /// The required value, or the feature level that accepts it.
    pub requirement: Requirement,
}

/// The id of the rule, the place, what was found and what is required, and the whole message, as texts.
#[cfg(feature = "serde")]
impl serde::Serialize for ValidationError {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (rule, place, found) = (
            self.rule.to_string(),
            self.place.to_string(),
            self.found.clone(),
        );
        let (required, message) = (self.requirement.to_string(), self.to_string());
        let names = ["rule", "place", "found", "required", "message"];
        serializer.collect_map(
            names
                .into_iter()
                .zip([rule, place, found, required, message]),
        )
    }
}

impl ValidationError {
    /// The message with the caller's names for the tensors.
    pub fn message(&self, names: &Names<'_>) -> String {
        let Self {
            rule,
            place,
            found,
            requirement,
        } = self;
        format!(
            "{} is {found}, but {requirement} ({rule})",
            place.with_names(names)
        )
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MustBe(required) => write!(f, "must be {required}"),
            Self::Needs(level) => write!(f, "requires {level}"),
        }
    }
}

impl Rule {
    /// Adds an error for a rule that nothing makes right but the `required`, unless it `holds`. The texts are formatted
    /// only then.
    pub(super) fn require(
        self,
        holds: bool,
        errors: &mut Vec<ValidationError>,
        place: Place,
        found: impl fmt::Display,
        required: impl fmt::Display,
    ) {
        if !holds {
            errors.push(self.broken(place, found, Requirement::MustBe(required.to_string())));
        }
    }

    pub(super) fn broken(
        self,
        place: Place,
        found: impl fmt::Display,
        requirement: Requirement,
    ) -> ValidationError {
        ValidationError {
            rule: self,
            place,
            found: found.to_string(),
            requirement,
        }
    }
}
