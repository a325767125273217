//! Slices and streams of cudarc: `CompiledOperator::dispatch_on`.

use std::sync::Arc;

use crate::common::{cuda, lanes};
use cudarc::driver::{CudaContext, CudaStream};
use dml_cuda::{
    reverse_subsequences, BindingError, BufferTensorDesc, Device, DispatchError, FillValueSequenceDesc, ScalarUnion,
    TensorDataType,
};

fn stream() -> Arc<CudaStream> {
    CudaContext::new(0).expect("a GPU is there").new_stream().expect("a stream")
}

#[test]
fn slices_are_reversed_and_filled_and_operators_may_go_at_once() {
    let Some(device) = cuda("slices_are_reversed_and_filled_and_operators_may_go_at_once") else { return };
    let (stream, other) = (stream(), stream());
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let lengths = [8u32, 3, 100];
    let required = reverse_subsequences(&Device::cpu(), &values, &[3, 8], 1, &lengths).expect("right");
    let mut data = stream.clone_htod(&values).expect("small");
    let on_device = other.clone_htod(&lengths).expect("small");
    let mut output = stream.alloc_zeros::<f32>(24).expect("small");
    crate::common::compile(&device, &lanes(TensorDataType::Float32, 3, 8).into())
        .dispatch_on(&stream, &[&data, &on_device.slice(..)], &mut output.slice_mut(..))
        .expect("queued");
    assert_eq!(stream.clone_dtoh(&output).expect("read"), required);
    crate::common::compile(&device, &lanes(TensorDataType::Float32, 3, 8).into())
        .dispatch_in_place_on(&stream, &on_device, &mut data)
        .expect("queued");
    assert_eq!(stream.clone_dtoh(&data).expect("read"), required);
    let fill = FillValueSequenceDesc {
        output_tensor: BufferTensorDesc::packed(TensorDataType::UInt8, &[3]),
        value_data_type: TensorDataType::UInt8,
        value_start: ScalarUnion::UInt8(5),
        value_delta: ScalarUnion::UInt8(2),
    };
    let mut three = stream.alloc_zeros::<u8>(3).expect("small");
    crate::common::compile(&device, &fill.into()).dispatch_on(&stream, &[], &mut three).expect("queued");
    drop(device);
    assert_eq!(stream.clone_dtoh(&three).expect("read"), [5, 7, 9]);
}

#[test]
fn slices_that_do_not_fit_are_refused() {
    let Some(device) = cuda("slices_that_do_not_fit_are_refused") else { return };
    let stream = stream();
    let operator = crate::common::compile(&device, &lanes(TensorDataType::Float32, 3, 8).into());
    let data = stream.alloc_zeros::<f32>(24).expect("small");
    let lengths = stream.alloc_zeros::<u32>(3).expect("small");
    let mut output = stream.alloc_zeros::<f32>(24).expect("small");
    let error = operator.dispatch_on(&stream, &[&data.slice(1..), &lengths], &mut output).expect_err("too small");
    assert_eq!(
        error.to_string(),
        "the slice of InputTensor is 92 bytes, must be at least 96, from its first element to its last (binding.slice)"
    );
    let error = operator.dispatch_on(&stream, &[&data], &mut output).expect_err("an input is missing");
    assert!(matches!(error, DispatchError::Binding(BindingError::Count { found: 1, required: 2 })), "{error}");
    let cpu = crate::common::compile(&Device::cpu(), &lanes(TensorDataType::Float32, 3, 8).into());
    let error = cpu.dispatch_on(&stream, &[&data, &lengths], &mut output).expect_err("another device");
    assert_eq!(
        error.to_string(),
        "the buffer of InputTensor is of GPU 0, must be of CPU, the operator's device (binding.device)"
    );
}
