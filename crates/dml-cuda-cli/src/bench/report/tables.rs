//! What all reports say: the tables, whose first line has the columns' names, and the lines above them.

use crate::bench::compare::{letter, Cell, Change, Comparison, Group, Mean, Row, RunSummary};
use crate::bench::numbers::{bytes, counted, interval, percent, significant};

pub type Table = Vec<Vec<String>>;

/// Columns in front of a case's figures.
pub const NAMES: [&str; 4] = ["case", "type", "mode", "bytes"];

/// Groups of cases, and what each run makes of them.
pub fn groups(comparison: &Comparison) -> Table {
    let count = comparison.runs.len();
    let mut names = vec!["group".to_owned()];
    for run in 0..count {
        names.push(named(count, run, "of baseline"));
        names.extend((run > 0).then(|| format!("A / {} (95 %)", letter(run))));
    }
    let row = |group: &Group| {
        let mut cells = vec![group.name.clone()];
        for run in 0..count {
            cells.push(group.of_baseline[run].map_or_else(String::new, |mean| percent(mean.mean)));
            cells.extend((run > 0).then(|| group.speed_ups[run - 1].map_or_else(String::new, factor)));
        }
        cells
    };
    std::iter::once(names).chain(comparison.groups.iter().map(row)).collect()
}

fn named(count: usize, run: usize, column: &str) -> String {
    match count {
        1 => column.to_owned(),
        _ => format!("{} {column}", letter(run)),
    }
}

fn factor(mean: Mean) -> String {
    format!("{} ({}; {})", significant(mean.mean, 3), interval(mean.interval), counted(mean.cases, "case"))
}

/// What ran: a column for each run.
pub fn machines(comparison: &Comparison) -> Table {
    let runs = &comparison.runs;
    let of_run = |run: &RunSummary| facts(run).into_iter().chain([("notes", run.notes.join("\n"))]).collect();
    let facts: Vec<Vec<(&str, String)>> = runs.iter().map(of_run).collect();
    let labels = runs.iter().enumerate().map(|(n, run)| format!("{}: {}", letter(n), run.label));
    let names = std::iter::once(String::new()).chain(labels).collect();
    let values = |n: usize| facts.iter().map(move |facts| facts[n].1.clone());
    let known = (0..facts[0].len()).filter(|&n| values(n).any(|value| !value.is_empty()));
    let row = |n: usize| std::iter::once(facts[0][n].0.to_owned()).chain(values(n)).collect();
    std::iter::once(names).chain(known.map(row)).collect()
}

/// All cases: the figures of each run, what compares another run with the first, and why figures are missing.
pub fn cases(comparison: &Comparison) -> Table {
    let count = comparison.runs.len();
    let mut names = NAMES.map(str::to_owned).to_vec();
    for run in 0..count {
        names.extend(["µs", "noise", "GB/s", "of baseline"].map(|column| named(count, run, column)));
    }
    for run in 1..count {
        names.extend([format!("A / {}", letter(run)), "95 %".to_owned(), letter(run).to_string()]);
    }
    names.push("cause".to_owned());
    let row = |row: &Row| {
        let mut cells = vec![row.case.clone(), row.data_type.clone(), row.mode.name().to_owned(), bytes(row.bytes)];
        for (cell, cause) in row.cells.iter().zip(&row.causes) {
            let kind = cause.as_ref().and_then(|cause| cause.split(':').next());
            cells.extend(cell.as_ref().map_or([kind.unwrap_or_default(), "", "", ""].map(str::to_owned), of_cell));
        }
        cells.extend(row.changes.iter().flat_map(|change| change.as_ref().map(of_change).unwrap_or_default()));
        let cause = |(n, cause): (usize, &Option<String>)| Some(named(count, n, cause.as_ref()?));
        cells.push(row.causes.iter().enumerate().filter_map(cause).collect::<Vec<_>>().join("; "));
        cells
    };
    let mut rows: Table = std::iter::once(names).chain(comparison.rows.iter().map(row)).collect();
    if rows[1..].iter().all(|row| row.last().is_some_and(String::is_empty)) {
        rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    rows
}

fn of_cell(cell: &Cell) -> [String; 4] {
    [
        significant(cell.median, if cell.median < 1.0 { 3 } else { 4 }),
        cell.noise.map_or_else(|| "?".to_owned(), percent),
        significant(cell.gigabytes_per_second, 3),
        cell.of_baseline.map(percent).unwrap_or_default(),
    ]
}

fn of_change(change: &Change) -> [String; 3] {
    [significant(change.speed_up, 3), interval(change.interval), change.status.name()]
}

/// What ran, in names and values.
pub fn facts(run: &RunSummary) -> [(&'static str, String); 11] {
    let machine = &run.machine;
    let prefixed = |prefix: &str, text: &str| if text.is_empty() { String::new() } else { format!("{prefix}{text}") };
    [
        ("tool", machine.tool.clone()),
        ("commit", prefixed("commit ", &machine.commit)),
        ("device", machine.device.clone()),
        ("driver", machine.driver.clone()),
        ("clocks", machine.clocks.clone()),
        ("host", machine.host.clone()),
        ("operating system", machine.operating_system.clone()),
        ("date", machine.date.clone()),
        ("command", machine.command.clone()),
        ("cases", prefixed("cases of ", &run.suite)),
        ("timing", run.timing.clone()),
    ]
}

/// What a reader must know before the figures.
pub fn warnings(comparison: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> =
        comparison.other_machine.iter().flatten().map(|why| format!("WARNING: {why}")).collect();
    let runs = &comparison.runs;
    for (n, run) in runs.iter().enumerate().filter(|(_, run)| run.missing > 0) {
        lines.push(format!("WARNING: {} is partial: {} cases or outputs are missing", letter(n), run.missing));
    }
    for (n, run) in runs.iter().enumerate().filter(|(_, run)| run.timing != runs[0].timing) {
        let [a, b] = [&runs[0], run].map(|run| if run.timing.is_empty() { "not known" } else { &run.timing });
        lines.push(format!("WARNING: A and {n} were timed differently. A: {a}. {n}: {b}", n = letter(n)));
    }
    for n in 0..runs.len() {
        let failed = comparison.rows.iter().filter(|row| row.causes[n].is_some()).count();
        if failed > 0 {
            let cases = if failed == 1 { "case has" } else { "cases have" };
            lines.push(format!("{}: {failed} {cases} no time; the rows say why", letter(n)));
        }
    }
    lines
}

/// Which outputs are equal.
pub fn outputs(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for (n, outputs) in comparison.outputs.iter().enumerate() {
        let mut say = |what: String| lines.push(format!("{}: {what}", letter(n + 1)));
        let (shared, different) = (outputs.shared(), &outputs.different);
        match different.len() {
            _ if shared == 0 => say("no outputs to compare with those of A".to_owned()),
            0 => say(format!("all {} outputs that both wrote are equal to A's, bit for bit", outputs.equal)),
            count => say(format!("{count} of {shared} outputs differ from A's: {}", different.join(", "))),
        }
        if !outputs.expected.is_empty() {
            let (count, names) = (outputs.expected.len(), outputs.expected.join(", "));
            say(format!("{count} outputs differ from A's as expected (lengths above the axis size): {names}"));
        }
        if let Some(why) = outputs.not_compared.values().next() {
            say(format!("{} outputs are not compared: {why}", outputs.not_compared.len()));
        }
        let failed: Vec<String> = outputs.failed.iter().map(|(name, error)| format!("{name} ({error})")).collect();
        if !failed.is_empty() {
            say(format!("{} failed: {}", counted(failed.len(), "output"), failed.join("; ")));
        }
        if outputs.missing > 0 {
            say(format!("{} outputs that only one of A and {} has", outputs.missing, letter(n + 1)));
        }
    }
    lines
}
