//! Standard output: a full disk is an error, a closed pipe is not. Standard error: every failure is ignored.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

pub use dml_cuda_model::text::{shown, shown_lines, shown_path, shown_whole};

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

/// Puts the name of a file before an error.
pub fn in_file(path: &Path) -> impl Fn(String) -> String + Copy + '_ {
    move |error| format!("{}: {error}", shown_path(path))
}

/// `println!` that returns its error.
macro_rules! say {
    ($($argument:tt)*) => { crate::out::with(|out| writeln!(out, $($argument)*)) };
}
pub(crate) use say;
