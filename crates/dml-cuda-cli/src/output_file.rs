//! Writes files of models, results files and reports.
//!
//! | under the name is | it is written | so that |
//! | --- | --- | --- |
//! | nothing | under another name, which it then changes | the file is complete or absent, even after a signal |
//! | a file | over the older bytes | it keeps its owner, its mode and its links |
//! | a pipe, a device | in place, once | its reader gets each byte once |
//!
//! There are two exceptions. `write`, for the files of models, rejects named pipes. `write_own` writes a file of this process
//! under another name even if one is there, and so replaces it.
//!
//! If an older file is lost and the new one cannot be complete, the bytes are saved elsewhere, and the error says where.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
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
    move |error| match is_held(&error) && target.exists() {
        true => format!("it may be open in another program, but must be closed there: {error}"),
        false => error.to_string(),
    }
}

/// Writes all bytes of a file, which need not be in memory at once. It is called a second time to save them elsewhere.
type Content<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

/// Writes the file of a model. Makes missing folders. Refuses to replace a results file.
pub fn write(path: &Path, content: Content) -> Result<(), String> {
    let there = what_is_at(path)?;
    if is_named_pipe(path) {
        return Err("it is a named pipe, but must be a file".to_owned());
    }
    if there == There::File && holds(path, schema::is_results) {
        return Err(
            "it is a results file, which only --overwrite replaces; choose another name".to_owned(),
        );
    }
    all_or_nothing(|| {
        make_folder(folder(path)).map_err(|error| error.to_string())?;
        put(path, there, content)
            .map_err(with_advice(path))
            .map_err(|error| match there {
                // The older bytes may be lost, so the new ones must not be.
                There::File => error + &save_content_elsewhere(path, content),
                There::Nothing | There::Stream => error,
            })
    })
}

/// Writes a results file or a report, a new one or over an older one. `is_results` says whether a file is a results file.
pub fn write_result(
    path: &Path,
    bytes: &[u8],
    overwrite: bool,
    is_results: fn(&Path) -> bool,
) -> Result<(), String> {
    let there = may_write_result(path, overwrite, is_results)?;
    let content: Content = &|file| file.write_all(bytes);
    all_or_nothing(|| put(path, there, content).map_err(with_advice(path)))
}

/// Writes a new file, or replaces the one that this process wrote under this name. Readers never find half of it.
pub fn write_own(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let content: Content = &|file| file.write_all(bytes);
    all_or_nothing(|| create(path, content).map_err(with_advice(path)))
}

/// Saves a result that cannot be under its name: next to it, or in the temporary folder. The end of the error says
/// where.
pub fn save_elsewhere(path: &Path, bytes: &[u8]) -> String {
    save_content_elsewhere(path, &|file| file.write_all(bytes))
}

/// Saves what cannot be under its name. The end of the error says where, and is empty if no folder takes it.
fn save_content_elsewhere(path: &Path, content: Content) -> String {
    let mut folders = vec![std::env::temp_dir()];
    if !is_stream(path) {
        folders.insert(0, whole(folder(path)));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for folder in folders {
        if let Some(saved) = save_in(&folder, &name, content) {
            // Without the mark of long paths.
            let shown = shown_path(&saved);
            return format!("; it is saved as {}", shown.trim_start_matches(r"\\?\"));
        }
    }
    String::new()
}

/// Saves a new file whose name ends in `name`. None if the folder or its disk cannot take it.
fn save_in(folder: &Path, name: &str, content: Content) -> Option<PathBuf> {
    let mut file = tempfile::Builder::new()
        .prefix("dml-cuda-")
        .suffix(&format!("-{name}"))
        .tempfile_in(folder)
        .ok()?;
    content(file.as_file_mut()).ok()?;
    let (_, path) = file.keep().ok()?;
    Some(path)
}

/// Fails if a result's folder is not there: it may be misspelt, so no result makes one.
pub fn has_folder(path: &Path) -> Result<(), String> {
    let folder = folder(path);
    match folder.is_dir() {
        true => Ok(()),
        false => Err(format!("the folder {} is not there", shown_path(folder))),
    }
}

/// Fails if a results file or a report may not be written there: to no folder, or over a file that is neither of them.
fn may_write_result(
    path: &Path,
    overwrite: bool,
    is_results: fn(&Path) -> bool,
) -> Result<There, String> {
    let there = what_is_at(path)?;
    has_folder(path)?;
    if there != There::File {
        return Ok(there);
    }
    if !overwrite {
        return Err(
            "it exists, but must be new; --overwrite replaces results and reports".to_owned(),
        );
    }
    // Open, it stays readable until it is known for what it is.
    let _open = open(path).map_err(with_advice(path))?;
    if !is_results(path) && !holds(path, schema::may_be_overwritten) {
        return Err(
            "it is neither a results file nor a report, which is all that --overwrite replaces"
                .to_owned(),
        );
    }
    Ok(there)
}

/// Fails if a result may not be written there, if what is there cannot be written, or if no file can be made in the
/// folder.
pub fn can_write_result(
    path: &Path,
    overwrite: bool,
    is_results: fn(&Path) -> bool,
) -> Result<(), String> {
    match may_write_result(path, overwrite, is_results)? {
        There::Stream => Ok(()),
        There::File => OpenOptions::new()
            .write(true)
            .open(path)
            .map(drop)
            .map_err(with_advice(path)),
        There::Nothing => {
            let folder = folder(path);
            let made = tempfile::tempfile_in(folder).map(drop);
            made.map_err(|error| {
                let folder = shown_path(folder);
                format!("no file can be made in the folder {folder}: {error}")
            })
        }
    }
}

/// Whether a path leads to a named pipe, whose writer waits for a reader. Standard output has one.
fn is_named_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        !is_stdout(path) && fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Whether a path leads to a device, a pipe or standard output: it is written in place, and once.
pub fn is_stream(path: &Path) -> bool {
    is_stdout(path) || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Whether a path is the file of standard output. Writing it a second time would lose what is printed.
fn is_stdout(path: &Path) -> bool {
    matches!(
        path.to_str(),
        Some("-" | "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1")
    )
}

/// Whether two paths lead to one file that exists.
pub fn is_same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// What is under a name that may be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum There {
    /// A new file can be made.
    Nothing,
    /// A file that would be overwritten.
    File,
    /// A pipe, a device or standard output.
    Stream,
}

/// What is under a name. Fails if it may not be written.
fn what_is_at(path: &Path) -> Result<There, String> {
    let last = path.as_os_str().as_encoded_bytes().last();
    if last.is_some_and(|&last| std::path::is_separator(last.into())) {
        return Err("it is a folder, but must be a file".to_owned());
    }
    // Windows finds its devices, such as NUL and CON, in every folder.
    let whole = std::path::absolute(path).unwrap_or_default();
    match fs::metadata(path) {
        _ if cfg!(windows) && whole.to_string_lossy().starts_with(r"\\.\") => {
            Err("it is a device of Windows, but must be a file".to_owned())
        }
        _ if is_stream(path) => Ok(There::Stream),
        Ok(metadata) if metadata.is_dir() => Err("it is a folder, but must be a file".to_owned()),
        Ok(metadata) if metadata.permissions().readonly() => Err("it is read-only".to_owned()),
        Ok(_) => Ok(There::File),
        Err(error) if path.is_symlink() => Err(format!("it is a link that leads nowhere: {error}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(There::Nothing),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a file has a text of some kind.
fn holds(target: &Path, is_it: fn(&str) -> bool) -> bool {
    read_regular(target)
        .and_then(text)
        .is_ok_and(|text| is_it(&text))
}

/// The folder of a file, which is `.` for a bare name.
fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A folder's whole path: on Windows with the mark by which it may be longer than 260 characters, elsewhere as it is
/// written.
fn whole(folder: &Path) -> PathBuf {
    let found = if cfg!(windows) {
        folder.canonicalize()
    } else {
        std::path::absolute(folder)
    };
    found.unwrap_or_else(|_| folder.to_owned())
}

/// Writes the bytes in the way that suits what is there.
fn put(path: &Path, there: There, content: Content) -> io::Result<()> {
    match there {
        There::Nothing => create(path, content),
        There::File => overwrite(path, content),
        There::Stream if is_stdout(path) => out::with(|out| content(out)).map_err(io::Error::other),
        // A pipe may wait for its reader, and a signal ends that.
        There::Stream => {
            let mut stream = OpenOptions::new().write(true).truncate(true).open(path)?;
            content(&mut stream)
        }
    }
}

/// Writes over a file that is there. No signal ends that halfway.
fn overwrite(path: &Path, content: Content) -> io::Result<()> {
    let _unfinished = unfinished();
    content(&mut open_empty(path)?)
}

/// Opens a file that is there without its bytes, as soon as its other users share it.
fn open_empty(path: &Path) -> io::Result<File> {
    let begun = Instant::now();
    loop {
        match OpenOptions::new().write(true).truncate(true).open(path) {
            Err(error) if cfg!(windows) && may_pass(&error, begun) => {}
            opened => return opened,
        }
    }
}

/// Writes a file under another name, which it then changes.
fn create(path: &Path, content: Content) -> io::Result<()> {
    let place = whole(folder(path)).join(path.file_name().unwrap_or_default());
    let mut file = begin(folder(&place))?;
    // Errors of the file itself do not have its name.
    let written = content(file.as_file_mut());
    // From here on no signal removes the file. It is renamed, or its `Drop` removes it.
    let mut unfinished = unfinished();
    unfinished.pop();
    written?;
    let begun = Instant::now();
    loop {
        match file.persist(&place) {
            Err(failed) if cfg!(windows) && may_pass(&failed.error, begun) => file = failed.file,
            persisted => {
                persisted?;
                unfinished.push(path.to_owned());
                return Ok(());
            }
        }
    }
}

/// A file that the signal handler knows from the moment it exists.
fn begin(folder: &Path) -> io::Result<NamedTempFile> {
    let mut unfinished = unfinished();
    // Its mode is that of any new file. An error does not have its name.
    let file = tempfile::Builder::new()
        .prefix(".dml-cuda-")
        .make_in(folder, |path| File::create_new(path))?;
    unfinished.push(file.path().to_owned());
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_held_has_advice() {
        let held = if cfg!(windows) {
            io::Error::from_raw_os_error(32)
        } else {
            io::ErrorKind::ResourceBusy.into()
        };
        let advice = "it may be open in another program, but must be closed there: ";
        assert!(with_advice(Path::new("."))(held).starts_with(advice));
        let absent = with_advice(Path::new("absent"))(io::ErrorKind::ResourceBusy.into());
        assert!(!absent.contains("open in another program"), "{absent}");
    }
}
