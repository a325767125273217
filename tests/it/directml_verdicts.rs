//! Every recorded descriptor gets DirectML's verdict here, except for outputs whose elements overlap. `validate_as`
//! gives each of the thirteen recorded versions exactly its own verdicts. This is the complete table of the rules'
//! verdicts: elsewhere, each rule has one case.

use dml_cuda::{
    validate, validate_as, Caveat, DirectMlVersion, OperatorDesc, Rule, TensorDataType,
};
use dml_cuda_testing::{oracle, recorded};

/// At its feature level the library agrees with each version but for three families.
#[test]
fn every_verdict_of_every_recorded_version_is_reproduced() {
    let records = recorded::verdicts();
    assert_eq!(records.len(), 2442);
    let versions: Vec<DirectMlVersion> = DirectMlVersion::recorded().collect();
    assert_eq!(versions.len(), 13);
    let mut explained = [0; 3];
    for version in &versions {
        let name = version.to_string();
        let mut accepted = 0;
        for record in &records {
            let (answer, here) = (
                validate_as(&record.desc, version),
                validate(&record.desc, version.feature_level()),
            );
            assert_eq!(
                answer.is_ok(),
                record.accepted_by().contains(&name),
                "{name}, {}: {answer:?}",
                record.id
            );
            let Ok(caveats) = answer else {
                assert!(here.is_err(), "{name}, {}", record.id);
                continue;
            };
            accepted += 1;
            let overlaps = record.flag("output_overlaps");
            assert_eq!(
                caveats.contains(&Caveat::OutputOverlaps),
                overlaps,
                "{name}, {}",
                record.id
            );
            let Err(errors) = here else {
                assert!(!overlaps, "{name}, {}", record.id);
                continue;
            };
            let only = |rule| errors.errors().iter().all(|error| error.rule == rule);
            if overlaps && only(Rule::OutputOverlap) {
                explained[0] += 1; // the library rejects overlapping outputs
            } else if only(Rule::TensorTotalSizeMax) && name != "1.15.4" {
                explained[1] += 1; // up to 1.13.1 a total may be a few bytes larger
            } else {
                assert!(
                    caveats.contains(&Caveat::SpanWraps),
                    "{name}, {}: {errors}",
                    record.id
                );
                explained[2] += 1; // up to 1.12.0 the span wraps
            }
        }
        assert!(accepted > 450, "{name} accepts {accepted}");
    }
    assert!(explained.iter().all(|&count| count > 0), "{explained:?}");
    // The records have no other versions, and the last version's verdict is the one checked above.
    for record in &records {
        assert!(record
            .accepted_by()
            .iter()
            .all(|name| versions.iter().any(|version| version.to_string() == *name)));
        assert_eq!(
            record.accepted_by().contains(&"1.15.4".to_owned()),
            record.flag("accepted"),
            "{}",
            record.id
        );
    }
}

#[test]
fn other_versions_answer_by_their_documented_level() {
    let version = |text: &str| {
        text.parse::<DirectMlVersion>()
            .unwrap_or_else(|error| panic!("{error}"))
    };
    assert_eq!(version("1.6").to_string(), "1.6.0 (inferred)");
    assert_eq!(version("1.15.4").to_string(), "1.15.4");
    assert!(DirectMlVersion::recorded().all(|version| !version.is_inferred()));
    // 1.16 answers like 1.15.4. Versions below feature level 2_1 have neither operator. Another patch answers like the
    // recorded one of its minor version, even if the minor version before has a different arithmetic.
    for record in recorded::verdicts() {
        let answer = |text: &str| validate_as(&record.desc, &version(text)).is_ok();
        assert_eq!(answer("1.16.0"), record.flag("accepted"), "{}", record.id);
        assert!(!answer("1.0.0") && !answer("1.1.0"), "{}", record.id);
        for (patch, recorded) in [
            ("1.9.1", "1.9.0"),
            ("1.13.0", "1.13.1"),
            ("1.14.0", "1.14.1"),
            ("1.15.0", "1.15.1"),
        ] {
            assert_eq!(answer(patch), answer(recorded), "{patch}: {}", record.id);
        }
    }
    for text in [
        "",
        "1",
        "1.x",
        "one",
        "1.0.0.0",
        "0.9.0",
        "+1.2",
        "1.3.0-dev3",
        "99999999999.0",
        "2.0.0",
        "6.4",
    ] {
        let error = text.parse::<DirectMlVersion>().expect_err(text).to_string();
        let start = format!(
            "`{text}` is not a version of DirectML, but must be such as 1.8.0, from 1.0.0 on and below 2; recorded are 1.0.200610, "
        );
        assert!(error.starts_with(&start), "{error}");
    }
    let error = "1.8.0\u{1b}[31m\n"
        .parse::<DirectMlVersion>()
        .expect_err("control characters")
        .to_string();
    assert!(
        error.starts_with(r"`1.8.0\u{1b}[31m\n` is not a version"),
        "{error}"
    );
}

#[test]
fn the_oracle_agrees_with_the_recorded_verdicts() {
    let records = recorded::verdicts();
    let walkable = |record: &&recorded::Record| {
        let output = record.desc.output_tensor();
        output.strides.is_none()
            || output
                .sizes
                .iter()
                .map(|&size| f64::from(size))
                .product::<f64>()
                < 1e6
    };
    let mut looked_at = 0;
    for record in records.iter().filter(walkable) {
        let required = record.flag("accepted") && !record.flag("output_overlaps");
        assert_eq!(oracle::accepts(&record.desc), required, "{}", record.id);
        looked_at += 1;
    }
    assert!(looked_at > 2000, "{looked_at}");
}

/// A reversal along axis 3 of a FLOAT32 tensor. The input has the given strides and TotalTensorSizeInBytes.
fn reversal(sizes: [u32; 4], strides: Option<[u32; 4]>, total: u64) -> OperatorDesc {
    let mut desc = dml_cuda_testing::reversal(TensorDataType::Float32, &sizes, 3);
    desc.input_tensor.strides = strides.map(Vec::from);
    desc.input_tensor.total_tensor_size_in_bytes = total;
    desc.into()
}

#[test]
fn the_documented_table_of_versions_is_what_they_answer() {
    let text = std::fs::read_to_string(dml_cuda_testing::repository("docs/directml.md"))
        .expect("the document");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| 1."))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let recorded: Vec<String> = DirectMlVersion::recorded()
        .map(|version| version.to_string())
        .collect();
    assert_eq!(names, recorded);
    // A span of 2³² + 2 elements; a span of 2³⁰ + 1 elements, whose bytes wrap; and a total two bytes larger than 2³² −
    // 1 elements.
    let elements_wrap = reversal([2, 1, 1, 2], Some([u32::MAX, 0, 0, 2]), 16);
    let bytes_wrap = reversal([2, 1, 1, 1], Some([1 << 30, 0, 0, 1]), 8);
    let large = reversal([1, 1, 1, 4], None, u64::from(u32::MAX) * 4 + 2);
    let usual = reversal([1, 1, 1, 4], None, 16);
    for (row, version) in rows.iter().zip(DirectMlVersion::recorded()) {
        let accepts = |desc: &OperatorDesc| validate_as(desc, &version).is_ok();
        let span = match (accepts(&elements_wrap), accepts(&bytes_wrap)) {
            (true, true) => "bytes wrap",
            (true, false) => "elements wrap",
            (false, _) => "exact",
        };
        let total = if accepts(&large) {
            "by elements"
        } else {
            "by bytes"
        };
        let caveats = validate_as(&usual, &version).expect("accepted by all");
        let lengths = if caveats.contains(&Caveat::LengthsUnclamped) {
            "kept"
        } else {
            "indices clamped"
        };
        assert!(caveats.contains(&Caveat::InPlace), "{version}");
        // Packed tensors do not wrap.
        assert!(!caveats.contains(&Caveat::SpanWraps), "{version}");
        assert_eq!(
            row[2..],
            [version.feature_level().name(), span, total, lengths],
            "{version}"
        );
    }
}
