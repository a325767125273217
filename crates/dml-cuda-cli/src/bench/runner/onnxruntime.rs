//! ONNX Runtime as a runner: a Python program that this program holds answers each case with one JSON line.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dml_cuda::Device;
use serde::Deserialize;
use serde_json::{json, Value};

use super::{Answer, Runner};
use crate::bench::results::{Machine, Outcome};
use crate::bench::suite::{self, Case};
use crate::bench::{machine, process};
use crate::options::Bench;
use crate::out::{shown, shown_path};

pub struct OnnxRuntime<'a> {
    asked: &'a Bench,
    python: PathBuf,
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
    provider: String,
    device: String,
    /// The id of a GPU for NVIDIA's tools.
    pci: String,
    versions: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Hello(Hello),
    Failed(String),
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
    pub fn start(asked: &'a Bench) -> Result<Self, String> {
        if asked.provider.is_none() && asked.provider_library.is_none() {
            return Err(
                "--provider is not given, but must be cuda, cpu, dml or a name, or --provider-library".to_owned()
            );
        }
        let device_id = asked.adapter.as_deref().map_or(Ok(0), str::parse::<u32>);
        let device_id = device_id
            .map_err(|_| "--adapter is no number, but must be that of the provider's device")?;
        let in_file = |path: &Path, error: std::io::Error| format!("{}: {error}", shown_path(path));
        let whole = |path: &Option<PathBuf>| match path {
            Some(path) => path
                .canonicalize()
                .map(Some)
                .map_err(|error| in_file(path, error)),
            None => Ok(None),
        };
        let settings = json!({
            "provider": asked.provider,
            "provider_library": whole(&asked.provider_library)?,
            "library": whole(&asked.library)?,
            "device_id": device_id,
            "samples": asked.samples,
        });
        let folder = super::folder([(
            "worker.py".to_owned(),
            include_bytes!("../worker.py").to_vec(),
        )])?;
        let mut python = asked
            .python
            .clone()
            .unwrap_or(if cfg!(windows) { "python" } else { "python3" }.into());
        // The worker runs in another folder.
        if python.components().count() > 1 {
            python = std::path::absolute(&python).map_err(|error| in_file(&python, error))?;
        }
        let mut runner = Self {
            asked,
            python,
            settings,
            folder,
            hello: Hello::default(),
        };
        let Said::Hello(hello) = runner.ask(None)? else {
            return Err("the worker did not say what it is".to_owned());
        };
        runner.hello = hello;
        if runner.hello.provider == "CUDAExecutionProvider" {
            // Its number counts only the GPUs that CUDA_VISIBLE_DEVICES names, here as there.
            let adapters = Device::cuda_adapters().unwrap_or_default();
            let pci = adapters
                .into_iter()
                .nth(device_id as usize)
                .map(|adapter| adapter.properties.pci_bus_id);
            runner.hello.pci = pci.unwrap_or_default();
        }
        if runner.hello.device == "CPU" && device_id != 0 {
            return Err(format!(
                "--adapter is {device_id}, but must be 0 with the provider CPUExecutionProvider"
            ));
        }
        Ok(runner)
    }

    /// What a process says of a case: a model of one node, and whether its output is compared, not timed. Or what it
    /// says of itself.
    fn ask(&self, case: Option<&Case>) -> Result<Said, String> {
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
        let ended = process::run(command.current_dir(self.folder.path()), timeout)?;
        if ended.stdout.is_empty() {
            return Err(format!("the process that ran it ended ({})", ended.status));
        }
        match serde_json::from_str(&ended.stdout) {
            Ok(Said::Failed(why)) => Err(why),
            Ok(said) => Ok(said),
            Err(error) => Err(format!(
                "the worker answered '{}': {error}",
                shown(&ended.stdout)
            )),
        }
    }
}

/// Whether dimensions besides batch and time multiply to more than 1. There ONNX Runtime's DirectML provider reads the
/// wrong lengths.
fn has_features(case: &Case) -> bool {
    let shape = case.onnx.as_ref().and_then(|node| node["shape"].as_array());
    shape.is_some_and(|shape| shape.iter().skip(2).any(|size| *size != 1))
}

impl Runner for OnnxRuntime<'_> {
    fn cases(&self) -> Vec<Case> {
        suite::of_onnx(self.asked.tier)
    }

    fn answer(&mut self, case: &Case) -> Result<Answer, String> {
        let (device, notes) = (self.hello.device.clone(), vec![self.hello.versions.clone()]);
        let mut answer = Answer {
            device,
            notes,
            ..Answer::default()
        };
        let about = |why: String| format!("{}: {}", case.name, shown(&why));
        answer.outcome = match self.ask(Some(case)) {
            Err(why) if self.hello.provider == "DmlExecutionProvider" && has_features(case) => {
                let known = "ONNX Runtime's DirectML provider reads wrong lengths for more than one feature";
                Some(Outcome::NotCompared(format!("{known}: {}", shown(&why))))
            }
            Err(why) => return Err(shown(&why)),
            Ok(Said::Refused(why)) => {
                answer.notes.push(about(format!("refused: {why}")));
                None
            }
            Ok(Said::Output(digits)) => Some(Outcome::Bytes(digits)),
            Ok(Said::Timed {
                dispatches,
                samples,
                note,
            }) => {
                answer.dispatches = dispatches;
                answer.notes.extend(note.map(about));
                Some(Outcome::Each(samples))
            }
            Ok(_) => return Err("the worker answered another question".to_owned()),
        };
        Ok(answer)
    }

    fn describe(&self, machine: &mut Machine, case: &Case) -> String {
        let Hello {
            tool,
            device,
            pci,
            provider,
            ..
        } = &self.hello;
        tool.clone_into(&mut machine.tool);
        let again = || drop(self.ask(Some(case))); // Its time is that of the first answer.
        [machine.device, machine.driver, machine.clocks] = machine::nvidia(pci, again)
            .unwrap_or_else(|| {
                let adapters = if device.contains("CPU") {
                    None
                } else {
                    machine::windows_adapters()
                };
                let of = adapters
                    .map(|adapters| format!(" of: {adapters}"))
                    .unwrap_or_default();
                [format!("{device}{of}"), String::new(), String::new()]
            });
        let of_device =
            ["CUDAExecutionProvider", "DmlExecutionProvider"].contains(&provider.as_str());
        let memory = if of_device {
            "the device's"
        } else {
            "the host's"
        };
        format!(
            "the host's clock around N runs of a session and a wait for the device, divided by N; tensors are in {memory} memory"
        )
    }
}
