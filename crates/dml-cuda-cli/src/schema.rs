//! What tells runs and reports from other files.

use std::cmp::Ordering;

use serde::Deserialize;

use crate::out::shown;

/// Fails if a document's schema is not the one that this program knows.
pub fn check(text: &str, known: u32) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(expecting = "an object")]
    struct Versioned {
        schema: u32,
    }
    let unreadable = |error| format!("it is not JSON with a schema: {}", shown(&in_our_words(&error)));
    let Versioned { schema } = serde_json::from_str(text).map_err(unreadable)?;
    let release = match schema.cmp(&known) {
        Ordering::Less => "an older",
        Ordering::Equal => return Ok(()),
        Ordering::Greater => "a newer",
    };
    Err(format!("its schema is {schema}, must be {known}: {release} release of dml-cuda wrote it"))
}

/// What serde found, as the other errors say it.
pub fn in_our_words(error: &serde_json::Error) -> String {
    const WORDS: [(&str, &str); 13] = [
        ("no variant of enum Outcome found in flattened data", "without each, medians, bytes, error or not_compared"),
        ("missing field", "without the member"),
        ("duplicate field", "twice the member"),
        ("unknown variant", "the value"),
        ("EOF while parsing", "it ends within"),
        ("invalid type: ", ""),
        ("invalid value: ", ""),
        (", expected", ", must be"),
        ("sequence, must", "list, must"),
        ("map, must", "object, must"),
        ("be a sequence", "be a list"),
        ("be f64", "be a number"),
        ("be u", "be a whole number of type u"),
    ];
    WORDS.iter().fold(error.to_string(), |text, (from, to)| text.replace(from, to))
}

/// Whether a text may be a run, of any version: no model replaces it.
pub fn is_run(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('{') && text.contains("\"schema\"")
}

/// Whether a text is empty, or has the beginning and the other mark of a report, also of an older release.
pub fn is_report(text: &str) -> bool {
    const PAGE: &str =
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"generator\" content=\"dml-cuda\">";
    const MARKS: [(&[&str], &str); 5] = [
        (
            &[
                "A: ",
                "A is ",
                "A runs at ",
                "A has no baseline",
                "A and B are ",
                "B is ",
                "Not decided: ",
                "- **A: ",
                "**A is ",
                "**A runs at ",
                "**A has no baseline",
                "**A and B are ",
                "**B is ",
                "**Not decided: ",
            ],
            "of baseline",
        ),
        (&["case,type,mode,bytes,run,"], "of_baseline"),
        (&["{\n  \"verdicts\": [", "{\n  \"runs\": ["], "\"not_compared\": ["),
        (&[PAGE], "</html>"),
        (&["<svg class=\"dml-cuda\""], "</svg>"),
    ];
    let is_marked =
        |(begin, within): &(&[&str], &str)| begin.iter().any(|begin| text.starts_with(begin)) && text.contains(within);
    text.is_empty() || MARKS.iter().any(is_marked)
}
