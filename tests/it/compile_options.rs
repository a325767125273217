//! An operator that was compiled with options refuses dispatches that it was not compiled for, and runs the others.
#![allow(unsafe_code)]

use crate::outside::Outside;
use dml_cuda::{
    Address, BindingError, BufferBinding, CompileError, CompileOptions, CompiledOperator, Device, DispatchError,
    OperatorDesc, TensorDataType, TensorRole,
};
use dml_cuda_testing::{assert_same, cases, devices, lanes, repository, run_compiled};

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
        let (desc, options) = (&cases::fills()[0].desc, CompileOptions::default().with_in_place(in_place));
        assert_eq!(compile(&Device::cpu(), desc, 0, in_place).err(), error);
        let operator = Device::cpu().create_operator(desc.clone()).expect("right");
        assert_eq!(operator.explain_with(&"h100".parse().expect("a target"), options).err(), error);
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
        // What is promised stays.
        assert_eq!(expected.with_addresses(Some(Address(1)), Address(2)).in_place, expected.in_place);
    }
    let promised = CompileOptions::default().with_pointer_alignment(64).with_in_place(false);
    assert_eq!(promised.with_addresses(Some(Address(16)), Address(16)), promised);
}

/// The table of the page lists every option, its values and its default, and every text reads as what it says.
#[test]
fn the_page_has_every_option() {
    let page = std::fs::read_to_string(repository("docs/compile-options.md")).expect("a page");
    let cells = |row: &str| -> Vec<Vec<String>> {
        let in_code = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        row.split('|').skip(1).map(in_code).collect()
    };
    let mut defaults = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| `")).map(cells) {
        let (key, mut values, default) = (&row[0][0], row[1].clone(), &row[2][0]);
        if key == "alignment" {
            values.push("64".to_owned());
        }
        for text in values.iter().map(|value| format!("{key}={value}")) {
            let options: CompileOptions = text.parse().expect("an option of the page");
            assert!(options.to_string().split(' ').any(|written| written == text), "{text}: {options}");
            assert_eq!(options.to_string().parse(), Ok(options));
            assert_eq!(options.with_text(&format!("{key}={default}")), Ok(CompileOptions::default()));
        }
        let error = format!("{key}=other").parse::<CompileOptions>().expect_err("not on the page").to_string();
        assert!(error.contains(&format!("{key}={}", row[1].join("|"))), "{error}");
        defaults.push(format!("{key}={default}"));
    }
    assert_eq!(defaults.join(" "), CompileOptions::default().to_string());
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
