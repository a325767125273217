//! `--validate` and `--explain`: answers about the dispatchables of a model that does not run.

use std::process::ExitCode;

use dml_cuda::{
    validate_as, Caveat, Device, DirectMlVersion, Explanation, OperatorDesc, ValidationErrors,
};
use serde::Serialize;
use serde_json::{json, Value};

use super::events::tell;
use crate::model;
use crate::model::json::{Document, Result};
use crate::options::{Format, Options, Versions};
use crate::out::{complain, say, shown};

/// The answer about a dispatchable.
struct Answer {
    accepted: bool,
    /// The text after the dispatchable's name, such as `: accepted`.
    verdict: String,
    lines: Vec<String>,
    /// The whole answer as data.
    event: Value,
}

/// Why a dispatchable is rejected: a broken rule as the library serializes it. What cannot be read breaks no rule, and
/// has only a message.
type Fault = Value;

/// The verdict of a recorded version of DirectML.
#[derive(Serialize)]
struct Recorded {
    version: String,
    accepted: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Fault>,
}

/// Prints an answer about each dispatchable. Fails if one is not accepted.
fn print(
    document: &Document,
    format: Format,
    answer: impl Fn(Result<OperatorDesc>) -> Answer,
) -> Result<ExitCode> {
    let mut all_accepted = true;
    for (name, desc) in model::read_dispatchables(document)? {
        let Answer {
            accepted,
            verdict,
            lines,
            mut event,
        } = answer(desc);
        all_accepted &= accepted;
        event["dispatchable"] = json!(name);
        let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
        tell(
            format,
            &event,
            format_args!("Dispatchable '{}'{verdict}{lines}", shown(&name)),
        )?;
    }
    Ok(if all_accepted {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Answers whether each dispatchable is accepted, and which rules it breaks.
pub fn validate(document: &Document, options: &Options) -> Result<ExitCode> {
    print(document, options.format, |desc| {
        let unread = |message| json!({ "rule": null, "place": null, "found": null, "required": null, "message": message });
        let desc = desc.map_err(|message| vec![unread(message)]);
        match &options.directml {
            None => {
                let check = |desc| dml_cuda::validate(&desc, options.feature_level).map_err(faults);
                verdict("", desc.and_then(check).map(|()| Vec::new()))
            }
            Some(Versions::One(version)) => {
                // What the version accepts but computes wrongly.
                let note = |caveat: &Caveat| format!("note: {caveat}");
                let caveats = desc.and_then(|desc| validate_as(&desc, version).map_err(faults));
                verdict(
                    &format!(" by DirectML {version}"),
                    caveats.map(|caveats| caveats.iter().map(note).collect()),
                )
            }
            Some(Versions::All) => by_version(&desc),
        }
    })
}

fn faults(errors: ValidationErrors) -> Vec<Fault> {
    errors.errors().iter().map(|error| json!(error)).collect()
}

fn message_of(fault: &Fault) -> String {
    fault["message"].as_str().unwrap_or_default().to_owned()
}

/// The answer from notes on what is accepted, or why it is not.
fn verdict(by: &str, answer: Result<Vec<String>, Vec<Fault>>) -> Answer {
    let accepted = answer.is_ok();
    let (notes, errors) =
        answer.map_or_else(|errors| (Vec::new(), errors), |notes| (notes, Vec::new()));
    Answer {
        accepted,
        verdict: format!(": {}{by}", if accepted { "accepted" } else { "rejected" }),
        lines: notes
            .iter()
            .cloned()
            .chain(errors.iter().map(message_of))
            .collect(),
        event: json!({ "event": "verdict", "accepted": accepted, "notes": notes, "errors": errors }),
    }
}

/// The answer which recorded versions accept. It has a line for each range of versions that rejects, with the first
/// broken rule, or one line if the dispatchable cannot be read.
fn by_version(desc: &Result<OperatorDesc, Vec<Fault>>) -> Answer {
    let recorded = |version: DirectMlVersion| {
        let checked = |desc| validate_as(desc, &version).map_or_else(faults, |_| Vec::new());
        let errors = desc.as_ref().map_or_else(Clone::clone, checked);
        Recorded {
            version: version.to_string(),
            accepted: errors.is_empty(),
            errors,
        }
    };
    let verdicts: Vec<Recorded> = DirectMlVersion::recorded().map(recorded).collect();
    let (mut accepting, mut lines) = (Vec::new(), Vec::new());
    // Neighbours with the same first error are one range.
    let message = |verdict: &Recorded| verdict.errors.first().map(message_of);
    for range in verdicts.chunk_by(|a, b| message(a) == message(b)) {
        let (first, last) = (&range[0].version, &range[range.len() - 1].version);
        let span = if range.len() > 1 {
            format!("{first} to {last}")
        } else {
            first.clone()
        };
        match range[0].errors.first() {
            Some(fault) if fault["rule"].is_null() => lines.push(message_of(fault)),
            Some(fault) => lines.push(format!("{span}: {}", message_of(fault))),
            None => accepting.push(span),
        }
    }
    let accepted = !accepting.is_empty();
    let accepting = if accepted {
        accepting.join(" and ")
    } else {
        "none".to_owned()
    };
    let event = json!({ "event": "versions", "verdicts": verdicts });
    Answer {
        accepted,
        verdict: format!(": accepted by {accepting}"),
        lines,
        event,
    }
}

/// The GPUs whose times the costs of all kernels are fitted to.
const TIMED: [&str; 2] = ["H100", "H200"];

/// Answers how each dispatchable would run on the target or the device, or which rules it breaks.
pub fn explain(document: &Document, device: &Device, options: &Options) -> Result<ExitCode> {
    let target = options
        .target
        .map_or_else(|| device.name().to_owned(), |target| target.to_string());
    let chosen = device.compile_options();
    let plan = |desc| -> Result<Explanation> {
        let operator = device
            .create_operator(desc)
            .map_err(|errors| errors.to_string())?;
        match &options.target {
            Some(target) => Ok(operator.explain_with(target, chosen)),
            None => match device.compile_operator_with(&operator, chosen) {
                Ok(compiled) => Ok(compiled.explain()),
                Err(error) => Err(error.to_string()),
            },
        }
    };
    let is_timed = TIMED
        .iter()
        .any(|timed| target.to_uppercase().contains(timed));
    if !is_timed && (options.target.is_some() || device.ordinal().is_some()) {
        complain!(
            "NOTE: no GPU '{target}' was timed: estimates have the costs of {}",
            TIMED.join(" and ")
        );
    }
    if options.format == Format::Text {
        say!("Planned for '{target}'")?;
    }
    print(document, options.format, |desc| {
        let explained = desc.and_then(plan);
        let text = explained
            .as_ref()
            .map_or_else(String::clone, Explanation::to_string);
        let event = match &explained {
            Ok(Explanation {
                dimensions, modes, ..
            }) => json!({
                "event": "plan", "target": target, "dimensions": dimensions, "modes": modes, "text": text
            }),
            Err(error) => json!({ "event": "plan", "target": target, "error": error }),
        };
        let lines = text.lines().map(str::to_owned).collect();
        Answer {
            accepted: explained.is_ok(),
            verdict: String::new(),
            lines,
            event,
        }
    })
}
