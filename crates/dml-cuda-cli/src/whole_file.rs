//! Writes files completely or not at all, even if writing fails or a signal ends the process. What nothing can be
//! renamed to, such as a mount point or a pipe, is written in place.

use std::fs::{self, Metadata, OpenOptions};
use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::{fchown, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use tempfile::NamedTempFile;

use crate::model::file::{is_held, may_pass, open, read_regular, text};
use crate::out::{self, shown_path};
use crate::schema;
use crate::unfinished::{all_or_nothing, make_folder, unfinished};

/// Describes an error of a file, with advice if another program may have it open. A file that does not exist is not
/// open.
fn with_advice(target: &Path) -> impl Fn(io::Error) -> String + '_ {
    let is_open = |error: &io::Error| is_held(error) && target.exists();
    let advice = "it may be open in another program, but must be closed there: ";
    move |error| format!("{}{error}", if is_open(&error) { advice } else { "" })
}

/// Writes a file, or replaces the bytes of one. Makes missing folders, follows links and keeps the file's owner, group
/// and mode. Refuses to replace a run.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let (target, replaced) = target(path)?;
    if replaced.is_some() && holds(&target, schema::is_run) {
        return Err("it is a results file, which only --overwrite replaces; choose another name".to_owned());
    }
    all_or_nothing(|| {
        make_folder(folder(&target)).map_err(|error| error.to_string())?;
        replace(&target, replaced, bytes).map_err(with_advice(&target))
    })
}

/// Writes a run or a report, a new file or over an older one, as the caller tells one.
pub fn write_result(path: &Path, bytes: &[u8], overwrite: bool, is_run: fn(&Path) -> bool) -> Result<(), String> {
    let (target, replaced) = may_write_result(path, overwrite, is_run)?;
    all_or_nothing(|| replace(&target, replaced, bytes).map_err(with_advice(&target)))
}

/// Saves a result that cannot be under its name: next to it, or in the temporary folder. The end of the error says
/// where.
pub fn save_elsewhere(path: &Path, bytes: &[u8]) -> String {
    let name = format!("-{}", path.file_name().unwrap_or_default().to_string_lossy());
    let beside = (!is_stream(path)).then(|| whole(folder(path)));
    let saved = beside.into_iter().chain([std::env::temp_dir()]).find_map(|folder| {
        let mut file = tempfile::Builder::new().prefix("dml-cuda-").suffix(&name).tempfile_in(folder).ok()?;
        file.write_all(bytes).ok()?;
        Some(file.keep().ok()?.1)
    });
    // Without the mark of long paths.
    let shown = |path: PathBuf| shown_path(&path).trim_start_matches(r"\\?\").to_owned();
    saved.map_or_else(String::new, |path| format!("; it is saved as {}", shown(path)))
}

/// Fails if a result's folder is not there: it may be misspelt, so no result makes one.
pub fn has_folder(path: &Path) -> Result<(), String> {
    let folder = folder(path);
    folder.is_dir().then_some(()).ok_or_else(|| format!("the folder {} is not there", shown_path(folder)))
}

/// Fails if a run or a report may not be written there: to no folder, or over a file that is neither of them.
fn may_write_result(path: &Path, overwrite: bool, is_run: fn(&Path) -> bool) -> Result<Target, String> {
    let (target, replaced) = target(path)?;
    has_folder(&target)?;
    // Open, it stays readable until it is known for what it is.
    let _open =
        replaced.as_ref().filter(|_| overwrite).map(|_| open(&target)).transpose().map_err(with_advice(&target))?;
    match &replaced {
        Some(_) if !overwrite => Err("it exists, but must be new; --overwrite replaces results and reports".to_owned()),
        Some(_) if !is_run(&target) && !holds(&target, schema::is_report) => {
            Err("it is neither a results file nor a report, which is all that --overwrite replaces".to_owned())
        }
        _ => Ok((target, replaced)),
    }
}

/// Fails if a result may not be written there, cannot replace what is there, or if no file can be made in its folder.
pub fn can_write_result(path: &Path, overwrite: bool, is_run: fn(&Path) -> bool) -> Result<(), String> {
    let (target, replaced) = may_write_result(path, overwrite, is_run)?;
    match replaced.map(|_| OpenOptions::new().write(true).open(&target)).transpose() {
        Ok(opened) if opened.is_some() || is_stream(&target) => Ok(()),
        // EACCES: a file of another user can be replaced.
        Err(error) if error.raw_os_error() != Some(13) => Err(with_advice(&target)(error)),
        _ => {
            let made = tempfile::tempfile_in(folder(&target)).map(drop);
            made.map_err(|error| format!("no file can be made in the folder {}: {error}", shown_path(folder(&target))))
        }
    }
}

/// Whether a path leads to a device, a pipe or standard output: it is written in place, and once.
pub fn is_stream(path: &Path) -> bool {
    is_stdout(path) || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Whether a path is the file of standard output. Writing it a second time would lose what is printed.
fn is_stdout(path: &Path) -> bool {
    matches!(path.to_str(), Some("-" | "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1"))
}

/// The file behind links, and what is there.
type Target = (PathBuf, Option<Metadata>);

fn target(path: &Path) -> Result<Target, String> {
    if path.as_os_str().as_encoded_bytes().last().is_some_and(|&last| std::path::is_separator(last.into())) {
        return Err("it is a folder, but must be a file".to_owned());
    }
    // The link of a pipe leads to no path.
    let target = match path.is_symlink() && !is_stream(path) {
        true => fs::canonicalize(path).map_err(|error| format!("it is a link that leads nowhere: {error}"))?,
        false => path.to_owned(),
    };
    // Windows finds its devices, such as NUL and CON, in every folder.
    let whole = std::path::absolute(&target).unwrap_or_default();
    match fs::metadata(&target) {
        _ if cfg!(windows) && whole.to_string_lossy().starts_with(r"\\.\") => {
            Err("it is a device of Windows, but must be a file".to_owned())
        }
        Ok(_) if is_stream(&target) => Ok((target, None)),
        Ok(metadata) if metadata.is_dir() => Err("it is a folder, but must be a file".to_owned()),
        Ok(metadata) if metadata.permissions().readonly() => Err("it is read-only".to_owned()),
        #[cfg(unix)]
        Ok(metadata) if metadata.nlink() > 1 => {
            let required = "must have one, because its other names would keep the older bytes; delete this one first";
            Err(format!("it has {} hard links, but {required}", metadata.nlink()))
        }
        Ok(metadata) => Ok((target, Some(metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((target, None)),
        Err(error) => Err(error.to_string()),
    }
}

fn holds(target: &Path, is_it: fn(&str) -> bool) -> bool {
    read_regular(target).and_then(text).is_ok_and(|text| is_it(&text))
}

fn folder(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A folder's whole path: on Windows with the mark by which it may be longer than 260 characters, elsewhere as it is
/// written.
fn whole(folder: &Path) -> PathBuf {
    let found = if cfg!(windows) { folder.canonicalize() } else { std::path::absolute(folder) };
    found.unwrap_or_else(|_| folder.to_owned())
}

/// Writes a file in place. No signal ends that halfway, unless it is a pipe, which may wait for its reader.
fn write_in_place(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let _unfinished = (!is_stream(target)).then(unfinished);
    OpenOptions::new().write(true).truncate(true).open(target)?.write_all(bytes)
}

fn replace(target: &Path, replaced: Option<Metadata>, bytes: &[u8]) -> io::Result<()> {
    if is_stdout(target) {
        return out::with(|out| out.write_all(bytes)).map_err(io::Error::other);
    }
    if is_stream(target) {
        return write_in_place(target, bytes);
    }
    let place = whole(folder(target)).join(target.file_name().unwrap_or_default());
    let mut file = match begin(folder(&place)) {
        // A full disk keeps the older bytes.
        Err(error) if replaced.is_some() && matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            return write_in_place(target, bytes);
        }
        begun => begun?,
    };
    // Before the first byte, so that no one else reads a private file.
    let mode = replaced.as_ref().map_or(Ok(()), |replaced| take_over(file.as_file(), replaced));
    // Errors of the file itself do not have its name.
    let written = file.as_file_mut().write_all(bytes);
    // From here on no signal removes the file. It is renamed, or its `Drop` removes it.
    let mut unfinished = unfinished();
    unfinished.pop();
    written.and(mode)?;
    let begun = Instant::now();
    loop {
        match file.persist(&place) {
            Err(failed) if cfg!(windows) && may_pass(&failed.error, begun) => file = failed.file,
            // It is a mount point, or of another user in a folder such as /tmp.
            Err(failed) if replaced.is_some() => {
                drop(unfinished);
                return write_in_place(target, bytes).map_err(|error| match failed.file.keep() {
                    Ok((_, copy)) => io::Error::other(format!("{error}; it is saved as {}", shown_path(&copy))),
                    Err(_) => error,
                });
            }
            persisted => {
                persisted?;
                unfinished.extend(replaced.is_none().then(|| target.to_owned()));
                return Ok(());
            }
        }
    }
}

/// Gives a new file the group, the mode and, as root, the owner of the one that it replaces. The owner may be another
/// one, so it does not run as its owner.
#[cfg(unix)]
fn take_over(file: &fs::File, replaced: &Metadata) -> io::Result<()> {
    let mode = replaced.mode() & 0o777;
    // Another group may do what all may.
    let group = fchown(file, None, Some(replaced.gid())).map_or(mode << 3 & 0o070, |()| mode & 0o070);
    file.set_permissions(fs::Permissions::from_mode(mode & 0o707 | group))?;
    // Without the right to give files away, it belongs to who writes it.
    let _ = fchown(file, Some(replaced.uid()), None);
    Ok(())
}

#[cfg(not(unix))]
fn take_over(file: &fs::File, replaced: &Metadata) -> io::Result<()> {
    file.set_permissions(replaced.permissions())
}

/// A file that the signal handler knows from the moment it exists.
fn begin(folder: &Path) -> io::Result<NamedTempFile> {
    let mut unfinished = unfinished();
    // Its mode is that of any new file. An error does not have its name.
    let file = tempfile::Builder::new().prefix(".dml-cuda-").make_in(folder, |path| fs::File::create_new(path))?;
    unfinished.push(file.path().to_owned());
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_held_has_advice() {
        let held = match cfg!(windows) {
            true => io::Error::from_raw_os_error(32),
            false => io::ErrorKind::ResourceBusy.into(),
        };
        let advice = "it may be open in another program, but must be closed there: ";
        assert!(with_advice(Path::new("."))(held).starts_with(advice));
        let absent = with_advice(Path::new("absent"))(io::ErrorKind::ResourceBusy.into());
        assert!(!absent.contains("open in another program"), "{absent}");
    }
}
