//! This program as a runner: `dml-cuda MODEL.json --format json`, a process for each case.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use super::{Answer, Asked, Device, Runner};
use crate::bench::kernel;
use crate::bench::machine;
use crate::bench::run::Outcome;
use crate::bench::statistics::Quartiles;
use crate::bench::suite::{self, Job, Task, Tier, Wanted};
use crate::bench::work::Mode;
use crate::out::shown;

/// An iteration on a CPU takes no longer than this, if a single dispatch does not.
const CPU_ITERATION_MILLISECONDS: f64 = 100.0;
/// A case on a CPU takes no longer than this, but has 7 samples.
const CPU_CASE_MILLISECONDS: f64 = 2000.0;
const CPU_LEAST_SAMPLES: u32 = 7;

pub struct Own {
    program: PathBuf,
    asked: Asked,
    on_cpu: bool,
    /// The device, with its driver and clocks once a case has run: an idle GPU lowers them.
    device: Option<Device>,
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

/// What a process printed: the device, and the milliseconds of each iteration, on the GPU if there is one.
struct Printed {
    device: Device,
    milliseconds: Vec<f64>,
    baseline: Option<Vec<f64>>,
}

impl Own {
    pub fn start(asked: Asked) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program's path is not known: {error}"))?;
        let cpu_asked = asked.adapter.as_deref().is_some_and(|adapter| adapter.eq_ignore_ascii_case("cpu"));
        let on_cpu = cpu_asked || dml_cuda::Device::cuda_count() == 0;
        if on_cpu && asked.cold_l2 {
            return Err("--cold-l2 is given on the CPU, must be on a GPU, whose L2 is kept cold".to_owned());
        }
        let own = Self { program, asked, on_cpu, device: None };
        // A missing device is one error, not one for each case.
        own.call(&std::env::temp_dir(), &["baseline", "fill", "4"].map(str::to_owned))?;
        Ok(own)
    }

    fn call(&self, folder: &std::path::Path, arguments: &[String]) -> Result<Printed, String> {
        let ended = super::run(&mut Command::new(&self.program), folder, arguments, &self.asked)?;
        if ended.status.success() {
            return printed(&String::from_utf8_lossy(&ended.stdout));
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let error = said.lines().rev().find_map(|line| line.strip_prefix("ERROR: "));
        Err(format!("{} ({})", shown(error.unwrap_or("no error was printed")), ended.status))
    }

    fn arguments(&self, job: &Job) -> Vec<String> {
        match &job.task {
            Task::Baseline(bytes) => {
                let work = match job.work.mode {
                    Mode::BaselineOfCopies => "copy",
                    _ if self.asked.cold_l2 => "write",
                    _ => "fill",
                };
                vec!["baseline".to_owned(), work.to_owned(), bytes.to_string()]
            }
            Task::Time(_) if self.asked.cold_l2 => vec!["kernel".to_owned(), job.name.clone()],
            _ => vec![format!("{}.json", job.name), "--format".to_owned(), "json".to_owned()],
        }
    }

    /// The device of all cases, described once.
    fn described(&mut self, found: Device) -> Device {
        let cold = self.asked.cold_l2;
        let device = self.device.get_or_insert_with(|| {
            let mut device = found;
            if let Some([_, driver, clocks]) =
                Some(&device.pci).filter(|pci| !pci.is_empty()).and_then(|pci| machine::nvidia(pci))
            {
                device.driver = format!("{driver} ({})", device.driver);
                device.clocks = clocks;
            }
            if cold {
                kernel::TIMING.clone_into(&mut device.timing);
            }
            device
        });
        device.clone()
    }
}

impl Runner for Own {
    fn tool(&self) -> String {
        format!("dml-cuda {}", env!("CARGO_PKG_VERSION"))
    }

    fn commit(&self) -> String {
        option_env!("DML_CUDA_COMMIT").unwrap_or_default().to_owned()
    }

    fn jobs(&self, tier: Tier, wanted: Wanted) -> Vec<Job> {
        if self.asked.cold_l2 {
            suite::cold_jobs(wanted)
        } else {
            suite::jobs(tier, wanted)
        }
    }

    fn suite(&self, tier: Tier) -> String {
        if self.asked.cold_l2 {
            format!("cold {}", env!("CARGO_PKG_VERSION"))
        } else {
            tier.id()
        }
    }

    fn answer(&mut self, job: &Job) -> Result<Answer, String> {
        let folder = if self.asked.cold_l2 {
            tempfile::tempdir().map_err(|error| error.to_string())?
        } else {
            super::folder(job)?
        };
        let arguments = self.arguments(job);
        if job.is_output() {
            let device = self.call(folder.path(), &arguments)?.device;
            let outcome = super::output(folder.path(), job)?;
            return Ok(Answer::new(self.described(device), outcome, 1));
        }
        let once = |iterations: u32, dispatches: u32| {
            let repeated = ["-i".to_owned(), iterations.to_string(), "-r".to_owned(), dispatches.to_string()];
            self.call(folder.path(), &[&arguments[..], &repeated].concat())
        };
        let (mut iterations, mut dispatches) = (self.asked.samples + 1, job.work.dispatches);
        // Only a first run tells how slow a CPU is.
        if self.on_cpu {
            let first = once(1, 1)?.milliseconds.iter().copied().fold(1e-4, f64::max);
            dispatches = dispatches.min((CPU_ITERATION_MILLISECONDS / first) as u32).max(1);
            let most = (CPU_CASE_MILLISECONDS / (first * f64::from(dispatches))) as u32;
            iterations = iterations.min(most.max(CPU_LEAST_SAMPLES) + 1);
        }
        let Printed { device, milliseconds, baseline } = once(iterations, dispatches)?;
        let hot = |milliseconds: &[f64]| milliseconds.iter().skip(1).map(|each| each * 1e3).collect::<Vec<f64>>();
        let baseline = baseline.map(|milliseconds| Quartiles::of(&hot(&milliseconds)).median);
        let outcome = Outcome::Each(hot(&milliseconds));
        Ok(Answer { baseline, ..Answer::new(self.described(device), outcome, dispatches) })
    }
}

fn printed(text: &str) -> Result<Printed, String> {
    let (mut found, mut milliseconds, mut baseline) = (None, Vec::new(), None);
    for line in text.lines() {
        match serde_json::from_str(line).map_err(|error| format!("it printed '{}': {error}", shown(line)))? {
            Event::Device { name, driver, pci, timing } => {
                found = Some(Device { name, driver, pci, timing, ..Device::default() });
            }
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
