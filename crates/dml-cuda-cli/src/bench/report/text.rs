//! Reports in columns: for a terminal, as Markdown, as CSV.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, Table, TableStyle};

use crate::bench::compare::{letter, Cell, Change, Comparison, Row};
use crate::bench::suite::manifest::Mode;

use super::{bytes, factor, microseconds, percent, rate, significant};

/// Names of the columns of a run, by the run's place.
const OF_RUN: [&str; 4] = ["µs", "noise", "GB/s", "of roof"];

fn of_run(cell: Option<&Cell>, failed: bool) -> [String; 4] {
    let Some(cell) = cell else {
        let time = if failed { "failed" } else { "" };
        return [time.to_owned(), String::new(), String::new(), String::new()];
    };
    [
        microseconds(cell.median),
        cell.noise.map_or_else(|| "?".to_owned(), |noise| format!("{:.1} %", noise * 100.0)),
        rate(cell.gigabytes_per_second),
        cell.of_roof.map(percent).unwrap_or_default(),
    ]
}

fn of_change(change: Option<&Change>) -> [String; 2] {
    change.map_or_else(Default::default, |change| [significant(change.speed_up, 3), change.status.name().to_owned()])
}

fn rows<'a>(comparison: &Comparison, rows: impl Iterator<Item = &'a Row>, style: TableStyle) -> Table {
    let mut table = Table::new();
    let several = comparison.runs.len() > 1;
    let mut header: Vec<String> = ["case", "type", "mode", "bytes"].map(str::to_owned).to_vec();
    for run in 0..comparison.runs.len() {
        let named = |column: &str| if several { format!("{} {column}", letter(run)) } else { column.to_owned() };
        header.extend(OF_RUN.map(named));
    }
    for run in 1..comparison.runs.len() {
        header.extend([format!("A / {}", letter(run)), letter(run).to_string()]);
    }
    let columns = header.len();
    let any_failed = comparison.rows.iter().any(|row| row.failures.iter().any(Option::is_some));
    if any_failed {
        header.push("cause".to_owned());
    }
    table.load_style(style).set_header(header);
    for row in rows {
        let mut cells = vec![row.case.clone(), row.data_type.clone(), row.mode.name().to_owned(), bytes(row.bytes)];
        let run = |(cell, failure): (&Option<Cell>, &Option<String>)| of_run(cell.as_ref(), failure.is_some());
        row.cells.iter().zip(&row.failures).for_each(|cell| cells.extend(run(cell)));
        row.changes.iter().for_each(|change| cells.extend(of_change(change.as_ref())));
        if any_failed {
            let failed = row.failures.iter().enumerate().filter_map(|(n, failure)| Some((n, failure.as_ref()?)));
            let causes = failed.map(|(n, error)| match several {
                true => format!("{} failed: {error}", letter(n)),
                false => format!("failed: {error}"),
            });
            cells.push(causes.collect::<Vec<_>>().join("; "));
        }
        table.add_row(cells);
    }
    for column in (3..columns).filter(|column| *column != 4 + 4 * comparison.runs.len() + 1) {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// For a terminal.
pub fn table(comparison: &Comparison) -> String {
    let mut text = headings(comparison, "", "");
    let _ = writeln!(text, "\n{}", rows(comparison, comparison.rows.iter(), NOTHING).trim_fmt());
    let _ = writeln!(text, "\n{}", conclusions(comparison, ""));
    text
}

/// For a page: a table for each mode.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = headings(comparison, "- ", "**");
    for mode in [Mode::Fill, Mode::Copy, Mode::InPlace] {
        let of_mode = || comparison.rows.iter().filter(|row| row.mode == mode);
        if of_mode().next().is_some() {
            let _ = writeln!(text, "\n### {}\n\n{}", mode.name(), rows(comparison, of_mode(), ASCII_MARKDOWN));
        }
    }
    let _ = writeln!(text, "\n{}", conclusions(comparison, "- "));
    text
}

/// What the runs are.
fn headings(comparison: &Comparison, bullet: &str, bold: &str) -> String {
    let mut text = String::new();
    for (n, run) in comparison.runs.iter().enumerate() {
        let _ = writeln!(text, "{bullet}{bold}{}: {}{bold}: {}", letter(n), run.label, machine(run));
    }
    text
}

/// A run's machine, timing and notes in one line.
pub fn machine(run: &crate::bench::compare::RunSummary) -> String {
    let machine = &run.machine;
    let commit = if machine.commit.is_empty() { String::new() } else { format!("commit {}", machine.commit) };
    let suite = if run.suite.is_empty() { String::new() } else { format!("suite '{}'", run.suite) };
    let fields = [
        &machine.tool,
        &commit,
        &machine.device,
        &machine.driver,
        &machine.clocks,
        &machine.host,
        &machine.operating_system,
        &machine.date,
        &suite,
        &run.timing,
    ];
    let known: Vec<&str> = fields.into_iter().map(String::as_str).filter(|field| !field.is_empty()).collect();
    let mut text = known.join("; ");
    run.notes.iter().for_each(|note| {
        let _ = write!(text, ". {}", note.trim_end_matches('.'));
    });
    text
}

/// Speed-ups by group, equal bits, what is not compared.
fn conclusions(comparison: &Comparison, bullet: &str) -> String {
    let mut lines = conclusions_of(comparison);
    lines.extend(comparison.not_compared.iter().map(|why| format!("not compared: {why}")));
    lines.iter().fold(String::new(), |text, line| text + bullet + line + "\n").trim_end().to_owned()
}

/// Which of two runs is the faster one, and how much: two digits, which always say something.
fn faster(speed_up: f64, a: char, b: char) -> String {
    let (fast, slow) = if speed_up < 1.0 { (a, b) } else { (b, a) };
    match factor(speed_up.max(1.0 / speed_up)).as_str() {
        "1.0" => format!("{b} is as fast as {a}"),
        factor => format!("{fast} is {factor} times as fast as {slow}"),
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 {
        ""
    } else {
        "s"
    }
}

/// Speed-ups by group, failed cases and equal bits, a sentence each.
pub fn conclusions_of(comparison: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> =
        comparison.other_machine.iter().flatten().map(|why| format!("WARNING: {why}")).collect();
    for n in 0..comparison.runs.len() {
        let failed = comparison.rows.iter().filter(|row| row.failures[n].is_some()).count();
        if failed > 0 {
            lines.push(format!("{}: {failed} case{} failed; the rows say why", letter(n), plural(failed)));
        }
    }
    let timed_differently = |n: usize| comparison.runs[n].timing != comparison.runs[0].timing;
    for n in (1..comparison.runs.len()).filter(|n| timed_differently(*n)) {
        let [a, b] = [0, n].map(|n| match comparison.runs[n].timing.as_str() {
            "" => "not known",
            timing => timing,
        });
        let (a_letter, b_letter) = (letter(0), letter(n));
        lines.push(format!(
            "WARNING: {a_letter} and {b_letter} were timed differently. {a_letter}: {a}. {b_letter}: {b}"
        ));
    }
    for group in &comparison.groups {
        for (n, speed_up) in group.speed_ups.iter().enumerate() {
            if let Some((count, mean)) = speed_up {
                let warning = if timed_differently(n + 1) { " (timed differently)" } else { "" };
                let (name, faster) = (&group.name, faster(*mean, letter(0), letter(n + 1)));
                let cases =
                    if *count == 1 { "in one case".to_owned() } else { format!("the geometric mean of {count} cases") };
                lines.push(format!("{name}: {faster}, {cases}{warning}"));
            }
        }
    }
    for (n, outputs) in comparison.outputs.iter().enumerate() {
        let (b, different) = (letter(n + 1), &outputs.different);
        match (outputs.equal, different.len()) {
            _ if outputs.shared() == 0 => lines.push(format!("{b}: no outputs to compare with those of A")),
            (equal, 0) => lines.push(format!("{b}: all {equal} outputs that both wrote are equal to A's, bit for bit")),
            (_, count) => lines.push(format!(
                "{b}: {count} of {} outputs differ from A's: {}",
                outputs.shared(),
                different
                    .iter()
                    .map(|name| match outputs.reasons.get(name) {
                        Some(reason) => format!("{name} ({reason})"),
                        None => name.clone(),
                    })
                    .collect::<Vec<_>>()
                    .join(", ")
            )),
        }
        let mut expected: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        outputs.expected.iter().for_each(|(name, why)| expected.entry(why).or_default().push(name));
        for (why, names) in expected {
            let count = names.len();
            lines.push(format!(
                "{b}: {count} output{} differ from A's as documented: {}: {why}",
                plural(count),
                names.join(", ")
            ));
        }
        let failed: Vec<String> = outputs.failed.iter().map(|(name, error)| format!("{name} ({error})")).collect();
        if !failed.is_empty() {
            lines.push(format!("{b}: {} output{} failed: {}", failed.len(), plural(failed.len()), failed.join("; ")));
        }
        if outputs.missing > 0 {
            lines.push(format!("{b}: {} outputs that only one of A and {b} has", outputs.missing));
        }
    }
    lines
}

/// One line for each case and run.
pub fn csv(comparison: &Comparison) -> Result<String, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| error.to_string();
    let header = [
        "case",
        "type",
        "mode",
        "bytes",
        "run",
        "dispatches",
        "samples",
        "microseconds",
        "noise",
        "gigabytes_per_second",
        "of_roof",
        "speed_up_over_first",
        "status",
        "of_floor",
        "failed",
    ];
    writer.write_record(header).map_err(failed)?;
    for row in &comparison.rows {
        for (n, cell) in row.cells.iter().enumerate() {
            let error = row.failures[n].as_deref();
            if cell.is_none() && error.is_none() {
                continue;
            }
            let change = n.checked_sub(1).and_then(|n| row.changes[n]);
            let number = |value: Option<f64>| value.map(|value| format!("{value:.4}")).unwrap_or_default();
            let of_cell = |figure: fn(&Cell) -> String| cell.as_ref().map(figure).unwrap_or_default();
            let record = [
                row.case.clone(),
                row.data_type.clone(),
                row.mode.name().to_owned(),
                row.bytes.to_string(),
                comparison.runs[n].label.clone(),
                of_cell(|cell| cell.dispatches.to_string()),
                of_cell(|cell| cell.samples.to_string()),
                number(cell.as_ref().map(|cell| cell.median)),
                number(cell.as_ref().and_then(|cell| cell.noise)),
                of_cell(|cell| significant(cell.gigabytes_per_second, 4).replace(',', "")),
                number(cell.as_ref().and_then(|cell| cell.of_roof)),
                number(change.map(|change| change.speed_up)),
                change.map(|change| change.status.name().to_owned()).unwrap_or_default(),
                number(cell.as_ref().and_then(|cell| cell.of_floor)),
                error.map(|error| format!("failed: {error}")).unwrap_or_default(),
            ];
            writer.write_record(record).map_err(failed)?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}
