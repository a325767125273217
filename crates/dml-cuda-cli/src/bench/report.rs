//! `dml-cuda report`: one run, or several next to the first, as a table, Markdown, CSV, JSON, a page or a figure.

mod chart;
mod page;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;

use super::compare::{letter, tell_apart, Cell, Change, Comparison, Row};
use super::run::Run;
use crate::options::Guard;
use crate::out::{self, complain, say, shown};
use crate::whole_file;

/// More runs than this are no comparison that a person reads.
const MOST_RUNS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for a terminal
    Table,
    /// For a page of a repository
    Markdown,
    /// For a spreadsheet
    Csv,
    /// All figures
    Json,
    /// One page with a chart, for a browser
    Html,
    /// The chart alone
    Svg,
}

impl Format {
    /// The format that a file's name asks for.
    fn of(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "md" => Self::Markdown,
            "csv" => Self::Csv,
            "json" => Self::Json,
            "html" | "htm" => Self::Html,
            "svg" => Self::Svg,
            "txt" => Self::Table,
            _ => return None,
        })
    }
}

/// How a report of each format begins, and what else is in it.
pub const MARKS: [(&str, &str); 6] = [
    ("A: ", "of baseline"),
    ("- **A: ", "of baseline"),
    ("case,type,mode,bytes,run,", "of_baseline"),
    ("{\n  \"runs\": [", "\"not_compared\": ["),
    (
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"generator\" content=\"dml-cuda\">",
        "</html>",
    ),
    ("<svg class=\"dml-cuda\"", "</svg>"),
];

pub struct Options {
    pub runs: Vec<PathBuf>,
    pub labels: Vec<String>,
    pub threshold: f64,
    pub guard: Guard,
    pub format: Option<Format>,
    pub to: Option<PathBuf>,
    pub overwrite: bool,
}

/// Reports on the runs, the first of which the others are compared with.
pub fn report(options: &Options) -> Result<ExitCode, String> {
    if options.runs.len() > MOST_RUNS {
        return Err(format!("there are {} runs, must be at most {MOST_RUNS}", options.runs.len()));
    }
    let mut runs = options.runs.iter().map(|path| Run::read(path)).collect::<Result<Vec<_>, _>>()?;
    if options.labels.len() > runs.len() {
        return Err(format!(
            "--label is given {} times, must be at most {}, once a run",
            options.labels.len(),
            runs.len()
        ));
    }
    runs.iter_mut().zip(&options.labels).for_each(|(run, label)| label.clone_into(&mut run.label));
    tell_apart(&mut runs);
    printable(&mut runs);
    let to = options.to.as_deref().filter(|path| *path != Path::new("-"));
    let format = match (options.format, to) {
        (Some(format), _) => format,
        (None, Some(path)) if path.extension().is_some() => Format::of(path).ok_or_else(|| {
            format!("the name of {} has no ending of a format, must be .txt, .md, .csv, .json, .html or .svg, or give --format", path.display())
        })?,
        (None, _) => Format::Table,
    };
    let comparison = Comparison::new(&runs, options.threshold);
    let shares_cases = |row: &Row| row.changes.iter().any(Option::is_some) || row.causes.iter().any(Option::is_some);
    let shares_outputs = comparison.outputs.iter().any(|outputs| outputs.shared() > 0);
    if runs.len() > 1 && !shares_outputs && !comparison.rows.iter().any(shares_cases) {
        return Err("the runs share no case and no output, must be of the same cases".to_owned());
    }
    let written = match format {
        Format::Table => text::table(&comparison),
        Format::Markdown => text::markdown(&comparison),
        Format::Csv => text::csv(&comparison)?,
        Format::Json => serde_json::to_string_pretty(&comparison).map_err(|error| error.to_string())? + "\n",
        Format::Html => page::page(&comparison, &runs),
        Format::Svg => chart::standing_alone(&chart::groups(&comparison)),
    };
    match to {
        Some(path) => {
            whole_file::write_result(path, written.as_bytes(), options.overwrite)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            say!("Report written to '{}'", path.display())?;
        }
        None => out::with(|out| out.write_all(written.as_bytes()))?,
    }
    if !options.guard.fail_on_slower {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(why) = comparison.other_machine.iter().flatten().next() {
        complain!("ERROR: --fail-on-slower: {why}");
        return Ok(ExitCode::from(2));
    }
    let regressions = comparison.regressions(options.guard.allow_different_outputs, options.guard.allow_missing);
    match regressions.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(format!("--fail-on-slower: {}", regressions.join("; "))),
    }
}

/// Text of runs may come from anywhere: it is cut, and has no control characters.
fn printable(runs: &mut [Run]) {
    for run in runs {
        let machine = &mut run.machine;
        let fields = [&mut machine.tool, &mut machine.commit, &mut machine.device, &mut machine.driver];
        let more = [&mut machine.clocks, &mut machine.host, &mut machine.operating_system, &mut machine.date];
        let rest = [&mut machine.command, &mut run.label, &mut run.timing, &mut run.suite];
        let works = run.cases.iter_mut().flat_map(|timed| [&mut timed.work.case, &mut timed.work.data_type]);
        let all = fields.into_iter().chain(more).chain(rest).chain(&mut run.notes).chain(works);
        all.for_each(|text| *text = shown(text));
    }
}

/// The columns of a case after its name, type, mode and bytes: those of each run, then what compares another run with the first.
fn header(comparison: &Comparison) -> Vec<String> {
    let count = comparison.runs.len();
    let named = |run: usize, column: &str| match count {
        1 => column.to_owned(),
        _ => format!("{} {column}", letter(run)),
    };
    let of_runs = (0..count).flat_map(|run| ["µs", "noise", "GB/s", "of baseline"].map(|column| named(run, column)));
    let of_changes =
        (1..count).flat_map(|run| [format!("A / {}", letter(run)), "95 %".to_owned(), letter(run).to_string()]);
    ["case", "type", "mode", "bytes"].map(str::to_owned).into_iter().chain(of_runs).chain(of_changes).collect()
}

fn of_row(row: &Row) -> Vec<String> {
    let mut cells = vec![row.case.clone(), row.data_type.clone(), row.mode.name().to_owned(), bytes(row.bytes)];
    for (cell, cause) in row.cells.iter().zip(&row.causes) {
        cells.extend(of_cell(cell.as_ref(), cause.as_deref()));
    }
    row.changes.iter().for_each(|change| cells.extend(of_change(change.as_ref())));
    cells
}

fn of_cell(cell: Option<&Cell>, cause: Option<&str>) -> [String; 4] {
    let Some(cell) = cell else {
        let why = cause.and_then(|cause| cause.split(':').next()).unwrap_or_default();
        return [why.to_owned(), String::new(), String::new(), String::new()];
    };
    [
        significant(cell.median, if cell.median < 1.0 { 3 } else { 4 }),
        cell.noise.map_or_else(|| "?".to_owned(), percent),
        significant(cell.gigabytes_per_second, 3),
        cell.of_baseline.map(percent).unwrap_or_default(),
    ]
}

fn of_change(change: Option<&Change>) -> [String; 3] {
    let Some(change) = change else { return Default::default() };
    [significant(change.speed_up, 3), interval(change.interval), change.status.name().to_owned()]
}

fn interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", significant(low, 3), significant(high, 3))
}

/// Percent without decimals.
fn percent(fraction: f64) -> String {
    match fraction * 100.0 {
        value if value < 1e5 => format!("{value:.0} %"),
        value => format!("{value:.0e} %"),
    }
}

/// A positive number with so many significant digits, or all of its whole part, in groups of three. Very large and small ones as 1e308.
fn significant(value: f64, digits: usize) -> String {
    if !(1e-6..1e12).contains(&value) && value != 0.0 {
        return format!("{value:.0e}");
    }
    // In this form the exponent is that of the rounded number.
    let scientific = format!("{value:.*e}", digits - 1);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let text = format!("{value:.*}", (digits as i32 - 1 - exponent).max(0) as usize);
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (n, digit) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// KiB, MiB or GiB.
fn bytes(value: u64) -> String {
    let (divisor, unit) = match value {
        0..1024 => return format!("{value} B"),
        1024..1_048_576 => (1024.0, "KiB"),
        1_048_576..1_073_741_824 => (1_048_576.0, "MiB"),
        _ => (1_073_741_824.0, "GiB"),
    };
    let text = significant(value as f64 / divisor, 3);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let times = [0.8312, 2.127, 9.9996, 163.701, 16370.0, 1234567.8];
        assert_eq!(
            times.map(|value| significant(value, if value < 1.0 { 3 } else { 4 })),
            ["0.831", "2.127", "10.00", "163.7", "16,370", "1,234,568"]
        );
        assert_eq!(
            [0.0951, 0.95, 45.25, 1e308].map(|value| significant(value, 3)),
            ["0.0951", "0.950", "45.2", "1e308"]
        );
        assert_eq!([512, 4096, 5 << 19, 3 << 29].map(bytes), ["512 B", "4 KiB", "2.5 MiB", "1.5 GiB"]);
        assert_eq!([0.947, 1e300].map(percent), ["95 %", "1e302 %"]);
    }
}
