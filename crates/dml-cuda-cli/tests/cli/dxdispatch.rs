//! What the real DxDispatch did with models and options, compared with dml-cuda: tests/data/dxdispatch.

use std::fs;
use std::path::Path;

use dml_cuda_testing::{recorded, repository};
use serde_json::Value;

use crate::{dml_cuda, stderr, stdout};

/// Records that DxDispatch runs although something is wrong in them. Here they are errors, which docs/dxdispatch.md
/// lists.
const ERRORS_HERE: &str =
    "j_dup_key j_dup_section o_off100 opt_fl20 opt_flabc opt_two r_bin5_f32 r_npy_trunc v_lit_big \
                           w_dir w_npy_dims_bad z_dimcount_3 z_dimcount_5 z_total_zero";

/// The bytes of text in Latin-1.
fn latin1(text: &Value) -> Vec<u8> {
    text.as_str()
        .expect("text")
        .chars()
        .map(|character| u8::try_from(character).expect("Latin-1"))
        .collect()
}

/// Writes the files of a case.
fn write(folder: &Path, files: &Value) {
    for (name, bytes) in files.as_object().expect("files") {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, latin1(bytes)).expect("written");
    }
}

/// The lines after the device, without times, folders and what only a GPU prints.
fn lines(stdout: &str) -> Vec<String> {
    let after_device = stdout
        .lines()
        .skip_while(|line| !line.starts_with("Running on"))
        .skip(1);
    let without_times = |line: &str| {
        let line = match line.rsplit_once(", ") {
            Some((line, gpu)) if gpu.ends_with("(GPU)") => line,
            _ => line,
        };
        let is_time = |word: &str| word == "N" || word.contains('.') && word.parse::<f64>().is_ok();
        let words = line
            .split(' ')
            .map(|word| if is_time(word) { "N" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    let shown = |line: &str| match line {
        // The order is that of a hash table there.
        line if line.starts_with("Initialize '") => "Initialize".to_owned(),
        line if line.starts_with("Resource '") => match line.split_once(" written to ") {
            Some((resource, path)) => format!(
                "{resource} {}",
                path.rsplit(['/', '\\']).next().unwrap_or_default()
            ),
            None => line.to_owned(),
        },
        line => without_times(line),
    };
    let printed = after_device
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !line.starts_with("GPU "));
    printed.map(shown).collect()
}

/// Whether two lines show the same values. The rasterizer splits a fused multiply-add. DxDispatch prints bytes as
/// characters.
fn same_values(here: &str, there: &str) -> bool {
    let tokens = |line: &str| -> Vec<String> {
        line.split([' ', ',', ':'])
            .filter(|token| !token.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let number = |token: &str| token.parse::<f64>().ok();
    if !there.starts_with("Resource '") && !there.starts_with('[') {
        return here == there;
    }
    let (here, there) = (tokens(here), tokens(there));
    let is_text = there.iter().skip(2).any(|token| number(token).is_none());
    is_text && here.first() == there.first()
        || here.len() == there.len()
            && here.iter().zip(&there).all(|(a, b)| {
                let close = |(a, b): (f64, f64)| (a - b).abs() <= 1e-6 * a.abs().max(b.abs());
                a == b || number(a).zip(number(b)).is_some_and(close)
            })
}

/// Whether both programs print the same lines, up to the last digit of numbers.
fn same(here: &[String], there: &[String]) -> bool {
    here.len() == there.len()
        && here
            .iter()
            .zip(there)
            .all(|(here, there)| same_values(here, there))
}

#[test]
fn strict_keeps_its_promise_and_what_runs_there_runs_here() {
    let records = recorded::lines(&repository("tests/data/dxdispatch/records.jsonl.gz"));
    let scratch = tempfile::tempdir().expect("a folder");
    write(scratch.path(), &records[0]["files"]);
    let (mut accepted, mut errors_here) = (0, Vec::new());
    for record in &records[1..] {
        let folder = scratch
            .path()
            .join(record["folder"].as_str().expect("text"));
        write(&folder, &record["models"]);
        if let Some(base) = record["models"].get("zz_base.json") {
            write(&folder, &serde_json::json!({ "sub/s.json": base }));
        }
        let arguments = record["arguments"]
            .as_array()
            .expect("an array")
            .iter()
            .filter_map(Value::as_str);
        let arguments: Vec<&str> = arguments.collect();
        let run = |options: &[&str]| {
            let output = dml_cuda()
                .current_dir(&folder)
                .args(["-a", "cpu"])
                .args(options)
                .args(&arguments)
                .output();
            let output = output.expect("dml-cuda starts");
            (
                output.status.success(),
                lines(&stdout(&output)),
                stderr(&output),
            )
        };
        let (name, ran_there) = (
            record["name"].as_str().expect("text"),
            record["exit_code"] == 0,
        );
        let there = lines(record["stdout"].as_str().expect("text"));
        let (strict, here, said) = run(&["--strict"]);
        if strict {
            accepted += 1;
            // Debug layers that were not there, an option of ONNX models, help that ends with 1, a spelling. A name
            // with a zero, which ends it there, and a file name that Windows does not take.
            let runs_here_only = ["opt_d", "opt_f", "opt_h", "opt_h_only", "opt_i3eq"]
                .contains(&name)
                || ["j_nul", "w_badname"].contains(&name);
            assert!(
                runs_here_only || ran_there && same(&here, &there),
                "{name} is accepted: {here:?}, {there:?}"
            );
        } else if ran_there {
            match run(&[]) {
                (true, here, _) => assert!(!same(&here, &there), "{name} is refused: {said}"),
                (false, ..) if cfg!(windows) && name == "w_badname" => {}
                (false, ..) => errors_here.push(name),
            }
        }
    }
    errors_here.sort_unstable();
    assert_eq!(errors_here.join(" "), ERRORS_HERE);
    assert!(
        accepted >= 110 && records.len() == 269,
        "{accepted} of {}",
        records.len()
    );
}
