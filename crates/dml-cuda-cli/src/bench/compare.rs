//! One run or several, side by side: the figures that all reports show.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::bench::record::{Run, Timing};
use crate::bench::statistics::{geometric_mean, Quartiles};
use crate::bench::suite::manifest::{Key, Mode};

/// Above this noise, (q75 − q25) / median, quartiles decide in place of medians. Taken for a noise that is not known.
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
    #[serde(skip)]
    pub quartiles: Quartiles,
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
    /// How many only one of the two runs has.
    #[serde(skip)]
    pub missing: usize,
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

    /// Why a guard against regressions must fail, a phrase for each reason.
    pub fn regressions(&self, allow_different_outputs: bool, allow_missing: bool) -> Vec<String> {
        let changes =
            || self.rows.iter().flat_map(|row| row.changes.iter().enumerate().map(move |(n, change)| (row, n, change)));
        let slower =
            changes().filter(|(.., change)| change.is_some_and(|change| change.status == Status::Slower)).count();
        let has = |row: &Row, run: usize| row.cells[run].is_some();
        let missing = changes().filter(|(row, n, change)| change.is_none() && (has(row, 0) || has(row, n + 1))).count();
        let different: usize = self.outputs.iter().map(|outputs| outputs.different.len()).sum();
        let missing_outputs: usize = self.outputs.iter().map(|outputs| outputs.missing).sum();
        let mut said = Vec::new();
        let mut say = |allowed: bool, count: usize, what: [&str; 2], option: &str| {
            if !allowed && count > 0 {
                said.push(format!("{count} {}{option}", what[usize::from(count > 1)]));
            }
        };
        say(false, slower, ["case is SLOWER", "cases are SLOWER"], "");
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

/// Gives runs of the same label one each: by what differs among them, else by the letters of their columns.
pub fn tell_apart(runs: &mut [Run]) {
    let mut labels: Vec<String> = runs.iter().map(|run| run.label.trim().to_owned()).collect();
    let fields: [fn(&Run) -> String; 4] = [
        |run| prefixed("commit ", &run.machine.commit),
        |run| run.machine.date.split('T').next().unwrap_or_default().to_owned(),
        |run| run.machine.date.clone(),
        |run| run.machine.device.clone(),
    ];
    for label in labels.clone().into_iter().collect::<BTreeSet<String>>() {
        let same: Vec<usize> = (0..runs.len()).filter(|&n| labels[n] == label).collect();
        if same.len() == 1 && !label.is_empty() {
            continue;
        }
        let found = fields.iter().map(|field| same.iter().map(|&n| field(&runs[n])).collect::<Vec<String>>());
        let differing = found.into_iter().find(|values| {
            values.iter().all(|value| !value.is_empty()) && values.iter().collect::<BTreeSet<_>>().len() == values.len()
        });
        for (at, &n) in same.iter().enumerate() {
            let suffix = differing.as_ref().map_or_else(|| format!("run {}", letter(n)), |values| values[at].clone());
            labels[n] = if label.is_empty() { suffix } else { format!("{label}, {suffix}") };
        }
    }
    runs.iter_mut().zip(labels).for_each(|(run, label)| run.label = label);
}

fn prefixed(prefix: &str, text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{prefix}{text}")
    }
}

/// A letter for each run, as the columns name it.
pub fn letter(run: usize) -> char {
    char::from(b'A' + (run % 26) as u8)
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
        quartiles,
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

/// FASTER and SLOWER only where the difference is above the threshold and above both noises. From a noise of 10 % on, only where
/// the middle halves of the samples do not overlap: what noise can explain is UNSURE.
fn change(a: &Cell, b: &Cell, threshold: f64) -> Change {
    let speed_up = a.median / b.median;
    let noise = a.noise.unwrap_or(UNSURE_NOISE).max(b.noise.unwrap_or(UNSURE_NOISE));
    let least = (1.0 + threshold / 100.0).ln().max(noise.min(UNSURE_NOISE));
    let noisy = noise > UNSURE_NOISE;
    let overlap = a.quartiles.lower <= b.quartiles.upper && b.quartiles.lower <= a.quartiles.upper;
    let status = match speed_up.ln() {
        ln if ln.abs() > least && !(noisy && overlap) => {
            if ln > 0.0 {
                Status::Faster
            } else {
                Status::Slower
            }
        }
        _ if noisy => Status::Unsure,
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
    let shared = equal.len() + different.len();
    let missing = first.outputs.len() + other.outputs.len() - 2 * shared;
    let different = different.into_iter().map(|(name, _)| name.clone()).collect();
    Outputs { equal: equal.len(), different, missing }
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
    use crate::bench::record::Samples;
    use crate::bench::suite::manifest::Work;

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
        // Above 10 % the middle halves decide: 90 to 110 overlaps 105 to 115, and neither 10 nor 270 to 330.
        assert_eq!(statuses(&[80.0, 100.0, 120.0], &[100.0, 110.0, 120.0]).status, Status::Unsure);
        assert_eq!(statuses(&[80.0, 100.0, 120.0], &[100.0; 3]).status, Status::Unsure);
        assert_eq!(statuses(&[80.0, 100.0, 120.0], &[10.0; 3]).status, Status::Faster);
        assert_eq!(statuses(&[80.0, 100.0, 120.0], &[240.0, 300.0, 360.0]).status, Status::Slower);
        // A long tail of slow samples explains nothing.
        assert_eq!(statuses(&[90.0, 100.0, 1000.0], &[290.0, 300.0, 3000.0]).status, Status::Unsure);
        assert_eq!(
            statuses(&[90.0, 100.0, 100.0, 100.0, 1000.0], &[290.0, 300.0, 300.0, 900.0, 900.0]).status,
            Status::Slower
        );
    }

    #[test]
    fn runs_of_one_label_are_told_apart() {
        let apart = |machines: &[[&str; 3]]| {
            let mut runs: Vec<Run> = machines.iter().map(|_| run("", Vec::new())).collect();
            for (run, [label, commit, date]) in runs.iter_mut().zip(machines) {
                [&mut run.label, &mut run.machine.commit, &mut run.machine.date]
                    .into_iter()
                    .zip([label, commit, date])
                    .for_each(|(field, value)| (*value).clone_into(field));
            }
            tell_apart(&mut runs);
            runs.into_iter().map(|run| run.label).collect::<Vec<_>>()
        };
        assert_eq!(apart(&[["a", "1", "d"], ["b", "1", "d"]]), ["a", "b"]);
        assert_eq!(apart(&[["a", "1", "d"], ["a", "2", "d"]]), ["a, commit 1", "a, commit 2"]);
        assert_eq!(
            apart(&[["a", "1", "2026-01-02T03:04:05Z"], ["a", "1", "2026-01-03T03:04:05Z"]]),
            ["a, 2026-01-02", "a, 2026-01-03"]
        );
        assert_eq!(
            apart(&[["a", "", "2026-01-02T03:04:05Z"], ["a", "1", "2026-01-02T04:04:05Z"]]),
            ["a, 2026-01-02T03:04:05Z", "a, 2026-01-02T04:04:05Z"]
        );
        assert_eq!(apart(&[["a", "", ""], ["b", "", ""], ["a", "", ""]]), ["a, run A", "b", "a, run C"]);
        assert_eq!(
            apart(&[["", "", ""], ["a", "1", ""], ["a", "2", ""], ["a, commit 1", "", ""]])[1..],
            ["a, commit 1, run B", "a, commit 2", "a, commit 1, run D"]
        );
    }

    #[test]
    fn a_guard_fails_for_slower_different_and_missing() {
        let outputs = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, bytes)| ((*name).to_owned(), (*bytes).to_owned())).collect()
        };
        let mut runs = [
            run("a", vec![timing("x", Mode::Copy, 8, &[1.0; 3]), timing("y", Mode::Copy, 8, &[1.0; 3])]),
            run("b", vec![timing("x", Mode::Copy, 8, &[2.0; 3]), timing("z", Mode::Copy, 8, &[1.0; 3])]),
        ];
        runs[0].outputs = outputs(&[("o", "00"), ("p", "00"), ("q", "00")]);
        runs[1].outputs = outputs(&[("o", "00"), ("p", "01")]);
        let comparison = Comparison::new(&runs, 5.0);
        let said = |outputs, missing| comparison.regressions(outputs, missing).join("; ");
        assert_eq!(said(true, true), "1 case is SLOWER");
        assert_eq!(said(false, true), "1 case is SLOWER; 1 output differs (--allow-different-outputs lets it pass)");
        assert_eq!(
            said(true, false),
            "1 case is SLOWER; 2 cases are not in both runs (--allow-missing lets it pass); \
             1 output is not in both runs (--allow-missing lets it pass)"
        );
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
