//! Marks by which results files and reports are told from other files.
//!
//! `--overwrite` must never destroy a file of something else, so that this program only writes over what it knows:
//!
//! - A results file is JSON with a `schema`, a number that grows when the format changes.
//! - A report of any format has a mark, `dml-cuda-report:` and a checksum of the report's ASCII characters, without spaces
//!   and without the mark. A report whose words somebody has edited no longer has its checksum, and is kept.

use std::cmp::Ordering;

use serde::Deserialize;

use crate::out::shown;

/// Fails if a document's schema is not the one that this program knows.
pub fn check(text: &str, known: u32) -> Result<(), String> {
    #[derive(Deserialize)]
    #[serde(expecting = "an object")]
    // All that is read of a file before its version is known.
    struct Versioned {
        schema: u32,
    }
    let Versioned { schema } = serde_json::from_str(text).map_err(|error| {
        let why = plain_message(&error);
        format!("it is not JSON with a schema: {}", shown(&why))
    })?;
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
    // What serde says, and what this program says instead. The order counts: later ones see what earlier ones left.
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

/// Whether a text may be a results file, of any version. No file of a model replaces one.
pub fn is_results(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{')
        && text.contains("\"schema\"")
}

/// FNV-1a, in hexadecimal digits.
pub fn checksum(bytes: impl IntoIterator<Item = u8>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// What a mark is found by.
const BEGIN_OF_MARK: &str = "dml-cuda-report:";

/// The place of a report's mark, until the report is complete.
pub const MARK: &str = "dml-cuda-report:0000000000000000";

/// The mark by which a report of any format is recognized, unless it was edited: the checksum of all other ASCII
/// characters except spaces. It outlives other line ends, byte order marks and wrong encodings.
fn mark(report: &str, place: &str) -> String {
    let text = report.replace(place, "");
    let checksum = checksum(text.bytes().filter(u8::is_ascii_graphic));
    format!("{BEGIN_OF_MARK}{checksum}")
}

/// A complete report with its mark.
pub fn marked(report: &str) -> String {
    report.replace(MARK, &mark(report, MARK))
}

/// Whether a text is empty, or a report as it was written, so that nothing of anybody else is lost with it.
pub fn may_be_overwritten(text: &str) -> bool {
    if text.trim_matches('\u{feff}').trim().is_empty() {
        return true;
    }
    // Other marks may be in labels. More than a few are not worth the time.
    for (at, _) in text.match_indices(BEGIN_OF_MARK).take(9) {
        let place = text.get(at..at + MARK.len());
        if place.is_some_and(|place| mark(text, place) == place) {
            return true;
        }
    }
    false
}
