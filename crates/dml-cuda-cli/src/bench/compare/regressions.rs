//! What `report --fail-on-slower` calls a regression, by which a pipeline fails with exit code 1.
//!
//! | of a file over the first one | unless |
//! | --- | --- |
//! | a case is SLOWER | |
//! | a case or an output failed | it failed in the first file as well |
//! | an output differs | `--allow-different-outputs` |
//! | a case or an output is in one of both only | it failed in this file; `--allow-missing` |
//! | a case has times in both that are not comparable | `--allow-missing` |
//!
//! A case that is UNSURE is no regression: noise must not fail a pipeline. Neither is a time or an output whose model
//! is known to differ, because it is not compared.

use super::{Comparison, Row, Status};
use crate::bench::numbers::counted;

/// What is no regression, because options allow it.
#[derive(Default)]
pub struct Allowed {
    /// `--allow-different-outputs`
    pub different_outputs: bool,
    /// `--allow-missing`
    pub missing: bool,
}

/// Why a guard against regressions must fail, a phrase for each reason.
pub fn regressions(comparison: &Comparison, allowed: &Allowed) -> Vec<String> {
    let (mut slower, mut failed_cases, mut missing_cases) = (0, 0, 0);
    for row in &comparison.rows {
        for file in 1..row.cells.len() {
            let is_slower = row.status(file - 1) == Some(Status::Slower);
            slower += usize::from(is_slower);
            failed_cases += usize::from(row.failed[file] && !row.failed[0]);
            missing_cases += usize::from(is_missing(row, file));
        }
    }
    let (mut different, mut failed_outputs, mut missing_outputs) = (0, 0, 0);
    for outputs in &comparison.outputs {
        different += outputs.different.len();
        failed_outputs += outputs.newly_failed;
        missing_outputs += outputs.missing;
    }
    let newly = "failed, which did not fail in the first file";
    let mut reasons = vec![
        (slower, "case", "SLOWER"),
        (failed_cases, "case", newly),
        (failed_outputs, "output", newly),
    ];
    if !allowed.different_outputs {
        reasons.push((different, "output", "different (--allow-different-outputs)"));
    }
    if !allowed.missing {
        let why = "not in both files (--allow-missing)";
        reasons.extend([
            (missing_cases, "case", why),
            (missing_outputs, "output", why),
        ]);
    }
    reasons.retain(|(count, ..)| *count > 0);
    let phrases = reasons.into_iter();
    phrases
        .map(|(count, what, why)| format!("{} {why}", counted(count, what)))
        .collect()
}

/// Whether a file or the first one lacks the case, or computes something else under its name. A case that failed is counted
/// as that.
fn is_missing(row: &Row, file: usize) -> bool {
    if row.is_in(0) != row.is_in(file) {
        return !row.failed[file];
    }
    let is_timed = row.cells[0].is_some() && row.cells[file].is_some();
    is_timed && row.changes[file - 1].is_none() && !row.other_model[file]
}
