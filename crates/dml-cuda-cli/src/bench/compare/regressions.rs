//! What `report --fail-on-slower` calls a regression of a file over the first one: a case that is SLOWER, that failed or
//! is missing, and an output that failed, differs or is missing.

use super::{Comparison, Outputs, Row, Status};
use crate::bench::numbers::counted;

/// What is no regression, because options allow it.
#[derive(Default)]
pub struct Allowed {
    pub different_outputs: bool,
    pub missing: bool,
}

/// Regressions of cases, over all files after the first.
#[derive(Default)]
struct Cases {
    slower: usize,
    newly_failed: usize,
    missing: usize,
}

/// Why a guard against regressions must fail, a phrase for each reason.
pub fn regressions(comparison: &Comparison, allowed: &Allowed) -> Vec<String> {
    let mut cases = Cases::default();
    for row in &comparison.rows {
        for file in 1..row.cells.len() {
            cases.add(row, file);
        }
    }
    let newly = "failed, which did not fail in the first run";
    let missing = "not in both runs (--allow-missing)";
    let mut reasons = vec![
        reason(cases.slower, "case", "SLOWER"),
        reason(cases.newly_failed, "case", newly),
        reason(
            sum(comparison, |outputs| outputs.newly_failed),
            "output",
            newly,
        ),
    ];
    if !allowed.different_outputs {
        let different = sum(comparison, |outputs| outputs.different.len());
        let why = "different (--allow-different-outputs)";
        reasons.push(reason(different, "output", why));
    }
    if !allowed.missing {
        let outputs = sum(comparison, |outputs| outputs.missing);
        reasons.push(reason(cases.missing, "case", missing));
        reasons.push(reason(outputs, "output", missing));
    }
    reasons.into_iter().flatten().collect()
}

impl Cases {
    fn add(&mut self, row: &Row, file: usize) {
        let change = row.changes[file - 1];
        let failed = row.failed[file];
        let is_slower = change.is_some_and(|change| change.status == Status::Slower);
        // Both have a time, but not of the same bytes, or one of them is known to compute something else.
        let is_other_work = row.cells[0].is_some() && row.cells[file].is_some() && change.is_none();
        let is_in_one = row.is_in(0) != row.is_in(file);
        self.slower += usize::from(is_slower);
        self.newly_failed += usize::from(failed && !row.failed[0]);
        self.missing +=
            usize::from(is_other_work && !row.other_model[file] || is_in_one && !failed);
    }
}

fn sum(comparison: &Comparison, count: fn(&Outputs) -> usize) -> usize {
    comparison.outputs.iter().map(count).sum()
}

fn reason(count: usize, what: &str, why: &str) -> Option<String> {
    match count {
        0 => None,
        _ => Some(format!("{} {why}", counted(count, what))),
    }
}
