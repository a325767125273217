//! What the runs of a report are called.

use crate::bench::run::Run;

/// Gives runs of the same label, or of none, the names of their files too; of the same file, the letters of their
/// columns.
pub fn tell_apart(runs: &mut [Run]) {
    let suffixes: [fn(usize, &Run) -> String; 2] = [|_, run| run.file.clone(), |n, _| format!("run {}", letter(n))];
    for suffix in suffixes {
        let labels: Vec<String> = runs.iter().map(|run| run.label.trim().to_owned()).collect();
        for (n, label) in labels.iter().enumerate() {
            let is_alone = labels.iter().filter(|other| *other == label).count() == 1 && !label.is_empty();
            let suffix = if is_alone { String::new() } else { suffix(n, &runs[n]) };
            runs[n].label =
                [label.clone(), suffix].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        }
    }
}

/// A letter for each run, of which there are at most eight.
pub fn letter(run: usize) -> char {
    char::from(b'A' + run as u8)
}
