//! Any descriptor: the verdict of a slow model, at every level and version an answer, a plan for every GPU, and on the
//! CPU the slow model's bytes.
#![no_main]

mod bytes;

use dml_cuda::{validate, validate_as, Device, DirectMlVersion, FeatureLevel, GpuTarget, OperatorDesc};
use dml_cuda_testing::{self as common, oracle};

/// Elements that the slow model can be asked about.
const FEW: f64 = 5e4;

fn elements(tensor: &dml_cuda::BufferTensorDesc) -> f64 {
    let span = |strides: &[u32]| -> f64 {
        tensor.sizes.iter().zip(strides).map(|(&size, &stride)| f64::from(size) * f64::from(stride)).sum()
    };
    let count: f64 = tensor.sizes.iter().map(|&size| f64::from(size)).product();
    count.max(tensor.strides.as_deref().map_or(0.0, span))
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut bytes = bytes::Bytes(data);
    let desc = bytes.desc();
    let verdict = validate(&desc, FeatureLevel::HIGHEST);
    for level in FeatureLevel::ALL {
        let _ = validate(&desc, level);
    }
    for version in DirectMlVersion::recorded() {
        let _ = validate_as(&desc, &version);
    }
    let operator = Device::cpu().create_operator(desc.clone()).ok();
    assert_eq!(operator.is_some(), verdict.is_ok());
    if let Some(operator) = &operator {
        for (_, target) in GpuTarget::NAMED {
            let _ = operator.explain(target);
        }
    }
    let mut tensors = desc.input_tensors();
    tensors.push(desc.output_tensor());
    if tensors.iter().any(|tensor| elements(tensor) > FEW) {
        return;
    }
    assert_eq!(verdict.is_ok(), oracle::accepts(&desc), "{desc:?}\n{verdict:?}");
    // The run begins a tensor at its alignment, which may be 2 GiB.
    let large = |tensor: &&dml_cuda::BufferTensorDesc| {
        tensor.total_tensor_size_in_bytes > 1 << 20 || tensor.guaranteed_base_offset_alignment > 1 << 16
    };
    if verdict.is_err() || tensors.iter().any(large) {
        return;
    }
    let inputs = common::cases::inputs(&mut common::Random(bytes.u64()), &desc);
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let device = Device::cpu();
    common::assert_same(
        &device,
        &desc,
        &common::run(&device, &desc, &inputs, false),
        &oracle::expected(&desc, &inputs, false),
    );
    if let OperatorDesc::ReverseSubsequences(reverse) = &desc {
        if reverse.input_tensor == reverse.output_tensor {
            let found = common::run(&device, &desc, &inputs, true);
            common::assert_same(&device, &desc, &found, &oracle::expected(&desc, &inputs, true));
        }
    }
});
