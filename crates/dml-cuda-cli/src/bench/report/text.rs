//! Reports as text: for a terminal, as Markdown, as CSV.

use std::fmt::Write;

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, Table, TableStyle};
use serde::Serialize;

use crate::bench::compare::{letter, Cell, Comparison, Mean, Row, RunSummary};
use crate::bench::work::Mode;

use super::{header, interval, of_row, percent, significant};

/// For a terminal.
pub fn table(comparison: &Comparison) -> String {
    let mut text = headings(comparison, "", "");
    let lines = lines(comparison, "");
    if !lines.is_empty() {
        let _ = writeln!(text, "\n{lines}");
    }
    if !comparison.groups.is_empty() {
        let _ = writeln!(text, "\n{}", table_of(groups(comparison), NOTHING, false).trim_fmt());
    }
    let _ = writeln!(text, "\n{}", cases(comparison, comparison.rows.iter(), NOTHING, false).trim_fmt());
    text
}

/// For a page: a table of cases for each mode.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = escaped(&headings(comparison, "- ", "**"));
    let _ = writeln!(text, "\n{}\n", escaped(&lines(comparison, "- ")));
    let _ = writeln!(text, "{}", table_of(groups(comparison), ASCII_MARKDOWN, true));
    for mode in Mode::OF_CASES {
        let of_mode = || comparison.rows.iter().filter(|row| row.mode == mode);
        if of_mode().next().is_some() {
            let table = cases(comparison, of_mode(), ASCII_MARKDOWN, true);
            let _ = writeln!(text, "\n### {}\n\n{table}", mode.name());
        }
    }
    text
}

/// Text that is no markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('|', "\\|")
}

/// The first line has the columns' names.
fn table_of(rows: Vec<Vec<String>>, style: TableStyle, is_markdown: bool) -> Table {
    let mut table = Table::new();
    table.load_style(style);
    for (n, row) in rows.into_iter().enumerate() {
        let row: Vec<String> = row.into_iter().map(|cell| if is_markdown { escaped(&cell) } else { cell }).collect();
        match n {
            0 => table.set_header(row),
            _ => table.add_row(row),
        };
    }
    table
}

/// Groups of cases, and what each run makes of them.
pub fn groups(comparison: &Comparison) -> Vec<Vec<String>> {
    let count = comparison.runs.len();
    let several = count > 1;
    let mut names = vec!["group".to_owned()];
    for run in 0..count {
        let of = if several { format!("{} of baseline", letter(run)) } else { "of baseline".to_owned() };
        names.push(of);
        names.extend((run > 0).then(|| format!("A / {} (95 %)", letter(run))));
    }
    let mut rows = vec![names];
    for group in &comparison.groups {
        let mut cells = vec![group.name.clone()];
        for run in 0..count {
            cells.push(group.of_baseline[run].map_or_else(String::new, |mean| percent(mean.mean)));
            cells.extend((run > 0).then(|| group.speed_ups[run - 1].as_ref().map_or_else(String::new, factor)));
        }
        rows.push(cells);
    }
    rows
}

fn factor(mean: &Mean) -> String {
    let cases = if mean.cases == 1 { "1 case".to_owned() } else { format!("{} cases", mean.cases) };
    format!("{} ({}; {cases})", significant(mean.mean, 3), interval(mean.interval))
}

fn cases<'a>(
    comparison: &Comparison,
    rows: impl Iterator<Item = &'a Row> + Clone,
    style: TableStyle,
    is_markdown: bool,
) -> Table {
    let mut names = header(comparison);
    let columns = names.len();
    let has_causes = rows.clone().any(|row| !causes(comparison, row).is_empty());
    names.extend(has_causes.then(|| "cause".to_owned()));
    let with_causes = |row: &Row| {
        let mut cells = of_row(row);
        cells.extend(has_causes.then(|| causes(comparison, row)));
        cells
    };
    let all = std::iter::once(names).chain(rows.map(with_causes)).collect();
    let mut table = table_of(all, style, is_markdown);
    for column in 3..columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Why runs have no figures for a case.
pub fn causes(comparison: &Comparison, row: &Row) -> String {
    let of_run = |(n, cause): (usize, &Option<String>)| match comparison.runs.len() {
        1 => cause.clone(),
        _ => cause.as_ref().map(|cause| format!("{} {cause}", letter(n))),
    };
    row.causes.iter().enumerate().filter_map(of_run).collect::<Vec<_>>().join("; ")
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
fn machine(run: &RunSummary) -> String {
    let known = facts(run).into_iter().filter(|(_, fact)| !fact.is_empty());
    let mut text = known.map(|(_, fact)| fact).chain([run.timing.clone()]).collect::<Vec<_>>().join("; ");
    run.notes.iter().for_each(|note| {
        let _ = write!(text, ". {}", note.trim_end_matches('.'));
    });
    text
}

/// What ran, in names and values.
pub fn facts(run: &RunSummary) -> [(&'static str, String); 10] {
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
    ]
}

fn lines(comparison: &Comparison, bullet: &str) -> String {
    let mut lines = warnings(comparison);
    lines.extend(outputs(comparison));
    lines.extend(comparison.not_compared.iter().map(|why| format!("not compared: {why}")));
    lines.iter().map(|line| format!("{bullet}{line}\n")).collect::<String>().trim_end().to_owned()
}

/// What a reader must know before the figures.
pub fn warnings(comparison: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> =
        comparison.other_machine.iter().flatten().map(|why| format!("WARNING: {why}")).collect();
    let runs = &comparison.runs;
    for (n, run) in runs.iter().enumerate().filter(|(_, run)| run.missing > 0) {
        lines.push(format!("WARNING: {} is partial: {} cases or outputs are missing", letter(n), run.missing));
    }
    for n in (1..runs.len()).filter(|n| runs[*n].timing != runs[0].timing) {
        let [a, b] = [0, n].map(|n| if runs[n].timing.is_empty() { "not known" } else { runs[n].timing.as_str() });
        let b_letter = letter(n);
        lines.push(format!("WARNING: A and {b_letter} were timed differently. A: {a}. {b_letter}: {b}"));
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
        let b = letter(n + 1);
        let listed = |names: &[String]| names.join(", ");
        match (outputs.equal, outputs.different.len()) {
            _ if outputs.shared() == 0 => lines.push(format!("{b}: no outputs to compare with those of A")),
            (equal, 0) => lines.push(format!("{b}: all {equal} outputs that both wrote are equal to A's, bit for bit")),
            (_, count) => {
                let (shared, names) = (outputs.shared(), listed(&outputs.different));
                lines.push(format!("{b}: {count} of {shared} outputs differ from A's: {names}"));
            }
        }
        if !outputs.expected.is_empty() {
            let (count, names) = (outputs.expected.len(), listed(&outputs.expected));
            lines.push(format!(
                "{b}: {count} outputs differ from A's as expected (lengths above the axis size): {names}"
            ));
        }
        if let Some(why) = outputs.not_compared.values().next() {
            lines.push(format!("{b}: {} outputs are not compared: {why}", outputs.not_compared.len()));
        }
        let failed: Vec<String> = outputs.failed.iter().map(|(name, error)| format!("{name} ({error})")).collect();
        if !failed.is_empty() {
            let outputs = if failed.len() == 1 { "output" } else { "outputs" };
            lines.push(format!("{b}: {} {outputs} failed: {}", failed.len(), failed.join("; ")));
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
    for row in &comparison.rows {
        for (n, cell) in row.cells.iter().enumerate() {
            let change = n.checked_sub(1).and_then(|n| row.changes[n]);
            let of_cell = |figure: fn(&Cell) -> String| cell.as_ref().map(figure);
            let record = Record {
                case: no_formula(&row.case),
                data_type: no_formula(&row.data_type),
                mode: row.mode.name(),
                bytes: row.bytes,
                run: no_formula(&comparison.runs[n].label),
                dispatches: of_cell(|cell| cell.dispatches.to_string()),
                samples: of_cell(|cell| cell.samples.to_string()),
                microseconds: of_cell(|cell| number(cell.median)),
                noise: cell.as_ref().and_then(|cell| cell.noise).map(number),
                gigabytes_per_second: of_cell(|cell| significant(cell.gigabytes_per_second, 4).replace(',', "")),
                of_baseline: cell.as_ref().and_then(|cell| cell.of_baseline).map(number),
                speed_up_over_first: change.map(|change| number(change.speed_up)),
                status: change.map(|change| change.status.name()),
                of_floor: cell.as_ref().and_then(|cell| cell.of_floor).map(number),
                failed: row.causes[n].as_deref(),
                speed_up_low: change.map(|change| number(change.interval.0)),
                speed_up_high: change.map(|change| number(change.interval.1)),
            };
            if cell.is_some() || record.failed.is_some() {
                writer.serialize(record).map_err(|error| error.to_string())?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// The columns.
#[derive(Serialize)]
struct Record<'a> {
    case: String,
    #[serde(rename = "type")]
    data_type: String,
    mode: &'static str,
    bytes: u64,
    run: String,
    dispatches: Option<String>,
    samples: Option<String>,
    microseconds: Option<String>,
    noise: Option<String>,
    gigabytes_per_second: Option<String>,
    of_baseline: Option<String>,
    speed_up_over_first: Option<String>,
    status: Option<&'static str>,
    of_floor: Option<String>,
    failed: Option<&'a str>,
    speed_up_low: Option<String>,
    speed_up_high: Option<String>,
}

fn number(value: f64) -> String {
    if value >= 1e12 {
        return format!("{value:e}");
    }
    format!("{value:.4}")
}

/// Text that a spreadsheet does not run.
fn no_formula(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    format!("{}{text}", if is_formula { "'" } else { "" })
}
