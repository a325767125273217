//! The CSV of times that `tune --output` names.
//!
//! 500 layouts take minutes, and whoever times them may run out of patience or of disk. Whole rows are therefore written as
//! soon as a layout is timed: Ctrl-C leaves a file that can be read. All rows stay in memory as well, so that they can be
//! saved elsewhere if the file cannot take them.

use std::fs::{remove_file, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::out::{in_file, shown_path};
use crate::output_file;

/// The table, and the file if there is one.
pub struct TimesFile<'a> {
    output: Option<(&'a Path, File)>,
    /// Everything that belongs into the file. If the disk is full, it is saved elsewhere.
    text: String,
    /// The first error of a write. After it nothing is written, so that the file has no gap.
    written: Result<(), String>,
}

impl<'a> TimesFile<'a> {
    /// Creates the file, which must be new, or opens a pipe or a device.
    pub fn create(path: Option<&'a Path>) -> Result<Self, String> {
        let mut output = None;
        if let Some(path) = path {
            let file = create_or_open(path)
                .map_err(|error| format!("{} cannot be written: {error}", shown_path(path)))?;
            output = Some((path, file));
        }
        Ok(Self {
            output,
            text: String::new(),
            written: Ok(()),
        })
    }

    /// Adds whole lines.
    pub fn add(&mut self, lines: &str) {
        self.text += lines;
        if let (Some((_, file)), Ok(())) = (&mut self.output, &self.written) {
            self.written = file
                .write_all(lines.as_bytes())
                .map_err(|error| format!("the times cannot be written: {error}"));
        }
    }

    /// Removes the file, unless it is a pipe or a device, which was there before.
    pub fn remove(&self) {
        match self.output {
            Some((path, _)) if !output_file::is_stream(path) => drop(remove_file(path)),
            _ => {}
        }
    }

    /// Reports an error of an earlier write, with the place where the times are saved instead.
    pub fn finish(self) -> Result<(), String> {
        let (Some((path, _)), Err(error)) = (self.output, self.written) else {
            return Ok(());
        };
        let saved = output_file::save_elsewhere(path, self.text.as_bytes());
        Err(in_file(path)(error + &saved))
    }
}

/// A file must be new: times of another device or commit are not to be mixed with these.
fn create_or_open(path: &Path) -> Result<File, String> {
    output_file::has_folder(path)?;
    OpenOptions::new()
        .write(true)
        .create_new(!output_file::is_stream(path))
        .open(path)
        .map_err(|error| error.to_string())
}
