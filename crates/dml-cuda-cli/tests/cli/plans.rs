//! Plans, as `--explain` prints them.

use std::collections::BTreeSet;
use std::fs;

use dml_cuda_testing::repository;
use serde_json::{json, Value};

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
    let files = files.map(|file| file.expect("an entry").file_name().to_string_lossy().to_uppercase());
    let times = files.filter(|file| file.ends_with(".CSV.GZ"));
    let timed: BTreeSet<String> = times.map(|file| file.split('-').next().unwrap_or_default().to_owned()).collect();
    let timed: Vec<String> = timed.into_iter().collect();
    let note = format!(": estimates have the costs of {}\n", timed.join(" and "));
    for (target, is_timed) in [("a100", false), ("t4", false), ("h100", true), ("H200", true)] {
        let output = run(&["--explain", "--target", target, model.to_str().expect("UTF-8")]);
        output.well();
        let said = format!("NOTE: no GPU '{target}' was timed{note}");
        assert_eq!(stderr(&output), if is_timed { String::new() } else { said });
    }

    let words = "the target is `h1000`, but must be t4, l4, a100, h100, h200, b200, or ";
    run(&["--explain", "--target", "h1000", "any.json"]).fails(2, words);
}

/// The text that a plan's data makes, with the strides in the order of their names.
fn text_of(plan: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let mut lines = vec!["merged shape, outermost in the output's memory first:".to_owned()];
    for dimension in list(&plan["dimensions"]) {
        let strides = dimension["strides"].as_object().expect("by name");
        let steps: Vec<String> = strides.iter().map(|(name, stride)| format!("{name} {stride}")).collect();
        let name = if dimension["is_axis"] == true { "axis" } else { "size" };
        lines.push(format!("  {name} {}, steps of {}", dimension["size"], steps.join(", ")));
    }
    for mode in list(&plan["modes"]) {
        let most = if mode["in_place"] == true { "at most " } else { "" };
        lines.push(format!("{}: {most}{} bytes must move", text(&mode["mode"]), mode["bytes"]));
        if list(&mode["kernels"]).is_empty() {
            lines.push("  no kernel: the CPU runs it, on the calling thread".to_owned());
        }
        for kernel in list(&mode["kernels"]) {
            assert_eq!(kernel["measured_microseconds"], Value::Null);
            let of = |name: &str| text(&kernel[name]);
            let comma = if kernel["variant"] == "" { "" } else { ", " };
            let mut facts = Vec::new();
            if let Some(estimate) = kernel["estimated_microseconds"].as_f64() {
                facts.push(format!("estimated {estimate:.2} µs"));
            }
            match of("outcome").as_str() {
                "chosen" => facts.push(format!(
                    "{}-byte stores, grid {} x {} threads, {} bytes of shared memory per thread block, pointers at multiples of {}, specialize={}",
                    of("access_bytes"), of("blocks"), of("threads"), of("shared_memory"), of("alignment"), of("specialize")
                )),
                "rejected" => facts.push(of("reason")),
                _ => {}
            }
            lines.push(format!("  {} {}{comma}{}: {}", of("outcome"), of("kernel"), of("variant"), facts.join(", ")));
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The data of a plan has all that its text says. Both describe the kernels that the options and the environment ask
/// for.
#[test]
fn a_plan_as_json_says_what_its_text_says() {
    let folder = Folder::new();
    let dispatchables = json!({
        "fill": fill("FLOAT32", json!([7, 9]), json!(0), json!(1)),
        "reverse": example("reverse_subsequences")["dispatchables"]["reverse"]
    });
    folder.write("model.json", json!({ "dispatchables": dispatchables }).to_string());
    let mut said = BTreeSet::new();
    for (device, option, variable, specialized) in [
        (["--target", "h100"], "", None, "in_graphs"),
        (["--target", "h100"], "specialize=always", Some("specialize=never"), "always"),
        (["--target", "h100"], "select=estimate", Some("specialize=never"), "never"),
        (["--target", "t4"], "", Some("specialize=always"), "always"),
        (["-a", "cpu"], "specialize=always", None, ""),
    ] {
        let run = |format: &str| {
            let mut command = folder.dml_cuda();
            command
                .args(["model.json", "--explain", "--format", format])
                .args(device)
                .args(["--compile-options", option]);
            command.envs(variable.map(|value| ("DML_CUDA_COMPILE_OPTIONS", value))).output().expect("it starts")
        };
        let plans = lines_of_json(&run("json"));
        let mut printed = format!("Planned for '{}'\n", plans[0]["target"].as_str().expect("text"));
        for plan in &plans {
            let text = plan["text"].as_str().expect("text");
            let indented: String = text.lines().map(|line| format!("  {line}\n")).collect();
            printed += &format!("Dispatchable '{}'\n{indented}", plan["dispatchable"].as_str().expect("a name"));
            let in_order = text.lines().map(|line| match line.split_once(", steps of ") {
                Some((size, steps)) => {
                    let mut steps: Vec<&str> = steps.split(", ").collect();
                    steps.sort_unstable();
                    format!("{size}, steps of {}\n", steps.join(", "))
                }
                None => format!("{line}\n"),
            });
            assert_eq!(in_order.collect::<String>(), text_of(plan));
            said.extend(
                text.lines().filter_map(|line| line.rsplit_once(", specialize=")).map(|(_, when)| when.to_owned()),
            );
        }
        assert_eq!(run("text").well(), printed);
        // Fills stay generic.
        let expected = BTreeSet::from(["never", specialized].map(str::to_owned));
        assert_eq!(std::mem::take(&mut said), if device[0] == "-a" { BTreeSet::new() } else { expected });
    }
    let explain = ["model.json", "--explain", "--target", "t4", "--compile-options"];
    folder
        .run(&[&explain[..], &["select=measure"]].concat())
        .fails(1, "`select=measure`, but must be `select=estimate` with --target");
    for mode in [&["--explain", "--target", "t4"][..], &["--validate"], &["-a", "cpu"]] {
        folder
            .run(&[&["model.json", "--compile-options", "select=guess"], mode].concat())
            .fails(2, "the compile option is `select=guess`, but must be one of specialize=in_graphs|");
    }
}
