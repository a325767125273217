//! Every descriptor of which DirectML's verdict was recorded gets the same verdict here, but for outputs whose
//! elements truly overlap.

mod common;

use common::{oracle, recorded};
use dml_cuda::{validate, FeatureLevel, Rule};

#[test]
fn every_recorded_verdict_is_reproduced() {
    let records = recorded::verdicts();
    assert_eq!(records.len(), 2423);
    let mut wrong = Vec::new();
    for record in &records {
        let verdict = validate(&record.desc, FeatureLevel::HIGHEST);
        let right = if record.flag("output_overlaps") {
            // The one departure, and for that reason alone.
            verdict.as_ref().is_err_and(|errors| errors.errors().iter().all(|error| error.rule == Rule::OutputOverlap))
        } else {
            verdict.is_ok() == record.flag("accepted")
        };
        if !right {
            wrong.push(format!("{}: {verdict:?}", record.id));
        }
    }
    assert!(wrong.is_empty(), "{} of {} verdicts differ:\n{}", wrong.len(), records.len(), wrong.join("\n"));
}

#[test]
fn the_oracle_agrees_with_the_recorded_verdicts() {
    let records = recorded::verdicts();
    let walkable = |record: &&recorded::Record| {
        let output = common::output_of(&record.desc);
        output.strides.is_none() || output.sizes.iter().map(|&size| f64::from(size)).product::<f64>() < 1e6
    };
    let mut looked_at = 0;
    for record in records.iter().filter(walkable) {
        let required = record.flag("accepted") && !record.flag("output_overlaps");
        assert_eq!(oracle::accepts(&record.desc), required, "{}", record.id);
        looked_at += 1;
    }
    assert!(looked_at > 2000, "{looked_at}");
}
