//! `dml-cuda import`: logs of DxDispatch, or a table of medians, as a run.

mod log;
mod table;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use crate::bench::record::{Failed, Machine, Run, Samples, Timing, SCHEMA};
use crate::bench::suite::manifest::Manifest;
use crate::out::say;

pub use log::{read as read_log, Log};

/// How DxDispatch takes its samples.
pub const DXDISPATCH_TIMING: &str =
    "time stamps on the GPU around the dispatches of one command list, the same buffers every time";

/// What a user says of a run that the files do not say.
pub struct About {
    pub label: Option<String>,
    pub device: Option<String>,
    pub notes: Vec<String>,
}

/// Reads `from`, a folder of logs, one log or a .csv, and writes the run.
pub fn import(from: &Path, suite: Option<&Path>, about: About, to: &Path) -> Result<ExitCode, String> {
    let manifest = suite.map(Manifest::read).transpose()?;
    if !from.exists() {
        return Err(format!("{} does not exist, must be a folder of logs, a log or a .csv", from.display()));
    }
    if Run::read(from).is_ok() {
        return Err(format!("{} is a run, which report and compare read as it is", from.display()));
    }
    let is_table = from.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let mut run = if is_table {
        table::read(from, manifest.as_ref())?
    } else {
        let Some(manifest) = &manifest else {
            return Err("--suite is not given, must be the folder of the suite that the logs are of".to_owned());
        };
        of_logs(from, manifest)?
    };
    if run.cases.is_empty() {
        let why = run.failed.first().map(|failed| format!(" ({}: {})", failed.work.name(), failed.error));
        let why = why.unwrap_or_default();
        return Err(format!("{}: there is no time in it of a case of the suite{why}", from.display()));
    }
    let About { label, device, notes } = about;
    run.machine.device = device.unwrap_or(run.machine.device);
    run.notes.extend(notes);
    run.label = label.unwrap_or_else(|| match (run.machine.tool.as_str(), run.machine.device.as_str()) {
        (tool, "") => tool.to_owned(),
        (tool, device) => format!("{tool} on {device}"),
    });
    run.check().map_err(|error| format!("{}: {error}", from.display()))?;
    if std::fs::symlink_metadata(to).is_ok() {
        return Err(format!("{} exists, must be a new file", to.display()));
    }
    run.write(to)?;
    say!(
        "Run '{}' written to '{}': {} cases, {} outputs",
        run.label,
        to.display(),
        run.cases.len(),
        run.outputs.len()
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The logs of a folder, and what its models wrote.
fn of_logs(from: &Path, manifest: &Manifest) -> Result<Run, String> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut paths = vec![from.to_owned()];
    if from.is_dir() {
        let entries = std::fs::read_dir(from).map_err(|error| failed(from, &error))?;
        paths = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
    }
    let (mut found, mut outputs) = (BTreeMap::<String, Log>::new(), BTreeMap::new());
    let mut run = Run { schema: SCHEMA, suite: manifest.id.clone(), ..Run::default() };
    for path in paths {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        let bytes = || std::fs::read(&path).map_err(|error| failed(&path, &error));
        match extension.as_deref() {
            Some("bin") if manifest.checks.contains(&stem) => {
                outputs.insert(stem, hexadecimal(&bytes()?));
            }
            Some("log" | "txt") => {
                for (name, log) in read_log(&bytes()?).map_err(|error| failed(&path, &error))? {
                    if !manifest.cases.iter().any(|entry| entry.name == name) && !manifest.checks.contains(&name) {
                        let why = format!("the dispatchable '{name}' is not in the suite '{}'", manifest.id);
                        return Err(failed(&path, &why));
                    }
                    found.entry(name).or_default().extend(log);
                }
            }
            _ => {}
        }
    }
    let Some(device) = found.values().find_map(|log| log.device.clone()) else {
        return Err(format!("{}: no log says 'Running on', as those of DxDispatch do", from.display()));
    };
    for entry in &manifest.cases {
        let Some(log) = found.get(&entry.name) else { continue };
        match log.samples() {
            Some(samples) => run.cases.push(Timing { work: entry.work.clone(), samples, baseline: None }),
            None => run.failed.push(Failed { work: entry.work.clone(), error: log.why_nothing() }),
        }
    }
    run.outputs = outputs;
    run.machine = Machine { tool: "DxDispatch".to_owned(), device, ..Machine::default() };
    DXDISPATCH_TIMING.clone_into(&mut run.timing);
    if run.cases.iter().any(|timing| matches!(timing.samples, Samples::Medians(_))) {
        run.notes.push(
            "Short cases have medians of several runs in place of samples, which DxDispatch prints with four decimals."
                .to_owned(),
        );
    }
    Ok(run)
}

/// Two digits a byte.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
