//! Warnings and notes that a report prints above its tables.
//!
//! | line | about |
//! | --- | --- |
//! | WARNING | figures that may be wrong or not comparable: another machine, suite or way of timing, a partial file, a slow baseline |
//! | NOTE | what explains figures: details of the timing, cases without a time |
//!
//! Warnings never change a figure. A reader who knows better can still use it, and the chart has room for warnings only.

use serde::Serialize;

use super::cell::LEAST_FLOOR_BYTES;
use super::{Row, Summary};
use crate::bench::numbers::percent;
use crate::bench::work::Mode;

/// A share of the baseline's speed above which the baseline, or the case, is measured wrongly.
const MOST_OF_BASELINE: f64 = 1.2;

/// A line about a results file, next to the first one.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Warning {
    /// The place of the file on the command line.
    #[serde(skip)]
    pub file: usize,
    #[serde(skip)]
    pub severity: Severity,
    /// The whole line, which begins with WARNING or NOTE.
    pub text: String,
}

/// What a line is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Figures may be wrong or not comparable.
    Warning,
    /// It explains figures.
    Note,
}

impl Warning {
    /// A line about the file in place `file`. `text` is what follows WARNING or NOTE.
    fn new(file: usize, severity: Severity, text: &str) -> Self {
        let mark = match severity {
            Severity::Warning => "WARNING",
            Severity::Note => "NOTE",
        };
        Self {
            file,
            severity,
            text: format!("{mark}: {text}"),
        }
    }
}

/// The warnings and notes about files: first about machines, then about partial files, then about all else.
pub fn warnings(files: &[Summary], rows: &[Row], other_machine: &[Option<String>]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (n, why) in other_machine.iter().enumerate() {
        let why = why.as_deref();
        warnings.extend(why.map(|why| Warning::new(n + 1, Severity::Warning, why)));
    }
    for (file, summary) in files.iter().enumerate() {
        warnings.extend(partial(summary, file));
    }
    let first = &files[0];
    for (file, summary) in files.iter().enumerate() {
        warnings.extend(other_suite(first, summary, file));
        warnings.extend(other_timing(first, summary, file));
        warnings.extend(slow_baseline(summary, file, rows));
        warnings.extend(failed_cases(summary, file, rows));
    }
    warnings
}

/// An interrupted bench lacks cases, so that its means are those of the first ones.
fn partial(Summary { name, missing, .. }: &Summary, file: usize) -> Option<Warning> {
    match missing {
        0 => None,
        _ => Some(Warning::new(
            file,
            Severity::Warning,
            &format!("{name} is partial: {missing} cases or outputs are missing"),
        )),
    }
}

/// Releases may change a case and keep its name.
fn other_suite(first: &Summary, other: &Summary, file: usize) -> Option<Warning> {
    if !suites_differ(first, other) {
        return None;
    }
    let suites = format!(
        "{} ran {}, and {} ran {}",
        first.name, first.suite, other.name, other.suite
    );
    Some(Warning::new(
        file,
        Severity::Warning,
        &format!("the suites differ, so models of one name may also differ: {suites}"),
    ))
}

/// Times of the host's clock contain the way to the GPU, and those of events do not.
fn other_timing(first: &Summary, other: &Summary, file: usize) -> Option<Warning> {
    if first.timing == other.timing {
        return None;
    }
    let (a, b) = (&first.name, &other.name);
    if ways(&first.timing) == ways(&other.timing) {
        return Some(Warning::new(
            file,
            Severity::Note,
            &format!("{a} and {b} were timed in one way, but not in all details; see their timing"),
        ));
    }
    let [timing_of_a, timing_of_b] = [first, other].map(|summary| match &*summary.timing {
        "" => "not known",
        timing => timing,
    });
    Some(Warning::new(
        file,
        Severity::Warning,
        &format!("{a} and {b} were timed differently. {a}: {timing_of_a}. {b}: {timing_of_b}"),
    ))
}

/// Large copies and fills cannot be faster than their baselines.
fn slow_baseline(summary: &Summary, file: usize, rows: &[Row]) -> Option<Warning> {
    let mut most: f64 = 0.0;
    for row in rows {
        // A reversal in place uses half the memory of a copy, so that more of it stays in the cache.
        if row.work.mode != Mode::InPlace && row.work.bytes >= LEAST_FLOOR_BYTES {
            most = most.max(row.share(file).unwrap_or(0.0));
        }
    }
    if most <= MOST_OF_BASELINE {
        return None;
    }
    let speed = format!("at up to {} of the baseline's speed", percent(most));
    Some(Warning::new(
        file,
        Severity::Warning,
        &format!("{} runs {speed}: the baseline is too slow", summary.name),
    ))
}

/// How many cases failed or are known to be wrong.
fn failed_cases(Summary { name, .. }: &Summary, file: usize, rows: &[Row]) -> Option<Warning> {
    let cases = match rows.iter().filter(|row| row.causes[file].is_some()).count() {
        0 => return None,
        1 => "1 case has".to_owned(),
        failed => format!("{failed} cases have"),
    };
    Some(Warning::new(
        file,
        Severity::Note,
        &format!("{name}: {cases} no time; the rows say why"),
    ))
}

/// A file that does not name its suite, as those of older releases, is taken to have the same one.
fn suites_differ(first: &Summary, other: &Summary) -> bool {
    other.suite != first.suite && !other.suite.is_empty() && !first.suite.is_empty()
}

/// What makes the speedup of a file over the first one doubtful, as the end of a sentence about both.
pub fn doubt(first: &Summary, other: &Summary) -> Option<&'static str> {
    if ways(&first.timing) != ways(&other.timing) {
        Some("were timed differently")
    } else if suites_differ(first, other) {
        Some("ran different suites")
    } else {
        None
    }
}

/// The properties of a timing that change times by much: the clock, the cache, and whether it is known.
fn ways(timing: &str) -> [bool; 3] {
    [
        timing.contains("host's clock"),
        timing.contains("cold L2"),
        timing.is_empty(),
    ]
}
