//! `--validate` and `--explain`: answers about the dispatchables of a model that does not run.
//!
//! ```text
//! Dispatchable 'a': accepted                     --validate
//! Dispatchable 'a': accepted by 1.8.0 to 1.15.4  --validate --directml all: ranges of versions with one answer
//!   1.0.0 to 1.5.1: OutputTensor.Sizes is …      and the first broken rule of each other range
//! ```
//!
//! Each answer is a line with further lines below it, or with `--format json` one object. A dispatchable that cannot be read
//! does not end the answers about the others.

use std::process::ExitCode;

use dml_cuda::{
    validate_as, Device, DirectMlVersion, Explanation, FeatureLevel, OperatorDesc, ValidationErrors,
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
    /// Whether the dispatchable counts as accepted for the exit code.
    accepted: bool,
    /// The text after the dispatchable's name, such as `: accepted`.
    verdict: String,
    /// Lines below the first one: notes, or broken rules.
    lines: Vec<String>,
    /// The whole answer as data.
    event: Value,
}

/// Why a dispatchable is rejected: a broken rule as the library serializes it. A dispatchable that cannot be read breaks no
/// rule, and has only a message.
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
        // Every event has the name, whatever the answer is.
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
        let desc = desc.map_err(|message| {
            vec![json!({ "rule": null, "place": null, "found": null, "required": null, "message": message })]
        });
        match &options.directml {
            None => verdict(
                "",
                desc.and_then(|desc| by_level(&desc, options.feature_level)),
            ),
            Some(Versions::One(version)) => {
                let caveats = desc.and_then(|desc| by_one(&desc, version));
                verdict(&format!(" by DirectML {version}"), caveats)
            }
            Some(Versions::All) => by_version(&desc),
        }
    })
}

/// Checks by the rules of a feature level.
fn by_level(desc: &OperatorDesc, level: FeatureLevel) -> Result<Vec<String>, Vec<Fault>> {
    dml_cuda::validate(desc, level).map_err(faults)?;
    Ok(Vec::new())
}

/// Checks by the rules of a version. Returns notes about what the version accepts but computes wrongly.
fn by_one(desc: &OperatorDesc, version: &DirectMlVersion) -> Result<Vec<String>, Vec<Fault>> {
    let caveats = validate_as(desc, version).map_err(faults)?;
    Ok(caveats
        .iter()
        .map(|caveat| format!("note: {caveat}"))
        .collect())
}

/// The broken rules as data, in the library's order.
fn faults(errors: ValidationErrors) -> Vec<Fault> {
    errors.errors().iter().map(|error| json!(error)).collect()
}

/// The message that a reader sees.
fn message_of(fault: &Fault) -> String {
    fault["message"].as_str().unwrap_or_default().to_owned()
}

/// The answer from notes on what is accepted, or why it is not.
fn verdict(by: &str, answer: Result<Vec<String>, Vec<Fault>>) -> Answer {
    let (accepted, notes, errors) = match answer {
        Ok(notes) => (true, notes, Vec::new()),
        Err(errors) => (false, Vec::new(), errors),
    };
    let mut lines = notes.clone();
    lines.extend(errors.iter().map(message_of));
    Answer {
        accepted,
        verdict: format!(": {}{by}", if accepted { "accepted" } else { "rejected" }),
        lines,
        event: json!({ "event": "verdict", "accepted": accepted, "notes": notes, "errors": errors }),
    }
}

/// The verdict of a version on a dispatchable, if that can be read.
fn recorded(version: &DirectMlVersion, desc: &Result<OperatorDesc, Vec<Fault>>) -> Recorded {
    let errors = match desc {
        Ok(desc) => by_one(desc, version).err().unwrap_or_default(),
        Err(unread) => unread.clone(),
    };
    Recorded {
        version: version.to_string(),
        accepted: errors.is_empty(),
        errors,
    }
}

impl Recorded {
    /// What a range of versions has in common: the first broken rule, or that there is none.
    fn first_message(&self) -> Option<String> {
        self.errors.first().map(message_of)
    }
}

/// The answer which recorded versions accept. It has a line for each range of versions that rejects, with the first
/// broken rule, or one line if the dispatchable cannot be read.
fn by_version(desc: &Result<OperatorDesc, Vec<Fault>>) -> Answer {
    let verdicts: Vec<Recorded> = DirectMlVersion::recorded()
        .map(|version| recorded(&version, desc))
        .collect();
    let (mut accepting, mut lines) = (Vec::new(), Vec::new());
    // Neighbours with the same first error are one range.
    for range in verdicts.chunk_by(|a, b| a.first_message() == b.first_message()) {
        let (first, last) = (&range[0].version, &range[range.len() - 1].version);
        let span = match range.len() {
            1 => first.clone(),
            _ => format!("{first} to {last}"),
        };
        match range[0].errors.first() {
            // Every version says the same about what cannot be read.
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
    Answer {
        accepted,
        verdict: format!(": accepted by {accepting}"),
        lines,
        event: json!({ "event": "versions", "verdicts": verdicts }),
    }
}

/// The GPUs whose times the costs of all kernels are fitted to.
const TIMED: [&str; 2] = ["H100", "H200"];

/// Answers how each dispatchable would run on the target or the device, or which rules it breaks.
pub fn explain(document: &Document, device: &Device, options: &Options) -> Result<ExitCode> {
    let target = match options.target {
        Some(target) => target.to_string(),
        None => device.name().to_owned(),
    };
    let name = target.to_uppercase();
    let is_timed = TIMED.iter().any(|timed| name.contains(timed));
    if !is_timed && (options.target.is_some() || device.ordinal().is_some()) {
        complain!(
            "NOTE: no GPU '{target}' was timed: the estimates use the coefficients of {}",
            TIMED.join(" and ")
        );
    }
    if options.format == Format::Text {
        say!("Planned for '{target}'")?;
    }
    print(document, options.format, |desc| {
        let explained = desc.and_then(|desc| plan(desc, device, options));
        let (text, event) = match &explained {
            Ok(explanation) => {
                let text = explanation.to_string();
                let Explanation {
                    dimensions, modes, ..
                } = explanation;
                let event = json!({
                    "event": "plan", "target": target, "dimensions": dimensions, "modes": modes, "text": text
                });
                (text, event)
            }
            Err(error) => (
                error.clone(),
                json!({ "event": "plan", "target": target, "error": error }),
            ),
        };
        Answer {
            accepted: explained.is_ok(),
            verdict: String::new(),
            lines: text.lines().map(str::to_owned).collect(),
            event,
        }
    })
}

/// How an operator would run. A target needs no GPU. On a device the operator is compiled.
fn plan(desc: OperatorDesc, device: &Device, options: &Options) -> Result<Explanation> {
    let operator = device
        .create_operator(desc)
        .map_err(|errors| errors.to_string())?;
    let chosen = device.compile_options();
    match &options.target {
        Some(target) => Ok(operator.explain_with(target, chosen)),
        None => match device.compile_operator_with(&operator, chosen) {
            Ok(compiled) => Ok(compiled.explain()),
            Err(error) => Err(error.to_string()),
        },
    }
}
