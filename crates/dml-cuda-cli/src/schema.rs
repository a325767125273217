//! Marks that tell runs and reports from other files.

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
    let unreadable = |error| {
        format!(
            "it is not JSON with a schema: {}",
            shown(&plain_message(&error))
        )
    };
    let Versioned { schema } = serde_json::from_str(text).map_err(unreadable)?;
    let release = match schema.cmp(&known) {
        Ordering::Less => "an older",
        Ordering::Equal => return Ok(()),
        Ordering::Greater => "a newer",
    };
    Err(format!(
        "its schema is {schema}, but must be {known}: {release} release of dml-cuda wrote it"
    ))
}

/// Converts an error of serde to the style of the other messages.
pub fn plain_message(error: &serde_json::Error) -> String {
    const WORDS: [(&str, &str); 14] = [
        (
            "no variant of enum Outcome found in flattened data",
            "without each, medians, bytes, error or not_compared",
        ),
        ("missing field", "without the member"),
        ("duplicate field", "twice the member"),
        ("unknown variant", "the value"),
        ("EOF while parsing", "it ends within"),
        ("invalid type: ", ""),
        ("invalid value: ", ""),
        (", expected", ", but must be"),
        ("sequence, but", "list, but"),
        ("map, but", "object, but"),
        ("be a sequence", "be a list"),
        ("be f64", "be a number"),
        ("expected value at", "no JSON value is at"),
        ("be u", "be a whole number of type u"),
    ];
    WORDS
        .iter()
        .fold(error.to_string(), |text, (from, to)| text.replace(from, to))
}

/// Whether a text may be a run, of any version: no model replaces it.
pub fn is_run(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{')
        && text.contains("\"schema\"")
}

/// FNV-1a, in hexadecimal digits.
pub fn checksum(bytes: impl IntoIterator<Item = u8>) -> String {
    let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!(
        "{:016x}",
        bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, add)
    )
}

const BEGIN_OF_MARK: &str = "dml-cuda-report:";

/// The place of a report's mark, until the report is complete.
pub const MARK: &str = "dml-cuda-report:0000000000000000";

/// The mark by which a report of any format is recognized, unless it was edited: the checksum of all other ASCII
/// characters except spaces. It outlives other line ends, byte order marks and wrong encodings.
fn mark(report: &str, place: &str) -> String {
    BEGIN_OF_MARK.to_owned()
        + &checksum(
            report
                .replace(place, "")
                .bytes()
                .filter(u8::is_ascii_graphic),
        )
}

/// A complete report with its mark.
pub fn marked(report: &str) -> String {
    report.replace(MARK, &mark(report, MARK))
}

/// Whether a text is empty, or a report as it was written.
pub fn is_report(text: &str) -> bool {
    let at_places = text
        .match_indices(BEGIN_OF_MARK)
        .filter_map(|(at, _)| text.get(at..at + MARK.len()));
    text.trim_matches('\u{feff}').trim().is_empty()
        || at_places.take(9).any(|place| mark(text, place) == place)
}
