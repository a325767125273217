//! Any descriptor: the verdict of a slow model, at every level and version an answer, a plan for every GPU, and on the
//! CPU the slow model's bytes.
#![no_main]

use dml_cuda::{validate, validate_as, Device, DirectMlVersion, FeatureLevel, GpuTarget};
use dml_cuda_testing::descriptors::{check, Bytes};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let desc = bytes.desc();
    for &level in FeatureLevel::ALL {
        let _ = validate(&desc, level);
    }
    for version in DirectMlVersion::recorded() {
        let _ = validate_as(&desc, &version);
    }
    let operator = Device::cpu().create_operator(desc.clone());
    assert_eq!(
        operator.is_ok(),
        validate(&desc, FeatureLevel::HIGHEST).is_ok()
    );
    if let Ok(operator) = &operator {
        for (_, target) in GpuTarget::NAMED {
            let _ = operator.explain(target);
        }
    }
    let _ = check(&Device::cpu(), &desc, bytes.u64());
});
