//! What a reader of a comparison must know before its figures.

use serde::Serialize;

use super::{letter, Row, RunSummary};

/// A line about a run, next to the first one.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Warning {
    #[serde(skip)]
    pub run: usize,
    pub text: String,
}

/// What a reader must know before the figures.
pub fn warnings(runs: &[RunSummary], rows: &[Row], other_machine: &[Option<String>]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |run, text| warnings.push(Warning { run, text });
    for (n, why) in other_machine.iter().enumerate() {
        why.iter().for_each(|why| warn(n + 1, format!("WARNING: {why}")));
    }
    for (n, run) in runs.iter().enumerate().filter(|(_, run)| run.missing > 0) {
        warn(n, format!("WARNING: {} is partial: {} cases or outputs are missing", letter(n), run.missing));
    }
    for (n, run) in runs.iter().enumerate().filter(|(_, run)| run.timing != runs[0].timing) {
        let [a, b] = [&runs[0], run].map(|run| if run.timing.is_empty() { "not known" } else { &run.timing });
        warn(n, format!("WARNING: A and {n} were timed differently. A: {a}. {n}: {b}", n = letter(n)));
    }
    for n in 0..runs.len() {
        let failed = rows.iter().filter(|row| row.causes[n].is_some()).count();
        if failed > 0 {
            let cases = if failed == 1 { "case has" } else { "cases have" };
            warn(n, format!("{}: {failed} {cases} no time; the rows say why", letter(n)));
        }
    }
    warnings
}
