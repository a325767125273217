//! Models: they print what they document, every form of a model is read, and large models are read fast.

use std::fs;

use dml_cuda_testing::repository;
use serde_json::{json, Value};

use crate::{fill, models, resources, run, run_model, runner, small, stderr, stdout, write_model, Ended};

#[test]
fn the_models_print_what_they_document() {
    let documented = [
        ("fill_value_sequence_float32", "Resource 'Out': 3, 5, 7"),
        ("fill_value_sequence_uint8", "Resource 'Out': 10, 8, 6, 4"),
        ("fill_value_sequence_strided", "Resource 'Out': 0, 2, 4, 9, 1, 3, 5, 9"),
        ("reverse_subsequences", "Resource 'Out': 2, 1, 3, 4, 8, 7, 6, 5, 11, 10, 9, 12"),
        ("reverse_subsequences_axis_2", "Resource 'Out': 5, 10, 3, 4, 1, 6, 7, 8, 9, 2, 11, 12"),
        ("reverse_subsequences_in_place", "Resource 'Data': 3, 2, 1, 4, 5, 10, 9, 8, 7, 6"),
        (
            "reverse_subsequences_npy",
            "Resource 'Out': -3, -2.5, -2, -1.5, -1, 0, -0.5, 0.5, 1, 1.5, 4, 3.5, 3, 2.5, 2, 5.5, 5, 4.5, 6, 6.5",
        ),
    ];
    assert_eq!(models().len(), documented.len());
    let scratch = tempfile::tempdir().expect("a folder");
    for (name, line) in documented {
        let path = repository(&format!("models/{name}.json"));
        let path = fs::canonicalize(path).expect("the model is there");
        for adapter in [None, Some("cpu")] {
            let mut command = runner();
            command.arg(&path).current_dir(scratch.path());
            command.args(adapter.map(|adapter| ["-a", adapter]).into_iter().flatten());
            let output = command.output().expect("the runner starts");
            let printed = output.well();
            assert_eq!(resources(&output)[0], line, "{name}");
            let first = printed.lines().next().expect("a line");
            assert!(first.starts_with("Running on '") && (adapter.is_none() || first == "Running on 'CPU'"), "{first}");
            let dispatch = printed.lines().nth(2).expect("a third line");
            assert!(dispatch.contains("': 1 iterations, ") && dispatch.contains(" ms median (CPU)"), "{dispatch}");
        }
    }
    let written = fs::read(scratch.path().join("reverse_subsequences_output.npy")).expect("written");
    assert!(written.starts_with(b"\x93NUMPY"));
    assert_eq!(&written[written.len() - 40..][..4], [0x00, 0xC2, 0x00, 0xC1]); // −3, −2.5
}

#[test]
fn every_form_of_a_model_is_read() {
    let scratch = tempfile::tempdir().expect("a folder");
    let printed = |model: &Value| {
        let output = run_model(scratch.path(), model);
        output.well();
        resources(&output)
    };
    assert_eq!(printed(&small()), ["Resource 'Out': 0.5, 1.5, 2.5, 3.5"]);

    // Full names, Type and Desc levels, scalars as unions, unknown fields.
    let mut model = small();
    model["$schema"] = json!("./_schema.json");
    model["dispatchables"]["fill"] = json!({
        "Type": "FILL_VALUE_SEQUENCE", "dmlCompileType": "DmlCompileOp", "executionFlags": "NONE",
        "Desc": {
            "OutputTensor": {
                "Type": "DML_TENSOR_TYPE_BUFFER",
                "Desc": { "DataType": "DML_TENSOR_DATA_TYPE_FLOAT16", "Flags": "DML_TENSOR_FLAG_NONE", "DimensionCount": 1, "Sizes": [4], "Strides": null }
            },
            "ValueDataType": "FLOAT16", "ValueStart": { "UInt16": 15360 }, "ValueDelta": { "UInt16": 49152 }
        }
    });
    model["resources"]["Out"] =
        json!({ "initialValuesDataType": "FLOAT16", "initialValues": [1, "nan", "inf", "-inf", 65504] });
    assert_eq!(printed(&model), ["Resource 'Out': 1, -1, -3, -5, 65504"]);
    model["commands"] = json!([{ "type": "PRINT", "resource": "Out" }]);
    assert_eq!(printed(&model), ["Resource 'Out': 1, nan, inf, -inf, 65504"]);

    // Sequences are running sums. Offsets and sizes place them. `verbose` shows the bits.
    model["resources"]["Out"] = json!({
        "initialValuesDataType": "INT8", "sizeInBytes": 12, "initialValuesOffsetInBytes": 2,
        "initialValues": { "valueCount": 3, "valueStart": 127, "valueDelta": -126 }
    });
    assert_eq!(printed(&model), ["Resource 'Out': 0, 0, 127"]);
    model["commands"][0]["verbose"] = json!(true);
    let shown = run_model(scratch.path(), &model).well();
    assert!(shown.contains("Resource 'Out':\n[0] 0 (0x 0)\n[1] 0 (0x 0)\n[2] 127 (0x7F)\n"), "{shown}");

    // A binding as an object, in elements. Its elementCount is ignored, as in DxDispatch. Comments and trailing commas
    // in the file.
    let mut model = small();
    model["resources"]["Out"]["initialValues"]["valueCount"] = json!(9);
    model["commands"][0]["bindings"]["OutputTensor"] =
        json!([{ "name": "Out", "elementOffset": 4, "elementCount": 1 }]);
    assert_eq!(printed(&model), ["Resource 'Out': 7, 7, 7, 7, 0.5, 1.5, 2.5, 3.5, 7"]);
    let text = model.to_string().replacen('{', "{ // a comment\n /* another */", 1).replacen("]}", "],}", 1);
    let path = scratch.path().join("comments.json");
    for bytes in [format!("\u{feff}{text}").into_bytes(), crate::utf_16(&text)] {
        fs::write(&path, bytes).expect("written");
        let path = path.to_str().expect("UTF-8");
        run(&[path]).well();
        run(&["--strict", path]).fails(1, "the document begins with a byte order mark");
    }

    // 64-bit integers keep their digits; negative values of unsigned types wrap.
    let mut model = small();
    model["dispatchables"]["fill"] = fill("UINT64", json!([3]), json!(18446744073709551615u64), json!(-1));
    model["resources"]["Out"] =
        json!({ "initialValuesDataType": "UINT64", "initialValues": [-1, 9007199254740993u64, 2.0] });
    assert_eq!(printed(&model), ["Resource 'Out': 18446744073709551615, 18446744073709551614, 18446744073709551613"]);
}

/// Runs the runner: what it printed, and the seconds of a processor that it took, which other processes hardly change.
#[cfg(unix)]
fn processor_seconds(arguments: &[&str]) -> (String, f64) {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "\"$0\" \"$@\"; times >&2"]).arg(runner().get_program()).args(arguments);
    let output = shell.output().expect("sh starts");
    // The last line: minutes and seconds of the children, for the user and for the system.
    let said = stderr(&output);
    let seconds = said.lines().last().expect("times").split_whitespace().map(|time| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').expect("minutes and seconds");
        60.0 * minutes.parse::<f64>().expect("a number") + seconds.parse::<f64>().expect("a number")
    });
    (stdout(&output), seconds.sum())
}

/// Five times as many dispatchables take at most twelve times as long. Time that grows with the square would be 25
/// times as long.
#[test]
#[cfg(unix)]
fn the_time_of_dispatchables_grows_with_their_number() {
    let right = json!({
        "type": "DML_OPERATOR_REVERSE_SUBSEQUENCES",
        "desc": {
            "InputTensor": { "DataType": "FLOAT32", "Sizes": [2, 3, 4, 5] },
            "SequenceLengthsTensor": { "DataType": "UINT32", "Sizes": [2, 3, 1, 5] },
            "OutputTensor": { "DataType": "FLOAT32", "Sizes": [2, 3, 4, 5], "Strides": [64, 1, 15, 3] },
            "Axis": 2
        }
    });
    let mut wrong = right.clone();
    wrong["desc"]["Axis"] = json!("two");
    let scratch = tempfile::tempdir().expect("a folder");
    let write = |count: usize| {
        let dispatchables: serde_json::Map<String, Value> =
            (0..count).map(|n| (format!("{n:05}"), if n % 2 == 0 { right.clone() } else { wrong.clone() })).collect();
        let path = scratch.path().join(format!("{count}.json"));
        fs::write(&path, serde_json::to_string_pretty(&json!({ "dispatchables": dispatchables })).expect("JSON"))
            .expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (few, many) = (write(2_000), write(10_000));
    let timed = |options: &[&str], model: &str, accepted: &str, required: usize| {
        let (printed, seconds) = processor_seconds(&[options, &[model]].concat());
        assert_eq!(printed.matches(accepted).count(), required);
        seconds
    };
    for (options, accepted) in [
        (&["--validate"][..], ": accepted"),
        (&["--validate"], "Axis is \"two\", must be an integer"),
        (&["--validate", "--directml", "all"], "accepted by 1.0.200610 to 1.15.4\n"),
    ] {
        let (few, many) = (timed(options, &few, accepted, 1_000), timed(options, &many, accepted, 5_000));
        assert!(many < 12.0 * few, "{options:?}: {few} s, {many} s");
    }
}

#[test]
#[cfg(unix)]
fn very_many_dimensions_and_resources_take_no_time() {
    let scratch = tempfile::tempdir().expect("a folder");
    let sizes: Vec<u32> = vec![2; 160_000];
    let mut model = json!({ "dispatchables": { "deep": fill("FLOAT32", json!(sizes), json!(0), json!(1)) } });
    let strides: Vec<u32> = (1..=160_000).collect();
    model["dispatchables"]["deep"]["desc"]["OutputTensor"]["Strides"] = json!(strides);
    let (printed, seconds) = processor_seconds(&["--validate", &write_model(scratch.path(), &model)]);
    assert!(printed.contains("DimensionCount is 160000, must be from 1 to 8"), "{printed}");
    assert!(seconds < 3.0, "{seconds}");

    let resources: serde_json::Map<String, Value> = (0..40_000)
        .map(|n| (format!("{n}"), json!({ "initialValuesDataType": "FLOAT32", "initialValues": [n] })))
        .collect();
    let commands: Vec<Value> =
        (0..40_000).rev().take(200).map(|n| json!({ "type": "print", "resource": n.to_string() })).collect();
    let model = json!({ "resources": resources, "dispatchables": {}, "commands": commands });
    let (printed, seconds) = processor_seconds(&["-a", "cpu", &write_model(scratch.path(), &model)]);
    assert!(printed.ends_with("Resource '39800': 39800\n"), "{printed}");
    assert!(seconds < 3.0, "{seconds}");
}

/// Ten times the commands take about ten times as long. Squared, these would take a minute.
#[test]
fn a_model_of_many_commands_is_read_fast() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut model = small();
    let command = model["commands"][0].clone();
    model["commands"] = json!(vec![command; 50_000]);
    model["dispatchables"]["fill"] = fill("FLOAT16", json!([4]), json!(0.5), json!(0.1));
    let begun = std::time::Instant::now();
    run(&[&write_model(scratch.path(), &model), "--strict", "--validate"]).fails(1, "a fill with the element");
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}
