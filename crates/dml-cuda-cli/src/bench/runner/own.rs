//! This program as a runner: `dml-cuda MODEL.json --format json` for a case, and the hidden `dml-cuda kernel NAME` for a
//! baseline or with a cold L2, which times a case next to its own baseline.
//!
//! ```text
//! small model    dml-cuda case.json --format json -i 1 -r 1      its output
//! on a GPU       … -i 31 -r 1000                                  31 samples, the first of them cold
//! on a CPU       … -i 1 -r 1, then … -i 8 -r 1                    as many as there is time for
//! ```
//!
//! On a CPU a case may be a thousand times slower than on a GPU. There it runs once, which tells how often it can run in two
//! seconds. A process that is left when `bench` is killed would disturb the next one, so that on Linux it ends with `bench`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dml_cuda::DeviceError;
use serde::Deserialize;

use super::{Answer, Failure, Runner};
use crate::bench::results::{Machine, Outcome};
use crate::bench::statistics::median;
use crate::bench::suite::{self, Case};
use crate::bench::{kernel, machine, process};
use crate::options::Bench;
use crate::out::{complain, shown};
use crate::run::events::of_kernels;
use crate::signals::OF_A_BENCH;

/// The name of the CPU device.
const CPU: &str = "CPU";
/// An iteration on a CPU takes no longer than this, if a single dispatch does not.
const CPU_ITERATION_MILLISECONDS: f64 = 100.0;
/// A case on a CPU takes no longer than this, but has 7 samples.
const CPU_CASE_MILLISECONDS: f64 = 2000.0;
/// An interval of fewer samples says little.
const CPU_LEAST_SAMPLES: u32 = 7;
/// How long a GPU works while its clocks are read.
const WORK: Duration = Duration::from_secs(3);

/// This program, and the device that its first process has found.
pub struct Own<'a> {
    program: PathBuf,
    asked: &'a Bench,
    device: Device,
    /// Why the CPU is timed, although no option names it.
    note: String,
}

/// The device as the first line of a process describes it.
#[derive(Default, Deserialize)]
struct Device {
    name: String,
    driver: String,
    /// The id of a GPU for NVIDIA's tools.
    pci: String,
    /// How samples are taken.
    timing: String,
}

/// A line of `--format json`.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Device(Device),
    Dispatch {
        cpu_milliseconds: Vec<f64>,
        gpu_milliseconds: Vec<f64>,
        #[serde(default)]
        kernel: String,
    },
    /// A line that says nothing about times.
    #[serde(other)]
    Other,
}

/// What a process printed. The case's own baseline comes after the case.
#[derive(Default)]
struct Printed {
    device: Device,
    dispatched: Vec<Dispatched>,
}

/// A dispatchable that was timed.
#[derive(Debug, PartialEq)]
struct Dispatched {
    /// The kernel that ran, with its variant. Empty on a CPU.
    kernel: String,
    /// Microseconds of each iteration, on the GPU if there is one.
    each: Vec<f64>,
}

impl<'a> Own<'a> {
    /// Finds the device by a first process, which fails if there is none.
    pub fn start(asked: &'a Bench) -> Result<Self, String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("this program's path is not known: {error}"))?;
        let note = match dml_cuda::Device::cuda_status() {
            _ if asked.adapter.is_some() => "",
            Ok(0) => "the driver reports no GPU, so the CPU was timed",
            Err(DeviceError::NoDriver) => "there is no GPU driver, so the CPU was timed",
            Ok(_) => "",
            Err(error) => return Err(format!("{error}; -a cpu times the CPU")),
        };
        if !note.is_empty() {
            complain!("NOTE: {note}");
        }
        let mut own = Self {
            program,
            asked,
            device: Device::default(),
            note: note.to_owned(),
        };
        // A missing device is one error, not one for each case.
        let printed = own.call(Path::new("."), "kernel baseline_of_fills.1mib")?;
        own.device = printed.device;
        if own.device.name == CPU && asked.cold_l2 {
            return Err(
                "--cold-l2 is given on the CPU, but must be on a GPU, whose L2 is kept cold"
                    .to_owned(),
            );
        }
        Ok(own)
    }

    /// Runs this program. An error is the last one that it printed.
    fn call(&self, folder: &Path, words: &str) -> Result<Printed, Failure> {
        let mut command = Command::new(&self.program);
        // The process ends with this one.
        command.env(OF_A_BENCH, std::process::id().to_string());
        let ended = super::run_program(&mut command, folder, words, self.asked)?;
        if ended.status.success() {
            return Ok(read(&ended.stdout)?);
        }
        let mut lines = ended.stderr.lines().rev();
        let error = lines.find_map(|line| line.strip_prefix("ERROR: "));
        let error = shown(error.unwrap_or("no error was printed"));
        Err(format!("{error} ({})", ended.status).into())
    }

    /// Runs a case as often as `times` says.
    fn call_case(&self, folder: &Path, case: &Case, times: &Times) -> Result<Printed, Failure> {
        let (words, iterations, dispatches) =
            (self.words(case), times.iterations, times.dispatches);
        self.call(folder, &format!("{words} -i {iterations} -r {dispatches}"))
    }

    /// The command line of a case.
    fn words(&self, case: &Case) -> String {
        match (self.asked.cold_l2, case.is_baseline()) {
            (true, _) => format!("kernel {} --cold-l2", case.name),
            (false, true) => format!("kernel {}", case.name),
            (false, false) => format!("{}.json --format json", case.name),
        }
    }
}

impl Runner for Own<'_> {
    /// With a cold L2 there are sizes and addresses that Direct3D does not have.
    fn cases(&self) -> Vec<Case> {
        if self.asked.cold_l2 {
            suite::cold()
        } else {
            suite::of_tier(self.asked.tier)
        }
    }

    /// A small model is run once for its output. A timed case has its baseline with it, if its process has timed one.
    fn answer(&mut self, case: &Case) -> Result<Answer, Failure> {
        let files = if self.asked.cold_l2 {
            Vec::new()
        } else {
            case.files()?
        };
        let folder = super::folder(files)?;
        let folder = folder.path();
        let mut answer = Answer {
            notes: vec![self.note.clone()],
            ..Answer::default()
        };
        if case.work.is_none() {
            answer.device = self.call_case(folder, case, &ONCE)?.device.name;
            answer.outcome = Some(super::output(folder, case)?);
            return Ok(answer);
        }
        let mut times = Times {
            iterations: self.asked.samples + 1,
            dispatches: case.dispatches,
        };
        // Only a first dispatch tells how slow a CPU is.
        if self.device.name == CPU {
            let first = self.call_case(folder, case, &ONCE)?.longest();
            times = times.on_cpu(first / 1e3);
        }
        let Printed { device, dispatched } = self.call_case(folder, case, &times)?;
        if let Some(timed) = dispatched.first() {
            answer.kernel.clone_from(&timed.kernel);
        }
        // The first iteration is cold.
        let mut hot = dispatched.iter().filter_map(|timed| timed.each.get(1..));
        answer.device = device.name;
        answer.outcome = Some(Outcome::Each(hot.next().unwrap_or_default().to_vec()));
        answer.baseline = hot.next().filter(|hot| !hot.is_empty()).map(median);
        answer.dispatches = times.dispatches;
        Ok(answer)
    }

    /// Reads the clocks while this program fills memory: the last case may be too short for that.
    fn describe(&self, machine: &mut Machine, _: &Case) -> String {
        machine.tool = format!("dml-cuda {}", env!("CARGO_PKG_VERSION"));
        machine.commit = option_env!("DML_CUDA_COMMIT")
            .unwrap_or_default()
            .to_owned();
        let Device {
            name,
            driver,
            pci,
            timing,
        } = &self.device;
        name.clone_into(&mut machine.device);
        driver.clone_into(&mut machine.driver);
        let mut fill = Command::new(&self.program);
        fill.args("kernel baseline_of_fills.64mib -i 1000000".split(' '));
        fill.args(
            self.asked
                .adapter
                .iter()
                .flat_map(|adapter| ["-a", adapter]),
        );
        let fills = || drop(process::run_to_end(&mut fill, WORK));
        if let Some(gpu) = machine::nvidia(pci, fills) {
            machine.driver = format!("{} ({driver})", gpu.driver);
            machine.clocks = gpu.clocks;
        }
        if !self.asked.cold_l2 {
            return timing.clone();
        }
        // The programs that were timed have refused a wrong variable.
        let device = dml_cuda::Device::cpu().with_environment();
        let options = device.map(|device| device.compile_options());
        let kernels = of_kernels(options.unwrap_or_default(), true);
        format!("{}{kernels}", kernel::TIMING)
    }
}

impl Printed {
    /// The microseconds of the longest iteration, or of one that a clock can measure.
    fn longest(&self) -> f64 {
        let microseconds = self.dispatched.iter().flat_map(|timed| &timed.each);
        microseconds.copied().fold(0.1, f64::max)
    }
}

/// How many iterations of how many dispatches a case has.
struct Times {
    iterations: u32,
    dispatches: u32,
}

const ONCE: Times = Times {
    iterations: 1,
    dispatches: 1,
};

impl Times {
    /// What a CPU has time for, if a first dispatch takes these milliseconds.
    fn on_cpu(self, first: f64) -> Self {
        let dispatches = self
            .dispatches
            .min((CPU_ITERATION_MILLISECONDS / first) as u32)
            .max(1);
        let most = (CPU_CASE_MILLISECONDS / (first * f64::from(dispatches))) as u32;
        Self {
            iterations: self.iterations.min(most.max(CPU_LEAST_SAMPLES) + 1),
            dispatches,
        }
    }
}

/// Reads the lines of a process.
fn read(text: &str) -> Result<Printed, String> {
    let mut printed = Printed::default();
    for line in text.lines() {
        match serde_json::from_str(line)
            .map_err(|error| format!("it printed '{}': {error}", shown(line)))?
        {
            Event::Device(device) => printed.device = device,
            Event::Dispatch {
                cpu_milliseconds,
                gpu_milliseconds,
                kernel,
            } => {
                let mut each = gpu_milliseconds;
                if each.is_empty() {
                    each = cpu_milliseconds;
                }
                each.iter_mut().for_each(|time| *time *= 1e3);
                printed.dispatched.push(Dispatched { kernel, each });
            }
            Event::Other => {}
        }
    }
    Ok(printed)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_slow_cpu_does_less() {
        for (first, limits) in [
            (0.01, (31, 10)),
            (1.0, (31, 10)),
            (15.0, (23, 6)),
            (30.0, (23, 3)),
            (500.0, (8, 1)),
        ] {
            let times = super::Times {
                iterations: 31,
                dispatches: 10,
            };
            let found = times.on_cpu(first);
            assert_eq!((found.iterations, found.dispatches), limits, "{first}");
        }
    }

    #[test]
    fn a_baseline_comes_behind_its_case() {
        let line = |cpu: &str, gpu: &str| {
            format!(
                r#"{{"event":"dispatch","dispatchable":"x","cpu_milliseconds":{cpu},"gpu_milliseconds":{gpu}}}"#
            )
        };
        let timed = super::read(&[line("[3.0]", "[1.0, 2.0]"), line("[0.5]", "[]")].join("\n"))
            .expect("lines")
            .dispatched;
        let dispatched = |each: &[f64]| super::Dispatched {
            kernel: String::new(),
            each: each.to_vec(),
        };
        assert_eq!(timed, [dispatched(&[1000.0, 2000.0]), dispatched(&[500.0])]);
    }
}
