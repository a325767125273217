//! A runner's process. It has a limit of time and a limit of bytes that it may print.
//!
//! Everything that could go wrong in another program is an error here, and never the end of `bench`:
//!
//! | the program | what happens |
//! | --- | --- |
//! | takes more than the `--timeout` | it is ended, and that is its error |
//! | prints more than 64 MiB on a stream | it is ended, and that is its error |
//! | leaves processes of its own behind | they are ended |
//!
//! Its streams are files, so that no thread must read them. On Unix the program leads a process group, on Windows it is in
//! a job, so that its own processes end with it.
//!
//! A signal that ends this program ends the process first.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::out::shown_path;
use crate::signals;

/// Bytes that a process may print on each stream.
const MOST_BYTES: u64 = 64 << 20;

/// The exit code that a signal asks for, or 0.
static INTERRUPTED: AtomicI32 = AtomicI32::new(0);

/// Makes signals end the runner's process, after which files are written and folders removed. A second signal ends this
/// program at once, so that temporary folders and a file under a temporary name may stay.
pub fn end_on_signals() {
    signals::on_end(|code| {
        if INTERRUPTED.swap(code, Ordering::Relaxed) > 0 {
            std::process::exit(code);
        }
    });
}

/// Whether a signal has asked this program to end.
pub fn is_interrupted() -> bool {
    exit_code() > 0
}

/// The exit code that a signal asks for, or 0.
pub fn exit_code() -> i32 {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// How a process ended, and what it printed.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Why a program did not run to its end, or has no answer.
pub struct Failure {
    pub message: String,
    /// Whether it took more than the limit of time.
    pub is_late: bool,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self {
            message,
            is_late: false,
        }
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.message
    }
}

/// The error of a file or a folder among the temporary ones.
pub fn no_temporary(error: io::Error) -> String {
    format!(
        "nothing can be written to the temporary folder {}: {error}",
        shown_path(&std::env::temp_dir())
    )
}

/// Runs a command to its end, or ends it at a limit, which is an error.
pub fn run_to_end(command: &mut Command, limit: Duration) -> Result<Ended, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| format!("{name} cannot be started: {error}");
    // Files, unlike pipes, need no thread that reads them.
    let mut streams = [
        tempfile::tempfile().map_err(no_temporary)?,
        tempfile::tempfile().map_err(no_temporary)?,
    ];
    let [stdout, stderr] = [
        streams[0].try_clone().map_err(failed)?,
        streams[1].try_clone().map_err(failed)?,
    ];
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .map_err(failed)?;
    #[cfg(windows)]
    let others = job(&child);
    let status = wait(&mut child, &streams, limit);
    end(&mut child);
    #[cfg(windows)]
    drop(others);
    let status = status?;
    let [stdout, stderr] = streams.each_mut().map(read);
    let ended = Ended {
        status,
        stdout: stdout?,
        stderr: stderr?,
    };
    if !status.success() && ended.stderr.is_empty() {
        // The disk may be full, so that the program could not say why it failed. Writing a byte where it would have
        // written then fails as well, and its error says why.
        streams[1].write_all(b"\n").map_err(no_temporary)?;
    }
    Ok(ended)
}

/// Waits for the end, for a limit or for a signal. The caller ends the process in every case.
fn wait(child: &mut Child, streams: &[File], limit: Duration) -> Result<ExitStatus, Failure> {
    let begun = Instant::now();
    loop {
        let status = child.try_wait().map_err(|error| error.to_string())?;
        if streams
            .iter()
            .any(|file| file.metadata().is_ok_and(|found| found.len() > MOST_BYTES))
        {
            return Err(format!("it printed more than {} MiB", MOST_BYTES >> 20).into());
        }
        if let Some(status) = status {
            return Ok(status);
        }
        if is_interrupted() {
            return Err("it was interrupted".into());
        }
        if begun.elapsed() >= limit {
            return Err(Failure {
                message: format!("it took more than {} s, the --timeout", limit.as_secs()),
                is_late: true,
            });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A job with the process, and with all that it starts. They end when this is dropped, even if this program is
/// killed.
#[cfg(windows)]
#[allow(unsafe_code)]
fn job(child: &Child) -> Option<std::os::windows::io::OwnedHandle> {
    use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
    use windows_sys::Win32::System::JobObjects as jobs;
    let mut limits = jobs::JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = jobs::JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    let (limits, size) = ((&raw const limits).cast(), size_of_val(&limits) as u32);
    // SAFETY: a job's handle is its own or null, which the calls refuse. The limits have this size.
    unsafe {
        let job = jobs::CreateJobObjectW(std::ptr::null(), std::ptr::null());
        jobs::SetInformationJobObject(job, jobs::JobObjectExtendedLimitInformation, limits, size);
        jobs::AssignProcessToJobObject(job, child.as_raw_handle());
        (!job.is_null()).then(|| OwnedHandle::from_raw_handle(job))
    }
}

/// Ends the process, and on Unix others that it started.
fn end(child: &mut Child) {
    #[cfg(unix)]
    {
        use nix::sys::signal::{killpg, Signal};
        let _ = killpg(
            nix::unistd::Pid::from_raw(child.id() as i32),
            Signal::SIGKILL,
        );
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads everything that was printed.
fn read(file: &mut File) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.take(MOST_BYTES).read_to_end(&mut bytes))
        .map_err(|error| format!("its output cannot be read: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
