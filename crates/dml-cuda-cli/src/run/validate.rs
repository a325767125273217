//! `--validate`: verdicts on the dispatchables of a model.

use std::fmt::Write as _;
use std::process::ExitCode;

use dml_cuda::{validate, validate_as, DirectMlVersion, FeatureLevel, OperatorDesc, ValidationError, ValidationErrors};
use serde_json::{json, Value};

use crate::model;
use crate::model::json::Document;
use crate::options::Format;
use crate::out::{self, shown};

/// Prints a line for each dispatchable, and one for each rule that it breaks at this level. Fails if any is broken.
pub fn at_level(document: &Document, level: FeatureLevel, format: Format) -> Result<ExitCode, String> {
    verdicts(document, "", format, |desc| validate(desc, level).map(|()| Vec::new()))
}

/// The same for a version of DirectML. Adds a note for each case that the version accepts but computes wrongly.
pub fn as_version(document: &Document, version: &DirectMlVersion, format: Format) -> Result<ExitCode, String> {
    let by = format!(" by DirectML {version}");
    verdicts(document, &by, format, |desc| {
        let caveats = validate_as(desc, version)?;
        Ok(caveats.iter().map(|caveat| format!("note: {caveat}")).collect())
    })
}

fn verdicts(
    document: &Document,
    by: &str,
    format: Format,
    answer: impl Fn(&OperatorDesc) -> Result<Vec<String>, ValidationErrors>,
) -> Result<ExitCode, String> {
    let mut all_accepted = true;
    let mut text = String::new();
    for (name, desc) in model::read_dispatchables(document)? {
        let answered = desc.map(|desc| answer(&desc));
        if format == Format::Json {
            all_accepted &= matches!(answered, Ok(Ok(_)));
            let _ = writeln!(text, "{}", verdict_event(&name, &answered));
            continue;
        }
        let (verdict, lines) = match answered {
            Ok(Ok(notes)) => ("accepted", notes),
            Ok(Err(errors)) => ("rejected", errors.errors().iter().map(ToString::to_string).collect()),
            Err(unreadable) => ("rejected", vec![unreadable]),
        };
        all_accepted &= verdict == "accepted";
        let _ = writeln!(text, "Dispatchable '{}': {verdict}{by}", shown(&name));
        lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    out::with(|out| out.write_all(text.as_bytes()))?;
    Ok(if all_accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A verdict with its broken rules as data.
fn verdict_event(name: &str, answered: &Result<Result<Vec<String>, ValidationErrors>, String>) -> Value {
    let (accepted, notes, errors) = match answered {
        Ok(Ok(notes)) => (true, notes.clone(), Vec::new()),
        Ok(Err(errors)) => (false, Vec::new(), errors.errors().iter().map(error_data).collect()),
        Err(unreadable) => (false, Vec::new(), vec![json!({ "message": unreadable })]),
    };
    json!({ "event": "verdict", "dispatchable": name, "accepted": accepted, "notes": notes, "errors": errors })
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

/// Prints for each dispatchable the recorded versions that accept it. Adds a line for each range of versions that rejects it, with the
/// first broken rule.
pub fn by_version(document: &Document, format: Format) -> Result<ExitCode, String> {
    let versions: Vec<DirectMlVersion> = DirectMlVersion::recorded().collect();
    let mut text = String::new();
    for (name, desc) in model::read_dispatchables(document)? {
        let desc = match desc {
            Ok(desc) => desc,
            Err(unreadable) if format == Format::Json => {
                let _ =
                    writeln!(text, "{}", json!({ "event": "versions", "dispatchable": name, "message": unreadable }));
                continue;
            }
            Err(unreadable) => {
                let _ = writeln!(text, "Dispatchable '{}': accepted by none\n  {unreadable}", shown(&name));
                continue;
            }
        };
        if format == Format::Json {
            let verdicts = versions.iter().map(|version| match validate_as(&desc, version) {
                Ok(_) => json!({ "version": version.to_string(), "accepted": true }),
                Err(errors) => {
                    let errors: Vec<Value> = errors.errors().iter().map(error_data).collect();
                    json!({ "version": version.to_string(), "accepted": false, "errors": errors })
                }
            });
            let verdicts: Vec<Value> = verdicts.collect();
            let _ = writeln!(text, "{}", json!({ "event": "versions", "dispatchable": name, "verdicts": verdicts }));
            continue;
        }
        // Ranges of versions with the same answer: the first broken rule, or `None` if accepted.
        let mut ranges: Vec<(Option<String>, Vec<&DirectMlVersion>)> = Vec::new();
        for version in &versions {
            let broken = validate_as(&desc, version).err().map(|errors| errors.errors()[0].to_string());
            match ranges.last_mut().filter(|(answer, _)| *answer == broken) {
                Some((_, range)) => range.push(version),
                None => ranges.push((broken, vec![version])),
            }
        }
        let accepting: Vec<String> =
            ranges.iter().filter(|(broken, _)| broken.is_none()).map(|(_, range)| span(range)).collect();
        let accepting = if accepting.is_empty() { "none".to_owned() } else { accepting.join(" and ") };
        let _ = writeln!(text, "Dispatchable '{}': accepted by {accepting}", shown(&name));
        for (broken, range) in &ranges {
            if let Some(broken) = broken {
                let _ = writeln!(text, "  {}: {broken}", span(range));
            }
        }
    }
    out::with(|out| out.write_all(text.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

fn span(range: &[&DirectMlVersion]) -> String {
    match range {
        [first, .., last] => format!("{first} to {last}"),
        [one] => one.to_string(),
        [] => String::new(),
    }
}
