//! One run or several, side by side: the figures and the sentences that all reports show. No report counts anything.

mod cell;
mod machines;
mod notes;
mod outputs;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::numbers::{clipped, counted};
use super::results::{Machine, Results, Timed};
use super::work::{Mode, Work};
use crate::schema;

pub use cell::{Cell, Change, Status};
use notes::Warning;
use outputs::directml;
pub use outputs::Outputs;
pub use verdict::{Group, Verdict};

/// Characters of a run's name.
const NAME: usize = 40;

/// The names of runs in sentences and tables: the only part of their labels that differs, which are the tool, the
/// device and the file, else by the labels. Runs that still have one name get a letter as well.
fn names(runs: &[Results]) -> Vec<String> {
    let parts = |run: &'_ Results| {
        let without_file = run
            .label
            .strip_suffix(&run.file)
            .and_then(|rest| rest.strip_suffix(", "));
        let (rest, file) = without_file.map_or((&*run.label, ""), |rest| (rest, &*run.file));
        let (tool, device) = rest.split_once(" on ").unwrap_or((rest, ""));
        [tool, device, file].map(|part| clipped(part, NAME))
    };
    let parts: Vec<[String; 3]> = runs.iter().map(parts).collect();
    let differs = |n: &usize| parts.iter().any(|part| part[*n] != parts[0][*n]);
    let names: Vec<String> = match (0..3).filter(differs).collect::<Vec<_>>()[..] {
        [n] if parts.iter().all(|part| !part[n].is_empty()) => {
            parts.iter().map(|part| part[n].clone()).collect()
        }
        _ => runs.iter().map(|run| clipped(&run.label, NAME)).collect(),
    };
    let is_alone = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    let letters = names.iter().zip('A'..);
    letters
        .map(|(name, letter)| {
            if is_alone(name) {
                name.clone()
            } else {
                format!("{name} ({letter})")
            }
        })
        .collect()
}

/// Runs with the figures of every case that one of them has.
#[derive(Serialize)]
pub struct Comparison {
    /// One for each run after the first, or one of the only run.
    pub verdicts: Vec<Verdict>,
    /// Warnings that a report prints above its tables.
    pub warnings: Vec<Warning>,
    pub runs: Vec<RunSummary>,
    pub rows: Vec<Row>,
    /// Percent below which a difference is none.
    pub threshold: f64,
    /// Outputs of the first run and another, one for each other run.
    pub outputs: Vec<Outputs>,
    /// The cases that are not compared, with the reason.
    pub not_compared: BTreeSet<String>,
    /// One for each run after the first: why no case of it is compared.
    pub other_machine: Vec<Option<String>>,
    /// The mark by which a report is known.
    report: &'static str,
}

/// A run without its samples.
#[derive(Serialize)]
pub struct RunSummary {
    /// The label, or the part of it that tells the runs apart.
    pub name: String,
    pub label: String,
    pub machine: Machine,
    pub timing: String,
    pub notes: Vec<String>,
    pub suite: String,
    /// Cases and outputs that an interrupted run lacks.
    pub missing: usize,
}

#[derive(Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub work: Work,
    /// One for each run.
    pub cells: Vec<Option<Cell>>,
    /// One for each run after the first: its speed-up over that, and whether it is one.
    pub changes: Vec<Option<Change>>,
    /// One for each run: why the case has no figures there.
    pub causes: Vec<Option<String>>,
    #[serde(skip)]
    failed: Vec<bool>,
    /// One for each run: whether it is known to have another model of this name than the first run.
    #[serde(skip)]
    other_model: Vec<bool>,
    pub group: &'static str,
}

/// A figure of a case, and its interval.
pub type Point = (f64, (f64, f64));

impl Row {
    pub fn is_in(&self, run: usize) -> bool {
        self.cells[run].is_some() || self.causes[run].is_some()
    }

    /// Whether the case is in only one of the first run and another, where it has a time.
    pub fn is_in_one(&self, other: usize) -> bool {
        let failed = self.causes[0].is_some() || self.causes[other].is_some();
        self.is_in(0) != self.is_in(other) && !failed
    }

    /// The figure of verdict `n`: a speedup, or the only run's share of the baseline's speed.
    pub fn point(&self, n: usize) -> Option<Point> {
        match self.cells.len() {
            1 => self.cells[0]
                .as_ref()?
                .of_baseline
                .map(|share| (share, (share, share))),
            _ => self.changes[n].map(|change| (change.speed_up, change.interval)),
        }
    }
}

impl Comparison {
    /// Compares each run with the first one; `threshold` in percent.
    pub fn new(runs: &[Results], threshold: f64) -> Self {
        let others = runs.iter().skip(1);
        let mut not_compared = BTreeSet::new();
        let differs = |run| machines::differs(&runs[0], run, threshold);
        let other_machine: Vec<Option<String>> = others.clone().map(differs).collect();
        let rows = rows(runs, threshold, &other_machine, &mut not_compared);
        not_compared.extend(
            runs.iter()
                .enumerate()
                .flat_map(|(n, run)| missing(n, run, &rows)),
        );
        let summary = |(run, name): (&Results, String)| {
            let Results {
                label,
                machine,
                timing,
                notes,
                suite,
                ..
            } = run.clone();
            RunSummary {
                name,
                label,
                machine,
                timing,
                notes,
                suite,
                missing: run.missing(),
            }
        };
        let outputs: Vec<Outputs> = others.map(|run| Outputs::new(&runs[0], run)).collect();
        let runs: Vec<RunSummary> = runs.iter().zip(names(runs)).map(summary).collect();
        let pair = |n: usize| {
            let names = [&*runs[0].name, &runs[n].name];
            let mut verdict =
                Verdict::of_pair(&rows, n, names, threshold, other_machine[n - 1].as_deref());
            let (outputs, unknown) = (outputs[n - 1].different.len(), outputs[n - 1].unknown());
            if outputs > 0 {
                verdict.sentence += &format!("; {} not equal{unknown}", counted(outputs, "output"));
            }
            // A reader sees the doubt before the speedup.
            if let Some(doubt) = notes::doubt(&runs[0], &runs[n]) {
                let doubt = format!("Not comparable: {} and {} {doubt}", names[0], names[1]);
                verdict.sentence = format!("{doubt}. {}", verdict.sentence);
                verdict.title = doubt;
            }
            verdict
        };
        let verdicts = match runs.len() {
            1 => vec![Verdict::of_run(&rows, &runs[0].name)],
            count => (1..count).map(pair).collect(),
        };
        for (n, outputs) in outputs
            .iter()
            .enumerate()
            .map(|(n, outputs)| (n + 1, outputs))
        {
            let others = rows
                .iter()
                .filter(|row| row.other_model[n])
                .map(|row| row.work.name());
            let others: Vec<String> = others.chain(outputs.other_models.clone()).collect();
            let names = format!(
                "another model in '{}' than in '{}'",
                runs[n].name, runs[0].name
            );
            not_compared
                .extend((!others.is_empty()).then(|| format!("{names}: {}", others.join("; "))));
        }
        let warnings = notes::warnings(&runs, &rows, &other_machine);
        let report = schema::MARK;
        Self {
            verdicts,
            warnings,
            runs,
            rows,
            threshold,
            outputs,
            not_compared,
            other_machine,
            report,
        }
    }

    /// Whether two runs share a case's times or an output.
    pub fn is_compared(&self) -> bool {
        self.runs.len() > 1 && self.verdicts.iter().any(|verdict| verdict.all.is_some())
            || self.outputs.iter().any(|outputs| outputs.shared() > 0)
    }

    /// Lines about the outputs, and about the cases that are not compared.
    pub fn notes(&self) -> Vec<String> {
        let names = |n: usize| [&*self.runs[0].name, &self.runs[n + 1].name];
        let outputs = self
            .outputs
            .iter()
            .enumerate()
            .flat_map(|(n, outputs)| outputs.notes(names(n)));
        outputs
            .chain(
                self.not_compared
                    .iter()
                    .map(|why| format!("not compared: {why}")),
            )
            .collect()
    }

    /// Why a guard against regressions must fail, a phrase for each reason.
    pub fn regressions(&self, allow_different_outputs: bool, allow_missing: bool) -> Vec<String> {
        let count = |is_wanted: fn(&Row, usize) -> bool| {
            let of_row = |row: &Row| {
                (0..row.changes.len())
                    .filter(|&n| is_wanted(row, n))
                    .count()
            };
            self.rows.iter().map(of_row).sum::<usize>()
        };
        let slower =
            count(|row, n| row.changes[n].is_some_and(|change| change.status == Status::Slower));
        let newly_failed = count(|row, n| row.failed[n + 1] && !row.failed[0]);
        let missing = count(|row, n| {
            let of_other_work =
                row.cells[0].is_some() && row.cells[n + 1].is_some() && row.changes[n].is_none();
            of_other_work && !row.other_model[n + 1]
                || row.is_in(0) != row.is_in(n + 1) && !row.failed[n + 1]
        });
        let sum = |of: fn(&Outputs) -> usize| self.outputs.iter().map(of).sum::<usize>();
        let (differ, miss) = (
            "different (--allow-different-outputs)",
            "not in both runs (--allow-missing)",
        );
        let newly = "failed, which did not fail in the first run";
        let reasons = [
            (slower, "case", "SLOWER", false),
            (newly_failed, "case", newly, false),
            (sum(|outputs| outputs.newly_failed), "output", newly, false),
            (
                sum(|outputs| outputs.different.len()),
                "output",
                differ,
                allow_different_outputs,
            ),
            (missing, "case", miss, allow_missing),
            (
                sum(|outputs| outputs.missing),
                "output",
                miss,
                allow_missing,
            ),
        ];
        let found = reasons
            .into_iter()
            .filter(|(count, _, _, is_allowed)| *count > 0 && !is_allowed);
        found
            .map(|(count, what, why, _)| format!("{} {why}", counted(count, what)))
            .collect()
    }
}

/// A row for each case: those of the first run in its order, then what only others have.
fn rows(
    runs: &[Results],
    threshold: f64,
    other_machine: &[Option<String>],
    not_compared: &mut BTreeSet<String>,
) -> Vec<Row> {
    let by_key: Vec<BTreeMap<String, &Timed>> = runs
        .iter()
        .map(|run| {
            run.cases
                .iter()
                .map(|timed| (timed.work.name(), timed))
                .collect()
        })
        .collect();
    let baselines: Vec<Vec<&Timed>> = runs.iter().map(|run| run.baselines().collect()).collect();
    let mut seen = BTreeSet::new();
    let all = runs
        .iter()
        .flat_map(|run| &run.cases)
        .map(|timed| &timed.work);
    let works = all.filter(|work| !work.mode.is_baseline() && seen.insert(work.name()));
    let row = |work: &Work| {
        let timed: Vec<Option<&Timed>> = by_key
            .iter()
            .map(|timed| timed.get(&work.name()).copied())
            .collect();
        let sampled = |n: usize| timed[n].filter(|timed| timed.outcome.has_samples());
        let is_other = |b: &Timed| timed[0].is_some_and(|a| outputs::is_other(&a.model, &b.model));
        let other_model: Vec<bool> = timed
            .iter()
            .map(|timed| timed.is_some_and(is_other))
            .collect();
        let mut change = |n: usize| {
            let (a, b) = (sampled(0)?, sampled(n).filter(|_| !other_model[n])?);
            if let Some(why) = uncomparable((&runs[0], a), (&runs[n], b)) {
                not_compared.insert(why);
                return None;
            }
            let mut change = cell::change(a.outcome.samples(), b.outcome.samples(), threshold);
            if other_machine[n - 1].is_some() {
                change.status = Status::Unsure;
            }
            Some(change)
        };
        Row {
            work: work.clone(),
            changes: (1..runs.len()).map(&mut change).collect(),
            cells: (0..runs.len())
                .map(|n| Some(cell::cell(sampled(n)?, &baselines[n])))
                .collect(),
            causes: timed
                .iter()
                .map(|timed| timed.and_then(|timed| timed.outcome.cause()))
                .collect(),
            failed: timed
                .iter()
                .map(|timed| timed.is_some_and(|timed| timed.outcome.is_failure()))
                .collect(),
            other_model,
            group: work.group(),
        }
    };
    works.map(row).collect()
}

/// Why the times of one case in two runs say nothing about each other.
fn uncomparable((first, a): (&Results, &Timed), (other, b): (&Results, &Timed)) -> Option<String> {
    if a.work.bytes != b.work.bytes {
        let bytes =
            |timed: &Timed, run: &Results| format!("{} bytes in '{}'", timed.work.bytes, run.label);
        return Some(format!(
            "{}: {} and {}, which is other work",
            a.work.name(),
            bytes(a, first),
            bytes(b, other)
        ));
    }
    let in_place = a.work.mode == Mode::InPlace && directml(first) != directml(other);
    in_place.then(|| "cases (in place): DirectML accepts them and returns wrong data".to_owned())
}

/// The baselines that failed in a run, and what only others have, counted by mode.
fn missing(n: usize, run: &Results, rows: &[Row]) -> Vec<String> {
    let baselines = run
        .cases
        .iter()
        .filter(|timed| timed.work.mode.is_baseline());
    let failed = |timed: &Timed| {
        Some(format!(
            "{} of '{}': {}",
            timed.work.name(),
            run.label,
            timed.outcome.cause()?
        ))
    };
    let absent = |mode: Mode| {
        let count = rows
            .iter()
            .filter(|row| row.work.mode == mode && !row.is_in(n))
            .count();
        let is_known = mode == Mode::InPlace && directml(run);
        let why = if is_known {
            ": DirectML accepts them and returns wrong data"
        } else {
            ""
        };
        let cases = counted(count, "case");
        (count > 0).then(|| format!("{cases} ({mode}) that '{}' does not have{why}", run.label))
    };
    baselines
        .filter_map(failed)
        .chain(Mode::OF_CASES.into_iter().filter_map(absent))
        .collect()
}
