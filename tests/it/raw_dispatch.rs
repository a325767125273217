//! `CompiledOperator::dispatch_raw` on every device: pointers at every alignment, into memory that the library did not
//! allocate and that ends where the tensor ends; and pointers that it must refuse.
#![allow(unsafe_code)]

use crate::outside::{Memory, Outside};
use dml_cuda::{
    Address, BindingError, BufferTensorDesc, Device, DispatchError, RawStream, TensorDataType,
    TensorRole,
};
use dml_cuda_testing::cases::{self, Case};
use dml_cuda_testing::{assert_same, compile, devices, in_threads, lanes, oracle, POISON};

/// The bytes from the first element of a tensor to its last, which TotalTensorSizeInBytes rounds up.
fn span(tensor: &BufferTensorDesc) -> usize {
    let last: Vec<u32> = tensor.sizes.iter().map(|size| size - 1).collect();
    (oracle::offset(tensor, &last) + 1) * oracle::width(tensor)
}

/// On a CPU, `case_table` and the random descriptors find the same wrong bytes, so that a share is enough. It has every
/// alignment, because the step is odd.
#[test]
fn the_case_table_is_right_at_every_alignment() {
    const PARTS: usize = 16;
    let table = cases::all();
    for device in devices("the_case_table_is_right_at_every_alignment") {
        let step = if device.ordinal().is_some() { 1 } else { 17 };
        in_threads(PARTS, |part| {
            let outside = Outside::new(&device);
            let numbers = (part * step..table.len()).step_by(PARTS * step);
            numbers.for_each(|n| check(&device, &outside, n, &table[n]));
        });
    }
}

/// Runs a case, whose number says where its tensors begin.
fn check(device: &Device, outside: &Outside, n: usize, case: &Case) {
    let operator = compile(device, &case.desc);
    let output = case.desc.output_tensor();
    // How many bytes past a multiple of 16 each tensor begins.
    let lead = |factor| (n * factor % 16) * oracle::width(output);
    let spans = case.desc.input_tensors().into_iter().map(span);
    let inputs: Vec<&[u8]> = case
        .inputs
        .iter()
        .zip(spans)
        .map(|(bytes, span)| &bytes[..span])
        .collect();
    let mut memory: Vec<Memory> = inputs
        .iter()
        .zip([lead(5), 8])
        .map(|(bytes, lead)| outside.memory(bytes, lead))
        .collect();
    let addresses: Vec<u64> = memory.iter().map(Memory::tensor).collect();
    if !case.in_place {
        memory.insert(0, outside.memory(&vec![POISON; span(output)], lead(3)));
    }
    // SAFETY: the memory is initialized, as large as the tensors, and nothing else uses it.
    unsafe { outside.dispatch(&operator, &addresses, memory[0].tensor()) }
        .expect("the pointers are right");
    let mut found = memory[0].read();
    // The memory has no bytes past the last element.
    let expected = case.expected();
    found.extend_from_slice(&expected[found.len()..]);
    assert_same(device, &case.desc, &found, &expected);
    let unchanged = memory[1..].iter().rev().zip(inputs.iter().rev());
    unchanged
        .for_each(|(memory, before)| assert_eq!(memory.read(), *before, "an input was written"));
}

#[test]
fn wrong_pointers_are_refused_before_anything_is_queued() {
    for device in devices("wrong_pointers_are_refused_before_anything_is_queued") {
        let outside = Outside::new(&device);
        let operator = compile(&device, &lanes(TensorDataType::UInt16, 1, 3).into());
        let memory = outside.memory(&[POISON; 64], 0);
        let at = memory.tensor();
        let alignment = |tensor, found, required| BindingError::Alignment {
            tensor,
            what: "pointer",
            found,
            required,
        };
        let overlap = |tensor, output: u64, input: u64, required| BindingError::Overlap {
            tensor,
            found: output.max(input),
            pointers: Some((output, input)),
            required,
        };
        let apart_or_same = "be the same range, to run in place, or lie apart";
        for (inputs, output, required) in [
            (
                &[at][..],
                at + 16,
                BindingError::Count {
                    found: 1,
                    required: 2,
                },
            ),
            (
                &[0, at],
                at + 16,
                BindingError::Null {
                    tensor: TensorRole::Input,
                },
            ),
            (
                &[at + 1, at + 32],
                at + 16,
                alignment(TensorRole::Input, at + 1, 2),
            ),
            (
                &[at, at + 34],
                at + 16,
                alignment(TensorRole::SequenceLengths, at + 34, 4),
            ),
            (
                &[at, at + 32],
                at + 17,
                alignment(TensorRole::Output, at + 17, 2),
            ),
            (
                &[at, at + 32],
                at + 2,
                overlap(TensorRole::Input, at + 2, at, apart_or_same),
            ),
            (
                &[at, at + 32],
                at + 34,
                overlap(TensorRole::SequenceLengths, at + 34, at + 32, "lie apart"),
            ),
        ] {
            // SAFETY: the call is refused, so that nothing accesses the memory; this is what the test shows.
            let found = unsafe { outside.dispatch(&operator, inputs, output) };
            assert_eq!(found, Err(DispatchError::Binding(required)), "{device}");
        }
        assert!(memory.read().iter().all(|&byte| byte == POISON));
    }
    let operator = compile(&Device::cpu(), &lanes(TensorDataType::UInt8, 1, 3).into());
    // SAFETY: the call is refused, so that nothing accesses the memory.
    let error = unsafe {
        operator.dispatch_raw(
            &[Address(16), Address(32)],
            Address(48),
            RawStream(256 as *mut _),
        )
    };
    assert_eq!(
        error,
        Err(DispatchError::Stream { found: 256 }),
        "the CPU has no streams of the driver"
    );
}

#[test]
fn tensors_that_end_inside_a_word_may_lie_side_by_side() {
    for device in devices("tensors_that_end_inside_a_word_may_lie_side_by_side") {
        let outside = Outside::new(&device);
        let operator = compile(&device, &lanes(TensorDataType::UInt8, 1, 3).into());
        let memory = outside.memory(&[1, 2, 3, 0, 0, 0], 0);
        let lengths = outside.memory(&3u32.to_ne_bytes(), 0);
        let at = memory.tensor();
        // SAFETY: three bytes each, initialized, used by nothing else.
        unsafe { outside.dispatch(&operator, &[at, lengths.tensor()], at + 3) }
            .expect("they lie apart");
        assert_eq!(memory.read(), [1, 2, 3, 3, 2, 1]);

        // The first and the third of four columns, whose ranges overlap. The lengths are between them.
        let mut desc = lanes(TensorDataType::UInt32, 1, 3);
        desc.input_tensor = BufferTensorDesc::strided(TensorDataType::UInt32, &[1, 3], &[12, 4]);
        desc.output_tensor = desc.input_tensor.clone();
        let operator = compile(&device, &desc.into());
        let memory = outside.memory(
            bytemuck::cast_slice(&[10u32, 2, 0, 7, 20, 2, 0, 7, 30, 2, 0, 7]),
            0,
        );
        let at = memory.tensor();
        // SAFETY: twelve bytes each, initialized, used by nothing else.
        unsafe { outside.dispatch(&operator, &[at, at + 4], at + 8) }.expect("no element overlaps");
        let required = [10u32, 2, 20, 7, 20, 2, 10, 7, 30, 2, 30, 7];
        assert_eq!(
            memory.read(),
            bytemuck::cast_slice::<u32, u8>(&required),
            "{device}"
        );
    }
}
