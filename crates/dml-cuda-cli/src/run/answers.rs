//! `--validate` and `--explain`: answers about the dispatchables of a model that does not run.

use std::process::ExitCode;
use std::time::Duration;

use dml_cuda::{
    validate_as, Caveat, Device, DirectMlVersion, ExplainedKernel, ExplainedLaunch, ExplainedMode, Explanation,
    OperatorDesc, ValidationError, ValidationErrors,
};
use serde_json::{json, Value};

use super::events::tell;
use super::execute::compile_options;
use crate::model;
use crate::model::json::{Document, Result};
use crate::options::{Format, Options, Versions};
use crate::out::{complain, say, shown};

/// The answer about a dispatchable.
struct Answer {
    accepted: bool,
    /// What follows the dispatchable's name, such as `: accepted`.
    verdict: String,
    lines: Vec<String>,
    /// The whole answer as data.
    event: Value,
}

/// Prints an answer about each dispatchable. Fails if one is not accepted.
fn print(document: &Document, format: Format, answer: impl Fn(Result<OperatorDesc>) -> Answer) -> Result<ExitCode> {
    let mut all_accepted = true;
    for (name, desc) in model::read_dispatchables(document)? {
        let Answer { accepted, verdict, lines, mut event } = answer(desc);
        all_accepted &= accepted;
        event["dispatchable"] = json!(name);
        let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
        tell(format, &event, format_args!("Dispatchable '{}'{verdict}{lines}", shown(&name)))?;
    }
    Ok(if all_accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Answers whether each dispatchable is accepted, and which rules it breaks.
pub fn validate(document: &Document, options: &Options) -> Result<ExitCode> {
    print(document, options.format, |desc| match &options.directml {
        None => verdict("", desc.map(|desc| dml_cuda::validate(&desc, options.feature_level).map(|()| Vec::new()))),
        Some(Versions::One(version)) => {
            // What the version accepts but computes wrongly.
            let note = |caveat: &Caveat| format!("note: {caveat}");
            let notes = |desc| Ok(validate_as(&desc, version)?.iter().map(note).collect());
            verdict(&format!(" by DirectML {version}"), desc.map(notes))
        }
        Some(Versions::All) => by_version(desc),
    })
}

/// The answer from notes on what is accepted, or broken rules.
fn verdict(by: &str, answer: Result<Result<Vec<String>, ValidationErrors>>) -> Answer {
    let (notes, errors) = match answer {
        Ok(Ok(notes)) => (notes, Vec::new()),
        Ok(Err(errors)) => (Vec::new(), error_data(&errors)),
        Err(unreadable) => (Vec::new(), vec![json!({ "message": unreadable })]),
    };
    let accepted = errors.is_empty();
    let messages = errors.iter().filter_map(|error| error["message"].as_str()).map(str::to_owned);
    Answer {
        accepted,
        verdict: format!(": {}{by}", if accepted { "accepted" } else { "rejected" }),
        lines: notes.iter().cloned().chain(messages).collect(),
        event: json!({ "event": "verdict", "accepted": accepted, "notes": notes, "errors": errors }),
    }
}

fn error_data(errors: &ValidationErrors) -> Vec<Value> {
    let data = |error: &ValidationError| {
        json!({
            "rule": error.rule.id(),
            "place": error.place.to_string(),
            "found": error.found,
            "required": error.requirement.to_string(),
            "message": error.to_string(),
        })
    };
    errors.errors().iter().map(data).collect()
}

/// The answer which recorded versions accept. It has a line for each range of versions that rejects, with the first
/// broken rule.
fn by_version(desc: Result<OperatorDesc>) -> Answer {
    let (mut accepting, mut lines) = (Vec::new(), Vec::new());
    let event = match desc {
        Ok(desc) => {
            let answers =
                DirectMlVersion::recorded().map(|version| (version.to_string(), validate_as(&desc, &version)));
            let answers: Vec<_> = answers.map(|(version, answer)| (version, answer.err())).collect();
            // Neighbours with the same first broken rule are one range.
            let broken = |errors: &Option<ValidationErrors>| Some(errors.as_ref()?.errors()[0].to_string());
            for range in answers.chunk_by(|(_, a), (_, b)| broken(a) == broken(b)) {
                let (first, last) = (&range[0], &range[range.len() - 1]);
                let span = if range.len() > 1 { format!("{} to {}", first.0, last.0) } else { first.0.clone() };
                match broken(&first.1) {
                    Some(broken) => lines.push(format!("{span}: {broken}")),
                    None => accepting.push(span),
                }
            }
            let verdicts = answers.iter().map(|(version, errors)| match errors {
                None => json!({ "version": version, "accepted": true }),
                Some(errors) => json!({ "version": version, "accepted": false, "errors": error_data(errors) }),
            });
            json!({ "event": "versions", "verdicts": verdicts.collect::<Vec<_>>() })
        }
        Err(unreadable) => {
            lines.push(unreadable.clone());
            json!({ "event": "versions", "message": unreadable })
        }
    };
    let accepted = !accepting.is_empty();
    let accepting = if accepted { accepting.join(" and ") } else { "none".to_owned() };
    Answer { accepted, verdict: format!(": accepted by {accepting}"), lines, event }
}

/// The GPUs whose times the costs of all kernels are fitted to.
const TIMED: [&str; 2] = ["H100", "H200"];

/// Answers how each dispatchable would run on the target or the device, or which rules it breaks.
pub fn explain(document: &Document, device: &Device, options: &Options) -> Result<ExitCode> {
    let target = options.target.map_or_else(|| device.name().to_owned(), |target| target.to_string());
    let plan = |desc| -> Result<Explanation> {
        let operator = device.create_operator(desc).map_err(|errors| errors.to_string())?;
        match &options.target {
            Some(target) => Ok(operator.explain(target)),
            None => {
                let compiled = device.compile_operator_with(&operator, compile_options(device, options));
                Ok(compiled.map_err(|error| error.to_string())?.explain())
            }
        }
    };
    let is_timed = TIMED.iter().any(|timed| target.to_uppercase().contains(timed));
    if !is_timed && (options.target.is_some() || device.ordinal().is_some()) {
        complain!("NOTE: nobody has timed a GPU '{target}': estimates have the costs of {}", TIMED.join(" and "));
    }
    if options.format == Format::Text {
        say!("Planned for '{target}'")?;
    }
    print(document, options.format, |desc| {
        let explained = desc.and_then(plan);
        let text = explained.as_ref().map_or_else(String::clone, Explanation::to_string);
        let event = match &explained {
            Ok(plan) => {
                let modes: Vec<Value> = plan.modes.iter().map(mode_data).collect();
                json!({ "event": "plan", "target": target, "modes": modes, "text": text })
            }
            Err(error) => json!({ "event": "plan", "target": target, "error": error }),
        };
        let lines = text.lines().map(str::to_owned).collect();
        Answer { accepted: explained.is_ok(), verdict: String::new(), lines, event }
    })
}

fn mode_data(mode: &ExplainedMode) -> Value {
    let launch = |launch: &ExplainedLaunch| {
        json!({
            "kernel": launch.kernel,
            "access_bytes": launch.access_bytes,
            "blocks": launch.blocks,
            "threads": launch.threads,
            "shared_memory": launch.shared_memory,
            "alignment": launch.alignment,
        })
    };
    let microseconds = |time: Duration| time.as_nanos() as f64 / 1e3;
    let kernel = |kernel: &ExplainedKernel| {
        json!({
            "kernel": kernel.kernel,
            "variant": kernel.variant,
            "estimated_microseconds": kernel.estimate.map(microseconds),
            "measured_microseconds": kernel.measured.map(microseconds),
        })
    };
    let rejected = |(kernel, reason): &(String, String)| json!({ "kernel": kernel, "reason": reason });
    json!({
        "mode": mode.name,
        "bytes": mode.bytes,
        "launches": mode.launches.iter().map(launch).collect::<Vec<_>>(),
        "kernels": mode.kernels.iter().map(kernel).collect::<Vec<_>>(),
        "rejected": mode.rejected.iter().map(rejected).collect::<Vec<_>>(),
    })
}
