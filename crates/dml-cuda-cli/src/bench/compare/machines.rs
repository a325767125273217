//! Whether two runs of one program were on one machine in one state: their baselines tell.

use std::collections::BTreeSet;

use super::cell::{change, Change, Status};
use crate::bench::run::{Run, Timed};

/// Why the machine was not the same, if baselines of two runs of one program on one device differ. Adds to what is not compared if no baseline
/// tells.
pub fn differs(first: &Run, other: &Run, threshold: f64, not_compared: &mut BTreeSet<String>) -> Option<String> {
    let (a, b) = (&first.label, &other.label);
    if first.machine.device.is_empty() || key(first) != key(other) {
        return None;
    }
    let is_baseline = |timed: &&Timed| timed.work.mode.is_baseline() && timed.outcome.has_samples();
    let shared = first.cases.iter().filter(is_baseline).filter_map(|a| {
        let is_same = |b: &&Timed| b.work.name() == a.work.name() && b.work.bytes == a.work.bytes;
        let b = other.cases.iter().filter(is_baseline).find(is_same)?;
        Some((a, change(a.outcome.samples(), b.outcome.samples(), threshold)))
    });
    let mut shared: Vec<(&Timed, Change)> = shared.collect();
    if shared.is_empty() {
        let why = format!("'{a}' and '{b}' share no baseline: nothing tells whether the machine was the same");
        not_compared.insert(why);
    }
    shared.retain(|(_, change)| matches!(change.status, Status::Faster | Status::Slower));
    let distance = |(_, change): &(&Timed, Change)| change.speed_up.ln().abs();
    let (timed, Change { speed_up, .. }) = shared.iter().max_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let (count, name) = (shared.len(), timed.work.name());
    Some(format!("the machine was not the same: {count} baselines of '{a}' and '{b}' differ, {name} by a factor of {speed_up:.2}; every case is UNSURE"))
}

/// Device, program and timing.
fn key(run: &Run) -> (&str, Option<&str>, &str) {
    (&run.machine.device, run.machine.tool.split([' ', ',']).next(), &run.timing)
}
