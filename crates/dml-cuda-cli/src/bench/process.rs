//! A runner's process: it may take a limit of time and print a limit of bytes, and no more.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Bytes that a process may print on each stream.
pub const MOST_BYTES: u64 = 64 << 20;

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
    let ended = wait(&mut child, limit);
    if ended.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    ended
}

fn wait(child: &mut Child, limit: Duration) -> Result<Ended, String> {
    let begun = Instant::now();
    let (sender, printed) = channel();
    let read = |n: usize, stream: Option<Box<dyn Read + Send>>| {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stream.map(|stream| stream.take(MOST_BYTES + 1).read_to_end(&mut bytes));
            let _ = sender.send((n, bytes));
        });
    };
    read(0, child.stdout.take().map(|stream| Box::new(stream) as _));
    read(1, child.stderr.take().map(|stream| Box::new(stream) as _));
    let too_long = || format!("it took more than {} s, the --timeout", limit.as_secs());
    // A process that the program left behind may keep its streams.
    let mut both = [Vec::new(), Vec::new()];
    for _ in 0..both.len() {
        let (n, bytes) = printed.recv_timeout(limit.saturating_sub(begun.elapsed())).map_err(|_| too_long())?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(format!("it printed more than {} MiB", MOST_BYTES >> 20));
        }
        both[n] = bytes;
    }
    let [stdout, stderr] = both;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Ended { status, stdout, stderr });
        }
        if begun.elapsed() >= limit {
            return Err(too_long());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
