//! `--validate`, `--directml` and `--strict`: verdicts on models that do not run.

use serde_json::{json, Value};

use crate::{fill, npy, set, small, stderr, stdout, Ended, Folder};

#[test]
fn a_version_of_directml_explains_its_verdict() {
    let folder = Folder::new();
    let model = json!({ "dispatchables": {
        "six": fill("FLOAT32", json!([1, 1, 1, 2, 2, 2]), json!(0), json!({ "Bytes": [0, 0, 128, 63, 0, 0, 0, 0] })),
        "lengths": {
            "type": "DML_OPERATOR_REVERSE_SUBSEQUENCES",
            "desc": {
                "InputTensor": { "DataType": "FLOAT32", "Sizes": [1, 1, 1, 1, 3, 4] },
                "SequenceLengthsTensor": { "DataType": "UINT64", "Sizes": [1, 1, 1, 1, 3, 1] },
                "OutputTensor": { "DataType": "FLOAT32", "Sizes": [1, 1, 1, 1, 3, 4] },
                "Axis": 5
            }
        }
    }});
    let answer = |version: &str| folder.run_model(&model, &["--validate", "--directml", version]);
    let output = answer("1.6.0");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stdout(&output),
        "\
Dispatchable 'lengths': rejected by DirectML 1.6.0 (inferred)
  ReverseSubsequencesDesc.SequenceLengthsTensor.DataType is UINT64, but requires DML_FEATURE_LEVEL_5_0 (tensor.data_type)
Dispatchable 'six': accepted by DirectML 1.6.0 (inferred)
"
    );
    assert_eq!(
        answer("1.12.0").well(),
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
  1.0.200610 to 1.5.1: ReverseSubsequencesDesc.InputTensor.DimensionCount is 6, but requires DML_FEATURE_LEVEL_4_0 (tensor.dimension_count)
  1.7.0: ReverseSubsequencesDesc.SequenceLengthsTensor.DataType is UINT64, but requires DML_FEATURE_LEVEL_5_0 (tensor.data_type)
Dispatchable 'six': accepted by 1.7.0 to 1.15.4
  1.0.200610 to 1.5.1: FillValueSequenceDesc.OutputTensor.DimensionCount is 6, but requires DML_FEATURE_LEVEL_4_0 (tensor.dimension_count)
"
    );
    for (arguments, text) in [
        (
            &["--validate", "--directml", "new"][..],
            "`new` is not a version of DirectML, but must be such as 1.8.0",
        ),
        (
            &[
                "--validate",
                "--directml",
                "1.8.0",
                "--feature-level",
                "5_0",
            ],
            "cannot be used with",
        ),
        (&["--directml", "1.8.0"], "--validate"),
    ] {
        folder.run_model(&model, arguments).fails(2, text);
    }
}

#[test]
fn validate_ignores_commands_and_resources_and_looks_at_every_dispatchable() {
    let model = json!({
        "resources": { "gone": { "initialValues": { "sourcePath": "absent.bin" } } },
        "dispatchables": {
            "a wide": fill("INT64", json!([4]), json!(0), json!(1)),
            "b unreadable": fill("INT64", json!([4]), json!(0), json!("x")),
            "c right": fill("INT32", json!([4]), json!(0), json!(-1)),
            "d huge": fill("UINT8", json!([u32::MAX, 8]), json!(0), json!(1))
        },
        "commands": "ignored by --validate"
    });
    let output = Folder::new().run_model(&model, &["--validate", "--feature-level", "4_0"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "\
Dispatchable 'a wide': rejected
  FillValueSequenceDesc.OutputTensor.DataType is INT64, but requires DML_FEATURE_LEVEL_5_0 (tensor.data_type)
Dispatchable 'b unreadable': rejected
  line 1: dispatchables.b unreadable.desc.ValueDelta is \"x\", but must be an integer
Dispatchable 'c right': accepted
Dispatchable 'd huge': rejected
";
    let text = stdout(&output);
    let rules = text
        .strip_prefix(expected)
        .unwrap_or_else(|| panic!("{text}"));
    assert!(
        rules
            .lines()
            .all(|line| line.starts_with("  FillValueSequenceDesc.OutputTensor.")),
        "{text}"
    );
}

/// DxDispatch takes the bytes of any array, and so does this. A file of other numbers or of another shape gets a
/// warning.
#[test]
fn a_file_of_other_numbers_or_another_shape_gets_a_warning() {
    let folder = Folder::new();
    let npy =
        |dtype: &str, width: usize, shape: &str| npy(dtype, false, shape, &vec![0; 16 * width]);
    let bytes = |found: &str, tensor: &str| {
        format!(
            "of {found}, but must be one of {tensor} for the OutputTensor of fill: its bytes are taken for {tensor}"
        )
    };
    let order = |found: &str, tensor: &str| {
        format!("of shape {found}, but must be flat or of shape {tensor} for the OutputTensor of fill: its elements are taken in their order")
    };
    let packed = |data_type: &str, sizes: Value| fill(data_type, sizes, json!(1), json!(1));
    let mut strided = packed("UINT32", json!([4, 2]));
    strided["desc"]["OutputTensor"]["Strides"] = json!([1, 4]);
    for (dtype, width, shape, dispatchable, found) in [
        (
            "<f8",
            8,
            "(16,)",
            packed("FLOAT16", json!([4])),
            bytes("FLOAT64", "FLOAT16"),
        ),
        (
            "<f8",
            8,
            "(16,)",
            packed("INT64", json!([4])),
            bytes("FLOAT64", "INT64"),
        ),
        (
            "<f4",
            4,
            "(16,)",
            packed("INT32", json!([4])),
            bytes("FLOAT32", "INT32"),
        ),
        (
            "<i8",
            8,
            "(16,)",
            packed("UINT32", json!([4])),
            bytes("INT64", "UINT32"),
        ),
        (
            "|b1",
            1,
            "(16,)",
            packed("FLOAT16", json!([4])),
            bytes("bool, which is read as INT8", "FLOAT16"),
        ),
        (
            "<i4",
            4,
            "(16,)",
            packed("UINT32", json!([4])),
            String::new(),
        ),
        (
            "|b1",
            1,
            "(16,)",
            packed("UINT8", json!([4])),
            String::new(),
        ),
        (
            "<f2",
            2,
            "(16,)",
            packed("FLOAT16", json!([4])),
            String::new(),
        ),
        (
            "<i4",
            4,
            "(8, 2)",
            packed("UINT32", json!([2, 8])),
            order("[8, 2]", "[2, 8]"),
        ),
        (
            "<i4",
            4,
            "(2, 2, 4)",
            packed("UINT32", json!([2, 8])),
            order("[2, 2, 4]", "[2, 8]"),
        ),
        (
            "<i4",
            4,
            "(8, 2)",
            packed("UINT32", json!([4, 2])),
            order("[8, 2]", "[4, 2]"),
        ),
        (
            "<i4",
            4,
            "(8, 2)",
            packed("UINT32", json!([16])),
            order("[8, 2]", "[16]"),
        ),
        (
            "<i4",
            4,
            "(16,)",
            packed("UINT32", json!([2, 8])),
            String::new(),
        ),
        (
            "<i4",
            4,
            "(1, 16)",
            packed("UINT32", json!([2, 8])),
            String::new(),
        ),
        (
            "<i4",
            4,
            "(2, 1, 8)",
            packed("UINT32", json!([1, 2, 8, 1])),
            String::new(),
        ),
        ("<i4", 4, "(2, 8)", strided, String::new()),
    ] {
        folder.write("x.npy", npy(dtype, width, shape));
        let mut model = small();
        model["dispatchables"]["fill"] = dispatchable;
        set(
            &mut model,
            "resources/Out",
            json!({ "initialValues": { "sourcePath": "x.npy" } }),
        );
        let again = model["commands"][0].clone();
        model["commands"]
            .as_array_mut()
            .expect("a list")
            .insert(0, again);
        // DxDispatch takes the same bytes, so that --strict has nothing to reject.
        for options in [&["-a", "cpu"][..], &["-a", "cpu", "--strict"]] {
            let output = folder.run_model(&model, options);
            output.well();
            let words = format!("WARNING: model.json: resources.Out is a .npy file {found}\n");
            assert_eq!(
                stderr(&output),
                if found.is_empty() {
                    String::new()
                } else {
                    words
                },
                "{dtype} {shape}"
            );
        }
    }
    // A part of a larger array.
    folder.write("x.npy", npy("<i4", 4, "(8, 2)"));
    let mut model = small();
    model["dispatchables"]["fill"] = packed("UINT32", json!([4, 2]));
    set(
        &mut model,
        "resources/Out",
        json!({ "initialValues": { "sourcePath": "x.npy" } }),
    );
    model["commands"][0]["bindings"]["OutputTensor"] = json!({ "name": "Out", "elementOffset": 8 });
    let output = folder.run_model(&model, &["-a", "cpu"]);
    output.well();
    assert_eq!(stderr(&output), "");
    folder.write("x.npy", npy("|b1", 1, "(16,)"));
    let declared =
        json!({ "initialValuesDataType": "UINT8", "initialValues": { "sourcePath": "x.npy" } });
    set(&mut model, "resources/Out", declared);
    let words = "a file of bool, which is read as INT8, but must be one of UINT8, the initialValuesDataType";
    assert!(stderr(&folder.run_model(&model, &["-a", "cpu"])).contains(words));
}
