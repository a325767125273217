//! The program that runs a model, in a process of its own.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::Options;
use crate::bench::import::{machine, read_log, Log, Transcript, DXDISPATCH_TIMING};
use crate::bench::kernel;
use crate::bench::process::{self, Ended};
use crate::bench::record::Samples;
use crate::bench::statistics::Quartiles;
use crate::bench::suite::manifest::{Entry, Mode};

/// An iteration on a CPU takes no longer than this, where it can be helped.
const CPU_ITERATION_MILLISECONDS: f64 = 100.0;
/// A case on a CPU takes no longer than this, but has 7 samples.
const CPU_CASE_MILLISECONDS: f64 = 2000.0;

/// What ran.
pub struct Device {
    pub name: String,
    pub driver: String,
    /// By which NVIDIA's tools know a GPU; empty where that is not known.
    pub pci: String,
    pub timing: String,
}

pub struct Timed {
    pub device: Device,
    pub dispatches: u32,
    pub samples: Samples,
    /// Microseconds of the case's own baseline.
    pub baseline: Option<f64>,
}

/// The program that runs the models.
pub struct Runner<'a> {
    program: PathBuf,
    pub tool: String,
    /// Whether it is this program, whose JSON has all digits.
    pub own: bool,
    on_cpu: bool,
    options: &'a Options,
    folder: PathBuf,
    /// What another runner prints with `-s`.
    adapters: String,
}

/// A line of `--format json`.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Device {
        name: String,
        #[serde(default)]
        driver: String,
        #[serde(default)]
        pci: String,
        timing: String,
    },
    Dispatch {
        dispatchable: String,
        cpu_milliseconds: Vec<f64>,
        gpu_milliseconds: Vec<f64>,
    },
    #[serde(other)]
    Other,
}

impl<'a> Runner<'a> {
    pub fn new(options: &'a Options) -> Result<Self, String> {
        let own = options.runner.is_none();
        let program = match &options.runner {
            Some(program) => find_program(program)?,
            None => std::env::current_exe().map_err(|error| format!("this program's path is not known: {error}"))?,
        };
        let tool = format!("dml-cuda {}", env!("CARGO_PKG_VERSION"));
        let folder = options.folder.as_deref().unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let cpu_asked = options.adapter.as_deref().is_some_and(|adapter| adapter.eq_ignore_ascii_case("cpu"));
        let on_cpu = cpu_asked || dml_cuda::Device::cuda_count() == 0;
        if on_cpu && options.folder.is_none() {
            return Err("--cold-l2 is given on the CPU, must be on a GPU, whose L2 is kept cold".to_owned());
        }
        let mut runner = Self { program, tool, own, on_cpu, options, folder, adapters: String::new() };
        if !own {
            runner.ask()?;
        }
        Ok(runner)
    }

    /// Asks another runner what it is. Its exit codes say nothing: DxDispatch's is 1 without a model.
    fn ask(&mut self) -> Result<(), String> {
        let scratch = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        let printed = |option: &str| {
            let output = self.start(scratch.path(), &[option.to_owned()])?;
            Ok::<String, String>(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let directml = machine::directml_version(&printed("-S")?);
        self.adapters = printed("-s")?;
        if let Some(adapter) = self.options.adapter.as_ref().filter(|it| directml.is_some() && it.contains(' ')) {
            return Err(format!(
                "--adapter '{adapter}' has a space, must be a part of the name without one, because DxDispatch's options end at a space"
            ));
        }
        self.tool = match directml {
            Some(version) => machine::tool(Some(version)),
            None => self.program.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
        };
        Ok(())
    }

    /// A hash of the program's file, to tell builds apart. Only this very file compares it, so that any hash will do.
    pub fn hash(&self) -> Result<String, String> {
        let bytes = std::fs::read(&self.program)
            .map_err(|error| format!("{} cannot be read: {error}", self.program.display()))?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        Ok(format!("{:016x}", hasher.finish()))
    }

    pub fn runs(&self, mode: Mode) -> bool {
        self.own || mode.is_directmls()
    }

    /// This program's device, before any model, so that one that cannot be had is said once.
    pub fn own_device(&self) -> Result<Device, String> {
        Ok(self.call_own(&["roof", "fill", "4"].map(str::to_owned))?.device)
    }

    fn call_own(&self, arguments: &[String]) -> Result<Printed, String> {
        let mut printed = printed(&self.call(&self.folder, arguments)?)?;
        if self.is_cold() {
            kernel::TIMING.clone_into(&mut printed.device.timing);
        }
        Ok(printed)
    }

    fn is_cold(&self) -> bool {
        self.options.folder.is_none()
    }

    fn model(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Runs the program, which must succeed, and returns what it printed.
    fn call(&self, folder: &Path, arguments: &[String]) -> Result<Vec<u8>, String> {
        let output = self.start(folder, arguments)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let cause = both(&output).failure;
        Err(format!("{} ({})", cause.as_deref().unwrap_or("no error was printed"), output.status))
    }

    fn start(&self, folder: &Path, arguments: &[String]) -> Result<Ended, String> {
        let mut command = Command::new(&self.program);
        if !self.own {
            // DxDispatch's options end at the first space. Its folder may have one, its name has none.
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = self.program.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
            if let (Some(name), Ok(path)) = (self.program.file_name(), std::env::join_paths(folders)) {
                command = Command::new(name);
                command.env("PATH", path);
            }
        }
        command.current_dir(folder).args(arguments);
        if let Some(adapter) = &self.options.adapter {
            command.args(["-a", adapter]);
        }
        process::run(&mut command, self.options.timeout)
    }

    /// Runs a model of the suite with another runner, which must succeed.
    fn run_model(&self, name: &str, options: &[(&str, String)]) -> Result<Transcript, String> {
        // In the suite's folder, because a path with a space is more than DxDispatch can read.
        let mut arguments = vec![format!("{name}.json")];
        arguments.extend(options.iter().flat_map(|(option, value)| [(*option).to_owned(), value.clone()]));
        let output = self.start(&self.folder, &arguments)?;
        let printed = both(&output);
        match &printed.failure {
            None if output.status.success() => Ok(printed),
            Some(cause) => Err(format!("{cause} ({})", output.status)),
            None => Err(format!("no error was printed ({})", output.status)),
        }
    }

    pub fn time(&self, entry: &Entry, samples: u32) -> Result<Timed, String> {
        if !self.own {
            return self.time_foreign(entry, samples);
        }
        let once = |iterations: u32, dispatches: u32| {
            let bytes = entry.work.bytes;
            let mut arguments = match entry.work.mode {
                Mode::BaselineOfCopies => vec!["roof".to_owned(), "copy".to_owned(), (bytes / 2).to_string()],
                Mode::BaselineOfFills if self.is_cold() => {
                    vec!["roof".to_owned(), "write".to_owned(), bytes.to_string()]
                }
                Mode::BaselineOfFills => vec!["roof".to_owned(), "fill".to_owned(), bytes.to_string()],
                _ if self.is_cold() => vec!["kernel".to_owned(), entry.name.clone()],
                _ => vec![self.model(&entry.name).display().to_string(), "--format".to_owned(), "json".to_owned()],
            };
            arguments.extend(["-i".to_owned(), iterations.to_string(), "-r".to_owned(), dispatches.to_string()]);
            self.call_own(&arguments)
        };
        let (mut iterations, mut dispatches) = (samples + 1, entry.work.dispatches);
        // Only a first run tells how slow a CPU is.
        if self.on_cpu {
            let first = once(1, 1)?.milliseconds;
            let first = first.iter().copied().fold(1e-4, f64::max);
            dispatches = dispatches.min((CPU_ITERATION_MILLISECONDS / first) as u32).max(1);
            let most = (CPU_CASE_MILLISECONDS / (first * f64::from(dispatches))) as u32;
            iterations = iterations.min(most.max(7) + 1);
        }
        let Printed { device, milliseconds, baseline } = once(iterations, dispatches)?;
        let hot = |milliseconds: &[f64]| milliseconds.iter().skip(1).map(|each| each * 1e3).collect::<Vec<f64>>();
        let baseline = baseline.map(|milliseconds| Quartiles::of(&hot(&milliseconds)).median);
        Ok(Timed { device, dispatches, samples: Samples::Each(hot(&milliseconds)), baseline })
    }

    /// As `run.ps1` does.
    fn time_foreign(&self, entry: &Entry, samples: u32) -> Result<Timed, String> {
        let (mut all, mut device) = (Log::default(), None);
        for verbosity in [2, 0, 0, 0, 0, 0] {
            let options = [("-i", samples + 1), ("-w", 1), ("-r", entry.work.dispatches), ("-v", verbosity)];
            let mut printed =
                self.run_model(&entry.name, &options.map(|(option, value)| (option, value.to_string())))?;
            device = printed.device;
            all.extend(printed.dispatches.remove(&entry.name).ok_or("it printed no line for the dispatchable")?);
        }
        Ok(Timed {
            device: self.foreign(device)?,
            dispatches: entry.work.dispatches,
            samples: all.samples(None)?,
            baseline: None,
        })
    }

    fn foreign(&self, device: Option<String>) -> Result<Device, String> {
        let name = device.ok_or("it printed no line \"Running on '…'\"")?;
        let driver = machine::driver(&self.adapters, &name).unwrap_or_default();
        Ok(Device { name, driver, pci: String::new(), timing: DXDISPATCH_TIMING.to_owned() })
    }

    /// The bytes that a small model writes.
    pub fn output(&self, name: &str) -> Result<(Device, Vec<u8>), String> {
        let failed = |error: std::io::Error| format!("a temporary folder: {error}");
        let (folder, device) = if self.own {
            let folder = tempfile::tempdir().map_err(failed)?;
            let arguments = [self.model(name).display().to_string(), "--format".to_owned(), "json".to_owned()];
            let device = printed(&self.call(folder.path(), &arguments)?)?.device;
            (folder, device)
        } else {
            let folder = tempfile::Builder::new().prefix("output-").tempdir_in(&self.folder).map_err(failed)?;
            let relative = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
            let device = self.foreign(self.run_model(name, &[("--output_path", relative)])?.device)?;
            (folder, device)
        };
        let file = format!("{name}.bin");
        let bytes = std::fs::read(folder.path().join(&file))
            .map_err(|error| format!("{file}, which it is to write: {error}"))?;
        Ok((device, bytes))
    }
}

/// What this program printed: the device, and the milliseconds of each iteration, on the GPU where there are such.
struct Printed {
    device: Device,
    milliseconds: Vec<f64>,
    baseline: Option<Vec<f64>>,
}

fn printed(text: &[u8]) -> Result<Printed, String> {
    let (mut found, mut milliseconds, mut baseline) = (None, Vec::new(), None);
    for line in String::from_utf8_lossy(text).lines() {
        match serde_json::from_str(line).map_err(|error| format!("it printed '{line}': {error}"))? {
            Event::Device { name, driver, pci, timing } => found = Some(Device { name, driver, pci, timing }),
            Event::Dispatch { dispatchable, cpu_milliseconds, gpu_milliseconds } => {
                let each = if gpu_milliseconds.is_empty() { cpu_milliseconds } else { gpu_milliseconds };
                if dispatchable == kernel::BASELINE {
                    baseline = Some(each);
                } else {
                    milliseconds = each;
                }
            }
            Event::Other => {}
        }
    }
    Ok(Printed { device: found.ok_or("it did not say on which device it ran")?, milliseconds, baseline })
}

/// What a program printed on both streams.
fn both(output: &Ended) -> Transcript {
    read_log(&[&output.stderr[..], b"\n", &output.stdout].concat())
}

/// The program, which a process with another current directory must find, too: a path, or a name to look up as a shell does.
fn find_program(program: &Path) -> Result<PathBuf, String> {
    let mut places = vec![program.to_owned()];
    if program.components().count() == 1 {
        let path = std::env::var_os("PATH").unwrap_or_default();
        places.extend(std::env::split_paths(&path).map(|folder| folder.join(program)));
    }
    let found = places.iter().filter(|place| place.is_file()).find_map(|place| std::path::absolute(place).ok());
    found.ok_or_else(|| format!("{} is no program: there is no such file", program.display()))
}
