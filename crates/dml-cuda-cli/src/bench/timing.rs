//! `dml-cuda bench`: times cases, each in a process of its own, and writes the run case by case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::machine;
use super::progress::Progress;
use super::run::{Outcome, Output, Run, Timed, SCHEMA};
use super::runner::{self, Answer, Asked, Device};
use super::suite::{Job, Tier};
use crate::out::{self, complain, say};
use crate::whole_file;

pub struct Options {
    /// `-` is standard output.
    pub to: PathBuf,
    pub overwrite: bool,
    pub tier: Tier,
    /// Cases whose names hold this.
    pub only: Option<String>,
    pub asked: Asked,
}

pub fn run(options: Options) -> Result<ExitCode, String> {
    let Options { to, overwrite, tier, only, asked } = options;
    let mut file = RunFile::new(&to, overwrite)?;
    let samples = asked.samples;
    let mut runner = runner::start(asked)?;
    let jobs = runner.jobs(tier, &|name| only.as_ref().is_none_or(|only| name.contains(only.as_str())));
    if jobs.is_empty() {
        let only = only.unwrap_or_default();
        return Err(format!("--only '{only}' is in the name of no case that this runner times"));
    }
    let mut machine = machine::host();
    (machine.tool, machine.commit) = (runner.tool(), runner.commit());
    let suite = runner.suite(tier);
    let mut run = Run { schema: SCHEMA, suite, machine, samples, planned: jobs.len(), ..Run::default() };
    let mut progress = Progress::new(jobs.len());
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for job in &jobs {
        progress.begins(&job.name);
        let answer = runner.answer(job).and_then(|answer| {
            set_device(&mut run, &answer.device)?;
            Ok(answer)
        });
        if let Err(error) = &answer {
            let times = failures.entry(error.clone()).or_default();
            *times += 1;
            // The same error of several cases is printed once.
            if *times == 1 {
                progress.warn(&format!("{}: {error}", job.name));
            }
        }
        add(&mut run, job, answer);
        file.write(&run)?;
        progress.ends();
    }
    progress.clear();
    for (error, times) in failures.iter().filter(|(_, times)| **times > 1) {
        complain!("WARNING: {} more cases failed in the same way: {error}", times - 1);
    }
    drop(runner);
    ended(&run, &file)
}

fn ended(run: &Run, file: &RunFile) -> Result<ExitCode, String> {
    if !has_figures(run) {
        return Err("nothing was timed: every case failed".to_owned());
    }
    let count = |is_wanted: fn(&&Outcome) -> bool| run.outcomes().filter(is_wanted).count();
    let cases = count(|outcome| !outcome.samples().is_empty());
    let outputs = count(|outcome| matches!(outcome, Outcome::Bytes(_)));
    let failed = run.failures();
    if file.is_stdout() {
        let text = run.to_json()?;
        out::with(|out| out.write_all(text.as_bytes()))?;
    } else {
        say!(
            "Run '{}' written to '{}': {cases} cases, {outputs} outputs, {failed} failed",
            run.label,
            file.path.display()
        )?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn has_figures(run: &Run) -> bool {
    run.outcomes().any(|outcome| matches!(outcome, Outcome::Each(_) | Outcome::Medians(_) | Outcome::Bytes(_)))
}

/// Puts an answer into the run.
fn add(run: &mut Run, job: &Job, answer: Result<Answer, String>) {
    let (mut work, mut baseline) = (job.work.clone(), None);
    let outcome = match answer {
        Ok(answer) => {
            (work.dispatches, baseline) = (answer.dispatches, answer.baseline);
            let notes = answer.notes.into_iter().filter(|note| !note.is_empty());
            notes.for_each(|note| {
                if !run.notes.contains(&note) {
                    run.notes.push(note);
                }
            });
            answer.outcome
        }
        Err(error) => Some(Outcome::Error(error)),
    };
    match outcome {
        None => run.planned -= 1,
        Some(written) if job.is_output() => {
            let expected_to_differ = job.is_expected_to_differ();
            run.outputs.insert(job.name.clone(), Output { written, expected_to_differ });
        }
        Some(outcome) => run.cases.push(Timed { work, outcome, baseline }),
    }
}

/// All cases must run on one device.
fn set_device(run: &mut Run, found: &Device) -> Result<(), String> {
    let machine = &mut run.machine;
    if machine.device.is_empty() {
        run.label = format!("{} on {}", machine.tool, found.name);
        machine.device.clone_from(&found.name);
        machine.driver.clone_from(&found.driver);
        machine.clocks.clone_from(&found.clocks);
        run.timing.clone_from(&found.timing);
    }
    if run.machine.device == found.name {
        return Ok(());
    }
    Err(format!("it ran on {}, must run on {} as the cases before it", found.name, run.machine.device))
}

/// The file of a run, and the bytes that this process wrote there.
struct RunFile<'a> {
    path: &'a Path,
    overwrite: bool,
    written: Option<String>,
}

impl<'a> RunFile<'a> {
    fn new(path: &'a Path, overwrite: bool) -> Result<Self, String> {
        let file = Self { path, overwrite, written: None };
        if !file.is_stdout() {
            whole_file::may_write_result(path, overwrite).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(file)
    }

    fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Writes the run, unless another process has written there, or nothing is known yet.
    fn write(&mut self, run: &Run) -> Result<(), String> {
        if self.is_stdout() || !has_figures(run) {
            return Ok(());
        }
        let failed = |error: String| format!("{}: {error}", self.path.display());
        let text = run.to_json()?;
        match &self.written {
            None => whole_file::write_result(self.path, text.as_bytes(), self.overwrite).map_err(failed)?,
            Some(written) if std::fs::read_to_string(self.path).is_ok_and(|there| there == *written) => {
                whole_file::write_result(self.path, text.as_bytes(), true).map_err(failed)?;
            }
            Some(_) => {
                return Err(failed(
                    "another process changed it, must be written by one bench at a time; it stays".to_owned(),
                ))
            }
        }
        self.written = Some(text);
        Ok(())
    }
}
