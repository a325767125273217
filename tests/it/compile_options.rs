//! An operator that was compiled with options refuses dispatches that it was not compiled for, and runs the others.
#![allow(unsafe_code)]

use crate::outside::Outside;
use dml_cuda::{
    Address, BindingError, BufferBinding, CompileError, CompileOptions, CompiledOperator, Device, DispatchError,
    OperatorDesc, TensorDataType, TensorRole,
};
use dml_cuda_testing::{assert_same, cases, devices, lanes, run_compiled};

fn compile(
    device: &Device,
    desc: &OperatorDesc,
    pointer_alignment: u32,
    in_place: Option<bool>,
) -> Result<CompiledOperator, CompileError> {
    let operator = device.create_operator(desc.clone()).expect("right");
    let options = CompileOptions::default().with_pointer_alignment(pointer_alignment).with_in_place(in_place);
    device.compile_operator_with(&operator, options)
}

#[test]
fn dispatches_that_an_operator_was_not_compiled_for_are_refused() {
    for device in devices("dispatches_that_an_operator_was_not_compiled_for_are_refused") {
        let [data, lengths, output] = [64, 16, 128].map(|size| device.create_buffer(size).expect("small"));
        let desc = lanes(TensorDataType::UInt8, 4, 16).into();
        let at = |offset| BufferBinding::range(&output, offset, 64);
        let misaligned =
            BindingError::Alignment { tensor: TensorRole::Output, what: "offset", found: 16, required: 64 };
        for (alignment, in_place, output, required) in [
            (16, Some(false), at(0), Ok(())),
            (16, Some(false), (&data).into(), Err(BindingError::Promise { promised: false })),
            (16, Some(true), (&data).into(), Ok(())),
            (16, Some(true), at(0), Err(BindingError::Promise { promised: true })),
            (64, None, at(64), Ok(())),
            (64, None, at(16), Err(misaligned)),
        ] {
            let operator = compile(&device, &desc, alignment, in_place).expect("compiled");
            let bound = operator.bind(&[(&data).into(), (&lengths).into()], &output).map(|_| ());
            assert_eq!(bound, required, "{device}: {alignment} {in_place:?}");
        }
        let operator = compile(&device, &desc, 16, None).expect("compiled");
        // SAFETY: the call is refused before anything is queued.
        let refused = unsafe { Outside::new(&device).dispatch(&operator, &[16, 4], 40) };
        let required = BindingError::Alignment { tensor: TensorRole::Output, what: "pointer", found: 40, required: 16 };
        assert_eq!(refused, Err(DispatchError::Binding(required)), "{device}");
    }
}

#[test]
fn an_alignment_is_a_power_of_two() {
    for device in devices("an_alignment_is_a_power_of_two") {
        for (found, right) in [(0, true), (1, true), (3, false), (12, false), (64, true), (1 << 31, true)] {
            let error = compile(&device, &lanes(TensorDataType::UInt8, 4, 16).into(), found, None).err();
            assert_eq!(error, (!right).then_some(CompileError::PointerAlignment { found }));
        }
    }
}

/// A fill has no input that could be its output.
#[test]
fn a_fill_is_never_in_place() {
    for (in_place, error) in [(Some(true), Some(CompileError::InPlace)), (Some(false), None), (None, None)] {
        assert_eq!(compile(&Device::cpu(), &cases::fills()[0].desc, 0, in_place).err(), error);
    }
}

#[test]
fn an_operator_compiled_for_bound_buffers_is_right() {
    for device in devices("an_operator_compiled_for_bound_buffers_is_right") {
        for case in cases::all().iter().step_by(7) {
            let operator = compile(&device, &case.desc, 16, Some(case.in_place)).expect("compiled");
            let found = run_compiled(&operator, &case.inputs(), case.in_place);
            assert_same(&device, &case.desc, &found, &case.expected());
        }
    }
}

#[test]
fn options_of_addresses_are_what_the_addresses_have() {
    for (input, output, alignment, in_place) in [
        (Some(32), 16, 16, false),
        (Some(16), 16, 16, true),
        (Some(8), 16, 0, false),
        (Some(16), 8, 0, false),
        (Some(8), 8, 0, true),
        (None, 64, 16, false),
        (None, 68, 0, false),
    ] {
        let options = CompileOptions::default().with_measure(true);
        let found = options.with_addresses(input.map(Address), Address(output));
        let expected = options.with_pointer_alignment(alignment).with_in_place(in_place);
        assert_eq!(found, expected, "{input:?} {output}");
    }
}

/// The CPU has no kernels to measure.
#[test]
fn measuring_changes_nothing_on_the_cpu() {
    let device = Device::cpu();
    let operator = device.create_operator(lanes(TensorDataType::UInt8, 4, 16)).expect("right");
    let options = CompileOptions::default().with_measure(true);
    let [measured, estimated] =
        [options, CompileOptions::default()].map(|options| device.compile_operator_with(&operator, options));
    let [measured, estimated] = [measured.expect("compiled"), estimated.expect("compiled")];
    assert_eq!(measured.explain(), estimated.explain());
    assert_eq!(
        device.measure_kernels(&operator, false).err().map(|error| error.to_string()),
        Some("the device is CPU, but must be a GPU, whose kernels are measured (measure.device)".to_owned())
    );
}
