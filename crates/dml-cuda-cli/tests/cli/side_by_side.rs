//! suite, bench, import, report and compare: from a folder of models to a report, and what each says of wrong input.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{json, Value};

use crate::runner;

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
fn onnx_models_do_the_work_of_the_suites_models() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join("s").join(name);
    well(folder.path(), &["suite", "s", "--tier", "quick", "--onnx"]);
    let manifest = read(&path("manifest.json"));
    let models = |part: &str| manifest["onnx"][part].as_array().expect("models").clone();
    let mut shared = 0;
    for model in models("cases") {
        let same = |case: &&Value| ["case", "type", "mode"].iter().all(|member| case[member] == model[member]);
        if let Some(case) = manifest["cases"].as_array().expect("cases").iter().find(same) {
            // One row in a comparison, which compares equal work only.
            assert_eq!((&case["bytes"], &case["name"]), (&model["bytes"], &model["name"]));
            shared += 1;
        }
        if let Some(shape) = model["shape"].as_array() {
            let elements: u64 = shape.iter().map(|size| size.as_u64().expect("a size")).product();
            let width = match model["type"].as_str() {
                Some("u8") => 1,
                Some("f16") => 2,
                Some("f32") => 4,
                _ => 8,
            };
            let lengths = model["bytes"].as_u64().expect("bytes") - 2 * elements * width;
            let batch = shape[model["batch_axis"].as_u64().expect("an axis") as usize].as_u64().expect("a size");
            assert_eq!(lengths, 4 * batch, "{model}");
        }
    }
    assert_eq!((shared, models("cases").len(), models("checks").len()), (17, 27, 36));
    let has = |member: &str, value: Value| models("checks").iter().any(|model| model[member] == value);
    assert!(has("opset", json!(10)) && has("opset", json!(11)) && has("opset", json!(25)));
    assert!([json!([9, 6]), json!([6, 9, 1]), json!([7, 4, 5])].into_iter().all(|shape| has("shape", shape)));
    assert!(path("run_onnx.py").exists());
    // A suite without them has no script that would time them.
    well(folder.path(), &["suite", "s", "--tier", "quick"]);
    assert!(!path("run_onnx.py").exists() && read(&path("manifest.json")).get("onnx").is_none());
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
    let allowed = ["--fail-on-slower", "--allow-different-outputs"];
    assert!(run(folder.path(), &[&["compare", "slow.json", "quick.json"][..], &allowed].concat()).status.success());
    let far = ["compare", "quick.json", "slow.json", "--threshold", "200"];
    assert!(run(folder.path(), &[&far[..], &allowed].concat()).status.success());

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
    assert_eq!(found["failed_outputs"].as_object().expect("failures").len(), 25);
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
    assert_eq!(found["failed"][0]["error"], json!("its GPU time is 'nan', no number"));
    assert!(found["notes"].to_string().contains("a laptop"), "{}", found["notes"]);

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
    let mut nothing = run(json!([1.0]));
    nothing["cases"][0]["bytes"] = json!(0);
    write(nothing);
    assert!(said().contains("the case 'x, f32, copy' has 0 bytes"));
    fs::write(folder.path().join("t.csv"), "case,type,mode,microseconds,bytes\nx,f32,copy,-1,8\n").expect("written");
    assert!(refused(folder.path(), &["import", "t.csv", "-o", "t.json"]).contains("has a time of -1"));
    assert!(
        refused(folder.path(), &["import", "logs", "-o", "t.json"]).contains("logs does not exist, must be a folder")
    );
    let mut twice = run(json!([1.0]));
    twice["cases"] = json!([twice["cases"][0], twice["cases"][0]]);
    write(twice);
    assert!(said().contains("the case 'x, f32, copy' is there twice"));
    write(run(json!([1.0])));
    assert!(refused(folder.path(), &["import", "r.json", "-o", "t.json"]).contains("r.json is a run, which report"));
    let mut other = run(json!([1.0]));
    other["cases"][0]["case"] = json!("y");
    fs::write(folder.path().join("other.json"), other.to_string()).expect("written");
    assert!(refused(folder.path(), &["compare", "r.json", "other.json"]).contains("the runs share no case"));
    // Outputs may be all that two runs share.
    for (name, bytes) in [("r.json", "00"), ("other.json", "01")] {
        let outputs = json!({ "o": bytes, "p": "00" });
        let run = json!({ "schema": 1, "label": name, "machine": {}, "timing": "", "cases": [], "outputs": outputs });
        fs::write(folder.path().join(name), run.to_string()).expect("written");
    }
    let said = refused(folder.path(), &["compare", "r.json", "other.json"]);
    assert!(said.contains("the runs share no case") && said.contains("B: 1 of 2 outputs differ from A's: o"), "{said}");
    assert!(refused(folder.path(), &["bench", ".", "-o", "b.json"]).contains("the manifest of a suite cannot be read"));
}

/// A run with a case for each name, of these samples.
fn made(label: &str, cases: &[(&str, &str, &[f64])]) -> Value {
    let case = |(case, data_type, samples): &(&str, &str, &[f64])| {
        json!({ "case": case, "type": data_type, "mode": "copy", "bytes": 1 << 20, "dispatches": 1,
            "samples": { "each": samples } })
    };
    let machine = json!({ "tool": "a tool", "commit": "abc", "device": "Some GPU", "date": "2026-11-20T01:02:03Z" });
    json!({ "schema": 1, "label": label, "machine": machine, "timing": "", "cases": cases.iter().map(case).collect::<Vec<_>>() })
}

/// A folder with `a.json` and `b.json`, two runs of one case.
fn two_runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a", "b"] {
        let run = made(name, &[("x", "f32", &[1.0, 1.0, 1.0])]);
        fs::write(folder.path().join(format!("{name}.json")), run.to_string()).expect("written");
    }
    folder
}

#[cfg(unix)]
#[test]
fn a_run_is_replaced_by_nothing_else() {
    let folder = two_runs();
    let path = |name: &str| folder.path().join(name);
    let before = fs::read(path("b.json")).expect("a run");
    fs::create_dir(path("sub")).expect("made");
    std::os::unix::fs::symlink("../b.json", path("sub/link.html")).expect("linked");
    fs::hard_link(path("b.json"), path("hard.svg")).expect("linked");
    fs::write(path("named.html"), &before).expect("written");
    fs::write(path("marked.txt"), [b"\xEF\xBB\xBF", &before[..]].concat()).expect("written");
    fs::write(path("future.md"), r#"{ "schema": 7, "label": "from the future", "cases": 1 }"#).expect("written");
    fs::write(path("cut.csv"), &before[..before.len() - 1]).expect("written");
    fs::write(path("t.csv"), "case,type,mode,microseconds,bytes\nx,f32,copy,7.5,8\n").expect("written");
    let outputs =
        ["b.json", "./sub/../b.json", "sub/link.html", "hard.svg", "named.html", "marked.txt", "future.md", "cut.csv"];
    for to in outputs {
        for from in [&["report", "a.json"][..], &["report", "b.json"], &["compare", "a.json", "b.json"]] {
            for format in [&[][..], &["--format", "html"], &["--format", "json"]] {
                let said = refused(folder.path(), &[from, format, &["-o", to]].concat());
                assert!(said.contains(to) && said.contains("which nothing else may replace"), "{said}");
            }
        }
        let said = refused(folder.path(), &["import", "t.csv", "-o", to]);
        assert!(said.contains("exists, must be a new file"), "{said}");
        let model = json!({
            "resources": { "Out": { "initialValuesDataType": "UINT8", "initialValues": [7, 7, 7, 7] } },
            "dispatchables": {},
            "commands": [{ "type": "writeFile", "resource": "Out", "targetPath": to }]
        });
        fs::write(path("model.json"), model.to_string()).expect("written");
        assert!(refused(folder.path(), &["model.json", "-a", "cpu"]).contains("which nothing else may replace"));
    }
    for name in ["b.json", "sub/link.html", "hard.svg", "named.html"] {
        assert_eq!(fs::read(path(name)).expect("there"), before, "{name}");
    }
    // What is read is not written either: a table, also by another name.
    let table = fs::read(path("t.csv")).expect("a table");
    fs::hard_link(path("t.csv"), path("other.csv")).expect("linked");
    for to in ["t.csv", "sub/../t.csv", "other.csv"] {
        assert!(refused(folder.path(), &["import", "t.csv", "-o", to]).contains("exists, must be a new file"));
    }
    assert_eq!(fs::read(path("t.csv")).expect("there"), table);
    // An older report is replaced.
    well(folder.path(), &["report", "a.json", "-o", "report.json"]);
    well(folder.path(), &["compare", "a.json", "b.json", "-o", "report.json"]);
    assert_eq!(read(&path("report.json"))["runs"].as_array().expect("runs").len(), 2);
}

/// A write that fails half way leaves the older file, and no other.
#[cfg(unix)]
#[test]
fn a_report_that_does_not_fit_leaves_the_older_one() {
    let folder = two_runs();
    well(folder.path(), &["report", "a.json", "-o", "page.html"]);
    let older = fs::read(folder.path().join("page.html")).expect("a report");
    let runner = runner();
    // Files end at one block, and a write beyond that is an error.
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let output = std::process::Command::new("sh")
        .current_dir(folder.path())
        .args(["-c", limited])
        .arg(runner.get_program())
        .args(["compare", "a.json", "b.json", "-o", "page.html"])
        .output()
        .expect("sh starts");
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.starts_with("ERROR: page.html: "), "{said}");
    assert_eq!(fs::read(folder.path().join("page.html")).expect("there"), older);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3);
}

/// A report replaces reports, of whatever format, and nothing else.
#[test]
fn a_report_replaces_reports_alone() {
    let folder = two_runs();
    let formats = ["table", "markdown", "csv", "json", "html", "svg", "gbench"];
    fs::write(folder.path().join("r"), "").expect("written");
    for format in formats.iter().chain(&formats) {
        well(folder.path(), &["report", "a.json", "--format", format, "-o", "r"]);
        if *format != "gbench" {
            well(folder.path(), &["compare", "a.json", "b.json", "--format", format, "-o", "r"]);
        }
    }
    // Files of others, some of which begin as a report does.
    for (name, text) in [
        ("notes.md", "# Notes"),
        ("data.csv", "case,type,mode\n"),
        ("page.html", "<!DOCTYPE html><p>"),
        ("sarif.json", "{\n  \"runs\": []\n}"),
        ("letter.txt", "A: where is it?"),
    ] {
        fs::write(folder.path().join(name), text).expect("written");
        let said = refused(folder.path(), &["report", "a.json", "-o", name]);
        assert!(
            said.contains(name) && said.contains("it is not a report, and a report replaces only reports"),
            "{said}"
        );
        assert_eq!(fs::read_to_string(folder.path().join(name)).expect("there"), text);
    }
}

#[test]
fn a_name_without_a_known_ending_needs_a_format() {
    let folder = two_runs();
    let said = refused(folder.path(), &["report", "a.json", "-o", "r.pdf"]);
    assert!(said.contains("r.pdf has no ending of a format, must be .txt, .md, .csv"), "{said}");
    well(folder.path(), &["report", "a.json", "-o", "r.pdf", "--format", "html"]);
}

/// Samples of one process do not replace another's without a word.
#[test]
fn two_benches_into_one_file_are_an_error() {
    let folder = suite();
    let bench = |only: &str| {
        let mut runner = runner();
        runner.current_dir(folder.path()).args(["bench", "s", "-o", "r.json", "-a", "cpu", "--only", only]);
        runner.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().expect("it starts")
    };
    let path = folder.path().join("r.json");
    let slow = bench("inner_odd_nx1000");
    let begun = std::time::Instant::now();
    while !path.exists() {
        assert!(begun.elapsed().as_secs() < 120, "it is slow");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let quick = bench("check.fill.int8").wait_with_output().expect("it ends");
    let slow = slow.wait_with_output().expect("it ends");
    // The one that wrote last is whole; the other says what happened.
    let failed: Vec<String> =
        [&quick, &slow].iter().filter(|it| !it.status.success()).map(|it| text(&it.stderr)).collect();
    assert!(failed.len() == 1 && failed[0].contains("r.json was changed by another process"), "{failed:?}");
    assert!(read(&path)["cases"].as_array().is_some_and(|cases| !cases.is_empty()));
}

#[test]
fn a_cold_l2_is_a_gpus_of_this_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = refused(folder.path(), &["bench", "--cold-l2", "-o", "r.json", "-a", "cpu"]);
    assert!(said.contains("--cold-l2 is given on the CPU, must be on a GPU, whose L2 is kept cold"), "{said}");
    for others in [&["s"][..], &["--runner", "dxdispatch"], &[]] {
        let cold: &[&str] = if others.is_empty() { &[] } else { &["--cold-l2"] };
        let output = run(folder.path(), &[&["bench", "-o", "r.json"], cold, others].concat());
        assert_eq!(output.status.code(), Some(2), "{others:?}: {}", text(&output.stderr));
    }
    assert!(refused(folder.path(), &["kernel", "x", "-a", "cpu"]).contains("the device is CPU, must be a GPU"));
}

#[test]
fn a_bench_goes_on_only_where_everything_agrees() {
    let folder = suite();
    let path = folder.path().join("r.json");
    let arguments = ["bench", "s", "-o", "r.json", "--only", "check.fill.int", "-a", "cpu", "--samples", "5"];
    well(folder.path(), &arguments);
    let whole = fs::read(&path).expect("a run");
    let said = well(folder.path(), &arguments);
    assert!(said.contains("nothing left to time, 0 cases and 4 outputs are there"), "{said}");
    assert_eq!(fs::read(&path).expect("a run"), whole, "a complete run stays as it is");
    let run = read(&path);
    // A commit takes the place of the program's hash.
    let builds =
        run["machine"]["program"].is_string() != run["machine"]["commit"].as_str().is_some_and(|it| !it.is_empty());
    assert!(builds && run["samples"] == 5, "{run}");
    for field in ["tool", "commit", "program", "host", "operating_system", "device", "driver"] {
        for complete in [true, false] {
            let mut other = run.clone();
            other["machine"][field] = json!("another");
            if !complete {
                other["outputs"].as_object_mut().expect("outputs").remove("check.fill.int8");
            }
            fs::write(&path, other.to_string()).expect("written");
            let said = refused(folder.path(), &arguments);
            assert!(said.contains(&format!("{} was 'another', is '", field.replace('_', " "))), "{said}");
            assert_eq!(read(&path), other, "a refused run stays as it is");
        }
    }
    let mut other = run.clone();
    other["timing"] = json!("by an hourglass");
    fs::write(&path, other.to_string()).expect("written");
    assert!(refused(folder.path(), &arguments).contains("timing was 'by an hourglass'"));
    fs::write(&path, &whole).expect("written");
    let more = [&arguments[..8], &["--samples", "6"]].concat();
    assert!(refused(folder.path(), &more).contains("samples was '5', is '6'"));
    // The work of a case is another now, in a suite of the same name.
    let mut other = run.clone();
    let work = json!({ "case": "small [16, 256]", "type": "f32", "mode": "copy", "bytes": 8, "dispatches": 1,
        "samples": { "each": [1.0] } });
    other["cases"] = json!([work]);
    fs::write(&path, other.to_string()).expect("written");
    assert!(refused(folder.path(), &arguments).contains("a case was 'reverse.small_16x256.f32.copy, 8 bytes'"));
}

/// Another runner without a commit is the same only while its file is.
#[cfg(unix)]
#[test]
fn a_runner_that_changed_needs_a_file_of_its_own() {
    use std::os::unix::fs::PermissionsExt;
    let folder = suite();
    let install = |version: &str| {
        let program = folder.path().join("dxdispatch");
        let script = format!(
            "#!/bin/sh\n# {version}\necho \"Running on 'Some GPU'\"\nprintf abc > \"$(basename \"$1\" .json).bin\"\n\
            echo \"Dispatch '$(basename \"$1\" .json)': 1 iterations, 0.1 ms median (CPU), 0.1 ms median (GPU)\"\n"
        );
        fs::write(&program, script).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be run");
    };
    let bench = |only| ["bench", "s", "-o", "x.json", "--runner", "./dxdispatch", "--only", only];
    install("1");
    well(folder.path(), &bench("check.fill.int8"));
    assert_eq!(
        read(&folder.path().join("x.json"))["machine"]["commit"],
        "",
        "this program's commit is not the runner's"
    );
    well(folder.path(), &bench("check.fill.int16"));
    install("2");
    assert!(refused(folder.path(), &bench("check.fill.int32")).contains("program was '"));
    assert!(refused(folder.path(), &["bench", "s", "-o", "y.json", "--runner", "./nothing"]).contains("is no program"));
}

#[test]
fn a_bench_that_fails_says_it_once_and_leaves_nothing() {
    let folder = suite();
    let said = refused(folder.path(), &["bench", "s", "-o", "n.json", "-a", "no such GPU"]);
    assert!(said.contains("the adapter is 'no such GPU'"), "{said}");
    let said = refused(folder.path(), &["bench", "s", "-o", "n.json", "-a", "cpu", "--only", "no such model"]);
    assert!(said.contains("is in the name of no model"), "{said}");
    #[cfg(unix)]
    {
        let said =
            refused(folder.path(), &["bench", "s", "-o", "/dev/stdout", "-a", "cpu", "--only", "check.fill.int8"]);
        assert!(said.contains("/dev/stdout is not a regular file, must be one to hold a run"), "{said}");
    }
    for name in ["int8", "int16", "int32", "int64"] {
        fs::write(folder.path().join(format!("s/check.fill.{name}.json")), "{}").expect("written");
    }
    let only = ["bench", "s", "-o", "n.json", "-a", "cpu", "--only"];
    let output = run(folder.path(), &[&only[..], &["check.fill.int"]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("ERROR: nothing was timed: every model failed"), "{said}");
    assert!(!folder.path().join("n.json").exists(), "a run of nothing is no file");
    // Not on a terminal there is a line for each tenth, and no more.
    let output = run(folder.path(), &[&only[..], &["check.fill"]].concat());
    assert_eq!(output.status.code(), Some(1), "four of them fail");
    let said = text(&output.stderr);
    assert_eq!(said.lines().filter(|line| line.contains(" of 10 models, ")).count(), 10, "{said}");
    let output = run(folder.path(), &[&only[..], &["check.reverse"]].concat());
    let said = text(&output.stderr);
    assert!(said.lines().count() == 10 && said.contains("16 of 16 models, "), "{said}");
    assert_eq!(
        read(&folder.path().join("n.json"))["failed_outputs"].as_object().expect("failures").len(),
        4,
        "what was not tried again stays"
    );
    well(folder.path(), &["suite", "s", "--tier", "quick"]);
    well(folder.path(), &[&only[..], &["check.fill"]].concat());
    assert!(read(&folder.path().join("n.json"))["failed_outputs"].is_null(), "it went well the second time");
}

#[test]
fn a_floor_is_of_512_mib_in_the_same_run_and_a_table_brings_its_baselines() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = made("a", &[("x", "f32", &[100.0; 3]), ("y", "f32", &[1.0; 3])]);
    run["cases"][0]["bytes"] = json!(64 << 20);
    run["cases"][0]["roof"] = json!(80.0);
    run["cases"].as_array_mut().expect("cases").push(json!({ "case": "512 MiB", "type": "u32",
        "mode": "roof of copies", "bytes": 1 << 30, "dispatches": 1, "samples": { "each": [640.0] } }));
    fs::write(folder.path().join("a.json"), run.to_string()).expect("written");
    let csv = well(folder.path(), &["report", "a.json", "--format", "csv"]);
    let mut records = csv::Reader::from_reader(csv.as_bytes());
    let at = |name: &str| csv.lines().next().expect("a header").split(',').position(|column| column == name);
    let (of_roof, of_floor) = (at("of_roof").expect("a column"), at("of_floor").expect("a column"));
    let records: Vec<_> = records.records().map(|record| record.expect("a record")).collect();
    assert_eq!((&records[0][of_roof], &records[0][of_floor]), ("0.8000", "0.4000"));
    assert_eq!(&records[1][of_floor], "", "1 MiB waits for its launch");
    let table = "case,type,mode,microseconds,floor_bytes,floor_microseconds,plain_over_time\nx,f32,copy,50,8,30,0.9\ny,f32,copy,5,8,3,\n";
    fs::write(folder.path().join("t.csv"), table).expect("written");
    well(folder.path(), &["import", "t.csv", "-o", "t.json"]);
    let table = read(&folder.path().join("t.json"));
    assert_eq!((&table["cases"][0]["roof"], &table["cases"][1]["roof"]), (&json!(45.0), &json!(3.0)));
}

#[test]
fn a_guard_fails_for_what_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, run: &Value| fs::write(folder.path().join(name), run.to_string()).expect("written");
    let steady: &[f64] = &[100.0, 101.0, 99.0];
    let a = made("a", &[("x", "f32", steady), ("y", "f32", steady), ("z", "f32", steady)]);
    write("a.json", &a);
    let guard = |options: &[&str]| {
        refused(folder.path(), &[&["compare", "a.json", "b.json", "--fail-on-slower"], options].concat())
    };
    let passes = |options: &[&str]| {
        drop(well(folder.path(), &[&["compare", "a.json", "b.json", "--fail-on-slower"], options].concat()))
    };
    write("b.json", &a);
    passes(&[]);
    write("b.json", &made("b", &[("x", "f32", steady)]));
    assert!(guard(&[]).contains("2 cases are not in both runs (--allow-missing"));
    passes(&["--allow-missing"]);
    let mut differing = a.clone();
    differing["outputs"] = json!({ "o": "00" });
    write("b.json", &differing);
    assert!(guard(&["--allow-different-outputs"]).contains("1 output is not in both runs"));
    let mut first = a.clone();
    first["outputs"] = json!({ "o": "01" });
    write("a.json", &first);
    assert!(guard(&["--allow-missing"]).contains("1 output differs (--allow-different-outputs"));
    passes(&["--allow-different-outputs"]);
    // Three times slower is slower, however noisy.
    let noisy = |factor: f64| [60.0, 80.0, 100.0, 140.0, 300.0].map(|sample| sample * factor);
    write("a.json", &made("a", &[("x", "f32", &noisy(1.0))]));
    write("b.json", &made("b", &[("x", "f32", &noisy(3.0))]));
    assert!(guard(&[]).contains("1 case is SLOWER"));
    write("b.json", &made("b", &[("x", "f32", &noisy(1.2))]));
    assert!(well(folder.path(), &["compare", "a.json", "b.json"]).contains("UNSURE"));
    for options in [&["--threshold", "nan"][..], &["--threshold=-1"], &["--allow-missing"]] {
        let output = run(folder.path(), &[&["compare", "a.json", "b.json"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

/// A failed case is a row of its own, with its cause and without figures.
#[test]
fn a_failed_case_is_a_row_with_its_cause() {
    let folder = two_runs();
    let mut b = made("b", &[("x", "f32", &[1.0, 1.0, 1.0])]);
    let error = "Failed to parse the model: \"Sizes\" <1>, line 7";
    b["failed"] =
        json!([{ "case": "y", "type": "f32", "mode": "copy", "bytes": 1 << 20, "dispatches": 1, "error": error }]);
    b["failed_outputs"] = json!({ "o": "no memory" });
    let write = |run: &Value| fs::write(folder.path().join("b.json"), run.to_string()).expect("written");
    write(&b);
    let compared = |format: &str| well(folder.path(), &["compare", "a.json", "b.json", "--format", format]);
    for format in ["table", "markdown"] {
        let text = compared(format);
        let row = text.lines().find(|line| line.contains(&format!("B failed: {error}"))).expect("a row");
        assert!(row.contains(" y ") && row.contains(" failed "), "{text}");
        assert!(text.contains("B: 1 case failed") && text.contains("B: 1 output failed: o (no memory)"), "{text}");
        assert!(text.contains("B is as fast as A, in one case"), "{text}");
    }
    let csv = compared("csv");
    let mut records = csv::Reader::from_reader(csv.as_bytes());
    let last = records.records().last().expect("records").expect("a record");
    assert_eq!((&last[0], &last[7], &last[14]), ("y", "", format!("failed: {error}").as_str()));
    let json: Value = serde_json::from_str(&compared("json")).expect("JSON");
    assert_eq!(json["rows"][1]["failed"], json!([null, error]));
    assert_eq!(json["rows"][1]["cells"], json!([null, null]));
    assert!(compared("html").contains("failed: Failed to parse the model: &quot;Sizes&quot; &lt;1&gt;, line 7</td>"));
    let google = well(folder.path(), &["report", "b.json", "--format", "gbench"]);
    assert!(google.contains("\"error_occurred\": true") && google.contains("Failed to parse"), "{google}");
    let guard = ["compare", "a.json", "b.json", "--fail-on-slower", "--allow-missing"];
    let said = refused(folder.path(), &guard);
    assert!(said.contains("1 case failed that did not fail in the first run; 1 output failed"), "{said}");
    b["failed"][0]["error"] = json!(" ");
    write(&b);
    assert!(refused(folder.path(), &["report", "b.json"]).contains("the failed case 'y, f32, copy' has no error"));
    b["failed"][0]["case"] = json!("x");
    write(&b);
    assert!(refused(folder.path(), &["report", "b.json"]).contains("the case 'x, f32, copy' is there twice"));
}

#[test]
fn a_headline_names_the_faster_run_and_runs_have_names_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, run: &Value| fs::write(folder.path().join(name), run.to_string()).expect("written");
    let mut a = made("this on that", &[("x", "f32", &[1.0])]);
    let mut b = made("this on that", &[("x", "f32", &[432.1])]);
    b["machine"]["commit"] = json!("def");
    write("a.json", &a);
    write("b.json", &b);
    let table = well(folder.path(), &["compare", "a.json", "b.json"]);
    assert!(table.contains("A is 430 times as fast as B, in one case"), "{table}");
    assert!(well(folder.path(), &["compare", "b.json", "a.json"]).contains("B is 430 times as fast as A, in one case"));
    assert!(well(folder.path(), &["compare", "a.json", "a.json"]).contains("B is as fast as A"));
    // By commit; where there is none by date; else by letter.
    let labels = |from: &[&str]| {
        let csv = well(folder.path(), &[&["compare"], from, &["--format", "csv"]].concat());
        let mut records = csv::Reader::from_reader(csv.as_bytes());
        let labels: Vec<String> = records.records().map(|record| record.expect("a record")[4].to_owned()).collect();
        let page = well(folder.path(), &[&["compare"], from, &["--format", "html"]].concat());
        let svg = well(folder.path(), &[&["compare"], from, &["--format", "markdown"]].concat());
        assert!(labels.iter().all(|label| page.contains(label) && svg.contains(label)), "{labels:?}");
        labels
    };
    assert_eq!(labels(&["a.json", "b.json"]), ["this on that, commit abc", "this on that, commit def"]);
    for run in [&mut a, &mut b] {
        run["machine"]["commit"] = json!("");
    }
    b["machine"]["date"] = json!("2026-11-21T01:02:03Z");
    write("a.json", &a);
    write("b.json", &b);
    assert_eq!(labels(&["a.json", "b.json"]), ["this on that, 2026-11-20", "this on that, 2026-11-21"]);
    assert_eq!(labels(&["a.json", "a.json"]), ["this on that, run A", "this on that, run B"]);
    assert_eq!(labels(&["a.json", "b.json", "--label", "l", "--label", "l"]), ["l, 2026-11-20", "l, 2026-11-21"]);
}

#[test]
fn a_suite_replaces_an_older_one_and_nothing_else() {
    let folder = suite();
    let path = |name: &str| folder.path().join("s").join(name);
    let names = || {
        let entries = fs::read_dir(folder.path().join("s")).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| text(entry.expect("one").file_name().as_encoded_bytes())).collect();
        names.sort();
        names
    };
    let fresh = names();
    // What an older release left, what a user keeps there, and names that lead elsewhere.
    let mut manifest = read(&path("manifest.json"));
    let mut old = manifest["cases"][0].clone();
    for (name, content) in [("gone", "{}"), ("a_run", "{ \"schema\": 1 }"), ("../outside", "{}")] {
        old["name"] = json!(name);
        manifest["cases"].as_array_mut().expect("cases").push(old.clone());
        fs::write(path(&format!("{name}.json")), content).expect("written");
    }
    manifest["lengths"].as_array_mut().expect("lengths").push(json!("gone.npy"));
    manifest["checks"].as_array_mut().expect("checks").push(json!("check.gone"));
    for name in ["gone.npy", "check.gone.json", "notes.json", "check.gone.bin"] {
        fs::write(path(name), "").expect("written");
    }
    fs::write(path("manifest.json"), manifest.to_string()).expect("written");
    fs::create_dir(path("logs")).expect("made");
    fs::write(path("logs/gone.json"), "{}").expect("written");
    well(folder.path(), &["suite", "s", "--tier", "quick"]);
    let mut expected = fresh.clone();
    expected.extend(["a_run.json", "check.gone.bin", "logs", "notes.json"].map(str::to_owned));
    expected.sort();
    assert_eq!(names(), expected);
    assert!(folder.path().join("outside.json").exists() && path("logs/gone.json").exists());
    // An interrupted call leaves a suite of no cases.
    for list in ["cases", "checks", "lengths"] {
        manifest[list] = json!([]);
    }
    fs::write(path("manifest.json"), manifest.to_string()).expect("written");
    well(folder.path(), &["suite", "s", "--tier", "quick"]);
    assert_eq!(names(), expected);
    // What is neither empty nor a suite.
    for (name, why) in [("new.json", "has a file's name"), ("report.html", "has a file's name")] {
        assert!(refused(folder.path(), &["suite", name]).contains(why) && !folder.path().join(name).exists());
    }
    fs::write(folder.path().join("file"), "kept").expect("written");
    assert!(refused(folder.path(), &["suite", "file"]).contains("is a file, must be a folder"));
    manifest["schema"] = json!(2);
    fs::write(path("manifest.json"), manifest.to_string()).expect("written");
    assert!(refused(folder.path(), &["suite", "s"]).contains("a newer release of dml-cuda wrote it"));
}

/// What every figure needs to be seen alone: tags that close, a title, and the size of its picture.
fn is_drawing(svg: &str) {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1).map(|rest| rest.split('>').next().expect("an end")) {
        let name = tag.trim_start_matches('/').split([' ', '/']).next().expect("a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty() && svg.contains("font-weight=\"600\"") && svg.contains("viewBox=\"0 0 "), "{open:?}");
}

#[test]
fn figures_say_what_they_show() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, run: &Value| fs::write(folder.path().join(name), run.to_string()).expect("written");
    let long = "a label that is far longer than any figure is wide, ".repeat(6);
    let steady: &[f64] = &[100.0, 101.0, 99.0];
    let mut a = made(&long, &[("x", "u8", steady), ("x", "f16", steady), ("x", "f32", steady), ("x", "i64", steady)]);
    a["machine"]["device"] = json!("CPU");
    a["machine"]["host"] = json!("a processor, 2 cores");
    a["cases"].as_array_mut().expect("cases").push(json!({ "case": "1 MiB", "type": "u32", "mode": "roof of copies",
        "bytes": 1 << 20, "dispatches": 1, "samples": { "each": [90.0] } }));
    let mut b = made(
        "b <&>",
        &[
            ("x", "u8", &[50.0; 3]),
            ("x", "f16", &[100.0; 3]),
            ("x", "f32", &[60.0, 100.0, 140.0]),
            ("x", "i64", &[163_701.0, 163_702.0]),
        ],
    );
    // 8 bytes in 163,702 µs.
    b["cases"].as_array_mut().expect("cases").push(json!({ "case": "small", "type": "f32", "mode": "fill", "bytes": 8,
        "dispatches": 1, "samples": { "each": [0.95] } }));
    a["cases"].as_array_mut().expect("cases").push(json!({ "case": "small", "type": "f32", "mode": "fill", "bytes": 8,
        "dispatches": 1, "samples": { "each": [0.0084] } }));
    write("a.json", &a);
    write("b.json", &b);
    let page = well(folder.path(), &["compare", "a.json", "b.json", "--format", "html"]);
    let figures: Vec<&str> =
        page.split("<svg ").skip(1).map(|rest| rest.split("</svg>").next().expect("an end")).collect();
    assert_eq!(figures.len(), 8, "four, each in two widths");
    for figure in &figures {
        is_drawing(&format!("<svg {figure}</svg>"));
        let shown: String =
            figure.split("<title>").map(|part| part.split_once("</title>").map_or(part, |(_, rest)| rest)).collect();
        assert!(shown.contains(&long[..20]) && !shown.contains(&long[..130]), "a long label is cut");
    }
    assert_eq!(figures.iter().filter(|figure| figure.contains("viewBox=\"0 0 368 ")).count(), 4);
    for figure in &figures[..2] {
        for words in [
            "right is faster",
            "8-bit elements",
            "16-bit",
            "32-bit",
            "64-bit",
            "a processor, 2 cores",
            "2026-11-20",
            "100 %",
        ] {
            assert!(figure.contains(words), "{words}: {figure}");
        }
    }
    for figure in &figures[2..4] {
        assert!(
            figure.contains("log scale") && figure.contains(">?<title>x, copy, f32, b &lt;&amp;&gt;: 1.00 (UNSURE)"),
            "{figure}"
        );
        assert!(figure.contains("fill=\"none\"") && figure.contains("noise can explain the difference"));
        // The first run has no marks here, and no place among those that have.
        assert!(figure.contains("B: b &lt;&amp;&gt;") && !figure.contains(">A: "), "{figure}");
    }
    for figure in &figures[4..6] {
        assert!(
            figure.contains("bytes that must move at least, log scale")
                && figure.contains("GB/s (10⁹ bytes a second), log scale")
        );
        assert!(figure.contains(">1 MiB<") && !figure.contains("kB<") && !figure.contains("MB<"), "{figure}");
    }
    assert!(figures[6].contains("sample ÷ median of its case, log scale"));
    // Separators, digits, and nothing of launches where there are none.
    assert!(
        page.contains("163,7") && page.contains(">0.952<") && page.contains(">0.00842<") && !page.contains("launches"),
        "{page}"
    );
    well(folder.path(), &["compare", "a.json", "b.json", "-o", "figure.svg"]);
    let alone = fs::read_to_string(folder.path().join("figure.svg")).expect("a figure");
    is_drawing(&alone);
    for words in
        ["How near each case is", "a processor, 2 cores", "commit abc", "2026-11-20", "prefers-color-scheme: dark"]
    {
        assert!(alone.contains(words), "{words}: {alone}");
    }
}
