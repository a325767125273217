//! The binding rules: bindings that do not fit are rejected with the reason before anything is queued; the others run.

use dml_cuda::{
    BindingError, Buffer, BufferBinding, BufferError, Device, DispatchError,
    ReverseSubsequencesDesc, TensorDataType, TensorRole,
};
use dml_cuda_testing::{compile, devices, lanes, POISON};

const TOTAL: u64 = 32;

/// Two lanes of eight halves.
fn desc() -> ReverseSubsequencesDesc {
    lanes(TensorDataType::Float16, 2, 8)
}

fn misaligned(tensor: TensorRole, found: u64, required: u64) -> BindingError {
    BindingError::Alignment {
        tensor,
        what: "offset",
        found,
        required,
    }
}

fn poisoned(device: &Device, size: u64) -> Buffer {
    let buffer = device.create_buffer(size).expect("small");
    buffer
        .write(0, &vec![POISON; size as usize])
        .expect("the range is the buffer");
    buffer
}

fn bind(
    device: &Device,
    desc: ReverseSubsequencesDesc,
    inputs: &[BufferBinding],
    output: &BufferBinding,
) -> Result<(), BindingError> {
    compile(device, &desc.into())
        .bind(inputs, output)
        .map(|_| ())
}

#[test]
fn bindings_that_do_not_fit_are_rejected_with_the_reason() {
    for device in devices("bindings_that_do_not_fit_are_rejected_with_the_reason") {
        let buffer = poisoned(&device, 4096);
        let range = |offset, size| BufferBinding::range(&buffer, offset, size);
        let (input, lengths, output) = (range(0, TOTAL), range(64, 8), range(128, TOTAL));
        let out_of_range = |offset| BindingError::Range {
            tensor: TensorRole::Output,
            offset,
            length: TOTAL,
            size_in_bytes: 4096,
        };
        let overlap = |tensor, found, required| BindingError::Overlap {
            tensor,
            found,
            pointers: None,
            required,
        };
        let size = BindingError::Size {
            tensor: TensorRole::Input,
            found: TOTAL - 1,
            required: TOTAL,
        };
        let apart_or_same = "be the same range, to run in place, or lie apart";
        for (inputs, output, required) in [
            (vec![&input, &lengths], output.clone(), Ok(())),
            (
                vec![&input],
                output.clone(),
                Err(BindingError::Count {
                    found: 1,
                    required: 2,
                }),
            ),
            (
                vec![&range(0, TOTAL - 1), &lengths],
                output.clone(),
                Err(size),
            ),
            (
                vec![&input, &lengths],
                range(4080, TOTAL),
                Err(out_of_range(4080)),
            ),
            (
                vec![&input, &lengths],
                range(u64::MAX - 15, TOTAL),
                Err(out_of_range(u64::MAX - 15)),
            ),
            (
                vec![&input, &range(72, 8)],
                output.clone(),
                Err(misaligned(TensorRole::SequenceLengths, 72, 16)),
            ),
            (
                vec![&input, &lengths],
                range(16, TOTAL),
                Err(overlap(TensorRole::Input, 16, apart_or_same)),
            ),
            (
                vec![&input, &lengths],
                range(64, TOTAL),
                Err(overlap(TensorRole::SequenceLengths, 64, "lie apart")),
            ),
            (
                vec![&input, &range(16, 8)],
                input.clone(),
                Err(overlap(TensorRole::SequenceLengths, 16, "lie apart")),
            ),
        ] {
            let inputs: Vec<BufferBinding> = inputs.into_iter().cloned().collect();
            assert_eq!(
                bind(&device, desc(), &inputs, &output),
                required,
                "{device}"
            );
        }
        // Nothing was written by any of them.
        assert!(buffer
            .to_vec::<u8>()
            .expect("bytes")
            .iter()
            .all(|&byte| byte == POISON));
    }
}

#[test]
fn a_descriptor_decides_which_offsets_and_which_aliases_are_right() {
    for device in devices("a_descriptor_decides_which_offsets_and_which_aliases_are_right") {
        let buffer = poisoned(&device, 4096);
        let inputs = [
            BufferBinding::range(&buffer, 0, TOTAL),
            BufferBinding::range(&buffer, 64, 8),
        ];
        let with = |change: fn(&mut ReverseSubsequencesDesc), output| {
            let mut desc = desc();
            change(&mut desc);
            bind(
                &device,
                desc,
                &inputs,
                &BufferBinding::range(&buffer, output, TOTAL),
            )
        };
        let aligned = |desc: &mut ReverseSubsequencesDesc| {
            desc.output_tensor.guaranteed_base_offset_alignment = 256
        };
        assert_eq!(with(aligned, 256), Ok(()));
        assert_eq!(
            with(aligned, 128),
            Err(misaligned(TensorRole::Output, 128, 256))
        );
        // A broadcast input, whose lanes share their elements; and strides that only look different.
        assert_eq!(
            with(|desc| desc.input_tensor.strides = Some(vec![0, 1]), 0),
            Err(BindingError::InPlace)
        );
        assert_eq!(
            with(|desc| desc.input_tensor.strides = Some(vec![8, 1]), 0),
            Ok(())
        );
    }
}

#[test]
fn ranges_of_one_buffer_may_be_used_together() {
    for device in devices("ranges_of_one_buffer_may_be_used_together") {
        // The lengths, the smallest tensor, in the middle, before both others, and after both.
        for (input_at, lengths_at, output_at) in [
            (0u64, 64u64, 128u64),
            (128, 64, 0),
            (64, 0, 128),
            (128, 0, 64),
            (0, 128, 64),
            (64, 128, 0),
        ] {
            let buffer = device.create_buffer(256).expect("small");
            let input: Vec<u16> = (1..17).collect();
            buffer
                .write(input_at, bytemuck::cast_slice(&input))
                .expect("in range");
            buffer
                .write(lengths_at, bytemuck::cast_slice(&[8u32, 3]))
                .expect("in range");
            let operator = compile(&device, &desc().into());
            let inputs = [
                BufferBinding::range(&buffer, input_at, TOTAL),
                BufferBinding::range(&buffer, lengths_at, 8),
            ];
            let table = operator
                .bind(&inputs, BufferBinding::range(&buffer, output_at, TOTAL))
                .expect("apart");
            let stream = device.create_stream().expect("a stream");
            table.dispatch(&stream).expect("bound");
            let mut output = [0u16; 16];
            stream.synchronize().expect("done");
            buffer
                .read(output_at, bytemuck::cast_slice_mut(&mut output))
                .expect("in range");
            assert_eq!(
                output,
                [8, 7, 6, 5, 4, 3, 2, 1, 11, 10, 9, 12, 13, 14, 15, 16]
            );
        }
    }
}

/// Each thread reads what others write. On the CPU, all of them must lock the buffers in the same order.
#[test]
fn threads_may_use_the_same_buffers_in_any_role() {
    for device in devices("threads_may_use_the_same_buffers_in_any_role") {
        let operator = compile(&device, &desc().into());
        let buffers: Vec<Buffer> = (0..3)
            .map(|_| device.create_buffer(256).expect("small"))
            .collect();
        buffers.iter().for_each(|buffer| {
            buffer
                .write(128, bytemuck::cast_slice(&[8u32, 3]))
                .expect("in range")
        });
        std::thread::scope(|scope| {
            for roles in [
                [0, 1, 2],
                [0, 2, 1],
                [1, 0, 2],
                [1, 2, 0],
                [2, 0, 1],
                [2, 1, 0],
            ] {
                let [input, lengths, output] = roles.map(|n: usize| &buffers[n]);
                let (operator, device) = (&operator, &device);
                scope.spawn(move || {
                    let inputs = [
                        BufferBinding::range(input, 0, TOTAL),
                        BufferBinding::range(lengths, 128, 8),
                    ];
                    let table = operator
                        .bind(&inputs, BufferBinding::range(output, 0, TOTAL))
                        .expect("apart");
                    let stream = device.create_stream().expect("a stream");
                    (0..500).for_each(|_| table.dispatch(&stream).expect("bound"));
                    stream.synchronize().expect("done");
                });
            }
        });
        let lengths = buffers
            .iter()
            .map(|buffer| buffer.to_vec::<u32>().expect("whole")[32..34].to_vec());
        assert!(
            lengths.into_iter().all(|lengths| lengths == [8, 3]),
            "lengths were written"
        );
    }
}

#[test]
fn buffers_and_streams_of_another_device_are_rejected() {
    let Some(gpu) = dml_cuda_testing::cuda("buffers_and_streams_of_another_device_are_rejected")
    else {
        return;
    };
    let cpu = Device::cpu();
    let (here, there) = (poisoned(&cpu, 256), poisoned(&gpu, 256));
    let inputs = |buffer: &Buffer| {
        [
            BufferBinding::range(buffer, 0, TOTAL),
            BufferBinding::range(buffer, 64, 8),
        ]
    };
    for device in [&cpu, &gpu] {
        let found = bind(
            device,
            desc(),
            &inputs(&here),
            &BufferBinding::range(&there, 128, TOTAL),
        );
        assert!(
            matches!(found, Err(BindingError::Device { .. })),
            "{device}: {found:?}"
        );
    }

    let operator = compile(&cpu, &desc().into());
    let table = operator
        .bind(&inputs(&here), BufferBinding::range(&here, 128, TOTAL))
        .expect("right");
    let rejected = table.dispatch(&gpu.create_stream().expect("a stream"));
    assert!(
        matches!(rejected, Err(DispatchError::Device { .. })),
        "{rejected:?}"
    );
}

#[test]
fn buffers_refuse_ranges_past_their_end_and_sizes_past_all_memory() {
    for device in devices("buffers_refuse_ranges_past_their_end_and_sizes_past_all_memory") {
        let buffer = device.create_buffer(10).expect("small");
        assert_eq!(buffer.to_vec::<u8>(), Ok(vec![0; 10]));
        assert!(matches!(
            buffer.write(8, &[0; 3]),
            Err(BufferError::OutOfRange {
                offset: 8,
                length: 3,
                size_in_bytes: 10
            })
        ));
        assert!(matches!(
            buffer.read(u64::MAX, &mut [0; 2]),
            Err(BufferError::OutOfRange { .. })
        ));
        assert!(matches!(
            buffer.to_vec::<u32>(),
            Err(BufferError::PartialElement { .. })
        ));
        assert!(matches!(
            buffer.read_elements::<u32>(3),
            Err(BufferError::OutOfRange { .. })
        ));
        for size in [1 << 60, u64::MAX] {
            assert!(
                matches!(
                    device.create_buffer(size),
                    Err(BufferError::OutOfMemory { .. })
                ),
                "{size}"
            );
        }
        assert_eq!(
            device
                .create_buffer(0)
                .expect("nothing is little")
                .to_vec::<u8>(),
            Ok(Vec::new())
        );
    }
}

#[test]
fn bindings_at_elements_stay_inside_their_buffers() {
    for device in devices("bindings_at_elements_stay_inside_their_buffers") {
        let operator = compile(&device, &desc().into());
        let values: Vec<u16> = (0..24).collect();
        let (input, lengths) = (
            device.create_buffer_from(&values).expect("small"),
            device.create_buffer_from(&[8u32, 3]).expect("small"),
        );
        let output = poisoned(&device, 48);
        let inputs = [
            BufferBinding::range(&input, 2, TOTAL),
            BufferBinding::whole(&lengths),
        ];
        let table = operator
            .bind_at_elements(&inputs, BufferBinding::range(&output, 6, TOTAL))
            .expect("it fits");
        let stream = device.create_stream().expect("a stream");
        table.dispatch(&stream).expect("it runs");
        let found: Vec<u16> = output.to_vec().expect("whole elements");
        let poison = u16::from_le_bytes([POISON; 2]);
        assert_eq!(found[..3], [poison; 3]);
        assert_eq!(
            found[3..19],
            [8, 7, 6, 5, 4, 3, 2, 1, 11, 10, 9, 12, 13, 14, 15, 16]
        );
        assert_eq!(found[19..], [poison; 5]);
        let at = |offset| {
            operator
                .bind_at_elements(&inputs, BufferBinding::range(&output, offset, TOTAL))
                .err()
        };
        assert!(matches!(
            at(1),
            Some(BindingError::Alignment {
                found: 1,
                required: 2,
                ..
            })
        ));
        assert!(matches!(
            at(18),
            Some(BindingError::Range { offset: 18, .. })
        ));
    }
}
