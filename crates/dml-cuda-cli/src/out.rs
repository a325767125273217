//! Standard output: a full disk is an error, a reader that has gone is none. Standard error: nothing that happens to it matters.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Writes a line.
pub fn line(text: Arguments<'_>) -> Result<(), String> {
    with(|out| writeln!(out, "{text}"))
}

/// Hands standard output to `write`, buffered.
pub fn with(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(format!("writing to standard output failed: {error}")),
    }
}

/// `println!` that returns its error.
macro_rules! say {
    ($($argument:tt)*) => { crate::out::line(format_args!($($argument)*)) };
}
pub(crate) use say;

/// `eprintln!` that does not panic where standard error is closed or full.
macro_rules! complain {
    ($($argument:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}
pub(crate) use complain;
