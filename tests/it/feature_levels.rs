//! Level × operator × tensor × data type × dimension count: compares every cell of the support tables with a second
//! transcription of Microsoft's pages.

use dml_cuda::{
    validate, BufferTensorDesc, Device, DirectMlVersion, FeatureLevel, OperatorDesc, OperatorType,
    Requirement, ReverseSubsequencesDesc, Rule, ScalarUnion, TensorDataType, TensorRole,
};
use dml_cuda_testing::{fill, recorded};
use TensorDataType::*;

/// The first level at which the pages list a data type, and a dimension count, for a tensor.
fn from_pages(
    role: TensorRole,
    operator: OperatorType,
    data_type: TensorDataType,
    count: usize,
) -> (Option<&'static str>, Option<&'static str>) {
    let fill = operator == OperatorType::FillValueSequence;
    let type_from = match (role, data_type) {
        (_, UInt4 | Int4) => None,
        (TensorRole::SequenceLengths, UInt32) => Some("2_1"),
        (TensorRole::SequenceLengths, UInt64) => Some("5_0"),
        (TensorRole::SequenceLengths, _) => None,
        (_, Float64) => (!fill).then_some("5_0"),
        (_, Int64 | UInt64) => Some("5_0"),
        _ => Some("2_1"),
    };
    let count_from = match count {
        4 => Some("2_1"),
        5 if !fill => Some("3_0"),
        1..=8 => Some("4_0"),
        _ => None,
    };
    (type_from, count_from)
}

/// The departures from the documentation: an operator, a dimension count, and the first level that has it here. The
/// evidence is in tests/data/directml: DirectML 1.0.200610, whose highest level this is, accepts it.
const DEPARTURES: [(OperatorType, usize, &str); 1] =
    [(OperatorType::ReverseSubsequences, 5, "2_1")];

/// A descriptor that is valid except that its tensor `role` has that data type and dimension count.
fn desc(
    operator: OperatorType,
    role: TensorRole,
    data_type: TensorDataType,
    count: usize,
) -> OperatorDesc {
    let tensor = |data_type| BufferTensorDesc::packed(data_type, &vec![1; count]);
    match operator {
        OperatorType::FillValueSequence => fill(
            data_type,
            &vec![1; count],
            ScalarUnion::UInt64(0),
            ScalarUnion::UInt64(0),
        )
        .into(),
        OperatorType::ReverseSubsequences => {
            let lengths = role == TensorRole::SequenceLengths;
            let (elements, lengths) = if lengths {
                (Float32, data_type)
            } else {
                (data_type, UInt32)
            };
            ReverseSubsequencesDesc {
                input_tensor: tensor(elements),
                sequence_lengths_tensor: tensor(lengths),
                output_tensor: tensor(elements),
                axis: 0,
            }
            .into()
        }
        _ => panic!("{operator:?} has no descriptor here"),
    }
}

#[test]
fn every_cell_of_the_tables() {
    let mut cells = 0;
    for &level in FeatureLevel::ALL {
        for &operator in OperatorType::ALL {
            for &role in TensorRole::of(operator) {
                for &data_type in TensorDataType::ALL {
                    for count in 0..=9 {
                        cells += 1;
                        check(level, operator, role, data_type, count);
                    }
                }
            }
        }
    }
    assert_eq!(cells, 15 * 4 * 13 * 10);
}

fn check(
    level: FeatureLevel,
    operator: OperatorType,
    role: TensorRole,
    data_type: TensorDataType,
    count: usize,
) {
    let cell = format!(
        "{level}, {}, {}, {data_type}, {count} dimensions",
        operator.name(),
        role.name()
    );
    let (type_from, of_pages) = from_pages(role, operator, data_type, count);
    let departure = DEPARTURES
        .iter()
        .find(|(of, counts, _)| (*of, *counts) == (operator, count));
    let count_from = departure.map(|(.., level)| *level).or(of_pages);
    let reached = |from: Option<&str>| from.is_some_and(|from| from <= level.name());
    let exists = level.name() >= "2_1";
    let verdict = validate(&desc(operator, role, data_type, count), level);
    assert_eq!(
        verdict.is_ok(),
        exists && reached(type_from) && reached(count_from),
        "{cell}: {verdict:?}"
    );

    // "Needs a level" and "must be" are different answers.
    let answers = verdict
        .err()
        .map_or_else(Vec::new, |errors| errors.into_iter().collect());
    let answer = |rule: Rule| {
        let error = answers
            .iter()
            .find(|error| error.rule == rule && error.place.tensor == Some(role));
        error.map(|error| match error.requirement {
            Requirement::Needs(level) => Some(level),
            _ => None,
        })
    };
    let level_of = |from: &str| from.parse::<FeatureLevel>().expect("a level");
    let required = |from: Option<&str>| (!reached(from)).then(|| from.map(level_of));
    if exists {
        assert_eq!(answer(Rule::TensorDataType), required(type_from), "{cell}");
        assert_eq!(
            answer(Rule::TensorDimensionCount),
            required(count_from),
            "{cell}"
        );
    } else {
        assert_eq!(answers.len(), 1, "{cell}");
        assert_eq!(
            answers[0].requirement,
            Requirement::Needs(FeatureLevel::V2_1),
            "{cell}"
        );
    }

    // `check_tensor_support` agrees.
    let support = Device::cpu()
        .with_feature_level(level)
        .check_tensor_support(operator, role);
    let types = support
        .as_ref()
        .is_some_and(|support| support.data_types.contains(&data_type));
    let counts = support
        .as_ref()
        .is_some_and(|support| support.dimension_counts.contains(&count));
    assert_eq!(
        (types, counts),
        (exists && reached(type_from), exists && reached(count_from)),
        "{cell}"
    );
}

#[test]
fn departures_from_the_pages_are_as_recorded() {
    let (first, older) = ("1.0.200610".to_owned(), "2_1");
    for (operator, count, level) in DEPARTURES {
        let (_, of_pages) = from_pages(TensorRole::Output, operator, Float32, count);
        assert!(
            level == older && of_pages.is_some_and(|page| page > level),
            "it departs"
        );
        let records = recorded::verdicts();
        let is_it = |record: &&recorded::Record| {
            record.desc.operator_type() == operator
                && record.desc.output_tensor().sizes.len() == count
        };
        let accepted = records
            .iter()
            .filter(is_it)
            .filter(|record| record.accepted_by().contains(&first))
            .count();
        assert!(accepted > 0, "{first} accepts none of {count} dimensions");
    }
}

#[test]
fn levels_have_names_and_an_order() {
    for pair in FeatureLevel::ALL.windows(2) {
        assert!(pair[0] < pair[1]);
    }
    for &level in FeatureLevel::ALL {
        assert_eq!(level.name().parse(), Ok(level));
        assert_eq!(level.to_string().parse(), Ok(level));
    }
    assert_eq!("5.0".parse(), Ok(FeatureLevel::V5_0));
    assert!("7_0".parse::<FeatureLevel>().is_err());
    assert_eq!(Device::cpu().feature_level(), FeatureLevel::V6_4);
    assert_eq!(FeatureLevel::HIGHEST, FeatureLevel::V6_4);
    // An operator that was created at a higher level is checked again when it is compiled.
    let desc = desc(
        OperatorType::FillValueSequence,
        TensorRole::Output,
        Int64,
        4,
    );
    let operator = Device::cpu()
        .create_operator(desc)
        .expect("right at the highest level");
    let held = Device::cpu().with_feature_level(FeatureLevel::V4_1);
    assert_eq!(held.feature_level(), FeatureLevel::V4_1);
    let error = held.compile_operator(&operator).expect_err("rejected");
    let broken =
        "FillValueSequenceDesc.OutputTensor.DataType is INT64, but requires DML_FEATURE_LEVEL_5_0 (tensor.data_type)";
    assert_eq!(
        std::error::Error::source(&error)
            .expect("the broken rules")
            .to_string(),
        broken
    );
    let begins =
        "the device's feature level is DML_FEATURE_LEVEL_4_1, which rejects the operator:\n";
    assert_eq!(error.to_string(), format!("{begins}{broken}"));
    assert_eq!(
        held.measure_kernels(&operator, false).err(),
        Some(error.into())
    );
    assert_eq!(
        Device::cpu().check_tensor_support(OperatorType::FillValueSequence, TensorRole::Input),
        None
    );
}

/// The documented highest levels of DirectML's versions that are not recorded. `directml_verdicts` has the others.
#[test]
fn versions_have_their_highest_feature_level() {
    for (text, level) in [
        ("1.0.0", "1_0"),
        ("1.1.0", "2_0"),
        ("1.3.1", "3_0"),
        ("1.4.3", "3_0"),
        ("1.5.0", "3_1"),
        ("1.6.0", "4_0"),
        ("1.6", "4_0"),
        ("1.7.1", "4_1"),
        ("1.8.1", "5_0"),
        ("1.9.1", "5_1"),
        ("1.10.0", "5_2"),
        ("1.11.0", "6_0"),
        ("1.12.1", "6_1"),
        ("1.13.0", "6_2"),
        ("1.14.0", "6_3"),
        ("1.15.0", "6_4"),
        ("1.16.0", "6_4"),
        ("1.99.0", "6_4"),
    ] {
        let version: DirectMlVersion = text.parse().expect("a version");
        assert!(
            version.is_inferred() && version.to_string().ends_with(" (inferred)"),
            "{version}"
        );
        assert_eq!(version.feature_level().name(), level, "{text}");
    }
}
