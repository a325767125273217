//! Standard output: a full disk is an error, a closed pipe is not. Standard error: every failure is ignored.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Writes a line.
pub fn line(text: Arguments<'_>) -> Result<(), String> {
    with(|out| writeln!(out, "{text}"))
}

/// Calls `write` with standard output, buffered.
pub fn with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(format!("writing to standard output failed: {error}")),
    }
}

/// `println!` that returns its error.
macro_rules! say {
    ($($argument:tt)*) => { crate::out::line(format_args!($($argument)*)) };
}
pub(crate) use say;

/// `eprintln!` that does not panic if standard error is closed or full.
macro_rules! complain {
    ($($argument:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}
pub(crate) use complain;
