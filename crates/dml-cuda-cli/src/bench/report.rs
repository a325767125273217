//! `dml-cuda report` shows one results file, or several next to the first one: as a table, Markdown, CSV, JSON, a page or a
//! chart.
//!
//! ```text
//! read ─> Comparison ─> formatted ─> marked ─> file or standard output
//! ```
//!
//! The mark is a checksum in the report. By it, `--overwrite` knows an older report from a file of something else.

mod chart;
mod csv;
mod page;
mod tables;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;

use super::compare::{regressions, Allowed, Comparison, Row};
use super::results::Results;
use crate::options::{Report, ReportFormat};
use crate::out::{self, complain, in_file, say, shown_lines, shown_path};
use crate::{output_file, schema};
use text::Medium;

/// Reports on the results files, the first of which the others are compared with.
pub fn report(options: &Report) -> Result<ExitCode, String> {
    if let Err(misuse) = check(options) {
        complain!("ERROR: {misuse}");
        return Ok(ExitCode::from(2));
    }
    // Wrong files are errors before anything is written.
    let files = read(options)?;
    let to = options.output.as_deref();
    let to = to.filter(|path| *path != Path::new("-"));
    let format = match (options.format, to) {
        (Some(format), _) => format,
        (None, Some(path)) => format_of(path)?,
        (None, None) => ReportFormat::Table,
    };
    if let Some(path) = to {
        check_output(path, options).map_err(in_file(path))?;
    }
    let comparison = Comparison::new(&files, options.threshold);
    // Cases that failed are worth a report even if nothing can be compared.
    let has_causes = |row: &Row| row.causes.iter().any(Option::is_some);
    if files.len() > 1 && !comparison.is_compared() && !comparison.rows.iter().any(has_causes) {
        return Err(
            "the results files share no case and no output, but must have the same cases"
                .to_owned(),
        );
    }
    let text = schema::marked(&formatted(&comparison, format, options.all_cases)?);
    match to {
        Some(path) => write(path, &text, options)?,
        None => out::with(|out| out.write_all(text.as_bytes()))?,
    }
    guard(&comparison, options)
}

/// Checks what the parser of options does not.
fn check(options: &Report) -> Result<(), &'static str> {
    if options.fail_on_slower && options.files.len() == 1 {
        return Err("--fail-on-slower compares results files, of which there must be at least two");
    }
    let is_stdin = |path: &&PathBuf| **path == Path::new("-");
    if options.files.iter().filter(is_stdin).count() > 1 {
        return Err("- is standard input, which can be read once, but is given twice");
    }
    Ok(())
}

/// Checks that a report can be written there, before the comparison takes its time.
fn check_output(path: &Path, options: &Report) -> Result<(), String> {
    let is_input = |file: &PathBuf| output_file::is_same(path, file);
    if options.files.iter().any(is_input) {
        return Err("it is a results file of this report, but must be another file".to_owned());
    }
    output_file::can_write_result(path, options.overwrite, Results::is_at)
}

/// Writes the report into a file. If that fails, it is saved elsewhere.
fn write(path: &Path, text: &str, options: &Report) -> Result<(), String> {
    let bytes = text.as_bytes();
    output_file::write_result(path, bytes, options.overwrite, Results::is_at)
        .map_err(|error| in_file(path)(error + &output_file::save_elsewhere(path, bytes)))?;
    say!("Report written to '{}'", shown_path(path))
}

/// The report without its mark. Text of results files may come from anywhere: no report has its control characters. JSON
/// escapes them itself.
fn formatted(
    comparison: &Comparison,
    format: ReportFormat,
    all_cases: bool,
) -> Result<String, String> {
    let text = match format {
        ReportFormat::Table => text::text(comparison, terminal(), all_cases),
        ReportFormat::Markdown => text::text(comparison, Medium::Markdown, all_cases),
        ReportFormat::Csv => csv::csv(comparison)?,
        ReportFormat::Json => {
            let text = serde_json::to_string_pretty(comparison);
            return Ok(text.map_err(|error| error.to_string())? + "\n");
        }
        ReportFormat::Html => page::page(comparison),
        ReportFormat::Svg => chart::chart(comparison),
    };
    Ok(shown_lines(&text))
}

/// The terminal of standard output, or one of 80 columns for a pipe.
fn terminal() -> Medium {
    let size = console::Term::stdout().size_checked();
    let columns = size.map_or(80, |(_, columns)| columns);
    Medium::Terminal { columns }
}

/// Reads the results files, and gives them the labels of the options.
fn read(options: &Report) -> Result<Vec<Results>, String> {
    let mut files = Vec::new();
    for path in &options.files {
        files.push(Results::read(path)?);
    }
    let (labels, most) = (&options.label, files.len());
    if labels.len() > most {
        return Err(format!(
            "--label is given {} times, but must be at most {most}, once per file",
            labels.len()
        ));
    }
    for (results, label) in files.iter_mut().zip(labels) {
        results.label.clone_from(label);
    }
    tell_apart(&mut files);
    Ok(files)
}

/// Adds the names of their files to labels that several have. A file without a label is called by its name.
fn tell_apart(files: &mut [Results]) {
    let labels: Vec<String> = files
        .iter()
        .map(|results| results.label.trim().to_owned())
        .collect();
    for (results, label) in files.iter_mut().zip(&labels) {
        let count = labels.iter().filter(|other| *other == label).count();
        results.label = match count {
            _ if label.is_empty() => results.file.clone(),
            1 => label.clone(),
            _ => format!("{label}, {}", results.file),
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

/// The exit code of `--fail-on-slower`, by which a pipeline stops: 1 for a regression, 2 if nothing can be said.
fn guard(comparison: &Comparison, options: &Report) -> Result<ExitCode, String> {
    if !options.fail_on_slower {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(why) = comparison.other_machine.iter().flatten().next() {
        complain!("ERROR: --fail-on-slower: {}", shown_lines(why));
        return Ok(ExitCode::from(2));
    }
    let allowed = Allowed {
        different_outputs: options.allow_different_outputs,
        missing: options.allow_missing,
    };
    let regressions = regressions(comparison, &allowed);
    if !regressions.is_empty() {
        return Err(format!("--fail-on-slower: {}", regressions.join("; ")));
    }
    if !comparison.is_compared() {
        complain!("ERROR: --fail-on-slower: no case has a time in both files");
        return Ok(ExitCode::from(2));
    }
    Ok(ExitCode::SUCCESS)
}
