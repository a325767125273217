//! A runner's process: it may take a limit of time and print a limit of bytes, and no more.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that a process may print on each stream.
const MOST_BYTES: u64 = 64 << 20;

/// How a process ended, and what it printed.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a command to its end, or ends it at a limit, which is an error.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ended, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
    let is_too_long = Arc::new(AtomicBool::new(false));
    let [stdout, stderr] = [child.stdout.take().map(boxed), child.stderr.take().map(boxed)]
        .map(|stream| reader(stream, is_too_long.clone()));
    // A process that the program left behind may keep its streams.
    let has_ended = || stdout.is_finished() && stderr.is_finished();
    let status = wait(&mut child, limit, &is_too_long, has_ended)?;
    let bytes = |reader: std::thread::JoinHandle<Vec<u8>>| reader.join().unwrap_or_default();
    Ok(Ended { status, stdout: bytes(stdout), stderr: bytes(stderr) })
}

fn boxed(stream: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(stream)
}

fn reader(stream: Option<Box<dyn Read + Send>>, is_too_long: Arc<AtomicBool>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let stream = stream.unwrap_or_else(|| boxed(io::empty()));
        let _ = stream.take(MOST_BYTES + 1).read_to_end(&mut bytes);
        is_too_long.fetch_or(bytes.len() as u64 > MOST_BYTES, Ordering::Relaxed);
        bytes
    })
}

fn wait(
    child: &mut Child,
    limit: Duration,
    is_too_long: &AtomicBool,
    has_ended: impl Fn() -> bool,
) -> Result<ExitStatus, String> {
    let begun = Instant::now();
    loop {
        if is_too_long.load(Ordering::Relaxed) {
            return Err(killed(child, format!("it printed more than {} MiB", MOST_BYTES >> 20)));
        }
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if has_ended() => return Ok(status),
            _ => {}
        }
        if begun.elapsed() >= limit {
            return Err(killed(child, format!("it took more than {} s, the --timeout", limit.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(if begun.elapsed().as_millis() < 100 { 1 } else { 10 }));
    }
}

fn killed(child: &mut Child, why: String) -> String {
    let _ = child.kill();
    let _ = child.wait();
    why
}
