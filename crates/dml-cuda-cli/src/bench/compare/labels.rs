//! What the runs of a report are called.

use std::collections::BTreeSet;

use crate::bench::run::Run;

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

/// A letter for each run, of which there are at most eight.
pub fn letter(run: usize) -> char {
    char::from(b'A' + run as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_label_are_told_apart() {
        let apart = |machines: &[[&str; 3]]| {
            let mut runs: Vec<Run> = machines.iter().map(|_| Run::default()).collect();
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
}
