//! Slices of the host and of cudarc instead of buffers: `CompiledOperator::dispatch_on_host` and `dispatch_on`.

use dml_cuda::{
    fill_value_sequence, reverse_subsequences, BindingError, CompiledOperator, Device,
    DispatchError, Error, ScalarUnion, TensorDataType, TensorRole,
};
use dml_cuda_testing::{self, compile, cuda, devices, lanes};

/// Fills UINT8 with 5, 7, …
fn fill(device: &Device, count: u32) -> CompiledOperator {
    let [start, delta] = [5, 2].map(ScalarUnion::UInt8);
    compile(
        device,
        &dml_cuda_testing::fill(TensorDataType::UInt8, &[count], start, delta).into(),
    )
}

fn refused(result: Result<(), DispatchError>) -> BindingError {
    match result {
        Err(DispatchError::Binding(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn slices_of_the_host_are_checked_before_anything_is_written() {
    let cpu = compile(&Device::cpu(), &lanes(TensorDataType::UInt16, 1, 3).into());
    let (input, lengths) = ([1u16, 2, 3], [2u32]);
    let (input, lengths): (&[u8], &[u8]) =
        (bytemuck::cast_slice(&input), bytemuck::cast_slice(&lengths));
    let mut output = [9u16; 3];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut output);
    let slice = |tensor, found, required| BindingError::Slice {
        tensor,
        found,
        required,
    };
    assert_eq!(
        refused(cpu.dispatch_on_host(&[input], bytes)),
        BindingError::Count {
            found: 1,
            required: 2
        }
    );
    assert_eq!(
        refused(cpu.dispatch_on_host(&[&input[2..], lengths], bytes)),
        slice(TensorRole::Input, 4, 6)
    );
    assert_eq!(
        refused(cpu.dispatch_on_host(&[input, &lengths[..3]], bytes)),
        slice(TensorRole::SequenceLengths, 3, 4)
    );
    assert_eq!(
        refused(cpu.dispatch_on_host(&[input, lengths], &mut bytes[..5])),
        slice(TensorRole::Output, 5, 6)
    );
    assert_eq!(
        refused(cpu.dispatch_in_place_on_host(&lengths[..3], bytes)),
        slice(TensorRole::SequenceLengths, 3, 4)
    );
    let words = [0u16; 8];
    let odd = &bytemuck::cast_slice(&words)[1..];
    assert!(matches!(
        refused(cpu.dispatch_on_host(&[odd, lengths], bytes)),
        BindingError::Alignment {
            tensor: TensorRole::Input,
            required: 2,
            ..
        }
    ));
    assert_eq!(output, [9; 3]);
    cpu.dispatch_on_host(&[input, lengths], bytemuck::cast_slice_mut(&mut output))
        .expect("right");
    assert_eq!(output, [2, 1, 3]);
    cpu.dispatch_in_place_on_host(lengths, bytemuck::cast_slice_mut(&mut output))
        .expect("right");
    assert_eq!(output, [1, 2, 3]);
    let (fill, mut filled) = (fill(&Device::cpu(), 2), [1; 3]);
    fill.dispatch_on_host(&[], &mut filled).expect("right");
    assert_eq!(filled, [5, 7, 1]);
    let no_inputs = BindingError::Count {
        found: 2,
        required: 0,
    };
    assert_eq!(
        refused(fill.dispatch_in_place_on_host(lengths, &mut filled)),
        no_inputs
    );
}

#[test]
fn an_operator_of_a_gpu_refuses_slices_of_the_host() {
    let Some(device) = cuda("an_operator_of_a_gpu_refuses_slices_of_the_host") else {
        return;
    };
    let mut filled = [1; 3];
    assert!(matches!(
        refused(fill(&device, 2).dispatch_on_host(&[], &mut filled)),
        BindingError::Device { .. }
    ));
    assert_eq!(filled, [1; 3]);
}

#[cfg(feature = "cudarc-0_19")]
#[test]
fn slices_of_cudarc_are_reversed_and_filled_and_may_outlive_the_operator() {
    let test = "slices_of_cudarc_are_reversed_and_filled_and_may_outlive_the_operator";
    let Some(device) = cuda(test) else { return };
    let context = cudarc::driver::CudaContext::new(0).expect("a GPU is there");
    // `new_stream` waits for the whole context, which is an error while another test captures a stream.
    let stream = context.default_stream();
    let other = stream.fork().expect("a stream");
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let lengths = [8u32, 3, 100];
    let required =
        reverse_subsequences(&Device::cpu(), &values, &[3, 8], 1, &lengths).expect("right");
    let mut data = stream.clone_htod(&values).expect("small");
    let on_device = other.clone_htod(&lengths).expect("small");
    let mut output = stream.alloc_zeros::<f32>(24).expect("small");
    let reversal = || compile(&device, &lanes(TensorDataType::Float32, 3, 8).into());
    reversal()
        .dispatch_on(
            &stream,
            &[&data, &on_device.slice(..)],
            &mut output.slice_mut(..),
        )
        .expect("queued");
    assert_eq!(stream.clone_dtoh(&output).expect("read"), required);
    reversal()
        .dispatch_in_place_on(&stream, &on_device, &mut data)
        .expect("queued");
    assert_eq!(stream.clone_dtoh(&data).expect("read"), required);

    let short = &data.slice(1..);
    let error = refused(reversal().dispatch_on(&stream, &[short, &on_device], &mut output));
    assert_eq!(
        error,
        BindingError::Slice {
            tensor: TensorRole::Input,
            found: 92,
            required: 96
        }
    );
    let error = refused(reversal().dispatch_on(&stream, &[&data], &mut output));
    assert_eq!(
        error,
        BindingError::Count {
            found: 1,
            required: 2
        }
    );
    let on_cpu = compile(&Device::cpu(), &lanes(TensorDataType::Float32, 3, 8).into());
    let error = refused(on_cpu.dispatch_on(&stream, &[&data, &on_device], &mut output));
    assert!(
        matches!(
            error,
            BindingError::Device {
                tensor: TensorRole::Input,
                ..
            }
        ),
        "{error}"
    );

    let mut three = stream.alloc_zeros::<u8>(3).expect("small");
    fill(&device, 3)
        .dispatch_on(&stream, &[], &mut three)
        .expect("queued");
    drop(device);
    assert_eq!(stream.clone_dtoh(&three).expect("read"), [5, 7, 9]);
}

/// Lengths may be above the size of the axis, where they act as that size.
#[test]
fn lengths_are_integers_of_any_type() {
    fn reversed<L: dml_cuda::Length>(lengths: [L; 2]) -> Result<Vec<u8>, String> {
        let found = reverse_subsequences(&Device::cpu(), &[1, 2, 3, 4], &[2, 2], 1, &lengths);
        found.map_err(|error| error.to_string())
    }
    let right = Ok(vec![1, 2, 4, 3]);
    assert_eq!(reversed([1, 2]), right);
    assert_eq!(
        (reversed([1u8, 9]), reversed([1i8, 9]), reversed([1u16, 9])),
        (right.clone(), right.clone(), right.clone())
    );
    assert_eq!(
        (reversed([1i64, i64::MAX]), reversed([1u64, 1 << 33])),
        (right.clone(), right.clone())
    );
    assert_eq!(
        (reversed([1usize, 2]), reversed([1isize, 2])),
        (right.clone(), right)
    );
    assert_eq!(
        reversed([1i64, -1]),
        Err("lengths[1] is -1, but must be at least 0".to_owned())
    );
}

#[test]
fn the_short_paths_run_on_every_device_and_refuse_slices_that_do_not_fit() {
    for device in devices("the_short_paths_run_on_every_device_and_refuse_slices_that_do_not_fit") {
        assert_eq!(
            fill_value_sequence(&device, &[2, 2], 10u8, -2i8),
            Ok(vec![10, 8, 6, 4])
        );
        let reverse = |lengths: &[u32], axis| {
            reverse_subsequences(&device, &[1, 2, 3, 4], &[2, 2], axis, lengths)
        };
        assert_eq!(reverse(&[1, 2], 1), Ok(vec![1, 2, 4, 3]));
        let error = reverse(&[2], 1).expect_err("one length");
        assert_eq!(
            error.to_string(),
            "the slice of SequenceLengthsTensor is 1 elements, but must be 2, the product of its sizes (slice.length)"
        );
        assert!(matches!(reverse(&[2], 2), Err(Error::Validation(_))));
        assert!(matches!(
            fill_value_sequence(&device, &[65536, 65536], 0u8, 1u8),
            Err(Error::Validation(_))
        ));
    }
}
