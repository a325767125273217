//! The full text of every rule's message, in tests/golden/messages.txt.
//!
//! `UPDATE_GOLDEN=1 cargo test golden` rewrites it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;

use dml_cuda::{
    validate, BindingError, BufferTensorDesc, DispatchError, Error, FeatureLevel,
    FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc, Rule, ScalarUnion,
    TensorDataType, TensorFlags, TensorRole, ValidationError,
};
use dml_cuda_testing::{self, repository, rust_files};
use FeatureLevel::*;
use TensorDataType::*;

fn fill(change: impl FnOnce(&mut FillValueSequenceDesc)) -> OperatorDesc {
    let [start, delta] = [0.0, 1.0].map(ScalarUnion::Float32);
    let mut desc = dml_cuda_testing::fill(Float32, &[1, 2, 3, 4], start, delta);
    change(&mut desc);
    desc.into()
}

fn output(tensor: BufferTensorDesc) -> OperatorDesc {
    fill(|desc| {
        desc.value_data_type = tensor.data_type;
        desc.output_tensor = tensor;
    })
}

fn reverse(change: impl FnOnce(&mut ReverseSubsequencesDesc)) -> OperatorDesc {
    let mut desc = dml_cuda_testing::reversal(Float16, &[2, 3, 4, 5], 2);
    change(&mut desc);
    desc.into()
}

/// Descriptors that break a rule, each with a feature level. They cover every rule of the library.
fn cases() -> Vec<(Rule, FeatureLevel, OperatorDesc)> {
    let strided =
        |sizes: &[u32], strides: &[u32]| output(BufferTensorDesc::strided(Float32, sizes, strides));
    let total = |bytes| fill(|desc| desc.output_tensor.total_tensor_size_in_bytes = bytes);
    let lengths = |data_type, sizes: &[u32]| {
        reverse(|desc| desc.sequence_lengths_tensor = BufferTensorDesc::packed(data_type, sizes))
    };
    let doubles = output(BufferTensorDesc {
        strides: Some(vec![2]),
        ..BufferTensorDesc::packed(Float64, &[4])
    });
    vec![
        (Rule::OperatorFeatureLevel, V2_0, fill(|_| ())),
        (
            Rule::TensorDataType,
            V6_4,
            output(BufferTensorDesc::packed(Float64, &[4])),
        ),
        (
            Rule::TensorDataType,
            V4_1,
            output(BufferTensorDesc::packed(Int64, &[4])),
        ),
        (
            Rule::TensorDataType,
            V6_4,
            reverse(|desc| desc.sequence_lengths_tensor.data_type = Int32),
        ),
        (
            Rule::OutputFlags,
            V6_4,
            fill(|desc| desc.output_tensor.flags = TensorFlags::OwnedByDml),
        ),
        (
            Rule::TensorDimensionCount,
            V6_4,
            output(BufferTensorDesc::packed(Float32, &[1; 9])),
        ),
        (
            Rule::TensorDimensionCount,
            V2_1,
            output(BufferTensorDesc::packed(Float32, &[2, 3, 4])),
        ),
        (
            Rule::TensorSizesNonzero,
            V6_4,
            output(BufferTensorDesc::packed(Float32, &[2, 0, 3, 0])),
        ),
        (
            Rule::TensorElementCount,
            V6_4,
            output(BufferTensorDesc::packed(UInt8, &[65536, 65536])),
        ),
        (
            Rule::TensorElementCount,
            V6_4,
            output(BufferTensorDesc::packed(UInt8, &[u32::MAX; 8])),
        ),
        (Rule::TensorStridesCount, V6_4, strided(&[2, 3], &[1])),
        (Rule::OutputStridesNonzero, V6_4, strided(&[2, 3], &[0, 0])),
        (
            Rule::OutputStridesDistinct,
            V6_4,
            strided(&[2, 3, 4], &[8, 2, 2]),
        ),
        (Rule::OutputStridesSpan, V6_4, strided(&[4, 4], &[2, 1])),
        (Rule::OutputOverlap, V6_4, strided(&[5, 4], &[3, 4])),
        (Rule::TensorTotalSizeMin, V6_4, total(95)),
        (Rule::TensorTotalSizeMax, V6_4, total(u64::MAX)),
        (
            Rule::TensorTotalSizeMax,
            V6_4,
            output(BufferTensorDesc::packed(UInt8, &[u32::MAX])),
        ),
        (
            Rule::TensorAlignment,
            V6_4,
            reverse(|desc| {
                desc.sequence_lengths_tensor
                    .guaranteed_base_offset_alignment = 48
            }),
        ),
        (
            Rule::FillValueDataType,
            V6_4,
            fill(|desc| desc.value_data_type = Int32),
        ),
        (Rule::FillPacked, Extended, doubles),
        (
            Rule::ReverseLengthsDimensionCount,
            V6_4,
            lengths(UInt32, &[2, 3, 5]),
        ),
        (
            Rule::ReverseLengthsSizes,
            V6_4,
            lengths(UInt32, &[2, 1, 1, 1]),
        ),
        (
            Rule::ReverseOutputDataType,
            V6_4,
            reverse(|desc| desc.output_tensor.data_type = Int16),
        ),
        (
            Rule::ReverseOutputSizes,
            V6_4,
            reverse(|desc| desc.output_tensor = BufferTensorDesc::packed(Float16, &[2, 3, 5, 4])),
        ),
        (Rule::ReverseAxisRange, V6_4, reverse(|desc| desc.axis = 4)),
    ]
}

/// The errors of the rules that are checked later than a descriptor's.
fn later_errors() -> Vec<Error> {
    let tensor = TensorRole::Input;
    let [cpu, gpu] = ["CPU", "GPU 0"].map(str::to_owned);
    let overlap = |pointers, required| BindingError::Overlap {
        tensor,
        found: 0x10,
        pointers,
        required,
    };
    let bindings = [
        BindingError::Count {
            found: 1,
            required: 2,
        },
        BindingError::Device {
            tensor,
            found: gpu.clone(),
            required: cpu.clone(),
        },
        BindingError::Size {
            tensor,
            found: 31,
            required: 32,
        },
        BindingError::Slice {
            tensor,
            found: 92,
            required: 96,
        },
        BindingError::Range {
            tensor,
            offset: 4080,
            length: 32,
            size_in_bytes: 4096,
        },
        BindingError::Alignment {
            tensor,
            what: "offset",
            found: 0x48,
            required: 16,
        },
        BindingError::Alignment {
            tensor,
            what: "pointer",
            found: 0x7001,
            required: 2,
        },
        BindingError::Null { tensor },
        overlap(None, "be the same range, to run in place, or lie apart"),
        overlap(Some((0x7002, 0x7000)), "lie apart"),
        BindingError::InPlace,
    ];
    let dispatches = [
        DispatchError::Device {
            found: gpu.clone(),
            required: cpu.clone(),
        },
        DispatchError::Graph {
            found: gpu,
            required: cpu,
        },
        DispatchError::Measure {
            found: "CPU".to_owned(),
        },
        DispatchError::Stream { found: 0x100 },
    ];
    let others = [Error::SliceLength {
        tensor,
        found: 2,
        required: 3,
    }];
    bindings
        .map(Error::from)
        .into_iter()
        .chain(dispatches.map(Error::from))
        .chain(others)
        .collect()
}

/// The rules' ids among the parts of a text, such as `tensor.data_type`.
fn ids<'a>(parts: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let is_id = |part: &&str| {
        part.split('.').count() > 1
            && part.split('.').all(|word| {
                !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            })
    };
    parts.filter(is_id).collect()
}

/// A place, what is there, what must be there, and the rule.
fn follows_the_grammar(error: &ValidationError) {
    let text = error.to_string();
    assert!(
        text.starts_with("FillValueSequenceDesc") || text.starts_with("ReverseSubsequencesDesc"),
        "{text}"
    );
    assert!(
        text.contains(" is ")
            && (text.contains(", but must be ") || text.contains(", but requires ")),
        "{text}"
    );
    assert!(
        text.ends_with(&format!("({})", error.rule)) && !text.contains("invalid"),
        "{text}"
    );
}

#[test]
fn every_rules_message_follows_the_grammar_and_is_in_the_golden_file() {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |id: &str, error: &dyn std::fmt::Display| {
        *texts.entry(id.to_owned()).or_default() += &format!("{error}\n");
    };
    for (rule, level, desc) in cases() {
        let errors = validate(&desc, level).expect_err("the descriptor breaks a rule");
        errors.errors().iter().for_each(follows_the_grammar);
        let mut violations = errors
            .errors()
            .iter()
            .filter(|error| error.rule == rule)
            .peekable();
        assert!(
            violations.peek().is_some(),
            "{desc:?} does not break {rule} but\n{errors}"
        );
        violations.for_each(|error| add(rule.id(), error));
    }
    for error in later_errors() {
        let text = error.to_string();
        let id = text.rsplit(['(', ')']).nth(1).expect("a rule in brackets");
        add(id, &error);
    }
    let path = repository("tests/golden/messages.txt");
    let text: String = texts.values().map(String::as_str).collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).expect("the file can be written");
    }
    let golden = read_to_string(&path).expect("the golden file");
    assert_eq!(text, golden, "UPDATE_GOLDEN=1 rewrites {}", path.display());

    // The rules of the sources and of the documentation are the same.
    let tested: BTreeSet<&str> = texts.keys().map(String::as_str).collect();
    let sources: String = rust_files("src")
        .iter()
        .map(|path| read_to_string(path).expect("text"))
        .collect();
    let written = ids(sources
        .split('(')
        .filter_map(|part| Some(part.split_once(")\"")?.0)));
    let in_sources: BTreeSet<&str> = Rule::ALL
        .iter()
        .map(|rule| rule.id())
        .chain(written)
        .collect();
    assert_eq!(tested, in_sources);
    let page = read_to_string(repository("docs/directml.md")).expect("the page");
    assert_eq!(
        tested,
        ids(page.split('`')),
        "the rules in docs/directml.md"
    );
}

#[test]
fn all_broken_rules_are_reported_in_the_order_of_the_fields() {
    let desc = reverse(|desc| {
        desc.input_tensor.data_type = Int4;
        desc.input_tensor.guaranteed_base_offset_alignment = 3;
        desc.sequence_lengths_tensor.data_type = Float32;
        desc.output_tensor.flags = TensorFlags::OwnedByDml;
        desc.output_tensor.total_tensor_size_in_bytes = 1;
        desc.axis = 9;
    });
    let broken = validate(&desc, V6_4).expect_err("seven rules");
    let lines: Vec<String> = broken.errors().iter().map(ToString::to_string).collect();
    assert_eq!(broken.to_string(), lines.join("\n"));
    let rules: Vec<&str> = broken
        .errors()
        .iter()
        .map(|error| error.rule.id())
        .collect();
    let input_and_lengths = ["tensor.data_type", "tensor.alignment", "tensor.data_type"];
    let output_and_axis = [
        "output.flags",
        "tensor.total_size.min",
        "reverse.output.data_type",
        "reverse.axis.range",
    ];
    assert_eq!(rules, [&input_and_lengths[..], &output_and_axis].concat());
}

#[test]
fn nothing_has_to_agree_with_a_number_of_dimensions_that_no_tensor_can_have() {
    for sizes in [&[1; 9][..], &[]] {
        let broken = reverse(|desc| {
            desc.input_tensor.sizes = sizes.to_vec();
            desc.axis = 9;
        });
        let broken = validate(&broken, V6_4).expect_err("a rule is broken");
        assert_eq!(broken.errors().len(), 1, "{broken}");
        assert_eq!(broken.errors()[0].rule, Rule::TensorDimensionCount);
    }
}

/// The search for shared elements has a bounded time only if no other rule is broken.
#[test]
fn an_output_is_searched_for_overlaps_only_where_its_dimensions_and_span_are_right() {
    let rules = |sizes: &[u32], strides: &[u32]| -> Vec<Rule> {
        let tensor = BufferTensorDesc::strided(UInt8, sizes, strides);
        let broken = validate(&output(tensor), V6_4).expect_err("a rule is broken");
        broken.errors().iter().map(|error| error.rule).collect()
    };
    assert_eq!(rules(&[2, 2, 2], &[3, 4, 7]), [Rule::OutputOverlap]);
    assert_eq!(
        rules(&[1, 1, 1, 1, 1, 1, 2, 2, 2], &[1, 1, 1, 1, 1, 1, 3, 4, 7]),
        [Rule::TensorDimensionCount]
    );
    assert_eq!(
        rules(&[2, 2, 2], &[1 << 30, 2 << 30, 3 << 30]),
        [Rule::TensorTotalSizeMax]
    );
}
