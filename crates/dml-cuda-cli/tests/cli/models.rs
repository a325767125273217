//! Models: they print what they document, every form of a model is read, and large models are read fast.

use std::fs;

use dml_cuda_testing::repository;
use serde_json::{json, Value};

use crate::{fill, models, small, Ended, Folder};
#[cfg(unix)]
use crate::{stderr, stdout};

/// The lines that a model prints about its resources, which do not depend on the machine.
fn resources(output: &std::process::Output) -> Vec<String> {
    output
        .well()
        .lines()
        .filter(|line| line.starts_with("Resource"))
        .map(str::to_owned)
        .collect()
}

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
    let folder = Folder::new();
    for (name, line) in documented {
        let path = fs::canonicalize(repository(&format!("models/{name}.json")))
            .expect("the model is there");
        let path = path.to_str().expect("UTF-8");
        for (options, begin) in [
            (&[][..], "Running on '"),
            (&["-a", "cpu"], "Running on 'CPU'\n"),
        ] {
            let output = folder.run(&[&[path], options].concat());
            assert_eq!(resources(&output)[0], line, "{name}");
            let printed = output.well();
            assert!(printed.starts_with(begin), "{printed}");
            let dispatch = printed.lines().nth(2).expect("a third line");
            assert!(
                dispatch.contains("': 1 iterations, ") && dispatch.contains(" ms median (CPU)"),
                "{dispatch}"
            );
        }
    }
    let written = folder.read("reverse_subsequences_output.npy");
    assert!(written.starts_with(b"\x93NUMPY"));
    assert_eq!(
        &written[written.len() - 40..][..4],
        [0x00, 0xC2, 0x00, 0xC1]
    ); // −3, −2.5
}

#[test]
fn every_form_of_a_model_is_read() {
    let folder = Folder::new();
    let printed = |model: &Value| resources(&folder.run_model(model, &[]));
    assert_eq!(printed(&small()), ["Resource 'Out': 0.5, 1.5, 2.5, 3.5"]);

    // Full names, Type and Desc levels, scalars as unions, unknown fields.
    let mut model = small();
    model["$schema"] = json!("./_schema.json");
    model["dispatchables"]["fill"] = json!({
        "Type": "FILL_VALUE_SEQUENCE", "dmlCompileType": "DmlCompileGraph", "executionFlags": "NONE",
        "Desc": {
            "OutputTensor": {
                "Type": "DML_TENSOR_TYPE_BUFFER",
                "Desc": { "DataType": "DML_TENSOR_DATA_TYPE_FLOAT16", "Flags": "DML_TENSOR_FLAG_NONE", "DimensionCount": 1, "Sizes": [4], "Strides": null }
            },
            "ValueDataType": "FLOAT16", "ValueStart": { "UInt16": 15360 }, "ValueDelta": { "UInt16": 49152 }
        }
    });
    model["resources"]["Out"] = json!({ "initialValuesDataType": "FLOAT16", "initialValues": [1, "nan", "inf", "-inf", 65504] });
    assert_eq!(printed(&model), ["Resource 'Out': 1, -1, -3, -5, 65504"]);
    let said = folder.well(&["model.json"]);
    assert!(
        said.contains("\nCompiling op using IDMLDevice1::CompileGraph\n"),
        "{said}"
    );
    model["commands"] = json!([{ "type": "PRINT", "resource": "Out" }]);
    assert_eq!(
        printed(&model),
        ["Resource 'Out': 1, nan, inf, -inf, 65504"]
    );

    // Sequences are running sums. Offsets and sizes place them. `verbose` shows the bits.
    model["resources"]["Out"] = json!({
        "initialValuesDataType": "INT8", "sizeInBytes": 12, "initialValuesOffsetInBytes": 2,
        "initialValues": { "valueCount": 3, "valueStart": 127, "valueDelta": -126 }
    });
    assert_eq!(printed(&model), ["Resource 'Out': 0, 0, 127"]);
    model["commands"][0]["verbose"] = json!(true);
    let shown = folder.run_model(&model, &[]).well();
    assert!(
        shown.contains("Resource 'Out':\n[0] 0 (0x 0)\n[1] 0 (0x 0)\n[2] 127 (0x7F)\n"),
        "{shown}"
    );

    // Sums of floats, and more of them than are in memory at a time.
    model["commands"][0]["verbose"] = json!(false);
    for data_type in ["FLOAT16", "FLOAT32", "FLOAT64"] {
        let values =
            json!({ "valueCount": 300_000, "valueStart": 0.25, "valueDelta": 0.5, "value": null });
        model["resources"]["Out"] =
            json!({ "initialValuesDataType": data_type, "initialValues": values });
        let last = if data_type == "FLOAT16" {
            1024
        } else {
            150_000
        };
        let line = printed(&model).remove(0);
        assert!(
            line.starts_with("Resource 'Out': 0.25, 0.75, 1.25, ")
                && line.ends_with(&format!(", {last}")),
            "{data_type}"
        );
    }

    // A binding as an object, in elements. Its elementCount is ignored, as in DxDispatch. Comments and trailing commas
    // in the file.
    let mut model = small();
    model["resources"]["Out"]["initialValues"]["valueCount"] = json!(9);
    model["commands"][0]["bindings"]["OutputTensor"] =
        json!([{ "name": "Out", "elementOffset": 2, "elementSizeInBytes": 8, "elementCount": 1 }]);
    assert_eq!(
        printed(&model),
        ["Resource 'Out': 7, 7, 7, 7, 0.5, 1.5, 2.5, 3.5, 7"]
    );
    let text = model
        .to_string()
        .replacen('{', "{ // a comment\n /* another */", 1)
        .replacen("]}", "],}", 1);
    for bytes in [format!("\u{feff}{text}").into_bytes(), crate::utf_16(&text)] {
        folder.write("comments.json", bytes);
        folder.well(&["comments.json"]);
        folder
            .run(&["--strict", "comments.json"])
            .fails(1, "the document begins with a byte order mark");
    }

    // 64-bit integers keep their digits; negative values of unsigned types wrap.
    let mut model = small();
    model["dispatchables"]["fill"] = fill(
        "UINT64",
        json!([3]),
        json!(18446744073709551615u64),
        json!(-1),
    );
    model["resources"]["Out"] = json!({ "initialValuesDataType": "UINT64", "initialValues": [-1, 9007199254740993u64, 2.0] });
    assert_eq!(
        printed(&model),
        ["Resource 'Out': 18446744073709551615, 18446744073709551614, 18446744073709551613"]
    );
}

#[test]
fn the_schema_is_printed() {
    let schema: Value = serde_json::from_str(&crate::run(&["schema"]).well()).expect("JSON");
    assert_eq!(
        schema["$defs"]["reverse"]["properties"]["Axis"]["type"],
        "integer"
    );
}

/// Runs a model: what it said, and the seconds of a processor that it took, which other processes hardly change.
#[cfg(unix)]
fn processor_seconds(folder: &Folder, options: &str, model: &Value) -> (String, f64) {
    folder.write("model.json", model.to_string());
    let output = folder.shell(&format!("\"$0\" {options} model.json; times >&2"));
    // The last line: minutes and seconds of the children, for the user and for the system.
    let said = stderr(&output);
    let seconds = said
        .lines()
        .last()
        .expect("times")
        .split_whitespace()
        .map(|time| {
            let (minutes, seconds) = time
                .trim_end_matches('s')
                .split_once('m')
                .expect("minutes and seconds");
            60.0 * minutes.parse::<f64>().expect("a number")
                + seconds.parse::<f64>().expect("a number")
        });
    (stdout(&output) + &said, seconds.sum())
}

/// Five times as many dispatchables take at most twelve times as long. Time that grows with the square would be 25
/// times as long. The fewer ones take long enough to be compared: processors are counted in hundredths of a second.
#[test]
#[cfg(unix)]
fn the_time_of_dispatchables_grows_with_their_number() {
    let mut right = crate::example("reverse_subsequences")["dispatchables"]["reverse"].clone();
    right["desc"]["OutputTensor"]["Strides"] = json!([64, 64, 1, 3]);
    let mut wrong = right.clone();
    wrong["desc"]["Axis"] = json!("two");
    let mut absent = right.clone();
    absent["desc"]
        .as_object_mut()
        .expect("an object")
        .remove("Axis");
    absent["desc"]["note"] = json!("nothing reads this");
    let folder = Folder::new();
    for (options, second, said) in [
        (
            "--validate",
            &wrong,
            "Axis is \"two\", but must be an integer",
        ),
        ("--validate", &absent, "desc is without the member Axis"),
        (
            "--validate --directml all",
            &wrong,
            "accepted by 1.0.200610 to 1.15.4\n",
        ),
    ] {
        let [few, many] = [2_000, 10_000].map(|count| {
            let one = |n: usize| {
                (
                    format!("{n:06}"),
                    if n.is_multiple_of(2) {
                        right.clone()
                    } else {
                        second.clone()
                    },
                )
            };
            let model =
                json!({ "dispatchables": (0..count).map(one).collect::<serde_json::Map<_, _>>() });
            let (printed, seconds) = processor_seconds(&folder, options, &model);
            assert_eq!(printed.matches(said).count(), count / 2);
            seconds
        });
        assert!(many < 12.0 * few, "{options}: {few} s, {many} s");
    }
}

/// Models that take a moment. Time that grows with the square of their size would be a minute.
#[test]
#[cfg(unix)]
fn large_models_take_no_time() {
    let mut deep = fill("FLOAT32", json!(vec![2; 160_000]), json!(0), json!(1));
    deep["desc"]["OutputTensor"]["Strides"] = json!((1..=160_000).collect::<Vec<u32>>());
    let deep = json!({ "dispatchables": { "deep": deep } });

    let resource = |n| {
        (
            format!("{n}"),
            json!({ "initialValuesDataType": "FLOAT32", "initialValues": [n] }),
        )
    };
    let print = |n: u32| json!({ "type": "print", "resource": n.to_string() });
    let resources = (0..40_000).map(resource).collect::<serde_json::Map<_, _>>();
    let commands: Vec<Value> = (0..40_000).rev().take(200).map(print).collect();
    let wide = json!({ "resources": resources, "dispatchables": {}, "commands": commands });

    let mut long = small();
    long["commands"] = json!(vec![long["commands"][0].clone(); 50_000]);
    long["dispatchables"]["fill"] = fill("FLOAT16", json!([4]), json!(0.5), json!(0.1));

    for (options, model, words, most) in [
        (
            "--validate",
            deep,
            "DimensionCount is 160000, but must be from 1 to 8",
            3.0,
        ),
        ("-a cpu", wide, "Resource '39800': 39800\n", 3.0),
        ("--strict --validate", long, "a fill with the element", 20.0),
    ] {
        let (printed, seconds) = processor_seconds(&Folder::new(), options, &model);
        assert!(printed.contains(words), "{options}: {printed}");
        assert!(seconds < most, "{options}: {seconds} s");
    }
}
