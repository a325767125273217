//! DxDispatch as a runner, or another program that prints its lines.
//!
//! A case is a model with its files in a folder of its own, where DxDispatch runs:
//!
//! ```text
//! dxdispatch case.json -i 31 -w 1 -r 1000 -v 2          samples, with four decimals of a millisecond
//! dxdispatch case.json -i 31 -w 1 -r 1000 -v 0   5 ×    a median each, with six decimals
//! ```
//!
//! Four decimals are too coarse for short work, whose outcome is the five medians. DxDispatch ends an option's value at the
//! first space, so that every word of its command line must be without one.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::transcript::{self, Transcript};
use super::{Answer, Failure, Runner};
use crate::bench::results::Machine;
use crate::bench::suite::{self, Case};
use crate::options::Bench;
use crate::out::in_file;

/// How samples are taken, as a results file says it.
const TIMING: &str =
    "time stamps on the GPU around the dispatches of one command list, the same buffers every time";

/// DxDispatch and what it says about itself.
pub struct DxDispatch<'a> {
    asked: &'a Bench,
    /// DxDispatch's options end at the first space, and its folder may have one: it is run by its name, from a path
    /// that begins with its folder.
    name: OsString,
    path: OsString,
    /// Its name with the version of DirectML, or the name of the program.
    tool: String,
    /// The text that it prints with `-s`.
    adapters: String,
}

impl<'a> DxDispatch<'a> {
    /// Asks the program for its versions and adapters. A program that cannot be started is one error, not one for each
    /// case.
    pub fn start(program: &Path, asked: &'a Bench) -> Result<Self, String> {
        let failed = in_file(program);
        let name = program.file_name().unwrap_or(program.as_os_str());
        let mut runner = Self {
            asked,
            name: name.to_owned(),
            path: search_path(program).map_err(failed)?,
            tool: String::new(),
            adapters: String::new(),
        };
        let scratch = super::folder([])?;
        let dependencies = runner.printed("-S", scratch.path()).map_err(failed)?;
        runner.adapters = runner.printed("-s", scratch.path()).map_err(failed)?;
        let version = transcript::directml_version(&dependencies);
        runner.check_adapter(&dependencies, version.is_some())?;
        runner.tool = match version {
            Some(version) => format!("DxDispatch with DirectML {version}"),
            None => Path::new(name)
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        };
        Ok(runner)
    }

    /// Fails if the program cannot take the adapter of the options.
    fn check_adapter(&self, dependencies: &str, is_dxdispatch: bool) -> Result<(), String> {
        let adapter = self.asked.adapter.as_deref();
        // Without a GPU this program prints no time of one.
        if dependencies.starts_with("dml-cuda ")
            && (adapter == Some("cpu") || self.adapters.starts_with("CPU\n"))
        {
            return Err(
                "--runner is dml-cuda on a CPU, but must have a GPU; without --runner, this program times the CPU"
                    .to_owned(),
            );
        }
        if let Some(adapter) = adapter.filter(|name| is_dxdispatch && name.contains(' ')) {
            return Err(format!(
                "--adapter '{adapter}' has a space, but must be a part of the name without one, because DxDispatch's options end at a space"
            ));
        }
        Ok(())
    }

    /// What it prints with an option. The exit codes say nothing: DxDispatch's is 1 without a model.
    fn printed(&self, option: &str, folder: &Path) -> Result<String, String> {
        let ended = super::run_program(&mut self.command(), folder, option, self.asked)?;
        Ok(ended.stdout)
    }

    /// The program by its name, found in its own folder first.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.name);
        command.env("PATH", &self.path);
        command
    }

    /// Runs a model, which must succeed.
    fn run_model(
        &self,
        folder: &Path,
        case: &Case,
        options: &str,
        printed: &mut Transcript,
    ) -> Result<(), Failure> {
        let words = format!("{}.json{options}", case.name);
        let ended = super::run_program(&mut self.command(), folder, &words, self.asked)?;
        printed.read(&format!("{}\n{}", ended.stdout, ended.stderr), &case.name);
        match &printed.failure {
            None if ended.status.success() => Ok(()),
            Some(cause) => Err(format!("{cause} ({})", ended.status).into()),
            None => Err(format!("no error was printed ({})", ended.status).into()),
        }
    }
}

/// The paths of programs, with the program's own folder before the others.
fn search_path(program: &Path) -> Result<OsString, String> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let folder = match program.parent() {
        Some(parent) => here.join(parent),
        None => here,
    };
    let others = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder).chain(std::env::split_paths(&others));
    std::env::join_paths(folders).map_err(|error| error.to_string())
}

impl Runner for DxDispatch<'_> {
    /// Without cases in place, where DirectML returns wrong data, and baselines of fills, which are none of its operators.
    fn cases(&self) -> Vec<Case> {
        let mut cases = suite::of_tier(self.asked.tier);
        cases.retain(|case| case.descriptor.is_some() && !case.is_in_place());
        cases
    }

    /// A small model is run once for its output, and a timed one for its samples.
    fn answer(&mut self, case: &Case) -> Result<Answer, Failure> {
        let folder = super::folder(case.files()?)?;
        let (dispatches, mut printed) = (case.dispatches, Transcript::default());
        if case.work.is_none() {
            self.run_model(folder.path(), case, "", &mut printed)?;
        } else {
            // Samples have four decimals. The medians of five more runs have six.
            for verbosity in [2, 0, 0, 0, 0, 0] {
                let options = format!(
                    " -i {} -w 1 -r {dispatches} -v {verbosity}",
                    // The first iteration is cold, and is not counted.
                    self.asked.samples + 1
                );
                self.run_model(folder.path(), case, &options, &mut printed)?;
            }
        }
        let device = printed
            .device
            .take()
            .ok_or("it printed no line \"Running on '…'\"")?;
        let outcome = if case.work.is_none() {
            super::output(folder.path(), case)?
        } else {
            printed.outcome()?
        };
        Ok(Answer {
            device,
            outcome: Some(outcome),
            dispatches,
            ..Answer::default()
        })
    }

    /// The driver's version comes from the list of adapters.
    fn describe(&self, machine: &mut Machine, _: &Case) -> String {
        self.tool.clone_into(&mut machine.tool);
        machine.driver = transcript::driver(&self.adapters, &machine.device).unwrap_or_default();
        TIMING.to_owned()
    }
}
