//! Signals that ask a process to end.

use std::sync::Once;

/// The id of the bench that started this program. On Linux it ends with that, whatever ends it.
pub const OF_A_BENCH: &str = "DML_CUDA_OF_A_BENCH";

/// Calls `ended` for each of them, with the exit code that it asks for: 128 and its number. Only the first call counts.
pub fn on_end(ended: fn(i32)) {
    static ONCE: Once = Once::new();
    // Without a handler a signal ends the process as usual.
    ONCE.call_once(|| {
        #[cfg(unix)]
        {
            use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
            let wanted = [SIGINT, SIGTERM, SIGHUP]
                .into_iter()
                .filter(|&signal| !is_ignored(signal));
            // Without a thread, signals must keep their effect: they are taken when it waits for them.
            let (send, receive) = std::sync::mpsc::channel::<signal_hook::iterator::Signals>();
            let handle = move || {
                receive
                    .iter()
                    .for_each(|mut all| all.forever().for_each(|signal| ended(128 + signal)))
            };
            if std::thread::Builder::new().spawn(handle).is_ok() {
                let _ =
                    signal_hook::iterator::Signals::new(wanted).map(|signals| send.send(signals));
            }
        }
        #[cfg(not(unix))]
        let _ = ctrlc::set_handler(move || ended(130));
    });
}

/// Makes a write past the process's limit of a file's size an error. By default a signal ends the process there.
#[cfg(unix)]
pub fn outlive_limits() {
    use signal_hook::consts::SIGXFSZ;
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
    ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
