//! Whether two results files of one program come from one machine in one state.
//!
//! A GPU that is too hot, or that another program uses, is slower in everything. A baseline then is slower as well,
//! although it has nothing to do with the program. So if the baselines of two files of one program on one device
//! differ, the machine was not the same, and every case is UNSURE. Files of two devices or two programs are compared as
//! they are.

use super::cell::{change, Change, Status};
use crate::bench::numbers::counted;
use crate::bench::results::{Results, Timed};

/// A baseline that two files have, and how its times differ.
struct SharedBaseline<'a> {
    timed: &'a Timed,
    change: Change,
}

/// Why nothing is decided about two files of one program on one device: baselines differ, or fewer than a third are the
/// same.
pub fn differs(first: &Results, other: &Results, threshold: f64) -> Option<String> {
    let (a, b) = (&first.label, &other.label);
    if first.machine.device.is_empty() || key(first) != key(other) {
        return None;
    }
    let mut shared = shared_baselines(first, other, threshold);
    let all = shared.len();
    let is_same = |baseline: &&SharedBaseline| baseline.change.status == Status::Same;
    let same = shared.iter().filter(is_same).count();
    // One baseline that differs is enough: it is the same work in both files.
    shared.retain(|found| matches!(found.change.status, Status::Faster | Status::Slower));
    let farthest = shared
        .iter()
        .max_by(|a, b| a.distance().total_cmp(&b.distance()));
    let why = match farthest {
        Some(SharedBaseline { timed, change }) => {
            let (count, name) = (counted(shared.len(), "baseline"), timed.work.name());
            let factor = change.speed_up;
            format!(
                "the machine was not the same: {count} of '{a}' and '{b}' differ, {name} by a factor of {factor:.2}"
            )
        }
        // Noisy baselines do not differ, but they do not show that the machine was the same either.
        None if same == 0 || 3 * same < all => {
            format!(
                "nothing tells whether the machine was the same: {same} of {all} baselines of '{a}' and '{b}' are SAME"
            )
        }
        None => return None,
    };
    Some(why + "; every case is UNSURE")
}

impl SharedBaseline<'_> {
    /// How far the times are apart, as a logarithm.
    fn distance(&self) -> f64 {
        self.change.speed_up.ln().abs()
    }
}

/// The baselines of equal work in both files.
fn shared_baselines<'a>(
    first: &'a Results,
    other: &Results,
    threshold: f64,
) -> Vec<SharedBaseline<'a>> {
    let mut shared = Vec::new();
    for timed in first.baselines() {
        let is_equal = |found: &&Timed| {
            found.work.name() == timed.work.name() && found.work.bytes == timed.work.bytes
        };
        if let Some(found) = other.baselines().find(is_equal) {
            let (a, b) = (timed.outcome.samples(), found.outcome.samples());
            let change = change(a, b, threshold);
            shared.push(SharedBaseline { timed, change });
        }
    }
    shared
}

/// What two files of one machine and one program share.
#[derive(PartialEq)]
struct Key<'a> {
    device: &'a str,
    /// The name of the program without its versions.
    tool: Vec<&'a str>,
    timing: &'a str,
}

/// What must be equal before differing baselines mean another machine. Versions may differ: they are what is compared.
fn key(results: &Results) -> Key<'_> {
    let words = results.machine.tool.split([' ', ',']);
    let is_name = |word: &&str| !word.starts_with(|first: char| first.is_ascii_digit());
    Key {
        device: &results.machine.device,
        tool: words.filter(is_name).collect(),
        timing: &results.timing,
    }
}
