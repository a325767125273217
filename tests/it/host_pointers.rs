//! The CPU device on host memory: raw pointers into memory that ends where the tensor ends, and slices. Also, for every
//! device, that an operator refuses dispatches that it was not compiled for.
#![allow(unsafe_code)]

use crate::common::{assert_same, cases, compile, cuda, lanes, oracle, POISON};
use dml_cuda::{
    Address, BindingError, BufferBinding, BufferTensorDesc, CompileOptions, CompiledOperator, Device, DispatchError,
    FillValueSequenceDesc, ScalarUnion, TensorDataType, TensorRole,
};

/// Host memory whose first byte is `lead` bytes past a multiple of 16.
struct Memory {
    words: Vec<u128>,
    lead: usize,
    size: usize,
}

impl Memory {
    fn new(bytes: &[u8], lead: usize) -> Self {
        let poison = u128::from_ne_bytes([POISON; 16]);
        let mut memory = Self { words: vec![poison; (lead + bytes.len()).div_ceil(16) + 2], lead, size: bytes.len() };
        memory.all()[lead..][..bytes.len()].copy_from_slice(bytes);
        memory
    }

    fn all(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words)
    }

    fn address(&mut self) -> Address {
        self.words.as_mut_ptr() as Address + self.lead as Address
    }

    /// Its bytes. Panics if bytes around it were written.
    fn read(mut self) -> Vec<u8> {
        let (lead, size) = (self.lead, self.size);
        let all = self.all();
        let around = all[..lead].iter().chain(&all[lead + size..]);
        assert!(around.into_iter().all(|&byte| byte == POISON), "bytes around the tensor were written");
        all[lead..][..size].to_vec()
    }
}

/// The bytes from the first element of a tensor to its last, which TotalTensorSizeInBytes rounds up.
fn span(tensor: &BufferTensorDesc) -> usize {
    let last = |strides: &[u32]| -> u64 {
        tensor.sizes.iter().zip(strides).map(|(&size, &stride)| u64::from(size - 1) * u64::from(stride)).sum()
    };
    let elements = match &tensor.strides {
        Some(strides) => 1 + last(strides),
        None => tensor.sizes.iter().map(|&size| u64::from(size)).product(),
    };
    elements as usize * oracle::width(tensor)
}

#[test]
fn the_case_table_is_right_on_host_memory_of_any_alignment() {
    let device = Device::cpu();
    let mut run = 0;
    for (n, case) in cases::all().iter().enumerate() {
        let operator = compile(&device, &case.desc);
        let tensors = operator.operator().tensors();
        let output_desc = case.desc.output_tensor();
        let width = oracle::width(output_desc);
        let leads = [(n * 5 % 16) * width % 16, 8];
        let mut inputs: Vec<Memory> = case
            .inputs
            .iter()
            .zip(&tensors)
            .zip(leads)
            .map(|((bytes, (_, desc)), lead)| Memory::new(&bytes[..span(desc)], lead))
            .collect();
        let addresses: Vec<Address> = inputs.iter_mut().map(Memory::address).collect();
        let mut output = Memory::new(&vec![POISON; span(output_desc)], (n * 3 % 16) * width % 16);
        let address = if case.in_place { addresses[0] } else { output.address() };
        // SAFETY: the memory is initialized, as large as the tensors, and nothing else uses it.
        unsafe { operator.dispatch_raw(&addresses, address, std::ptr::null_mut()) }.expect("the pointers are right");
        let before = inputs.first().map(|_| case.inputs[0].clone());
        let mut found = if case.in_place { inputs.remove(0) } else { output }.read();
        // The bytes of TotalTensorSizeInBytes past the last element were not passed in, so they cannot have changed.
        let expected = case.expected();
        found.extend_from_slice(&expected[found.len()..]);
        assert_same(&device, &case.desc, &found, &expected);
        if let (false, Some(before)) = (case.in_place, before) {
            assert_eq!(inputs.remove(0).read(), before[..span(tensors[0].1)], "the input was written");
        }
        run += 1;
    }
    assert!(run > 4000, "{run}");
}

fn binding(result: Result<(), DispatchError>) -> BindingError {
    match result {
        Err(DispatchError::Binding(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_host_pointers_are_refused() {
    let operator = compile(&Device::cpu(), &lanes(TensorDataType::UInt8, 1, 3).into());
    let mut memory = Memory::new(&[POISON; 64], 0);
    let at = memory.address();
    // SAFETY: every call is refused, so that no memory is accessed; this is what the test shows.
    let dispatch = |inputs: &[Address], output| unsafe { operator.dispatch_raw(inputs, output, std::ptr::null_mut()) };
    assert_eq!(binding(dispatch(&[at], at + 16)), BindingError::Count { found: 1, required: 2 });
    assert_eq!(binding(dispatch(&[0, at], at + 16)), BindingError::Null { tensor: TensorRole::Input });
    assert_eq!(
        binding(dispatch(&[at, at + 33], at + 16)),
        BindingError::Alignment { tensor: TensorRole::SequenceLengths, what: "pointer", found: at + 33, required: 4 }
    );
    for (output, tensor, input, required) in [
        (at + 2, "InputTensor", at, "be the same range, to run in place, or lie apart"),
        (at + 34, "SequenceLengthsTensor", at + 32, "lie apart"),
    ] {
        let said = format!(
            "the range of OutputTensor at pointer {output:#x} overlaps that of {tensor} at pointer {input:#x}, must {required} (binding.overlap)"
        );
        assert_eq!(binding(dispatch(&[at, at + 32], output)).to_string(), said);
    }
    let stream = 256 as *mut _;
    // SAFETY: as above.
    let error = unsafe { operator.dispatch_raw(&[at, at + 32], at + 16, stream) }.expect_err("there are no streams");
    assert_eq!(
        error.to_string(),
        "the stream of the dispatch is 0x100, must be null: the operator is of CPU, which has no streams (dispatch.stream)"
    );
    assert!(memory.read().iter().all(|&byte| byte == POISON));
}

/// 0, 1, … of UINT8.
fn bytes_from_0(count: u32) -> FillValueSequenceDesc {
    FillValueSequenceDesc {
        output_tensor: BufferTensorDesc::packed(TensorDataType::UInt8, &[count]),
        value_data_type: TensorDataType::UInt8,
        value_start: ScalarUnion::UInt8(0),
        value_delta: ScalarUnion::UInt8(1),
    }
}

#[test]
fn slices_of_the_host_are_checked_before_anything_is_written() {
    let cpu = compile(&Device::cpu(), &lanes(TensorDataType::UInt16, 1, 3).into());
    let (input, lengths) = ([1u16, 2, 3], [2u32]);
    let (input, lengths): (&[u8], &[u8]) = (bytemuck::cast_slice(&input), bytemuck::cast_slice(&lengths));
    let mut output = [9u16; 3];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut output);
    let slice = |tensor, found, required| BindingError::Slice { tensor, found, required };
    assert_eq!(binding(cpu.dispatch_on_host(&[input], bytes)), BindingError::Count { found: 1, required: 2 });
    assert_eq!(binding(cpu.dispatch_on_host(&[&input[2..], lengths], bytes)), slice(TensorRole::Input, 4, 6));
    assert_eq!(binding(cpu.dispatch_on_host(&[input, &lengths[..3]], bytes)), slice(TensorRole::SequenceLengths, 3, 4));
    assert_eq!(binding(cpu.dispatch_on_host(&[input, lengths], &mut bytes[..5])), slice(TensorRole::Output, 5, 6));
    assert_eq!(binding(cpu.dispatch_in_place_on_host(&lengths[..3], bytes)), slice(TensorRole::SequenceLengths, 3, 4));
    let odd = [[0u8; 8], [0; 8]].concat();
    let odd = &odd[1 + odd.as_ptr() as usize % 2..];
    assert!(matches!(
        binding(cpu.dispatch_on_host(&[odd, lengths], bytes)),
        BindingError::Alignment { tensor: TensorRole::Input, required: 2, .. }
    ));
    assert_eq!(output, [9; 3]);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut output);
    cpu.dispatch_on_host(&[input, lengths], bytes).expect("right");
    assert_eq!(output, [2, 1, 3]);
    cpu.dispatch_in_place_on_host(lengths, bytemuck::cast_slice_mut(&mut output)).expect("right");
    assert_eq!(output, [1, 2, 3]);
    let fill = compile(&Device::cpu(), &bytes_from_0(2).into());
    let mut filled = [7u8; 3];
    fill.dispatch_on_host(&[], &mut filled).expect("right");
    assert_eq!(filled, [0, 1, 7]);
    assert_eq!(
        binding(fill.dispatch_in_place_on_host(lengths, &mut filled)),
        BindingError::Count { found: 2, required: 0 }
    );
}

#[test]
fn slices_of_the_host_are_not_for_an_operator_of_a_gpu() {
    let Some(device) = cuda("slices_of_the_host_are_not_for_an_operator_of_a_gpu") else { return };
    let fill = compile(&device, &bytes_from_0(2).into());
    let mut filled = [7u8; 3];
    assert!(matches!(binding(fill.dispatch_on_host(&[], &mut filled)), BindingError::Device { .. }));
    assert_eq!(filled, [7; 3]);
}

#[test]
fn tensors_that_end_inside_a_word_may_lie_side_by_side() {
    let operator = compile(&Device::cpu(), &lanes(TensorDataType::UInt8, 1, 3).into());
    let mut memory = Memory::new(&[1, 2, 3, 0, 0, 0], 0);
    let mut lengths = Memory::new(&3u32.to_ne_bytes(), 0);
    let at = memory.address();
    // SAFETY: three bytes each, initialized, used by nothing else.
    unsafe { operator.dispatch_raw(&[at, lengths.address()], at + 3, std::ptr::null_mut()) }.expect("they lie apart");
    assert_eq!(memory.read(), [1, 2, 3, 3, 2, 1]);
}

fn compiled_for(device: &Device, pointer_alignment: u32, in_place: Option<bool>) -> CompiledOperator {
    let operator = device.create_operator(lanes(TensorDataType::UInt8, 4, 16)).expect("right");
    device.compile_operator_with(&operator, CompileOptions { pointer_alignment, in_place }).expect("compiled")
}

#[test]
fn dispatches_that_an_operator_was_not_compiled_for_are_refused() {
    for device in crate::common::devices("dispatches_that_an_operator_was_not_compiled_for_are_refused") {
        let (data, lengths) = (device.create_buffer(64).expect("small"), device.create_buffer(16).expect("small"));
        let output = device.create_buffer(128).expect("small");
        let bind = |operator: &CompiledOperator, output: &BufferBinding| {
            operator.bind(&[(&data).into(), (&lengths).into()], output).map(|_| ())
        };
        let apart = compiled_for(&device, 16, Some(false));
        bind(&apart, &(&output).into()).expect("the binding satisfies the options");
        let error = bind(&apart, &(&data).into()).expect_err("in place");
        assert_eq!(error, BindingError::Promise { promised: false });
        assert_eq!(
            error.to_string(),
            "the dispatch is in place, must not be, as CompileOptions.InPlace is NEVER (binding.promise)"
        );
        let in_place = compiled_for(&device, 16, Some(true));
        bind(&in_place, &(&data).into()).expect("the binding satisfies the options");
        let error = bind(&in_place, &(&output).into()).expect_err("not in place");
        assert_eq!(
            error.to_string(),
            "the dispatch is not in place, must be, as CompileOptions.InPlace is ALWAYS (binding.promise)"
        );
        let wide = compiled_for(&device, 64, None);
        let at = |offset| BufferBinding::range(&output, offset, 64);
        bind(&wide, &at(64)).expect("the binding satisfies the options");
        assert!(matches!(bind(&wide, &at(16)), Err(BindingError::Alignment { required: 64, found: 16, .. })));
        // SAFETY: the call is refused before anything is queued.
        let refused = unsafe { compiled_for(&device, 16, None).dispatch_raw(&[16, 4], 40, std::ptr::null_mut()) };
        assert!(matches!(binding(refused), BindingError::Alignment { required: 16, found: 40, .. }));
    }
}

#[test]
fn an_alignment_is_a_power_of_two() {
    for device in crate::common::devices("an_alignment_is_a_power_of_two") {
        let operator = device.create_operator(lanes(TensorDataType::UInt8, 4, 16)).expect("right");
        for (pointer_alignment, right) in [(0, true), (1, true), (3, false), (12, false), (64, true), (1 << 31, true)] {
            let options = CompileOptions { pointer_alignment, in_place: None };
            let compiled = device.compile_operator_with(&operator, options);
            assert_eq!(compiled.is_ok(), right, "{pointer_alignment}");
            if let Err(error) = compiled {
                let said = format!(
                    "CompileOptions.PointerAlignment is {pointer_alignment}, must be 0 or a power of two (compile.pointer_alignment)"
                );
                assert_eq!(error.to_string(), said);
            }
        }
    }
}

#[test]
fn an_operator_compiled_for_bound_buffers_is_right() {
    for device in crate::common::devices("an_operator_compiled_for_bound_buffers_is_right") {
        let stream = device.create_stream().expect("a stream");
        for case in cases::all().iter().step_by(7) {
            let operator = device.create_operator(case.desc.clone()).expect("right");
            let options = CompileOptions { pointer_alignment: 16, in_place: Some(case.in_place) };
            let operator = device.compile_operator_with(&operator, options).expect("compiled");
            let inputs: Vec<_> =
                case.inputs.iter().map(|bytes| device.create_buffer_from(bytes).expect("small")).collect();
            let total = case.desc.output_tensor().total_tensor_size_in_bytes as usize;
            let output = device.create_buffer_from(&vec![POISON; total]).expect("small");
            let output = if case.in_place { &inputs[0] } else { &output };
            let bindings: Vec<_> = inputs.iter().map(Into::into).collect();
            operator
                .bind(&bindings, &output.into())
                .expect("the binding satisfies the options")
                .dispatch(&stream)
                .expect("queued");
            let found: Vec<u8> = output.read_elements(total).expect("read");
            assert_same(&device, &case.desc, &found, &case.expected());
        }
    }
}
