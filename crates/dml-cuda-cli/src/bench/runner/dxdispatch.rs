//! DxDispatch as a runner, or another program that prints its lines.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::transcript::{self, Transcript};
use super::{Answer, Device, Runner};
use crate::bench::job::{Job, Wanted};
use crate::bench::suite;
use crate::options::{Bench, Tier};

const TIMING: &str = "time stamps on the GPU around the dispatches of one command list, the same buffers every time";

pub struct DxDispatch<'a> {
    program: PathBuf,
    tool: String,
    /// What it prints with `-s`.
    adapters: String,
    asked: &'a Bench,
}

impl<'a> DxDispatch<'a> {
    pub fn start(program: &Path, asked: &'a Bench) -> Result<Self, String> {
        let program = find_program(program)?;
        let mut runner = Self { program, tool: String::new(), adapters: String::new(), asked };
        let scratch = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        // The exit codes say nothing: DxDispatch's is 1 without a model.
        let asked = |option: &str| {
            let ended = super::run(&mut runner.command(), scratch.path(), &[option.to_owned()], runner.asked);
            ended.map(|ended| String::from_utf8_lossy(&ended.stdout).into_owned()).unwrap_or_default()
        };
        let (dependencies, adapters) = (asked("-S"), asked("-s"));
        let version = transcript::directml_version(&dependencies);
        if let Some(adapter) = runner.asked.adapter.as_ref().filter(|it| version.is_some() && it.contains(' ')) {
            return Err(format!(
                "--adapter '{adapter}' has a space, must be a part of the name without one, because DxDispatch's options end at a space"
            ));
        }
        runner.tool = match version {
            Some(version) => format!("DxDispatch with DirectML {version}"),
            None => runner.program.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
        };
        runner.adapters = adapters;
        Ok(runner)
    }

    /// The program by its name: DxDispatch's options end at the first space, and its folder may have one.
    fn command(&self) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = self.program.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
        match (self.program.file_name(), std::env::join_paths(folders)) {
            (Some(name), Ok(path)) => {
                let mut command = Command::new(name);
                command.env("PATH", path);
                command
            }
            _ => Command::new(&self.program),
        }
    }

    /// Runs a model, which must succeed.
    fn run(&self, folder: &Path, job: &Job, options: &[(&str, u32)], printed: &mut Transcript) -> Result<(), String> {
        let mut arguments = vec![format!("{}.json", job.name)];
        arguments.extend(options.iter().flat_map(|(option, value)| [(*option).to_owned(), value.to_string()]));
        let ended = super::run(&mut self.command(), folder, &arguments, self.asked)?;
        let text = [&ended.stderr[..], b"\n", &ended.stdout].concat();
        printed.read(&String::from_utf8_lossy(&text), &job.name);
        match &printed.failure {
            None if ended.status.success() => Ok(()),
            Some(cause) => Err(format!("{cause} ({})", ended.status)),
            None => Err(format!("no error was printed ({})", ended.status)),
        }
    }
}

impl Runner for DxDispatch<'_> {
    fn tool(&self) -> String {
        self.tool.clone()
    }

    /// Without cases in place, where DirectML returns wrong data, and plain fills, which are none of its operators.
    fn jobs(&self, tier: Tier, wanted: Wanted) -> Vec<Job> {
        suite::jobs(tier, wanted).into_iter().filter(|job| job.work.mode.is_directmls()).collect()
    }

    fn answer(&mut self, job: &Job) -> Result<Answer, String> {
        let folder = super::folder(job)?;
        let (dispatches, mut printed) = (job.work.dispatches, Transcript::default());
        if job.is_output() {
            self.run(folder.path(), job, &[], &mut printed)?;
        } else {
            // Samples have four decimals. The medians of five more runs have six.
            for verbosity in [2, 0, 0, 0, 0, 0] {
                let options = [("-i", self.asked.samples + 1), ("-w", 1), ("-r", dispatches), ("-v", verbosity)];
                self.run(folder.path(), job, &options, &mut printed)?;
            }
        }
        let name = printed.device.take().ok_or("it printed no line \"Running on '…'\"")?;
        let device = Device { name, ..Device::default() };
        let outcome = if job.is_output() { super::output(folder.path(), job)? } else { printed.outcome()? };
        Ok(Answer { device, outcome: Some(outcome), dispatches, ..Answer::default() })
    }

    fn describe(&self, found: Device) -> Device {
        let driver = transcript::driver(&self.adapters, &found.name).unwrap_or_default();
        Device { driver, timing: TIMING.to_owned(), ..found }
    }
}

/// A path, or a name to look up as a shell does.
fn find_program(program: &Path) -> Result<PathBuf, String> {
    let mut places = vec![program.to_owned()];
    if program.components().count() == 1 {
        let path = std::env::var_os("PATH").unwrap_or_default();
        places.extend(std::env::split_paths(&path).map(|folder| folder.join(program)));
    }
    let found = places.iter().filter(|place| place.is_file()).find_map(|place| std::path::absolute(place).ok());
    found.ok_or_else(|| format!("{} is no program: there is no such file", program.display()))
}
