//! Misspelt names in a model and on the command line, and what the messages suggest instead.

use serde_json::json;

use crate::{lines_of_json, run, set, small, stderr, Ended, Folder};

/// A name that is none of the known ones: of a member that must be there, a type, a resource or a bind point.
#[test]
fn a_misspelt_name_is_the_error_and_has_its_nearest() {
    let folder = Folder::new();
    let text = small().to_string();
    for (right, wrong, place) in [
        ("desc", "decs", "dispatchables.fill"),
        ("desc", "Descr", "dispatchables.fill"),
        ("type", "tpye", "dispatchables.fill"),
        ("ValueStart", "ValuStart", "dispatchables.fill.desc"),
        ("OutputTensor", "OutputTenosr", "dispatchables.fill.desc"),
        (
            "DataType",
            "Datatyp",
            "dispatchables.fill.desc.OutputTensor",
        ),
        ("Sizes", "Size", "dispatchables.fill.desc.OutputTensor"),
        (
            "initialValuesDataType",
            "initialValuesDatatyp",
            "resources.Out",
        ),
        ("initialValues", "initialValue", "resources.Out"),
        ("value", "vlaue", "resources.Out.initialValues"),
        ("valueCount", "valueCuont", "resources.Out.initialValues"),
        ("dispatchable", "dispachable", "commands[0]"),
        ("bindings", "bindngs", "commands[0]"),
        ("resource", "resouce", "commands[1]"),
        ("resources", "resorces", ""),
        ("dispatchables", "dispachables", ""),
        ("commands", "comands", ""),
    ] {
        // Commands come first, and have members and bind points of these names.
        let is_later = ["type", "OutputTensor"].contains(&right);
        let from = text
            .find("\"dispatchables\"")
            .filter(|_| is_later)
            .unwrap_or(0);
        let renamed = text[from..].replacen(&format!("\"{right}\""), &format!("\"{wrong}\""), 1);
        folder.write("model.json", text[..from].to_owned() + &renamed);
        let dot = if place.is_empty() { "" } else { "." };
        let said = folder.run(&["model.json"]).fails(1, "ERROR: ");
        let member = format!("{place}{dot}{wrong} is a member \"{wrong}\", which nothing reads");
        let whole = format!("{member}, but must be \"{right}\", the nearest name that is missing");
        assert_eq!(said, format!("ERROR: model.json: line 1: {whole}\n"));
        // A verdict has the error of its dispatchable.
        if place.starts_with("dispatchables.") {
            let output = folder.run(&["model.json", "--validate", "--format", "json"]);
            let verdict = &lines_of_json(&output)[0];
            assert_eq!(
                (stderr(&output), &verdict["errors"][0]["message"]),
                (String::new(), &json!(format!("line 1: {whole}")))
            );
        }
    }
    // Two of them: one is the error, of the other one a warning tells. What resembles no absent member is not blamed.
    let mut model = small();
    let desc = model["dispatchables"]["fill"]["desc"]
        .as_object_mut()
        .expect("an object");
    desc.remove("ValueDelta");
    let start = desc.remove("ValueStart").expect("there");
    desc.extend([
        ("ValueStrat".to_owned(), start),
        ("OutputTensors".to_owned(), json!(1)),
    ]);
    let said = folder.run_model(&model, &[]).fails(
        1,
        "ValueStrat is a member \"ValueStrat\", which nothing reads, but must be \"ValueStart\"",
    );
    assert!(
        said.starts_with(
            "WARNING: model.json: line 1: dispatchables.fill.desc.OutputTensors is a member"
        ) && said.lines().count() == 2,
        "{said}"
    );
    model["dispatchables"]["fill"]["desc"]["ValueStart"] = json!(1);
    let said = folder.run_model(&model, &[]).fails(
        1,
        "dispatchables.fill.desc is without the member ValueDelta",
    );
    assert_eq!(said.lines().count(), 3, "{said}");
    let list = json!({ "initialValuesDatatyp": "UINT8", "initialValues": [2] });
    let mixed = |member: &str| json!({ "initialValues": [{ member: "UINT8", "value": 7 }] });
    for (path, value, words) in [
        ("resources/Out", list, "ERROR: model.json: line 1: resources.Out.initialValuesDatatyp is a member \"initialValuesDatatyp\", which nothing reads, but must be"),
        ("resources/Out", mixed("typ"), "[0].typ is a member \"typ\", which nothing reads, but must be \"type\", the nearest name that is missing"),
        ("resources/Out", mixed("Type"), "[0].Type is spelled \"Type\", but must be spelled \"type\", or left out"),
        ("dispatchables/fill/desc/ValueDataType", json!("FLAOT32"), "; the nearest name is \"FLOAT32\""),
        ("dispatchables/fill/desc/ValueDataType", json!("DML_TENSOR_DATA_TYPE_UNIT8"), "; the nearest name is \"UINT8\""),
        ("dispatchables/fill/desc/ValueStart", json!({ "Int46": 1 }), "UInt64, Float32, Float64; the nearest name is \"Int64\""),
        ("dispatchables/fill/desc/OutputTensor/Flags", json!("NON"), "; the nearest name is \"NONE\""),
        ("dispatchables/fill/type", json!("DML_OPERATOR_FILL_VALUE_SEQUENC"), "has; the nearest name is \"DML_OPERATOR_FILL_VALUE_SEQUENCE\""),
        ("dispatchables/fill", json!({ "typ": 1 }), "dispatchables.fill.typ is a member \"typ\", which nothing reads, but must be \"type\""),
        ("commands/1/type", json!("prnt"), "commands[1].type is \"prnt\", but must be dispatch, print or writeFile; the nearest name is \"print\""),
        ("commands/1/resource", json!("out"), "commands[1].resource is \"out\", but must be the name of a resource of this model; the nearest name is \"Out\""),
        ("commands/0/dispatchable", json!("fil"), "; the nearest name is \"fill\""),
        ("commands/0/bindings", json!({}), "ERROR: model.json: line 1: commands[0].bindings is without OutputTensor, but must be an object that binds it"),
        ("commands/0/bindings", json!({ "Ouput": "Out" }), "line 1: commands[0].bindings.Ouput is no bind point, but must be one of OutputTensor; the nearest name is \"OutputTensor\""),
        ("commands/0/bindings/OutputTensor", json!({ "nam": "Out" }), ".nam is a member \"nam\", which nothing reads, but must be \"name\""),
    ] {
        let mut model = small();
        set(&mut model, path, value);
        let output = folder.run_model(&model, &[]);
        assert!(stderr(&output).contains(words), "{words}: {}", stderr(&output));
    }
    // Another operator is not a misspelt one.
    let mut model = small();
    set(
        &mut model,
        "dispatchables/fill/type",
        json!("DML_OPERATOR_GEMM"),
    );
    assert!(!folder
        .run_model(&model, &[])
        .fails(1, "")
        .contains("nearest"));
}

/// Misspelt members change a result without an error.
#[test]
fn a_member_that_nothing_reads_gets_a_warning() {
    let folder = Folder::new();
    let tensor = "dispatchables/fill/desc/OutputTensor/Stride";
    for (member, value, what) in [
        (
            tensor,
            json!([2]),
            "r.Stride is a member \"Stride\", which nothing reads; the nearest name is \"Strides\"",
        ),
        (
            "dispatchables/fill/descc",
            json!(1),
            "reads; the nearest name is \"desc\"",
        ),
        (
            "comands",
            json!([]),
            "comands is a member \"comands\", which nothing reads; the nearest name is",
        ),
        (
            "dispatchables/fill/executionFlag",
            json!("NONE"),
            "reads; the nearest name is \"executionFlags\"",
        ),
    ] {
        let mut model = small();
        set(&mut model, member, value);
        for options in [
            &[][..],
            &["--strict"],
            &["--validate"],
            &["--explain", "--target", "t4"],
        ] {
            let output = folder.run_model(&model, options);
            let said = stderr(&output);
            assert!(
                output.status.success() && said.matches(what).count() == 1,
                "{options:?}: {said}"
            );
        }
    }
}

#[test]
fn a_mistyped_command_gets_a_suggestion() {
    for (word, meant) in [
        ("reprot", "report"),
        ("Report", "report"),
        ("benhc", "bench"),
        ("suit", "suite"),
    ] {
        let one = run(&[word]).fails(1, "cannot be read");
        assert!(one.contains(&format!("did you mean '{meant}'?")), "{one}");
        for arguments in [
            &[word, "a.json"][..],
            &[word, "a.json", "b.json", "--threshold", "3"],
        ] {
            run(arguments).fails(
                2,
                &format!("there is no command '{word}'; did you mean '{meant}'?"),
            );
        }
    }
    // The name of a file is not a mistyped command.
    for word in ["report.json", "./suite", "model"] {
        assert!(
            !run(&[word])
                .fails(1, "cannot be read")
                .contains("did you mean"),
            "{word}"
        );
    }
}
