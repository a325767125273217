//! Whether two runs of one program were on one machine in one state: their baselines tell.

use super::cell::{change, Change, Status};
use crate::bench::run::{Run, Timed};

/// Why the machine was not the same, if baselines of two runs differ.
pub fn differ(first: &Run, other: &Run, threshold: f64) -> Option<String> {
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

/// That two runs share no baseline.
pub fn not_known_to_be_one(first: &Run, other: &Run, threshold: f64) -> Option<String> {
    let (a, b) = (&first.label, &other.label);
    baselines(first, other, threshold)?
        .is_empty()
        .then(|| format!("'{a}' and '{b}' share no baseline: nothing tells whether the machine was the same"))
}

/// The baselines that two runs share, and how they changed. `None` if the runs are not of one program on one device.
fn baselines<'a>(first: &'a Run, other: &Run, threshold: f64) -> Option<Vec<(&'a Timed, Change)>> {
    let key = |run: &Run| {
        let program = run.machine.tool.split([' ', ',']).next().unwrap_or_default().to_owned();
        (run.machine.device.clone(), program, run.timing.clone())
    };
    if first.machine.device.is_empty() || key(first) != key(other) {
        return None;
    }
    let is_baseline = |timed: &&Timed| timed.work.mode.is_baseline() && timed.outcome.has_samples();
    let pairs = first.cases.iter().filter(is_baseline).filter_map(|a| {
        let is_same = |b: &&Timed| b.work.name() == a.work.name() && b.work.bytes == a.work.bytes;
        let b = other.cases.iter().filter(is_baseline).find(is_same)?;
        Some((a, change(a.outcome.samples(), b.outcome.samples(), threshold)))
    });
    Some(pairs.collect())
}
