//! Names that are nearly right: the end of a message that says what a misspelt word may mean.
//!
//! Likeness is that of Jaro and Winkler, which forgives swapped letters and prefers words that begin alike.

use crate::text::shown;

/// Names that are less alike have nothing in common.
const LEAST_LIKENESS: f64 = 0.7;

/// How alike two names are, from 0 to 1, in any case. A name that ends with the other one is as good as right.
pub fn likeness(a: &str, b: &str) -> f64 {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let is_end = a.len().min(b.len()) > 2 && (a.ends_with(&b) || b.ends_with(&a));
    strsim::jaro_winkler(&a, &b).max(if is_end { 0.99 } else { 0.0 })
}

/// The name that is most like a word, if any is; of several the first.
pub fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let alike = names
        .iter()
        .rev()
        .copied()
        .filter(|name| likeness(word, name) >= LEAST_LIKENESS);
    alike.max_by(|a, b| likeness(word, a).total_cmp(&likeness(word, b)))
}

/// The end of a message about a word that is none of the names.
pub fn or_nearest(word: &str, names: &[&str]) -> String {
    match nearest(word, names) {
        Some(name) => format!("; the nearest name is \"{}\"", shown(name)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_a_near_name_is_named() {
        let names = ["In", "Lengths", "Out"];
        assert_eq!(nearest("lenghts", &names), Some("Lengths"));
        assert_eq!(nearest("Ou", &names), Some("Out"));
        for far in ["nosuch", "scale", "x"] {
            assert_eq!(nearest(far, &names), None, "{far}");
        }
    }
}
