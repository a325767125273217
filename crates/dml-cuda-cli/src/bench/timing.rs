//! `dml-cuda bench`: times cases, each in a process of its own, and writes the run case by case.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

use super::run::{Outcome, Output, Run, Timed, SCHEMA};
use super::runner::{self, Answer};
use super::suite::{self, Case, Lengths};
use super::{machine, process};
use crate::names::or_nearest;
use crate::options::Bench;
use crate::out::{complain, say, shown_path};
use crate::output_file;

/// Why a program that hangs is not asked for all cases.
const NOT_TRIED: &str = "not tried, because three cases in a row took more than the --timeout";

pub fn run(options: &Bench) -> Result<ExitCode, String> {
    let in_file = |error: String| format!("{}: {error}", shown_path(&options.output));
    output_file::can_write_result(&options.output, options.overwrite, Run::is_at)
        .map_err(in_file)?;
    // An older run stays until this one is complete.
    let replaces = !is_printed(options) && options.output.exists();
    process::end_on_signals();
    let mut runner = runner::start(options)?;
    let only = options.only.as_deref().unwrap_or_default();
    if only.is_empty() {
        complain!("All cases: a GPU takes minutes, a CPU or DxDispatch up to half an hour");
    }
    let all = runner.cases();
    let cases: Vec<&Case> = all.iter().filter(|case| case.is_wanted(only)).collect();
    if cases.is_empty() {
        let parts: Vec<&str> = all.iter().flat_map(|case| case.name.split('.')).collect();
        let nearest = or_nearest(only, &parts);
        return Err(format!(
            "--only '{only}' is in the name of no case that this runner times{nearest}"
        ));
    }
    let suite = suite::id(Some(options.tier).filter(|_| !options.cold_l2));
    let (machine, samples) = (machine::host(), options.samples);
    // Baselines are there twice.
    let planned = cases
        .iter()
        .map(|case| &case.name)
        .collect::<BTreeSet<_>>()
        .len();
    let mut run = Run {
        schema: SCHEMA,
        suite,
        machine,
        samples,
        planned,
        ..Run::default()
    };
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let progress = ProgressBar::new(cases.len() as u64).with_style(style);
    let mut failures = BTreeSet::new();
    let (mut device, mut written): (Option<String>, Option<String>) = (None, None);
    let (mut is_behind, mut timeouts) = (false, 0);
    for case in &cases {
        progress.set_message(case.name.clone());
        let tried = if timeouts < 3 {
            runner.answer(case)
        } else {
            Err(NOT_TRIED.to_owned())
        };
        let answer = tried.and_then(|answer| match &device {
            Some(first) if *first != answer.device => Err(format!(
                "it ran on {}, but must run on {first} as the cases before it",
                answer.device
            )),
            _ => Ok(answer),
        });
        if process::is_interrupted() {
            break;
        }
        let is_late = |error: &String| timeouts == 3 || error.starts_with(process::TOO_LONG);
        let is_late = options.runner.is_some() && answer.as_ref().is_err_and(is_late);
        timeouts = if is_late { 3.min(timeouts + 1) } else { 0 };
        // Also at the first case if it fails: all may fail.
        if device.is_none() && (answer.is_ok() || run.timing.is_empty()) {
            device = answer.as_ref().ok().map(|answer| answer.device.clone());
            run.machine.device = device.clone().unwrap_or_default();
            run.timing = runner.describe(&mut run.machine, case);
            let on = if run.machine.device.is_empty() {
                ""
            } else {
                " on "
            };
            run.label = format!("{}{on}{}", run.machine.tool, run.machine.device);
        }
        // An error that several cases have is printed once.
        if let Some(error) = answer
            .as_ref()
            .err()
            .filter(|error| failures.insert((*error).clone()))
        {
            progress.suspend(|| complain!("WARNING: {}: {error}", case.name));
        }
        add(&mut run, case, answer);
        if !is_printed(options) && !replaces {
            let failure = write(&run, &mut written, options, false).err();
            is_behind = failure.is_some();
            if let Some(error) = failure.filter(|error| failures.insert(error.clone())) {
                progress.suspend(|| {
                    complain!("WARNING: {}; the next case writes again", in_file(error))
                });
            }
        }
        advance(&progress);
    }
    progress.finish_and_clear();
    if is_behind || (replaces || is_printed(options)) && !process::is_interrupted() {
        let text = run.to_json()?;
        write(&run, &mut written, options, replaces).map_err(|error| {
            in_file(error + &output_file::save_elsewhere(&options.output, text.as_bytes()))
        })?;
    } else if process::is_interrupted() && written.is_none() && run.missing() < run.planned {
        // The older run stays, and a pipe gets whole runs only.
        complain!(
            "NOTE: interrupted{}",
            output_file::save_elsewhere(&options.output, run.to_json()?.as_bytes())
        );
    }
    ended(&run, options)
}

/// Whether the run is written once, such as to standard output.
fn is_printed(options: &Bench) -> bool {
    output_file::is_stream(&options.output)
}

/// Moves the bar on. Where it is not drawn, because there is no terminal, a line tells each tenth.
fn advance(bar: &ProgressBar) {
    bar.inc(1);
    let (done, count) = (bar.position(), bar.length().unwrap_or(1));
    let is_new_tenth = done * 10 / count > (done - 1) * 10 / count;
    if is_new_tenth && !std::io::stderr().is_terminal() {
        complain!("{done} of {count} cases, {} s", bar.elapsed().as_secs());
    }
}

/// Puts an answer into the run.
fn add(run: &mut Run, case: &Case, answer: Result<Answer, String>) {
    let answer = answer.unwrap_or_else(|error| Answer {
        outcome: Some(Outcome::Error(error)),
        dispatches: case.dispatches,
        ..Answer::default()
    });
    let Answer {
        outcome,
        dispatches,
        kernel,
        baseline,
        notes,
        ..
    } = answer;
    for note in notes.into_iter().filter(|note| !note.is_empty()) {
        if !run.notes.contains(&note) {
            run.notes.push(note);
        }
    }
    match (outcome, &case.work) {
        (None, _) => run.planned -= 1,
        (Some(written), None) => {
            let expected_to_differ = case.lengths == Lengths::OverLong;
            run.outputs.insert(
                case.name.clone(),
                Output {
                    model: case.model(),
                    written,
                    expected_to_differ,
                },
            );
        }
        (Some(outcome), Some(work)) => match run
            .cases
            .iter_mut()
            .find(|timed| timed.work.name() == work.name())
        {
            Some(earlier) => earlier.outcome.add(outcome),
            None => {
                let (work, model) = (work.clone(), case.model());
                run.cases.push(Timed {
                    work,
                    model,
                    dispatches,
                    outcome,
                    kernel,
                    baseline,
                });
            }
        },
    }
}

fn ended(run: &Run, options: &Bench) -> Result<ExitCode, String> {
    if process::is_interrupted() {
        complain!(
            "NOTE: interrupted, {} of {} cases are missing",
            run.missing(),
            run.planned
        );
        return Ok(ExitCode::from(process::exit_code() as u8));
    }
    let outcomes = run
        .cases
        .iter()
        .map(|timed| &timed.outcome)
        .chain(run.outputs.values().map(|output| &output.written));
    let count = |is_wanted: fn(&&Outcome) -> bool| outcomes.clone().filter(is_wanted).count();
    let cases = count(|outcome| outcome.has_samples());
    let outputs = count(|outcome| matches!(outcome, Outcome::Bytes(_)));
    let failed = count(|outcome| outcome.is_failure());
    if !is_printed(options) {
        let (label, path) = (&run.label, shown_path(&options.output));
        say!(
            "Run '{label}' written to '{path}': {cases} cases, {outputs} outputs, {failed} failed"
        )?;
    }
    if run.planned == 0 {
        return Err(format!(
            "{} refused every case; the run's notes say why",
            run.machine.tool
        ));
    }
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether the file is not what this bench wrote last. A file that cannot be read tells nothing.
fn is_changed(written: Option<&str>, path: &Path) -> bool {
    std::fs::read(path).is_ok_and(|there| written.map(str::as_bytes) != Some(&there[..]))
}

/// Writes the run, over what this bench wrote of it before, or over an older one.
fn write(
    run: &Run,
    written: &mut Option<String>,
    options: &Bench,
    replaces: bool,
) -> Result<(), String> {
    if !replaces && !is_printed(options) && is_changed(written.as_deref(), &options.output) {
        return Err(
            "another program has written it, but must stay as this bench wrote it".to_owned(),
        );
    }
    let text = run.to_json()?;
    match written {
        Some(_) => output_file::write_own(&options.output, text.as_bytes())?,
        None => output_file::write_result(
            &options.output,
            text.as_bytes(),
            options.overwrite,
            Run::is_at,
        )?,
    }
    *written = Some(text);
    Ok(())
}
