//! suite, bench, import, report and compare: from a folder of models to a report, and what each says of wrong input.

mod bench;
mod import;
mod reports;

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

/// A program that answers as DxDispatch does: FLOAT16 copies fail, 8-bit copies print nothing, `check.fill.int16` is not written.
#[cfg(unix)]
fn install_dxdispatch(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(folder).expect("made");
    let program = folder.join("dxdispatch.exe");
    fs::write(&program, include_str!("side_by_side/dxdispatch.sh")).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

#[test]
fn every_model_of_a_suite_runs_on_windows_too() {
    let folder = suite();
    let manifest = read(&folder.path().join("s/manifest.json"));
    let cases = manifest["cases"].as_array().expect("cases");
    let names = |list: &str| manifest[list].as_array().expect("names").clone();
    assert!(cases.len() > 150 && names("checks").len() == 26 && names("over_long").len() == 4);
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
    // --strict refuses lengths above the axis size, and the copies, which are another operator. Nothing else.
    let copies = cases.iter().map(|case| &case["name"]).filter(|name| name.to_string().contains("roof_of_copies"));
    let sections = [("", names("checks")), ("the size of the axis", names("over_long"))];
    for (why, names) in sections.into_iter().chain([("ELEMENT_WISE_IDENTITY", copies.cloned().collect())]) {
        for name in names {
            let model = format!("s/{}.json", name.as_str().expect("a name"));
            let output = run(folder.path(), &[&model, "--strict", "--validate"]);
            let said = text(&output.stdout) + &text(&output.stderr);
            assert!(output.status.success() == why.is_empty() && said.contains(why), "{name}: {said}");
        }
    }
    // The scripts have DirectML's cases, each once, and PowerShell's ends of lines.
    let script = text(&fs::read(folder.path().join("s/run.ps1")).expect("a script"));
    assert!(
        script.is_ascii()
            && script.contains("\r\ncheck.fill.float32\r\n")
            && script.contains("\r\nover_long.reverse_4x7x5.int64.uint32\r\n'@\r\n")
            && !script.contains("in_place")
            && !script.contains("roof_of_fills")
    );
    assert_eq!(script.matches("reverse.tokens_256x4096.f32.copy ").count(), 1);
    assert!(!script.contains("@TIMED@") && !script.contains("@OUTPUTS@"));
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
