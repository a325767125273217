//! suite, bench, import, report and compare: from a folder of models to a report, and what each says of wrong input.
#![cfg(feature = "runner")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use common::runner;
use serde_json::{json, Value};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    runner().current_dir(folder).args(arguments).output().expect("the runner starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it, which must succeed; what it printed.
fn well(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs it, which must fail in one line; that line.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}{}", text(&output.stdout));
    assert!(said.starts_with("ERROR: ") && said.trim_end().lines().count() == 1, "{said}");
    said
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("the file is there")).expect("JSON")
}

/// A folder with a suite of the smallest tier.
fn suite() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    well(folder.path(), &["suite", "s", "--tier", "quick"]);
    folder
}

#[test]
fn every_model_of_a_suite_runs_on_windows_too() {
    let folder = suite();
    let manifest = read(&folder.path().join("s/manifest.json"));
    let cases = manifest["cases"].as_array().expect("cases");
    assert!(cases.len() > 150 && manifest["checks"].as_array().expect("checks").len() == 26);
    let (mut looked_at, mut in_place) = (0, 0);
    for case in cases.iter().filter(|case| !case["mode"].as_str().expect("a mode").starts_with("roof")) {
        let name = case["name"].as_str().expect("a name");
        let model = format!("s/{name}.json");
        let output = run(folder.path(), &[&model, "--strict", "--validate"]);
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        assert!(name.is_ascii() && fs::read(folder.path().join(&model)).expect("a model").is_ascii());
        // DirectML accepts in place and is wrong.
        let warned = text(&output.stderr).contains("one resource for InputTensor and OutputTensor");
        assert_eq!(warned, case["mode"] == "in place", "{name}");
        in_place += u32::from(warned);
        looked_at += 1;
    }
    assert!(looked_at > 150 && in_place > 50, "{looked_at} {in_place}");
    // The scripts have DirectML's cases, each once, and PowerShell's ends of lines.
    let script = text(&fs::read(folder.path().join("s/run.ps1")).expect("a script"));
    assert!(
        script.contains("\r\ncheck.fill.float32\r\n")
            && !script.contains("in_place")
            && !script.contains("roof_of_fills")
    );
    assert_eq!(script.matches("reverse.tokens_256x4096.f32.copy ").count(), 1);
    assert!(!script.contains("@TIMED@") && !script.contains("@CHECKS@"));
    assert!(refused(folder.path(), &["suite", "."]).contains("is not empty, must be new, or hold a suite"));
}

#[test]
fn a_bench_is_resumed_compared_and_reported() {
    let folder = suite();
    let bench = |to: &str, only: &str| {
        well(folder.path(), &["bench", "s", "-o", to, "--only", only, "-a", "cpu", "--samples", "5"])
    };
    bench("a.json", "small_16x256");
    let first = read(&folder.path().join("a.json"));
    assert_eq!(first["cases"].as_array().expect("cases").len(), 8);
    for case in first["cases"].as_array().expect("cases") {
        let samples = case["samples"]["each"].as_array().expect("raw samples");
        assert!(samples.len() >= 5 && samples.iter().all(|sample| sample.as_f64().expect("a number") > 0.0));
    }
    // It goes on: what is there stays as it is.
    bench("a.json", "check");
    bench("a.json", "lanes_of_31");
    let second = read(&folder.path().join("a.json"));
    assert_eq!(second["cases"].as_array().expect("cases").len(), 16);
    assert_eq!(second["cases"].as_array().expect("cases")[..8], first["cases"].as_array().expect("cases")[..]);
    assert_eq!(second["outputs"].as_object().expect("outputs").len(), 26);
    // Elements 0, 1, … of a UINT8 reversal of [4, 7, 5] by lengths 0, 1, …: of lane n the first n turn round.
    let bytes = second["outputs"]["check.reverse_4x7x5.uint8.uint32"].as_str().expect("bytes");
    let element = |batch: usize, t: usize, lane: usize| {
        let at = 2 * ((batch * 7 + t) * 5 + lane);
        usize::from_str_radix(&bytes[at..at + 2], 16).expect("a byte")
    };
    for (batch, lane) in (0..4).flat_map(|batch| (0..5).map(move |lane| (batch, lane))) {
        let length = (batch * 5 + lane).min(7);
        for t in 0..7 {
            let from = if t < length { length - 1 - t } else { t };
            assert_eq!(element(batch, t, lane), (batch * 7 + from) * 5 + lane);
        }
    }

    // The same run beside one that is twice as slow in all but one case, and has an output that differs.
    let mut slow = second.clone();
    slow["label"] = json!("slow <&> \"quoted\"");
    for (n, case) in slow["cases"].as_array_mut().expect("cases").iter_mut().enumerate() {
        let factor = if n == 0 { 1.0 } else { 2.0 };
        case["samples"] = json!({ "each": [100.0 * factor, 101.0 * factor, 99.0 * factor] });
    }
    slow["outputs"]["check.fill.int8"] = json!("00");
    let mut quick = slow.clone();
    quick["label"] = json!("quick");
    for case in quick["cases"].as_array_mut().expect("cases") {
        case["samples"] = json!({ "each": [100.0, 101.0, 99.0] });
    }
    quick["outputs"]["check.fill.int8"] = json!("01");
    fs::write(folder.path().join("slow.json"), slow.to_string()).expect("written");
    fs::write(folder.path().join("quick.json"), quick.to_string()).expect("written");
    let compared = well(folder.path(), &["compare", "quick.json", "slow.json", "--format", "json"]);
    let compared: Value = serde_json::from_str(&compared).expect("JSON");
    let statuses: Vec<&str> = compared["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["changes"][0]["status"].as_str().expect("a status"))
        .collect();
    assert_eq!((statuses[0], statuses.len()), ("SAME", 16));
    assert!(statuses[1..].iter().all(|status| *status == "SLOWER"), "{statuses:?}");
    assert_eq!(compared["outputs"][0], json!({ "equal": 25, "different": ["check.fill.int8"] }));

    let slower = run(folder.path(), &["compare", "quick.json", "slow.json", "--fail-on-slower"]);
    assert_eq!(slower.status.code(), Some(1));
    assert!(run(folder.path(), &["compare", "slow.json", "quick.json", "--fail-on-slower"]).status.success());
    assert!(run(folder.path(), &["compare", "quick.json", "slow.json", "--fail-on-slower", "--threshold", "200"])
        .status
        .success());

    let table = well(folder.path(), &["compare", "quick.json", "slow.json"]);
    assert!(table.contains("SLOWER") && table.contains("1 of 26 outputs differ from A's: check.fill.int8"), "{table}");
    let markdown = well(folder.path(), &["compare", "quick.json", "slow.json", "--format", "markdown"]);
    assert!(markdown.contains("| case ") && markdown.contains("### in place"), "{markdown}");
    let csv = well(folder.path(), &["compare", "quick.json", "slow.json", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 33, "{csv}");
    well(folder.path(), &["compare", "quick.json", "slow.json", "-o", "page.html"]);
    let page = fs::read_to_string(folder.path().join("page.html")).expect("a page");
    assert!(page.contains("slow &lt;&amp;&gt; &quot;quoted&quot;") && !page.contains("slow <&>"));
    assert_eq!(
        (page.matches("<figure>").count(), page.matches("http").count()),
        (4, page.matches("http://www.w3.org/2000/svg").count())
    );
    well(folder.path(), &["report", "a.json", "-o", "figure.svg"]);
    assert!(fs::read_to_string(folder.path().join("figure.svg")).expect("a figure").starts_with("<svg "));
    let google: Value =
        serde_json::from_str(&well(folder.path(), &["report", "slow.json", "--format", "gbench"])).expect("JSON");
    assert_eq!(google["benchmarks"].as_array().expect("benchmarks").len(), 48);
    assert_eq!(google["benchmarks"][3]["real_time"], json!(200.0));
    assert!(refused(folder.path(), &["compare", "quick.json", "slow.json", "--format", "gbench"])
        .contains("must be asked of `report`"));
}

/// The file is whole whenever a signal comes, and the next call goes on from it.
#[cfg(unix)]
#[test]
fn an_interrupted_bench_loses_nothing() {
    let folder = suite();
    let arguments = ["bench", "s", "-o", "i.json", "--only", ".copy", "-a", "cpu", "--samples", "5"];
    let mut child = runner()
        .current_dir(folder.path())
        .args(arguments)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the runner starts");
    let path = folder.path().join("i.json");
    let begun = std::time::Instant::now();
    let cases = || fs::read(&path).map_or(0, |bytes| text(&bytes).matches("\"case\"").count());
    while cases() < 3 {
        assert!(begun.elapsed().as_secs() < 120, "it is slow");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let signal = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signal.expect("kill runs").success());
    assert!(!child.wait().expect("it ends").success());
    let kept = read(&path)["cases"].as_array().expect("cases").clone();
    assert!(kept.len() >= 3);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing is left but the suite and the run");
    well(folder.path(), &["bench", "s", "-o", "i.json", "--only", "small_16x256", "-a", "cpu", "--samples", "5"]);
    let now = read(&path)["cases"].as_array().expect("cases").clone();
    assert_eq!(now[..kept.len()], kept[..]);
}

/// A program that prints what DxDispatch prints, for a model of its name, and writes what it is to.
#[cfg(unix)]
#[test]
fn another_runner_is_timed_by_what_it_prints() {
    use std::os::unix::fs::PermissionsExt;
    let folder = suite();
    let program = folder.path().join("dxdispatch");
    let script = r#"#!/bin/sh
name=$(basename "$1" .json)
echo "Running on 'Some GPU'"
case "$name" in
check.fill.int8) printf 'abc' > "$name.bin"; echo "Dispatch '$name': 1 iterations, 0.1 ms median (CPU), 0.100000 ms median (GPU)"; exit 0 ;;
check.*) echo "ERROR: no" >&2; exit 1 ;;
esac
case "$*" in
*"-v 0"*) echo "Dispatch '$name': 6 iterations, 0.1000 ms median (CPU), 0.002500 ms median (GPU)" ;;
*) echo "Dispatch '$name': 6 iterations"
   echo "GPU Timings (Cold) : 1 samples, 0.0100 ms average, 0.0100 ms min, 0.0100 ms median, 0.0100 ms max"
   echo "GPU Timings (Hot)  : 1 samples, 0.0025 ms average, 0.0025 ms min, 0.0025 ms median, 0.0025 ms max"
   echo "iteration 0: 0.1 ms (CPU), 0.0100 ms (GPU)"
   echo "iteration 1: 0.1 ms (CPU), 0.0025 ms (GPU)" ;;
esac
"#;
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be run");
    let runner = program.to_str().expect("UTF-8");
    well(folder.path(), &["bench", "s", "-o", "x.json", "--only", "small_16x256.f32", "--runner", runner]);
    let found = read(&folder.path().join("x.json"));
    // In place is not asked of it.
    assert_eq!(found["cases"].as_array().expect("cases").len(), 1);
    assert_eq!(found["cases"][0]["samples"], json!({ "medians": [2.5, 2.5, 2.5, 2.5, 2.5] }));
    assert_eq!(found["label"], json!("dxdispatch on Some GPU"));
    let output = run(folder.path(), &["bench", "s", "-o", "x.json", "--only", "check", "--runner", runner]);
    assert_eq!(output.status.code(), Some(1), "what fails is said, and the rest is kept");
    let found = read(&folder.path().join("x.json"));
    assert_eq!(found["outputs"], json!({ "check.fill.int8": "616263" }));
    assert_eq!(found["notes"].as_array().expect("notes").len(), 25);
    // Another device needs a file of its own.
    let said = refused(folder.path(), &["bench", "s", "-o", "x.json", "--only", "lanes_of_31", "-a", "cpu"]);
    assert!(
        said.contains("is a run of dxdispatch on Some GPU") && said.contains("it needs a file of its own"),
        "{said}"
    );
}

#[test]
fn logs_and_tables_become_runs() {
    let folder = suite();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).expect("a folder");
    let name = "reverse.tokens_256x4096.f32.copy";
    let log = format!(
        "Running on 'Some GPU'\r\nDispatch '{name}': 31 iterations, 0.1 ms median (CPU), 0.007591 ms median (GPU)\r\n"
    );
    let utf16: Vec<u8> = [0xFF, 0xFE].into_iter().chain(log.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    fs::write(logs.join(format!("{name}.log")), utf16).expect("written");
    let failed = "reverse.small_16x256.u8.copy";
    fs::write(
        logs.join(format!("{failed}.log")),
        format!(
            "Running on 'Some GPU'\nDispatch '{failed}': 31 iterations, 0.1 ms median (CPU), nan ms median (GPU)\n"
        ),
    )
    .expect("written");
    fs::write(logs.join("check.fill.int8.bin"), [1, 255]).expect("written");
    well(
        folder.path(),
        &["import", "logs", "--suite", "s", "-o", "win.json", "--label", "Windows", "--note", "a laptop"],
    );
    let found = read(&folder.path().join("win.json"));
    assert_eq!((&found["label"], &found["machine"]["device"]), (&json!("Windows"), &json!("Some GPU")));
    assert_eq!(found["cases"].as_array().expect("cases").len(), 1);
    let medians = found["cases"][0]["samples"]["medians"].as_array().expect("medians");
    assert!(medians.len() == 1 && (medians[0].as_f64().expect("a number") - 7.591).abs() < 1e-9, "{medians:?}");
    assert_eq!(found["outputs"], json!({ "check.fill.int8": "01ff" }));
    let notes = found["notes"].to_string();
    assert!(notes.contains("its GPU time is 'nan', no number") && notes.contains("a laptop"), "{notes}");

    fs::write(
        logs.join("other.log"),
        "Running on 'Some GPU'\nDispatch 'other': 1 iterations, 0.1 ms median (CPU), 0.1 ms median (GPU)\n",
    )
    .expect("written");
    let said = refused(folder.path(), &["import", "logs", "--suite", "s", "-o", "win.json"]);
    assert!(said.contains("the dispatchable 'other' is not in the suite 'quick "), "{said}");
    assert_eq!(read(&folder.path().join("win.json")), found, "a refused import leaves the file");
    fs::write(logs.join("other.log"), "some other program's words\n").expect("written");
    assert!(refused(folder.path(), &["import", "logs", "--suite", "s", "-o", "w.json"])
        .contains("has no line of DxDispatch's"));
    assert!(refused(folder.path(), &["import", "logs", "-o", "w.json"]).contains("--suite is not given"));

    let table = "# tool: Some tool\n# a note\ncase,type,mode,microseconds\n\"tokens [256, 4096]\",f32,copy,7.5\n";
    fs::write(folder.path().join("t.csv"), table).expect("written");
    assert!(refused(folder.path(), &["import", "t.csv", "-o", "t.json"])
        .contains("has no bytes, must have a column for them, or --suite"));
    well(folder.path(), &["import", "t.csv", "--suite", "s", "-o", "t.json"]);
    let compared = well(folder.path(), &["compare", "t.json", "win.json", "--format", "csv"]);
    assert!(compared.contains("0.9880,SAME"), "{compared}");
    fs::write(folder.path().join("t.csv"), "case,type,mode,microseconds\nx,f32,sideways,7.5\n").expect("written");
    assert!(refused(folder.path(), &["import", "t.csv", "--suite", "s", "-o", "t.json"]).contains("sideways"));
}

#[test]
fn runs_that_are_none_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |run: Value| fs::write(folder.path().join("r.json"), run.to_string()).expect("written");
    let said = || refused(folder.path(), &["report", "r.json"]);
    assert!(said().contains("the run cannot be read"));
    write(json!({ "schema": 2, "label": "from the future" }));
    assert!(said().contains("its schema is 2, must be at most 1: a newer release of dml-cuda wrote it"));
    write(json!({ "schema": 1 }));
    assert!(said().contains("this is no run"));
    fs::write(folder.path().join("r.json"), "{ \"schema\": 1, ").expect("written");
    assert!(said().contains("it is not JSON with a schema"));
    let run = |samples: Value| {
        let case = json!({ "case": "x", "type": "f32", "mode": "copy", "bytes": 8, "dispatches": 1, "samples": { "each": samples } });
        json!({ "schema": 1, "label": "a", "machine": {}, "timing": "", "cases": [case] })
    };
    write(run(json!([])));
    assert!(said().contains("the case 'x, f32, copy' has no samples"));
    write(run(json!([0.0])));
    assert!(said().contains("has a time of 0, must be microseconds above 0"));
    let mut twice = run(json!([1.0]));
    twice["cases"] = json!([twice["cases"][0], twice["cases"][0]]);
    write(twice);
    assert!(said().contains("the case 'x, f32, copy' is there twice"));
    write(run(json!([1.0])));
    let mut other = run(json!([1.0]));
    other["cases"][0]["case"] = json!("y");
    fs::write(folder.path().join("other.json"), other.to_string()).expect("written");
    assert!(refused(folder.path(), &["compare", "r.json", "other.json"]).contains("the runs share no case"));
    assert!(refused(folder.path(), &["bench", ".", "-o", "b.json"]).contains("the manifest of a suite cannot be read"));
}
