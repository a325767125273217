//! `dml-cuda bench`: times a suite, model by model, each in a process of its own, with this runner or with DxDispatch.

mod agreement;
mod child;
mod progress;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::bench::import::hexadecimal;
use crate::bench::record::{Failed, Timing};
use crate::bench::suite::cold;
use crate::bench::suite::manifest::{Entry, Manifest, Work};
use crate::out::{complain, say};
use agreement::{begin, check_device};
use child::{Runner, Timed};
use progress::Progress;

pub struct Options {
    /// A suite; where there is none, this program's cases are timed with a cold L2.
    pub folder: Option<PathBuf>,
    pub to: PathBuf,
    /// Cases whose names hold this.
    pub only: Option<String>,
    pub samples: u32,
    /// DxDispatch, or what prints the same; this program else.
    pub runner: Option<PathBuf>,
    pub adapter: Option<String>,
    /// How long a process may take.
    pub timeout: std::time::Duration,
}

pub fn run(options: &Options) -> Result<ExitCode, String> {
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let suite = options.folder.as_deref().map(Manifest::read).transpose()?;
    let runner = Runner::new(options)?;
    let manifest = suite.unwrap_or_else(|| cold(wanted));
    // A suite's names are those of files. Reports have those of cases.
    let is_wanted = |entry: &Entry| wanted(&entry.name) || wanted(&entry.work.case);
    let entries: Vec<&Entry> =
        manifest.cases.iter().filter(|entry| is_wanted(entry) && runner.runs(entry.work.mode)).collect();
    let checks: Vec<&String> = manifest.outputs().filter(|name| wanted(name)).collect();
    if entries.is_empty() && checks.is_empty() {
        let only = options.only.as_deref().unwrap_or_default();
        return Err(format!("--only '{only}' is in the name of no model that this runner times"));
    }
    let (mut run, mut file) = begin(options, &manifest, &runner)?;
    // What failed is tried again.
    let has = |entry: &Entry| run.cases.iter().any(|timing| timing.work.key() == entry.work.key());
    let jobs: Vec<(&String, Option<&Entry>)> = entries
        .into_iter()
        .filter(|entry| !has(entry))
        .map(|entry| (&entry.name, Some(entry)))
        .chain(checks.into_iter().filter(|name| !run.outputs.contains_key(*name)).map(|name| (name, None)))
        .collect();
    let to = options.to.display();
    if jobs.is_empty() {
        let (cases, outputs) = (run.cases.len(), run.outputs.len());
        say!("Run '{}' in '{to}': nothing left to time, {cases} cases and {outputs} outputs are there", run.label)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut progress = Progress::new(jobs.len());
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for (name, entry) in jobs {
        progress.begins(name);
        let outcome = match entry {
            Some(entry) => {
                runner.time(entry, options.samples).map(|Timed { device, dispatches, samples, baseline }| {
                    let work = Work { dispatches, ..entry.work.clone() };
                    (device, Outcome::Case(Timing { work, samples, baseline }))
                })
            }
            None => runner.output(name).map(|(device, output)| (device, Outcome::Output(hexadecimal(&output)))),
        };
        run.failed.retain(|failed| entry.is_none_or(|entry| failed.work.key() != entry.work.key()));
        run.failed_outputs.remove(name);
        match outcome {
            Ok((device, outcome)) => {
                check_device(&mut run, device, options)?;
                match outcome {
                    Outcome::Case(timing) => run.cases.push(timing),
                    Outcome::Output(digits) => drop(run.outputs.insert(name.clone(), digits)),
                }
            }
            Err(error) => {
                let times = failures.entry(error.clone()).or_default();
                *times += 1;
                // The same error of every model is said once.
                if *times == 1 {
                    progress.warn(&format!("{name}: {error}"));
                }
                match entry {
                    Some(entry) => run.failed.push(Failed { work: entry.work.clone(), error }),
                    None => drop(run.failed_outputs.insert(name.clone(), error)),
                }
            }
        }
        // A run of which nothing is known is no file.
        if !run.cases.is_empty() || !run.outputs.is_empty() {
            file.write(&run)?;
        }
        progress.ends();
    }
    progress.clear();
    for (error, times) in failures.iter().filter(|(_, times)| **times > 1) {
        complain!("WARNING: {} more models failed in the same way: {error}", times - 1);
    }
    if run.cases.is_empty() && run.outputs.is_empty() {
        return Err("nothing was timed: every model failed".to_owned());
    }
    let (cases, outputs, failed) = (run.cases.len(), run.outputs.len(), failures.values().sum::<usize>());
    say!("Run '{}' written to '{to}': {cases} cases, {outputs} outputs, {failed} failed", run.label)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a model leaves in the run.
enum Outcome {
    Case(Timing),
    Output(String),
}
