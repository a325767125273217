//! Plans, as `--explain` prints them.

use std::collections::BTreeSet;
use std::fs;

use dml_cuda_testing::repository;
use serde_json::json;

use crate::{example, fill, lines_of_json, run, stderr, stdout, Ended, Folder};

/// The kernels of a fill, and the reasons against faster ones. A rejected dispatchable does not hide the others.
/// `texts` has reversals.
#[test]
fn explain_prints_plans_and_runs_nothing() {
    let model = repository("models/reverse_subsequences.json");
    let mut columns = fill("INT8", json!([3, 3]), json!(0), json!(1));
    columns["desc"]["OutputTensor"]["Strides"] = json!([1, 5]);
    let dispatchables = json!({
        "columns": columns,
        "packed": fill("FLOAT32", json!([1000, 1000]), json!(0), json!(1)),
        "wrong": fill("FLOAT32", json!([0]), json!(0), json!(1))
    });
    let model_of_fills = json!({ "dispatchables": dispatchables });
    let output = Folder::new().run_model(&model_of_fills, &["--explain", "--target", "h100"]);
    assert!(!output.status.success());
    let expected = "\
Planned for 'h100'
Dispatchable 'columns'
  merged shape, outermost in the output's memory first:
    size 3, steps of OutputTensor 5, index 1
    size 3, steps of OutputTensor 1, index 3
  fill: 9 bytes must move
    chosen fill_elements: 1-byte stores, grid 1 x 256 threads, 0 bytes of shared memory per thread block, pointers at multiples of 1, specialize=never
    rejected fill_packed: the output is not one contiguous run in the order of its index
    rejected fill_rows: the innermost dimension in memory is shorter than 32 bytes
    rejected fill_dense: the innermost dimensions in memory leave gaps, or are shorter than 32 bytes
Dispatchable 'packed'
  merged shape, outermost in the output's memory first:
    size 1000000, steps of OutputTensor 1, index 1
  fill: 4000000 bytes must move
    chosen fill_packed_4: 16-byte stores, grid 977 x 256 threads, 0 bytes of shared memory per thread block, pointers at multiples of 4, specialize=never
Dispatchable 'wrong'
  FillValueSequenceDesc.OutputTensor.Sizes[0] is 0, but must be at least 1 (tensor.sizes.nonzero)
";
    assert_eq!(stdout(&output), expected);

    // A GPU that was not timed, and whose costs it has: those of the recorded times.
    let files = fs::read_dir(repository("benches/record/times")).expect("a folder");
    let files = files.map(|file| {
        file.expect("an entry")
            .file_name()
            .to_string_lossy()
            .to_uppercase()
    });
    let times = files.filter(|file| file.ends_with(".CSV.GZ"));
    let timed: BTreeSet<String> = times
        .map(|file| file.split('-').next().unwrap_or_default().to_owned())
        .collect();
    let timed: Vec<String> = timed.into_iter().collect();
    let note = format!(
        ": the estimates use the coefficients of {}\n",
        timed.join(" and ")
    );
    for (target, is_timed) in [
        ("a100", false),
        ("t4", false),
        ("h100", true),
        ("H200", true),
    ] {
        let output = run(&[
            "--explain",
            "--target",
            target,
            model.to_str().expect("UTF-8"),
        ]);
        output.well();
        let said = format!("NOTE: no GPU '{target}' was timed{note}");
        assert_eq!(stderr(&output), if is_timed { String::new() } else { said });
    }

    let words = "the target is `h1000`, but must be t4, l4, a100, h100, h200, b200, or ";
    run(&["--explain", "--target", "h1000", "any.json"]).fails(2, words);
}

/// A plan as data has its text and the members of its kernels. Both describe the kernels that the options and the
/// environment ask for.
#[test]
fn a_plan_as_json_has_its_text_and_its_data() {
    let folder = Folder::new();
    let mut columns = fill("INT8", json!([3, 3]), json!(0), json!(1));
    columns["desc"]["OutputTensor"]["Strides"] = json!([1, 5]);
    let dispatchables = json!({ "columns": columns, "reverse": example("reverse_subsequences")["dispatchables"]["reverse"] });
    folder.write(
        "model.json",
        json!({ "dispatchables": dispatchables }).to_string(),
    );
    for (device, option, variable, specialized) in [
        (["--target", "h100"], "", None, "in_graphs"),
        (
            ["--target", "h100"],
            "specialize=always",
            Some("specialize=never"),
            "always",
        ),
        (
            ["--target", "h100"],
            "select=estimate",
            Some("specialize=never"),
            "never",
        ),
        (["--target", "t4"], "", Some("specialize=always"), "always"),
        (["-a", "cpu"], "specialize=always", None, ""),
    ] {
        let run = |format: &str| {
            let mut command = folder.dml_cuda();
            command
                .args(["model.json", "--explain", "--format", format])
                .args(device)
                .args(["--compile-options", option]);
            command
                .envs(variable.map(|value| ("DML_CUDA_COMPILE_OPTIONS", value)))
                .output()
                .expect("it starts")
        };
        let plans = lines_of_json(&run("json"));
        let mut printed = format!(
            "Planned for '{}'\n",
            plans[0]["target"].as_str().expect("text")
        );
        for plan in &plans {
            let indented = plan["text"]
                .as_str()
                .expect("text")
                .lines()
                .map(|line| format!("  {line}\n"));
            let name = plan["dispatchable"].as_str().expect("a name");
            printed += &format!("Dispatchable '{name}'\n{}", indented.collect::<String>());
        }
        assert_eq!(run("text").well(), printed);
        // Fills stay generic.
        let [fill, reversal] = [0, 1].map(|n| &plans[n]["modes"][0]["kernels"]);
        if device[0] == "-a" {
            assert!(
                fill == &json!([])
                    && printed.contains("no kernel: the CPU runs it, on the calling thread")
            );
            continue;
        }
        let dimension = |stride, index| json!({ "size": 3, "is_axis": false, "strides": { "OutputTensor": stride, "index": index } });
        assert_eq!(
            plans[0]["dimensions"],
            json!([dimension(5, 1), dimension(1, 3)])
        );
        let mut chosen = json!({
            "kernel": "fill_elements", "variant": "", "estimated_microseconds": null, "measured_microseconds": null, "outcome": "chosen",
            "access_bytes": 1, "blocks": 1, "threads": 256, "shared_memory": 0, "alignment": 1, "specialize": "never"
        });
        assert_eq!(fill[0], chosen);
        assert_eq!(
            (&fill[1]["outcome"], &fill[1]["kernel"]),
            (&json!("rejected"), &json!("fill_packed"))
        );
        assert_eq!(
            fill[1]["reason"],
            "the output is not one contiguous run in the order of its index"
        );
        for (name, value) in chosen.as_object_mut().expect("members") {
            assert_eq!(
                reversal[0][name].is_null(),
                value.is_null() && name.starts_with("measured"),
                "{name}"
            );
        }
        assert_eq!(reversal[0]["specialize"], specialized);
        assert!(reversal
            .as_array()
            .expect("a list")
            .iter()
            .any(|kernel| kernel["outcome"] == "possible"));
    }
    let explain = [
        "model.json",
        "--explain",
        "--target",
        "t4",
        "--compile-options",
    ];
    folder
        .run(&[&explain[..], &["select=measure"]].concat())
        .fails(
            1,
            "`select=measure`, but must be `select=estimate` with --target",
        );
    for mode in [
        &["--explain", "--target", "t4"][..],
        &["--validate"],
        &["-a", "cpu"],
    ] {
        folder
            .run(&[&["model.json", "--compile-options", "select=guess"], mode].concat())
            .fails(
                2,
                "the compile option is `select=guess`, but must be one of specialize=in_graphs|",
            );
    }
}
