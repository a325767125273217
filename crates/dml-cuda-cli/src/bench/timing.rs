//! `dml-cuda bench`: times a suite, model by model, each in a process of its own, with this runner or with DxDispatch.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;

use crate::bench::import::{hexadecimal, read_log, Log, DXDISPATCH_TIMING};
use crate::bench::record::{Machine, Run, Samples, Timing, SCHEMA};
use crate::bench::suite::manifest::{Entry, Manifest, Mode, Work};
use crate::out::{complain, say};

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
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let runner = Runner::new(options)?;
    let entries: Vec<&Entry> =
        manifest.cases.iter().filter(|entry| wanted(&entry.name) && runner.runs(entry.work.mode)).collect();
    let checks: Vec<&String> = manifest.checks.iter().filter(|name| wanted(name)).collect();
    if entries.is_empty() && checks.is_empty() {
        let only = options.only.as_deref().unwrap_or_default();
        return Err(format!("--only '{only}' is in the name of no model that this runner times"));
    }
    let mut run = begin(options, &manifest, &runner)?;
    let has = |entry: &Entry| run.cases.iter().any(|timing| timing.work.key() == entry.work.key());
    let jobs: Vec<(&String, Option<&Entry>)> = entries
        .into_iter()
        .filter(|entry| !has(entry))
        .map(|entry| (&entry.name, Some(entry)))
        .chain(checks.into_iter().filter(|name| !run.outputs.contains_key(*name)).map(|name| (name, None)))
        .collect();
    let to = options.to.display();
    if jobs.is_empty() {
        let (cases, outputs) = (run.cases.len(), run.outputs.len());
        say!("Run '{}' in '{to}': nothing left to time, {cases} cases and {outputs} outputs are there", run.label)?;
        return Ok(ExitCode::SUCCESS);
    }
    // What failed is tried again.
    run.notes.retain(|note| {
        !jobs.iter().any(|(name, _)| note.strip_prefix(*name).is_some_and(|rest| rest.starts_with(": ")))
    });
    let mut progress = Progress::new(jobs.len());
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for (name, entry) in jobs {
        progress.begins(name);
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
                let why = format!("{name}: {error}");
                let times = failures.entry(error).or_default();
                *times += 1;
                // The same error of every model is said once.
                if *times == 1 {
                    progress.warn(&why);
                }
                run.notes.push(why);
            }
        }
        // A run of which nothing is known is no file.
        if !run.cases.is_empty() || !run.outputs.is_empty() {
            run.write(&options.to)?;
        }
        progress.ends();
    }
    progress.bar.finish_and_clear();
    for (error, times) in failures.iter().filter(|(_, times)| **times > 1) {
        complain!("WARNING: {} more models failed in the same way: {error}", times - 1);
    }
    if run.cases.is_empty() && run.outputs.is_empty() {
        return Err("nothing was timed: every model failed".to_owned());
    }
    let (cases, outputs, failed) = (run.cases.len(), run.outputs.len(), failures.values().sum::<usize>());
    say!("Run '{}' written to '{to}': {cases} cases, {outputs} outputs, {failed} failed", run.label)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How far a bench is: a bar on a terminal, else a line for each tenth.
struct Progress {
    bar: ProgressBar,
    done: usize,
    count: usize,
    started: Instant,
}

impl Progress {
    fn new(count: usize) -> Self {
        // It draws on a terminal only, and on stderr.
        let bar = ProgressBar::new(count as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}") {
            bar.set_style(style);
        }
        Self { bar, done: 0, count, started: Instant::now() }
    }

    fn begins(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    fn warn(&self, why: &str) {
        self.bar.suspend(|| complain!("WARNING: {why}"));
    }

    fn ends(&mut self) {
        self.bar.inc(1);
        let tenth = |done: usize| done * 10 / self.count;
        let (before, after) = (tenth(self.done), tenth(self.done + 1));
        self.done += 1;
        if after > before && !std::io::stderr().is_terminal() {
            complain!("{} of {} models, {} s", self.done, self.count, self.started.elapsed().as_secs());
        }
    }
}

/// What a model leaves in the run.
enum Outcome {
    Case(Timing),
    Output(String),
}

/// The run so far, where an earlier call was interrupted, or a new one.
fn begin(options: &Options, manifest: &Manifest, runner: &Runner) -> Result<Run, String> {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let machine = Machine {
        tool: runner.tool.clone(),
        commit: if runner.own { option_env!("DML_CUDA_COMMIT").unwrap_or_default().to_owned() } else { String::new() },
        host: host(),
        operating_system: operating_system(),
        date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        command: words.join(" "),
        ..Machine::default()
    };
    let mut now =
        Run { schema: SCHEMA, suite: manifest.id.clone(), machine, samples: options.samples, ..Run::default() };
    if now.machine.commit.is_empty() {
        now.machine.program = runner.hash()?;
    }
    if runner.own {
        // Before any model, so that a device that cannot be had is said once.
        let (device, _) = times(&runner.call(&runner.folder, &["roof", "fill", "4"].map(str::to_owned))?)?;
        set_device(&mut now, device);
    }
    // A link that leads nowhere is no file either, which writing says.
    if !options.to.exists() {
        return Ok(now);
    }
    // Reading a pipe of our own would never end.
    if !options.to.is_file() {
        return Err(format!("{} is not a regular file, which a run goes to", options.to.display()));
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
    agree(&run, &now, manifest, options)?;
    run.machine.command = now.machine.command;
    Ok(run)
}

/// An error that says what differs, unless samples of both can be in one run. Of another runner the device is known later.
fn agree(run: &Run, now: &Run, manifest: &Manifest, options: &Options) -> Result<(), String> {
    let (there, here) = (&run.machine, &now.machine);
    let mut fields = vec![
        ("tool", there.tool.clone(), here.tool.clone()),
        ("commit", there.commit.clone(), here.commit.clone()),
        ("program", there.program.clone(), here.program.clone()),
        ("host", there.host.clone(), here.host.clone()),
        ("operating system", there.operating_system.clone(), here.operating_system.clone()),
        ("samples", run.samples.to_string(), now.samples.to_string()),
    ];
    if !here.device.is_empty() {
        fields.extend([
            ("device", there.device.clone(), here.device.clone()),
            ("driver", there.driver.clone(), here.driver.clone()),
            ("timing", run.timing.clone(), now.timing.clone()),
        ]);
    }
    // The suites have one name; the work may have changed in between.
    for timing in &run.cases {
        let entry = manifest.cases.iter().find(|entry| entry.work.key() == timing.work.key());
        if let Some(entry) = entry.filter(|entry| entry.work.bytes != timing.work.bytes) {
            let bytes = |work: &Work| format!("{} bytes", work.bytes);
            fields.push(("a case", format!("{}, {}", entry.name, bytes(&timing.work)), bytes(&entry.work)));
        }
    }
    let differences: Vec<String> = fields
        .into_iter()
        .filter(|(_, there, here)| there != here)
        .map(|(name, there, here)| format!("{name} was '{there}', is '{here}'"))
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} is a run of {} on {} and cannot go on, it needs a file of its own: {}",
        options.to.display(),
        there.tool,
        there.device,
        differences.join("; ")
    ))
}

fn set_device(run: &mut Run, found: Device) {
    run.label = format!("{} on {}", run.machine.tool, found.name);
    (run.machine.driver, run.machine.clocks) = driver_and_clocks(&found);
    run.machine.device = found.name;
    run.timing = found.timing;
}

/// All models must run on one device.
fn check_device(run: &mut Run, found: Device, options: &Options) -> Result<(), String> {
    // Clocks are read behind the first model: a GPU that waits lowers them.
    if run.machine.device.is_empty() || (run.cases.is_empty() && run.outputs.is_empty()) {
        set_device(run, found);
    } else if run.machine.device != found.name {
        return Err(format!(
            "{} is a run of {} on {}, this is {}: it needs a file of its own",
            options.to.display(),
            run.machine.tool,
            run.machine.device,
            found.name
        ));
    }
    Ok(())
}

/// What ran.
struct Device {
    name: String,
    driver: String,
    /// By which NVIDIA's tools know a GPU; empty where that is not known.
    pci: String,
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
    tool: String,
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
        #[serde(default)]
        pci: String,
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
            Some(program) => find_program(program)?,
            None => std::env::current_exe().map_err(|error| format!("this program's path is not known: {error}"))?,
        };
        let tool = if own {
            format!("dml-cuda {}", env!("CARGO_PKG_VERSION"))
        } else {
            program.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let folder = options.folder.canonicalize().map_err(|error| format!("{}: {error}", options.folder.display()))?;
        let cpu_asked = options.adapter.as_deref().is_some_and(|adapter| adapter.eq_ignore_ascii_case("cpu"));
        let on_cpu = cpu_asked || dml_cuda::Device::cuda_count() == 0;
        Ok(Self { program, tool, own, on_cpu, options, folder })
    }

    /// A hash of the program's file, to tell builds apart. Only this very file compares it, so that any hash will do.
    fn hash(&self) -> Result<String, String> {
        let bytes = std::fs::read(&self.program)
            .map_err(|error| format!("{} cannot be read: {error}", self.program.display()))?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        Ok(format!("{:016x}", hasher.finish()))
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
        let said = said.unwrap_or("it printed nothing");
        Err(format!("{} ({})", said.strip_prefix("ERROR: ").unwrap_or(said), output.status))
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
        let name = device.ok_or("it printed no line \"Running on '…'\"")?;
        Ok(Device { name, driver: String::new(), pci: String::new(), timing: DXDISPATCH_TIMING.to_owned() })
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
            Event::Device { name, driver, pci, timing } => device = Some(Device { name, driver, pci, timing }),
            Event::Dispatch { cpu_milliseconds, gpu_milliseconds } => {
                milliseconds = if gpu_milliseconds.is_empty() { cpu_milliseconds } else { gpu_milliseconds };
            }
            Event::Other => {}
        }
    }
    Ok((device.ok_or("it did not say on which device it ran")?, milliseconds))
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

/// The driver and the clocks now, as NVIDIA's own tool says them of this GPU, where the tool is there.
fn driver_and_clocks(device: &Device) -> (String, String) {
    let unknown = || (device.driver.clone(), String::new());
    if device.pci.is_empty() {
        return unknown();
    }
    let query = ["--query-gpu=driver_version,clocks.sm,clocks.mem,clocks.max.sm", "--format=csv,noheader"];
    let output = Command::new("nvidia-smi").args(query).args(["-i", &device.pci]).stdin(Stdio::null()).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout).unwrap_or_default();
    queried(&String::from_utf8_lossy(&text), &device.driver).unwrap_or_else(unknown)
}

/// What the tool answers for one GPU.
fn queried(text: &str, cuda: &str) -> Option<(String, String)> {
    match text.trim().splitn(4, ", ").collect::<Vec<_>>().as_slice() {
        [driver, sm, memory, most] => {
            Some((format!("{driver} ({cuda})"), format!("SM {sm} of at most {most}, memory {memory}")))
        }
        _ => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_described_by_its_own_line() {
        let (driver, clocks) = queried("580.159.04, 1980 MHz, 3201 MHz, 1980 MHz\n", "CUDA 13.0").expect("a line");
        assert_eq!(
            (driver.as_str(), clocks.as_str()),
            ("580.159.04 (CUDA 13.0)", "SM 1980 MHz of at most 1980 MHz, memory 3201 MHz")
        );
        assert_eq!(queried("No devices were found", "CUDA 13.0"), None);
        let device = |pci: &str| Device {
            name: "GPU".into(),
            driver: "CUDA 13.0".into(),
            pci: pci.into(),
            timing: String::new(),
        };
        // No tool is asked of a device that it cannot name, and the first GPU's clocks are not another's.
        assert_eq!(driver_and_clocks(&device("")), ("CUDA 13.0".to_owned(), String::new()));
    }
}
