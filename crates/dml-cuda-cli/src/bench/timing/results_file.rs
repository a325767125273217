//! The file of a bench that still times cases.
//!
//! A bench takes minutes, and may be interrupted or lose its disk. What is in the file depends on where it is written:
//!
//! | `--output` is | after each case | at the end | if interrupted |
//! | --- | --- | --- | --- |
//! | a new file | all cases so far | all cases | it keeps the cases so far |
//! | an older results file | the older results | all cases | the cases so far are saved elsewhere |
//! | a pipe or standard output | nothing | all cases | the cases so far are saved elsewhere |

use crate::bench::process;
use crate::bench::results::Results;
use crate::options::Bench;
use crate::out::{complain, in_file};
use crate::output_file;

/// The file, and how far it is written.
pub struct ResultsFile<'a> {
    options: &'a Bench,
    /// Whether an older results file stays until the new results are complete.
    replaces: bool,
    /// Whether the file lacks cases, because the last write failed.
    is_behind: bool,
    /// The text that this bench wrote last.
    written: Option<String>,
}

impl<'a> ResultsFile<'a> {
    /// Fails if the file cannot be written, before the first case takes its time.
    pub fn new(options: &'a Bench) -> Result<Self, String> {
        let file = Self {
            options,
            replaces: !is_stream(options) && options.output.exists(),
            is_behind: false,
            written: None,
        };
        output_file::can_write_result(&options.output, options.overwrite, Results::is_at)
            .map_err(|error| file.named(error))?;
        Ok(file)
    }

    /// An error with the file's name.
    fn named(&self, error: String) -> String {
        in_file(&self.options.output)(error)
    }

    /// Writes the cases so far into a new file.
    pub fn update(&mut self, results: &Results) -> Result<(), String> {
        if self.replaces || is_stream(self.options) {
            return Ok(());
        }
        let written = self.write(results);
        self.is_behind = written.is_err();
        written.map_err(|error| self.named(error))
    }

    /// Writes what is not written yet, after the last case or an interruption.
    pub fn finish(&mut self, results: &Results) -> Result<(), String> {
        let is_interrupted = process::is_interrupted();
        let is_written_once = self.replaces || is_stream(self.options);
        if self.is_behind || is_written_once && !is_interrupted {
            return match self.write(results) {
                Ok(()) => Ok(()),
                Err(error) => Err(self.named(error + &self.saved_elsewhere(results)?)),
            };
        }
        let has_cases = results.missing() < results.planned;
        if is_interrupted && self.written.is_none() && has_cases {
            complain!("NOTE: interrupted{}", self.saved_elsewhere(results)?);
        }
        Ok(())
    }

    /// Saves the results in another place. Returns the end of a message that says where.
    fn saved_elsewhere(&self, results: &Results) -> Result<String, String> {
        let text = results.to_json()?;
        let saved = output_file::save_elsewhere(&self.options.output, text.as_bytes());
        Ok(saved)
    }

    /// Writes the results over what this bench wrote before, or over an older results file.
    fn write(&mut self, results: &Results) -> Result<(), String> {
        let options = self.options;
        if !self.replaces && !is_stream(options) && self.is_changed() {
            return Err(
                "another program has written it, but must stay as this bench wrote it".to_owned(),
            );
        }
        let text = results.to_json()?;
        let bytes = text.as_bytes();
        match self.written {
            Some(_) => output_file::write_own(&options.output, bytes)?,
            None => output_file::write_result(
                &options.output,
                bytes,
                options.overwrite,
                Results::is_at,
            )?,
        }
        self.written = Some(text);
        Ok(())
    }

    /// Whether another program changed the file since this bench wrote it. A file that cannot be read counts as
    /// unchanged: writing it will report the error.
    fn is_changed(&self) -> bool {
        match (std::fs::read(&self.options.output), &self.written) {
            (Err(_), _) => false,
            (Ok(_), None) => true,
            (Ok(there), Some(written)) => there != written.as_bytes(),
        }
    }
}

/// Whether the output is a pipe, a device or standard output, which takes its bytes once.
pub fn is_stream(options: &Bench) -> bool {
    output_file::is_stream(&options.output)
}
