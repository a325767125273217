//! Reads files, which other programs may have open.
//!
//! On Windows a virus scanner opens a new file as soon as it is closed, and a program that wants it then gets an error. All
//! files are therefore tried again for two seconds. A model or a results file may come through a pipe, so that its size is
//! limited while it is read and not before.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// Reads to the end, which must come before 256 MiB.
pub fn read(file: impl Read, hint: &str) -> io::Result<Vec<u8>> {
    // A model has its large data in other files.
    const MOST: u64 = 256 << 20;
    let mut bytes = Vec::new();
    match file.take(MOST + 1).read_to_end(&mut bytes)? as u64 {
        ..=MOST => Ok(bytes),
        _ => Err(io::Error::other(format!("it is longer than 256 MiB{hint}"))),
    }
}

/// Reads a file, or standard input by the name `-`.
pub fn read_input(path: &Path, hint: &str) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        read(io::stdin(), hint)
    } else {
        read(open(path)?, hint)
    }
}

/// Reads a regular file.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    read(open_regular(path)?, "")
}

/// A file's text: UTF-8, or UTF-16 with a byte order mark, as Windows PowerShell writes it. A mark stays.
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    let unit = match bytes.get(..2) {
        Some([0xff, 0xfe]) => u16::from_le_bytes,
        Some([0xfe, 0xff]) => u16::from_be_bytes,
        Some([0, 0]) => {
            return Err(io::Error::other(
                "it begins with bytes of zero, but must be text",
            ))
        }
        Some([0, _] | [_, 0]) => {
            return Err(io::Error::other(
                "it is UTF-16 without a byte order mark, but must have one",
            ))
        }
        _ => return String::from_utf8(bytes).map_err(io::Error::other),
    };
    let (units, rest) = bytes.as_chunks();
    let units: Vec<u16> = units.iter().copied().map(unit).collect();
    match String::from_utf16(&units) {
        Ok(_) if !rest.is_empty() => {
            Err(io::Error::other("UTF-16 with half a character at its end"))
        }
        text => text.map_err(io::Error::other),
    }
}

/// Opens a file to read it, as soon as its other users share it.
pub fn open(path: &Path) -> io::Result<fs::File> {
    if path.is_dir() {
        return Err(io::Error::other("it is a folder, but must be a file"));
    }
    let begun = Instant::now();
    loop {
        match fs::File::open(path) {
            Err(error) if may_pass(&error, begun) => {}
            opened => return opened,
        }
    }
}

/// Opens a regular file: opening a pipe without a writer would never end.
pub fn open_regular(path: &Path) -> io::Result<fs::File> {
    if fs::metadata(path)?.is_file() {
        open(path)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// Whether to try again, after a short wait: for two seconds if another program, on Windows a virus scanner or a
/// viewer, has the file open.
pub fn may_pass(error: &io::Error, begun: Instant) -> bool {
    is_held(error) && {
        std::thread::sleep(Duration::from_millis(20));
        begun.elapsed() < Duration::from_secs(2)
    }
}

/// Whether another program has the file open and does not share it. A network drive may say so on Linux.
pub fn is_held(error: &io::Error) -> bool {
    match error.raw_os_error() {
        Some(code) if cfg!(windows) => [5, 32, 33].contains(&code), // access denied, sharing or lock violation
        _ => matches!(
            error.kind(),
            io::ErrorKind::ResourceBusy | io::ErrorKind::ExecutableFileBusy
        ),
    }
}

/// A path of a model with this system's separators. The model may come from Windows.
pub fn separated(path: &str) -> String {
    path.replace('\\', std::path::MAIN_SEPARATOR_STR)
}

/// Whether DxDispatch takes a file of this name for an image. Files of other names are arrays or raw bytes.
pub fn is_image(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".png", ".jpg"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_shared_is_tried_for_two_seconds() {
        let held = if cfg!(windows) {
            io::Error::from_raw_os_error(32)
        } else {
            io::ErrorKind::ResourceBusy.into()
        };
        let (begun, mut tries) = (Instant::now(), 0);
        while may_pass(&held, begun) {
            tries += 1;
        }
        assert!(
            tries > 10 && begun.elapsed() >= Duration::from_secs(2),
            "{tries}"
        );
        assert!(!may_pass(&io::ErrorKind::NotFound.into(), Instant::now()));
    }
}
