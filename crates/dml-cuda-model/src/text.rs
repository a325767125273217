//! Text of files and other programs as it can be printed.
//!
//! A name in a model may have control characters that move a terminal's cursor or change its title, characters that turn the
//! direction of a line, or a length of megabytes. No message repeats any of that.

use std::path::Path;

/// Text of a file or another program as it can be printed: no control characters, none that turn text around or
/// break lines, and not without end.
pub fn shown(text: &str) -> String {
    shown_to(200, text)
}

/// At most `most` characters, and a mark if there are others.
fn shown_to(most: usize, text: &str) -> String {
    let end = if text.chars().nth(most).is_some() {
        "…"
    } else {
        ""
    };
    text.chars().take(most).map(escaped).collect::<String>() + end
}

/// A text in one line, as [`shown`] shows it, but whole.
pub fn shown_whole(text: &str) -> String {
    text.chars().map(escaped).collect()
}

/// Every line of a text, whole.
pub fn shown_lines(text: &str) -> String {
    text.split('\n')
        .map(shown_whole)
        .collect::<Vec<_>>()
        .join("\n")
}

/// A path, whole if it is no longer than Linux allows.
pub fn shown_path(path: &Path) -> String {
    shown_to(1 << 12, &path.to_string_lossy())
}

/// A character, or its escape if a terminal would obey it.
fn escaped(c: char) -> String {
    let misleads = matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || misleads {
        c.escape_default().to_string()
    } else {
        c.to_string()
    }
}
