//! The runner: models print what they document, recorded DirectML is reproduced through files, bad input gets one
//! clear message, a non-zero exit and nothing half written.

use std::fs;
use std::path::Path;
use std::process::Output;

use dml_cuda_testing::{recorded, repository};
use serde_json::{json, Value};

use crate::runner;

fn run(arguments: &[&str]) -> Output {
    runner().args(arguments).output().expect("the runner starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a model in a folder of its own, and returns what it printed without the first line and the timings.
fn run_model(directory: &Path, model: &Value) -> Output {
    let path = directory.join("model.json");
    fs::write(&path, model.to_string()).expect("the folder is there");
    run(&[path.to_str().expect("UTF-8")])
}

/// The lines that do not depend on the machine.
fn resources(output: &Output) -> Vec<String> {
    stdout(output).lines().filter(|line| line.starts_with("Resource")).map(str::to_owned).collect()
}

#[test]
fn the_models_print_what_they_document() {
    let models = [
        ("fill_value_sequence_float32", "Resource 'Out': 3, 5, 7"),
        ("fill_value_sequence_uint8", "Resource 'Out': 10, 8, 6, 4"),
        ("fill_value_sequence_strided", "Resource 'Out': 0, 2, 4, 9, 1, 3, 5, 9"),
        ("reverse_subsequences", "Resource 'Out': 2, 1, 3, 4, 8, 7, 6, 5, 11, 10, 9, 12"),
        ("reverse_subsequences_axis_2", "Resource 'Out': 5, 10, 3, 4, 1, 6, 7, 8, 9, 2, 11, 12"),
        ("reverse_subsequences_in_place", "Resource 'Data': 3, 2, 1, 4, 5, 10, 9, 8, 7, 6"),
        (
            "reverse_subsequences_npy",
            "Resource 'Out': -3, -2.5, -2, -1.5, -1, 0, -0.5, 0.5, 1, 1.5, 4, 3.5, 3, 2.5, 2, 6.5, 6, 5.5, 5, 4.5",
        ),
    ];
    let count = fs::read_dir(repository("models"))
        .expect("a folder")
        .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|e| e == "json")))
        .count();
    assert_eq!(count, models.len());
    let scratch = tempfile::tempdir().expect("a folder");
    for (name, line) in models {
        let path = repository(&format!("models/{name}.json"));
        let path = fs::canonicalize(path).expect("the model is there");
        for adapter in [None, Some("cpu")] {
            let mut command = runner();
            command.arg(&path).current_dir(scratch.path());
            command.args(adapter.map(|adapter| ["-a", adapter]).into_iter().flatten());
            let output = command.output().expect("the runner starts");
            assert!(output.status.success(), "{name}: {}", stderr(&output));
            assert_eq!(resources(&output)[0], line, "{name}");
            let first = stdout(&output).lines().next().expect("a line").to_owned();
            assert!(first.starts_with("Running on '") && (adapter.is_none() || first == "Running on 'CPU'"), "{first}");
            let dispatch = stdout(&output).lines().nth(1).expect("a second line").to_owned();
            assert!(dispatch.contains("': 1 iterations, ") && dispatch.contains(" ms median (CPU)"), "{dispatch}");
        }
    }
    let written = fs::read(scratch.path().join("target/reverse_subsequences_output.npy")).expect("written");
    assert!(written.starts_with(b"\x93NUMPY"));
    assert_eq!(&written[written.len() - 40..][..4], [0x00, 0xC2, 0x00, 0xC1]); // −3, −2.5
}

/// A dispatchable of a record, its scalars as the union's bytes.
fn dispatchable(record: &recorded::Record) -> Value {
    let mut desc = record.json["desc"].clone();
    for (field, bytes) in [("ValueStart", "start_bytes"), ("ValueDelta", "delta_bytes")] {
        if let Some(bytes) = record.bytes(bytes) {
            desc[field] = json!({ "Bytes": bytes });
        }
    }
    json!({ "type": record.json["type"], "desc": desc })
}

/// A file with a dispatchable for each record.
fn model_of(records: &[recorded::Record], folder: &Path) -> std::path::PathBuf {
    let dispatchables: serde_json::Map<String, Value> =
        records.iter().map(|record| (record.id.clone(), dispatchable(record))).collect();
    let path = folder.join("verdicts.json");
    fs::write(&path, json!({ "dispatchables": dispatchables }).to_string()).expect("written");
    path
}

#[test]
fn validate_reproduces_every_recorded_verdict_in_the_files_order() {
    let records = recorded::verdicts();
    let scratch = tempfile::tempdir().expect("a folder");
    let path = model_of(&records, scratch.path());
    let output = run(&["--validate", path.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let verdicts: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(verdicts.len(), records.len());
    for record in &records {
        let accepted = record.flag("accepted") && !record.flag("output_overlaps");
        let line = format!("Dispatchable '{}': {}", record.id, if accepted { "accepted" } else { "rejected" });
        assert!(verdicts.contains(&line.as_str()), "{line}");
    }
    // serde_json's map is in alphabetical order, and so is the file.
    let mut sorted = verdicts.clone();
    sorted.sort_by_key(|line| line.split('\'').nth(1).map(str::to_owned));
    assert_eq!(verdicts, sorted);
}

#[test]
fn validate_by_version_reproduces_every_recorded_verdict() {
    let records = recorded::verdicts();
    let scratch = tempfile::tempdir().expect("a folder");
    let path = model_of(&records, scratch.path());
    let path = path.to_str().expect("UTF-8");
    for version in ["1.0.200610", "1.8.0", "1.15.4"] {
        let text = stdout(&run(&["--validate", "--directml", version, path]));
        let lines: std::collections::HashSet<&str> = text.lines().collect();
        for record in &records {
            let accepted = record.accepted_by().iter().any(|name| name == version);
            let verdict = if accepted { "accepted" } else { "rejected" };
            let line = format!("Dispatchable '{}': {verdict} by DirectML {version}", record.id);
            assert!(lines.contains(line.as_str()), "{line}");
        }
    }
    // By all: the versions in the line are those that accept.
    let output = run(&["--validate", "--directml", "all", path]);
    assert!(output.status.success());
    let text = stdout(&output);
    let lines: std::collections::HashSet<&str> = text.lines().collect();
    let names: Vec<String> = dml_cuda::DirectMlVersion::recorded().map(|version| version.to_string()).collect();
    for record in &records {
        let accepting = record.accepted_by();
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for n in (0..names.len()).filter(|&n| accepting.contains(&names[n])) {
            match ranges.last_mut().filter(|(_, last)| *last + 1 == n) {
                Some((_, last)) => *last = n,
                None => ranges.push((n, n)),
            }
        }
        let span =
            |&(a, b): &(usize, usize)| if a == b { names[a].clone() } else { format!("{} to {}", names[a], names[b]) };
        let spans: Vec<String> = ranges.iter().map(span).collect();
        let spans = if spans.is_empty() { "none".to_owned() } else { spans.join(" and ") };
        let line = format!("Dispatchable '{}': accepted by {spans}", record.id);
        assert!(lines.contains(line.as_str()), "{line}");
    }
}

#[test]
fn a_version_of_directml_answers_in_words() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("model.json");
    let model = json!({ "dispatchables": {
        "six": fill("FLOAT32", json!([1, 1, 1, 2, 2, 2]), json!(0), json!(1)),
        "lengths": {
            "type": "DML_OPERATOR_REVERSE_SUBSEQUENCES",
            "desc": {
                "InputTensor": { "DataType": "FLOAT32", "Sizes": [1, 1, 3, 4] },
                "SequenceLengthsTensor": { "DataType": "UINT64", "Sizes": [1, 1, 3, 1] },
                "OutputTensor": { "DataType": "FLOAT32", "Sizes": [1, 1, 3, 4] },
                "Axis": 3
            }
        }
    }});
    fs::write(&path, model.to_string()).expect("written");
    let path = path.to_str().expect("UTF-8");
    let answer = |version: &str| run(&["--validate", "--directml", version, path]);
    let output = answer("1.6.0");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stdout(&output),
        "\
Dispatchable 'lengths': rejected by DirectML 1.6.0 (inferred)
  ReverseSubsequencesDesc.SequenceLengthsTensor.DataType is UINT64, needs DML_FEATURE_LEVEL_5_0 (tensor.data_type)
Dispatchable 'six': accepted by DirectML 1.6.0 (inferred)
"
    );
    let output = answer("1.12.0");
    assert!(output.status.success());
    assert_eq!(
        stdout(&output),
        "\
Dispatchable 'lengths': accepted by DirectML 1.12.0
  note: a length above the axis size is not clamped: elements of other lanes are read, or 0 outside the buffer; dml-cuda clamps it
  note: only the low 32 bits of a UINT64 length are read; dml-cuda reads all
  note: OutputTensor bound to InputTensor's range is accepted and gives wrong data; dml-cuda runs it right
Dispatchable 'six': accepted by DirectML 1.12.0
"
    );
    assert_eq!(
        stdout(&answer("all")),
        "\
Dispatchable 'lengths': accepted by 1.8.0 to 1.15.4
  1.0.200610 to 1.7.0: ReverseSubsequencesDesc.SequenceLengthsTensor.DataType is UINT64, needs DML_FEATURE_LEVEL_5_0 (tensor.data_type)
Dispatchable 'six': accepted by 1.7.0 to 1.15.4
  1.0.200610 to 1.5.1: FillValueSequenceDesc.OutputTensor.DimensionCount is 6, needs DML_FEATURE_LEVEL_4_0 (tensor.dimension_count)
"
    );
    for (arguments, text) in [
        (&["--validate", "--directml", "new"][..], "`new` is not a version of DirectML, must be such as 1.8.0"),
        (&["--validate", "--directml", "1.8.0", "--feature-level", "5_0"], "cannot be used with"),
        (&["--directml", "1.8.0"], "--validate"),
    ] {
        let output = run(&[arguments, &[path]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
    }
}

#[test]
fn models_reproduce_every_recorded_output() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut resources, mut dispatchables, mut commands) = (serde_json::Map::new(), serde_json::Map::new(), Vec::new());
    let mut required = Vec::new();
    let records = recorded::outputs();
    for record in &records {
        let id = &record.id;
        let out = record.required();
        let file = |bytes: &[u8], name: &str| {
            fs::write(scratch.path().join(name), bytes).expect("written");
            json!({ "initialValuesDataType": "UINT8", "initialValues": { "sourcePath": name } })
        };
        let total = record.json["desc"]["OutputTensor"]["TotalTensorSizeInBytes"].as_u64().expect("a size");
        let offset = record.out_offset();
        let poison = json!({ "valueCount": out.len(), "value": dml_cuda_testing::POISON });
        let resource = json!({ "initialValuesDataType": "UINT8", "initialValues": poison, "sizeInBytes": out.len() });
        resources.insert(format!("{id}.out"), resource);
        let mut bindings =
            json!({ "OutputTensor": { "name": format!("{id}.out"), "elementOffset": offset, "elementCount": total } });
        if let [input, lengths] = record.inputs().as_slice() {
            resources.insert(format!("{id}.in"), file(input, &format!("{id}.in.bin")));
            resources.insert(format!("{id}.lengths"), file(lengths, &format!("{id}.lengths.dat")));
            bindings["InputTensor"] = json!(format!("{id}.in"));
            bindings["SequenceLengthsTensor"] = json!(format!("{id}.lengths"));
        }
        dispatchables.insert(id.clone(), dispatchable(record));
        commands.push(json!({ "type": "dispatch", "dispatchable": id, "bindings": bindings }));
        let target = scratch.path().join(format!("{id}.out.bin"));
        commands.push(json!({ "type": "writeFile", "resource": format!("{id}.out"), "targetPath": target }));
        required.push((record, target, out));
    }
    let model = json!({ "resources": resources, "dispatchables": dispatchables, "commands": commands });
    let output = run_model(scratch.path(), &model);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(required.len(), 421);
    for (record, target, out) in required {
        let found = fs::read(&target).expect("written");
        dml_cuda_testing::assert_same(&dml_cuda::Device::cpu(), &record.desc, &found, &out);
    }
}

#[test]
fn ten_thousand_dispatchables_take_well_under_a_second() {
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
    let dispatchables: serde_json::Map<String, Value> =
        (0..10_000).map(|n| (format!("{n:05}"), if n % 2 == 0 { right.clone() } else { wrong.clone() })).collect();
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("many.json");
    fs::write(&path, serde_json::to_string_pretty(&json!({ "dispatchables": dispatchables })).expect("JSON"))
        .expect("written");
    let started = std::time::Instant::now();
    let output = run(&["--validate", path.to_str().expect("UTF-8")]);
    let elapsed = started.elapsed();
    assert_eq!(stdout(&output).matches(": accepted").count(), 5_000);
    assert_eq!(stdout(&output).matches("Axis is \"two\", must be an integer").count(), 5_000);
    assert!(elapsed.as_secs_f64() < 1.0, "{elapsed:?}");

    let started = std::time::Instant::now();
    let output = run(&["--validate", "--directml", "all", path.to_str().expect("UTF-8")]);
    let elapsed = started.elapsed();
    assert_eq!(stdout(&output).matches("accepted by 1.0.200610 to 1.15.4\n").count(), 5_000);
    assert!(elapsed.as_secs_f64() < 3.0, "13 versions: {elapsed:?}");
}

fn fill(data_type: &str, sizes: Value, start: Value, delta: Value) -> Value {
    json!({
        "type": "DML_OPERATOR_FILL_VALUE_SEQUENCE",
        "desc": {
            "OutputTensor": { "DataType": data_type, "Sizes": sizes },
            "ValueDataType": data_type, "ValueStart": start, "ValueDelta": delta
        }
    })
}

/// A model with one fill of four FLOAT32 and one resource for it.
fn small() -> Value {
    json!({
        "resources": { "Out": { "initialValuesDataType": "FLOAT32", "initialValues": { "valueCount": 4, "value": 7 } } },
        "dispatchables": { "fill": fill("FLOAT32", json!([4]), json!(0.5), json!(1)) },
        "commands": [
            { "type": "dispatch", "dispatchable": "fill", "bindings": { "OutputTensor": "Out" } },
            { "type": "print", "resource": "Out" }
        ]
    })
}

#[test]
fn every_form_of_a_model_is_read() {
    let scratch = tempfile::tempdir().expect("a folder");
    let printed = |model: &Value| {
        let output = run_model(scratch.path(), model);
        assert!(output.status.success(), "{}\n{model}", stderr(&output));
        resources(&output)
    };
    assert_eq!(printed(&small()), ["Resource 'Out': 0.5, 1.5, 2.5, 3.5"]);

    // Full names, the Type/Desc level, scalars as unions, unknown fields.
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

    // Sequences add up; offsets and sizes place them; verbose shows the bits.
    model["resources"]["Out"] = json!({
        "initialValuesDataType": "INT8", "sizeInBytes": 12, "initialValuesOffsetInBytes": 2,
        "initialValues": { "valueCount": 3, "valueStart": 127, "valueDelta": -126 }
    });
    assert_eq!(printed(&model), ["Resource 'Out': 0, 0, 127"]);
    model["commands"][0]["verbose"] = json!(true);
    let output = run_model(scratch.path(), &model);
    assert!(
        stdout(&output).contains("Resource 'Out':\n[0] 0 (0x 0)\n[1] 0 (0x 0)\n[2] 127 (0x7F)\n"),
        "{}",
        stdout(&output)
    );

    // A binding by object, in elements, whose count is left out of account as in DxDispatch; comments and trailing commas in the file.
    let mut model = small();
    model["resources"]["Out"]["initialValues"]["valueCount"] = json!(9);
    model["commands"][0]["bindings"]["OutputTensor"] =
        json!([{ "name": "Out", "elementOffset": 4, "elementCount": 1 }]);
    assert_eq!(printed(&model), ["Resource 'Out': 7, 7, 7, 7, 0.5, 1.5, 2.5, 3.5, 7"]);
    let text = model.to_string().replacen('{', "{ // a comment\n /* another */", 1).replacen("]}", "],}", 1);
    fs::write(scratch.path().join("comments.json"), format!("\u{feff}{text}")).expect("written");
    let output = run(&[scratch.path().join("comments.json").to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", stderr(&output));

    // 64-bit integers keep their digits; negative values of unsigned types wrap.
    let mut model = small();
    model["dispatchables"]["fill"] = fill("UINT64", json!([3]), json!(18446744073709551615u64), json!(-1));
    model["resources"]["Out"] =
        json!({ "initialValuesDataType": "UINT64", "initialValues": [-1, 9007199254740993u64, 2.0] });
    assert_eq!(printed(&model), ["Resource 'Out': 18446744073709551615, 18446744073709551614, 18446744073709551613"]);
}

#[test]
fn timings_are_printed_in_dxdispatchs_words() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("model.json");
    fs::write(&path, small().to_string()).expect("written");
    let path = path.to_str().expect("UTF-8");
    let output = stdout(&run(&[path, "-a", "cpu", "-i", "5", "-r", "2", "-w", "2", "-v", "2"]));
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], "Running on 'CPU'");
    assert!(lines[1].starts_with("Initialize 'fill': "), "{output}");
    assert_eq!(lines[2], "Dispatch 'fill': 5 iterations");
    assert!(lines[3].starts_with("CPU Timings (Cold) : 2 samples, ") && lines[3].ends_with(" ms max"), "{output}");
    assert!(lines[4].starts_with("CPU Timings (Hot)  : 3 samples, "), "{output}");
    assert_eq!(lines[5], "The timings of each iteration: ");
    assert!(lines[10].starts_with("iteration 4: ") && lines[10].ends_with(" ms (CPU)"), "{output}");
    let output = stdout(&run(&[path, "-a", "cpu", "-t", "20"]));
    let iterations: u64 = output
        .split("'fill': ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .expect("a count")
        .parse()
        .expect("a count");
    assert!(iterations > 1, "{output}");
    assert!(stdout(&run(&["-s"])).ends_with("CPU\n-Hardware: false\n"));
}

#[test]
fn bad_input_gets_one_clear_message() {
    let scratch = tempfile::tempdir().expect("a folder");
    fs::write(scratch.path().join("odd.bin"), [1, 2, 3]).expect("written");
    fs::write(
        scratch.path().join("short.npy"),
        b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (99,), }            \n",
    )
    .expect("written");
    fs::write(scratch.path().join("text.npy"), "not an array").expect("written");
    let out = scratch.path().join("out.bin");
    let write = json!({ "type": "writeFile", "resource": "Out", "targetPath": out });
    let expect = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut model = small();
        // The first command would leave a file: nothing may be half done.
        model["commands"].as_array_mut().expect("a list").insert(0, write.clone());
        change(&mut model);
        let output = run_model(scratch.path(), &model);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{what}: {message}");
        assert!(message.starts_with("ERROR: ") && message.contains(what), "{message} does not say {what}");
        assert!(!message.contains("panicked"), "{message}");
        message
    };
    let before_anything = |what: &str, change: &dyn Fn(&mut Value)| {
        let message = expect(what, change);
        assert!(!out.exists(), "a file was written though {message}");
        assert!(message.lines().count() == 1 || message.contains("is rejected:"), "{message}");
    };
    let values = |json: Value| move |model: &mut Value| model["resources"]["Out"]["initialValues"] = json.clone();
    let source = |name: &str| values(json!({ "sourcePath": name }));

    // Missing and mistyped fields, by their path.
    before_anything("the document is without the member commands", &|m| {
        drop(m.as_object_mut().expect("an object").remove("commands"))
    });
    before_anything("dispatchables.fill.desc is without the member ValueDelta", &|m| {
        m["dispatchables"]["fill"]["desc"]["ValueDelta"] = json!(null)
    });
    before_anything(
        "resources.Out.initialValues[1] is \"x\", must be a number, \"nan\", \"inf\" or \"-inf\"",
        &values(json!([1, "x"])),
    );
    before_anything(
        "dispatchables.fill.desc.OutputTensor.Sizes[0] is 4294967296, must be from 0 to 4294967295",
        &|m| m["dispatchables"]["fill"]["desc"]["OutputTensor"]["Sizes"] = json!([4294967296u64]),
    );
    before_anything("dispatchables.fill.desc.OutputTensor.DimensionCount is 2, must be 1, the number of Sizes", &|m| {
        m["dispatchables"]["fill"]["desc"]["OutputTensor"]["DimensionCount"] = json!(2)
    });
    before_anything("commands[0].type is \"blink\", must be dispatch, print or writeFile", &|m| {
        m["commands"][0] = json!({ "type": "blink" })
    });
    // Values out of range, unknown names.
    before_anything("resources.Out.initialValues[0] is 256, must be from 0 to 255", &|m| {
        m["resources"]["Out"] = json!({ "initialValuesDataType": "UINT8", "initialValues": [256] })
    });
    before_anything("resources.Out.initialValues[0] is -129, must be from -128 to 127", &|m| {
        m["resources"]["Out"] = json!({ "initialValuesDataType": "INT8", "initialValues": [-129] })
    });
    before_anything("\"FLOAT33\", must be a DML_TENSOR_DATA_TYPE", &|m| {
        m["resources"]["Out"]["initialValuesDataType"] = json!("FLOAT33")
    });
    before_anything("commands[2].resource is \"Nowhere\", must be the name of a resource of this model", &|m| {
        m["commands"][2]["resource"] = json!("Nowhere")
    });
    before_anything("commands[1].dispatchable is \"gone\", must be the name of a dispatchable of this model", &|m| {
        m["commands"][1]["dispatchable"] = json!("gone")
    });
    before_anything(
        "\"DML_OPERATOR_GEMM\", must be DML_OPERATOR_FILL_VALUE_SEQUENCE or DML_OPERATOR_REVERSE_SUBSEQUENCES",
        &|m| m["dispatchables"]["fill"]["type"] = json!("DML_OPERATOR_GEMM"),
    );
    before_anything("\"hlsl\", a compute shader, must be", &|m| m["dispatchables"]["fill"]["type"] = json!("hlsl"));
    before_anything("\"onnx\", an ONNX model, must be", &|m| m["dispatchables"]["fill"]["type"] = json!("onnx"));
    before_anything("this runner has no deferred resources", &values(json!("deferred")));
    before_anything("this runner reads no images", &source("cat.png"));
    // Files that are absent, short, or of another type.
    before_anything("\"absent.bin\", which cannot be read", &source("absent.bin"));
    before_anything("\"odd.bin\", a file of 3 bytes, must be a file of whole elements of FLOAT32", &source("odd.bin"));
    before_anything("its header promises a shape of [99]", &source("short.npy"));
    before_anything("it is not a .npy file", &source("text.npy"));
    // Sizes that no machine has, and sizes that do not fit.
    before_anything("allocating 1152921504606846976 bytes failed", &|m| {
        m["resources"]["Out"]["sizeInBytes"] = json!(1u64 << 60)
    });
    before_anything("resources.Out.sizeInBytes is 8 bytes, must be enough for the 16 bytes of initialValues", &|m| {
        m["resources"]["Out"]["sizeInBytes"] = json!(8)
    });
    before_anything("must be from 0 to 4294967295", &values(json!({ "valueCount": 1u64 << 40, "value": 0 })));
    // Rules, all of them at once.
    before_anything(
        "dispatchable 'fill' is rejected:\n  FillValueSequenceDesc.OutputTensor.DataType is FLOAT64, must be",
        &|m| m["dispatchables"]["fill"]["desc"]["OutputTensor"]["DataType"] = json!("FLOAT64"),
    );

    // What only the commands can show: what came before them has happened.
    expect("dispatch 'fill': nothing is bound to OutputTensor", &|m| m["commands"][1]["bindings"] = json!({}));
    expect("the bind point is 'Output', must be one of OutputTensor", &|m| {
        m["commands"][1]["bindings"] = json!({ "Output": "Out" })
    });
    expect("dispatch 'fill': the binding of OutputTensor is 0 bytes, must be at least 16", &|m| {
        m["commands"][1]["bindings"]["OutputTensor"] = json!({ "name": "Out", "elementOffset": 4 })
    });
    expect("the offset of OutputTensor is 0x4, must be a multiple of 16", &|m| {
        m["commands"][1]["bindings"]["OutputTensor"] = json!({ "name": "Out", "elementOffset": 1, "elementCount": 3 })
    });
}

#[test]
fn what_would_be_left_out_or_lost_is_said() {
    let scratch = tempfile::tempdir().expect("a folder");
    let expect = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut model = small();
        change(&mut model);
        let output = run_model(scratch.path(), &model);
        assert_eq!(output.status.code(), Some(1), "{what}: {}", stdout(&output));
        assert!(stderr(&output).contains(what), "{}", stderr(&output));
    };
    // A number that its type cannot hold, a name in another case, a type of half bytes.
    let desc = |m: &mut Value, field: &str, value: Value| m["dispatchables"]["fill"]["desc"][field] = value;
    for (data_type, value) in [("FLOAT32", 1e39), ("FLOAT32", -1e39), ("FLOAT16", 65520.0)] {
        expect(&format!("a number that {data_type} can hold, \"inf\" or \"-inf\""), &|m| {
            m["dispatchables"]["fill"] = fill(data_type, json!([4]), json!(0), json!(value));
        });
    }
    expect(
        "Desc.strides is spelled \"strides\", must be spelled \"Strides\", or left out".trim_start_matches("Desc."),
        &|m| m["dispatchables"]["fill"]["desc"]["OutputTensor"]["strides"] = json!([1]),
    );
    expect("is spelled \"valueStart\", must be spelled \"ValueStart\"", &|m| desc(m, "valueStart", json!(7)));
    expect("initialValuesDataType is UINT4, must be a type of whole bytes", &|m| {
        m["resources"]["Out"]["initialValuesDataType"] = json!("UINT4")
    });
    // A member given twice, which JSON writers cannot make.
    let text = small().to_string().replacen("\"desc\":{", "\"desc\":{\"ValueDelta\":5,", 1);
    let path = scratch.path().join("twice.json");
    fs::write(&path, text).expect("written");
    let output = run(&[path.to_str().expect("UTF-8")]);
    assert!(stderr(&output).contains("ValueDelta is given a second time, must be given once"), "{}", stderr(&output));
    // A header that claims more than the file has, and a source that never ends.
    fs::write(scratch.path().join("huge.npy"), b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr': '<f4'}").expect("written");
    expect("its header (version 2) claims 4294967295 bytes, more than the file's", &|m| {
        m["resources"]["Out"]["initialValues"] = json!({ "sourcePath": "huge.npy" })
    });
    #[cfg(unix)]
    expect("\"/dev/zero\", which cannot be read (it is no regular file)", &|m| {
        m["resources"]["Out"]["initialValues"] = json!({ "sourcePath": "/dev/zero" })
    });
}

#[test]
#[cfg(unix)]
fn a_full_disk_is_an_error_and_a_reader_that_has_gone_is_none() {
    use std::process::Stdio;
    let model = repository("models/reverse_subsequences.json");
    if let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") {
        let output = runner().arg(&model).stdout(full).stderr(Stdio::piped()).output().expect("the runner starts");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("writing to standard output failed: "), "{}", stderr(&output));
    }
    let mut child = runner()
        .args([model.to_str().expect("UTF-8"), "-v", "2", "-i", "20000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the runner starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
}

#[test]
fn very_many_dimensions_and_resources_take_no_time() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("many.json");
    let sizes: Vec<u32> = vec![2; 160_000];
    let mut model = json!({ "dispatchables": { "deep": fill("FLOAT32", json!(sizes), json!(0), json!(1)) } });
    let strides: Vec<u32> = (1..=160_000).collect();
    model["dispatchables"]["deep"]["desc"]["OutputTensor"]["Strides"] = json!(strides);
    fs::write(&path, model.to_string()).expect("written");
    let started = std::time::Instant::now();
    let output = run(&["--validate", path.to_str().expect("UTF-8")]);
    assert!(stdout(&output).contains("DimensionCount is 160000, must be from 1 to 8"), "{}", stderr(&output));
    assert!(started.elapsed().as_secs_f64() < 3.0, "{:?}", started.elapsed());

    let resources: serde_json::Map<String, Value> = (0..40_000)
        .map(|n| (format!("{n}"), json!({ "initialValuesDataType": "FLOAT32", "initialValues": [n] })))
        .collect();
    let commands: Vec<Value> =
        (0..40_000).rev().take(200).map(|n| json!({ "type": "print", "resource": n.to_string() })).collect();
    let model = json!({ "resources": resources, "dispatchables": {}, "commands": commands });
    fs::write(&path, model.to_string()).expect("written");
    let started = std::time::Instant::now();
    let output = run(&["-a", "cpu", path.to_str().expect("UTF-8")]);
    assert!(stdout(&output).ends_with("Resource '39800': 39800\n"), "{}", stderr(&output));
    assert!(started.elapsed().as_secs_f64() < 3.0, "{:?}", started.elapsed());
}

#[test]
fn broken_files_and_options_get_one_clear_message() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("broken.json");
    let path = path.to_str().expect("UTF-8");
    let rejected = |arguments: &[&str], what: &str| {
        let output = run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(stderr(&output).contains(what) && !stderr(&output).contains("panicked"), "{}", stderr(&output));
    };
    fs::write(path, "{\n  \"resources\": {},\n  \"x\" 1\n}").expect("written");
    rejected(&[path], "broken.json: line 3, column 7: ");
    fs::write(path, "").expect("written");
    rejected(&[path], "line 1, column 1: the document is empty");
    // DxDispatch refuses these, too; comments and trailing commas it takes.
    for loose in ["a: 1", "'a': 1", "\"a\": 1 \"b\": 2"] {
        fs::write(path, format!("{{ {loose} }}")).expect("written");
        rejected(&[path], "broken.json: line 1, column ");
    }
    for loose in ["0x1F", "+1", ".5", "NaN", "Infinity", r#""\x41""#] {
        fs::write(path, format!("{{ \"a\": {loose} }}")).expect("written");
        rejected(&[path], "broken.json: line 1, column ");
    }
    fs::write(path, [0xFF, 0xFE, 0]).expect("written");
    rejected(&[path], "the model is not UTF-8 text");
    let endless = fs::File::create(path).expect("made");
    endless.set_len((256 << 20) + 1).expect("a hole");
    rejected(&[path], "the model cannot be read: it is longer than 256 MiB");
    rejected(&["absent.json"], "absent.json: the model cannot be read");
    fs::write(path, "{ \"resources\": {}, \"dispatchables\": { \"a\": 1, \"a\": 2 }, \"commands\": [] }")
        .expect("written");
    rejected(&[path], "a second \"a\", must be the only one of its name in dispatchables");
    fs::write(path, small().to_string()).expect("written");
    rejected(&[path, "-a", "Voodoo"], "the adapter is 'Voodoo', must be part of the name of a GPU");
    rejected(&[path, "-a", "99"], "cuda: ");
    rejected(&[path, "-i", "0"], "invalid value '0' for '--dispatch_iterations");
    rejected(&[path, "--feature-level", "9_9"], "`9_9` is not a feature level");
    rejected(&[path, "--feature-level", "4_0", "--validate", "--frobnicate"], "--frobnicate");
}

#[test]
fn validate_ignores_commands_and_resources_and_looks_at_every_dispatchable() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("model.json");
    let model = json!({
        "resources": { "gone": { "initialValues": { "sourcePath": "absent.bin" } } },
        "dispatchables": {
            "a wide": fill("INT64", json!([4]), json!(0), json!(1)),
            "b unreadable": fill("INT64", json!([4]), json!(0), json!("x")),
            "c right": fill("INT32", json!([4]), json!(0), json!(-1)),
            "d huge": fill("UINT8", json!([u32::MAX, 8]), json!(0), json!(1))
        },
        "commands": "none of validate's business"
    });
    fs::write(&path, model.to_string()).expect("written");
    let output = run(&["--validate", "--feature-level", "4_0", path.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Dispatchable 'a wide': rejected");
    assert_eq!(
        lines[1],
        "  FillValueSequenceDesc.OutputTensor.DataType is INT64, needs DML_FEATURE_LEVEL_5_0 (tensor.data_type)"
    );
    assert_eq!(lines[2], "Dispatchable 'b unreadable': rejected");
    assert!(lines[3].contains("desc.ValueDelta is \"x\", must be an integer"), "{text}");
    assert_eq!(lines[4], "Dispatchable 'c right': accepted");
    assert_eq!(lines[5], "Dispatchable 'd huge': rejected");
    assert!(lines[6..].iter().all(|line| line.starts_with("  FillValueSequenceDesc.OutputTensor.")), "{text}");

    fs::write(&path, json!({ "dispatchables": { "c": fill("INT32", json!([4]), json!(0), json!(-1)) } }).to_string())
        .expect("written");
    let output = run(&["--validate", path.to_str().expect("UTF-8")]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "Dispatchable 'c': accepted\n"));
}

#[test]
fn explain_prints_plans_and_runs_nothing() {
    let directory = tempfile::tempdir().expect("a temporary folder");
    let model = json!({
        "resources": {},
        "dispatchables": {
            "rows": {
                "type": "DML_OPERATOR_REVERSE_SUBSEQUENCES",
                "desc": {
                    "InputTensor": { "DataType": "FLOAT16", "Sizes": [64, 1, 2048, 1024] },
                    "SequenceLengthsTensor": { "DataType": "UINT32", "Sizes": [64, 1, 1, 1024], "Strides": [1, 0, 0, 0] },
                    "OutputTensor": { "DataType": "FLOAT16", "Sizes": [64, 1, 2048, 1024] },
                    "Axis": 2
                }
            },
            "sequence": fill("FLOAT32", json!([1000, 1000]), json!(0), json!(1))
        },
        "commands": []
    });
    let path = directory.path().join("model.json");
    fs::write(&path, model.to_string()).expect("the folder is there");
    let output = run(&["--explain", "--target", "h100", path.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", stderr(&output));
    let expected = "\
Planned for 'h100'
Dispatchable 'rows'
  merged shape, outermost in the output's memory first:
    size 64, steps of InputTensor 2097152, SequenceLengthsTensor 1, OutputTensor 2097152
    axis 2048, steps of InputTensor 1024, OutputTensor 1024
    size 1024, steps of InputTensor 1, SequenceLengthsTensor 0, OutputTensor 1
  copying: 536871168 bytes must move
    reverse_elementwise_16: 16-byte stores, grid 16384 x 256 threads, 0 bytes of shared memory a block, pointers at multiples of 16
    reverse_rows: 16-byte stores, grid 33024 x 256 threads, 0 bytes of shared memory a block, pointers at multiples of 2
  in place: at most 536871168 bytes must move
    reverse_elementwise_in_place_16: 16-byte stores, grid 16384 x 256 threads, 0 bytes of shared memory a block, pointers at multiples of 16
    reverse_rows_in_place: 16-byte stores, grid 16512 x 256 threads, 0 bytes of shared memory a block, pointers at multiples of 2
Dispatchable 'sequence'
  merged shape, outermost in the output's memory first:
    size 1000000, steps of OutputTensor 1, index 1
  fill: 4000000 bytes must move
    fill_packed_f32: 16-byte stores, grid 977 x 256 threads, 0 bytes of shared memory a block, pointers at multiples of 4
";
    assert_eq!(stdout(&output), expected);

    // Why not the faster kernels; a dispatchable that is rejected does not hide the others.
    let model = json!({
        "resources": {},
        "dispatchables": {
            "wrong": fill("FLOAT32", json!([0]), json!(0), json!(1)),
            "columns": {
                "type": "DML_OPERATOR_FILL_VALUE_SEQUENCE",
                "desc": {
                    "OutputTensor": { "DataType": "INT8", "Sizes": [3, 3], "Strides": [1, 5] },
                    "ValueDataType": "INT8", "ValueStart": 0, "ValueDelta": 1
                }
            }
        },
        "commands": []
    });
    fs::write(&path, model.to_string()).expect("the folder is there");
    let output = run(&["--explain", "--target", "h100", path.to_str().expect("UTF-8")]);
    assert!(!output.status.success());
    let text = stdout(&output);
    for line in
        ["(tensor.sizes.nonzero)", "    fill_elements: 1-byte stores", "    not fill_packed: ", "    not fill_dense: "]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }

    let output = run(&["--explain", "--target", "h1000", path.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the target is `h1000`, must be t4, l4, a100, h100, b200, or "), "{output:?}");
}

/// The objects that a run with `--format json` prints.
fn events(arguments: &[&str]) -> Vec<Value> {
    let output = run(arguments);
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn what_is_printed_is_to_be_had_as_json() {
    let model = repository("models/reverse_subsequences.json");
    let model = model.to_str().expect("UTF-8");
    let run = events(&[model, "-a", "cpu", "-i", "3", "--format", "json"]);
    let names: Vec<&str> = run.iter().map(|event| event["event"].as_str().expect("a name")).collect();
    assert_eq!(names, ["device", "initialize", "dispatch", "print"]);
    assert_eq!(run[0]["name"], "CPU");
    assert_eq!(run[2]["cpu_milliseconds"].as_array().expect("samples").len(), 3);
    assert_eq!(run[3]["values"], json!([2, 1, 3, 4, 8, 7, 6, 5, 11, 10, 9, 12]));
    let verdict = events(&[model, "--validate", "--format", "json"]);
    assert_eq!(verdict[0]["accepted"], true);
    let all = events(&[model, "--validate", "--directml", "all", "--format", "json"]);
    assert_eq!(all[0]["verdicts"].as_array().expect("verdicts").len(), 13);
    let plan = events(&[model, "--explain", "-a", "cpu", "--format", "json"]);
    assert_eq!(plan[0]["modes"][0]["mode"], "copying");
    let devices = events(&["-s", "--format", "json"]);
    assert_eq!(devices.last().expect("the CPU")["name"], "CPU");

    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("model.json");
    let mut wrong: Value = serde_json::from_str(&fs::read_to_string(model).expect("a model")).expect("JSON");
    wrong["dispatchables"]["reverse"]["desc"]["Axis"] = json!(9);
    fs::write(&path, wrong.to_string()).expect("written");
    let verdict = events(&[path.to_str().expect("UTF-8"), "--validate", "--format", "json"]);
    assert_eq!(
        (&verdict[0]["accepted"], &verdict[0]["errors"][0]["rule"]),
        (&json!(false), &json!("reverse.axis.range"))
    );
    // What JSON has no number for is a string.
    let nan = json!({
        "resources": { "A": { "initialValuesDataType": "FLOAT32", "initialValues": ["nan", "-inf", 1.5] } },
        "dispatchables": {}, "commands": [{ "type": "print", "resource": "A" }],
    });
    fs::write(&path, nan.to_string()).expect("written");
    let printed = events(&[path.to_str().expect("UTF-8"), "--format", "json"]);
    assert_eq!(printed[1]["values"], json!(["nan", "-inf", 1.5]));
}

#[test]
fn every_model_is_strict_and_strict_says_what_dxdispatch_refuses() {
    let models = fs::read_dir(repository("models")).expect("a folder");
    for path in
        models.map(|entry| entry.expect("an entry").path()).filter(|path| path.extension().is_some_and(|e| e == "json"))
    {
        let output = run(&[path.to_str().expect("UTF-8"), "--strict", "--validate"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let in_place = path.ends_with("reverse_subsequences_in_place.json");
        assert_eq!(
            stderr(&output).contains("must be two, for right data from DirectML"),
            in_place,
            "{}",
            stderr(&output)
        );
    }
    let fill = |start: Value, delta: Value| {
        let desc = json!({
            "OutputTensor": { "DataType": "UINT8", "Sizes": [4] },
            "ValueDataType": "UINT8", "ValueStart": start, "ValueDelta": delta,
        });
        json!({
            "resources": { "Out": { "initialValuesDataType": "UINT8", "initialValues": { "valueCount": 4, "value": 0 } } },
            "dispatchables": { "fill": { "type": "DML_OPERATOR_FILL_VALUE_SEQUENCE", "desc": desc } },
            "commands": [{ "type": "dispatch", "dispatchable": "fill", "bindings": { "OutputTensor": "Out" } }],
        })
    };
    let refused = |model: &Value, words: &str| {
        let scratch = tempfile::tempdir().expect("a folder");
        let path = scratch.path().join("model.json");
        fs::write(&path, model.to_string()).expect("written");
        let path = path.to_str().expect("UTF-8");
        let output = run(&[path, "--strict"]);
        assert!(!output.status.success() && stderr(&output).contains(words), "{words}: {}", stderr(&output));
        assert!(stdout(&output).is_empty());
        assert!(run(&[path]).status.success(), "it runs here");
    };
    refused(&fill(json!(10), json!(-2)), "ValueDelta is -2, must be 0 or more, being UINT8");
    let mut model = fill(json!(10), json!(1));
    model["dispatchables"]["fill"]["bindings"] = json!({ "OutputTensor": "Out" });
    refused(&model, "dispatchables.fill.bindings is given, must be left out");
    let mut model = fill(json!(10), json!(1));
    model["resources"]["Out"]["initialValues"] = json!({ "valueCount": 4, "valueStart": 1 });
    refused(&model, "without valueDelta");
    model["resources"]["Out"]["initialValues"] = json!([1, 2, -3, 4]);
    refused(&model, "resources.Out.initialValues[2] is -3, must be 0 or more");
}

#[test]
fn options_of_dxdispatch_mean_the_same() {
    let model = repository("models/reverse_subsequences.json");
    let model = model.to_str().expect("UTF-8");
    let well = |arguments: &[&str]| {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        (stdout(&output), stderr(&output))
    };
    assert_eq!(well(&["-m", model, "--dml_feature_level", "5.0"]).0.lines().count(), 3);
    let (_, noted) =
        well(&[model, "-d", "-q", "compute", "-o", "x", "--clear_shader_caches", "--post_dispatch_barriers", "uav"]);
    assert_eq!(noted.lines().count(), 4, "{noted}");
    assert!(noted.contains("NOTE: --debug has no meaning here"));
    for onnx in [["-f", "a:1"], ["-b", "x:1,2"], ["-l", "1"]] {
        let output = run(&[model, onnx[0], onnx[1]]);
        assert!(!output.status.success() && stderr(&output).contains("is for ONNX models"), "{}", stderr(&output));
    }
    let (shown, _) = well(&["-s", model]);
    assert!(shown.contains("-Hardware: false") && shown.contains("Resource 'Out': 2, 1, 3, 4"), "{shown}");
    assert!(well(&["-S"]).0.contains("dml-cuda"));
    let (commands, _) = well(&[model, "--print_commands"]);
    let begun = "[StartCmd][0000]\t: {\"type\":\"dispatch\",\"dispatchable\":\"reverse\",\"bindings\":{";
    assert!(commands.contains(begun) && commands.contains("[EndCmd][0001]\t: hr=0x00000000 \n"), "{commands}");
    // Milliseconds override iterations; between their begins lies the interval.
    let samples = |arguments: &[&str]| {
        let events = events(&[&[model, "-a", "cpu", "--format", "json"], arguments].concat());
        events[2]["cpu_milliseconds"].as_array().expect("samples").len()
    };
    assert!((1..=4).contains(&samples(&["-i", "100", "-t", "30", "-I", "10"])));
    assert_eq!(samples(&["-i", "7", "-I", "1"]), 7);

    let scratch = tempfile::tempdir().expect("a folder");
    fs::create_dir(scratch.path().join("in")).expect("a folder");
    fs::write(scratch.path().join("in/a.bin"), [7u8, 8]).expect("written");
    let windows = json!({
        "resources": { "A": { "initialValuesDataType": "UINT8", "initialValues": { "sourcePath": "in\\a.bin" } } },
        "dispatchables": {}, "commands": [{ "type": "writeFile", "resource": "A", "targetPath": "out\\b.bin" }],
    });
    fs::write(scratch.path().join("model.json"), windows.to_string()).expect("written");
    let target = scratch.path().join("elsewhere");
    let path = scratch.path().join("model.json");
    let (written, _) = well(&[
        path.to_str().expect("UTF-8"),
        "--output_path",
        target.to_str().expect("UTF-8"),
        "--input_path",
        scratch.path().to_str().expect("UTF-8"),
    ]);
    assert!(
        written.contains(&format!("Resource 'A' written to '{}'", target.join("out").join("b.bin").display())),
        "{written}"
    );
    assert_eq!(fs::read(target.join("out/b.bin")).expect("written")[..2], [7, 8]);
}

#[test]
fn completions_and_a_manual_page_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&run(&["completions", shell])).contains("dml-cuda"));
    }
    assert!(stdout(&run(&["man"])).contains(".TH dml-cuda 1"));
}

/// Standard error that is closed, full or without a reader changes nothing of what a command does.
#[cfg(unix)]
#[test]
fn standard_streams_that_cannot_be_written_are_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let shell = |arguments: &str, redirect: &str| {
        let line = format!("\"$0\" {arguments} {redirect}");
        let output = std::process::Command::new("sh")
            .current_dir(folder.path())
            .args(["-c", &line])
            .arg(runner().get_program())
            .output()
            .expect("sh starts");
        output.status.code().expect("no signal")
    };
    assert_eq!(shell("suite s --tier quick", ""), 0);
    let case = r#"{"case":"x","type":"f32","mode":"copy","bytes":8,"dispatches":1,"samples":{"each":[1.0]}}"#;
    let run = format!(r#"{{"schema":1,"label":"r","machine":{{}},"timing":"","cases":[{case}]}}"#);
    std::fs::write(path("r.json"), run).expect("written");
    std::fs::write(path("t.csv"), "case,type,mode,microseconds,bytes\nx,f32,copy,7.5,8\n").expect("written");
    let model = repository("models/fill_value_sequence_uint8.json").canonicalize().expect("a model");
    let model = format!("{} -a cpu", model.display());
    // What succeeds, and says something on standard output.
    let commands = [
        &model,
        &format!("{model} --enable_dred --validate"),
        &format!("{model} --explain --format json"),
        "-S",
        "--help",
        "--version",
        "report --help",
        "report r.json",
        "compare r.json r.json",
        "bench s -o b.json -a cpu --only check.fill --samples 1",
        "import t.csv -o i.json",
        "roof fill 64 -a cpu",
        "completions bash",
        "man",
    ];
    for command in commands {
        for (redirect, expected) in
            [("2>&-", 0), ("2>/dev/full", 0), (">&-", 0), (">/dev/full", 1), (">/dev/full 2>/dev/full", 1)]
        {
            for written in ["i.json", "b.json"] {
                let _ = std::fs::remove_file(path(written));
            }
            assert_eq!(shell(command, redirect), expected, "{command} {redirect}");
        }
        // The reader of both streams goes at once; the status is written where it can be seen.
        let piped = format!("2>&1; echo $? > {}; }} | true", path("status"));
        for written in ["i.json", "b.json"] {
            let _ = std::fs::remove_file(path(written));
        }
        let line = format!("{{ \"$0\" {command} {piped}");
        let status = std::process::Command::new("sh")
            .current_dir(folder.path())
            .args(["-c", &line])
            .arg(runner().get_program())
            .status();
        assert!(status.expect("sh starts").success());
        assert_eq!(std::fs::read_to_string(path("status")).expect("a status").trim(), "0", "{command}");
    }
    // What fails.
    for (command, expected) in [
        ("nothing.json", 1),
        ("report nothing.json", 1),
        ("suite r.json", 1),
        ("import nothing.csv -o n.json", 1),
        ("bench nothing -o n.json", 1),
        ("bench s -o n.json -a nothing", 1),
        ("compare r.json r.json -o r.json", 1),
        ("--nothing", 2),
        ("a.json b.json", 2),
    ] {
        for redirect in ["2>&-", "2>/dev/full", "2>&1 >/dev/full"] {
            assert_eq!(shell(command, redirect), expected, "{command} {redirect}");
        }
    }
}

#[test]
fn what_was_meant_is_said() {
    let said = |arguments: &[&str], code: i32| {
        let output = runner().args(arguments).output().expect("the runner starts");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for arguments in
        [&["a.json", "b.json"][..], &["-m", "a.json", "b.json"], &["a.json", "b.json", "c.json", "-i", "3"]]
    {
        let said = said(arguments, 2);
        assert!(said.starts_with("error: one model at a time") && !said.contains("subcommand"), "{said}");
    }
    for (word, meant) in [("reprot", "report"), ("Compare", "compare"), ("benhc", "bench"), ("suit", "suite")] {
        let one = said(&[word], 1);
        assert!(one.contains("cannot be read") && one.contains(&format!("did you mean '{meant}'?")), "{one}");
        for arguments in [&[word, "a.json"][..], &[word, "a.json", "b.json", "--threshold", "3"]] {
            let said = said(arguments, 2);
            assert!(said.contains(&format!("there is no command '{word}'; did you mean '{meant}'?")), "{said}");
        }
    }
    // A file's name is a file's name.
    for word in ["report.json", "./suite", "model"] {
        assert!(!said(&[word], 1).contains("did you mean"), "{word}");
    }
}
