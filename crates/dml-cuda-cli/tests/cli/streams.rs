//! Standard output and standard error that are closed, full, or have no reader.

use std::fs;

use dml_cuda_testing::repository;
use serde_json::json;

use crate::{one_resource, stderr, Folder};

/// A reader that has seen enough does not end a model: its files are written.
#[test]
fn a_model_runs_to_its_end_without_a_reader() {
    let folder = Folder::new();
    let write = |name: &str| json!({ "type": "writeFile", "resource": "A", "targetPath": name });
    let print = json!({ "type": "print", "resource": "A" });
    let commands = json!([write("first.bin"), print, print, write("last.bin")]);
    let model = one_resource(
        "UINT8",
        json!({ "valueCount": 100_000, "value": 7 }),
        commands,
    );
    folder.write("model.json", model.to_string());
    let output = folder.shell("{ \"$0\" model.json -a cpu; echo $? > status; } | head -c 10");
    assert_eq!((stderr(&output).as_str(), output.stdout.len()), ("", 10));
    assert_eq!(folder.read("status"), b"0\n");
    for name in ["first.bin", "last.bin"] {
        assert_eq!(folder.read(name).len(), 100_000, "{name}");
    }
}

/// A standard error that is closed, full or has no reader does not change what a command does.
#[test]
fn closed_or_full_standard_streams_cause_no_panic() {
    let folder = Folder::new();
    let run = |arguments: &str, redirect: &str| {
        let output = folder.shell(&format!("\"$0\" {arguments} {redirect}"));
        (output.status.code().expect("no signal"), stderr(&output))
    };
    let case = r#"{"case":"x","type":"f32","mode":"copy","bytes":8,"dispatches":1,"each":[1.0]}"#;
    let recorded =
        format!(r#"{{"schema":2,"label":"r","machine":{{}},"timing":"","cases":[{case}]}}"#);
    folder.write("r.json", recorded);
    let model = repository("models/fill_value_sequence_uint8.json")
        .canonicalize()
        .expect("a model");
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
        "kernel baseline_of_fills.1mib -a cpu",
        "completions bash",
        "man",
    ];
    for command in commands {
        for (redirect, expected) in [
            ("2>&-", 0),
            ("2>/dev/full", 0),
            (">&-", 0),
            (">/dev/full", 1),
            (">/dev/full 2>/dev/full", 1),
        ] {
            let _ = fs::remove_file(folder.path("b.json"));
            let (code, said) = run(command, redirect);
            assert_eq!(code, expected, "{command} {redirect}: {said}");
            let fails = redirect == ">/dev/full";
            assert_eq!(
                said.contains("writing to standard output failed: "),
                fails,
                "{command} {redirect}: {said}"
            );
        }
        // The reader of both streams exits at once. The exit status goes to a file.
        let _ = fs::remove_file(folder.path("b.json"));
        let output = folder.shell(&format!(
            "{{ \"$0\" {command} 2>&1; echo $? > status; }} | true"
        ));
        assert!(output.status.success());
        assert_eq!(folder.read("status"), b"0\n", "{command}");
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
            assert_eq!(run(command, redirect).0, expected, "{command} {redirect}");
        }
    }
}
