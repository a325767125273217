//! suite, bench and report: from the cases to a report, and what each says of wrong input.

mod bench;
mod reports;
mod runners;

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::{runner, Ended};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    runner().current_dir(folder).args(arguments).output().expect("the runner starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it, which must succeed; what it printed.
fn well(folder: &Path, arguments: &[&str]) -> String {
    run(folder, arguments).well()
}

/// Runs it, which must fail in one line; that line.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let said = run(folder, arguments).fails(1, "ERROR: ");
    assert!(said.starts_with("ERROR: ") && said.trim_end().lines().count() == 1, "{said}");
    said
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("the file is there")).expect("JSON")
}

#[test]
fn every_model_of_a_suite_runs_on_windows_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = well(folder.path(), &["suite", "my suite", "--tier", "quick"]);
    assert!(said.starts_with("Suite 'quick "), "{said}");
    let models =
        fs::read_dir(folder.path().join("my suite")).expect("a folder").map(|entry| entry.expect("one").path());
    let models: Vec<_> = models.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    let (mut in_place, mut outputs, mut over_long) = (0, 0, 0);
    for model in &models {
        let name = model.file_stem().expect("a name").to_str().expect("UTF-8");
        assert!(name.is_ascii() && fs::read(model).expect("a model").is_ascii());
        let mut runner = runner();
        runner.current_dir(folder.path().join("my suite"));
        let output = runner.args([&format!("{name}.json"), "--strict", "--validate"]).output().expect("it starts");
        let said = text(&output.stdout) + &text(&output.stderr);
        // --strict refuses lengths above the axis size, and the copies, which are another operator. Nothing else.
        let why = match name {
            _ if name.starts_with("over_long.") => "the size of the axis",
            _ if name.starts_with("baseline_of_copies.") => "ELEMENT_WISE_IDENTITY",
            _ => "",
        };
        assert!(output.status.success() == why.is_empty() && said.contains(why), "{name}: {said}");
        // DirectML accepts in place and is wrong.
        let warned = said.contains("one resource for InputTensor and OutputTensor");
        assert_eq!(warned, name.ends_with(".in_place"), "{name}");
        in_place += usize::from(warned);
        outputs += usize::from(name.starts_with("check."));
        over_long += usize::from(name.starts_with("over_long."));
    }
    assert!(models.len() > 180 && in_place > 50, "{} {in_place}", models.len());
    assert_eq!((outputs, over_long), (26, 4));
    assert!(refused(folder.path(), &["suite", "my suite"]).contains("is not empty, must be new"));
    fs::write(folder.path().join("file"), "kept").expect("written");
    refused(folder.path(), &["suite", "file"]);
}
