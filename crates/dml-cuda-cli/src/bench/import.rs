//! `dml-cuda import`: logs of DxDispatch, or a table of medians, as a run.

mod log;
pub mod machine;
mod table;

use std::collections::btree_map::{BTreeMap, Entry};
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use crate::bench::record::{Failed, Run, Samples, Timing, SCHEMA};
use crate::bench::suite::manifest::Manifest;
use crate::out::{complain, say};

pub use log::{read as read_log, Log, Transcript};

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
    if std::fs::symlink_metadata(to).is_ok() {
        return Err(format!("{} exists, must be a new file", to.display()));
    }
    let manifest = suite.map(Manifest::read).transpose()?;
    if !from.exists() {
        let what = if from.extension().is_none() { "the folder " } else { "" };
        let logs = suite.map(|suite| suite.join("logs")).filter(|logs| logs.is_dir());
        let there = match logs {
            Some(logs) => format!("; '{}' is", logs.display()),
            None => "; run.ps1 and run.sh make the folder 'logs' in the suite's".to_owned(),
        };
        return Err(format!("{what}'{}' is not there{there}", from.display()));
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
    if run.cases.is_empty() && run.outputs.is_empty() {
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
    run.write(to)?;
    let (cases, outputs, failed) = (run.cases.len(), run.outputs.len(), run.failed.len() + run.failed_outputs.len());
    if failed > 0 {
        complain!("WARNING: {failed} models failed; `dml-cuda report {}` says why", to.display());
    }
    say!("Run '{}' written to '{}': {cases} cases, {outputs} outputs, {failed} failed", run.label, to.display())?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Logs that are of no model: what `dxdispatch -S` and `dxdispatch -s` print.
const DEPENDENCIES: &str = "dependencies";
const ADAPTERS: &str = "adapters";

/// What the logs say of one model.
#[derive(Default)]
struct Found {
    log: Log,
    failure: Option<String>,
}

/// The logs of a folder, and what its models wrote.
fn of_logs(from: &Path, manifest: &Manifest) -> Result<Run, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", from.display());
    let mut paths = vec![from.to_owned()];
    if from.is_dir() {
        let entries = std::fs::read_dir(from).map_err(|error| failed(&error))?;
        paths = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
    }
    let is_known = |name: &str| manifest.has_output(name) || manifest.cases.iter().any(|entry| entry.name == name);
    let (mut found, mut outputs) = (BTreeMap::<String, Found>::new(), BTreeMap::new());
    let (mut logs, mut dependencies, mut adapters) = (Vec::new(), String::new(), String::new());
    let mut run = Run { schema: SCHEMA, suite: manifest.id.clone(), ..Run::default() };
    for path in paths {
        let text_of = |name: Option<&OsStr>| name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (stem, extension) = (text_of(path.file_stem()), text_of(path.extension()).to_ascii_lowercase());
        let bytes = std::fs::read(&path).map_err(|error| format!("it cannot be read: {error}"));
        match (extension.as_str(), bytes) {
            ("bin", Ok(bytes)) if manifest.has_output(&stem) => {
                outputs.insert(stem, hexadecimal(&bytes));
            }
            ("log", Ok(bytes)) if stem == DEPENDENCIES => dependencies = log::decode(&bytes),
            ("log", Ok(bytes)) if stem == ADAPTERS => adapters = log::decode(&bytes),
            ("log" | "txt", bytes) => {
                let printed = match bytes {
                    Ok(bytes) => read_log(&bytes),
                    Err(error) => Transcript { failure: Some(error), ..Transcript::default() },
                };
                logs.push((log::short(&text_of(path.file_name())), stem, printed));
            }
            _ => {}
        }
    }
    if logs.is_empty() {
        return Err(failed(&"there is no log in it, a file NAME.log for each model"));
    }
    // A log with a model's name is that model's. Other logs give what is not there yet.
    logs.sort_by_key(|(_, stem, _)| !is_known(stem));
    let (mut devices, mut strangers, mut seconds) = (BTreeMap::<String, usize>::new(), Vec::new(), Vec::new());
    for (file, stem, Transcript { device, mut dispatches, failure }) in logs {
        let models = if is_known(&stem) {
            let log = dispatches.remove(&stem).unwrap_or_default();
            let other = dispatches.keys().next().filter(|_| log == Log::default());
            let other = other.map(|name| format!("its log is of the dispatchable '{}'", log::short(name)));
            vec![(stem, Found { log, failure: failure.or(other) })]
        } else if dispatches.keys().any(|name| is_known(name)) {
            let known = dispatches.into_iter().filter(|(name, _)| is_known(name));
            known.map(|(name, log)| (name, Found { log, failure: failure.clone() })).collect()
        } else {
            let dispatchable = dispatches.keys().next().map(|name| format!("dispatchable '{}'", log::short(name)));
            strangers.push(format!("{file} ({})", dispatchable.or(failure).unwrap_or_default()));
            continue;
        };
        if let Some(device) = device {
            *devices.entry(device).or_default() += 1;
        }
        for (name, model) in models {
            match found.entry(name) {
                Entry::Vacant(place) => drop(place.insert(model)),
                Entry::Occupied(place) => seconds.push(format!("{file} (of {})", place.key())),
            }
        }
    }
    if devices.len() > 1 {
        let counts: Vec<String> = devices.iter().map(|(name, count)| format!("{count} of '{name}'")).collect();
        return Err(failed(&format!(
            "the logs are of {} devices: {}; must be of one: delete the older logs",
            devices.len(),
            counts.join(", ")
        )));
    }
    let device = devices.into_keys().next().unwrap_or_default();
    warn_of(&mut run, &strangers, &format!("logs are of no model of the suite '{}'", manifest.id));
    warn_of(&mut run, &seconds, "logs are of models that have a log, and are left out");
    let mut missing = Vec::new();
    let mut coarse = Vec::new();
    for entry in &manifest.cases {
        let Some(Found { log, failure }) = found.get(&entry.name) else {
            missing.extend(entry.work.mode.is_directmls().then_some(&entry.name));
            continue;
        };
        match log.samples(failure.as_deref()) {
            Ok(samples) => {
                coarse.extend(log::is_coarse(&samples).then_some(&entry.name));
                run.cases.push(Timing { work: entry.work.clone(), samples, baseline: None });
            }
            Err(error) => run.failed.push(Failed { work: entry.work.clone(), error }),
        }
    }
    for name in manifest.outputs() {
        let failure = found.get(name).map(|found| found.failure.clone());
        match (failure, outputs.remove(name)) {
            // What an earlier run wrote may still be there.
            (Some(Some(failure)), _) => drop(run.failed_outputs.insert(name.clone(), failure)),
            (_, Some(digits)) => drop(run.outputs.insert(name.clone(), digits)),
            (Some(None), None) => {
                run.failed_outputs.insert(name.clone(), format!("it wrote no file {name}.bin"));
            }
            (None, None) => missing.push(name),
        }
    }
    warn_of(&mut run, &coarse, "short cases have no medians of runs with -v 0, only samples with four decimals");
    if from.is_dir() {
        warn_of(&mut run, &missing, "models of the suite have no log");
    }
    run.machine.tool = machine::tool(machine::directml_version(&dependencies));
    run.machine.driver = machine::driver(&adapters, &device).unwrap_or_default();
    run.machine.device = device;
    DXDISPATCH_TIMING.clone_into(&mut run.timing);
    if run.cases.iter().any(|timing| matches!(timing.samples, Samples::Medians(_))) {
        run.notes.push(
            "Short cases have medians of several runs in place of samples, which DxDispatch prints with four decimals."
                .to_owned(),
        );
    }
    Ok(run)
}

/// Says how many there are and the first names, now and to the readers of the run.
fn warn_of(run: &mut Run, names: &[impl AsRef<str>], what: &str) {
    if !names.is_empty() {
        let mut first: Vec<&str> = names.iter().take(3).map(AsRef::as_ref).collect();
        first.extend((names.len() > 3).then_some("…"));
        let what = format!("{} {what}: {}", names.len(), first.join(", "));
        complain!("WARNING: {what}");
        run.notes.push(what);
    }
}

/// Two digits a byte.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
