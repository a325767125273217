//! Wrong input gives one clear message, a non-zero exit code, and no half-written output.

use std::fs;

use dml_cuda_testing::repository;
use serde_json::{json, Value};

use crate::{dml_cuda, fill, npy, set, small, stdout, Ended, Folder};

#[test]
fn bad_input_gets_one_clear_message() {
    let folder = Folder::new();
    folder.write("odd.bin", [1, 2, 3]);
    folder.write("short.npy", npy("<f4", false, "(99,)", b""));
    folder.write("text.npy", "not an array");
    folder.write("columns.npy", npy("<f4", true, "(1, 2)", &[0; 8]));
    folder.write(
        "huge.npy",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr': '<f4'}",
    );
    let write = json!({ "type": "writeFile", "resource": "Out", "targetPath": "out.bin" });
    let expect = |what: &str, path: &str, value: Value| {
        let mut model = small();
        // The first command would write a file. An error must come before that.
        model["commands"]
            .as_array_mut()
            .expect("a list")
            .insert(0, write.clone());
        set(&mut model, path, value);
        let message = folder.run_model(&model, &[]).fails(1, what);
        assert!(message.starts_with("ERROR: "), "{message}");
        message
    };
    let values = "resources/Out/initialValues";
    let kind = "dispatchables/fill/type";
    let output = "dispatchables/fill/desc/OutputTensor";
    let source = |name: &str| json!({ "sourcePath": name });
    let of_type = |name: &str, value: Value| json!({ "initialValuesDataType": name, "initialValues": [value] });
    let with_delta = |name: &str, delta: f64| fill(name, json!([4]), json!(0), json!(delta));
    let with_output = |source: Value| json!({ "OutputTensor": source });
    for (path, value, what) in [
        // Missing and mistyped fields, by their path.
        ("commands", json!(null), "commands is null, but must be given"),
        ("dispatchables/fill/desc/ValueDelta", json!(null), ".fill.desc.ValueDelta is null, but must be given"),
        (values, json!([1, "x"]), "Values[1] is \"x\", but must be a number, \"nan\", \"inf\" or \"-inf\""),
        (&format!("{output}/Sizes"), json!([1u64 << 32]), "Sizes[0] is 4294967296, but must be from 0 to 4294967295"),
        (&format!("{output}/DimensionCount"), json!(2), "Count is 2, but must be 1, the number of Sizes"),
        ("commands/0/type", json!("blink"), "commands[0].type is \"blink\", but must be dispatch, print or writeFile"),
        // Values out of range, unknown names.
        ("resources/Out", of_type("UINT8", json!(256)), "initialValues[0] is 256, but must be from 0 to 255"),
        ("resources/Out", of_type("INT8", json!(-129)), "initialValues[0] is -129, but must be from -128 to 127"),
        ("resources/Out", of_type("FLOAT33", json!(1)), "\"FLOAT33\", but must be a DML_TENSOR_DATA_TYPE"),
        (
            "commands/2/resource",
            json!("No"),
            "commands[2].resource is \"No\", but must be the name of a resource of this",
        ),
        ("commands/1/dispatchable", json!("No"), "\"No\", but must be the name of a dispatchable of this model"),
        (
            kind,
            json!("DML_OPERATOR_GEMM"),
            "\"DML_OPERATOR_GEMM\", but must be DML_OPERATOR_FILL_VALUE_SEQUENCE or DML_OP",
        ),
        (kind, json!("hlsl"), "\"hlsl\", a compute shader, but must be"),
        (kind, json!("onnx"), "\"onnx\", an ONNX model, but must be"),
        (kind, json!("dmlSerializedGraph"), "\"dmlSerializedGraph\", a serialized graph, but must be"),
        (values, json!("deferred"), "only ONNX models fill deferred resources"),
        (values, source("cat.png"), "dml-cuda reads no images"),
        (values, json!({ "valueCount": 4 }), "an object with exactly one of value, valueStart and sourcePath"),
        (values, json!({ "valueCount": 4, "valueStart": null }), "Values.valueStart is null, but must be given"),
        // What would be rounded to infinity, or ignored.
        ("dispatchables/fill", with_delta("FLOAT32", 1e39), "a number that FLOAT32 can hold, \"inf\" or \"-inf\""),
        ("dispatchables/fill", with_delta("FLOAT16", 65536.0), "a number that FLOAT16 can hold, \"inf\" or \"-inf\""),
        (
            &format!("{output}/strides"),
            json!([1]),
            "is spelled \"strides\", but must be spelled \"Strides\", or left out",
        ),
        (
            "dispatchables/fill/desc/valueStart",
            json!(7),
            "is spelled \"valueStart\", but must be spelled \"ValueStart\"",
        ),
        ("resources/Out/initialValuesDataType", json!("UINT4"), "DataType is UINT4, but must be a type of whole bytes"),
        // Files that are absent, short, without end, or of another type.
        (values, source("absent.bin"), "\"absent.bin\", which cannot be read"),
        (values, source("odd.bin"), "\"odd.bin\", a file of 3 bytes, but must be a file of whole elements of FLOAT32"),
        (values, source("short.npy"), "its header promises a shape of [99]"),
        (values, source("text.npy"), "initialValues.sourcePath is \"text.npy\": it is not a .npy file of version 1"),
        (
            values,
            source("columns.npy"),
            "is \"columns.npy\": it is in Fortran order, but must be in C order (numpy.ascontiguousarray)\n",
        ),
        (values, source("huge.npy"), "its header (version 2) claims 4294967295 bytes, more than the file's"),
        #[cfg(unix)]
        (values, source("/dev/zero"), "\"/dev/zero\", which cannot be read (it is not a regular file)"),
        // Sizes beyond any machine's memory, and sizes that do not fit.
        (
            "resources/Out/sizeInBytes",
            json!(1u64 << 60),
            "the resources are 1152921504606846976 bytes together, but must",
        ),
        ("resources/Out/sizeInBytes", json!(8), "is 8 bytes, but must be enough for the 16 bytes of initialValues"),
        (values, json!({ "valueCount": 1u64 << 40, "value": 0 }), "must be from 0 to 4294967295"),
        (&format!("{output}/DataType"), json!("FLOAT64"), "'fill' is rejected:\n  FillValueSequenceDesc.OutputTensor"),
    ] {
        let message = expect(what, path, value);
        assert!(!folder.path("out.bin").exists(), "a file was written though {message}");
        assert!(message.lines().count() == 1 || message.contains("is rejected:"), "{message}");
    }
    // Errors that only a command can find. Earlier commands have run.
    let at = |offset: u32| json!({ "name": "Out", "elementOffset": offset, "elementCount": 3 });
    for (bindings, what) in [
        (with_output(at(4)), "ERROR: model.json: line 1: commands[1]: dispatch 'fill': the binding of OutputTensor is 0 bytes, but must be at least 16"),
        (with_output(at(1)), "commands[1]: dispatch 'fill': the offset of OutputTensor is 0x4, but must be a multiple of 16"),
    ] {
        expect(what, "commands/1/bindings", bindings);
    }
}

/// No total size is computed from strides that do not fit, so that nothing complains of it.
#[test]
fn a_wrong_number_of_strides_is_one_error() {
    let mut model = small();
    model["dispatchables"]["fill"]["desc"]["OutputTensor"]["Strides"] = json!([1, 1, 1]);
    let said = stdout(&Folder::new().run_model(&model, &["--validate"]));
    assert!(
        said.lines().count() == 2 && said.contains("tensor.strides"),
        "{said}"
    );
}

#[test]
fn broken_files_and_options_get_one_clear_message() {
    let folder = Folder::new();
    // Written as text, because serde_json has no member twice.
    let dispatchables =
        br#"{ "resources": {}, "dispatchables": { "a": 1, "a": 2 }, "commands": [] }"#;
    let commands = br#"{ "resources": {}, "dispatchables": {}, "commands": [], "commands": [] }"#;
    let resources = br#"{ "resources": { "a": 1, "a": 2 }, "dispatchables": {}, "commands": [] }"#;
    let twice_in_desc =
        small()
            .to_string()
            .replacen("\"desc\":{", "\"desc\":{\"ValueDelta\":5,", 1);
    let [objects, arrays] = ["{\"a\":", "["].map(|begin| begin.repeat(257));
    let unreadable: [(&[u8], &str); 15] = [
        (objects.as_bytes(), "more than 256 values inside each other"),
        (arrays.as_bytes(), "more than 256 values inside each other"),
        (b"{\0\n\0", "the model is not UTF-8 text: it is UTF-16 without a byte order mark, but must have one"),
        (b"\0{\0\n", "it is UTF-16 without a byte order mark"),
        (b"{\n  \"resources\": {},\n  \"x\" 1\n}", "broken.json: line 3, column 7: "),
        (b"", "line 1, column 1: the document is empty"),
        (&[0xC3], "the model is not UTF-8 text"),
        (&[0xFF, 0xFE, 0], "the model is not UTF-8 text: UTF-16 with half a character at its end"),
        (&[0xFF, 0xFE, 0, 0xD8], "the model is not UTF-8 text: invalid utf-16"),
        (&[0xFE, 0xFF, 0xD8, 0], "the model is not UTF-8 text: invalid utf-16"),
        (&[0xFE, 0xFF, 0, b'{'], "broken.json: line 1, column 2: expected a member's name"),
        (dispatchables, "a second \"a\", but must be the only one of its name in dispatchables"),
        (commands, "commands is given a second time"),
        (resources, "a second \"a\", but must be the only"),
        (twice_in_desc.as_bytes(), "ValueDelta is given a second time, but must be given once"),
    ];
    // DxDispatch refuses these too. It accepts comments and trailing commas.
    let members = ["a: 1", "'a': 1", "\"a\": 1 \"b\": 2"].map(str::to_owned);
    let values =
        ["0x1F", "+1", ".5", "NaN", "Infinity", r#""\x41""#].map(|value| format!("\"a\": {value}"));
    let loose: Vec<String> = members
        .into_iter()
        .chain(values)
        .map(|text| format!("{{ {text} }}"))
        .collect();
    let loose = loose
        .iter()
        .map(|text| (text.as_bytes(), "broken.json: line 1, column "));
    for (text, what) in unreadable.into_iter().chain(loose) {
        folder.write("broken.json", text);
        folder.run(&["broken.json"]).fails(1, what);
    }
    for (text, what) in [
        (commands, "commands is given a second time"),
        (resources, "a second \"a\", but must be the only"),
    ] {
        folder.write("broken.json", text);
        folder.run(&["broken.json", "--validate"]).fails(1, what);
    }
    folder.write("letter.json", "x");
    let unread = r#"{ "$c": 1, "$c": 2, "resources": {}, "dispatchables": {}, "commands": [] }"#;
    folder.write("unread.json", unread);
    folder.well(&["unread.json", "-a", "cpu"]);
    let endless = fs::File::create(folder.path("endless.json")).expect("made");
    endless.set_len((256 << 20) + 1).expect("a hole");
    folder.write("right.json", small().to_string());
    let onnx =
        "some/model.onnx: it is an ONNX model, which dml-cuda does not run: ONNX Runtime does, with the library (docs/";
    for (code, arguments, what) in [
        (
            1,
            &["endless.json"][..],
            "the model cannot be read: it is longer than 256 MiB",
        ),
        (1, &["absent.json"], "absent.json: the model cannot be read"),
        (1, &["some/model.onnx"], onnx),
        (
            1,
            &["right.json", "-a", "Voodoo"],
            "the adapter is 'Voodoo', but must be a number, part of the name of a GPU",
        ),
        (1, &["right.json", "-a", "99"], "cuda: "),
        (
            2,
            &["right.json", "-i", "+3"],
            "for '--dispatch_iterations <N>': must be a number from 0 to 4294967295",
        ),
        (
            2,
            &["right.json", "-i", "0x+3"],
            "invalid value '0x+3' for '--dispatch_iterations",
        ),
        (
            2,
            &["right.json", "--feature-level", "9_9"],
            "`9_9` is not a feature level",
        ),
        (
            2,
            &[
                "right.json",
                "--feature-level",
                "4_0",
                "--validate",
                "--frobnicate",
            ],
            "--frobnicate",
        ),
        (
            1,
            &["tune", "-a", "cpu", "-o", "new.csv"],
            "ERROR: kernels can be timed only on a GPU, but the device is CPU\n",
        ),
        (
            2,
            &["tune", "--count", "1000000000"],
            "ERROR: invalid value '1000000000' for '--count <COUNT>': must be a whole number from 1 to 100000\n",
        ),
        (
            2,
            &["bench", "-o", "new.json", "--timeout", "0"],
            ": must be a whole number from 1 to 4294967295\n",
        ),
        (
            2,
            &["right.json", "-r", "-1"],
            "ERROR: invalid value '-1' for '--dispatch_repeat <N>': must be a number from 0",
        ),
        (
            2,
            &["report", "--threshold", "-1", "a.json"],
            "ERROR: invalid value '-1' for '--threshold <THRESHOLD>': must be a percentage",
        ),
        (2, &["report"], "ERROR: the following required arguments"),
        (
            1,
            &["report", "letter.json"],
            "it is not JSON with a schema: no JSON value is at line 1 column 1\n",
        ),
        (
            1,
            &["tune", "-a", "cpu", "letter.json"],
            "ERROR: letter.json: line 1: no JSON value is at column 1\n",
        ),
        (
            1,
            &["tune", "-a", "cpu", "-o", "nowhere/new.csv"],
            "nowhere/new.csv cannot be written: the folder nowhere is not there\n",
        ),
        (
            1,
            &["tune", "-a", "cpu", "absent.jsonl"],
            "ERROR: absent.jsonl: ",
        ),
    ] {
        folder.run(arguments).fails(code, what);
    }
    // No word is repeated without end. A path is whole as far as a system has such paths.
    let long = "x".repeat(100_000);
    for (option, most) in [
        ("--compile-options", 2000),
        ("--target", 2000),
        ("--feature-level", 2000),
        ("--directml", 2000),
        ("-a", 2000),
        ("-i", 2000),
        ("--format", 2000),
        ("--only", 2000),
        ("--input_path", 10_000),
        ("-m", 10_000),
    ] {
        let said = folder
            .run(&["--explain", "--validate", "right.json", option, &long])
            .stderr;
        assert!(said.len() < most, "{option}: {} bytes", said.len());
    }
    for arguments in [
        &["right.json", "-a", &long][..],
        &[&long],
        &[&format!("--{long}")],
        &["report", &long],
        &["bench", "--tier", &long],
    ] {
        let output = folder.run(arguments);
        assert!(
            !output.status.success() && output.stderr.len() < 10_000,
            "{} bytes",
            output.stderr.len()
        );
    }
    let layout = |lengths: &str, out: &str| {
        let packed = r#""width": 1, "sizes": [2, 3], "axis": 1, "in_strides": [3, 1]"#;
        format!(r#"{{ {packed}, "out_strides": {out}, "length_sizes": {lengths} }}"#)
    };
    for (text, what) in [
        (String::new(), "layouts.jsonl: there are no layouts"),
        (
            layout("[2, 3]", "[3, 1]"),
            "line 1: length_sizes must be 1 along the axis, and 1 or the size elsewhere",
        ),
        (
            layout("[2, 1]", "[1, 1]"),
            "line 1: ReverseSubsequencesDesc.OutputTensor.Strides[1] is 1",
        ),
    ] {
        folder.write("layouts.jsonl", text);
        folder
            .run(&["tune", "-a", "cpu", "-o", "new.csv", "layouts.jsonl"])
            .fails(1, what);
    }
    assert!(!folder.path("new.csv").exists());
}

/// A path that only the other system has. The files of a model are written where it says, or not at all.
#[test]
fn a_file_is_written_where_the_model_says() {
    let folder = Folder::new();
    let write = |path: &str| {
        let mut model = small();
        model["commands"] = json!([{ "type": "writeFile", "resource": "Out", "targetPath": path }]);
        folder.run_model(&model, &["-a", "cpu"])
    };
    let (paths, what) = match cfg!(windows) {
        true => (
            &["NUL", "out\\CON"][..],
            "it is a device of Windows, but must be a file",
        ),
        false => (
            &["C:\\out\\a.bin", "d:/a.bin", "\\\\host\\a.bin"][..],
            "must be a path without a drive or a server: only Windows has them",
        ),
    };
    for path in paths {
        write(path).fails(1, what);
        assert_eq!(folder.names(""), ["model.json"], "{path}");
    }
    // It is printed whole.
    let long = ["n".repeat(100), "m".repeat(99)].join("/") + ".bin";
    assert!(write(&long)
        .well()
        .replace('\r', "")
        .ends_with(&format!("{}.bin'\n", "m".repeat(99))));
}

#[test]
fn a_variable_with_an_unknown_value_is_named() {
    let model = repository("models/reverse_subsequences.json");
    let found = |text| {
        dml_cuda()
            .arg(&model)
            .env("DML_CUDA_COMPILE_OPTIONS", text)
            .output()
            .expect("dml-cuda starts")
    };
    found("").well();
    found(" select=measure  specialize=never").well();
    let words = "in DML_CUDA_COMPILE_OPTIONS, the compile option is `specialize=1`, but must be one of specialize=";
    found("select=measure specialize=1").fails(1, words);
}
