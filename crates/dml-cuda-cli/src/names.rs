//! Names that are nearly right.

use crate::out::shown;

/// How alike two names are, from 0 to 1, in any case.
pub fn likeness(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(&a.to_lowercase(), &b.to_lowercase())
}

/// The name that is most like a word; of several the first.
pub fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    names.iter().rev().copied().max_by(|a, b| likeness(word, a).total_cmp(&likeness(word, b)))
}

/// The end of a message about a word that is none of the names.
pub fn or_nearest(word: &str, names: &[&str]) -> String {
    nearest(word, names).map_or_else(String::new, |name| format!("; the nearest name is \"{}\"", shown(name)))
}
