//! The tables of all reports. Their first lines have the names of the columns.
//!
//! ```text
//! groups        cases of      b      speedup  range      cases  a of baseline  b of baseline
//!               all           FASTER 1.40×    0.90–3.10× 12     85 %           119 %
//! cases         b       speedup  95 %        case                      a µs    b µs
//!               FASTER  3.10×    3.05–3.16×  2x5x7, f32, copy          31.0    10.0
//! ```
//!
//! How wide a table may be, and what becomes of its words, is up to the report.

use indicatif::HumanBytes;

use crate::bench::compare::{Cell, Comparison, Group, Row, Summary, Verdict};
use crate::bench::numbers::{counted, percent, significant};
use crate::bench::statistics::Interval;

/// Lines of cells. All lines of a table have the same length.
pub type Table = Vec<Vec<String>>;

/// The columns that a narrow page leaves out.
pub const WIDE: [&str; 2] = ["range", "95 %"];

/// All cases, then those of each kind and of each type: a table for each verdict.
pub fn groups(comparison: &Comparison) -> Vec<Table> {
    let mut tables = Vec::new();
    for (n, verdict) in comparison.verdicts.iter().enumerate() {
        if verdict.all.is_some() {
            tables.push(groups_of(comparison, n, verdict));
        }
    }
    tables
}

/// The groups of verdict `n`.
fn groups_of(comparison: &Comparison, n: usize, verdict: &Verdict) -> Table {
    let mut table = vec![match &comparison.files[..] {
        [_] => header(["cases of", "of baseline", WIDE[0], "cases"]),
        files => {
            let (a, b) = (&files[0].name, &files[n + 1].name);
            let [of_a, of_b] = [a, b].map(|name| format!("{name} of baseline"));
            header(["cases of", b, "speedup", WIDE[0], "cases", &of_a, &of_b])
        }
    }];
    let all = verdict.all.iter();
    let groups = all.chain(&verdict.kinds).chain(&verdict.types);
    table.extend(groups.map(group_line));
    table
}

/// The first line of a table.
fn header<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// A group with its figures. Only groups of two files have a status.
fn group_line(group: &Group) -> Vec<String> {
    let mut line = vec![group.short_name().to_owned()];
    match group.status {
        Some(status) => line.extend([status.name(), speedup(group.mean), speedups(group.range)]),
        None => line.extend([percent(group.mean), group.figures().range]),
    }
    line.push(group.cases.to_string());
    for share in &group.of_baseline {
        line.push(share.map(percent).unwrap_or_default());
    }
    line
}

/// A speedup with three digits, which a table has room for.
fn speedup(value: f64) -> String {
    significant(value, 3) + "×"
}

/// In a word, which no table breaks.
fn speedups(Interval { low, high }: Interval) -> String {
    format!("{}–{}", significant(low, 3), speedup(high))
}

/// The table of what ran, with a column for each file. A fact that no file has is left out.
pub fn machines(comparison: &Comparison) -> Table {
    let labels = comparison.files.iter().map(|file| file.label.clone());
    let mut table: Table = vec![std::iter::once(String::new()).chain(labels).collect()];
    let mut facts = Vec::new();
    for file in &comparison.files {
        let notes = ("notes", file.notes.join("\n"));
        facts.push(
            facts_of(file)
                .into_iter()
                .chain([notes])
                .collect::<Vec<_>>(),
        );
    }
    // Every file has the same facts in the same order.
    for (n, (name, _)) in facts[0].iter().enumerate() {
        let values = facts.iter().map(|facts| facts[n].1.clone());
        if values.clone().any(|value| !value.is_empty()) {
            table.push(std::iter::once((*name).to_owned()).chain(values).collect());
        }
    }
    table
}

/// The cases: a table of the only file, or one of each other file's next to the first, whose first column is the verdict.
/// The cases that only one of two files has are in [`of_one_file`].
pub fn cases(comparison: &Comparison) -> Vec<Table> {
    if comparison.files.len() == 1 {
        return with_lines(vec![table_of_one(comparison)]);
    }
    tables_of_pairs(comparison, |row, other| {
        row.is_in(other) && !row.is_in_one(other)
    })
}

/// The cases that only one of two files has, which have one figure and no verdict.
pub fn of_one_file(comparison: &Comparison) -> Vec<Table> {
    tables_of_pairs(comparison, Row::is_in_one)
}

/// A table of each file next to the first one, with the cases that `is_listed` selects.
fn tables_of_pairs(comparison: &Comparison, is_listed: fn(&Row, usize) -> bool) -> Vec<Table> {
    let others = 1..comparison.files.len();
    let tables = others.map(|other| table_of_pair(comparison, other, is_listed));
    with_lines(tables.collect())
}

/// The tables that have more than their header.
fn with_lines(mut tables: Vec<Table>) -> Vec<Table> {
    tables.retain(|table| table.len() > 1);
    tables
}

/// How many cases tables have, such as "3 cases".
pub fn counted_cases(tables: &[Table]) -> String {
    counted(tables.iter().map(|table| table.len() - 1).sum(), "case")
}

/// All cases of the only file.
fn table_of_one(comparison: &Comparison) -> Table {
    let mut table = vec![header([
        "case",
        "bytes",
        "µs",
        "noise",
        "GB/s",
        "of baseline",
    ])];
    for row in &comparison.rows {
        let mut line = vec![
            named(comparison, row, &[0]),
            HumanBytes(row.work.bytes).to_string(),
        ];
        match &row.cells[0] {
            Some(cell) => line.extend([
                microseconds(cell),
                cell.noise.map_or("?".to_owned(), percent),
                significant(cell.gigabytes_per_second, 3),
                cell.of_baseline.map(percent).unwrap_or_default(),
            ]),
            None => line.resize(table[0].len(), String::new()),
        }
        table.push(line);
    }
    table
}

/// The cases of the first file and another that `is_listed` selects.
fn table_of_pair(
    comparison: &Comparison,
    other: usize,
    is_listed: fn(&Row, usize) -> bool,
) -> Table {
    let [a, b] = [0, other].map(|file| &comparison.files[file].name);
    let [us_of_a, us_of_b] = [a, b].map(|name| format!("{name} µs"));
    let mut table = vec![header([b, "speedup", WIDE[1], "case", &us_of_a, &us_of_b])];
    for row in &comparison.rows {
        if !is_listed(row, other) {
            continue;
        }
        let mut line = match &row.changes[other - 1] {
            Some(change) => vec![
                change.status.name(),
                speedup(change.speed_up),
                speedups(change.interval),
            ],
            None => vec![cause(row, other), String::new(), String::new()],
        };
        line.push(named(comparison, row, &[0, other]));
        for file in [0, other] {
            line.push(
                row.cells[file]
                    .as_ref()
                    .map(microseconds)
                    .unwrap_or_default(),
            );
        }
        table.push(line);
    }
    table
}

/// The first words about why a case has no time in one of two files, such as `failed`.
fn cause(row: &Row, other: usize) -> String {
    let cause = row.causes[other].as_ref().or(row.causes[0].as_ref());
    let words = cause.and_then(|cause| cause.split(':').next());
    words.unwrap_or_default().to_owned()
}

/// A case's name, and why files have no time.
fn named(comparison: &Comparison, row: &Row, files: &[usize]) -> String {
    let mut parts = vec![row.work.name()];
    for &file in files {
        if let Some(cause) = &row.causes[file] {
            parts.push(format!("{} {cause}", comparison.files[file].name));
        }
    }
    parts.join(": ")
}

/// A time with four digits, or with three below 1 µs, where a fourth would be noise.
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

/// The facts about what ran, as names and values. What is not known is empty.
pub fn facts_of(file: &Summary) -> [(&'static str, String); 11] {
    let machine = &file.machine;
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
        ("cases", prefixed("cases of ", &file.suite)),
        ("timing", file.timing.clone()),
    ]
}

/// A text after a prefix, or nothing.
fn prefixed(prefix: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        _ => format!("{prefix}{text}"),
    }
}
