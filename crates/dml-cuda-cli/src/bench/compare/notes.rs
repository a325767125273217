//! What a reader of a comparison must know before its figures.

use super::{letter, Row, RunSummary};

/// What a reader must know before the figures.
pub fn warnings(runs: &[RunSummary], rows: &[Row], other_machine: &[Option<String>]) -> Vec<String> {
    let mut lines: Vec<String> = other_machine.iter().flatten().map(|why| format!("WARNING: {why}")).collect();
    for (n, run) in runs.iter().enumerate().filter(|(_, run)| run.missing > 0) {
        lines.push(format!("WARNING: {} is partial: {} cases or outputs are missing", letter(n), run.missing));
    }
    for (n, run) in runs.iter().enumerate().filter(|(_, run)| run.timing != runs[0].timing) {
        let [a, b] = [&runs[0], run].map(|run| if run.timing.is_empty() { "not known" } else { &run.timing });
        lines.push(format!("WARNING: A and {n} were timed differently. A: {a}. {n}: {b}", n = letter(n)));
    }
    for n in 0..runs.len() {
        let failed = rows.iter().filter(|row| row.causes[n].is_some()).count();
        if failed > 0 {
            let cases = if failed == 1 { "case has" } else { "cases have" };
            lines.push(format!("{}: {failed} {cases} no time; the rows say why", letter(n)));
        }
    }
    lines
}
