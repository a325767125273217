//! The tables of all reports. Their first lines have the names of the columns.

use indicatif::HumanBytes;

use crate::bench::compare::{Cell, Comparison, Group, Row, RunSummary, Status, Verdict};
use crate::bench::numbers::{counted, percent, significant};

pub type Table = Vec<Vec<String>>;

/// The columns that a narrow page leaves out.
pub const WIDE: [&str; 2] = ["range", "95 %"];

/// All cases, then those of each kind and of each type: a table for each verdict.
pub fn groups(comparison: &Comparison) -> Vec<Table> {
    let table = |(n, verdict): (usize, &Verdict)| {
        let [range, of_baseline] = [WIDE[0], "of baseline"].map(str::to_owned);
        let names = match &comparison.runs[..] {
            [_] => vec![
                "cases of".to_owned(),
                of_baseline,
                range,
                "cases".to_owned(),
            ],
            runs => {
                let [a, b] = [0, n + 1].map(|run| format!("{} {of_baseline}", runs[run].name));
                let [second, cases] = [&runs[n + 1].name, "cases"].map(str::to_owned);
                vec![
                    "cases of".to_owned(),
                    second,
                    "speedup".to_owned(),
                    range,
                    cases,
                    a,
                    b,
                ]
            }
        };
        let groups = verdict
            .all
            .iter()
            .chain(&verdict.kinds)
            .chain(&verdict.types);
        std::iter::once(names).chain(groups.map(of_group)).collect()
    };
    let has_cases = comparison
        .verdicts
        .iter()
        .enumerate()
        .filter(|(_, verdict)| verdict.all.is_some());
    has_cases.map(table).collect()
}

fn of_group(group: &Group) -> Vec<String> {
    let (mean, range) = match group.status {
        Some(_) => (speedup(group.mean), speedups(group.range)),
        None => (percent(group.mean), group.figures().1),
    };
    let name = std::iter::once(group.short_name().to_owned()).chain(group.status.map(Status::name));
    let shares = group
        .of_baseline
        .iter()
        .map(|share| share.map(percent).unwrap_or_default());
    name.chain([mean, range, group.cases.to_string()])
        .chain(shares)
        .collect()
}

fn speedup(value: f64) -> String {
    significant(value, 3) + "×"
}

/// In a word, which no table breaks.
fn speedups((low, high): (f64, f64)) -> String {
    format!("{}–{}", significant(low, 3), speedup(high))
}

/// The table of what ran, with a column for each run.
pub fn machines(comparison: &Comparison) -> Table {
    let runs = &comparison.runs;
    let of_run = |run: &RunSummary| {
        facts(run)
            .into_iter()
            .chain([("notes", run.notes.join("\n"))])
            .collect()
    };
    let facts: Vec<Vec<(&str, String)>> = runs.iter().map(of_run).collect();
    let labels = runs.iter().map(|run| run.label.clone());
    let names = std::iter::once(String::new()).chain(labels).collect();
    let values = |n: usize| facts.iter().map(move |facts| facts[n].1.clone());
    let known = (0..facts[0].len()).filter(|&n| values(n).any(|value| !value.is_empty()));
    let row = |n: usize| {
        std::iter::once(facts[0][n].0.to_owned())
            .chain(values(n))
            .collect()
    };
    std::iter::once(names).chain(known.map(row)).collect()
}

/// The cases: a table of the only run, or one of each other run's next to the first, whose first column is the verdict.
/// The cases that only one of two runs has are in [`of_one_file`].
pub fn cases(comparison: &Comparison) -> Vec<Table> {
    let is_listed = |row: &Row, n: usize| row.is_in(n) && !row.is_in_one(n);
    let tables = match comparison.runs.len() {
        1 => vec![of_run(comparison)],
        count => (1..count)
            .map(|n| of_pair(comparison, n, is_listed))
            .collect(),
    };
    tables.into_iter().filter(|table| table.len() > 1).collect()
}

/// The cases that only one of two runs has, which have one figure and no verdict.
pub fn of_one_file(comparison: &Comparison) -> Vec<Table> {
    let tables = (1..comparison.runs.len()).map(|n| of_pair(comparison, n, Row::is_in_one));
    tables.filter(|table| table.len() > 1).collect()
}

/// How many cases tables have, such as "3 cases".
pub fn counted_cases(tables: &[Table]) -> String {
    counted(tables.iter().map(|table| table.len() - 1).sum(), "case")
}

fn of_run(comparison: &Comparison) -> Table {
    let names = ["case", "bytes", "µs", "noise", "GB/s", "of baseline"]
        .map(str::to_owned)
        .to_vec();
    let row = |row: &Row| {
        let of =
            |figure: fn(&Cell) -> String| row.cells[0].as_ref().map(figure).unwrap_or_default();
        vec![
            named(comparison, row, &[0]),
            HumanBytes(row.work.bytes).to_string(),
            of(microseconds),
            of(|cell| cell.noise.map_or_else(|| "?".to_owned(), percent)),
            of(|cell| significant(cell.gigabytes_per_second, 3)),
            of(|cell| cell.of_baseline.map(percent).unwrap_or_default()),
        ]
    };
    std::iter::once(names)
        .chain(comparison.rows.iter().map(row))
        .collect()
}

fn of_pair(comparison: &Comparison, n: usize, is_listed: fn(&Row, usize) -> bool) -> Table {
    let [a, b] = [0, n].map(|run| &comparison.runs[run].name);
    let [speedup_of, interval] = ["speedup", WIDE[1]].map(str::to_owned);
    let names = vec![
        b.clone(),
        speedup_of,
        interval,
        "case".into(),
        format!("{a} µs"),
        format!("{b} µs"),
    ];
    let row = |row: &Row| {
        let change = row.changes[n - 1].as_ref();
        let cause = row.causes[n]
            .as_ref()
            .or(row.causes[0].as_ref())
            .and_then(|cause| cause.split(':').next());
        vec![
            change.map_or_else(
                || cause.unwrap_or_default().to_owned(),
                |change| change.status.name(),
            ),
            change
                .map(|change| speedup(change.speed_up))
                .unwrap_or_default(),
            change
                .map(|change| speedups(change.interval))
                .unwrap_or_default(),
            named(comparison, row, &[0, n]),
            row.cells[0].as_ref().map(microseconds).unwrap_or_default(),
            row.cells[n].as_ref().map(microseconds).unwrap_or_default(),
        ]
    };
    let rows = comparison.rows.iter().filter(|row| is_listed(row, n));
    std::iter::once(names).chain(rows.map(row)).collect()
}

/// A case's name, and why runs have no time.
fn named(comparison: &Comparison, row: &Row, runs: &[usize]) -> String {
    let name = |n: usize| &comparison.runs[n].name;
    let causes = runs
        .iter()
        .filter_map(|&n| Some(format!("{} {}", name(n), row.causes[n].as_ref()?)));
    std::iter::once(row.work.name())
        .chain(causes)
        .collect::<Vec<_>>()
        .join(": ")
}

fn microseconds(cell: &Cell) -> String {
    significant(cell.median, if cell.median < 1.0 { 3 } else { 4 })
}

/// Whether a column of that name has numbers.
pub fn has_numbers(name: &str) -> bool {
    [
        "µs", "noise", "GB/s", "bytes", "baseline", "speedup", "cases", "%",
    ]
    .iter()
    .any(|end| name.ends_with(end))
}

/// The facts about a run, as names and values.
pub fn facts(run: &RunSummary) -> [(&'static str, String); 11] {
    let machine = &run.machine;
    let prefixed = |prefix: &str, text: &str| {
        if text.is_empty() {
            String::new()
        } else {
            format!("{prefix}{text}")
        }
    };
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
