//! ONNX Runtime as a runner: a Python program that this program holds answers one JSON line for each case.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{json, Value};

use super::{Answer, Device, Runner};
use crate::bench::job::{Job, Task, Wanted};
use crate::bench::process::MOST_BYTES;
use crate::bench::run::Outcome;
use crate::bench::{machine, onnx};
use crate::options::{Bench, Tier};
use crate::out::shown;

pub struct OnnxRuntime<'a> {
    asked: &'a Bench,
    python: PathBuf,
    settings: Value,
    folder: tempfile::TempDir,
    hello: Hello,
    /// None after a case that failed.
    worker: Option<Worker>,
}

/// What the worker says of itself.
#[derive(Deserialize)]
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
    /// Hexadecimal digits.
    Output(String),
    Timed {
        dispatches: u32,
        samples: Vec<f64>,
        notes: Vec<String>,
    },
}

impl<'a> OnnxRuntime<'a> {
    pub fn start(asked: &'a Bench) -> Result<Self, String> {
        let provider = asked.provider.as_ref().ok_or("--provider is not given, must be cuda, cpu, dml or a name")?;
        let device_id: u32 = asked
            .adapter
            .as_deref()
            .unwrap_or("0")
            .parse()
            .map_err(|_| "--adapter is no number, must be that of the provider's device")?;
        let in_file = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let library = asked.library.as_ref().map(|path| path.canonicalize().map_err(|error| in_file(path, error)));
        let library = library.transpose()?;
        let settings =
            json!({ "provider": provider, "library": library, "device_id": device_id, "samples": asked.samples });
        let failed = |error: std::io::Error| format!("a temporary folder: {error}");
        let folder = tempfile::tempdir().map_err(failed)?;
        std::fs::write(folder.path().join("worker.py"), include_str!("../worker.py")).map_err(failed)?;
        let mut python = asked.python.clone().unwrap_or(if cfg!(windows) { "python" } else { "python3" }.into());
        // The worker runs in another folder.
        if python.components().count() > 1 {
            python = std::path::absolute(&python).map_err(|error| in_file(&python, error))?;
        }
        let (worker, hello) = Worker::start(&python, folder.path(), &settings, asked.timeout)?;
        Ok(Self { asked, python, settings, folder, hello, worker: Some(worker) })
    }

    /// Asks one line, of a new process if the last case failed.
    fn ask(&mut self, question: &Value) -> Result<Said, String> {
        let timeout = self.asked.timeout;
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(&self.python, self.folder.path(), &self.settings, timeout)?.0,
        };
        let said = worker.ask(question, timeout)?;
        self.worker = Some(worker).filter(|_| !matches!(said, Said::Failed(_)));
        Ok(said)
    }
}

impl Runner for OnnxRuntime<'_> {
    fn tool(&self) -> String {
        self.hello.tool.clone()
    }

    fn jobs(&self, tier: Tier, wanted: Wanted) -> Vec<Job> {
        onnx::jobs(tier, wanted)
    }

    fn answer(&mut self, job: &Job) -> Result<Answer, String> {
        let Task::Onnx(model) = &job.task else { return Err("it is no ONNX model".to_owned()) };
        let mut question = json!(model);
        question["name"] = json!(job.name);
        question["type"] = json!(job.work.data_type);
        question["dispatches"] = json!(job.work.dispatches);
        let device = Device { name: self.hello.provider.clone(), ..Device::default() };
        let mut answer =
            Answer { device, dispatches: 1, notes: vec![self.hello.versions.clone()], ..Answer::default() };
        let note = |text: &String| format!("{}: {}", job.name, shown(text));
        answer.outcome = match self.ask(&question) {
            Ok(Said::Hello(_)) => return Err("the worker answered a question that nobody asked".to_owned()),
            Ok(Said::Failed(why)) | Err(why) => {
                if self.hello.provider != "DmlExecutionProvider" || !model.has_features() {
                    return Err(shown(&why));
                }
                let about = "ONNX Runtime's DirectML provider reads wrong lengths for more than one feature";
                Some(Outcome::NotCompared(format!("{about}: {}", shown(&why))))
            }
            Ok(Said::Refused(why)) => {
                answer.notes.push(note(&why));
                None
            }
            Ok(Said::Output(digits)) => Some(Outcome::Bytes(digits)),
            Ok(Said::Timed { dispatches, samples, notes }) => {
                answer.dispatches = dispatches;
                answer.notes.extend(notes.iter().map(note));
                Some(Outcome::Each(samples))
            }
        };
        Ok(answer)
    }

    fn describe(&self, found: Device) -> Device {
        let id = self.settings["device_id"].to_string();
        let provider = found.name.trim_end_matches("ExecutionProvider");
        let nvidia = (provider == "CUDA").then(|| machine::nvidia(&id)).flatten();
        let [name, driver, clocks] = nvidia.unwrap_or_else(|| {
            let of = || machine::windows_adapters().map(|adapters| format!(" of: {adapters}")).unwrap_or_default();
            let name = if provider == "CPU" { provider.to_owned() } else { format!("{provider} device {id}{}", of()) };
            [name, String::new(), String::new()]
        });
        let memory = if self.hello.in_device_memory { "the device's" } else { "the host's" };
        let timing = format!(
            "the host's clock around N runs of a session and a wait for the device, divided by N; tensors are in {memory} memory"
        );
        Device { name, driver, clocks, timing, ..found }
    }
}

struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Vec<u8>>,
}

impl Worker {
    /// Starts the process and tells it the settings, to which it answers what it is.
    fn start(python: &Path, folder: &Path, settings: &Value, timeout: u32) -> Result<(Self, Hello), String> {
        let mut command = Command::new(python);
        command.arg("worker.py").current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("{} cannot be started: {error}", python.display()))?;
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
        let mut worker = Self { child, input, lines };
        match worker.ask(settings, timeout)? {
            Said::Hello(hello) => Ok((worker, hello)),
            Said::Failed(why) => Err(why),
            _ => Err("the worker did not say what it is".to_owned()),
        }
    }

    fn ask(&mut self, question: &Value, timeout: u32) -> Result<Said, String> {
        // A process that ended answers nothing, which is told below.
        let _ = writeln!(self.input, "{question}").and_then(|()| self.input.flush());
        match self.lines.recv_timeout(Duration::from_secs(timeout.into())) {
            Ok(line) => serde_json::from_slice(&line)
                .map_err(|error| format!("the worker answered '{}': {error}", shown(&String::from_utf8_lossy(&line)))),
            Err(RecvTimeoutError::Timeout) => Err(format!("it took more than {timeout} s, the --timeout")),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                Err(format!("the process that ran it ended ({status})"))
            }
        }
    }
}

/// It waits for a question, or hangs.
impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
