//! The rules of a single tensor, for any operator.

use super::rule_set::{RuleSet, SpanArithmetic, TotalLimit};
use super::rules::{self, ValidationError};
use crate::desc::feature_level::{lowest_level, tensor_support};
use crate::desc::layout;
use crate::desc::{BufferTensorDesc, OperatorType, TensorFlags, TensorRole};

/// DirectML stores element counts in 32 bits.
const MAX_ELEMENTS: u128 = u32::MAX as u128;

/// A tensor to check, and the place of its descriptor.
pub(super) struct Tensor<'a> {
    place: String,
    operator: OperatorType,
    role: TensorRole,
    rules: &'a RuleSet,
    desc: &'a BufferTensorDesc,
}

impl<'a> Tensor<'a> {
    pub(super) fn new(
        operator: OperatorType,
        role: TensorRole,
        rules: &'a RuleSet,
        desc: &'a BufferTensorDesc,
    ) -> Self {
        Self { place: format!("{}.{}", operator.desc_name(), role.name()), operator, role, rules, desc }
    }

    /// Adds every rule the tensor breaks, in the order of the descriptor's fields.
    pub(super) fn check(&self, errors: &mut Vec<ValidationError>) {
        errors.extend(self.data_type());
        errors.extend(self.flags());
        errors.extend(self.dimension_count());
        errors.extend(self.sizes_nonzero());
        errors.extend(self.element_count());
        if let Some(error) = self.strides_count() {
            errors.push(error);
        } else {
            errors.extend(self.output_strides());
            errors.extend(self.total_size_min());
        }
        errors.extend(self.total_size_max());
        errors.extend(self.alignment());
    }

    /// The operator takes the tensor's data type at the device's feature level.
    fn data_type(&self) -> Option<ValidationError> {
        let found = self.desc.data_type;
        let support = tensor_support(self.operator, self.role, self.rules.level)?;
        if support.data_types.contains(&found) {
            return None;
        }
        let lowest = lowest_level(self.operator, self.role, |support| support.data_types.contains(&found));
        Some(rules::tensor_data_type(&self.place, found, support.data_types, lowest))
    }

    /// Output tensors have no flags.
    fn flags(&self) -> Option<ValidationError> {
        let broken = self.role == TensorRole::Output && self.desc.flags != TensorFlags::None;
        broken.then(|| rules::output_flags(&self.place, self.desc.flags.name()))
    }

    /// The operator takes that many dimensions at the device's feature level; always from 1 to 8.
    fn dimension_count(&self) -> Option<ValidationError> {
        let found = self.desc.sizes.len();
        let support = tensor_support(self.operator, self.role, self.rules.level)?;
        if support.dimension_counts.contains(&found) {
            return None;
        }
        let lowest = lowest_level(self.operator, self.role, |support| support.dimension_counts.contains(&found));
        Some(rules::tensor_dimension_count(&self.place, found, &support.dimension_counts, lowest))
    }

    /// Every size is at least 1.
    fn sizes_nonzero(&self) -> impl Iterator<Item = ValidationError> + '_ {
        let zeros = self.desc.sizes.iter().enumerate().filter(|(_, &size)| size == 0);
        zeros.map(|(dimension, _)| rules::tensor_sizes_nonzero(&self.place, dimension))
    }

    /// A tensor has at most 2³² − 1 elements.
    fn element_count(&self) -> Option<ValidationError> {
        let elements = layout::element_count(&self.desc.sizes);
        let fits = elements.is_some_and(|elements| elements <= MAX_ELEMENTS);
        (!fits).then(|| rules::tensor_element_count(&self.place, &self.desc.sizes, elements))
    }

    /// There are as many strides as sizes.
    fn strides_count(&self) -> Option<ValidationError> {
        let strides = self.desc.strides.as_deref()?;
        let sizes = self.desc.sizes.len();
        (strides.len() != sizes).then(|| rules::tensor_strides_count(&self.place, strides, sizes))
    }

    /// The four rules of an output's strides: nonzero, distinct, spanning, and without overlap. Breaking one of the
    /// first three implies an overlap, so the last is checked only if they are satisfied.
    fn output_strides(&self) -> Vec<ValidationError> {
        let (sizes, Some(strides)) = (&self.desc.sizes, self.desc.strides.as_deref()) else {
            return Vec::new();
        };
        // Too many dimensions are rejected by another rule.
        if self.role != TensorRole::Output || sizes.contains(&0) || sizes.len() > layout::MAX_DIMENSIONS {
            return Vec::new();
        }
        let mut errors = Vec::new();
        for (d, (&size, &stride)) in sizes.iter().zip(strides).enumerate().filter(|(_, (&size, _))| size > 1) {
            if stride == 0 {
                errors.push(rules::output_strides_nonzero(&self.place, d, size));
            } else if let Some(earlier) = (0..d).find(|&e| sizes[e] > 1 && strides[e] == stride) {
                errors.push(rules::output_strides_distinct(&self.place, d, stride, earlier));
            }
        }
        let (Some(elements), Some(span)) = (layout::element_count(sizes), self.span()) else {
            return errors;
        };
        if elements > span {
            errors.push(rules::output_strides_span(&self.place, strides, span, elements));
        } else if self.rules.rejects_overlap
            && errors.is_empty()
            && self.overlap_search_is_bounded(span)
            && layout::has_overlap(sizes, strides)
        {
            errors.push(rules::output_overlap(&self.place, strides, sizes));
        }
        errors
    }

    /// Larger spans and DimensionCounts are rejected by other rules.
    fn overlap_search_is_bounded(&self, span: u128) -> bool {
        span <= MAX_ELEMENTS && self.desc.sizes.len() <= layout::MAX_DIMENSIONS
    }

    /// The elements from the first to the last, in the rule set's arithmetic.
    fn span(&self) -> Option<u128> {
        let span = layout::span(&self.desc.sizes, self.desc.strides.as_deref())?;
        let wraps = self.rules.span != SpanArithmetic::Exact && self.desc.strides.is_some();
        Some(if wraps { span & MAX_ELEMENTS } else { span })
    }

    /// TotalTensorSizeInBytes reaches from the first element to the last, rounded up to 4 bytes.
    fn total_size_min(&self) -> Option<ValidationError> {
        let desc = self.desc;
        let minimum = self.span().and_then(|span| {
            if self.rules.span == SpanArithmetic::BytesWrap && desc.strides.is_some() {
                let bits = span.checked_mul(u128::from(desc.data_type.size_in_bits()))?;
                return Some((bits.div_ceil(8) & MAX_ELEMENTS).next_multiple_of(4));
            }
            layout::bytes_of_span(desc.data_type, span)
        });
        let found = desc.total_tensor_size_in_bytes;
        let enough = minimum.is_some_and(|minimum| u128::from(found) >= minimum);
        (!enough).then(|| rules::tensor_total_size_min(&self.place, found, minimum))
    }

    /// TotalTensorSizeInBytes is at most the bytes of 2³² − 1 elements.
    fn total_size_max(&self) -> Option<ValidationError> {
        let (found, data_type) = (self.desc.total_tensor_size_in_bytes, self.desc.data_type);
        let bits = u128::from(data_type.size_in_bits());
        let maximum = match self.rules.total {
            TotalLimit::Bytes => MAX_ELEMENTS * bits / 8,
            TotalLimit::WholeElements => ((MAX_ELEMENTS + 1) * bits - 1) / 8,
        };
        (u128::from(found) > maximum).then(|| rules::tensor_total_size_max(&self.place, found, data_type, maximum))
    }

    /// GuaranteedBaseOffsetAlignment is 0 or a power of two from 16 up.
    fn alignment(&self) -> Option<ValidationError> {
        let found = self.desc.guaranteed_base_offset_alignment;
        let right = found == 0 || (found >= 16 && found.is_power_of_two());
        (!right).then(|| rules::tensor_alignment(&self.place, found))
    }
}
