//! Standard output: a full disk is an error, a closed pipe is not. Standard error: every failure is ignored.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// `eprintln!` that does not panic if standard error is closed or full.
macro_rules! complain {
    ($($argument:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}
pub(crate) use complain;

/// Set after a broken pipe. The command goes on: it may have files to write.
static HAS_NO_READER: AtomicBool = AtomicBool::new(false);

/// Text of a file or another program as it can be printed: no control characters, none that turn text around or
/// break lines, and not without end.
pub fn shown(text: &str) -> String {
    const MOST: usize = 200;
    let end = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    text.chars().take(MOST).map(escaped).collect::<String>() + end
}

/// A text in one line, as [`shown`] shows it, but whole.
pub fn shown_whole(text: &str) -> String {
    text.chars().map(escaped).collect()
}

/// Every line of a text, whole.
pub fn shown_lines(text: &str) -> String {
    text.split('\n').map(shown_whole).collect::<Vec<_>>().join("\n")
}

/// A path, whole.
pub fn shown_path(path: &Path) -> String {
    shown_whole(&path.to_string_lossy())
}

fn escaped(c: char) -> String {
    let misleads = matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || misleads {
        c.escape_default().to_string()
    } else {
        c.to_string()
    }
}

/// Calls `write` with standard output, buffered.
pub fn with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
    if HAS_NO_READER.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = write(&mut out).and_then(|()| out.flush());
    // What is left in the buffer is not tried again.
    drop(out.into_parts());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            HAS_NO_READER.store(true, Ordering::Relaxed);
            Ok(())
        }
        other => other.map_err(|error| format!("writing to standard output failed: {error}")),
    }
}

/// `println!` that returns its error.
macro_rules! say {
    ($($argument:tt)*) => { crate::out::with(|out| writeln!(out, $($argument)*)) };
}
pub(crate) use say;
