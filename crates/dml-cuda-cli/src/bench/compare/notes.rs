//! Warnings that a report prints above its tables.

use serde::Serialize;

use super::cell::LEAST_FLOOR_BYTES;
use super::{Row, RunSummary};
use crate::bench::numbers::percent;
use crate::bench::work::Mode;

/// A share of the baseline's speed above which the baseline, or the case, is measured wrongly.
const MOST_OF_BASELINE: f64 = 1.2;

/// A line about a run, next to the first one.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Warning {
    #[serde(skip)]
    pub run: usize,
    pub text: String,
}

impl Warning {
    /// Whether it makes figures doubtful.
    pub fn is_serious(&self) -> bool {
        self.text.starts_with("WARNING")
    }
}

/// The warnings and notes about runs, in their order.
pub fn warnings(
    runs: &[RunSummary],
    rows: &[Row],
    other_machine: &[Option<String>],
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |run, text| warnings.push(Warning { run, text });
    for (n, why) in other_machine.iter().enumerate() {
        why.iter()
            .for_each(|why| warn(n + 1, format!("WARNING: {why}")));
    }
    for (n, run) in runs.iter().enumerate().filter(|(_, run)| run.missing > 0) {
        warn(
            n,
            format!(
                "WARNING: {} is partial: {} cases or outputs are missing",
                run.name, run.missing
            ),
        );
    }
    let first = &runs[0];
    for (n, run) in runs.iter().enumerate() {
        if suites_differ(first, run) {
            let suites = format!(
                "{} ran {}, and {} ran {}",
                first.name, first.suite, run.name, run.suite
            );
            warn(
                n,
                format!(
                    "WARNING: the suites differ, so models of one name may also differ: {suites}"
                ),
            );
        }
        if run.timing != first.timing {
            let names = format!("{} and {}", first.name, run.name);
            let [a, b] = [first, run].map(|run| {
                if run.timing.is_empty() {
                    "not known"
                } else {
                    &run.timing
                }
            });
            let text = match ways(&first.timing) == ways(&run.timing) {
                true => format!(
                    "NOTE: {names} were timed in one way, but not in all details; see their timing"
                ),
                false => format!(
                    "WARNING: {names} were timed differently. {}: {a}. {}: {b}",
                    first.name, run.name
                ),
            };
            warn(n, text);
        }
        // In place on half the memory of a copy, more stays in the cache.
        let in_memory = rows
            .iter()
            .filter(|row| row.work.mode != Mode::InPlace && row.work.bytes >= LEAST_FLOOR_BYTES);
        let shares = in_memory.filter_map(|row| row.cells[n].as_ref()?.of_baseline);
        let most = shares.fold(0.0, f64::max);
        if most > MOST_OF_BASELINE {
            let speed = format!("at up to {} of the baseline's speed", percent(most));
            warn(
                n,
                format!(
                    "WARNING: {} runs {speed}: the baseline is too slow",
                    run.name
                ),
            );
        }
        let failed = rows.iter().filter(|row| row.causes[n].is_some()).count();
        if failed > 0 {
            let cases = if failed == 1 {
                "case has"
            } else {
                "cases have"
            };
            warn(
                n,
                format!(
                    "NOTE: {}: {failed} {cases} no time; the rows say why",
                    run.name
                ),
            );
        }
    }
    warnings
}

fn suites_differ(first: &RunSummary, run: &RunSummary) -> bool {
    run.suite != first.suite && !run.suite.is_empty() && !first.suite.is_empty()
}

/// What makes the speedup of a run over the first one doubtful, as the end of a sentence about both.
pub fn doubt(first: &RunSummary, run: &RunSummary) -> Option<&'static str> {
    if ways(&first.timing) != ways(&run.timing) {
        Some("were timed differently")
    } else if suites_differ(first, run) {
        Some("ran different suites")
    } else {
        None
    }
}

/// The properties of a timing that change times by much: the clock, the cache, and whether it is known.
fn ways(timing: &str) -> [bool; 3] {
    [
        timing.contains("host's clock"),
        timing.contains("cold L2"),
        timing.is_empty(),
    ]
}
