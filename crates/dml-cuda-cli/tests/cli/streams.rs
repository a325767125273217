//! Standard output and standard error that are closed, full, or have no reader.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dml_cuda_testing::repository;

use crate::{runner, stderr, write_model, Ended};

/// Runs a line of `sh` in a folder. `$0` is the runner.
pub fn shell(folder: &Path, line: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.current_dir(folder).args(["-c", line]).arg(runner().get_program()).output().expect("sh starts")
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
    use std::process::Stdio;
    let model = repository("models/reverse_subsequences.json");
    if let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") {
        let output = runner().arg(&model).stdout(full).stderr(Stdio::piped()).output().expect("the runner starts");
        output.fails(1, "writing to standard output failed: ");
    }
    let mut runner = runner();
    runner.arg(&model).args(["-v", "2", "-i", "20000"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = runner.spawn().expect("the runner starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
}

/// A reader that has seen enough does not end a model: its files are written.
#[test]
fn a_model_runs_to_its_end_without_a_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let values = serde_json::json!({ "valueCount": 100_000, "value": 7 });
    let write = |name: &str| serde_json::json!({ "type": "writeFile", "resource": "A", "targetPath": name });
    let print = serde_json::json!({ "type": "print", "resource": "A" });
    let model = serde_json::json!({
        "resources": { "A": { "initialValuesDataType": "UINT8", "initialValues": values } },
        "dispatchables": {},
        "commands": [write("first.bin"), print, print, write("last.bin")],
    });
    write_model(folder.path(), &model);
    let output = shell(folder.path(), "{ \"$0\" model.json -a cpu; echo $? > status; } | head -c 10");
    assert_eq!((stderr(&output).as_str(), output.stdout.len()), ("", 10));
    assert_eq!(fs::read_to_string(folder.path().join("status")).expect("a status").trim(), "0");
    for name in ["first.bin", "last.bin"] {
        assert_eq!(fs::read(folder.path().join(name)).expect("it was written").len(), 100_000, "{name}");
    }
}

/// A standard error that is closed, full or has no reader does not change what a command does.
#[test]
fn closed_or_full_standard_streams_cause_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let code = |arguments: &str, redirect: &str| {
        let output = shell(folder.path(), &format!("\"$0\" {arguments} {redirect}"));
        output.status.code().expect("no signal")
    };
    let case = r#"{"case":"x","type":"f32","mode":"copy","bytes":8,"dispatches":1,"each":[1.0]}"#;
    let run = format!(r#"{{"schema":2,"label":"r","machine":{{}},"timing":"","cases":[{case}]}}"#);
    fs::write(path("r.json"), run).expect("written");
    let model = repository("models/fill_value_sequence_uint8.json").canonicalize().expect("a model");
    let model = format!("{} -a cpu", model.display());
    // Commands that succeed and print to standard output.
    let commands = [
        &model,
        &format!("{model} --enable_dred --validate"),
        &format!("{model} --explain --format json"),
        "-S",
        "--help",
        "--version",
        "report --help",
        "report r.json",
        "report r.json r.json",
        "bench -o b.json -a cpu --only check.fill --samples 1",
        "bench -o - -a cpu --only check.fill.int8",
        "baseline fill 64 -a cpu",
        "completions bash",
        "man",
    ];
    for command in commands {
        for (redirect, expected) in
            [("2>&-", 0), ("2>/dev/full", 0), (">&-", 0), (">/dev/full", 1), (">/dev/full 2>/dev/full", 1)]
        {
            let _ = fs::remove_file(path("b.json"));
            assert_eq!(code(command, redirect), expected, "{command} {redirect}");
        }
        // The reader of both streams exits at once. The exit status goes to a file.
        let _ = fs::remove_file(path("b.json"));
        let output = shell(folder.path(), &format!("{{ \"$0\" {command} 2>&1; echo $? > status; }} | true"));
        assert!(output.status.success());
        assert_eq!(fs::read_to_string(path("status")).expect("a status").trim(), "0", "{command}");
    }
    // Commands that fail.
    for (command, expected) in [
        ("nothing.json", 1),
        ("report nothing.json", 1),
        ("suite r.json", 1),
        ("bench nothing -o n.json", 2),
        ("bench -o n.json -a nothing", 1),
        ("report r.json r.json -o r.json", 1),
        ("--nothing", 2),
        ("a.json b.json", 1),
    ] {
        for redirect in ["2>&-", "2>/dev/full", "2>&1 >/dev/full"] {
            assert_eq!(code(command, redirect), expected, "{command} {redirect}");
        }
    }
}
