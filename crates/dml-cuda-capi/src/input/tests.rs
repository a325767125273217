//! A share of the recorded descriptors, as structures of C: they have the crate's verdicts. The library's tests replay all.

use std::ptr::{null, null_mut};

use super::*;
use crate::error::*;
use crate::operator::dml_cuda_validate;
use crate::status::{text, DML_CUDA_STATUS_OK, DML_CUDA_STATUS_VALIDATION};

fn leak<T>(value: T) -> *const T {
    Box::leak(Box::new(value))
}

fn tensor(desc: &BufferTensorDesc) -> *const DML_CUDA_TENSOR_DESC {
    let data_type = TensorDataType::ALL.iter().position(|known| *known == desc.data_type).expect("known");
    let buffer = DML_CUDA_BUFFER_TENSOR_DESC {
        DataType: data_type as u32 + 1,
        Flags: u32::from(desc.flags == TensorFlags::OwnedByDml),
        DimensionCount: desc.sizes.len() as u32,
        Sizes: desc.sizes.clone().leak().as_ptr(),
        Strides: desc.strides.clone().map_or(null(), |strides| strides.leak().as_ptr()),
        TotalTensorSizeInBytes: desc.total_tensor_size_in_bytes,
        GuaranteedBaseOffsetAlignment: desc.guaranteed_base_offset_alignment,
    };
    leak(DML_CUDA_TENSOR_DESC { Type: DML_CUDA_TENSOR_TYPE_BUFFER, Desc: leak(buffer).cast() })
}

fn operator_desc(desc: &OperatorDesc) -> DML_CUDA_OPERATOR_DESC {
    match desc {
        OperatorDesc::FillValueSequence(fill) => {
            let data_type = TensorDataType::ALL.iter().position(|known| *known == fill.value_data_type);
            let fill = DML_CUDA_FILL_VALUE_SEQUENCE_OPERATOR_DESC {
                OutputTensor: tensor(&fill.output_tensor),
                ValueDataType: data_type.expect("known") as u32 + 1,
                ValueStart: DML_CUDA_SCALAR_UNION { UInt64: 1 },
                ValueDelta: DML_CUDA_SCALAR_UNION { UInt64: 2 },
            };
            DML_CUDA_OPERATOR_DESC { Type: DML_CUDA_OPERATOR_FILL_VALUE_SEQUENCE, Desc: leak(fill).cast() }
        }
        OperatorDesc::ReverseSubsequences(reverse) => {
            let reverse = DML_CUDA_REVERSE_SUBSEQUENCES_OPERATOR_DESC {
                InputTensor: tensor(&reverse.input_tensor),
                SequenceLengthsTensor: tensor(&reverse.sequence_lengths_tensor),
                OutputTensor: tensor(&reverse.output_tensor),
                Axis: reverse.axis,
            };
            DML_CUDA_OPERATOR_DESC { Type: DML_CUDA_OPERATOR_REVERSE_SUBSEQUENCES, Desc: leak(reverse).cast() }
        }
        _ => unreachable!("two operators are recorded"),
    }
}

#[test]
fn recorded_descriptors_have_the_crates_verdicts() {
    let (mut accepted, mut refused) = (0, 0);
    for record in dml_cuda_testing::recorded::verdicts().iter().step_by(119) {
        let mut error = null_mut();
        // SAFETY: a descriptor as the header wants it, which is never freed.
        let status = unsafe { dml_cuda_validate(&operator_desc(&record.desc), 0, &mut error) };
        let required = dml::validate(&record.desc, FeatureLevel::HIGHEST).err();
        let required = required.map_or_else(Vec::new, |errors| errors.into_iter().collect());
        // SAFETY: an error of this library, or null.
        let count = unsafe { dml_cuda_error_violation_count(error) };
        assert_eq!(count as usize, required.len(), "{}", record.id);
        for (n, required) in required.iter().enumerate() {
            // SAFETY: as above; the violation is plain numbers and pointers.
            let mut found: DML_CUDA_VIOLATION = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            assert_eq!(unsafe { dml_cuda_error_violation(error, n as u32, &mut found) }, DML_CUDA_STATUS_OK);
            // SAFETY: texts of the error, which lives.
            let found =
                unsafe { [CStr::from_ptr(found.Rule), CStr::from_ptr(found.Place), CStr::from_ptr(found.Found)] };
            assert_eq!(found.map(CStr::to_owned), [required.rule.id(), &required.place, &required.found].map(text));
        }
        assert_eq!(status, if count == 0 { DML_CUDA_STATUS_OK } else { DML_CUDA_STATUS_VALIDATION });
        *(if count == 0 { &mut accepted } else { &mut refused }) += 1;
        // SAFETY: as above; it is not used again.
        unsafe { dml_cuda_destroy_error(error) };
    }
    assert!(accepted >= 3 && refused >= 3, "{accepted} {refused}");
}
