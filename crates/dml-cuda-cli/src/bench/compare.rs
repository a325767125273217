//! One results file, or several next to the first one: the figures and the sentences that all reports show.
//!
//! ```text
//! results files ─┬─ names ──────┐
//!                ├─ machines    │
//!                ├─ rows, cell  ├─> Comparison ─> report/: text, CSV, JSON, page, chart
//!                ├─ outputs     │
//!                └─ verdict ────┘
//! ```
//!
//! Everything that is counted or decided is counted and decided here. A report only chooses what it shows, so that two
//! reports never contradict each other. The JSON report is this structure as it is: its names are a promise.

mod cell;
mod machines;
mod names;
mod notes;
mod outputs;
mod regressions;
mod rows;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeSet;

use serde::Serialize;

use super::numbers::counted;
use super::results::{Machine, Results};
use crate::schema;

pub use cell::{Cell, Status};
pub use notes::Severity;
use notes::Warning;
pub use outputs::Outputs;
pub use regressions::{regressions, Allowed};
use rows::Rows;
pub use rows::{Point, Row};
use verdict::Pair;
pub use verdict::{Figures, Group, Verdict};

/// Results files with the figures of every case that one of them has.
#[derive(Serialize)]
pub struct Comparison {
    /// One for each file after the first, or one of the only file.
    pub verdicts: Vec<Verdict>,
    /// Warnings that a report prints above its tables.
    pub warnings: Vec<Warning>,
    /// The files in the order of the command line. The first one is what the others are compared with.
    #[serde(rename = "runs")]
    pub files: Vec<Summary>,
    /// A row for each case that is in a file.
    pub rows: Vec<Row>,
    /// Percent below which a difference is none.
    pub threshold: f64,
    /// Outputs of the first file and another, one for each other file.
    pub outputs: Vec<Outputs>,
    /// The cases that are not compared, with the reason.
    pub not_compared: BTreeSet<String>,
    /// One for each file after the first: why the machine was another, so that every case is UNSURE.
    pub other_machine: Vec<Option<String>>,
    /// The mark by which a report is known.
    report: &'static str,
}

/// A results file without its samples.
#[derive(Serialize)]
pub struct Summary {
    /// The label, or the part of it that tells the files apart.
    pub name: String,
    pub label: String,
    pub machine: Machine,
    /// How the samples were taken.
    pub timing: String,
    /// What the runner noted, such as refused cases.
    pub notes: Vec<String>,
    /// Tier and release of the cases, such as `full 0.3.0`.
    pub suite: String,
    /// Cases and outputs that the file of an interrupted bench lacks.
    pub missing: usize,
}

impl Summary {
    /// Keeps what a report shows of a file besides its cases.
    fn new(name: String, results: &Results) -> Self {
        let results = results.clone();
        Self {
            name,
            missing: results.missing(),
            label: results.label,
            machine: results.machine,
            timing: results.timing,
            notes: results.notes,
            suite: results.suite,
        }
    }
}

impl Comparison {
    /// Compares each file with the first one; `threshold` in percent.
    pub fn new(all: &[Results], threshold: f64) -> Self {
        let (first, others) = (&all[0], &all[1..]);
        let other_machine: Vec<Option<String>> = others
            .iter()
            .map(|other| machines::differs(first, other, threshold))
            .collect();
        let Rows {
            rows,
            mut not_compared,
        } = rows::rows(all, threshold, &other_machine);
        for (n, results) in all.iter().enumerate() {
            not_compared.extend(rows::missing(n, results, &rows));
        }
        let outputs = others.iter().map(|other| Outputs::new(first, other));
        let files = names::names(all).into_iter().zip(all);
        let files = files.map(|(name, results)| Summary::new(name, results));
        let mut comparison = Self {
            verdicts: Vec::new(),
            warnings: Vec::new(),
            files: files.collect(),
            rows,
            threshold,
            outputs: outputs.collect(),
            not_compared,
            other_machine,
            report: schema::MARK,
        };
        comparison.complete();
        comparison
    }

    /// Adds what follows from the rows and the outputs: verdicts, warnings, and models that differ.
    fn complete(&mut self) {
        if let [only] = &self.files[..] {
            self.verdicts = vec![Verdict::of_one(&self.rows, &only.name)];
        }
        for other in 1..self.files.len() {
            let verdict = self.verdict(other);
            self.verdicts.push(verdict);
            let other_models = self.other_models(other);
            self.not_compared.extend(other_models);
        }
        self.warnings = notes::warnings(&self.files, &self.rows, &self.other_machine);
    }

    /// The verdict on a file next to the first one, with a clause about outputs that are not equal.
    fn verdict(&self, other: usize) -> Verdict {
        let (a, b) = (&self.files[0], &self.files[other]);
        let pair = Pair {
            other,
            first_name: &a.name,
            other_name: &b.name,
            threshold: self.threshold,
            other_machine: self.other_machine[other - 1].as_deref(),
        };
        let mut verdict = Verdict::of_pair(&self.rows, &pair);
        let outputs = &self.outputs[other - 1];
        let different = outputs.different.len();
        if different > 0 {
            let unknown = outputs.unknown();
            verdict.sentence += &format!("; {} not equal{unknown}", counted(different, "output"));
        }
        // A reader sees the doubt before the speedup.
        if let Some(doubt) = notes::doubt(a, b) {
            let doubt = format!("Not comparable: {} and {} {doubt}", a.name, b.name);
            verdict.sentence = format!("{doubt}. {}", verdict.sentence);
            verdict.title = doubt;
        }
        verdict
    }

    /// A line about the cases and outputs whose models differ between a file and the first one.
    fn other_models(&self, other: usize) -> Option<String> {
        let cases = self.rows.iter().filter(|row| row.other_model[other]);
        let mut models: Vec<String> = cases.map(|row| row.work.name()).collect();
        models.extend_from_slice(&self.outputs[other - 1].other_models);
        if models.is_empty() {
            return None;
        }
        let (first, other) = (&self.files[0].name, &self.files[other].name);
        let models = models.join("; ");
        Some(format!(
            "another model in '{other}' than in '{first}': {models}"
        ))
    }

    /// Whether two files share a case's times or an output.
    pub fn is_compared(&self) -> bool {
        let share_times =
            self.files.len() > 1 && self.verdicts.iter().any(|verdict| verdict.all.is_some());
        let share_outputs = self.outputs.iter().any(|outputs| outputs.shared() > 0);
        share_times || share_outputs
    }

    /// Lines about the outputs, and about the cases that are not compared.
    pub fn notes(&self) -> Vec<String> {
        let first = &self.files[0].name;
        let mut notes = Vec::new();
        for (outputs, other) in self.outputs.iter().zip(&self.files[1..]) {
            notes.extend(outputs.notes(first, &other.name));
        }
        let not_compared = self.not_compared.iter();
        notes.extend(not_compared.map(|why| format!("not compared: {why}")));
        notes
    }
}
