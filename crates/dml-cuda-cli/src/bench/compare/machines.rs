//! Whether two runs of one program were on one machine in one state: their baselines tell.

use super::cell::{change, Change, Status};
use crate::bench::run::{Run, Timed};

/// Why the machine was not the same, if baselines of two runs differ; or that no baseline tells, which is no such reason.
pub fn compared(first: &Run, other: &Run, threshold: f64) -> (Option<String>, Option<String>) {
    let Some(mut shared) = baselines(first, other, threshold) else { return (None, None) };
    let (a, b) = (&first.label, &other.label);
    if shared.is_empty() {
        let why = format!("'{a}' and '{b}' share no baseline: nothing tells whether the machine was the same");
        return (None, Some(why));
    }
    shared.retain(|(_, change)| matches!(change.status, Status::Faster | Status::Slower));
    let distance = |(_, change): &(&Timed, Change)| change.speed_up.ln().abs();
    let furthest = shared.iter().max_by(|a, b| distance(a).total_cmp(&distance(b)));
    let differ = furthest.map(|(timed, Change { speed_up, .. })| {
        let (count, name) = (shared.len(), timed.work.name());
        format!("the machine was not the same: {count} baselines of '{a}' and '{b}' differ, {name} by a factor of {speed_up:.2}; every case is UNSURE")
    });
    (differ, None)
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
