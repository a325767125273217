//! Turns descriptors of C into those of the crate. Checks every pointer for NULL and alignment, and every number for
//! its range.

use std::ffi::{c_char, CStr};

use dml_cuda::{
    BufferTensorDesc, FeatureLevel, FillValueSequenceDesc, OperatorDesc, OperatorType,
    ReverseSubsequencesDesc, ScalarUnion, TensorDataType, TensorFlags, TensorRole,
    ValidationErrors,
};

use crate::status::{level_value, wrong, Failure};
use crate::types::*;

/// The most dimensions that are read. The rules allow fewer.
const MAX_DIMENSIONS: u32 = 1 << 10;

pub(crate) fn feature_level(value: DML_CUDA_FEATURE_LEVEL) -> Result<FeatureLevel, Failure> {
    let highest = (value == DML_CUDA_FEATURE_LEVEL_HIGHEST).then_some(FeatureLevel::HIGHEST);
    let known = highest.or_else(|| {
        FeatureLevel::ALL
            .iter()
            .copied()
            .find(|level| level_value(*level) == value)
    });
    known.ok_or_else(|| {
        Failure::argument(format!(
            "the feature level is {value:#x}, but must be 0 or one of DML_CUDA_FEATURE_LEVEL_*"
        ))
    })
}

pub(crate) fn operator_type(value: DML_CUDA_OPERATOR_TYPE) -> Result<OperatorType, Failure> {
    match value {
        DML_CUDA_OPERATOR_FILL_VALUE_SEQUENCE => Ok(OperatorType::FillValueSequence),
        DML_CUDA_OPERATOR_REVERSE_SUBSEQUENCES => Ok(OperatorType::ReverseSubsequences),
        _ => wrong(format!(
            "the operator type is {value}, but must be 104 (FILL_VALUE_SEQUENCE) or 106 (REVERSE_SUBSEQUENCES)"
        )),
    }
}

pub(crate) fn tensor_role(value: DML_CUDA_TENSOR_ROLE) -> Result<TensorRole, Failure> {
    let roles = [
        TensorRole::Input,
        TensorRole::SequenceLengths,
        TensorRole::Output,
    ];
    let role = roles
        .into_iter()
        .find(|role| *role as DML_CUDA_TENSOR_ROLE == value);
    role.ok_or_else(|| {
        Failure::argument(format!(
            "the tensor role is {value}, but must be one of DML_CUDA_TENSOR_ROLE_*"
        ))
    })
}

/// Follows a pointer, if it is not null and aligned.
///
/// # Safety
///
/// `pointer` is null, or points to a `T` that does not change during `'a`.
pub(crate) unsafe fn follow<'a, T>(pointer: *const T, place: &str) -> Result<&'a T, Failure> {
    if pointer.is_null() {
        return wrong(format!("{place} is NULL, but must be a pointer"));
    }
    if !pointer.is_aligned() {
        let required = align_of::<T>();
        return wrong(format!(
            "{place} is {pointer:p}, but must be a multiple of {required}"
        ));
    }
    // SAFETY: neither null nor misaligned, as checked, so it points to a `T`.
    Ok(unsafe { &*pointer })
}

/// Follows a pointer to a structure that begins with its size. A program whose header has another size would mean other
/// fields.
///
/// # Safety
///
/// The promise of [`follow`], for as many bytes as the structure says.
pub(crate) unsafe fn sized<'a, T>(pointer: *const T, place: &str) -> Result<&'a T, Failure> {
    // SAFETY: null, or a structure, which begins with its size.
    let &found = unsafe { follow(pointer.cast::<u32>(), place) }?;
    let required = size_of::<T>();
    if found as usize != required {
        return wrong(format!(
            "{place}.SizeInBytes is {found}, but must be {required}, the bytes of the structure"
        ));
    }
    // SAFETY: all its bytes are there, as its size says.
    unsafe { follow(pointer, place) }
}

/// The values from a pointer on. It may be null if there are none.
///
/// # Safety
///
/// If `count` is not 0, `first` points to as many values, which do not change during `'a`.
pub(crate) unsafe fn list<'a, T>(first: *const T, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: `first` points to `count` values.
        _ => unsafe { std::slice::from_raw_parts(first, count) },
    }
}

/// The values from a pointer on, which is checked by [`follow`] if there are any.
///
/// # Safety
///
/// `first` is null, or points to `count` values, which do not change during `'a`.
pub(crate) unsafe fn follow_all<'a, T>(
    first: *const T,
    count: u32,
    place: &str,
) -> Result<&'a [T], Failure> {
    if count > 0 {
        // SAFETY: null, or `count` values.
        unsafe { follow(first, place) }?;
    }
    // SAFETY: `follow` has checked it if there are values.
    Ok(unsafe { list(first, count as usize) })
}

/// # Safety
///
/// `pointer` is null, or a text that ends in a NUL and does not change during `'a`.
pub(crate) unsafe fn string<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return wrong(format!("{name} is NULL, but must be a text"));
    }
    // SAFETY: not null, so it is a text that ends in a NUL.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::argument(format!("{name} is {text:?}, but must be UTF-8")))
}

/// A text that may be null, which is empty.
///
/// # Safety
///
/// The promise of [`string`].
pub(crate) unsafe fn optional<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Ok("");
    }
    // SAFETY: not null, so it is a text.
    unsafe { string(pointer, name) }
}

pub(crate) fn data_type(
    value: DML_CUDA_TENSOR_DATA_TYPE,
    place: &str,
) -> Result<TensorDataType, Failure> {
    let known = (value as usize)
        .checked_sub(1)
        .and_then(|at| TensorDataType::ALL.get(at));
    known.copied().ok_or_else(|| {
        Failure::argument(format!(
            "{place} is {value}, but must be 1 (FLOAT32) to 13 (INT4)"
        ))
    })
}

/// # Safety
///
/// The promise of [`follow`], for everything the descriptor points to.
unsafe fn tensor(
    pointer: *const DML_CUDA_TENSOR_DESC,
    operator: OperatorType,
    role: TensorRole,
) -> Result<BufferTensorDesc, Failure> {
    let place = &format!("{}.{}", operator.desc_name(), role.name());
    // SAFETY: a pointer in a descriptor is null or points to what its field is declared as.
    let desc = unsafe { follow(pointer, place) }?;
    if desc.Type != DML_CUDA_TENSOR_TYPE_BUFFER {
        return wrong(format!(
            "{place}.Type is {}, but must be 1 (BUFFER)",
            desc.Type
        ));
    }
    // SAFETY: with this type, `Desc` points to a buffer tensor's descriptor.
    let desc: &DML_CUDA_BUFFER_TENSOR_DESC =
        unsafe { follow(desc.Desc.cast(), &format!("{place}.Desc")) }?;
    let count = desc.DimensionCount;
    if count > MAX_DIMENSIONS {
        return Err(ValidationErrors::too_many_dimensions(operator, role, count).into());
    }
    // SAFETY: `Sizes` and `Strides` are null or point to `DimensionCount` numbers.
    let numbers =
        |first, field| unsafe { follow_all::<u32>(first, count, &format!("{place}.{field}")) };
    Ok(BufferTensorDesc {
        data_type: data_type(desc.DataType, &format!("{place}.DataType"))?,
        flags: match desc.Flags {
            DML_CUDA_TENSOR_FLAG_NONE => TensorFlags::None,
            DML_CUDA_TENSOR_FLAG_OWNED_BY_DML => TensorFlags::OwnedByDml,
            flags => {
                return wrong(format!(
                    "{place}.Flags is {flags:#x}, but must be 0 or 1 (OWNED_BY_DML)"
                ))
            }
        },
        sizes: numbers(desc.Sizes, "Sizes")?.to_vec(),
        strides: if desc.Strides.is_null() {
            None
        } else {
            Some(numbers(desc.Strides, "Strides")?.to_vec())
        },
        total_tensor_size_in_bytes: desc.TotalTensorSizeInBytes,
        guaranteed_base_offset_alignment: desc.GuaranteedBaseOffsetAlignment,
    })
}

/// # Safety
///
/// The promise of [`follow`], for everything the descriptor points to. A scalar's bytes are set up to the size of
/// ValueDataType.
pub(crate) unsafe fn operator_desc(
    pointer: *const DML_CUDA_OPERATOR_DESC,
    _: &str,
) -> Result<OperatorDesc, Failure> {
    // SAFETY: null or a descriptor, which `operator_desc` is for.
    let desc = unsafe { follow(pointer, "OperatorDesc") }?;
    let operator = operator_type(desc.Type)?;
    let place = operator.desc_name();
    // SAFETY: a descriptor's tensor is null or points to a tensor's descriptor.
    let tensor = |pointer, role| unsafe { tensor(pointer, operator, role) };
    Ok(match operator {
        OperatorType::FillValueSequence => {
            // SAFETY: with this type, `Desc` is null or points to a fill's descriptor.
            let desc: &DML_CUDA_FILL_VALUE_SEQUENCE_OPERATOR_DESC =
                unsafe { follow(desc.Desc.cast(), place) }?;
            // SAFETY: every pattern of 8 bytes is valid. The bytes after a narrower value are never used.
            let scalar = |union: DML_CUDA_SCALAR_UNION| ScalarUnion::Bytes(unsafe { union.Bytes });
            FillValueSequenceDesc {
                output_tensor: tensor(desc.OutputTensor, TensorRole::Output)?,
                value_data_type: data_type(desc.ValueDataType, &format!("{place}.ValueDataType"))?,
                value_start: scalar(desc.ValueStart),
                value_delta: scalar(desc.ValueDelta),
            }
            .into()
        }
        OperatorType::ReverseSubsequences => {
            // SAFETY: with this type, `Desc` is null or points to a reversal's descriptor.
            let desc: &DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC =
                unsafe { follow(desc.Desc.cast(), place) }?;
            ReverseSubsequencesDesc {
                input_tensor: tensor(desc.InputTensor, TensorRole::Input)?,
                sequence_lengths_tensor: tensor(
                    desc.SequenceLengthsTensor,
                    TensorRole::SequenceLengths,
                )?,
                output_tensor: tensor(desc.OutputTensor, TensorRole::Output)?,
                axis: desc.Axis,
            }
            .into()
        }
        _ => unreachable!("operator_type returned {operator:?}, which this function does not read"),
    })
}
