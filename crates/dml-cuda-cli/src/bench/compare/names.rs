//! The names of results files in sentences and tables.
//!
//! A label such as `dml-cuda 0.3.0 on H200, linux` is too long for the head of a column. It has three parts, which are the
//! tool, the device and the file. If the labels differ in only one of them, that part is the name:
//!
//! ```text
//! dml-cuda 0.3.0 on CPU     CPU
//! dml-cuda 0.3.0 on H200    H200
//! ```

use crate::bench::numbers::clipped;
use crate::bench::results::Results;

/// Characters of a name.
pub const LONGEST: usize = 40;

/// A name for each file. Files that would still have one name get a letter as well.
pub fn names(files: &[Results]) -> Vec<String> {
    let parts: Vec<[String; 3]> = files.iter().map(label_parts).collect();
    let names: Vec<String> = match only_difference(&parts) {
        Some(n) if parts.iter().all(|parts| !parts[n].is_empty()) => {
            parts.iter().map(|parts| parts[n].clone()).collect()
        }
        _ => {
            let labels = files.iter().map(|results| &results.label);
            labels.map(|label| clipped(label, LONGEST)).collect()
        }
    };
    let mut distinct = Vec::new();
    for (name, letter) in names.iter().zip('A'..) {
        let count = names.iter().filter(|other| *other == name).count();
        distinct.push(match count {
            1 => name.clone(),
            _ => format!("{name} ({letter})"),
        });
    }
    distinct
}

/// The tool, the device and the file of a label.
fn label_parts(results: &Results) -> [String; 3] {
    let Results { label, file, .. } = results;
    let without_file = label
        .strip_suffix(file)
        .and_then(|rest| rest.strip_suffix(", "));
    let (rest, file) = match without_file {
        Some(rest) => (rest, &**file),
        None => (&**label, ""),
    };
    let (tool, device) = rest.split_once(" on ").unwrap_or((rest, ""));
    [tool, device, file].map(|part| clipped(part, LONGEST))
}

/// The only part in which labels differ, if there is one.
fn only_difference(parts: &[[String; 3]]) -> Option<usize> {
    let differs = |n: &usize| parts.iter().any(|part| part[*n] != parts[0][*n]);
    let mut different = (0..3).filter(differs);
    different.next().filter(|_| different.next().is_none())
}
