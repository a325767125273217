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
            if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM]) {
                std::thread::spawn(move || signals.forever().for_each(|signal| ended(128 + signal)));
            }
        }
        #[cfg(not(unix))]
        let _ = ctrlc::set_handler(move || ended(130));
    });
}
