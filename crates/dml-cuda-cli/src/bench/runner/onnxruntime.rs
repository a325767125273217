//! ONNX Runtime as a runner: a Python program that this program holds answers one JSON line for each case.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};

use serde::Deserialize;
use serde_json::{json, Value};

use super::{Answer, Asked, Device, Runner};
use crate::bench::run::Outcome;
use crate::bench::suite::{Job, Task, Tier, Wanted};
use crate::bench::{machine, onnx};
use crate::out::shown;

const WORKER: &str = include_str!("../worker.py");

/// An answer has no more bytes than this.
const MOST_BYTES: u64 = 64 << 20;

pub struct OnnxRuntime {
    python: PathBuf,
    asked: Asked,
    settings: Value,
    folder: tempfile::TempDir,
    process: Option<Worker>,
    hello: Hello,
    device: Option<Device>,
}

/// What the worker says of itself.
#[derive(Default, Deserialize)]
struct Hello {
    /// ONNX Runtime's version, and that of the library.
    tool: String,
    provider: String,
    versions: String,
    in_device_memory: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Hello(Hello),
    Failed(String),
    Refused(String),
    /// The worker does not know it: this runner does.
    #[serde(skip)]
    NotCompared(String),
    /// Hexadecimal digits.
    Output(String),
    Timed {
        dispatches: u32,
        samples: Vec<f64>,
        notes: Vec<String>,
    },
}

struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Vec<u8>>,
}

impl OnnxRuntime {
    pub fn start(asked: Asked) -> Result<Self, String> {
        if asked.cold_l2 {
            return Err("--cold-l2 is given with --runner, must be of this program".to_owned());
        }
        let provider = asked.provider.clone().ok_or("--provider is not given, must be cuda, cpu, dml or a name")?;
        let device_id = match asked.adapter.as_deref().unwrap_or("0").parse::<u32>() {
            Ok(number) => number,
            Err(_) => return Err("--adapter is no number, must be that of the provider's device".to_owned()),
        };
        let library = match &asked.library {
            Some(path) => Some(std::fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))?),
            None => None,
        };
        let settings =
            json!({ "provider": provider, "library": library, "device_id": device_id, "samples": asked.samples });
        let failed = |error: std::io::Error| format!("a temporary folder: {error}");
        let folder = tempfile::tempdir().map_err(failed)?;
        std::fs::write(folder.path().join("worker.py"), WORKER).map_err(failed)?;
        let mut python = asked.python.clone().unwrap_or(if cfg!(windows) { "python" } else { "python3" }.into());
        // The worker runs in another folder.
        if python.components().count() > 1 {
            python = std::path::absolute(&python).map_err(|error| format!("{}: {error}", python.display()))?;
        }
        let hello = Hello::default();
        let mut runner = Self { python, asked, settings, folder, process: None, hello, device: None };
        runner.hello = match runner.ask(None)? {
            Said::Hello(hello) => hello,
            Said::Failed(why) => return Err(why),
            _ => return Err("the worker did not say what it is".to_owned()),
        };
        Ok(runner)
    }

    fn worker(&self) -> Result<Worker, String> {
        let mut command = Command::new(&self.python);
        command.arg("worker.py").current_dir(self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = |error: std::io::Error| format!("{} cannot be started: {error}", self.python.display());
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the worker has no streams".to_owned());
        };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                let read = (&mut output).take(MOST_BYTES).read_until(b'\n', &mut line);
                if !read.is_ok_and(|count| count > 0) || sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Worker { child, input, lines })
    }

    /// Asks one line, of a new process if the last one failed. A new one is first told the settings, to which it answers what it is.
    fn ask(&mut self, question: Option<&Value>) -> Result<Said, String> {
        if self.process.is_none() {
            let mut worker = self.worker()?;
            let hello = self.exchange(&mut worker, &self.settings);
            self.process = Some(worker);
            if question.is_none() || !matches!(hello, Ok(Said::Hello(_))) {
                return hello;
            }
        }
        let (Some(mut worker), Some(question)) = (self.process.take(), question) else {
            return Err("nothing is asked".to_owned());
        };
        let answer = self.exchange(&mut worker, question);
        match &answer {
            // After a failure the next case begins in a new process.
            Ok(Said::Failed(_)) | Err(_) => {
                let _ = worker.child.kill();
                let _ = worker.child.wait();
            }
            Ok(_) => self.process = Some(worker),
        }
        answer
    }

    fn exchange(&self, worker: &mut Worker, question: &Value) -> Result<Said, String> {
        // A process that ended answers nothing, which is told below.
        let _ = writeln!(worker.input, "{question}").and_then(|()| worker.input.flush());
        match worker.lines.recv_timeout(self.asked.timeout) {
            Ok(line) => serde_json::from_slice(&line)
                .map_err(|error| format!("the worker answered '{}': {error}", shown(&String::from_utf8_lossy(&line)))),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("it took more than {} s, the --timeout", self.asked.timeout.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = worker.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                Err(format!("the process that ran it ended ({status})"))
            }
        }
    }

    /// Described once, after the first case: an idle GPU lowers its clocks.
    fn device(&mut self) -> Device {
        let described = self.device.take().unwrap_or_else(|| self.described());
        self.device.insert(described).clone()
    }

    fn described(&self) -> Device {
        let id = self.settings["device_id"].to_string();
        let memory = if self.hello.in_device_memory { "the device's" } else { "the host's" };
        let timing = format!(
            "the host's clock around N runs of a session and a wait for the device, divided by N; tensors are in {memory} memory"
        );
        let provider = self.hello.provider.trim_end_matches("ExecutionProvider");
        let (name, driver, clocks) = match provider {
            "CPU" => ("CPU".to_owned(), String::new(), String::new()),
            "CUDA" => match machine::nvidia(&id) {
                Some([name, driver, clocks]) => (name, driver, clocks),
                None => (format!("CUDA device {id}"), String::new(), String::new()),
            },
            _ => {
                let of = machine::windows_adapters().map_or_else(String::new, |adapters| format!(" of: {adapters}"));
                (format!("{provider} device {id}{of}"), String::new(), String::new())
            }
        };
        Device { name, driver, clocks, pci: String::new(), timing }
    }

    fn is_directml(&self) -> bool {
        self.hello.provider == "DmlExecutionProvider"
    }
}

impl Drop for OnnxRuntime {
    fn drop(&mut self) {
        if let Some(Worker { mut child, input, .. }) = self.process.take() {
            // It ends when nothing more is asked.
            drop(input);
            let _ = child.wait();
        }
    }
}

impl Runner for OnnxRuntime {
    fn tool(&self) -> String {
        self.hello.tool.clone()
    }

    fn jobs(&self, tier: Tier, wanted: Wanted) -> Vec<Job> {
        onnx::jobs(tier, wanted)
    }

    fn answer(&mut self, job: &Job) -> Result<Answer, String> {
        let Task::Onnx(model) = &job.task else { return Err("it is no ONNX model".to_owned()) };
        let mut question = json!({ "name": job.name, "type": job.work.data_type, "dispatches": job.work.dispatches });
        let model_json = serde_json::to_value(model).map_err(|error| error.to_string())?;
        if let (Some(question), Value::Object(model)) = (question.as_object_mut(), model_json) {
            question.extend(model);
        }
        let mut notes = vec![self.hello.versions.clone()];
        let said = match self.ask(Some(&question)) {
            Ok(Said::Failed(why)) | Err(why) if self.is_directml() && model.has_features() => {
                let about = "ONNX Runtime's DirectML provider reads wrong lengths for more than one feature";
                Said::NotCompared(format!("{about}: {}", shown(&why)))
            }
            said => said?,
        };
        let mut dispatches = 1;
        let outcome = match said {
            Said::Failed(why) => return Err(shown(&why)),
            Said::Refused(why) => {
                notes.push(format!("{}: {}", job.name, shown(&why)));
                None
            }
            Said::NotCompared(why) => Some(Outcome::NotCompared(why)),
            Said::Output(digits) => Some(Outcome::Bytes(digits)),
            Said::Timed { dispatches: found, samples, notes: more } => {
                dispatches = found;
                notes.extend(more.iter().map(|note| format!("{}: {}", job.name, shown(note))));
                Some(Outcome::Each(samples))
            }
            Said::Hello(_) => return Err("the worker answered a question that nobody asked".to_owned()),
        };
        Ok(Answer { device: self.device(), outcome, dispatches, baseline: None, notes })
    }
}
