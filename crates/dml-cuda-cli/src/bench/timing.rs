//! `dml-cuda bench` asks a runner for one case after another, and writes the results file.
//!
//! ```text
//! suite.jsonl ─ cases ─> runner ─ answer ─> Results ─> results file
//! ```
//!
//! The runner starts a process for each case, so that a case that crashes or hangs is one failed case and not the end of
//! the bench. A new results file is written after each case, so that an interrupted bench keeps what it has. An older file,
//! a pipe and standard output are written at the end.

mod results_file;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

use super::results::{Outcome, Output, Results, Timed, SCHEMA};
use super::runner::{self, Answer, Runner};
use super::suite::{self, Case, Lengths};
use super::{machine, process};
use crate::names::or_nearest;
use crate::options::Bench;
use crate::out::{complain, say, shown_path};
use results_file::{is_stream, ResultsFile};

/// After this many cases in a row that took too long, a program is taken to hang in all of them.
const MOST_TIMEOUTS: u32 = 3;

/// Why a program that hangs is not asked for all cases.
const NOT_TRIED: &str = "not tried, because three cases in a row took more than the --timeout";

/// Times the cases and writes the results file.
pub fn time_cases(options: &Bench) -> Result<ExitCode, String> {
    let mut file = ResultsFile::new(options)?;
    process::end_on_signals();
    let runner = runner::start(options)?;
    let only = options.only.as_deref().unwrap_or_default();
    if only.is_empty() {
        complain!("All cases: a GPU takes minutes, a CPU or DxDispatch up to half an hour");
    }
    let all = runner.cases();
    // Only now, because a runner knows which cases it can run.
    let cases = wanted_cases(&all, only)?;
    let progress = ProgressBar::new(cases.len() as u64).with_style(progress_style());
    let mut timing = Timing {
        options,
        runner,
        results: planned_results(options, &cases),
        device: None,
        is_described: false,
        timeouts: 0,
        failures: BTreeSet::new(),
        progress,
    };
    for case in &cases {
        timing.progress.set_message(case.name.clone());
        let answer = timing.answer(case);
        if process::is_interrupted() {
            break;
        }
        timing.describe_once(case, &answer);
        if let Err(error) = &answer {
            timing.warn_once(error, format_args!("{}: {error}", case.name));
        }
        add(&mut timing.results, case, answer);
        if let Err(error) = file.update(&timing.results) {
            timing.warn_once(&error, format_args!("{error}; the next case writes again"));
        }
        advance(&timing.progress);
    }
    timing.progress.finish_and_clear();
    file.finish(&timing.results)?;
    summarize(&timing.results, options)
}

/// The cases whose names contain the text of `--only`.
fn wanted_cases<'a>(all: &'a [Case], only: &str) -> Result<Vec<&'a Case>, String> {
    let cases: Vec<&Case> = all.iter().filter(|case| case.is_wanted(only)).collect();
    if cases.is_empty() {
        let parts: Vec<&str> = all.iter().flat_map(|case| case.name.split('.')).collect();
        let nearest = or_nearest(only, &parts);
        return Err(format!(
            "--only '{only}' is in the name of no case that this runner times{nearest}"
        ));
    }
    Ok(cases)
}

/// Results without a case. They tell how many are planned, by which a reader knows an interrupted bench.
fn planned_results(options: &Bench, cases: &[&Case]) -> Results {
    // Baselines are timed twice, and are one case.
    let names: BTreeSet<&str> = cases.iter().map(|case| &*case.name).collect();
    Results {
        schema: SCHEMA,
        suite: suite::id(Some(options.tier).filter(|_| !options.cold_l2)),
        machine: machine::host(),
        samples: options.samples,
        planned: names.len(),
        ..Results::default()
    }
}

/// The bar with the name of the case, which tells where a bench hangs.
fn progress_style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A bench between two cases.
struct Timing<'a> {
    options: &'a Bench,
    runner: Box<dyn Runner + 'a>,
    /// All answers so far.
    results: Results,
    /// The device of the first case that has run.
    device: Option<String>,
    /// Whether the runner has described the machine.
    is_described: bool,
    /// Cases in a row that took too long.
    timeouts: u32,
    /// Errors that were printed.
    failures: BTreeSet<String>,
    progress: ProgressBar,
}

impl Timing<'_> {
    /// Asks the runner for a case, unless it hangs. All cases must run on one device.
    fn answer(&mut self, case: &Case) -> Result<Answer, String> {
        if self.timeouts == MOST_TIMEOUTS {
            return Err(NOT_TRIED.to_owned());
        }
        let mut answer = self.runner.answer(case);
        if let (Ok(Answer { device, .. }), Some(first)) = (&answer, &self.device) {
            if first != device {
                answer = Err(format!(
                    "it ran on {device}, but must run on {first} as the cases before it"
                )
                .into());
            }
        }
        let is_late = matches!(&answer, Err(failure) if failure.is_late);
        // Only another program is taken to hang.
        self.timeouts = if is_late && self.options.runner.is_some() {
            self.timeouts + 1
        } else {
            0
        };
        Ok(answer?)
    }

    /// Describes the machine after the first case that has run, and after the first case even if it failed: all may
    /// fail.
    fn describe_once(&mut self, case: &Case, answer: &Result<Answer, String>) {
        let has_failed = answer.is_err();
        if self.device.is_some() || (has_failed && self.is_described) {
            return;
        }
        self.is_described = true;
        self.device = answer.as_ref().ok().map(|answer| answer.device.clone());
        let machine = &mut self.results.machine;
        machine.device = self.device.clone().unwrap_or_default();
        self.results.timing = self.runner.describe(machine, case);
        self.results.label = match &*machine.device {
            "" => machine.tool.clone(),
            device => format!("{} on {device}", machine.tool),
        };
    }

    /// Prints a warning, unless its error was printed before: several cases often fail for one reason.
    fn warn_once(&mut self, error: &str, warning: std::fmt::Arguments) {
        if self.failures.insert(error.to_owned()) {
            self.progress.suspend(|| complain!("WARNING: {warning}"));
        }
    }
}

/// Moves the bar on. Without a terminal it is not drawn, and a line tells each tenth.
fn advance(bar: &ProgressBar) {
    bar.inc(1);
    let (done, count) = (bar.position(), bar.length().unwrap_or(1));
    let is_new_tenth = done * 10 / count > (done - 1) * 10 / count;
    if is_new_tenth && !std::io::stderr().is_terminal() {
        complain!("{done} of {count} cases, {} s", bar.elapsed().as_secs());
    }
}

/// Adds an answer to the results.
fn add(results: &mut Results, case: &Case, answer: Result<Answer, String>) {
    let answer = answer.unwrap_or_else(|error| Answer {
        outcome: Some(Outcome::Error(error)),
        dispatches: case.dispatches,
        ..Answer::default()
    });
    for note in answer.notes {
        if !note.is_empty() && !results.notes.contains(&note) {
            results.notes.push(note);
        }
    }
    let Some(outcome) = answer.outcome else {
        // The runner cannot run this case, and a note says why.
        results.planned -= 1;
        return;
    };
    let Some(work) = &case.work else {
        let output = Output {
            model: case.model(),
            written: outcome,
            expected_to_differ: case.lengths == Lengths::OverLong,
        };
        results.outputs.insert(case.name.clone(), output);
        return;
    };
    let name = work.name();
    let earlier = results
        .cases
        .iter_mut()
        .find(|timed| timed.work.name() == name);
    match earlier {
        // A baseline that is timed a second time.
        Some(earlier) => earlier.outcome.add(outcome),
        None => results.cases.push(Timed {
            work: work.clone(),
            model: case.model(),
            dispatches: answer.dispatches,
            outcome,
            kernel: answer.kernel,
            baseline: answer.baseline,
        }),
    }
}

/// Prints how many cases there are, and returns the exit code: a failed case is a failed bench.
fn summarize(results: &Results, options: &Bench) -> Result<ExitCode, String> {
    if process::is_interrupted() {
        complain!(
            "NOTE: interrupted, {} of {} cases are missing",
            results.missing(),
            results.planned
        );
        return Ok(ExitCode::from(process::exit_code() as u8));
    }
    let (mut cases, mut outputs, mut failed) = (0, 0, 0);
    let timed = results.cases.iter().map(|timed| &timed.outcome);
    let written = results.outputs.values().map(|output| &output.written);
    for outcome in timed.chain(written) {
        cases += usize::from(outcome.has_samples());
        outputs += usize::from(matches!(outcome, Outcome::Bytes(_)));
        failed += usize::from(outcome.is_failure());
    }
    if !is_stream(options) {
        let (label, path) = (&results.label, shown_path(&options.output));
        say!(
            "Results of '{label}' written to '{path}': {cases} cases, {outputs} outputs, {failed} failed"
        )?;
    }
    if results.planned == 0 {
        return Err(format!(
            "{} refused every case; the notes of the results file say why",
            results.machine.tool
        ));
    }
    Ok(match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
