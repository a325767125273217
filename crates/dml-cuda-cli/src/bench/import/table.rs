//! Plain CSV: case, type, mode, microseconds, and where known bytes and the baseline's microseconds.

use std::path::Path;

use serde::Deserialize;

use crate::bench::record::{Machine, Run, Samples, Timing, SCHEMA};
use crate::bench::suite::manifest::{Manifest, Mode, Work};

/// Other columns are left out.
#[derive(Deserialize)]
struct Row {
    case: String,
    #[serde(rename = "type")]
    data_type: String,
    mode: Mode,
    microseconds: f64,
    #[serde(default, alias = "floor_bytes")]
    bytes: Option<u64>,
    #[serde(default, rename = "roof_microseconds", alias = "floor_microseconds")]
    baseline: Option<f64>,
    /// The same over the case's, as older records have it.
    #[serde(default)]
    plain_over_time: Option<f64>,
}

/// Reads a table. Lines that begin with `#` are notes; `# key: value` gives what the machine was.
pub fn read(path: &Path, suite: Option<&Manifest>) -> Result<Run, String> {
    let failed = |error: String| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| failed(format!("the table cannot be read: {error}")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut run =
        Run { schema: SCHEMA, suite: suite.map(|suite| suite.id.clone()).unwrap_or_default(), ..Run::default() };
    "a table of medians".clone_into(&mut run.timing);
    for line in text.lines().filter_map(|line| line.strip_prefix('#')).map(str::trim) {
        let machine = &mut run.machine;
        match line.split_once(": ") {
            Some(("tool", value)) => value.clone_into(&mut machine.tool),
            Some(("device", value)) => value.clone_into(&mut machine.device),
            Some(("driver", value)) => value.clone_into(&mut machine.driver),
            Some(("commit", value)) => value.clone_into(&mut machine.commit),
            Some(("operating system", value)) => value.clone_into(&mut machine.operating_system),
            Some(("date", value)) => value.clone_into(&mut machine.date),
            Some(("timing", value)) => value.clone_into(&mut run.timing),
            _ => run.notes.push(line.to_owned()),
        }
    }
    let machine = &mut run.machine;
    if *machine == Machine::default() {
        machine.tool = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    }
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
    for row in reader.deserialize() {
        let Row { case, data_type, mode, microseconds, bytes, baseline, plain_over_time } =
            row.map_err(|error| failed(format!("a row must have case, type, mode and microseconds: {error}")))?;
        let known = suite.and_then(|suite| {
            suite
                .cases
                .iter()
                .find(|entry| (&entry.work.case, &entry.work.data_type, entry.work.mode) == (&case, &data_type, mode))
        });
        if suite.is_some() && known.is_none() {
            return Err(failed(format!("the case '{case}', {data_type}, {} is not in the suite", mode.name())));
        }
        let Some(bytes) = bytes.or(known.map(|entry| entry.work.bytes)) else {
            return Err(failed(format!("the case '{case}' has no bytes, must have a column for them, or --suite")));
        };
        let samples = Samples::Medians(vec![microseconds]);
        let work = Work { case, data_type, mode, bytes, dispatches: 1 };
        let baseline = plain_over_time.map(|plain| plain * microseconds).or(baseline);
        run.cases.push(Timing { work, samples, baseline });
    }
    run.notes.push("Medians only: the noise of this run is not known.".to_owned());
    Ok(run)
}

#[cfg(all(test, in_repository))]
mod tests {
    use super::*;
    use crate::bench::suite::{case_named, cold};

    /// Runs with a cold L2 are compared with what an older bench recorded.
    #[test]
    fn an_older_record_has_the_cases_of_a_cold_run() {
        let record = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/record/nvidia-h200/2026-11-22.csv");
        let record = read(Path::new(record), None).expect("a table");
        let cold = cold(|_| true);
        let missing: Vec<String> = record
            .cases
            .iter()
            .filter(|timing| {
                let same = |work: &Work| work.key() == timing.work.key() && work.bytes == timing.work.bytes;
                !cold.cases.iter().any(|entry| same(&entry.work))
            })
            .map(|timing| timing.work.name())
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(cold.cases.len(), record.cases.len() + 2, "and a copy and a fill of 512 MiB");
        for entry in &cold.cases[..record.cases.len()] {
            let case = case_named(&entry.name).expect("a case");
            let work = &entry.work;
            let named = (case.name.as_str(), case.data_type(), case.mode());
            assert_eq!(named, (work.case.as_str(), work.data_type.as_str(), work.mode.name()));
        }
    }
}
