//! `--validate` and `--explain`: answers about the dispatchables of a model that does not run.

use std::process::ExitCode;

use dml_cuda::{
    validate_as, Caveat, Device, DirectMlVersion, ExplainedLaunch, ExplainedMode, Explanation, OperatorDesc,
    ValidationError, ValidationErrors,
};
use serde_json::{json, Value};

use crate::model;
use crate::model::json::{Document, Result};
use crate::options::{Format, Options, Versions};
use crate::out::{self, say, shown};

/// The answer about a dispatchable.
struct Answer {
    accepted: bool,
    /// What follows the dispatchable's name, such as `: accepted`.
    verdict: String,
    lines: Vec<String>,
    /// The same as data.
    event: Value,
}

/// Prints an answer about each dispatchable. Fails if one is not accepted.
fn print(document: &Document, format: Format, answer: impl Fn(Result<OperatorDesc>) -> Answer) -> Result<ExitCode> {
    let dispatchables = model::read_dispatchables(document)?;
    let answers: Vec<(String, Answer)> = dispatchables.into_iter().map(|(name, desc)| (name, answer(desc))).collect();
    let all_accepted = answers.iter().all(|(_, answer)| answer.accepted);
    out::with(|out| {
        for (name, mut answer) in answers {
            if format == Format::Json {
                answer.event["dispatchable"] = json!(name);
                writeln!(out, "{}", answer.event)?;
                continue;
            }
            writeln!(out, "Dispatchable '{}'{}", shown(&name), answer.verdict)?;
            answer.lines.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        }
        Ok(())
    })?;
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
fn verdict(by: &str, answer: Result<std::result::Result<Vec<String>, ValidationErrors>>) -> Answer {
    let (notes, errors) = match answer {
        Ok(Ok(notes)) => (notes, Vec::new()),
        Ok(Err(errors)) => (Vec::new(), errors.errors().iter().map(error_data).collect()),
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

fn error_data(error: &ValidationError) -> Value {
    json!({
        "rule": error.rule.id(),
        "place": error.place,
        "found": error.found,
        "required": error.requirement.to_string(),
        "message": error.to_string(),
    })
}

/// The answer which recorded versions accept. It has a line for each range of versions that rejects, with the first broken rule.
fn by_version(desc: Result<OperatorDesc>) -> Answer {
    let answer = |verdict: &str, lines, event| Answer {
        accepted: true,
        verdict: format!(": accepted by {verdict}"),
        lines,
        event,
    };
    let desc = match desc {
        Ok(desc) => desc,
        Err(unreadable) => {
            let event = json!({ "event": "versions", "message": unreadable });
            return answer("none", vec![unreadable], event);
        }
    };
    let versions = DirectMlVersion::recorded().map(|version| (version.to_string(), validate_as(&desc, &version).err()));
    let versions: Vec<(String, Option<ValidationErrors>)> = versions.collect();
    let verdicts = versions.iter().map(|(version, errors)| {
        let mut verdict = json!({ "version": version, "accepted": errors.is_none() });
        if let Some(errors) = errors {
            verdict["errors"] = errors.errors().iter().map(error_data).collect();
        }
        verdict
    });
    let event = json!({ "event": "versions", "verdicts": verdicts.collect::<Vec<_>>() });
    // Neighbours with the same first broken rule are one range.
    let broken = |errors: &Option<ValidationErrors>| errors.as_ref().map(|errors| errors.errors()[0].to_string());
    let (mut accepting, mut lines) = (Vec::new(), Vec::new());
    for range in versions.chunk_by(|(_, a), (_, b)| broken(a) == broken(b)) {
        let (first, last) = (&range[0], &range[range.len() - 1]);
        let span = if range.len() > 1 { format!("{} to {}", first.0, last.0) } else { first.0.clone() };
        match broken(&first.1) {
            Some(broken) => lines.push(format!("{span}: {broken}")),
            None => accepting.push(span),
        }
    }
    let accepting = if accepting.is_empty() { "none".to_owned() } else { accepting.join(" and ") };
    answer(&accepting, lines, event)
}

/// Answers how each dispatchable would run on the target or the device, or which rules it breaks.
pub fn explain(document: &Document, device: &Device, options: &Options) -> Result<ExitCode> {
    let target = options.target.map_or_else(|| device.name().to_owned(), |target| target.to_string());
    let plan = |desc| -> Result<Explanation> {
        let operator = device.create_operator(desc).map_err(|errors| errors.to_string())?;
        match &options.target {
            Some(target) => Ok(operator.explain(target)),
            None => Ok(device.compile_operator(&operator).map_err(|error| error.to_string())?.explain()),
        }
    };
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
    let rejected = |(kernel, reason): &(String, String)| json!({ "kernel": kernel, "reason": reason });
    json!({
        "mode": mode.name,
        "bytes": mode.bytes,
        "launches": mode.launches.iter().map(launch).collect::<Vec<_>>(),
        "rejected": mode.rejected.iter().map(rejected).collect::<Vec<_>>(),
    })
}
