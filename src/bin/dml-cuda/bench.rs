//! `dml-cuda bench`: times a suite, model by model, each in a process of its own, with this runner or with DxDispatch.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;

use crate::import::{hexadecimal, read_log, Log, DXDISPATCH_TIMING};
use crate::out::say;
use crate::record::{Machine, Run, Samples, Timing, SCHEMA};
use crate::suite::manifest::{Entry, Manifest, Mode, Work};

pub struct Options {
    pub folder: PathBuf,
    pub to: PathBuf,
    /// Cases whose names hold this.
    pub only: Option<String>,
    pub samples: u32,
    /// DxDispatch, or what prints the same; this program else.
    pub runner: Option<PathBuf>,
    pub adapter: Option<String>,
}

/// An iteration on a CPU takes no longer than this, where it can be helped.
const CPU_ITERATION_MILLISECONDS: f64 = 100.0;
/// A case on a CPU takes no longer than this, but has 5 samples.
const CPU_CASE_MILLISECONDS: f64 = 2000.0;

pub fn run(options: &Options) -> Result<ExitCode, String> {
    let manifest = Manifest::read(&options.folder)?;
    let mut run = begin(options, &manifest)?;
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let runner = Runner::new(options)?;
    let entries: Vec<&Entry> = manifest
        .cases
        .iter()
        .filter(|entry| wanted(&entry.name))
        .filter(|entry| !run.cases.iter().any(|timing| timing.work.key() == entry.work.key()))
        .filter(|entry| runner.runs(entry.work.mode))
        .collect();
    let checks: Vec<&String> =
        manifest.checks.iter().filter(|name| wanted(name) && !run.outputs.contains_key(*name)).collect();
    // On a terminal only, and on stderr.
    let progress = ProgressBar::new((entries.len() + checks.len()) as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}") {
        progress.set_style(style);
    }
    let mut failed = 0;
    let jobs =
        entries.into_iter().map(|entry| (&entry.name, Some(entry))).chain(checks.into_iter().map(|name| (name, None)));
    for (name, entry) in jobs {
        progress.set_message(name.clone());
        let outcome = match entry {
            Some(entry) => runner.time(entry, options.samples).map(|Timed { device, dispatches, samples }| {
                let work = Work { dispatches, ..entry.work.clone() };
                (device, Outcome::Case(Timing { work, samples, roof: None }))
            }),
            None => runner.output(name).map(|(device, output)| (device, Outcome::Output(hexadecimal(&output)))),
        };
        match outcome {
            Ok((device, outcome)) => {
                check_device(&mut run, device, options)?;
                match outcome {
                    Outcome::Case(timing) => run.cases.push(timing),
                    Outcome::Output(digits) => drop(run.outputs.insert(name.clone(), digits)),
                }
            }
            Err(error) => {
                failed += 1;
                let why = format!("{name}: {error}");
                progress.suspend(|| eprintln!("WARNING: {why}"));
                run.notes.push(why);
            }
        }
        run.write(&options.to)?;
        progress.inc(1);
    }
    progress.finish_and_clear();
    if run.cases.is_empty() && run.outputs.is_empty() {
        return Err("nothing was timed: no model of the suite ran, or --only is part of no name".to_owned());
    }
    run.write(&options.to)?;
    let (cases, outputs) = (run.cases.len(), run.outputs.len());
    say!(
        "Run '{}' written to '{}': {cases} cases, {outputs} outputs, {failed} failed",
        run.label,
        options.to.display()
    )?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a model leaves in the run.
enum Outcome {
    Case(Timing),
    Output(String),
}

/// The run so far, where an earlier call was interrupted, or a new one.
fn begin(options: &Options, manifest: &Manifest) -> Result<Run, String> {
    let words: Vec<String> = std::env::args().collect();
    if !options.to.exists() {
        let machine = Machine {
            host: host(),
            operating_system: operating_system(),
            date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            command: words.join(" "),
            ..Machine::default()
        };
        return Ok(Run { schema: SCHEMA, suite: manifest.id.clone(), machine, ..Run::default() });
    }
    let mut run = Run::read(&options.to)?;
    if run.suite != manifest.id {
        return Err(format!(
            "{} is a run of the suite '{}', must be of '{}' to go on with, or a new file",
            options.to.display(),
            run.suite,
            manifest.id
        ));
    }
    // What failed is tried again.
    run.notes.clear();
    run.machine.command = words.join(" ");
    Ok(run)
}

/// The first case says what device it is; a run that goes on must be on the same.
fn check_device(run: &mut Run, found: Device, options: &Options) -> Result<(), String> {
    if run.machine.device.is_empty() {
        run.label = format!("{} on {}", found.tool, found.name);
        run.machine.clocks = clocks(&found);
        (run.machine.device, run.machine.driver, run.machine.tool) = (found.name, found.driver, found.tool);
        run.machine.commit = option_env!("DML_CUDA_COMMIT").unwrap_or_default().to_owned();
        run.timing = found.timing;
        return Ok(());
    }
    let (had, has) = ((&run.machine.device, &run.machine.tool), (&found.name, &found.tool));
    if had == has {
        return Ok(());
    }
    let file = options.to.display();
    Err(format!(
        "{file} is a run of {} on {}, this is {} on {}: it needs a file of its own",
        had.1, had.0, has.1, has.0
    ))
}

/// What ran.
struct Device {
    tool: String,
    name: String,
    driver: String,
    timing: String,
}

struct Timed {
    device: Device,
    dispatches: u32,
    samples: Samples,
}

/// The program that runs the models.
struct Runner<'a> {
    program: PathBuf,
    /// Whether it is this program, whose JSON has all digits.
    own: bool,
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
        timing: String,
    },
    Dispatch {
        cpu_milliseconds: Vec<f64>,
        gpu_milliseconds: Vec<f64>,
    },
    #[serde(other)]
    Other,
}

impl<'a> Runner<'a> {
    fn new(options: &'a Options) -> Result<Self, String> {
        let own = options.runner.is_none();
        let program = match &options.runner {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(|error| format!("this program's path is not known: {error}"))?,
        };
        // A process with another current directory must find it, too.
        let program = program.canonicalize().unwrap_or(program);
        let folder = options.folder.canonicalize().map_err(|error| format!("{}: {error}", options.folder.display()))?;
        let cpu_asked = options.adapter.as_deref().is_some_and(|adapter| adapter.eq_ignore_ascii_case("cpu"));
        let on_cpu = cpu_asked || dml_cuda::Device::cuda_count() == 0;
        Ok(Self { program, own, on_cpu, options, folder })
    }

    /// In place DirectML returns wrong data; a plain fill is not one of its operators.
    fn runs(&self, mode: Mode) -> bool {
        self.own || !matches!(mode, Mode::InPlace | Mode::RoofOfFills)
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
        Err(format!("{}: {}", output.status, said.unwrap_or("it printed nothing")))
    }

    fn time(&self, entry: &Entry, samples: u32) -> Result<Timed, String> {
        if !self.own {
            return self.time_foreign(entry, samples);
        }
        let once = |iterations: u32, dispatches: u32| {
            let model = match entry.work.mode {
                Mode::RoofOfCopies => vec!["roof".to_owned(), "copy".to_owned(), (entry.work.bytes / 2).to_string()],
                Mode::RoofOfFills => vec!["roof".to_owned(), "fill".to_owned(), entry.work.bytes.to_string()],
                _ => vec![self.model(&entry.name).display().to_string(), "--format".to_owned(), "json".to_owned()],
            };
            let mut arguments = model;
            arguments.extend(["-i".to_owned(), iterations.to_string(), "-r".to_owned(), dispatches.to_string()]);
            times(&self.call(&self.folder, &arguments)?)
        };
        let (mut iterations, mut dispatches) = (samples + 1, entry.work.dispatches);
        // Only a first run tells how slow a CPU is.
        if self.on_cpu {
            let (_, first) = once(1, 1)?;
            let first = first.iter().copied().fold(1e-4, f64::max);
            dispatches = dispatches.min((CPU_ITERATION_MILLISECONDS / first) as u32).max(1);
            let most = (CPU_CASE_MILLISECONDS / (first * f64::from(dispatches))) as u32;
            iterations = iterations.min(most.max(5) + 1);
        }
        let (device, milliseconds) = once(iterations, dispatches)?;
        let hot: Vec<f64> = milliseconds.iter().skip(1).map(|milliseconds| milliseconds * 1e3).collect();
        Ok(Timed { device, dispatches, samples: Samples::Each(hot) })
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
        Ok(Timed { device: self.foreign(all.device.clone())?, dispatches: entry.work.dispatches, samples })
    }

    fn foreign(&self, device: Option<String>) -> Result<Device, String> {
        let tool = self.program.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let name = device.ok_or("it printed no line \"Running on '…'\"")?;
        Ok(Device { tool, name, driver: String::new(), timing: DXDISPATCH_TIMING.to_owned() })
    }

    /// The bytes that a small model writes.
    fn output(&self, name: &str) -> Result<(Device, Vec<u8>), String> {
        let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
        let mut arguments = vec![self.model(name).display().to_string()];
        if self.own {
            arguments.extend(["--format".to_owned(), "json".to_owned()]);
        }
        let printed = self.call(folder.path(), &arguments)?;
        let device = if self.own {
            times(&printed)?.0
        } else {
            self.foreign(read_log(&printed)?.remove(name).and_then(|log| log.device))?
        };
        let file = format!("{name}.bin");
        let bytes = std::fs::read(folder.path().join(&file))
            .map_err(|error| format!("{file}, which it is to write: {error}"))?;
        Ok((device, bytes))
    }
}

/// The device and the milliseconds of each iteration, on the GPU where there are such.
fn times(printed: &[u8]) -> Result<(Device, Vec<f64>), String> {
    let (mut device, mut milliseconds) = (None, Vec::new());
    for line in String::from_utf8_lossy(printed).lines() {
        match serde_json::from_str(line).map_err(|error| format!("it printed '{line}': {error}"))? {
            Event::Device { name, driver, timing } => {
                let tool = format!("dml-cuda {}", env!("CARGO_PKG_VERSION"));
                device = Some(Device { tool, name, driver, timing });
            }
            Event::Dispatch { cpu_milliseconds, gpu_milliseconds } => {
                milliseconds = if gpu_milliseconds.is_empty() { cpu_milliseconds } else { gpu_milliseconds };
            }
            Event::Other => {}
        }
    }
    Ok((device.ok_or("it did not say on which device it ran")?, milliseconds))
}

/// The clocks now, as NVIDIA's own tool says them, where it is there.
fn clocks(device: &Device) -> String {
    if device.driver.is_empty() {
        return String::new();
    }
    let query = ["--query-gpu=driver_version,clocks.sm,clocks.mem,clocks.max.sm", "--format=csv,noheader", "-i", "0"];
    let output = Command::new("nvidia-smi").args(query).stdin(Stdio::null()).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    match text.splitn(4, ", ").collect::<Vec<_>>().as_slice() {
        [driver, sm, memory, most] => format!("driver {driver}, SM {sm} of at most {most}, memory {memory}"),
        _ => String::new(),
    }
}

/// The processor, where the system says it.
fn host() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", model.unwrap_or(std::env::consts::ARCH))
}

fn operating_system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).map(|name| name.trim_matches('"'));
    name.unwrap_or(std::env::consts::OS).to_owned()
}
