//! The runner as its users see it. tests/README.md lists the modules.

#[cfg(unix)]
mod driver_faults;
mod dxdispatch;
mod errors;
mod models;
mod options;
mod side_by_side;
#[cfg(unix)]
mod streams;
mod validate;
#[cfg(unix)]
mod written_files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dml_cuda_testing::repository;
use serde_json::{json, Value};

/// The runner: this build's, or `DML_CUDA_BIN` where the tests run elsewhere.
fn runner() -> Command {
    let path = std::env::var_os("DML_CUDA_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_dml-cuda").into());
    Command::new(path)
}

fn run(arguments: &[&str]) -> Output {
    runner().args(arguments).output().expect("the runner starts")
}

/// What tests expect of how the runner ends.
trait Ended {
    /// It succeeded: what it printed.
    fn well(&self) -> String;
    /// It failed with a code and these words, at the beginning if they are `ERROR: …`: all that it said.
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
        let is_said = if words.starts_with("ERROR: ") { said.starts_with(words) } else { said.contains(words) };
        assert!(is_said && !said.contains("panicked"), "{said} does not say {words}");
        said
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Writes a model to a folder, and returns its path.
fn write_model(folder: &Path, model: &Value) -> String {
    let path = folder.join("model.json");
    fs::write(&path, model.to_string()).expect("the folder is there");
    path.to_str().expect("UTF-8").to_owned()
}

/// A text as PowerShell 5.1 writes it to a file.
fn utf_16(text: &str) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

/// Runs a model in a folder.
fn run_model(folder: &Path, model: &Value) -> Output {
    run(&[&write_model(folder, model)])
}

/// The repository's models.
fn models() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository("models")).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

/// One of the repository's models, without comments.
fn example(name: &str) -> Value {
    let text = fs::read_to_string(repository(&format!("models/{name}.json"))).expect("a model");
    serde_json::from_str(&text).expect("JSON without comments")
}

/// The printed lines that do not depend on the machine.
fn resources(output: &Output) -> Vec<String> {
    stdout(output).lines().filter(|line| line.starts_with("Resource")).map(str::to_owned).collect()
}

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

/// Sets a member of a model, such as `commands/0/type`.
fn set(model: &mut Value, path: &str, value: Value) {
    let place = path.split('/').fold(model, |place, name| match name.parse::<usize>() {
        Ok(index) => &mut place[index],
        Err(_) => &mut place[name],
    });
    *place = value;
}

/// The objects that `--format json` prints.
fn events(arguments: &[&str]) -> Vec<Value> {
    let output = run(arguments);
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}
