//! The rows of a comparison: the figures of one case in every results file.
//!
//! ```text
//!                       file 0     file 1            file 2
//! cells                 100 µs     50 µs             none
//! causes                none       none              failed: …
//! changes                          2.0×, FASTER      none
//! ```
//!
//! Files are counted from 0, as on the command line. Changes have no entry for file 0, which the others are compared with.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::cell::{self, Cell, Change, Status};
use super::outputs::{self, directml};
use crate::bench::numbers::counted;
use crate::bench::results::{Results, Timed};
use crate::bench::statistics::Interval;
use crate::bench::work::{Mode, Work};

/// Why reversals in place are not compared with DirectML's.
const WRONG_IN_PLACE: &str = "DirectML accepts them and returns wrong data";

/// A case in all results files. Its lists have an entry for each file, except that `changes` has none for the first.
#[derive(Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub work: Work,
    /// One for each file: its figures, if it has times.
    pub cells: Vec<Option<Cell>>,
    /// One for each file after the first: its speedup over that, and whether it is one.
    pub changes: Vec<Option<Change>>,
    /// One for each file: why the case has no figures there.
    pub causes: Vec<Option<String>>,
    /// One for each file: whether the case failed there. A case that is known to be wrong did not.
    #[serde(skip)]
    pub failed: Vec<bool>,
    /// One for each file: whether it is known to have another model of this name than the first file.
    #[serde(skip)]
    pub other_model: Vec<bool>,
    /// The kind of the case, which is a group of the verdict.
    pub group: &'static str,
}

/// A figure of a case, and its interval.
#[derive(Clone, Copy)]
pub struct Point {
    pub value: f64,
    pub interval: Interval,
}

impl Row {
    /// Whether the file has the case, timed or not.
    pub fn is_in(&self, file: usize) -> bool {
        self.cells[file].is_some() || self.causes[file].is_some()
    }

    /// Whether the case is in only one of the first file and another, where it has a time.
    pub fn is_in_one(&self, other: usize) -> bool {
        let failed = self.causes[0].is_some() || self.causes[other].is_some();
        self.is_in(0) != self.is_in(other) && !failed
    }

    /// The share of the baseline's speed in a file.
    pub fn share(&self, file: usize) -> Option<f64> {
        self.cells[file].as_ref()?.of_baseline
    }

    /// How verdict `n` decides about the case.
    pub fn status(&self, n: usize) -> Option<Status> {
        let change = self.changes.get(n)?.as_ref()?;
        Some(change.status)
    }

    /// The figure of verdict `n`: a speedup, or the only file's share of the baseline's speed.
    pub fn point(&self, n: usize) -> Option<Point> {
        match self.cells.len() {
            1 => self.share(0).map(|value| Point {
                value,
                interval: Interval::at(value),
            }),
            _ => self.changes[n].map(|change| Point {
                value: change.speed_up,
                interval: change.interval,
            }),
        }
    }
}

/// The results files while rows are made of them.
struct Files<'a> {
    all: &'a [Results],
    threshold: f64,
    /// Why a file after the first is not from the same machine.
    other_machine: &'a [Option<String>],
    /// The cases of each file by name.
    by_name: Vec<BTreeMap<String, &'a Timed>>,
    /// The baselines of each file.
    baselines: Vec<Vec<&'a Timed>>,
    /// Why cases of two files are not compared.
    not_compared: BTreeSet<String>,
}

/// The rows of all files.
pub struct Rows {
    /// A row for each case: those of the first file in its order, then those that only others have.
    pub rows: Vec<Row>,
    /// Why cases of two files are not compared.
    pub not_compared: BTreeSet<String>,
}

/// Makes the rows. `threshold` is in percent, and `other_machine` says why a file after the first is not comparable.
pub fn rows(all: &[Results], threshold: f64, other_machine: &[Option<String>]) -> Rows {
    let mut files = Files {
        all,
        threshold,
        other_machine,
        by_name: Vec::new(),
        baselines: Vec::new(),
        not_compared: BTreeSet::new(),
    };
    for results in all {
        let named = results.cases.iter().map(|timed| (timed.work.name(), timed));
        files.by_name.push(named.collect());
        files.baselines.push(results.baselines().collect());
    }
    let mut seen = BTreeSet::new();
    let mut rows = Vec::new();
    for Timed { work, .. } in all.iter().flat_map(|results| &results.cases) {
        if !work.mode.is_baseline() && seen.insert(work.name()) {
            rows.push(files.row(work));
        }
    }
    Rows {
        rows,
        not_compared: files.not_compared,
    }
}

impl Files<'_> {
    /// The figures of a case in every file, next to the first one.
    fn row(&mut self, work: &Work) -> Row {
        let name = work.name();
        let mut row = Row {
            work: work.clone(),
            cells: Vec::new(),
            changes: Vec::new(),
            causes: Vec::new(),
            failed: Vec::new(),
            other_model: Vec::new(),
            group: work.group(),
        };
        // None for a case that only later files have.
        let first = self.by_name[0].get(&name).copied();
        for file in 0..self.all.len() {
            let timed = self.by_name[file].get(&name).copied();
            // A case without samples has a row all the same, with the cause.
            let sampled = timed.filter(|timed| timed.outcome.has_samples());
            let is_other = match (first, timed) {
                (Some(a), Some(b)) => outputs::is_other(&a.model, &b.model),
                _ => false,
            };
            row.cells
                .push(sampled.map(|timed| cell::cell(timed, &self.baselines[file])));
            row.causes
                .push(timed.and_then(|timed| timed.outcome.cause()));
            row.failed
                .push(timed.is_some_and(|timed| timed.outcome.is_failure()));
            row.other_model.push(is_other);
            if file > 0 {
                let change = match (first, sampled) {
                    (Some(a), Some(b)) if !is_other => self.change(file, a, b),
                    _ => None,
                };
                row.changes.push(change);
            }
        }
        row
    }

    /// How the times of a case differ between the first file and another, where it has samples.
    fn change(&mut self, other: usize, a: &Timed, b: &Timed) -> Option<Change> {
        // The case failed in the first file.
        if !a.outcome.has_samples() {
            return None;
        }
        if let Some(why) = incomparable(&self.all[0], a, &self.all[other], b) {
            self.not_compared.insert(why);
            return None;
        }
        let mut change = cell::change(a.outcome.samples(), b.outcome.samples(), self.threshold);
        // The speedup is shown all the same, but it decides nothing.
        if self.other_machine[other - 1].is_some() {
            change.status = Status::Unsure;
        }
        Some(change)
    }
}

/// Why the times of one case in two files say nothing about each other.
fn incomparable(first: &Results, a: &Timed, other: &Results, b: &Timed) -> Option<String> {
    let (name, a_bytes, b_bytes) = (a.work.name(), a.work.bytes, b.work.bytes);
    if a_bytes != b_bytes {
        let (first, other) = (&first.label, &other.label);
        return Some(format!(
            "{name}: {a_bytes} bytes in '{first}' and {b_bytes} bytes in '{other}', which is other work"
        ));
    }
    if a.work.mode == Mode::InPlace && directml(first) != directml(other) {
        return Some(format!("cases (in place): {WRONG_IN_PLACE}"));
    }
    None
}

/// The baselines that failed in a file, and the cases that only others have, counted by mode.
pub fn missing(file: usize, results: &Results, rows: &[Row]) -> Vec<String> {
    let label = &results.label;
    let mut missing = Vec::new();
    for Timed { work, outcome, .. } in &results.cases {
        if let (true, Some(cause)) = (work.mode.is_baseline(), outcome.cause()) {
            missing.push(format!("{} of '{label}': {cause}", work.name()));
        }
    }
    for mode in Mode::OF_CASES {
        let is_absent = |row: &&Row| row.work.mode == mode && !row.is_in(file);
        let count = rows.iter().filter(is_absent).count();
        if count == 0 {
            continue;
        }
        let why = match mode {
            Mode::InPlace if directml(results) => format!(": {WRONG_IN_PLACE}"),
            _ => String::new(),
        };
        let cases = counted(count, "case");
        missing.push(format!(
            "{cases} ({mode}) that '{label}' does not have{why}"
        ));
    }
    missing
}
