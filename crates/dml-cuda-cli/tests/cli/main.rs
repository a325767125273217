//! The command line tool as its users see it.

#[cfg(unix)]
mod driver_faults;
mod dxdispatch;
mod errors;
mod limits;
mod misspelt;
mod models;
mod options;
mod plans;
mod side_by_side;
#[cfg(unix)]
mod streams;
mod strict;
mod texts;
#[cfg(unix)]
mod timed_on_a_gpu;
mod validate;
#[cfg(unix)]
mod written_files;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use dml_cuda_testing::repository;
use serde_json::{json, Value};

/// The command line tool: this build's, or `DML_CUDA_BIN` where the tests run elsewhere.
fn dml_cuda() -> Command {
    #[cfg(target_os = "linux")]
    stop_ignoring_signals();
    let path =
        std::env::var_os("DML_CUDA_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_dml-cuda").into());
    Command::new(path)
}

/// Tests that run in the background of a script, or by nohup, ignore signals. Programs would inherit that, but they do
/// not inherit handlers.
#[cfg(target_os = "linux")]
fn stop_ignoring_signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    static ONCE: std::sync::Once = std::sync::Once::new();
    static COMES: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").expect("it is there");
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .expect("a mask");
        let mask = u64::from_str_radix(mask.trim(), 16).expect("a number");
        for signal in [SIGHUP, SIGINT, SIGTERM]
            .into_iter()
            .filter(|signal| mask >> (signal - 1) & 1 == 1)
        {
            signal_hook::flag::register(signal, &COMES).expect("a handler");
        }
    });
}

/// Runs the tool in the current folder.
fn run(arguments: &[&str]) -> Output {
    dml_cuda()
        .args(arguments)
        .output()
        .expect("dml-cuda starts")
}

/// A .npy file of version 1, of this type and shape.
fn npy(dtype: &str, is_fortran: bool, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let order = if is_fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    [
        b"\x93NUMPY\x01\0",
        &(header.len() as u16).to_le_bytes()[..],
        header.as_bytes(),
        bytes,
    ]
    .concat()
}

/// A folder of a test, in which it runs the tool.
struct Folder(tempfile::TempDir);

impl Folder {
    /// An empty folder, which is removed at the end of the test.
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// The path of a file in it.
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file in it.
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("written");
    }

    /// The bytes of a file in it.
    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("it is there")
    }

    /// A file in it that is JSON.
    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).expect("JSON")
    }

    /// The names in a folder of it, in order.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder))
            .expect("a folder")
            .map(|entry| entry.expect("an entry"));
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The tool, to be run in it.
    fn dml_cuda(&self) -> Command {
        let mut command = dml_cuda();
        command.current_dir(&self.0);
        command
    }

    /// Runs the tool in it.
    fn run(&self, arguments: &[&str]) -> Output {
        self.dml_cuda()
            .args(arguments)
            .output()
            .expect("dml-cuda starts")
    }

    /// Runs a model, which it writes to `model.json`.
    fn run_model(&self, model: &Value, options: &[&str]) -> Output {
        self.write("model.json", model.to_string());
        self.run(&[&["model.json"], options].concat())
    }

    /// Runs the tool with a string as standard input.
    fn run_with_input(&self, arguments: &[&str], text: &str) -> Output {
        self.write("input", text);
        let input = fs::File::open(self.path("input")).expect("it was written");
        self.dml_cuda()
            .args(arguments)
            .stdin(input)
            .output()
            .expect("dml-cuda starts")
    }

    /// Runs a line of `sh`. `$0` is the tool.
    #[cfg(unix)]
    fn shell(&self, line: &str) -> Output {
        let mut shell = Command::new("sh");
        shell
            .current_dir(&self.0)
            .args(["-c", line])
            .arg(dml_cuda().get_program())
            .output()
            .expect("sh starts")
    }

    /// Runs the tool, which must succeed, and returns what it printed.
    #[track_caller]
    fn well(&self, arguments: &[&str]) -> String {
        self.run(arguments).well()
    }

    /// Checks that the tool fails with one line that has this text.
    #[track_caller]
    fn refuses(&self, arguments: &[&str], words: &str) {
        let said = self.run(arguments).fails(1, "ERROR: ");
        assert!(
            said.contains(words) && said.trim_end().lines().count() == 1,
            "{said} does not say {words}"
        );
    }
}

/// Checks of how the tool ended.
trait Ended {
    /// Checks that it succeeded, and returns what it printed.
    fn well(&self) -> String;
    /// Checks that it failed with a code and this text, at the beginning if it is `ERROR: …`, and returns all that it
    /// said.
    fn fails(&self, code: i32, words: &str) -> String;
}

impl Ended for Output {
    #[track_caller]
    fn well(&self) -> String {
        assert!(self.status.success(), "{}{}", stdout(self), stderr(self));
        stdout(self)
    }

    #[track_caller]
    fn fails(&self, code: i32, words: &str) -> String {
        let said = stderr(self);
        assert_eq!(self.status.code(), Some(code), "{said}{}", stdout(self));
        let is_said = if words.starts_with("ERROR: ") {
            said.starts_with(words)
        } else {
            said.contains(words)
        };
        assert!(
            is_said && !said.contains("panicked"),
            "{said} does not say {words}"
        );
        said
    }
}

/// What a program printed.
fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a program complained about.
fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A text as PowerShell 5.1 writes it to a file.
fn utf_16(text: &str) -> Vec<u8> {
    "\u{feff}"
        .encode_utf16()
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// The repository's models.
fn models() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository("models"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path());
    entries
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect()
}

/// One of the repository's models, without comments.
fn example(name: &str) -> Value {
    let text = fs::read_to_string(repository(&format!("models/{name}.json"))).expect("a model");
    serde_json::from_str(&text).expect("JSON without comments")
}

/// A dispatchable that fills a tensor.
fn fill(data_type: &str, sizes: Value, start: Value, delta: Value) -> Value {
    json!({
        "type": "DML_OPERATOR_FILL_VALUE_SEQUENCE",
        "desc": {
            "OutputTensor": { "DataType": data_type, "Sizes": sizes },
            "ValueDataType": data_type, "ValueStart": start, "ValueDelta": delta
        }
    })
}

/// A model with one fill of four FLOAT32 and one resource for it.
fn small() -> Value {
    json!({
        "resources": { "Out": { "initialValuesDataType": "FLOAT32", "initialValues": { "valueCount": 4, "value": 7 } } },
        "dispatchables": { "fill": fill("FLOAT32", json!([4]), json!(0.5), json!(1)) },
        "commands": [
            { "type": "dispatch", "dispatchable": "fill", "bindings": { "OutputTensor": "Out" } },
            { "type": "print", "resource": "Out" }
        ]
    })
}

/// A model with a resource `A`, and without dispatches.
fn one_resource(data_type: &str, values: Value, commands: Value) -> Value {
    let resource = json!({ "initialValuesDataType": data_type, "initialValues": values });
    json!({ "resources": { "A": resource }, "dispatchables": {}, "commands": commands })
}

/// Sets a member of a model, such as `commands/0/type`.
fn set(model: &mut Value, path: &str, value: Value) {
    let place = path
        .split('/')
        .fold(model, |place, name| match name.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[name],
        });
    *place = value;
}

/// The objects that `--format json` prints.
fn lines_of_json(output: &Output) -> Vec<Value> {
    stdout(output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}
