//! What is too large for the machine fails at once, and what the machine lacks is done without.

use serde_json::json;

use crate::{fill, set, small, Ended, Folder};

/// The memory for all resources is compared with what there is before any is filled. Values are in memory once.
#[cfg(target_os = "linux")]
#[test]
fn resources_are_in_memory_once_and_fit_or_fail_at_once() {
    let folder = Folder::new();
    let limited = |kibibytes: u32, text: &str| {
        folder.write("model.json", text);
        folder.shell(&format!("ulimit -v {kibibytes}; \"$0\" model.json -a cpu"))
    };
    let of = |names: u32, count: u32, values: &str| {
        let resource = |n| {
            format!(r#""R{n}": {{ "initialValuesDataType": "UINT8", "initialValues": {values} }}"#)
        };
        let resources: Vec<String> = (0..names).map(resource).collect();
        let text = format!(
            r#"{{ "resources": {{ {} }}, "dispatchables": {{}}, "commands": [] }}"#,
            resources.join(",")
        );
        text.replace("COUNT", &count.to_string())
    };
    let constant = r#"{ "valueCount": COUNT, "value": 7 }"#;
    let words = "ERROR: the resources are 3000000000 bytes together, but must be at most ";
    let said = limited(2_000_000, &of(10, 300_000_000, constant)).fails(1, words);
    assert!(!said.contains(" at most 0, "), "{said}");
    for values in [
        constant,
        r#"{ "valueCount": COUNT, "valueStart": 7, "valueDelta": 1 }"#,
    ] {
        limited(600_000, &of(1, 400_000_000, values)).well();
    }
    // Commands read 1 MiB of a resource at a time.
    for command in [
        r#"{ "type": "print", "resource": "R0" }"#,
        r#"{ "type": "writeFile", "resource": "R0", "targetPath": "/dev/null" }"#,
        r#"{ "type": "writeFile", "resource": "R0", "targetPath": "large.npy" }"#,
    ] {
        let text = of(1, 40_000_000, constant);
        let text = text.replace(r#""commands": []"#, &format!(r#""commands": [{command}]"#));
        limited(70_000, &text).well();
    }
    assert_eq!(folder.read("large.npy").len(), 40_000_128);
    // --strict reads no more of a resource than the lengths.
    let tensor = |data_type: &str, sizes| json!({ "DataType": data_type, "Sizes": sizes });
    let (data, lengths) = (tensor("UINT8", [1, 4]), tensor("UINT32", [1, 1]));
    let mut reversal = crate::one_resource(
        "UINT32",
        json!({ "valueCount": 10_000_000, "value": 0 }),
        json!([
            { "type": "dispatch", "dispatchable": "r", "bindings":
                { "InputTensor": "In", "SequenceLengthsTensor": "A", "OutputTensor": "Out" } },
        ]),
    );
    for name in ["In", "Out"] {
        let values = json!({ "valueCount": 4, "value": 1 });
        reversal["resources"][name] =
            json!({ "initialValuesDataType": "UINT8", "initialValues": values });
    }
    reversal["dispatchables"]["r"] = json!({ "type": "DML_OPERATOR_REVERSE_SUBSEQUENCES", "desc": {
        "InputTensor": data, "SequenceLengthsTensor": lengths, "OutputTensor": data, "Axis": 1 } });
    folder.write("model.json", reversal.to_string());
    folder
        .shell("ulimit -v 70000; \"$0\" model.json -a cpu --strict")
        .well();
    // 16 MB of text, 8 MB of values.
    let array = format!("[{}7]", "7,".repeat(8_000_000));
    limited(300_000, &of(1, 0, &array)).well();
    // An error in a long array has its place.
    let text = of(1, 0, &format!("[{}256]", "7,\n".repeat(2_000)));
    let words = "line 2001: resources.R0.initialValues[2000] is 256, but must be from 0 to 255";
    limited(1_000_000, &text).fails(1, words);
}

/// A number that no double holds is never infinity.
#[test]
fn numbers_above_all_doubles_are_errors() {
    let folder = Folder::new();
    let long = "9".repeat(400);
    let value = "resources/Out/initialValues/value";
    for digits in ["1.8e308", "-1.8e308", "1e400", "-1e99999", &long] {
        for (data_type, place) in [
            ("FLOAT16", value),
            ("FLOAT32", value),
            ("FLOAT64", value),
            ("FLOAT16", "dispatchables/fill/desc/ValueStart"),
            ("FLOAT32", "dispatchables/fill/desc/ValueDelta"),
        ] {
            let mut model = small();
            set(
                &mut model,
                "resources/Out/initialValuesDataType",
                json!(data_type),
            );
            set(
                &mut model,
                "dispatchables/fill",
                fill(data_type, json!([4]), json!(0), json!(1)),
            );
            set(&mut model, place, json!("here"));
            folder.write("model.json", model.to_string().replace("\"here\"", digits));
            let required =
                format!("must be a number that {data_type} can hold, \"inf\" or \"-inf\"");
            folder.run(&["model.json"]).fails(1, &required);
        }
    }
}

/// If the system has no thread left, a model runs without one.
#[cfg(target_os = "linux")]
#[test]
fn a_model_runs_without_a_thread() {
    let folder = Folder::new();
    folder.write("no_threads.c", "int pthread_create(void) { return 11; }\n");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    if !folder
        .shell(&format!(
            "{compiler} -w -shared -fPIC -o no_threads.so no_threads.c"
        ))
        .status
        .success()
    {
        return eprintln!("SKIPPED: there is no C compiler");
    }
    let mut model = small();
    let write = json!({ "type": "writeFile", "resource": "Out", "targetPath": "out.bin" });
    model["commands"]
        .as_array_mut()
        .expect("a list")
        .push(write);
    folder.write("model.json", model.to_string());
    for program in [
        &["-a", "cpu", "model.json"][..],
        &[
            "bench",
            "--only",
            "small_16x256.f32",
            "--samples",
            "3",
            "-a",
            "cpu",
            "-o",
            "run.json",
        ],
    ] {
        let mut command = folder.dml_cuda();
        let output = command
            .args(program)
            .env("LD_PRELOAD", folder.path("no_threads.so"))
            .output();
        output.expect("dml-cuda starts").well();
    }
    assert_eq!(folder.read("out.bin").len(), 16);
}
