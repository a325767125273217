//! Outputs with any strides: accepted where no two elements share memory, by looking at every one.
#![no_main]

use dml_cuda::{validate, BufferTensorDesc, FeatureLevel, ScalarUnion, TensorDataType};
use dml_cuda_testing::{descriptors::Bytes, fill, oracle};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let rank = 1 + usize::from(bytes.u8() % 8);
    let sizes: Vec<u32> = (0..rank).map(|_| 1 + u32::from(bytes.u8() % 9)).collect();
    let strides: Vec<u32> = (0..rank)
        .map(|_| u32::from(bytes.u8()) * u32::from(1 + bytes.u8() % 5))
        .collect();
    if sizes.iter().map(|&size| f64::from(size)).product::<f64>() > 2e4 {
        return;
    }
    let mut desc = fill(
        TensorDataType::UInt8,
        &sizes,
        ScalarUnion::UInt8(0),
        ScalarUnion::UInt8(1),
    );
    desc.output_tensor = BufferTensorDesc::strided(TensorDataType::UInt8, &sizes, &strides);
    let desc = desc.into();
    let verdict = validate(&desc, FeatureLevel::HIGHEST);
    assert_eq!(
        verdict.is_ok(),
        oracle::accepts(&desc),
        "{sizes:?} {strides:?}: {verdict:?}"
    );
});
