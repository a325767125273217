//! Whether two runs of one program were on one machine in one state: their baselines tell.

use super::cell::{change, Change, Status};
use crate::bench::numbers::counted;
use crate::bench::results::{Results, Timed};

/// Why nothing is decided about two runs of one program on one device: baselines differ, or fewer than a third are the
/// same.
pub fn differs(first: &Results, other: &Results, threshold: f64) -> Option<String> {
    let (a, b) = (&first.label, &other.label);
    if first.machine.device.is_empty() || key(first) != key(other) {
        return None;
    }
    let shared = first.baselines().filter_map(|a| {
        let is_same = |b: &&Timed| b.work.name() == a.work.name() && b.work.bytes == a.work.bytes;
        let b = other.baselines().find(is_same)?;
        Some((
            a,
            change(a.outcome.samples(), b.outcome.samples(), threshold),
        ))
    });
    let mut shared: Vec<(&Timed, Change)> = shared.collect();
    let (all, same) = (
        shared.len(),
        shared
            .iter()
            .filter(|(_, change)| change.status == Status::Same)
            .count(),
    );
    shared.retain(|(_, change)| matches!(change.status, Status::Faster | Status::Slower));
    let distance = |(_, change): &(&Timed, Change)| change.speed_up.ln().abs();
    let why = match shared
        .iter()
        .max_by(|a, b| distance(a).total_cmp(&distance(b)))
    {
        Some((timed, Change { speed_up, .. })) => {
            let (count, name) = (counted(shared.len(), "baseline"), timed.work.name());
            format!(
                "the machine was not the same: {count} of '{a}' and '{b}' differ, {name} by a factor of {speed_up:.2}"
            )
        }
        None if same == 0 || 3 * same < all => {
            format!(
                "nothing tells whether the machine was the same: {same} of {all} baselines of '{a}' and '{b}' are SAME"
            )
        }
        None => return None,
    };
    Some(why + "; every case is UNSURE")
}

/// Device, program without its versions, and timing.
fn key(run: &Results) -> (&str, Vec<&str>, &str) {
    let words = run
        .machine
        .tool
        .split([' ', ','])
        .filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
    (&run.machine.device, words.collect(), &run.timing)
}
