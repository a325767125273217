//! What all reports say: the tables, whose first line has the columns' names, and the lines above them.

use indicatif::HumanBytes;

use crate::bench::compare::{letter, Cell, Comparison, Group, Mean, Outputs, Row, RunSummary};
use crate::bench::numbers::{counted, interval, percent, significant};

pub type Table = Vec<Vec<String>>;

/// Groups of cases, and what each run makes of them.
pub fn groups(comparison: &Comparison) -> Table {
    let names = ["group", "run", "of baseline", "times as fast as A", "95 %", "cases"].map(str::to_owned).to_vec();
    let row = |group: &Group, run: usize| {
        let speed_up = run.checked_sub(1).and_then(|n| group.speed_ups[n]);
        let text = |mean: Option<Mean>, of: fn(Mean) -> String| mean.map(of).unwrap_or_default();
        vec![
            group.name.clone(),
            letter(run).to_string(),
            text(group.of_baseline[run], |mean| percent(mean.mean)),
            text(speed_up, |mean| significant(mean.mean, 3)),
            text(speed_up, |mean| interval(mean.interval)),
            text(speed_up.or(group.of_baseline[run]), |mean| mean.cases.to_string()),
        ]
    };
    let runs = 0..comparison.runs.len();
    let rows = comparison.groups.iter().flat_map(|group| runs.clone().map(move |run| row(group, run)));
    std::iter::once(names).chain(rows).collect()
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

/// All cases: a table of the only run, or one of each other run's next to the first, whose first column is the verdict.
pub fn cases(comparison: &Comparison) -> Vec<Table> {
    match comparison.runs.len() {
        1 => vec![of_run(comparison)],
        count => (1..count).map(|n| of_pair(comparison, n)).collect(),
    }
}

fn of_run(comparison: &Comparison) -> Table {
    let names = ["case", "bytes", "µs", "noise", "GB/s", "of baseline"].map(str::to_owned).to_vec();
    let row = |row: &Row| {
        let of = |figure: fn(&Cell) -> String| row.cells[0].as_ref().map(figure).unwrap_or_default();
        vec![
            named(row, &[0]),
            HumanBytes(row.work.bytes).to_string(),
            of(microseconds),
            of(|cell| cell.noise.map_or_else(|| "?".to_owned(), percent)),
            of(|cell| significant(cell.gigabytes_per_second, 3)),
            of(|cell| cell.of_baseline.map(percent).unwrap_or_default()),
        ]
    };
    std::iter::once(names).chain(comparison.rows.iter().map(row)).collect()
}

fn of_pair(comparison: &Comparison, n: usize) -> Table {
    let b = letter(n);
    let names = vec![b.to_string(), format!("A / {b}"), "95 %".into(), "case".into(), "A µs".into(), format!("{b} µs")];
    let row = |row: &Row| {
        let change = row.changes[n - 1].as_ref();
        let cause = row.causes[n].as_ref().or(row.causes[0].as_ref()).and_then(|cause| cause.split(':').next());
        vec![
            change.map_or_else(|| cause.unwrap_or_default().to_owned(), |change| change.status.name()),
            change.map(|change| significant(change.speed_up, 3)).unwrap_or_default(),
            change.map(|change| interval(change.interval)).unwrap_or_default(),
            named(row, &[0, n]),
            row.cells[0].as_ref().map(microseconds).unwrap_or_default(),
            row.cells[n].as_ref().map(microseconds).unwrap_or_default(),
        ]
    };
    let rows = comparison.rows.iter().filter(|row| row.is_in(n));
    std::iter::once(names).chain(rows.map(row)).collect()
}

/// A case's name, and why runs have no time.
fn named(row: &Row, runs: &[usize]) -> String {
    let causes = runs.iter().filter_map(|&n| Some(format!("{} {}", letter(n), row.causes[n].as_ref()?)));
    std::iter::once(row.work.name()).chain(causes).collect::<Vec<_>>().join(": ")
}

fn microseconds(cell: &Cell) -> String {
    significant(cell.median, if cell.median < 1.0 { 3 } else { 4 })
}

/// Whether a column of that name has numbers.
pub fn has_numbers(name: &str) -> bool {
    name.contains(" / ")
        || ["µs", "noise", "GB/s", "bytes", "baseline", "as A", "cases", "%"].iter().any(|end| name.ends_with(end))
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

/// What became of the outputs, next to those of the first run.
pub fn outputs(comparison: &Comparison) -> Vec<String> {
    let of_run = |(n, outputs): (usize, &Outputs)| {
        let failed = outputs.failed.iter().map(|(name, error)| format!("{name} ({error})"));
        let facts = [
            (outputs.equal, "equal to A's, bit for bit", String::new()),
            (outputs.different.len(), "different from A's", outputs.different.join(", ")),
            (outputs.expected.len(), "different, as lengths above the axis size are", outputs.expected.join(", ")),
            (
                outputs.not_compared.len(),
                "not compared",
                outputs.not_compared.values().next().cloned().unwrap_or_default(),
            ),
            (outputs.failed.len(), "failed", failed.collect::<Vec<_>>().join("; ")),
            (outputs.missing, "that only one of the two runs has", String::new()),
        ];
        let known = facts.into_iter().filter(|(count, ..)| *count > 0);
        known.map(move |(count, what, which)| {
            let which = if which.is_empty() { which } else { format!(": {which}") };
            format!("{}: {} {what}{which}", letter(n + 1), counted(count, "output"))
        })
    };
    comparison.outputs.iter().enumerate().flat_map(of_run).collect()
}
