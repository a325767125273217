//! What the runs of a report are called.

use std::collections::BTreeSet;

use crate::bench::run::Run;

/// Gives runs of the same label one each: by what differs among them, else by the letters of their columns.
pub fn tell_apart(runs: &mut [Run]) {
    let fields: [fn(usize, &Run) -> String; 3] =
        [|_, run| run.machine.commit.clone(), |_, run| run.machine.date.clone(), |n, _| format!("run {}", letter(n))];
    runs.iter_mut().for_each(|run| run.label = run.label.trim().to_owned());
    for label in runs.iter().map(|run| run.label.clone()).collect::<BTreeSet<String>>() {
        let places: Vec<usize> = (0..runs.len()).filter(|&n| runs[n].label == label).collect();
        if places.len() == 1 && !label.is_empty() {
            continue;
        }
        let of_field = |field: &fn(usize, &Run) -> String| {
            let values: Vec<String> = places.iter().map(|&n| field(n, &runs[n])).collect();
            let known: BTreeSet<&String> = values.iter().filter(|value| !value.is_empty()).collect();
            (known.len() == places.len()).then_some(values)
        };
        for (n, suffix) in places.iter().copied().zip(fields.iter().find_map(of_field).unwrap_or_default()) {
            runs[n].label = if label.is_empty() { suffix } else { format!("{label}, {suffix}") };
        }
    }
}

/// A letter for each run, of which there are at most eight.
pub fn letter(run: usize) -> char {
    char::from(b'A' + run as u8)
}
