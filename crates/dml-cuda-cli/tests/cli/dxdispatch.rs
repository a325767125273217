//! `--strict` compared with what the real DxDispatch did with the same models: tests/data/dxdispatch.

use std::fs;
use std::path::Path;

use dml_cuda_testing::{recorded, repository};
use serde_json::Value;

use crate::{runner, stderr, stdout};

/// The bytes of text in Latin-1.
fn latin1(text: &Value) -> Vec<u8> {
    text.as_str().expect("text").chars().map(|character| u8::try_from(character).expect("Latin-1")).collect()
}

fn write(folder: &Path, files: &Value) {
    for (name, bytes) in files.as_object().expect("files") {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, latin1(bytes)).expect("written");
    }
}

/// Whether two lines show the same values. The rasterizer splits a fused multiply-add. DxDispatch prints bytes as characters.
fn same_values(here: &str, there: &str) -> bool {
    let tokens = |line: &str| -> Vec<String> {
        line.split([' ', ',', ':']).filter(|token| !token.is_empty()).map(str::to_owned).collect()
    };
    let number = |token: &str| token.parse::<f64>().ok();
    let (here, there) = (tokens(here), tokens(there));
    let is_text = there.iter().skip(2).any(|token| number(token).is_none());
    is_text
        || here.len() == there.len()
            && here.iter().zip(&there).all(|(a, b)| {
                let close = |(a, b): (f64, f64)| (a - b).abs() <= 1e-6 * a.abs().max(b.abs());
                a == b || number(a).zip(number(b)).is_some_and(close)
            })
}

#[test]
fn strict_keeps_its_promise_for_every_recorded_model() {
    let records = recorded::lines(&repository("tests/data/dxdispatch/records.jsonl.gz"));
    let scratch = tempfile::tempdir().expect("a folder");
    write(scratch.path(), &records[0]["files"]);
    let (mut accepted, mut refused) = (0, 0);
    for record in &records[1..] {
        let folder = scratch.path().join(record["folder"].as_str().expect("text"));
        write(&folder, &record["models"]);
        let run = |options: &[&str]| {
            let model = record["model"].as_str().expect("text");
            let output = runner().current_dir(&folder).args(["-a", "cpu"]).args(options).arg(model).output();
            let output = output.expect("the runner starts");
            let lines = stdout(&output);
            let of_the_machine = |line: &str| {
                ["Running on", "Dispatch '", "Initialize"].iter().any(|begin| line.starts_with(begin))
                    || line.contains("' written to '")
            };
            let lines = lines.lines().map(str::trim_end).filter(|line| !line.is_empty() && !of_the_machine(line));
            (output.status.success(), lines.map(str::to_owned).collect::<Vec<_>>(), stderr(&output))
        };
        let there: Vec<&str> = record["lines"].as_array().expect("lines").iter().filter_map(Value::as_str).collect();
        let ran_there = record["exit_code"] == 0;
        let same = |lines: &[String]| {
            lines.len() == there.len() && lines.iter().zip(&there).all(|(here, there)| same_values(here, there))
        };
        let name = &record["name"];
        let (strict, lines, said) = run(&["--strict"]);
        if strict {
            accepted += 1;
            // The rasterizer's FLOAT16 fill, which rounds towards zero.
            assert!(ran_there && same(&lines) || name == "v_float16_3", "{name} is accepted: {lines:?}, {there:?}");
        } else {
            refused += 1;
            let (here, lines, _) = run(&[]);
            assert!(!(ran_there && here && same(&lines)), "{name} is refused: {said}");
        }
    }
    assert!(accepted >= 75 && accepted + refused == records.len() - 1, "{accepted} {refused}");
}
