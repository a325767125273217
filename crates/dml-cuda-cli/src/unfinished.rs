//! Removes unfinished files if a write fails or a signal ends the process, so that nothing of them is left.
//!
//! Each new file is noted in a list behind a lock:
//!
//! ```text
//! create the file, note it      locked
//! write its bytes               a signal may come: it locks, removes all that is noted, and exits
//! rename it, note the new name  locked
//! forget all                    locked, when the whole write has succeeded
//! ```
//!
//! So after a signal either all new files of a write are there, or none. `bench` is the exception: its first signal ends only
//! the case, so that what is known is written. A second one ends the process at once (`process::end_on_signals`), and what
//! is unfinished stays.

use std::fs;
use std::io::{self, ErrorKind::AlreadyExists};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::signals;

/// New files and folders of a write that is not complete, in the order in which they were made.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The list, locked. A thread that has panicked while it held the lock does not keep the others from removing files.
pub fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what `write` has made if it fails, or if a signal (SIGINT, SIGTERM, SIGHUP) ends the process before the
/// outermost call returns. In `bench` signals have another handler, and it removes nothing.
pub fn all_or_nothing<T>(write: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    signals::on_end(|code| {
        // The lock stays until the process ends, so that no other file is started.
        let unfinished = unfinished();
        remove(&unfinished);
        std::process::exit(code);
    });
    let before = unfinished().len();
    let outcome = write();
    let mut unfinished = unfinished();
    match outcome {
        Err(_) => remove(&unfinished.split_off(before)),
        Ok(_) if before == 0 => unfinished.clear(),
        Ok(_) => {}
    }
    outcome
}

/// Removes files, and folders after what is in them.
fn remove(made: &[PathBuf]) {
    for path in made.iter().rev() {
        // A folder stays if another process has put something into it.
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }
}

/// Makes a new file or a new folder.
fn make(path: &Path, create: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let mut unfinished = unfinished();
    create(path)?;
    unfinished.push(path.to_owned());
    Ok(())
}

/// Makes a folder, and those that it is in, unless they are there.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
        .collect();
    // From the outermost on.
    missing.reverse();
    for folder in missing {
        match make(folder, |folder| fs::create_dir(folder)) {
            Err(error) if error.kind() == AlreadyExists && folder.is_dir() => {}
            made => made?,
        }
    }
    Ok(())
}

/// Fills a folder, which is new or empty, or leaves nothing in it. Two processes never fill one folder.
pub fn fill(folder: &Path, fill: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    all_or_nothing(|| {
        make_folder(folder).map_err(|error| error.to_string())?;
        // One process makes this file, and has it until the folder is full.
        let claim = folder.join(".dml-cuda-unfinished");
        make(&claim, |claim| fs::File::create_new(claim).map(drop)).map_err(claim_error)?;
        let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
        if entries.count() > 1 {
            return Err("the folder is not empty; name one that is empty or not there".to_owned());
        }
        fill()?;
        let mut unfinished = unfinished();
        fs::remove_file(&claim).map_err(|error| error.to_string())?;
        unfinished.clear();
        Ok(())
    })
}

/// Why a folder cannot be claimed.
fn claim_error(error: io::Error) -> String {
    match error.kind() {
        AlreadyExists => {
            "another process is filling it, or was killed while it did; name another folder"
                .to_owned()
        }
        _ => error.to_string(),
    }
}
