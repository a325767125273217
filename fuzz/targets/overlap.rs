//! Outputs with any strides: whether two elements share memory, beside looking at every one.
#![no_main]

#[allow(dead_code)]
mod bytes;

use std::collections::HashSet;

use dml_cuda::{validate, BufferTensorDesc, FeatureLevel, FillValueSequenceDesc, Rule, ScalarUnion, TensorDataType};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut bytes = bytes::Bytes(data);
    let rank = 1 + usize::from(bytes.u8() % 8);
    let sizes: Vec<u32> = (0..rank).map(|_| 1 + u32::from(bytes.u8() % 9)).collect();
    let strides: Vec<u32> = (0..rank).map(|_| u32::from(bytes.u8()) * u32::from(1 + bytes.u8() % 5)).collect();
    if sizes.iter().map(|&size| f64::from(size)).product::<f64>() > 2e4 {
        return;
    }
    let desc = FillValueSequenceDesc {
        output_tensor: BufferTensorDesc::strided(TensorDataType::UInt8, &sizes, &strides),
        value_data_type: TensorDataType::UInt8,
        value_start: ScalarUnion::UInt8(0),
        value_delta: ScalarUnion::UInt8(1),
    };
    let mut places: Vec<u64> = vec![0];
    for (&size, &stride) in sizes.iter().zip(&strides) {
        places =
            places.iter().flat_map(|&place| (0..size).map(move |k| place + u64::from(k) * u64::from(stride))).collect();
    }
    let distinct: HashSet<u64> = places.iter().copied().collect();
    let overlaps = distinct.len() < places.len();
    let verdict = validate(&desc.into(), FeatureLevel::HIGHEST);
    if overlaps {
        assert!(verdict.is_err(), "{sizes:?} {strides:?} overlaps");
    } else if let Err(errors) = verdict {
        // The rules that DirectML has for strides refuse some outputs that do not overlap.
        assert!(
            errors.errors().iter().all(|error| error.rule != Rule::OutputOverlap),
            "{sizes:?} {strides:?}: {errors}"
        );
    }
});
