//! `bench --runner`: cases that other programs run, in whose place there is a stand-in.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::bench::cases;
use crate::{stderr, Ended, Folder};

/// Puts a stand-in for a program into a folder, by its name: `stand_in.c`, compiled here, or before as
/// `DML_CUDA_STAND_IN`. Windows has no compiler: false without it.
pub fn install(folder: &Path, name: &str) -> bool {
    fs::create_dir_all(folder).expect("made");
    if let Some(compiled) = std::env::var_os("DML_CUDA_STAND_IN") {
        fs::copy(compiled, folder.join(name)).expect("it is there");
        return true;
    }
    if cfg!(windows) {
        eprintln!("SKIPPED: DML_CUDA_STAND_IN is not set");
        return false;
    }
    let source = folder.join("stand_in.c");
    fs::write(&source, include_str!("stand_in.c")).expect("written");
    let status = Command::new("cc")
        .arg(&source)
        .arg("-o")
        .arg(folder.join(name))
        .status();
    assert!(status.expect("a C compiler").success());
    fs::remove_file(source).expect("removed");
    true
}

/// How a process's exit code is printed.
const STATUS: &str = if cfg!(windows) {
    "exit code"
} else {
    "exit status"
};

/// Another runner is timed by what it prints. Folders may have spaces. FLOAT16 copies fail, 8-bit copies print nothing,
/// `check.fill.int16` is not written.
#[test]
fn dxdispatch_runs_the_cases() {
    let folder = Folder::new();
    if !install(&folder.path("my tools"), "dxdispatch.exe") {
        return;
    }
    let bench = |to: &str, only: &str| {
        let runner = "my tools/dxdispatch.exe";
        folder.run(&[
            "bench", "--tier", "quick", "-o", to, "--only", only, "--runner", runner, "-a", "cpu",
        ])
    };
    let failed = bench("x.json", "small_16x256");
    let found = folder.json("x.json");
    // In place is not asked of it. The cause is not the last line. Failed cases stay in the suite's order.
    let causes: Vec<Option<&str>> = cases(&found)
        .iter()
        .map(|case| case["error"].as_str())
        .collect();
    assert_eq!(causes.len(), 4, "{causes:?}");
    let cause =
        format!("no dispatch was printed; the last line is: Running on 'Some GPU' ({STATUS}: 0)");
    assert_eq!(causes[0], Some(cause.as_str()));
    let cause = causes[1].expect("a cause");
    assert!(
        cause.starts_with(
            "Failed to parse the model: Failed to parse dispatchable reverse.small_16x256.f16.copy"
        ) && cause.ends_with(&format!("({STATUS}: 255)")),
        "{cause}"
    );
    failed.fails(1, cause);
    assert_eq!(
        cases(&found)[2]["medians"],
        json!([2.5, 2.5, 2.5, 2.5, 2.5])
    );
    assert_eq!(
        causes[3],
        Some("it ran on Another GPU, but must run on Some GPU as the cases before it")
    );
    assert_eq!(
        found["label"],
        json!("DxDispatch with DirectML 1.15.4 on Some GPU")
    );
    assert_eq!(
        (&found["machine"]["driver"], &found["machine"]["commit"]),
        (&json!("32.0.15.6094"), &json!(""))
    );
    assert_eq!(
        bench("y.json", "check").status.code(),
        Some(1),
        "what fails is said, and the rest is kept"
    );
    let outputs = folder.json("y.json")["outputs"].clone();
    assert_eq!(outputs.as_object().expect("outputs").len(), 26);
    assert_eq!(outputs["check.fill.int8"]["bytes"], json!("30".repeat(60)));
    for (name, error) in [
        (
            "check.fill.int16",
            "Failed to write resource to file 'check.fill.int16.bin'",
        ),
        (
            "check.fill.int32",
            "it wrote 3 bytes to check.fill.int32.bin, but must write 240",
        ),
        (
            "check.fill.uint8",
            "it wrote no file check.fill.uint8.bin: it is not a regular file",
        ),
    ] {
        let cause = outputs[name]["error"].as_str().expect("a cause");
        assert!(cause.starts_with(error), "{cause}");
    }
    let runner = "my tools/dxdispatch.exe";
    for (options, words) in [
        (
            &[runner, "-a", "Some GPU"][..],
            "has a space, but must be a part of the name without one",
        ),
        (&["./nothing"], "./nothing: nothing cannot be started"),
        (
            &[runner, "--provider", "cpu"],
            "must be left out without --runner onnxruntime",
        ),
    ] {
        folder.refuses(
            &[&["bench", "-o", "z.json", "--runner"], options].concat(),
            words,
        );
    }
}

/// A program that hangs or prints without end ends its case, with all that it started, not the bench and not the
/// machine.
#[test]
fn a_runner_has_a_limit_of_time_and_of_bytes() {
    let folder = Folder::new();
    if !install(&folder.path(""), "hangs.exe") {
        return;
    }
    let started = folder.path("started");
    let begun = Instant::now();
    let mut bench = folder.dml_cuda();
    bench.args([
        "bench",
        "-o",
        "x.json",
        "--runner",
        "./hangs.exe",
        "--only",
        "check.fill.int",
        "--timeout",
        "2",
    ]);
    let output = bench.env("STARTED", &started).output().expect("it starts");
    assert!(begun.elapsed().as_secs() < 120, "{output:?}");
    output.fails(
        1,
        "WARNING: check.fill.int8: it took more than 2 s, the --timeout",
    );
    output.fails(1, "WARNING: check.fill.int64: it printed more than 64 MiB");
    let length = || fs::metadata(&started).expect("it was started").len();
    let before = length();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(length(), before, "what it started lives on");
    // After three in a row, the rest is not tried.
    let mut bench = folder.dml_cuda();
    bench.args([
        "bench",
        "-o",
        "y.json",
        "--runner",
        "./hangs.exe",
        "--only",
        "check.reverse",
        "--timeout",
        "1",
    ]);
    let output = bench
        .env("STARTED", &started)
        .env("ALL_HANG", "1")
        .output()
        .expect("it starts");
    let outputs = folder.json("y.json")["outputs"]
        .as_object()
        .expect("outputs")
        .clone();
    let not_tried = |case: &serde_json::Value| {
        case["error"] == "not tried, because three cases in a row took more than the --timeout"
    };
    let count = outputs.values().filter(|case| not_tried(case)).count();
    assert!(
        count == outputs.len() - 3 && count > 3,
        "{count}: {}",
        output.fails(1, "")
    );
    // A run in which every case fails also writes a results file.
    assert_eq!(
        folder.json("x.json")["outputs"]
            .as_object()
            .map(serde_json::Map::len),
        Some(4)
    );
    assert!(folder
        .well(&["report", "x.json"])
        .contains("\nhangs: hangs; "));
}

/// A stand-in for Python with ONNX Runtime: it answers case by case, crashes in one, and is wrong in another.
#[test]
fn onnx_runtime_answers_case_by_case() {
    let folder = Folder::new();
    if !install(&folder.path(""), "python.exe") {
        return;
    }
    folder.write("a.so", "");
    let bench = |to: &str, option: &str, provider: &str| {
        let runner = [
            "bench",
            "-o",
            to,
            "--tier",
            "quick",
            "--runner",
            "onnxruntime",
            "--python",
            "./python.exe",
        ];
        let output = folder.run(&[&runner[..], &[option, provider, "--adapter", "0"]].concat());
        (output.fails(1, ""), folder.json(to))
    };
    let (said, found) = bench("cpu.json", "--provider", "cpu");
    let ended = format!(
        "reverse_sequence_6x9.time_1.u8.opset_10: the process that ran it ended ({STATUS}: 3)"
    );
    assert!(said.contains(&ended), "{said}");
    assert!(
        said.contains("the output is wrong: element [0, 0, 1]"),
        "{said}"
    );
    assert_eq!(found["machine"]["tool"], "ONNX Runtime 9.9 CPU");
    assert!(cases(&found)
        .iter()
        .all(|case| case["each"][6] == 1.5 && case["dispatches"] == 3));
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("Python 9")
            && notes.contains("small_fill_of_65536_bytes.f64.fill: refused: no kernel"),
        "{notes}"
    );
    assert_eq!(
        found["outputs"]["check.onnx.range.i16.opset_11"]["bytes"],
        "00ff"
    );
    assert_eq!(
        found["outputs"]["check.onnx.reverse_sequence_7x4x5.time_0.u8.opset_10"]["bytes"],
        "00ff"
    );
    // What DirectML's provider is known to get wrong is no failure.
    let (said, found) = bench("dml.json", "--provider", "dml"); // one feature crashes
    assert!(!said.contains("the output is wrong"), "{said}");
    let why = found["outputs"]["check.onnx.reverse_sequence_4x7x5.time_1.u8.opset_10"]
        ["not_compared"]
        .to_string();
    assert!(
        why.contains(
            "DirectML provider reads wrong lengths for more than one feature: the output is wrong"
        ),
        "{why}"
    );
    // No answer is no success.
    let f64 = [
        "bench",
        "-o",
        "f64.json",
        "--runner",
        "onnxruntime",
        "--python",
        "./python.exe",
        "--provider",
        "cpu",
    ];
    let said = stderr(&folder.run(&[&f64[..], &["--only", "65536_bytes.f64"]].concat()));
    assert!(
        said.contains(
            "ERROR: ONNX Runtime 9.9 CPU refused every case; the notes of the results file say why"
        ),
        "{said}"
    );
    let (_, found) = bench("a.json", "--provider-library", "a.so");
    // Windows adds the names of its adapters.
    let device = found["machine"]["device"].as_str().expect("a device");
    assert!(
        device == "A" || cfg!(windows) && device.starts_with("A of: ") && device.len() > 6,
        "{device}"
    );
    for (options, words) in [
        (
            &["--provider", "cpu", "--python", "./nothing"][..],
            "nothing cannot be started",
        ),
        (
            &["--provider", "cpu", "--python", "./python.exe", "-a", "9"],
            "--adapter is 9, but must be 0 with the provider CPUExecutionProvider",
        ),
        (
            &[],
            "--provider is not given, but must be cuda, cpu, dml or a name, or --provider-library",
        ),
        (
            &["--provider-library", "nothing.so"],
            if cfg!(windows) {
                "nothing.so: "
            } else {
                "nothing.so: No such file"
            },
        ),
    ] {
        folder.refuses(
            &[
                &["bench", "-o", "n.json", "--runner", "onnxruntime"],
                options,
            ]
            .concat(),
            words,
        );
    }
}
