//! ONNX Runtime as a runner. It has no command line, so that a Python program, worker.py, runs a case and answers with one
//! JSON line. The program is a part of this one, and is written into a folder that is removed at the end.
//!
//! ```text
//! python worker.py SETTINGS          {"hello": …}     what it is
//! python worker.py SETTINGS CASE     {"timed": …}     samples
//!                                    {"output": …}    bytes as hexadecimal digits
//!                                    {"refused": …}   the provider has no such operator
//!                                    {"failed": …}    an error
//! ```
//!
//! A case is a model of one node. A refused case is left out, and that is no failure. What ONNX Runtime's DirectML provider
//! is known to get wrong is not compared.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use dml_cuda::Device;
use serde::Deserialize;
use serde_json::{json, Value};

use super::{Answer, Failure, Runner};
use crate::bench::results::{Machine, Outcome};
use crate::bench::suite::{self, Case};
use crate::bench::{machine, process};
use crate::options::Bench;
use crate::out::{shown, shown_path};

/// The worker, and what it says about itself.
pub struct OnnxRuntime<'a> {
    asked: &'a Bench,
    /// The program that runs the worker.
    python: PathBuf,
    /// The provider, the library, the device and the number of samples, as JSON.
    settings: Value,
    /// With the Python program.
    folder: tempfile::TempDir,
    hello: Hello,
}

/// The worker's description of itself.
#[derive(Default, Deserialize)]
struct Hello {
    /// ONNX Runtime's version, and that of the library.
    tool: String,
    /// The name of the execution provider, such as `CUDAExecutionProvider`.
    provider: String,
    device: String,
    /// The id of a GPU for NVIDIA's tools.
    pci: String,
    /// A note with the versions of what runs.
    versions: String,
}

/// The line that a worker prints.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Hello(Hello),
    /// The reason for which there is no answer.
    Failed(String),
    /// The reason for which the provider does not take the node.
    Refused(String),
    /// Hexadecimal digits.
    Output(String),
    Timed {
        dispatches: u32,
        samples: Vec<f64>,
        note: Option<String>,
    },
}

impl<'a> OnnxRuntime<'a> {
    /// Checks the options and asks the worker which provider and device it has.
    pub fn start(asked: &'a Bench) -> Result<Self, String> {
        if asked.provider.is_none() && asked.provider_library.is_none() {
            return Err(
                "--provider is not given, but must be cuda, cpu, dml or a name, or --provider-library".to_owned()
            );
        }
        let device_id = asked.adapter.as_deref().map_or(Ok(0), str::parse::<u32>);
        let device_id = device_id
            .map_err(|_| "--adapter is no number, but must be that of the provider's device")?;
        let settings = json!({
            "provider": asked.provider,
            "provider_library": canonical(&asked.provider_library)?,
            "library": canonical(&asked.library)?,
            "device_id": device_id,
            "samples": asked.samples,
        });
        let folder = super::folder([(
            "worker.py".to_owned(),
            include_bytes!("../worker.py").to_vec(),
        )])?;
        let mut runner = Self {
            asked,
            python: python(asked)?,
            settings,
            folder,
            hello: Hello::default(),
        };
        // Wrong settings are one error here, not one for each case.
        let Said::Hello(hello) = runner.ask(None)? else {
            return Err("the worker did not say what it is".to_owned());
        };
        runner.hello = hello;
        if runner.hello.provider == "CUDAExecutionProvider" {
            // Its number counts only the GPUs that CUDA_VISIBLE_DEVICES names, here as there.
            let adapters = Device::cuda_adapters().unwrap_or_default();
            if let Some(adapter) = adapters.get(device_id as usize) {
                runner.hello.pci.clone_from(&adapter.properties.pci_bus_id);
            }
        }
        if runner.hello.device == "CPU" && device_id != 0 {
            return Err(format!(
                "--adapter is {device_id}, but must be 0 with the provider CPUExecutionProvider"
            ));
        }
        Ok(runner)
    }

    /// What a process says about a case, which it gets as a node with its name, its dispatches and whether its output is
    /// compared. Without a case, what it says about itself.
    fn ask(&self, case: Option<&Case>) -> Result<Said, Failure> {
        let mut command = Command::new(&self.python);
        let question = case.map(|case| {
            let mut node = case.onnx.clone().unwrap_or_default();
            node["name"] = json!(case.name);
            node["dispatches"] = json!(case.dispatches);
            node["check"] = json!(case.work.is_none());
            node.to_string()
        });
        command
            .arg("worker.py")
            .arg(self.settings.to_string())
            .args(question);
        let timeout = Duration::from_secs(self.asked.timeout.into());
        let ended = process::run_to_end(command.current_dir(self.folder.path()), timeout)?;
        // A provider may end the whole process.
        if ended.stdout.is_empty() {
            return Err(format!("the process that ran it ended ({})", ended.status).into());
        }
        match serde_json::from_str(&ended.stdout) {
            Ok(Said::Failed(why)) => Err(why.into()),
            Ok(said) => Ok(said),
            Err(error) => {
                Err(format!("the worker answered '{}': {error}", shown(&ended.stdout)).into())
            }
        }
    }
}

/// The path of a file from the root on, because the worker runs in another folder.
fn canonical(path: &Option<PathBuf>) -> Result<Option<PathBuf>, String> {
    let Some(path) = path else { return Ok(None) };
    match path.canonicalize() {
        Ok(path) => Ok(Some(path)),
        Err(error) => Err(format!("{}: {error}", shown_path(path))),
    }
}

/// The program that runs the worker: a name that the system looks up, or a path from the root on.
fn python(asked: &Bench) -> Result<PathBuf, String> {
    let usual = if cfg!(windows) { "python" } else { "python3" };
    let python = asked.python.clone().unwrap_or(usual.into());
    if python.components().count() == 1 {
        return Ok(python);
    }
    std::path::absolute(&python).map_err(|error| format!("{}: {error}", shown_path(&python)))
}

/// Whether dimensions besides batch and time multiply to more than 1. There ONNX Runtime's DirectML provider reads the
/// wrong lengths.
fn has_features(case: &Case) -> bool {
    let shape = case.onnx.as_ref().and_then(|node| node["shape"].as_array());
    shape.is_some_and(|shape| shape.iter().skip(2).any(|size| *size != 1))
}

impl Runner for OnnxRuntime<'_> {
    /// Only what ONNX's operators can express.
    fn cases(&self) -> Vec<Case> {
        suite::of_onnx(self.asked.tier)
    }

    /// A refused case has no outcome, and a note with the reason.
    fn answer(&mut self, case: &Case) -> Result<Answer, Failure> {
        let (device, notes) = (self.hello.device.clone(), vec![self.hello.versions.clone()]);
        let mut answer = Answer {
            device,
            notes,
            ..Answer::default()
        };
        answer.outcome = match self.ask(Some(case)) {
            Err(why) if self.hello.provider == "DmlExecutionProvider" && has_features(case) => {
                let known = "ONNX Runtime's DirectML provider reads wrong lengths for more than one feature";
                Some(Outcome::NotCompared(format!(
                    "{known}: {}",
                    shown(&why.message)
                )))
            }
            Err(why) => {
                let message = shown(&why.message);
                return Err(Failure { message, ..why });
            }
            Ok(Said::Refused(why)) => {
                answer.notes.push(format!(
                    "{}: {}",
                    case.name,
                    shown(&format!("refused: {why}"))
                ));
                None
            }
            Ok(Said::Output(digits)) => Some(Outcome::Bytes(digits)),
            Ok(Said::Timed {
                dispatches,
                samples,
                note,
            }) => {
                answer.dispatches = dispatches;
                let note = note.map(|note| format!("{}: {}", case.name, shown(&note)));
                answer.notes.extend(note);
                Some(Outcome::Each(samples))
            }
            Ok(_) => return Err("the worker answered another question".into()),
        };
        Ok(answer)
    }

    /// NVIDIA's tool knows the GPU. Elsewhere the adapters of Windows are all that is known.
    fn describe(&self, machine: &mut Machine, case: &Case) -> String {
        let Hello {
            tool,
            device,
            pci,
            provider,
            ..
        } = &self.hello;
        tool.clone_into(&mut machine.tool);
        // Only for its clocks: the case has its times.
        let again = || drop(self.ask(Some(case)));
        if let Some(gpu) = machine::nvidia(pci, again) {
            machine.device = gpu.name;
            machine.driver = gpu.driver;
            machine.clocks = gpu.clocks;
        } else {
            device.clone_into(&mut machine.device);
            machine.driver.clear();
            machine.clocks.clear();
            if !device.contains("CPU") {
                if let Some(adapters) = machine::windows_adapters() {
                    machine.device += &format!(" of: {adapters}");
                }
            }
        }
        let memory = match provider.as_str() {
            "CUDAExecutionProvider" | "DmlExecutionProvider" => "the device's",
            _ => "the host's",
        };
        format!(
            "the host's clock around N runs of a session and a wait for the device, divided by N; tensors are in {memory} memory"
        )
    }
}
