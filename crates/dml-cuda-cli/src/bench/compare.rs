//! One run or several, side by side: the figures that all reports show.

mod cell;
mod labels;
mod outputs;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::bench::record::{Failed, Run, Timing};
use crate::bench::statistics::geometric_mean;
use crate::bench::suite::manifest::{Key, Mode, Work};

use cell::{cell, change};
pub use cell::{Cell, Change, Status};
pub use labels::{letter, tell_apart};
use outputs::{directml, Outputs};

/// From here on work is bound by memory; below, launches and the L2 have their part.
const LARGE_BYTES: u64 = 128 << 20;

/// Runs with the figures of every case that one of them has.
#[derive(Serialize)]
pub struct Comparison {
    pub runs: Vec<RunSummary>,
    pub rows: Vec<Row>,
    /// Speed-ups over the first run, for each group and each other run.
    pub groups: Vec<Group>,
    /// Percent below which a difference is none.
    pub threshold: f64,
    /// Outputs of small models that both the first run and another wrote, one for each other run.
    pub outputs: Vec<Outputs>,
    /// What is not compared, and why.
    pub not_compared: Vec<String>,
    /// One for each run after the first: why nothing can be said of it.
    pub other_machine: Vec<Option<String>>,
}

/// A run without its samples.
#[derive(Serialize)]
pub struct RunSummary {
    pub label: String,
    pub machine: crate::bench::record::Machine,
    pub timing: String,
    pub notes: Vec<String>,
    pub suite: String,
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
    /// One for each run: why it has no cell, if the case failed there.
    #[serde(rename = "failed", skip_serializing_if = "none_failed")]
    pub failures: Vec<Option<String>>,
}

fn none_failed(failures: &[Option<String>]) -> bool {
    failures.iter().all(Option::is_none)
}

impl Row {
    /// Whether a run has the case, timed or failed.
    fn is_in(&self, run: usize) -> bool {
        self.cells[run].is_some() || self.failures[run].is_some()
    }
}

#[derive(Serialize)]
pub struct Group {
    pub name: String,
    /// One for each run after the first: cases compared, and the geometric mean of their speed-ups.
    pub speed_ups: Vec<Option<(usize, f64)>>,
}

impl Comparison {
    /// Of one run or more, the first of which the others are compared with; `threshold` in percent.
    pub fn new(runs: &[Run], threshold: f64) -> Self {
        let by_key: Vec<BTreeMap<Key, &Timing>> =
            runs.iter().map(|run| run.cases.iter().map(|timing| (timing.work.key(), timing)).collect()).collect();
        let failed_by_key: Vec<BTreeMap<Key, &Failed>> =
            runs.iter().map(|run| run.failed.iter().map(|failed| (failed.work.key(), failed)).collect()).collect();
        let other_machine: Vec<Option<String>> =
            runs.iter().skip(1).map(|run| other_machine(&runs[0], run, threshold)).collect();
        let mut not_compared = BTreeSet::new();
        let mut rows = Vec::new();
        for key in in_order(runs).into_iter().filter(|(mode, ..)| !mode.is_baseline()) {
            let timings: Vec<Option<&Timing>> = by_key.iter().map(|timings| timings.get(&key).copied()).collect();
            let failed: Vec<Option<&Failed>> = failed_by_key.iter().map(|failed| failed.get(&key).copied()).collect();
            let failures = failed.iter().map(|failed| Some(failed.as_ref()?.error.clone())).collect();
            let works = timings.iter().flatten().map(|timing| &timing.work);
            let Some(first) = works.chain(failed.iter().flatten().map(|failed| &failed.work)).next() else { continue };
            let cells: Vec<Option<Cell>> =
                timings.iter().zip(runs).map(|(timing, run)| timing.map(|timing| cell(timing, run))).collect();
            let mut changes = Vec::new();
            for (n, timing) in timings.iter().enumerate().skip(1) {
                let change = match (timings[0], timing) {
                    (Some(a), Some(b)) if a.work.bytes != b.work.bytes => {
                        not_compared.insert(format!(
                            "{} {} {}: {} bytes in '{}' and {} in '{}', which is other work",
                            first.case,
                            first.data_type,
                            first.mode.name(),
                            a.work.bytes,
                            runs[0].label,
                            b.work.bytes,
                            runs[n].label
                        ));
                        None
                    }
                    (Some(_), Some(_))
                        if first.mode == Mode::InPlace
                            && directml(&runs[0]).is_some() != directml(&runs[n]).is_some() =>
                    {
                        not_compared
                            .insert("cases (in place): DirectML accepts them and returns wrong data".to_owned());
                        None
                    }
                    (Some(a), Some(b)) => {
                        let mut change = change(a.samples.values(), b.samples.values(), threshold);
                        if other_machine[n - 1].is_some() {
                            change.status = Status::Unsure;
                        }
                        Some(change)
                    }
                    _ => None,
                };
                changes.push(change);
            }
            let (mode, case, data_type) = key;
            rows.push(Row { case, data_type, mode, bytes: first.bytes, cells, changes, failures });
        }
        for run in runs {
            let failed = run.failed.iter().filter(|failed| failed.work.mode.is_baseline());
            not_compared
                .extend(failed.map(|failed| format!("{} of '{}': {}", failed.work.name(), run.label, failed.error)));
        }
        not_compared.extend(missing(runs, &rows));
        for run in
            runs.iter().filter(|run| !run.suite.is_empty() && run.suite != runs[0].suite && !runs[0].suite.is_empty())
        {
            let (a, b) = ((&runs[0].label, &runs[0].suite), (&run.label, &run.suite));
            not_compared.insert(format!(
                "'{}' is of the suite '{}' and '{}' of '{}': what both have is compared",
                a.0, a.1, b.0, b.1
            ));
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
        let failed = |row: &Row, run: usize| row.failures[run].is_some();
        let newly_failed = changes().filter(|(row, n, _)| failed(row, n + 1) && !failed(row, 0)).count();
        let is_missing = |row: &Row, n: usize| match (row.is_in(0), row.is_in(n + 1)) {
            // Both have a time, of other work.
            (true, true) => !failed(row, 0) && !failed(row, n + 1),
            (first, other) => first || other && !failed(row, n + 1),
        };
        let missing = changes().filter(|(row, n, change)| change.is_none() && is_missing(row, *n)).count();
        let sum = |of: fn(&Outputs) -> usize| self.outputs.iter().map(of).sum::<usize>();
        let different = sum(|outputs| outputs.different.len());
        let missing_outputs = sum(|outputs| outputs.missing);
        let failed_outputs = sum(|outputs| outputs.newly_failed);
        let mut said = Vec::new();
        let mut say = |allowed: bool, count: usize, what: [&str; 2], option: &str| {
            if !allowed && count > 0 {
                said.push(format!("{count} {}{option}", what[usize::from(count > 1)]));
            }
        };
        say(false, slower, ["case is SLOWER", "cases are SLOWER"], "");
        say(false, newly_failed, ["case failed", "cases failed"], " that did not fail in the first run");
        say(false, failed_outputs, ["output failed", "outputs failed"], " that did not fail in the first run");
        say(
            allow_different_outputs,
            different,
            ["output differs", "outputs differ"],
            " (--allow-different-outputs lets it pass)",
        );
        let allow = " (--allow-missing lets it pass)";
        say(allow_missing, missing, ["case is not in both runs", "cases are not in both runs"], allow);
        say(allow_missing, missing_outputs, ["output is not in both runs", "outputs are not in both runs"], allow);
        said
    }
}

/// Why the machine was not the same, if two runs of one program on one device have baselines that differ.
fn other_machine(first: &Run, other: &Run, threshold: f64) -> Option<String> {
    let program = |run: &Run| run.machine.tool.split([' ', ',']).next().unwrap_or_default().to_owned();
    let (a, b) = (&first.machine, &other.machine);
    if a.device.is_empty() || a.device != b.device || program(first) != program(other) || first.timing != other.timing {
        return None;
    }
    let pairs = first.cases.iter().filter(|timing| timing.work.mode.is_baseline()).filter_map(|a| {
        let b = other.cases.iter().find(|b| b.work.key() == a.work.key() && b.work.bytes == a.work.bytes)?;
        Some((a, change(a.samples.values(), b.samples.values(), threshold)))
    });
    let differing: Vec<_> =
        pairs.filter(|(_, change)| matches!(change.status, Status::Faster | Status::Slower)).collect();
    let furthest = differing.iter().max_by(|(_, a), (_, b)| a.speed_up.ln().abs().total_cmp(&b.speed_up.ln().abs()))?;
    Some(format!(
        "the machine was not the same: {} baselines of '{}' and '{}' differ, {} by a factor of {:.2}; no case is compared",
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
    runs.iter()
        .flat_map(|run| {
            let timed = run.cases.iter().map(|timing| &timing.work);
            timed.chain(run.failed.iter().map(|failed| &failed.work))
        })
        .map(Work::key)
        .filter(|key| seen.insert(key.clone()))
        .collect()
}

fn summary(run: &Run) -> RunSummary {
    let Run { label, machine, timing, notes, suite, .. } = run.clone();
    RunSummary { label, machine, timing, notes, suite }
}

fn groups(rows: &[Row], runs: usize) -> Vec<Group> {
    let mut groups = Vec::new();
    for mode in [Mode::Fill, Mode::Copy, Mode::InPlace] {
        for (size, large) in [("of 128 MiB and more", true), ("below 128 MiB", false)] {
            let rows = || rows.iter().filter(move |row| row.mode == mode && (row.bytes >= LARGE_BYTES) == large);
            let speed_ups: Vec<Option<(usize, f64)>> = (1..runs)
                .map(|n| {
                    let of = || rows().filter_map(move |row| Some(row.changes[n - 1]?.speed_up));
                    Some((of().count(), geometric_mean(of())?))
                })
                .collect();
            if speed_ups.iter().any(Option::is_some) {
                groups.push(Group { name: format!("{}, {size}", mode.name()), speed_ups });
            }
        }
    }
    groups
}

/// What one run has and another has not, counted by mode.
fn missing(runs: &[Run], rows: &[Row]) -> Vec<String> {
    let mut said = Vec::new();
    for mode in [Mode::Fill, Mode::Copy, Mode::InPlace] {
        for (n, run) in runs.iter().enumerate() {
            let count = rows.iter().filter(|row| row.mode == mode && !row.is_in(n)).count();
            if count > 0 && runs.len() > 1 {
                let why = match mode {
                    Mode::InPlace if directml(run).is_some() => ": DirectML accepts them and returns wrong data",
                    _ => "",
                };
                said.push(format!("{count} cases ({}) that '{}' does not have{why}", mode.name(), run.label));
            }
        }
    }
    said
}
