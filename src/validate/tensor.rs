//! The rules of a single tensor, for any operator.

use std::fmt;

use super::rule_set::{RuleSet, SpanArithmetic};
use super::rules::{Requirement, Rule, ValidationError};
use crate::desc::{
    layout, lowest_level, tensor_support, BufferTensorDesc, OperatorType, Place, TensorFlags,
    TensorRole, TensorSupport,
};

/// DirectML stores element counts in 32 bits.
const MAX_ELEMENTS: u128 = u32::MAX as u128;

/// A tensor to check, and where its errors go.
pub(super) struct Tensor<'a> {
    pub operator: OperatorType,
    pub role: TensorRole,
    pub rules: &'a RuleSet,
    pub desc: &'a BufferTensorDesc,
    pub errors: &'a mut Vec<ValidationError>,
}

impl Tensor<'_> {
    /// Adds every rule that the tensor breaks, in the order of the descriptor's fields.
    pub(super) fn check(&mut self) {
        self.data_type();
        self.flags();
        self.dimension_count();
        self.sizes();
        self.strides();
        self.total_size_max();
        self.alignment();
    }

    fn at(&self, field: &'static str) -> Place {
        Place::of(self.operator, Some(self.role), field)
    }

    fn require(
        &mut self,
        holds: bool,
        rule: Rule,
        place: Place,
        found: impl fmt::Display,
        required: impl fmt::Display,
    ) {
        rule.require(holds, self.errors, place, found, required);
    }

    /// A rule of the support tables: the error names the feature level that accepts the tensor, if there is one.
    fn supported(
        &mut self,
        rule: Rule,
        field: &'static str,
        found: impl fmt::Display,
        accepts: impl Fn(&TensorSupport) -> bool,
        required: impl Fn(&TensorSupport) -> String,
    ) {
        let Some(support) = tensor_support(self.operator, self.role, self.rules.level) else {
            return;
        };
        if accepts(&support) {
            return;
        }
        let requirement = match lowest_level(self.operator, self.role, accepts) {
            Some(level) => Requirement::Needs(level),
            None => Requirement::MustBe(required(&support)),
        };
        let place = self.at(field);
        self.errors.push(rule.broken(place, found, requirement));
    }

    fn data_type(&mut self) {
        let found = self.desc.data_type;
        let accepts = |support: &TensorSupport| support.data_types.contains(&found);
        self.supported(
            Rule::TensorDataType,
            "DataType",
            found,
            accepts,
            |support| list(support.data_types),
        );
    }

    fn flags(&mut self) {
        let (output, flags) = (self.role == TensorRole::Output, self.desc.flags);
        let holds = !output || flags == TensorFlags::None;
        self.require(
            holds,
            Rule::OutputFlags,
            self.at("Flags"),
            flags.name(),
            "NONE, as for every output",
        );
    }

    fn dimension_count(&mut self) {
        let found = self.desc.sizes.len();
        let accepts = |support: &TensorSupport| support.dimension_counts.contains(&found);
        self.supported(
            Rule::TensorDimensionCount,
            "DimensionCount",
            found,
            accepts,
            |support| {
                let (least, most) = support.dimension_counts.clone().into_inner();
                if least == most {
                    return least.to_string();
                }
                format!("from {least} to {most}")
            },
        );
    }

    fn sizes(&mut self) {
        let sizes = &self.desc.sizes;
        for (d, &size) in sizes.iter().enumerate() {
            self.require(
                size > 0,
                Rule::TensorSizesNonzero,
                self.at("Sizes").nth(d),
                0,
                "at least 1",
            );
        }
        let elements = layout::element_count(sizes);
        let fits = elements.is_some_and(|elements| elements <= MAX_ELEMENTS);
        let found = format_args!("{sizes:?}, which is {} elements", Count(elements));
        self.require(
            fits,
            Rule::TensorElementCount,
            self.at("Sizes"),
            found,
            "at most 4294967295 elements",
        );
    }

    /// The rules of strides and of what they imply. Without a stride for each size, nothing else can be checked.
    fn strides(&mut self) {
        let sizes = self.desc.sizes.len();
        if let Some(strides) = &self.desc.strides {
            let found = format_args!("{strides:?}");
            let required = format_args!("one stride for each of Sizes {:?}", self.desc.sizes);
            let one_for_each = strides.len() == sizes;
            self.require(
                one_for_each,
                Rule::TensorStridesCount,
                self.at("Strides"),
                found,
                required,
            );
            if !one_for_each {
                return;
            }
            // Too many dimensions are rejected by another rule.
            let countable = !self.desc.sizes.contains(&0) && sizes <= layout::MAX_DIMENSIONS;
            if self.role == TensorRole::Output && countable {
                self.output_strides(strides);
            }
        }
        self.total_size_min();
    }

    /// The four rules of an output's strides: nonzero, distinct, spanning, and without overlap. Breaking one of the
    /// first three implies an overlap, so the last is checked only if they are satisfied.
    fn output_strides(&mut self, strides: &[u32]) {
        let (sizes, before) = (&self.desc.sizes, self.errors.len());
        for (d, (&size, &stride)) in sizes
            .iter()
            .zip(strides)
            .enumerate()
            .filter(|(_, (&size, _))| size > 1)
        {
            let place = self.at("Strides").nth(d);
            let required = format_args!(
                "at least 1, because the {size} elements of that dimension would share one"
            );
            self.require(
                stride > 0,
                Rule::OutputStridesNonzero,
                place,
                stride,
                required,
            );
            if let Some(earlier) =
                (0..d).find(|&e| stride > 0 && sizes[e] > 1 && strides[e] == stride)
            {
                let required = format_args!(
                    "different from Strides[{earlier}], because coordinates of the two dimensions would share elements"
                );
                self.require(false, Rule::OutputStridesDistinct, place, stride, required);
            }
        }
        let (Some(elements), Some(span)) = (layout::element_count(sizes), self.span()) else {
            return;
        };
        let found = format_args!("{strides:?}, which spans {span} elements");
        let required =
            format_args!("strides that span at least {elements} elements, the product of Sizes");
        self.require(
            elements <= span,
            Rule::OutputStridesSpan,
            self.at("Strides"),
            found,
            required,
        );
        // The search is bounded for these spans. Larger ones are rejected by another rule.
        if self.rules.rejects_overlap && self.errors.len() == before && span <= MAX_ELEMENTS {
            let found = format_args!(
                "{strides:?}, with which two coordinates of Sizes {sizes:?} share an element"
            );
            let (own, required) = (
                !layout::has_overlap(sizes, strides),
                "strides that give every coordinate its own element",
            );
            self.require(
                own,
                Rule::OutputOverlap,
                self.at("Strides"),
                found,
                required,
            );
        }
    }

    /// The elements from the first to the last, in the rule set's arithmetic.
    fn span(&self) -> Option<u128> {
        let span = self.desc.span()?;
        let wraps = self.rules.span != SpanArithmetic::Exact && self.desc.strides.is_some();
        Some(if wraps { span & MAX_ELEMENTS } else { span })
    }

    fn total_size_min(&mut self) {
        let (data_type, found) = (self.desc.data_type, self.desc.total_tensor_size_in_bytes);
        let minimum = self.span().and_then(|span| {
            if self.rules.span == SpanArithmetic::BytesWrap && self.desc.strides.is_some() {
                let bits = span.checked_mul(u128::from(data_type.size_in_bits()))?;
                return Some((bits.div_ceil(8) & MAX_ELEMENTS).next_multiple_of(4));
            }
            layout::bytes_of_span(data_type, span)
        });
        let enough = minimum.is_some_and(|minimum| u128::from(found) >= minimum);
        let required = format_args!(
            "at least {}, the bytes from the first element to the last, rounded up to 4",
            Count(minimum)
        );
        self.require(
            enough,
            Rule::TensorTotalSizeMin,
            self.at("TotalTensorSizeInBytes"),
            found,
            required,
        );
    }

    fn total_size_max(&mut self) {
        let (found, data_type) = (self.desc.total_tensor_size_in_bytes, self.desc.data_type);
        let bits = u128::from(data_type.size_in_bits());
        let rest = if self.rules.total_in_elements {
            bits - 1
        } else {
            0
        };
        let maximum = (MAX_ELEMENTS * bits + rest) / 8;
        let required =
            format_args!("at most {maximum}, the bytes of 4294967295 elements of {data_type}");
        let holds = u128::from(found) <= maximum;
        self.require(
            holds,
            Rule::TensorTotalSizeMax,
            self.at("TotalTensorSizeInBytes"),
            found,
            required,
        );
    }

    fn alignment(&mut self) {
        let found = self.desc.guaranteed_base_offset_alignment;
        let holds = found == 0 || (found >= 16 && found.is_power_of_two());
        let required = "0 or a power of two of at least 16";
        self.require(
            holds,
            Rule::TensorAlignment,
            self.at("GuaranteedBaseOffsetAlignment"),
            found,
            required,
        );
    }
}

/// Writes a number; `None` is past 2^128.
struct Count(Option<u128>);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(count) => count.fmt(f),
            None => f.write_str("more than 2^128"),
        }
    }
}

/// At least two values.
fn list<T: fmt::Display>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    match values.as_slice() {
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
        [] => String::new(),
    }
}
