//! Names that are nearly right.

/// How alike two names are, from 0 to 1, in any case.
pub fn likeness(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(&a.to_lowercase(), &b.to_lowercase())
}

/// The name that is most like a word; of several the first.
pub fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    names.iter().rev().copied().max_by(|a, b| likeness(word, a).total_cmp(&likeness(word, b)))
}
