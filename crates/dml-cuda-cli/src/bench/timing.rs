//! `dml-cuda bench`: times cases, each in a process of its own, and writes the run case by case.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

use super::job::{Job, Task};
use super::run::{Outcome, Output, Run, Timed, SCHEMA};
use super::runner::{self, Answer, Runner};
use super::suite;
use super::{machine, process};
use crate::names::likeness;
use crate::options::Bench;
use crate::out::{self, complain, say, shown_path};
use crate::whole_file;

pub fn run(options: &Bench) -> Result<ExitCode, String> {
    let in_file = |error: String| format!("{}: {error}", shown_path(&options.output));
    if !is_printed(options) {
        whole_file::can_write_result(&options.output, options.overwrite, Run::is_at).map_err(in_file)?;
    }
    // An older run stays until this one is complete.
    let replaces = !is_printed(options) && options.output.exists();
    process::end_on_signals();
    let mut runner = runner::start(options)?;
    let only = options.only.as_deref().unwrap_or_default();
    if only.is_empty() {
        complain!("Counting the bytes of all cases; then a GPU takes minutes, a CPU or DxDispatch up to half an hour");
    }
    let jobs = runner.jobs(&|name| name.contains(only));
    if jobs.is_empty() {
        let nearest = nearest(only, runner.as_ref());
        let why = "is in the name of no case that this runner times; the nearest names";
        return Err(format!("--only '{only}' {why}: {nearest}"));
    }
    let suite = suite::id(Some(options.tier).filter(|_| !options.cold_l2));
    let (machine, samples) = (machine::host(), options.samples);
    // Baselines are there twice.
    let planned = jobs.iter().map(|job| &job.name).collect::<BTreeSet<_>>().len();
    let mut run = Run { schema: SCHEMA, suite, machine, samples, planned, ..Run::default() };
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let progress = ProgressBar::new(jobs.len() as u64).with_style(style);
    let mut failures = BTreeSet::new();
    let (mut device, mut written): (Option<String>, Option<String>) = (None, None);
    let mut is_behind = false;
    for job in &jobs {
        progress.set_message(job.name.clone());
        let answer = runner.answer(job).and_then(|answer| match &device {
            Some(first) if *first != answer.device => {
                Err(format!("it ran on {}, must run on {first} as the cases before it", answer.device))
            }
            _ => Ok(answer),
        });
        if process::is_interrupted() {
            break;
        }
        // Also at the first case if it fails: all may fail.
        if device.is_none() && (answer.is_ok() || run.timing.is_empty()) {
            device = answer.as_ref().ok().map(|answer| answer.device.clone());
            run.machine.device = device.clone().unwrap_or_default();
            run.timing = runner.describe(&mut run.machine, job);
            let on = if run.machine.device.is_empty() { "" } else { " on " };
            run.label = format!("{}{on}{}", run.machine.tool, run.machine.device);
        }
        // An error that several cases have is printed once.
        if let Some(error) = answer.as_ref().err().filter(|error| failures.insert((*error).clone())) {
            progress.suspend(|| complain!("WARNING: {}: {error}", job.name));
        }
        add(&mut run, job, answer);
        if !is_printed(options) && !replaces {
            if is_changed(written.as_deref(), &options.output) {
                return Err(in_file("another program has written it, must stay as this bench wrote it".to_owned()));
            }
            let failure = write(&run, &mut written, options).err();
            is_behind = failure.is_some();
            if let Some(error) = failure.filter(|error| failures.insert(error.clone())) {
                progress.suspend(|| complain!("WARNING: {}; the next case writes again", in_file(error)));
            }
        }
        advance(&progress);
    }
    progress.finish_and_clear();
    if is_behind || replaces && !process::is_interrupted() {
        write(&run, &mut written, options).map_err(in_file)?;
    }
    ended(&run, options)
}

/// The names of cases in which something is most like a text, of as many parts between dots.
fn nearest(only: &str, runner: &dyn Runner) -> String {
    let (names, count) = (RefCell::new(BTreeSet::new()), only.split('.').count());
    runner.jobs(&|name| {
        names.borrow_mut().insert(name.to_owned());
        false
    });
    let like = |name: &String| {
        let parts: Vec<&str> = name.split('.').collect();
        parts.windows(count).map(|part| likeness(only, &part.join("."))).fold(likeness(only, name), f64::max)
    };
    let mut names: Vec<String> = names.into_inner().into_iter().collect();
    names.sort_by(|a, b| like(b).total_cmp(&like(a)));
    names[..names.len().min(3)].join(", ")
}

/// Whether the run goes to standard output.
fn is_printed(options: &Bench) -> bool {
    options.output == Path::new("-")
}

/// Where the bar is not drawn, on no terminal, a line tells each tenth.
fn advance(bar: &ProgressBar) {
    bar.inc(1);
    let (done, count) = (bar.position(), bar.length().unwrap_or(1));
    let is_new_tenth = done * 10 / count > (done - 1) * 10 / count;
    if is_new_tenth && !std::io::stderr().is_terminal() {
        complain!("{done} of {count} cases, {} s", bar.elapsed().as_secs());
    }
}

/// Puts an answer into the run.
fn add(run: &mut Run, job: &Job, answer: Result<Answer, String>) {
    let answer = answer.unwrap_or_else(|error| Answer {
        outcome: Some(Outcome::Error(error)),
        dispatches: job.dispatches,
        ..Answer::default()
    });
    let Answer { outcome, dispatches, baseline, notes, .. } = answer;
    for note in notes.into_iter().filter(|note| !note.is_empty()) {
        if !run.notes.contains(&note) {
            run.notes.push(note);
        }
    }
    match (outcome, &job.work) {
        (None, _) => run.planned -= 1,
        (Some(written), None) => {
            let expected_to_differ = matches!(job.task, Task::Output { over_long: true, .. });
            run.outputs.insert(job.name.clone(), Output { written, expected_to_differ });
        }
        (Some(outcome), Some(work)) => match run.cases.iter_mut().find(|timed| timed.work.name() == work.name()) {
            Some(earlier) => earlier.outcome.add(outcome),
            None => run.cases.push(Timed { work: work.clone(), dispatches, outcome, baseline }),
        },
    }
}

fn ended(run: &Run, options: &Bench) -> Result<ExitCode, String> {
    if process::is_interrupted() {
        complain!("NOTE: interrupted, {} of {} cases are missing", run.missing(), run.planned);
        return Ok(ExitCode::from(process::exit_code() as u8));
    }
    let outcomes =
        run.cases.iter().map(|timed| &timed.outcome).chain(run.outputs.values().map(|output| &output.written));
    let count = |is_wanted: fn(&&Outcome) -> bool| outcomes.clone().filter(is_wanted).count();
    let cases = count(|outcome| outcome.has_samples());
    let outputs = count(|outcome| matches!(outcome, Outcome::Bytes(_)));
    let failed = count(|outcome| outcome.is_failure());
    if is_printed(options) {
        let text = run.to_json()?;
        out::with(|out| out.write_all(text.as_bytes()))?;
    } else {
        let (label, path) = (&run.label, shown_path(&options.output));
        say!("Run '{label}' written to '{path}': {cases} cases, {outputs} outputs, {failed} failed")?;
    }
    if run.planned == 0 {
        return Err(format!("{} refused every case; the run's notes say why", run.machine.tool));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the file is not what this bench wrote last. A file that cannot be read tells nothing.
fn is_changed(written: Option<&str>, path: &Path) -> bool {
    std::fs::read(path).is_ok_and(|there| written.map(str::as_bytes) != Some(&there[..]))
}

/// Writes the run, over what this bench wrote of it before.
fn write(run: &Run, written: &mut Option<String>, options: &Bench) -> Result<(), String> {
    let text = run.to_json()?;
    let overwrite = written.is_some() || options.overwrite;
    whole_file::write_result(&options.output, text.as_bytes(), overwrite, Run::is_at)?;
    *written = Some(text);
    Ok(())
}
