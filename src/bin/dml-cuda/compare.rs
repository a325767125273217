//! One run or several, side by side: the figures that all reports show.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::record::{Run, Timing};
use crate::statistics::{geometric_mean, Quartiles};
use crate::suite::manifest::{Key, Mode};

/// Above this, (q75 − q25) / median says that a median is not to be trusted. Taken for a noise that is not known.
const UNSURE_NOISE: f64 = 0.10;

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
    /// Small models whose output each of the other runs wrote as well as the first: how many are equal, and the names of the others.
    pub outputs: Vec<Outputs>,
    /// What is not compared, and why.
    pub not_compared: Vec<String>,
}

/// A run without its samples.
#[derive(Serialize)]
pub struct RunSummary {
    pub label: String,
    pub machine: crate::record::Machine,
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
}

/// The figures of a case in a run.
#[derive(Clone, Serialize)]
pub struct Cell {
    pub dispatches: u32,
    pub samples: usize,
    /// Microseconds of a dispatch.
    pub median: f64,
    /// (q75 − q25) / median; none of a single value.
    pub noise: Option<f64>,
    /// 10⁹ bytes a second.
    pub gigabytes_per_second: f64,
    /// The roof's time over the case's.
    pub of_roof: Option<f64>,
}

#[derive(Clone, Copy, Serialize)]
pub struct Change {
    /// The first run's time over this run's.
    pub speed_up: f64,
    pub status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    Same,
    Faster,
    Slower,
    Unsure,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "SAME",
            Self::Faster => "FASTER",
            Self::Slower => "SLOWER",
            Self::Unsure => "UNSURE",
        }
    }
}

#[derive(Serialize)]
pub struct Group {
    pub name: String,
    /// One for each run after the first: cases compared, and the geometric mean of their speed-ups.
    pub speed_ups: Vec<Option<(usize, f64)>>,
}

#[derive(Serialize)]
pub struct Outputs {
    pub equal: usize,
    pub different: Vec<String>,
}

impl Comparison {
    /// Of one run or more, the first of which the others are held against; `threshold` in percent.
    pub fn new(runs: &[Run], threshold: f64) -> Self {
        let by_key: Vec<BTreeMap<Key, &Timing>> =
            runs.iter().map(|run| run.cases.iter().map(|timing| (timing.work.key(), timing)).collect()).collect();
        let mut not_compared = BTreeSet::new();
        let mut rows = Vec::new();
        for key in in_order(runs).into_iter().filter(|(mode, ..)| !mode.is_roof()) {
            let timings: Vec<Option<&Timing>> = by_key.iter().map(|timings| timings.get(&key).copied()).collect();
            let Some(first) = timings.iter().flatten().next() else { continue };
            let cells: Vec<Option<Cell>> =
                timings.iter().zip(runs).map(|(timing, run)| timing.map(|timing| cell(timing, run))).collect();
            let mut changes = Vec::new();
            for (n, timing) in timings.iter().enumerate().skip(1) {
                let change = match (timings[0], timing, &cells[0], &cells[n]) {
                    (Some(a), Some(b), ..) if a.work.bytes != b.work.bytes => {
                        not_compared.insert(format!(
                            "{} {} {}: {} bytes in '{}' and {} in '{}', which is other work",
                            first.work.case,
                            first.work.data_type,
                            first.work.mode.name(),
                            a.work.bytes,
                            runs[0].label,
                            b.work.bytes,
                            runs[n].label
                        ));
                        None
                    }
                    (_, _, Some(a), Some(b)) => Some(change(a, b, threshold)),
                    _ => None,
                };
                changes.push(change);
            }
            let (mode, case, data_type) = key;
            rows.push(Row { case, data_type, mode, bytes: first.work.bytes, cells, changes });
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
        let outputs = runs.iter().skip(1).map(|run| outputs(&runs[0], run)).collect();
        let runs = runs.iter().map(summary).collect();
        Self { runs, rows, groups, threshold, outputs, not_compared: not_compared.into_iter().collect() }
    }

    pub fn is_slower_anywhere(&self) -> bool {
        self.rows.iter().flat_map(|row| row.changes.iter().flatten()).any(|change| change.status == Status::Slower)
    }
}

/// The cases of all runs: those of the first in its order, then what only others have.
fn in_order(runs: &[Run]) -> Vec<Key> {
    let mut seen = BTreeSet::new();
    runs.iter()
        .flat_map(|run| &run.cases)
        .map(|timing| timing.work.key())
        .filter(|key| seen.insert(key.clone()))
        .collect()
}

fn summary(run: &Run) -> RunSummary {
    let Run { label, machine, timing, notes, suite, .. } = run.clone();
    RunSummary { label, machine, timing, notes, suite }
}

fn cell(timing: &Timing, run: &Run) -> Cell {
    let quartiles = Quartiles::of(timing.samples.values());
    Cell {
        dispatches: timing.work.dispatches,
        samples: timing.samples.values().len(),
        median: quartiles.median,
        noise: (timing.samples.values().len() > 1).then(|| quartiles.noise()),
        gigabytes_per_second: timing.work.bytes as f64 / quartiles.median / 1e3,
        of_roof: roof_microseconds(timing, run).map(|roof| roof / quartiles.median),
    }
}

/// Microseconds of the case's bytes at the rate of its roof: of the plain work of the nearest size in the same run.
fn roof_microseconds(timing: &Timing, run: &Run) -> Option<f64> {
    if timing.roof.is_some() {
        return timing.roof;
    }
    let distance = |roof: &&Timing| (roof.work.bytes as f64 / timing.work.bytes as f64).ln().abs();
    let roofs = run.cases.iter().filter(|roof| roof.work.mode == timing.work.mode.roof());
    let nearest = roofs.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    // A roof of a quite other size is none: short work is bound by other things.
    let near = distance(&nearest) <= 4f64.ln() || timing.work.bytes > nearest.work.bytes;
    near.then(|| Quartiles::of(nearest.samples.values()).median * timing.work.bytes as f64 / nearest.work.bytes as f64)
}

/// FASTER and SLOWER only where the difference is above both noises and the threshold.
fn change(a: &Cell, b: &Cell, threshold: f64) -> Change {
    let speed_up = a.median / b.median;
    let noise = a.noise.unwrap_or(UNSURE_NOISE).max(b.noise.unwrap_or(UNSURE_NOISE));
    let least = (1.0 + threshold / 100.0).ln().max(noise);
    let status = match speed_up.ln() {
        _ if noise > UNSURE_NOISE => Status::Unsure,
        ln if ln > least => Status::Faster,
        ln if -ln > least => Status::Slower,
        _ => Status::Same,
    };
    Change { speed_up, status }
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

fn outputs(first: &Run, other: &Run) -> Outputs {
    let both = first.outputs.iter().filter_map(|(name, bytes)| Some((name, bytes == other.outputs.get(name)?)));
    let (equal, different): (Vec<_>, Vec<_>) = both.partition(|&(_, equal)| equal);
    Outputs { equal: equal.len(), different: different.into_iter().map(|(name, _)| name.clone()).collect() }
}

/// What one run has and another has not, counted by mode.
fn missing(runs: &[Run], rows: &[Row]) -> Vec<String> {
    let mut said = Vec::new();
    for mode in [Mode::Fill, Mode::Copy, Mode::InPlace] {
        for (n, run) in runs.iter().enumerate() {
            let count = rows.iter().filter(|row| row.mode == mode && row.cells[n].is_none()).count();
            if count > 0 && runs.len() > 1 {
                let directml = ["DirectML", "DxDispatch"].iter().any(|tool| run.machine.tool.starts_with(tool));
                let why = match mode {
                    Mode::InPlace if directml => ": DirectML accepts them and returns wrong data",
                    _ => "",
                };
                said.push(format!("{count} cases ({}) that '{}' does not have{why}", mode.name(), run.label));
            }
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Samples;
    use crate::suite::manifest::Work;

    fn timing(case: &str, mode: Mode, bytes: u64, samples: &[f64]) -> Timing {
        let (case, data_type) = (case.to_owned(), "f32".to_owned());
        let work = Work { case, data_type, mode, bytes, dispatches: 1 };
        Timing { work, samples: Samples::Each(samples.to_vec()), roof: None }
    }

    fn run(label: &str, cases: Vec<Timing>) -> Run {
        Run { label: label.to_owned(), cases, ..Run::default() }
    }

    fn statuses(a: &[f64], b: &[f64]) -> Change {
        let runs =
            [run("a", vec![timing("x", Mode::Copy, 1 << 30, a)]), run("b", vec![timing("x", Mode::Copy, 1 << 30, b)])];
        Comparison::new(&runs, 5.0).rows[0].changes[0].expect("both have it")
    }

    #[test]
    fn a_difference_is_one_above_noise_and_threshold_only() {
        let (steady, noisy) = ([100.0, 100.0, 100.0], [92.0, 100.0, 108.0]);
        assert_eq!(statuses(&steady, &[50.0; 3]).status, Status::Faster);
        assert_eq!(statuses(&steady, &[50.0; 3]).speed_up, 2.0);
        assert_eq!(statuses(&steady, &[200.0; 3]).status, Status::Slower);
        assert_eq!(statuses(&steady, &[104.0; 3]).status, Status::Same);
        assert_eq!(statuses(&steady, &[106.0; 3]).status, Status::Slower);
        // A noise of 8 % hides 7 %, not 10 %.
        assert_eq!(statuses(&noisy, &[107.0; 3]).status, Status::Same);
        assert_eq!(statuses(&noisy, &[110.0; 3]).status, Status::Slower);
        assert_eq!(statuses(&[80.0, 100.0, 120.0], &[10.0; 3]).status, Status::Unsure);
    }

    #[test]
    fn a_roof_is_of_the_nearest_size_in_the_same_run() {
        let run = run(
            "a",
            vec![
                timing("x", Mode::Copy, 200, &[4.0]),
                timing("fill", Mode::Fill, 200, &[4.0]),
                timing("small", Mode::Copy, 2, &[4.0]),
                timing("1", Mode::RoofOfCopies, 160, &[2.0]),
                timing("2", Mode::RoofOfCopies, 1000, &[2.0]),
            ],
        );
        let comparison = Comparison::new(&[run], 5.0);
        let of_roof: Vec<Option<f64>> =
            comparison.rows.iter().map(|row| row.cells[0].as_ref().and_then(|cell| cell.of_roof)).collect();
        assert_eq!(of_roof, [Some(2.0 * 200.0 / 160.0 / 4.0), None, None]);
    }

    #[test]
    fn what_cannot_be_compared_is_said() {
        let mut runs = [
            run("a", vec![timing("x", Mode::Copy, 8, &[1.0]), timing("x", Mode::InPlace, 8, &[1.0])]),
            run("b", vec![timing("x", Mode::Copy, 9, &[1.0]), timing("y", Mode::Copy, 8, &[1.0])]),
        ];
        let comparison = Comparison::new(&runs, 5.0);
        assert!(comparison.rows.iter().all(|row| row.changes[0].is_none()) && comparison.groups.is_empty());
        assert_eq!(comparison.not_compared.len(), 3, "{:?}", comparison.not_compared);
        assert!(comparison.not_compared.iter().any(|why| why.contains("which is other work")));
        for (run, suite) in runs.iter_mut().zip(["quick 0.1.0", "full 0.1.0"]) {
            suite.clone_into(&mut run.suite);
        }
        let said = Comparison::new(&runs, 5.0).not_compared;
        assert!(
            said.iter().any(|why| why.contains("'a' is of the suite 'quick 0.1.0' and 'b' of 'full 0.1.0'")),
            "{said:?}"
        );
    }
}
