//! This program as a runner: `dml-cuda MODEL.json --format json`, a process for each case.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dml_cuda::DeviceError;
use serde::Deserialize;

use super::{Answer, Runner};
use crate::bench::results::{Machine, Outcome};
use crate::bench::statistics::median;
use crate::bench::suite::{self, Case};
use crate::bench::{kernel, machine, process};
use crate::options::Bench;
use crate::out::{complain, shown};
use crate::run::events::of_kernels;
use crate::signals::OF_A_BENCH;

const CPU: &str = "CPU";
/// An iteration on a CPU takes no longer than this, if a single dispatch does not.
const CPU_ITERATION_MILLISECONDS: f64 = 100.0;
/// A case on a CPU takes no longer than this, but has 7 samples.
const CPU_CASE_MILLISECONDS: f64 = 2000.0;
const CPU_LEAST_SAMPLES: u32 = 7;
/// A GPU works so long while its clocks are read.
const WORK: Duration = Duration::from_secs(3);

pub struct Own<'a> {
    program: PathBuf,
    asked: &'a Bench,
    device: Device,
    /// Why the CPU is timed, although no option names it.
    note: String,
}

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
    #[serde(other)]
    Other,
}

/// What a process printed: the device and its dispatches. The case's own baseline is behind it.
type Printed = (Device, Vec<Dispatched>);

#[derive(Debug, PartialEq)]
struct Dispatched {
    kernel: String,
    /// Microseconds of each iteration, on the GPU if there is one.
    each: Vec<f64>,
}

impl<'a> Own<'a> {
    pub fn start(asked: &'a Bench) -> Result<Self, String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("this program's path is not known: {error}"))?;
        let note = match dml_cuda::Device::cuda_status() {
            _ if asked.adapter.is_some() => "",
            Ok(0) => "the driver reports no GPU, so the CPU was timed",
            Err(DeviceError::NoDriver) => "there is no GPU driver, so the CPU was timed",
            found => found
                .map(|_| "")
                .map_err(|error| format!("{error}; -a cpu times the CPU"))?,
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
        (own.device, _) = own.call(Path::new("."), "kernel baseline_of_fills.1mib")?;
        if own.device.name == CPU && asked.cold_l2 {
            return Err(
                "--cold-l2 is given on the CPU, but must be on a GPU, whose L2 is kept cold"
                    .to_owned(),
            );
        }
        Ok(own)
    }

    fn call(&self, folder: &Path, words: &str) -> Result<Printed, String> {
        let mut command = Command::new(&self.program);
        command.env(OF_A_BENCH, std::process::id().to_string());
        let ended = super::run(&mut command, folder, words, self.asked)?;
        if ended.status.success() {
            return read(&ended.stdout);
        }
        let error = ended
            .stderr
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("ERROR: "));
        Err(format!(
            "{} ({})",
            shown(error.unwrap_or("no error was printed")),
            ended.status
        ))
    }

    fn words(&self, case: &Case) -> String {
        match (self.asked.cold_l2, case.is_baseline()) {
            (true, _) => format!("kernel {} --cold-l2", case.name),
            (false, true) => format!("kernel {}", case.name),
            (false, false) => format!("{}.json --format json", case.name),
        }
    }
}

impl Runner for Own<'_> {
    fn cases(&self) -> Vec<Case> {
        match self.asked.cold_l2 {
            true => suite::cold(),
            false => suite::of_tier(self.asked.tier),
        }
    }

    fn answer(&mut self, case: &Case) -> Result<Answer, String> {
        let folder = super::folder(if self.asked.cold_l2 {
            Vec::new()
        } else {
            case.files()?
        })?;
        let (words, notes) = (self.words(case), vec![self.note.clone()]);
        let once = |iterations: u32, dispatches: u32| {
            self.call(
                folder.path(),
                &format!("{words} -i {iterations} -r {dispatches}"),
            )
        };
        if case.work.is_none() {
            let device = once(1, 1)?.0.name;
            let outcome = Some(super::output(folder.path(), case)?);
            return Ok(Answer {
                device,
                outcome,
                notes,
                ..Answer::default()
            });
        }
        let (mut iterations, mut dispatches) = (self.asked.samples + 1, case.dispatches);
        // Only a first run tells how slow a CPU is.
        if self.device.name == CPU {
            let dispatched = once(1, 1)?.1;
            let microseconds = dispatched.iter().flat_map(|dispatched| &dispatched.each);
            let first = microseconds.fold(0.1, |longest, &each| each.max(longest)) / 1e3;
            (iterations, dispatches) = on_cpu(first, iterations, dispatches);
        }
        let (device, timed) = once(iterations, dispatches)?;
        let kernel = timed
            .first()
            .map(|dispatched| dispatched.kernel.clone())
            .unwrap_or_default();
        // The first iteration is cold.
        let mut hot = timed
            .iter()
            .filter_map(|dispatched| dispatched.each.get(1..));
        let outcome = Some(Outcome::Each(hot.next().unwrap_or_default().to_vec()));
        let baseline = hot.next().filter(|hot| !hot.is_empty()).map(median);
        Ok(Answer {
            device: device.name,
            outcome,
            dispatches,
            kernel,
            baseline,
            notes,
        })
    }

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
        let fills = || drop(process::run(&mut fill, WORK));
        if let Some([_, installed, clocks]) = machine::nvidia(pci, fills) {
            machine.driver = format!("{installed} ({driver})");
            machine.clocks = clocks;
        }
        match self.asked.cold_l2 {
            // The programs that were timed have refused a wrong variable.
            true => {
                let options = dml_cuda::Device::cpu()
                    .with_environment()
                    .map(|device| device.compile_options());
                [
                    kernel::TIMING,
                    of_kernels(options.unwrap_or_default(), true),
                ]
                .concat()
            }
            false => timing.clone(),
        }
    }
}

/// How many iterations of how many dispatches a CPU has time for, if a first dispatch takes these milliseconds.
fn on_cpu(first: f64, iterations: u32, dispatches: u32) -> (u32, u32) {
    let dispatches = dispatches
        .min((CPU_ITERATION_MILLISECONDS / first) as u32)
        .max(1);
    let most = (CPU_CASE_MILLISECONDS / (first * f64::from(dispatches))) as u32;
    (iterations.min(most.max(CPU_LEAST_SAMPLES) + 1), dispatches)
}

fn read(text: &str) -> Result<Printed, String> {
    let (mut device, mut dispatches) = Printed::default();
    for line in text.lines() {
        match serde_json::from_str(line)
            .map_err(|error| format!("it printed '{}': {error}", shown(line)))?
        {
            Event::Device(found) => device = found,
            Event::Dispatch {
                cpu_milliseconds,
                gpu_milliseconds,
                kernel,
            } => {
                let each = if gpu_milliseconds.is_empty() {
                    cpu_milliseconds
                } else {
                    gpu_milliseconds
                };
                let each = each
                    .into_iter()
                    .map(|milliseconds| milliseconds * 1e3)
                    .collect();
                dispatches.push(Dispatched { kernel, each });
            }
            Event::Other => {}
        }
    }
    Ok((device, dispatches))
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
            assert_eq!(super::on_cpu(first, 31, 10), limits, "{first}");
        }
    }

    #[test]
    fn a_baseline_comes_behind_its_case() {
        let line = |cpu: &str, gpu: &str| {
            format!(
                r#"{{"event":"dispatch","dispatchable":"x","cpu_milliseconds":{cpu},"gpu_milliseconds":{gpu}}}"#
            )
        };
        let (_, timed) =
            super::read(&[line("[3.0]", "[1.0, 2.0]"), line("[0.5]", "[]")].join("\n"))
                .expect("lines");
        let dispatched = |each: &[f64]| super::Dispatched {
            kernel: String::new(),
            each: each.to_vec(),
        };
        assert_eq!(timed, [dispatched(&[1000.0, 2000.0]), dispatched(&[500.0])]);
    }
}
