//! `--strict`: every difference between this program and DxDispatch in a model is named.

use serde_json::{json, Value};

use crate::{example, fill, models, npy, run, set, small, stderr, stdout, Ended, Folder};

#[test]
fn every_model_is_strict_and_strict_names_what_dxdispatch_refuses() {
    for path in models() {
        let output = run(&[path.to_str().expect("UTF-8"), "--strict", "--validate"]);
        output.well();
        let in_place = path.ends_with("reverse_subsequences_in_place.json");
        let said = stderr(&output);
        assert_eq!(
            said.contains("DirectML accepts one but returns wrong data"),
            in_place,
            "{said}"
        );
    }
    let of_type = |name: &str, start: Value, delta: Value| {
        let mut model = small();
        set(
            &mut model,
            "dispatchables/fill",
            fill(name, json!([4]), start, delta),
        );
        set(
            &mut model,
            "resources/Out/initialValuesDataType",
            json!(name),
        );
        model
    };
    let refused = |model: &Value, words: &str| strictly(&model.to_string(), words);
    refused(
        &of_type("UINT8", json!(10), json!(-2)),
        "ValueDelta is -2, but must be 0 or more, because its type is UINT8",
    );
    let of_format = |name: &str| json!({ "name": "Out", "format": name });
    let values = "resources/Out/initialValues";
    for (path, value, words) in [
        (
            "dispatchables/fill/bindings",
            json!({ "OutputTensor": "Out" }),
            "fill.bindings is given, but must be left out",
        ),
        (
            values,
            json!({ "valueCount": 4, "valueStart": 1 }),
            "without valueDelta",
        ),
        (
            values,
            json!([1, 2, -3, 4]),
            "resources.Out.initialValues[2] is -3, but must be 0 or more",
        ),
        (
            values,
            json!([1, 2.0, 3, 4]),
            "[1] is 2.0, but must be an integer without a fraction or an exponent",
        ),
        (
            "dispatchables/fill/desc/OutputTensor/Strides",
            json!(null),
            "Strides is null, but must be an array of integers",
        ),
        (
            "commands/0/bindings/OutputTensor",
            json!([["Out"]]),
            "OutputTensor[0] is an array, but must be a name or an object",
        ),
        (
            "commands/0/threadGroupCount",
            json!([1, 2]),
            "threadGroupCount is an array, but must be an array of 3 integers",
        ),
        ("commands/0/threadGroupCount", json!([1, 2, 3]), ""),
        (
            "commands/0/bindings/OutputTensor",
            of_format("R32_FLAOT"),
            "format is \"R32_FLAOT\", but must be the name of a DXGI_",
        ),
        (
            "commands/0/bindings/OutputTensor",
            of_format("R32_FLOAT"),
            "",
        ),
        ("resources/Out/initialValuesOffsetInBytes", json!(0), ""),
    ] {
        let mut model = of_type("UINT8", json!(10), json!(1));
        set(&mut model, path, value);
        assert!(
            refused(&model, words).is_empty() == words.is_empty(),
            "{path}"
        );
    }
    let mut long = example("reverse_subsequences");
    let lengths = long["commands"][0]["bindings"]["SequenceLengthsTensor"]
        .as_str()
        .expect("a name")
        .to_owned();
    long["resources"][&lengths]["initialValues"][1] = json!(99);
    refused(
        &long,
        "SequenceLengthsTensor is a tensor with a length of 99, but must be one of lengths up to 4, the size of the axis",
    );
    refused(
        &of_type(
            "FLOAT16",
            json!({ "UInt16": 15360 }),
            json!({ "UInt16": 31744 }),
        ),
        "",
    ); // an infinite delta
    let mut model = of_type("FLOAT16", json!(2048), json!(3));
    refused(&model, "OutputTensor is a fill with the element 2051, but must be a fill of elements that FLOAT16 holds");
    // Unless something reads the fill, its values do not matter.
    model["commands"]
        .as_array_mut()
        .expect("a list")
        .truncate(1);
    strictly(&model.to_string(), "");
}

/// Runs a model, and runs it with `--strict`, which must refuse it in these words before it runs, or accept it if there
/// are none. Returns what it says.
fn strictly(model: &str, words: &str) -> String {
    let folder = Folder::new();
    folder.write("model.json", model);
    folder.well(&["model.json", "-a", "cpu"]);
    let output = folder.run(&["model.json", "-a", "cpu", "--strict"]);
    match words {
        "" => assert!(output.status.success(), "{model}: {output:?}"),
        words => assert!(output
            .fails(1, words)
            .contains("DxDispatch would not run this model as dml-cuda does:")),
    }
    stderr(&output)
}

/// Models that RapidJSON does not read, and dml-cuda does.
#[test]
fn strict_refuses_what_rapidjson_refuses() {
    let text = small().to_string();
    let spaces = [
        '\u{a0}', '\u{2003}', '\u{2028}', '\u{3000}', '\u{85}', '\u{b}', '\u{c}',
    ];
    let between = spaces.map(|space| {
        (
            text.replacen(':', &format!(":{space}"), 1),
            format!("{:?} is between values", space.to_string()),
        )
    });
    let at_end = [format!("{text}\u{a0}"), format!("\u{a0}{text}")]
        .map(|text| (text, "\"\\u{a0}\" is between values".to_owned()));
    let comment = (
        format!("// a\r{text}"),
        "a comment ends with \"\\r\", but must end with \"\\n\"".to_owned(),
    );
    for (text, words) in between.into_iter().chain(at_end).chain([comment]) {
        strictly(&text, &words);
    }
    for end in ["\r\n", "\n"] {
        strictly(&format!("// a{end}\t{text}\r// b"), "");
    }
}

/// Numbers are judged as RapidJSON 1.1.0, DxDispatch's version, reads them: it refuses some, and others get another
/// value.
#[test]
fn strict_refuses_the_numbers_that_rapidjson_does_not_read() {
    let with = |number: &str| {
        small()
            .to_string()
            .replace("\"value\":7", &format!("\"value\":{number}"))
    };
    let zeros = |count| "0".repeat(count);
    for number in [
        "0e401",
        "0.00e999",
        "0e+500",
        "-0e309",
        "0e308",
        "0E38",
        "0e-23",
        "8.0864932e-326",
        &format!("0.{}", zeros(23)),
        &format!("1{}e-300", zeros(309)),
        &format!("0.{}1e-250", zeros(100)),
    ] {
        strictly(
            &with(number),
            "must be a number that RapidJSON 1.1.0 reads, such as 0",
        );
    }
    for number in [
        "0e37",
        "0E-22",
        "-0.0e+0",
        "0e-326",
        "0e-99999999999",
        "1e-330",
        "1e-44",
        "-0.0000000000000000000000",
        &format!("1{}e-300", zeros(308)),
        &format!("0.{}1e99", zeros(99)),
    ] {
        strictly(&with(number), "");
    }
    // Also where nothing reads it.
    strictly(
        &small()
            .to_string()
            .replacen('{', "{\"$comment\":[1e999],", 1),
        "a number is 1e999",
    );
}

/// DxDispatch reads bools as bytes, and refuses Fortran order even with one dimension.
#[test]
fn strict_reads_the_npy_files_that_dxdispatch_reads() {
    let folder = Folder::new();
    let mut model = small();
    set(
        &mut model,
        "resources/Out",
        json!({ "initialValues": { "sourcePath": "x.npy" } }),
    );
    model["commands"].as_array_mut().expect("a list").remove(0);
    for (dtype, is_fortran, strict) in [
        ("|b1", false, true),
        ("|i1", true, false),
        ("|i1", false, true),
    ] {
        folder.write("x.npy", npy(dtype, is_fortran, "(4,)", &[1, 0, 1, 1]));
        let output = folder.run_model(&model, &["-a", "cpu"]);
        assert!(
            output.well().contains("Resource 'Out': 1, 0, 1, 1"),
            "{dtype}: {}",
            stdout(&output)
        );
        let output = folder.run_model(&model, &["--strict", "-a", "cpu"]);
        let words = "in Fortran order, but must be a file in C order";
        assert_eq!(
            output.status.success(),
            strict,
            "{dtype}: {}",
            stderr(&output)
        );
        assert_eq!(
            stderr(&output).contains(words),
            !strict,
            "{dtype}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn strict_checks_the_lengths_that_a_dispatch_reads() {
    let mut model = example("reverse_subsequences");
    let bound = model["commands"][0]["bindings"]["SequenceLengthsTensor"]
        .as_str()
        .expect("a name")
        .to_owned();
    let lengths = model["resources"][&bound]["initialValues"]
        .as_array()
        .expect("a list")
        .clone();
    // Before the bound range.
    let longer: Vec<Value> = [99, 99, 99, 99]
        .map(Value::from)
        .into_iter()
        .chain(lengths.clone())
        .collect();
    model["resources"][&bound]["initialValues"] = longer.into();
    model["commands"][0]["bindings"]["SequenceLengthsTensor"] =
        json!({ "name": bound, "elementOffset": 4 });
    strictly(&model.to_string(), "");
    // Written by an earlier dispatch.
    model["dispatchables"]["fill"] =
        fill("UINT32", json!([4 + lengths.len()]), json!(50), json!(1));
    let fill = json!({ "type": "dispatch", "dispatchable": "fill", "bindings": { "OutputTensor": bound } });
    model["commands"]
        .as_array_mut()
        .expect("a list")
        .insert(0, fill);
    let said = Folder::new()
        .run_model(&model, &["--strict", "-a", "cpu"])
        .fails(1, "with a length of 5");
    assert!(said.contains("must be one of lengths up to 4"), "{said}");

    // In place in two ranges of one resource, which do not overlap.
    let mut model = example("reverse_subsequences_in_place");
    let name = model["commands"][0]["bindings"]["InputTensor"]
        .as_str()
        .expect("a name")
        .to_owned();
    assert!(
        strictly(&model.to_string(), "").contains("DirectML accepts one but returns wrong data")
    );
    let width = if model["resources"][&name]["initialValuesDataType"] == "UINT8" {
        1
    } else {
        4
    };
    model["resources"][&name]["sizeInBytes"] = json!(4096);
    model["commands"][0]["bindings"]["InputTensor"] =
        json!({ "name": name, "elementOffset": 2048 / width });
    assert_eq!(strictly(&model.to_string(), ""), "");
}
