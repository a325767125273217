//! DxDispatch as a runner, or another program that prints its lines.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::transcript::{self, Transcript};
use super::{Answer, Runner};
use crate::bench::results::Machine;
use crate::bench::suite::{self, Case};
use crate::options::Bench;
use crate::out::shown_path;

const TIMING: &str =
    "time stamps on the GPU around the dispatches of one command list, the same buffers every time";

pub struct DxDispatch<'a> {
    asked: &'a Bench,
    /// DxDispatch's options end at the first space, and its folder may have one: it is run by its name, from a path
    /// that begins with its folder.
    name: OsString,
    path: OsString,
    tool: String,
    /// The text that it prints with `-s`.
    adapters: String,
}

impl<'a> DxDispatch<'a> {
    pub fn start(program: &Path, asked: &'a Bench) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", shown_path(program));
        let here = std::env::current_dir().map_err(|error| failed(&error))?;
        let mut folders = vec![program
            .parent()
            .map_or(here.clone(), |parent| here.join(parent))];
        folders.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        let path = std::env::join_paths(folders).map_err(|error| failed(&error))?;
        let name = program
            .file_name()
            .unwrap_or(program.as_os_str())
            .to_owned();
        let mut runner = Self {
            asked,
            name,
            path,
            tool: String::new(),
            adapters: String::new(),
        };
        let scratch = super::folder([])?;
        // The exit codes say nothing: DxDispatch's is 1 without a model.
        let said = |option: &str| {
            let ended = super::run(&mut runner.command(), scratch.path(), option, asked);
            ended
                .map(|ended| ended.stdout)
                .map_err(|error| failed(&error))
        };
        let (dependencies, adapters) = (said("-S")?, said("-s")?);
        let version = transcript::directml_version(&dependencies);
        // Without a GPU this program prints no time of one.
        if dependencies.starts_with("dml-cuda ")
            && (asked.adapter.as_deref() == Some("cpu") || adapters.starts_with("CPU\n"))
        {
            return Err(
                "--runner is dml-cuda on a CPU, but must have a GPU; without --runner, this program times the CPU"
                    .to_owned(),
            );
        }
        if let Some(adapter) = asked
            .adapter
            .as_ref()
            .filter(|it| version.is_some() && it.contains(' '))
        {
            return Err(format!(
                "--adapter '{adapter}' has a space, but must be a part of the name without one, because DxDispatch's options end at a space"
            ));
        }
        let stem = || {
            Path::new(&runner.name)
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        runner.tool = version.map_or_else(stem, |version| {
            format!("DxDispatch with DirectML {version}")
        });
        runner.adapters = adapters;
        Ok(runner)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.name);
        command.env("PATH", &self.path);
        command
    }

    /// Runs a model, which must succeed.
    fn run(
        &self,
        folder: &Path,
        case: &Case,
        options: &str,
        printed: &mut Transcript,
    ) -> Result<(), String> {
        let words = format!("{}.json{options}", case.name);
        let ended = super::run(&mut self.command(), folder, &words, self.asked)?;
        printed.read(&format!("{}\n{}", ended.stdout, ended.stderr), &case.name);
        match &printed.failure {
            None if ended.status.success() => Ok(()),
            Some(cause) => Err(format!("{cause} ({})", ended.status)),
            None => Err(format!("no error was printed ({})", ended.status)),
        }
    }
}

impl Runner for DxDispatch<'_> {
    /// Without cases in place, where DirectML returns wrong data, and plain fills, which are none of its operators.
    fn cases(&self) -> Vec<Case> {
        let is_directmls = |case: &Case| case.descriptor.is_some() && !case.is_in_place();
        suite::of_tier(self.asked.tier)
            .into_iter()
            .filter(is_directmls)
            .collect()
    }

    fn answer(&mut self, case: &Case) -> Result<Answer, String> {
        let folder = super::folder(case.files()?)?;
        let (dispatches, mut printed) = (case.dispatches, Transcript::default());
        if case.work.is_none() {
            self.run(folder.path(), case, "", &mut printed)?;
        } else {
            // Samples have four decimals. The medians of five more runs have six.
            for verbosity in [2, 0, 0, 0, 0, 0] {
                let options = format!(
                    " -i {} -w 1 -r {dispatches} -v {verbosity}",
                    self.asked.samples + 1
                );
                self.run(folder.path(), case, &options, &mut printed)?;
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

    fn describe(&self, machine: &mut Machine, _: &Case) -> String {
        self.tool.clone_into(&mut machine.tool);
        machine.driver = transcript::driver(&self.adapters, &machine.device).unwrap_or_default();
        TIMING.to_owned()
    }
}
