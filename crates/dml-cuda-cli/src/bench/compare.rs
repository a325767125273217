//! One run or several, side by side: the figures that all reports show.

mod cell;
mod labels;
mod outputs;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::run::{Machine, Run, Timed};
use super::statistics::geometric_mean;
use super::work::{Key, Mode};

use cell::{cell, change};
pub use cell::{Cell, Change, Status};
pub use labels::{letter, tell_apart};
use outputs::{directml, Outputs};

/// From here on work is bound by memory. Below, launches and the L2 have their part.
const LARGE_BYTES: u64 = 128 << 20;

/// Runs with the figures of every case that one of them has.
#[derive(Serialize)]
pub struct Comparison {
    pub runs: Vec<RunSummary>,
    pub rows: Vec<Row>,
    pub groups: Vec<Group>,
    /// Percent below which a difference is none.
    pub threshold: f64,
    /// Outputs of the first run and another, one for each other run.
    pub outputs: Vec<Outputs>,
    /// What is not compared, and why.
    pub not_compared: Vec<String>,
    /// One for each run after the first: why no case of it is compared.
    pub other_machine: Vec<Option<String>>,
}

/// A run without its samples.
#[derive(Serialize)]
pub struct RunSummary {
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
    pub case: String,
    #[serde(rename = "type")]
    pub data_type: String,
    pub mode: Mode,
    pub bytes: u64,
    /// One for each run.
    pub cells: Vec<Option<Cell>>,
    /// One for each run after the first: its speed-up over that, and whether it is one.
    pub changes: Vec<Option<Change>>,
    /// One for each run: why the case has no figures there.
    pub causes: Vec<Option<String>>,
    #[serde(skip)]
    failed: Vec<bool>,
}

impl Row {
    fn is_in(&self, run: usize) -> bool {
        self.cells[run].is_some() || self.causes[run].is_some()
    }
}

#[derive(Serialize)]
pub struct Group {
    pub name: String,
    /// One for each run.
    pub of_baseline: Vec<Option<Mean>>,
    /// One for each run after the first.
    pub speed_ups: Vec<Option<Mean>>,
}

/// A geometric mean over cases, with the means of the ends of their intervals.
#[derive(Clone, Copy, Serialize)]
pub struct Mean {
    pub cases: usize,
    pub mean: f64,
    pub interval: (f64, f64),
}

impl Mean {
    fn of(values: impl Iterator<Item = (f64, (f64, f64))> + Clone) -> Option<Self> {
        let end = |end: fn((f64, (f64, f64))) -> f64| geometric_mean(values.clone().map(end));
        let interval = (end(|(_, (low, _))| low)?, end(|(_, (_, high))| high)?);
        Some(Self { cases: values.clone().count(), mean: end(|(value, _)| value)?, interval })
    }
}

impl Comparison {
    /// Compares each run with the first one; `threshold` in percent.
    pub fn new(runs: &[Run], threshold: f64) -> Self {
        let by_key: Vec<BTreeMap<Key, &Timed>> =
            runs.iter().map(|run| run.cases.iter().map(|timed| (timed.work.key(), timed)).collect()).collect();
        let other_machine: Vec<Option<String>> =
            runs.iter().skip(1).map(|run| other_machine(&runs[0], run, threshold)).collect();
        let mut not_compared = BTreeSet::new();
        let mut rows = Vec::new();
        for key in in_order(runs).into_iter().filter(|(mode, ..)| !mode.is_baseline()) {
            let timed: Vec<Option<&Timed>> = by_key.iter().map(|timed| timed.get(&key).copied()).collect();
            let Some(first) = timed.iter().flatten().next().map(|timed| &timed.work) else { continue };
            let has_samples = |timed: &&Timed| !timed.outcome.samples().is_empty();
            let figures =
                timed.iter().zip(runs).map(|(timed, run)| timed.filter(has_samples).map(|timed| cell(timed, run)));
            let cells: Vec<Option<Cell>> = figures.collect();
            let causes = timed.iter().map(|timed| timed.and_then(|timed| timed.outcome.cause())).collect();
            let failed = timed.iter().map(|timed| timed.is_some_and(|timed| timed.outcome.is_failure())).collect();
            let mut changes = Vec::new();
            for (n, other) in timed.iter().enumerate().skip(1) {
                let (Some(a), Some(b)) = (timed[0].filter(has_samples), other.filter(has_samples)) else {
                    changes.push(None);
                    continue;
                };
                changes.push(match uncomparable((&runs[0], a), (&runs[n], b)) {
                    Some(why) => {
                        not_compared.insert(why);
                        None
                    }
                    None => {
                        let mut change = change(a.outcome.samples(), b.outcome.samples(), threshold);
                        if other_machine[n - 1].is_some() {
                            change.status = Status::Unsure;
                        }
                        Some(change)
                    }
                });
            }
            let (mode, case, data_type) = key;
            rows.push(Row { case, data_type, mode, bytes: first.bytes, cells, changes, causes, failed });
        }
        for run in runs {
            let failed = run.cases.iter().filter(|timed| timed.work.mode.is_baseline());
            let causes = failed.filter_map(|timed| Some((timed, timed.outcome.cause()?)));
            not_compared
                .extend(causes.map(|(timed, cause)| format!("{} of '{}': {cause}", timed.work.name(), run.label)));
        }
        not_compared.extend(missing(runs, &rows));
        for run in runs.iter().skip(1) {
            if baselines(&runs[0], run, threshold).is_some_and(|shared| shared.is_empty()) {
                let (a, b) = (&runs[0].label, &run.label);
                not_compared.insert(format!(
                    "'{a}' and '{b}' share no baseline: nothing tells whether the machine was the same"
                ));
            }
        }
        for run in runs.iter().filter(|run| !run.suite.is_empty() && !runs[0].suite.is_empty()) {
            if run.suite != runs[0].suite {
                let (a, b) = (&runs[0], run);
                not_compared.insert(format!(
                    "'{}' has the cases of '{}' and '{}' those of '{}': what both have is compared",
                    a.label, a.suite, b.label, b.suite
                ));
            }
        }
        let groups = groups(&rows, runs.len());
        let outputs = runs.iter().skip(1).map(|run| Outputs::new(&runs[0], run)).collect();
        let runs = runs.iter().map(summary).collect();
        let not_compared = not_compared.into_iter().collect();
        Self { runs, rows, groups, threshold, outputs, not_compared, other_machine }
    }

    /// Why a guard against regressions must fail, a phrase for each reason.
    pub fn regressions(&self, allow_different_outputs: bool, allow_missing: bool) -> Vec<String> {
        let changes =
            || self.rows.iter().flat_map(|row| row.changes.iter().enumerate().map(move |(n, change)| (row, n, change)));
        let slower =
            changes().filter(|(.., change)| change.is_some_and(|change| change.status == Status::Slower)).count();
        let newly_failed = changes().filter(|(row, n, _)| row.failed[n + 1] && !row.failed[0]).count();
        let missing = changes().filter(|(row, n, change)| {
            let of_other_work = row.cells[0].is_some() && row.cells[n + 1].is_some() && change.is_none();
            of_other_work || row.is_in(0) != row.is_in(n + 1) && !row.failed[n + 1]
        });
        let sum = |of: fn(&Outputs) -> usize| self.outputs.iter().map(of).sum::<usize>();
        let mut said = Vec::new();
        let mut say = |allowed: bool, count: usize, what: [&str; 2], option: &str| {
            if !allowed && count > 0 {
                said.push(format!("{count} {}{option}", what[usize::from(count > 1)]));
            }
        };
        let newly = " that did not fail in the first run";
        say(false, slower, ["case is SLOWER", "cases are SLOWER"], "");
        say(false, newly_failed, ["case failed", "cases failed"], newly);
        say(false, sum(|outputs| outputs.newly_failed), ["output failed", "outputs failed"], newly);
        let allow = " (--allow-different-outputs lets it pass)";
        let different = sum(|outputs| outputs.different.len());
        say(allow_different_outputs, different, ["output differs", "outputs differ"], allow);
        let allow = " (--allow-missing lets it pass)";
        say(allow_missing, missing.count(), ["case is not in both runs", "cases are not in both runs"], allow);
        let missing = sum(|outputs| outputs.missing);
        say(allow_missing, missing, ["output is not in both runs", "outputs are not in both runs"], allow);
        said
    }
}

/// Why the times of one case in two runs say nothing about each other.
fn uncomparable((first, a): (&Run, &Timed), (other, b): (&Run, &Timed)) -> Option<String> {
    if a.work.bytes != b.work.bytes {
        let bytes =
            [(a, first), (b, other)].map(|(timed, run)| format!("{} bytes in '{}'", timed.work.bytes, run.label));
        return Some(format!("{}: {} and {}, which is other work", a.work.name(), bytes[0], bytes[1]));
    }
    let in_place = a.work.mode == Mode::InPlace && directml(first) != directml(other);
    in_place.then(|| "cases (in place): DirectML accepts them and returns wrong data".to_owned())
}

/// The baselines that two runs share, and how they changed. `None` if the runs are not of one program on one device.
fn baselines<'a>(first: &'a Run, other: &Run, threshold: f64) -> Option<Vec<(&'a Timed, Change)>> {
    let program = |run: &Run| run.machine.tool.split([' ', ',']).next().unwrap_or_default().to_owned();
    let (a, b) = (&first.machine, &other.machine);
    if a.device.is_empty() || a.device != b.device || program(first) != program(other) || first.timing != other.timing {
        return None;
    }
    let is_baseline = |timed: &&Timed| timed.work.mode.is_baseline() && !timed.outcome.samples().is_empty();
    let pairs = first.cases.iter().filter(is_baseline).filter_map(|a| {
        let is_same = |b: &&Timed| b.work.key() == a.work.key() && b.work.bytes == a.work.bytes;
        let b = other.cases.iter().filter(is_baseline).find(is_same)?;
        Some((a, change(a.outcome.samples(), b.outcome.samples(), threshold)))
    });
    Some(pairs.collect())
}

/// Why the machine was not the same, if baselines of two runs differ.
fn other_machine(first: &Run, other: &Run, threshold: f64) -> Option<String> {
    let mut differing = baselines(first, other, threshold)?;
    differing.retain(|(_, change)| matches!(change.status, Status::Faster | Status::Slower));
    let distance = |(_, change): &(&Timed, Change)| change.speed_up.ln().abs();
    let furthest = differing.iter().max_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    Some(format!(
        "the machine was not the same: {} baselines of '{}' and '{}' differ, {} by a factor of {:.2}; every case is UNSURE",
        differing.len(),
        first.label,
        other.label,
        furthest.0.work.name(),
        furthest.1.speed_up
    ))
}

/// The cases of all runs: those of the first in its order, then what only others have.
fn in_order(runs: &[Run]) -> Vec<Key> {
    let mut seen = BTreeSet::new();
    let keys = runs.iter().flat_map(|run| &run.cases).map(|timed| timed.work.key());
    keys.filter(|key| seen.insert(key.clone())).collect()
}

fn summary(run: &Run) -> RunSummary {
    let missing = run.missing();
    let Run { label, machine, timing, notes, suite, .. } = run.clone();
    RunSummary { label, machine, timing, notes, suite, missing }
}

fn groups(rows: &[Row], runs: usize) -> Vec<Group> {
    let mut groups = Vec::new();
    for mode in Mode::OF_CASES {
        for (size, large) in [("of 128 MiB and more", true), ("below 128 MiB", false)] {
            let rows: Vec<&Row> =
                rows.iter().filter(|row| row.mode == mode && (row.bytes >= LARGE_BYTES) == large).collect();
            let speed_up = |n: usize| {
                Mean::of(
                    rows.iter().filter_map(move |row| row.changes[n]).map(|change| (change.speed_up, change.interval)),
                )
            };
            let of_baseline = |n: usize| {
                let fractions = rows.iter().filter_map(move |row| row.cells[n].as_ref()?.of_baseline);
                Mean::of(fractions.map(|fraction| (fraction, (fraction, fraction))))
            };
            let group = Group {
                name: format!("{}, {size}", mode.name()),
                of_baseline: (0..runs).map(of_baseline).collect(),
                speed_ups: (0..runs - 1).map(speed_up).collect(),
            };
            if group.of_baseline.iter().chain(&group.speed_ups).any(Option::is_some) {
                groups.push(group);
            }
        }
    }
    groups
}

/// What one run has and another has not, counted by mode.
fn missing(runs: &[Run], rows: &[Row]) -> Vec<String> {
    let mut said = Vec::new();
    for mode in Mode::OF_CASES {
        for (n, run) in runs.iter().enumerate() {
            let count = rows.iter().filter(|row| row.mode == mode && !row.is_in(n)).count();
            if count > 0 {
                let why = match mode {
                    Mode::InPlace if directml(run) => ": DirectML accepts them and returns wrong data",
                    _ => "",
                };
                let cases = if count == 1 { "case" } else { "cases" };
                said.push(format!("{count} {cases} ({}) that '{}' does not have{why}", mode.name(), run.label));
            }
        }
    }
    said
}
