//! `dml-cuda report` and `dml-cuda compare`: runs as a table, Markdown, CSV, JSON, a page, a figure, or Google Benchmark's JSON.

mod chart;
mod lines;
mod page;
mod scale;
mod svg;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::json;

use crate::bench::compare::{tell_apart, Comparison, Row};
use crate::bench::record::{Failed, Run};
use crate::options::Guard;
use crate::out::{self, complain, say};
use crate::whole_file;

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
    /// One page with figures, for a browser
    Html,
    /// The figure of how near each case is to a plain copy or fill
    Svg,
    /// Google Benchmark's, of one run
    Gbench,
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
const MARKS: [(&str, &str); 7] = [
    ("A: ", "of roof"),
    ("- **A: ", "of roof"),
    ("case,type,mode,bytes,run,", "of_roof"),
    ("{\n  \"runs\": [", "\"not_compared\": ["),
    ("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><title>", "of roof"),
    ("<svg class=\"chart", "</svg>"),
    ("{\n  \"benchmarks\": [", "\"library_build_type\": \"release\""),
];

pub struct Options {
    pub runs: Vec<PathBuf>,
    pub labels: Vec<String>,
    pub threshold: f64,
    pub guard: Option<Guard>,
    pub format: Option<Format>,
    pub to: Option<PathBuf>,
}

/// Reports on the runs, the first of which the others are compared with.
pub fn report(options: &Options) -> Result<ExitCode, String> {
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
    let format = match (options.format, &options.to) {
        (Some(format), _) => format,
        (None, Some(path)) if path.extension().is_some() => Format::of(path).ok_or_else(|| {
            format!("the name of {} has no ending of a format, must be .txt, .md, .csv, .json, .html or .svg, or give --format", path.display())
        })?,
        (None, _) => Format::Table,
    };
    let comparison = Comparison::new(&runs, options.threshold);
    let is_shared = |row: &Row| row.changes.iter().any(Option::is_some) || row.failures.iter().any(Option::is_some);
    if runs.len() > 1 && !comparison.rows.iter().any(is_shared) {
        let lines = text::conclusions_of(&comparison);
        let outputs = match comparison.outputs.iter().any(|outputs| outputs.shared() > 0) {
            true => format!("; they share outputs: {}", lines.join("; ")),
            false => String::new(),
        };
        return Err(format!("the runs share no case, must be of the same suite{outputs}"));
    }
    if comparison.rows.is_empty() {
        return Err("the runs have no case to report".to_owned());
    }
    let written = match format {
        Format::Table => text::table(&comparison),
        Format::Markdown => text::markdown(&comparison),
        Format::Csv => text::csv(&comparison)?,
        Format::Json => serde_json::to_string_pretty(&comparison).map_err(|error| error.to_string())? + "\n",
        Format::Html => page::page(&comparison, &runs),
        Format::Svg => svg::standing_alone(&chart::of_roof(&comparison).wide),
        Format::Gbench => match runs.as_slice() {
            [run] => google_benchmark(run),
            _ => return Err("gbench is of one run, must be asked of `report`".to_owned()),
        },
    };
    match &options.to {
        Some(path) => {
            whole_file::write_report(path, written.as_bytes(), &MARKS)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            say!("Report written to '{}'", path.display())?;
        }
        None => out::with(|out| out.write_all(written.as_bytes()))?,
    }
    if let Some(guard) = options.guard.as_ref().filter(|guard| guard.fail_on_slower) {
        if let Some(why) = comparison.other_machine.iter().flatten().next() {
            complain!("ERROR: --fail-on-slower: {why}");
            return Ok(ExitCode::from(2));
        }
        let regressions = comparison.regressions(guard.allow_different_outputs, guard.allow_missing);
        if !regressions.is_empty() {
            return Err(format!("--fail-on-slower: {}", regressions.join("; ")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What Google Benchmark's tools read: each sample is a repetition.
fn google_benchmark(run: &Run) -> String {
    let machine = &run.machine;
    let mut benchmarks = Vec::new();
    for timing in &run.cases {
        let name = format!("{}/{}/{}", timing.work.case, timing.work.data_type, timing.work.mode.name());
        let samples = timing.samples.values();
        for (repetition, microseconds) in samples.iter().enumerate() {
            benchmarks.push(json!({
                "name": name,
                "run_name": name,
                "run_type": "iteration",
                "repetitions": samples.len(),
                "repetition_index": repetition,
                "threads": 1,
                "iterations": timing.work.dispatches,
                "real_time": microseconds,
                "cpu_time": microseconds,
                "time_unit": "us",
                "bytes_per_second": timing.work.bytes as f64 / microseconds * 1e6,
            }));
        }
    }
    for Failed { work, error } in &run.failed {
        let name = format!("{}/{}/{}", work.case, work.data_type, work.mode.name());
        benchmarks.push(json!({
            "name": name, "run_name": name, "run_type": "iteration", "repetitions": 1, "repetition_index": 0, "threads": 1,
            "error_occurred": true, "error_message": error,
            "iterations": 0, "real_time": 0.0, "cpu_time": 0.0, "time_unit": "us",
        }));
    }
    let context = json!({
        "date": machine.date,
        "host_name": machine.host,
        "executable": machine.tool,
        "device": machine.device,
        "driver": machine.driver,
        "library_build_type": "release",
    });
    format!("{:#}\n", json!({ "context": context, "benchmarks": benchmarks }))
}

/// Percent without decimals.
fn percent(fraction: f64) -> String {
    format!("{:.0} %", fraction * 100.0)
}

/// A positive number with so many significant digits, or all of its whole part, in groups of three.
fn significant(value: f64, digits: usize) -> String {
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

/// A factor of 1 or more, in two digits and zeros.
fn factor(value: f64) -> String {
    significant(format!("{value:.1e}").parse().unwrap_or(value), 2)
}

/// Four significant digits, and at most nanoseconds.
fn microseconds(value: f64) -> String {
    significant(value, if value < 1.0 { 3 } else { 4 })
}

/// GB/s.
fn rate(value: f64) -> String {
    significant(value, 3)
}

/// KiB, MiB or GiB.
fn bytes(value: u64) -> String {
    match value {
        0..1024 => format!("{value} B"),
        1024..1_048_576 => format!("{:.4} KiB", Short(value as f64 / 1024.0)),
        1_048_576..1_073_741_824 => format!("{:.4} MiB", Short(value as f64 / 1_048_576.0)),
        _ => format!("{:.4} GiB", Short(value as f64 / 1_073_741_824.0)),
    }
}

/// A number in three digits or all before the point.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decimals = if self.0 < 10.0 { 2 } else { usize::from(self.0 < 100.0) };
        let text = format!("{:.decimals$}", self.0);
        f.write_str(if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.8312, 2.127, 9.9996, 163.701, 16370.0, 1234567.8].map(microseconds),
            ["0.831", "2.127", "10.00", "163.7", "16,370", "1,234,568"]
        );
        assert_eq!([0.0951, 0.95, 2.0, 45.25, 4473.2].map(rate), ["0.0951", "0.950", "2.00", "45.2", "4,473"]);
        assert_eq!([1.004, 3.97, 9.96, 27.4, 213.0, 21_345.0].map(factor), ["1.0", "4.0", "10", "27", "210", "21,000"]);
        assert_eq!([512, 4096, 5 << 19, 3 << 29].map(bytes), ["512 B", "4 KiB", "2.5 MiB", "1.5 GiB"]);
        assert_eq!(percent(0.947), "95 %");
    }
}
