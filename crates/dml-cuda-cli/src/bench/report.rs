//! `dml-cuda report`: one run, or several next to the first, as a table, Markdown, CSV, JSON, a page or a figure.

mod chart;
mod page;
mod tables;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;

use super::compare::{Comparison, Row};
use super::results::Results;
use crate::options::{Report, ReportFormat};
use crate::out::{self, complain, say, shown_lines, shown_path};
use crate::{output_file, schema};

/// Reports on the runs, the first of which the others are compared with.
pub fn report(options: &Report) -> Result<ExitCode, String> {
    if options.fail_on_slower && options.runs.len() == 1 {
        complain!(
            "ERROR: --fail-on-slower compares results files, of which there must be at least two"
        );
        return Ok(ExitCode::from(2));
    }
    if options
        .runs
        .iter()
        .filter(|run| **run == Path::new("-"))
        .count()
        > 1
    {
        complain!("ERROR: - is standard input, which can be read once, but is given twice");
        return Ok(ExitCode::from(2));
    }
    let runs = read(options)?;
    let to = options
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"));
    let by_ending = || to.map_or(Ok(ReportFormat::Table), format_of);
    let format = options.format.map_or_else(by_ending, Ok)?;
    let is_input = |path: &Path, run: &PathBuf| matches!((path.canonicalize(), run.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if let Some(path) = to.filter(|path| options.runs.iter().any(|run| is_input(path, run))) {
        return Err(format!(
            "{}: it is a results file of this report, but must be another file",
            shown_path(path)
        ));
    }
    let in_file = |error: String| format!("{}: {error}", shown_path(to.unwrap_or(Path::new(""))));
    to.map_or(Ok(()), |path| {
        output_file::can_write_result(path, options.overwrite, Results::is_at)
    })
    .map_err(in_file)?;
    let comparison = Comparison::new(&runs, options.threshold);
    let has_causes = |row: &Row| row.causes.iter().any(Option::is_some);
    if runs.len() > 1 && !comparison.is_compared() && !comparison.rows.iter().any(has_causes) {
        return Err(
            "the results files share no case and no output, but must have the same cases"
                .to_owned(),
        );
    }
    let written = schema::marked(&written(&comparison, format, options.all_cases)?);
    match to {
        Some(path) => {
            output_file::write_result(path, written.as_bytes(), options.overwrite, Results::is_at)
                .map_err(|error| {
                    in_file(error + &output_file::save_elsewhere(path, written.as_bytes()))
                })?;
            say!("Report written to '{}'", shown_path(path))?;
        }
        None => out::with(|out| out.write_all(written.as_bytes()))?,
    }
    guard(&comparison, options)
}

/// Text of runs may come from anywhere: no report has its control characters. JSON escapes them itself.
fn written(
    comparison: &Comparison,
    format: ReportFormat,
    all_cases: bool,
) -> Result<String, String> {
    let text = match format {
        ReportFormat::Table => {
            let columns = console::Term::stdout()
                .size_checked()
                .map_or(80, |(_, columns)| columns);
            text::text(comparison, Some(columns), all_cases)
        }
        ReportFormat::Markdown => text::text(comparison, None, all_cases),
        ReportFormat::Csv => text::csv(comparison)?,
        ReportFormat::Json => {
            return Ok(serde_json::to_string_pretty(comparison)
                .map_err(|error| error.to_string())?
                + "\n")
        }
        ReportFormat::Html => page::page(comparison),
        ReportFormat::Svg => chart::chart(comparison),
    };
    Ok(shown_lines(&text))
}

fn read(options: &Report) -> Result<Vec<Results>, String> {
    let mut runs = options
        .runs
        .iter()
        .map(|path| Results::read(path))
        .collect::<Result<Vec<_>, _>>()?;
    let (labels, most) = (&options.label, runs.len());
    if labels.len() > most {
        return Err(format!(
            "--label is given {} times, but must be at most {most}, once per file",
            labels.len()
        ));
    }
    runs.iter_mut()
        .zip(labels)
        .for_each(|(run, label)| label.clone_into(&mut run.label));
    tell_apart(&mut runs);
    Ok(runs)
}

/// Gives runs of the same label, or of none, the names of their files too.
fn tell_apart(runs: &mut [Results]) {
    let labels: Vec<String> = runs.iter().map(|run| run.label.trim().to_owned()).collect();
    for (run, label) in runs.iter_mut().zip(&labels) {
        run.label = match labels.iter().filter(|other| *other == label).count() {
            _ if label.is_empty() => run.file.clone(),
            1 => label.clone(),
            _ => format!("{label}, {}", run.file),
        };
    }
}

/// The format that a file's name asks for.
fn format_of(path: &Path) -> Result<ReportFormat, String> {
    let Some(ending) = path.extension() else {
        return Ok(ReportFormat::Table);
    };
    ReportFormat::from_str(&ending.to_string_lossy(), true).map_err(|_| {
        let endings = ".txt, .md, .csv, .json, .html or .svg";
        format!(
            "the name of {} has no ending of a format, but must be {endings}, or give --format",
            shown_path(path)
        )
    })
}

/// Whether a pipeline may go on.
fn guard(comparison: &Comparison, options: &Report) -> Result<ExitCode, String> {
    if !options.fail_on_slower {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(why) = comparison.other_machine.iter().flatten().next() {
        complain!("ERROR: --fail-on-slower: {}", shown_lines(why));
        return Ok(ExitCode::from(2));
    }
    match comparison
        .regressions(options.allow_different_outputs, options.allow_missing)
        .join("; ")
    {
        regressions if !regressions.is_empty() => Err(format!("--fail-on-slower: {regressions}")),
        _ if comparison.is_compared() => Ok(ExitCode::SUCCESS),
        _ => {
            complain!("ERROR: --fail-on-slower: no case has a time in both runs");
            Ok(ExitCode::from(2))
        }
    }
}
