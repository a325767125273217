//! The program that runs a model, in a process of its own.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::Options;
use crate::bench::import::{read_log, Log, DXDISPATCH_TIMING};
use crate::bench::kernel;
use crate::bench::record::Samples;
use crate::bench::statistics::Quartiles;
use crate::bench::suite::manifest::{Entry, Mode};

/// An iteration on a CPU takes no longer than this, where it can be helped.
const CPU_ITERATION_MILLISECONDS: f64 = 100.0;
/// A case on a CPU takes no longer than this, but has 5 samples.
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
        let tool = if own {
            format!("dml-cuda {}", env!("CARGO_PKG_VERSION"))
        } else {
            program.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let folder = options.folder.as_deref().unwrap_or(Path::new("."));
        let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        let cpu_asked = options.adapter.as_deref().is_some_and(|adapter| adapter.eq_ignore_ascii_case("cpu"));
        let on_cpu = cpu_asked || dml_cuda::Device::cuda_count() == 0;
        if on_cpu && options.folder.is_none() {
            return Err("--cold-l2 is given on the CPU, must be on a GPU, whose L2 is kept cold".to_owned());
        }
        Ok(Self { program, tool, own, on_cpu, options, folder })
    }

    /// A hash of the program's file, to tell builds apart. Only this very file compares it, so that any hash will do.
    pub fn hash(&self) -> Result<String, String> {
        let bytes = std::fs::read(&self.program)
            .map_err(|error| format!("{} cannot be read: {error}", self.program.display()))?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        Ok(format!("{:016x}", hasher.finish()))
    }

    /// In place DirectML returns wrong data; a plain fill is not one of its operators.
    pub fn runs(&self, mode: Mode) -> bool {
        self.own || !matches!(mode, Mode::InPlace | Mode::BaselineOfFills)
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
        let mut command = Command::new(&self.program);
        command.current_dir(folder).args(arguments).stdin(Stdio::null());
        if let Some(adapter) = &self.options.adapter {
            command.args(["-a", adapter]);
        }
        let output =
            command.output().map_err(|error| format!("{} cannot be started: {error}", self.program.display()))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = [output.stderr, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        let said = said.iter().find(|said| !said.is_empty()).and_then(|said| said.lines().next_back());
        let said = said.unwrap_or("it printed nothing");
        Err(format!("{} ({})", said.strip_prefix("ERROR: ").unwrap_or(said), output.status))
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
            iterations = iterations.min(most.max(5) + 1);
        }
        let Printed { device, milliseconds, baseline } = once(iterations, dispatches)?;
        let hot = |milliseconds: &[f64]| milliseconds.iter().skip(1).map(|each| each * 1e3).collect::<Vec<f64>>();
        let baseline = baseline.map(|milliseconds| Quartiles::of(&hot(&milliseconds)).median);
        Ok(Timed { device, dispatches, samples: Samples::Each(hot(&milliseconds)), baseline })
    }

    /// As `run.ps1` does.
    fn time_foreign(&self, entry: &Entry, samples: u32) -> Result<Timed, String> {
        let mut all = Log::default();
        for verbosity in [2, 0, 0, 0, 0, 0] {
            let mut arguments = vec![format!("{}.json", entry.name)];
            for (option, value) in [("-i", samples + 1), ("-w", 1), ("-r", entry.work.dispatches), ("-v", verbosity)] {
                arguments.extend([option.to_owned(), value.to_string()]);
            }
            let mut logs = read_log(&self.call(&self.folder, &arguments)?)?;
            all.extend(logs.remove(&entry.name).ok_or("it printed no line for the dispatchable")?);
        }
        let samples = all.samples().ok_or_else(|| all.why_nothing())?;
        Ok(Timed {
            device: self.foreign(all.device.clone())?,
            dispatches: entry.work.dispatches,
            samples,
            baseline: None,
        })
    }

    fn foreign(&self, device: Option<String>) -> Result<Device, String> {
        let name = device.ok_or("it printed no line \"Running on '…'\"")?;
        Ok(Device { name, driver: String::new(), pci: String::new(), timing: DXDISPATCH_TIMING.to_owned() })
    }

    /// The bytes that a small model writes.
    pub fn output(&self, name: &str) -> Result<(Device, Vec<u8>), String> {
        let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        let mut arguments = vec![self.model(name).display().to_string()];
        if self.own {
            arguments.extend(["--format".to_owned(), "json".to_owned()]);
        }
        let output = self.call(folder.path(), &arguments)?;
        let device = if self.own {
            printed(&output)?.device
        } else {
            self.foreign(read_log(&output)?.remove(name).and_then(|log| log.device))?
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

/// The program, which a process with another current directory must find, too: a path, or a name to look up as a shell does.
fn find_program(program: &Path) -> Result<PathBuf, String> {
    let mut places = vec![program.to_owned()];
    if program.components().count() == 1 {
        let path = std::env::var_os("PATH").unwrap_or_default();
        places.extend(std::env::split_paths(&path).map(|folder| folder.join(program)));
    }
    let found = places.iter().filter(|place| place.is_file()).find_map(|place| place.canonicalize().ok());
    found.ok_or_else(|| format!("{} is no program: there is no such file", program.display()))
}
