//! Signals that ask a process to end.
//!
//! On Unix they are SIGINT (Ctrl-C), SIGTERM and SIGHUP, and the exit code is 128 and the signal's number. A signal that
//! the program was started to ignore stays ignored: nohup and scripts rely on it. Elsewhere Ctrl-C is the only one.

use std::sync::Once;

/// The variable with the process id of the bench that started this program. On Linux it ends with that, whatever ends it.
pub const OF_A_BENCH: &str = "DML_CUDA_OF_A_BENCH";

/// Asks Linux to end this process with the bench that started it, if one did. Fails if that has ended already.
#[cfg(target_os = "linux")]
pub fn end_with_bench() -> Result<(), ()> {
    let Ok(bench) = std::env::var(OF_A_BENCH) else {
        return Ok(());
    };
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::SIGKILL);
    // The bench may have ended before the call, and then no signal comes.
    if std::os::unix::process::parent_id().to_string() == bench {
        Ok(())
    } else {
        Err(())
    }
}

/// Calls `ended` for each signal, with the exit code that it asks for. Only the first call of this function counts.
pub fn on_end(ended: fn(i32)) {
    static ONCE: Once = Once::new();
    // Without a handler a signal ends the process as usual.
    ONCE.call_once(|| {
        #[cfg(unix)]
        handle(ended);
        #[cfg(not(unix))]
        let _ = ctrlc::set_handler(move || ended(130));
    });
}

/// Starts a thread that waits for signals.
///
/// A signal loses its usual effect as soon as it is taken. So the thread starts first, and gets the signals through a
/// channel: if there can be no thread, Ctrl-C must still end the program.
#[cfg(unix)]
fn handle(ended: fn(i32)) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    let (send, receive) = std::sync::mpsc::channel::<Signals>();
    let wait = move || {
        for mut signals in receive {
            for signal in signals.forever() {
                ended(128 + signal);
            }
        }
    };
    if std::thread::Builder::new().spawn(wait).is_ok() {
        let mut wanted = vec![SIGINT, SIGTERM, SIGHUP];
        wanted.retain(|signal| !is_ignored(*signal));
        if let Ok(signals) = Signals::new(wanted) {
            let _ = send.send(signals);
        }
    }
}

/// Makes a write past the process's limit of a file's size (`ulimit -f`) an error. By default a signal ends the process
/// there, and what it has written stays.
#[cfg(unix)]
pub fn outlive_limits() {
    use signal_hook::consts::SIGXFSZ;
    // Nothing reads it: a handler must do something, and this one sets a flag.
    static COMES: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    // Programs that this one starts do not inherit a handler, as they would inherit that the signal is ignored.
    if !is_ignored(SIGXFSZ) {
        let _ = signal_hook::flag::register(SIGXFSZ, &COMES);
    }
}

/// Whether the program was started with the signal ignored: by nohup, or as a script's job in the background.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Hexadecimal digits, whose lowest bit is signal 1.
    let mask = u64::from_str_radix(ignored.unwrap_or("0").trim(), 16);
    mask.is_ok_and(|mask| mask >> (signal - 1) & 1 == 1)
}
