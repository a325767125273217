//! What dml-cuda says of itself and of a model, compared with golden files. `UPDATE_GOLDEN=1` writes them.

use std::fs;

use dml_cuda_testing::repository;
use serde_json::json;

use crate::{run, Ended, Folder};

/// Checks that a text is that of a golden file, or writes the file.
#[track_caller]
pub fn assert_golden(name: &str, text: &str) {
    let file = repository("crates/dml-cuda-cli/tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, text).expect("written");
    }
    let expected = fs::read_to_string(&file).expect("a golden file");
    assert!(
        text == expected,
        "{name} differs; UPDATE_GOLDEN=1 writes it: {text}"
    );
}

#[test]
fn help_is_the_golden_file() {
    let commands = [
        "",
        "bench",
        "report",
        "tune",
        "suite",
        "schema",
        "completions",
        "man",
    ];
    let helps = commands.map(|command| {
        let arguments: Vec<&str> = [command, "--help"]
            .into_iter()
            .filter(|argument| !argument.is_empty())
            .collect();
        // Windows names the program with its extension.
        format!(
            "$ dml-cuda {}\n{}",
            arguments.join(" "),
            run(&arguments).well().replace("dml-cuda.exe", "dml-cuda")
        )
    });
    let helps = helps.join("\n");
    // An option's help is one imperative sentence without a period. Explanations below it are sentences.
    let lines: Vec<&str> = helps.lines().map(str::trim).collect();
    for pair in lines
        .windows(2)
        .filter(|pair| pair[0].starts_with('-') && !pair[0].starts_with("- "))
    {
        let (option, help) = (
            pair[0],
            pair[0].rsplit_once("  ").map_or(pair[1], |(_, help)| help),
        );
        let begins =
            help.starts_with(|c: char| c.is_ascii_uppercase()) && !help.starts_with("The ");
        assert!(begins && !help.ends_with('.'), "{option}: {help}");
    }
    assert_golden("help.txt", &helps);
}

/// Inner blocks, interleaved lanes, contiguous lanes and a transposition: with why each other kernel cannot run.
#[test]
fn an_explanation_is_the_golden_file() {
    let tensor = |data_type: &str, sizes: [u32; 3], strides: [u32; 3]| json!({ "DataType": data_type, "Sizes": sizes, "Strides": strides });
    let reversal = |sizes: [u32; 3], strides: [u32; 3], lengths: [u32; 3], axis: usize| {
        let mut of_lengths = sizes;
        of_lengths[axis] = 1;
        let desc = json!({
            "InputTensor": tensor("FLOAT32", sizes, strides),
            "SequenceLengthsTensor": tensor("UINT32", of_lengths, lengths),
            "OutputTensor": tensor("FLOAT32", sizes, [sizes[1] * sizes[2], sizes[2], 1]),
            "Axis": axis,
        });
        json!({ "type": "DML_OPERATOR_REVERSE_SUBSEQUENCES", "desc": desc })
    };
    let model = json!({
        "dispatchables": {
            "inner blocks": reversal([16, 100, 30], [3000, 30, 1], [1, 0, 0], 1),
            "interleaved lanes": reversal([16, 100, 30], [3000, 30, 1], [30, 0, 1], 1),
            "contiguous lanes": reversal([16, 30, 100], [3000, 100, 1], [30, 1, 0], 2),
            "a transposition": reversal([16, 100, 30], [3000, 1, 100], [1, 0, 0], 1),
        },
        "resources": {}, "commands": [],
    });
    assert_golden(
        "explain.txt",
        &Folder::new()
            .run_model(&model, &["--explain", "--target", "h100"])
            .well(),
    );
}
