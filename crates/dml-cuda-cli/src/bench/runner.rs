//! The programs that run cases. Each answers one case: its samples, or what it wrote, or why not.
//!
//! ```text
//!                     a process for each case      answers with
//! own                 dml-cuda                     JSON lines
//! dxdispatch          DxDispatch                   text, which `transcript` reads
//! onnxruntime         python worker.py             a JSON line
//! ```
//!
//! Whatever a process does, `bench` goes on: a crash, a hang or endless output is the answer of one case.

mod dxdispatch;
mod onnxruntime;
mod own;
mod transcript;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::process::{self, Ended, Failure};
use super::results::{Machine, Outcome};
use super::suite::Case;
use crate::model::file;
use crate::options::Bench;

/// What a runner says about a case.
#[derive(Default)]
pub struct Answer {
    /// The device's name.
    pub device: String,
    /// None if the runner cannot run this case. That is no failure, and a note says why.
    pub outcome: Option<Outcome>,
    /// Dispatches of a sample.
    pub dispatches: u32,
    /// The kernel that ran; empty if unknown.
    pub kernel: String,
    /// Microseconds of the case's own baseline.
    pub baseline: Option<f64>,
    /// Lines for the results file. Each is kept once.
    pub notes: Vec<String>,
}

/// A program that runs cases.
pub trait Runner {
    /// The cases that it can run, in the order in which they are run.
    fn cases(&self) -> Vec<Case>;

    /// Runs a case. An error is the case's, and the next one may still succeed.
    fn answer(&mut self, case: &Case) -> Result<Answer, Failure>;

    /// Completes what is known of a machine and its device, and returns how samples are taken. It is called after the
    /// first case and, if that one failed, again after the first case that has run. It may run that case again, because
    /// an idle GPU lowers its clocks.
    fn describe(&self, machine: &mut Machine, case: &Case) -> String;
}

/// The runner that is asked for, if it starts.
pub fn start(asked: &Bench) -> Result<Box<dyn Runner + '_>, String> {
    let is_onnx = asked.runner.as_deref() == Some(Path::new("onnxruntime"));
    let paths = [&asked.python, &asked.library, &asked.provider_library];
    if !is_onnx && (asked.provider.is_some() || paths.iter().any(|path| path.is_some())) {
        let options = "--provider, --provider-library, --python and --library";
        return Err(format!(
            "{options} are given, but must be left out without --runner onnxruntime"
        ));
    }
    Ok(match &asked.runner {
        None => Box::new(own::Own::start(asked)?),
        Some(_) if is_onnx => Box::new(onnxruntime::OnnxRuntime::start(asked)?),
        Some(program) => Box::new(dxdispatch::DxDispatch::start(program, asked)?),
    })
}

/// A temporary folder with files. A runner works there and uses bare names.
fn folder(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<tempfile::TempDir, String> {
    let folder = tempfile::tempdir().map_err(process::no_temporary)?;
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).map_err(process::no_temporary)?;
    }
    Ok(folder)
}

/// The bytes that a small model wrote into its folder.
fn output(folder: &Path, case: &Case) -> Result<Outcome, String> {
    let name = format!("{}.bin", case.name);
    let bytes = file::read_regular(&folder.join(&name));
    let bytes = bytes.map_err(|error| format!("it wrote no file {name}: {error}"))?;
    let (found, required) = (bytes.len() as u64, case.output_bytes());
    if found != required {
        return Err(format!(
            "it wrote {found} bytes to {name}, but must write {required}"
        ));
    }
    Ok(Outcome::Bytes(
        bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    ))
}

/// Runs a program in a folder, with arguments that `words` has between spaces, and with the adapter if one is asked for.
fn run_program(
    command: &mut Command,
    folder: &Path,
    words: &str,
    asked: &Bench,
) -> Result<Ended, Failure> {
    let adapter = asked.adapter.iter().flat_map(|adapter| ["-a", adapter]);
    command
        .current_dir(folder)
        .args(words.split(' ').chain(adapter));
    process::run_to_end(command, Duration::from_secs(asked.timeout.into()))
}
