//! Options, and what they print.

use std::collections::BTreeSet;
use std::fs;

use dml_cuda_testing::repository;
use serde_json::{json, Value};

use crate::{example, fill, lines_of_json, one_resource, run, stderr, stdout, Ended, Folder};

#[test]
fn options_of_dxdispatch_mean_the_same() {
    let model = repository("models/reverse_subsequences.json");
    let model = model.to_str().expect("UTF-8");
    let well = |arguments: &[&str]| {
        let output = run(arguments);
        (output.well(), stderr(&output))
    };
    assert_eq!(well(&["-m", model, "--dml_feature_level", "5.0"]).0.lines().count(), 4);
    let (_, noted) =
        well(&[model, "-d", "-q", "compute", "-o", "x", "--clear_shader_caches", "--post_dispatch_barriers", "uav"]);
    assert_eq!(noted.lines().count(), 4, "{noted}");
    assert!(noted.contains("NOTE: --debug has no meaning here"));
    assert_eq!(well(&[model, "-f", "a:1", "-l", "1", "another.json"]).1.lines().count(), 3);
    let (shown, _) = well(&["-s", model]);
    assert!(shown.contains("-Hardware: false") && shown.contains("Resource 'Out': 2, 1, 3, 4"), "{shown}");
    assert!(well(&["-S"]).0.contains("dml-cuda"));
    // Milliseconds override iterations. The interval is the minimum time between the starts of two iterations.
    let samples = |arguments: &[&str]| {
        let events = lines_of_json(&run(&[&[model, "-a", "cpu", "--format", "json"], arguments].concat()));
        events[2]["cpu_milliseconds"].as_array().expect("samples").len()
    };
    assert!((1..=4).contains(&samples(&["-i", "100", "-t", "30", "-I", "10"])));
    assert_eq!(samples(&["-i", "7", "-I", "1"]), 7);
    assert!(samples(&["-t", "20"]) > 1);

    let folder = Folder::new();
    fs::create_dir_all(folder.path("from/in")).expect("a folder");
    folder.write("from/in/a.bin", [7, 8]);
    let write = json!([{ "type": "writeFile", "resource": "A", "targetPath": "out\\b.bin" }]);
    let windows = one_resource("UINT8", json!({ "sourcePath": "in\\a.bin" }), write);
    let target = folder.path("elsewhere");
    let paths = ["--output_path", target.to_str().expect("UTF-8"), "--input_path", "from"];
    let printed = folder.run_model(&windows, &paths).well();
    let written = format!("Resource 'A' written to '{}'", target.join("out").join("b.bin").display());
    assert!(printed.contains(&written), "{printed}");
    assert_eq!(folder.read("elsewhere/out/b.bin")[..2], [7, 8]);
}

#[test]
fn explain_prints_plans_and_runs_nothing() {
    let model = repository("models/reverse_subsequences.json");
    let folder = Folder::new();
    let explain = |dispatchables| {
        folder.run_model(&json!({ "dispatchables": dispatchables }), &["--explain", "--target", "h100"])
    };
    let explained = explain(json!({
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
    }))
    .well();
    let expected = "\
Planned for 'h100'
Dispatchable 'rows'
  merged shape, outermost in the output's memory first:
    size 64, steps of InputTensor 2097152, SequenceLengthsTensor 1, OutputTensor 2097152
    axis 2048, steps of InputTensor 1024, OutputTensor 1024
    size 1024, steps of InputTensor 1, SequenceLengthsTensor 0, OutputTensor 1
  copying: 536871168 bytes must move
    KERNEL: N-byte stores, grid N x N threads, N bytes of shared memory per thread block, pointers at multiples of N, specialize=in_graphs
    estimated N µs: KERNEL
    not reverse_packed_rows: a segment does not fit shared memory
  in place: at most 536871168 bytes must move
    KERNEL: N-byte stores, grid N x N threads, N bytes of shared memory per thread block, pointers at multiples of N, specialize=in_graphs
    estimated N µs: KERNEL
    not reverse_rows: it does not run in place
Dispatchable 'sequence'
  merged shape, outermost in the output's memory first:
    size 1000000, steps of OutputTensor 1, index 1
  fill: 4000000 bytes must move
    fill_packed_4: 16-byte stores, grid 977 x 256 threads, 0 bytes of shared memory per thread block, pointers at multiples of 4, specialize=never
";
    // Keeps one launch, one estimate and the first reason of each mode. Which kernels they are changes with the costs.
    let mut kept = String::new();
    for line in explained.lines() {
        let known = |start| kept.lines().last().is_some_and(|last| last.trim_start().starts_with(start));
        let line = match line.trim_start().split_once(": ") {
            Some((estimate, _)) if estimate.ends_with(" µs") => "    estimated N µs: KERNEL".to_owned(),
            Some((kernel, launch)) if kernel.starts_with("reverse_") => {
                let mut text = String::new();
                for character in launch.chars() {
                    match character {
                        '0'..='9' if text.ends_with('N') => {}
                        '0'..='9' => text.push('N'),
                        other => text.push(other),
                    }
                }
                format!("    KERNEL: {text}")
            }
            _ => line.to_owned(),
        };
        let again = kept.lines().last() == Some(&line) || line.starts_with("    not ") && known("not");
        if !again {
            kept += &format!("{line}\n");
        }
    }
    assert_eq!(kept, expected);

    // The reasons against faster kernels. A rejected dispatchable does not hide the others.
    let mut columns = fill("INT8", json!([3, 3]), json!(0), json!(1));
    columns["desc"]["OutputTensor"]["Strides"] = json!([1, 5]);
    let output = explain(json!({ "wrong": fill("FLOAT32", json!([0]), json!(0), json!(1)), "columns": columns }));
    assert!(!output.status.success());
    let text = stdout(&output);
    for line in
        ["(tensor.sizes.nonzero)", "    fill_elements: 1-byte stores", "    not fill_packed: ", "    not fill_dense: "]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }

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

    // Options exclude modes, for a target as on a device.
    for where_to in [&["--target", "h100"][..], &["-a", "cpu"]] {
        for (options, modes) in
            [("", &["copying", "in place"][..]), ("in_place=always", &["in place"]), ("in_place=never", &["copying"])]
        {
            let arguments =
                ["--explain", "--format", "json", "--compile-options", options, model.to_str().expect("UTF-8")];
            let plan = &lines_of_json(&run(&[&arguments[..], where_to].concat()))[0];
            let found: Vec<&str> =
                plan["modes"].as_array().expect("modes").iter().filter_map(|mode| mode["mode"].as_str()).collect();
            assert_eq!(found, modes, "{where_to:?} {options}");
        }
        let fill = repository("models/fill_value_sequence_uint8.json");
        let arguments = ["--explain", "--compile-options", "in_place=always", fill.to_str().expect("UTF-8")];
        let output = run(&[&arguments[..], where_to].concat());
        output.fails(1, "");
        assert!(stdout(&output).contains("(compile.in_place)"), "{}", stdout(&output));
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
        if list(&mode["launches"]).is_empty() {
            lines.push("  no kernel: the CPU runs it, on the calling thread".to_owned());
        }
        for launch in list(&mode["launches"]) {
            let [kernel, bytes, blocks, threads, shared, alignment, specialize] =
                ["kernel", "access_bytes", "blocks", "threads", "shared_memory", "alignment", "specialize"]
                    .map(|name| text(&launch[name]));
            lines.push(format!("  {kernel}: {bytes}-byte stores, grid {blocks} x {threads} threads, {shared} bytes of shared memory per thread block, pointers at multiples of {alignment}, specialize={specialize}"));
        }
        for kernel in list(&mode["kernels"]) {
            assert_eq!(kernel["measured_microseconds"], Value::Null);
            let comma = if kernel["variant"] == "" { "" } else { ", " };
            let estimate = kernel["estimated_microseconds"].as_f64().expect("a number");
            lines.push(format!(
                "  estimated {estimate:.2} µs: {}{comma}{}",
                text(&kernel["kernel"]),
                text(&kernel["variant"])
            ));
        }
        lines.extend(
            list(&mode["rejected"])
                .iter()
                .map(|one| format!("  not {}: {}", text(&one["kernel"]), text(&one["reason"]))),
        );
    }
    if let Some(excluded) = plan["excluded"].as_str() {
        let option = if excluded == "in place" { "never" } else { "always" };
        lines
            .push(format!("{excluded}: an error, because the compile option is `in_place={option}` (binding.promise)"));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A run checks the promise of an alignment, as every interface does. Buffers are aligned to 16 bytes without one.
#[test]
fn a_run_checks_the_promised_alignment() {
    let folder = Folder::new();
    let mut model = example("reverse_subsequences");
    model["resources"]["In"]["initialValues"]["valueCount"] = json!(20);
    model["commands"][0]["bindings"]["InputTensor"] = json!({ "name": "In", "elementOffset": 8 });
    for (alignment, error) in [("0", ""), ("1", ""), ("32", ""), ("64", "64"), ("2147483648", "2147483648")] {
        let option = format!("alignment={alignment}");
        let output = folder.run_model(&model, &["-a", "cpu", "--compile-options", &option]);
        let words = format!("the offset of InputTensor is 0x20, but must be a multiple of {error} (binding.alignment)");
        assert_eq!(output.status.success(), error.is_empty(), "{alignment}: {}", stderr(&output));
        assert_eq!(stderr(&output).contains(&words), !error.is_empty(), "{alignment}: {}", stderr(&output));
    }
    let too_large = folder.run_model(&model, &["-a", "cpu", "--compile-options", "alignment=4294967296"]);
    assert!(stderr(&too_large).contains("`alignment=4294967296`, but must be one of"));
}

/// A plan says which dispatches the option `in_place` makes an error, and they are.
#[test]
fn a_plan_names_the_mode_that_the_options_exclude() {
    let folder = Folder::new();
    let [in_place, copying] = ["reverse_subsequences_in_place", "reverse_subsequences"].map(example);
    let mut strided = copying.clone();
    strided["dispatchables"]["reverse"]["desc"]["OutputTensor"]["Strides"] = json!([12, 12, 1, 3]);
    let never = "  in place: an error, because the compile option is `in_place=never` (binding.promise)\n";
    let always = "  copying: an error, because the compile option is `in_place=always` (binding.promise)\n";
    let strides = "  in place: an error, because the strides of input and output differ (binding.in_place)\n";
    for (model, option, lines, runs) in [
        (&in_place, "never", never.to_owned(), false),
        (&in_place, "always", always.to_owned(), true),
        (&copying, "never", never.to_owned(), true),
        (&copying, "always", always.to_owned(), false),
        (&strided, "never", String::new(), true),
        (&strided, "always", format!("{always}{strides}"), false),
        (&in_place, "either", String::new(), true),
    ] {
        let option = format!("in_place={option}");
        let with = ["--compile-options", option.as_str()];
        for device in [&["--target", "h100"][..], &["-a", "cpu"]] {
            let plan = folder.run_model(model, &[&["--explain"][..], device, &with].concat());
            let text = plan.well();
            let found: String =
                text.lines().filter(|line| line.contains(": an error")).map(|line| format!("{line}\n")).collect();
            assert_eq!(found, lines, "{option}");
            assert!(text.ends_with(&lines));
        }
        let run = folder.run_model(model, &[&["-a", "cpu"][..], &with].concat());
        assert_eq!(run.status.success(), runs, "{option}: {}", stderr(&run));
    }
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
        (["--target", "h100"], "alignment=16", Some("specialize=never"), "never"),
        (["--target", "h100"], "in_place=never", None, "in_graphs"),
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

#[test]
fn format_json_prints_the_same_facts_as_json() {
    let model = repository("models/reverse_subsequences.json");
    let model = model.to_str().expect("UTF-8");
    let events = |arguments: &[&str]| lines_of_json(&run(&[arguments, &["--format", "json"]].concat()));
    let ran = events(&[model, "-a", "cpu", "-i", "3"]);
    let names: Vec<&str> = ran.iter().map(|event| event["event"].as_str().expect("a name")).collect();
    assert_eq!(names, ["device", "initialize", "dispatch", "print"]);
    assert_eq!(ran[0]["name"], "CPU");
    let samples = ran[2]["cpu_milliseconds"].as_array().expect("samples");
    assert_eq!(samples.len(), 3);
    let is_short = |milliseconds: &Value| milliseconds.as_f64().is_some_and(|found| found > 0.0 && found < 900.0);
    assert!(is_short(&ran[1]["milliseconds"]) && samples.iter().any(is_short), "{ran:?}");
    assert_eq!(ran[3]["values"], json!([2, 1, 3, 4, 8, 7, 6, 5, 11, 10, 9, 12]));
    let verdict = events(&[model, "--validate"]);
    assert_eq!(verdict[0]["accepted"], true);
    let all = events(&[model, "--validate", "--directml", "all"]);
    assert_eq!(all[0]["verdicts"].as_array().expect("verdicts").len(), 13);
    assert_eq!(events(&["-s"]).last().expect("the CPU")["name"], "CPU");
    assert_eq!(events(&["-s", "-S"])[0]["event"], "dependencies");
    assert_eq!(events(&[model, "-a", "cpu", "-r", "0"])[2]["cpu_milliseconds"][0], 0.0);

    let folder = Folder::new();
    let mut wrong = example("reverse_subsequences");
    wrong["dispatchables"]["reverse"]["desc"]["Axis"] = json!(9);
    folder.run_model(&wrong, &["--validate", "--directml", "all"]).fails(1, ""); // no version accepts it
    let verdict = lines_of_json(&folder.run_model(&wrong, &["--validate", "--format", "json"])).remove(0);
    assert_eq!((&verdict["accepted"], &verdict["errors"][0]["rule"]), (&json!(false), &json!("reverse.axis.range")));
    // What cannot be read is an error of the same shape, without a rule.
    wrong["dispatchables"]["reverse"]["desc"]["Axis"] = json!("x");
    let unreadable = lines_of_json(&folder.run_model(&wrong, &["--validate", "--format", "json"])).remove(0);
    let names =
        |verdict: &Value| verdict["errors"][0].as_object().expect("an error").keys().cloned().collect::<Vec<_>>();
    assert_eq!((names(&unreadable), &unreadable["errors"][0]["rule"]), (names(&verdict), &json!(null)));
    let all = folder.run_model(&wrong, &["--validate", "--directml", "all", "--format", "json"]);
    let verdicts = lines_of_json(&all)[0]["verdicts"].as_array().expect("verdicts").clone();
    assert!(verdicts.len() == 13 && verdicts.iter().all(|verdict| verdict["errors"] == unreadable["errors"]));
    let text = stdout(&folder.run_model(&wrong, &["--validate", "--directml", "all"]));
    assert!(text.contains("accepted by none\n  line 1: dispatchables.reverse.desc.Axis is \"x\""), "{text}");
    // NaN and infinities are strings, because JSON has no numbers for them. Every value reads back as the same bits.
    for (data_type, values) in [
        ("FLOAT32", json!(["nan", "-inf", 1.5])),
        ("FLOAT32", json!([16_777_216, 0.1, 1.0e-45, 3.402_823_5e38, -0.0])),
        ("FLOAT64", json!([16_777_217, 0.1, 1.0e300, 123_456_789.123_456_79])),
        ("FLOAT16", json!([0.099975586, 65504])),
    ] {
        let exact = one_resource(data_type, values.clone(), json!([{ "type": "print", "resource": "A" }]));
        let printed = folder.run_model(&exact, &["--format", "json"]).well();
        let expected = values.to_string().replace("-0.0", "-0").replace("e+", "e");
        assert!(printed.contains(&format!("\"values\":{expected}}}")), "{printed}");
    }
}

#[test]
fn completions_and_a_manual_page_are_printed() {
    // The debug build checks that what it changes in clap's scripts is there.
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&run(&["completions", shell]));
        assert!(
            script.contains("show_adapters") && !script.contains("pix_capture") && !script.contains("(kernel)"),
            "{script}"
        );
    }
    let page = stdout(&run(&["man"]));
    for section in [".TH dml-cuda 1", ".SH \"EXIT STATUS\"", ".SH EXAMPLES", ".SH FILES"] {
        assert!(page.replace(".SH EXIT STATUS", ".SH \"EXIT STATUS\"").contains(section), "{section}");
    }
    for (_, command) in page.lines().filter_map(|line| line.strip_suffix("(1)")?.split_once("cuda\\-")) {
        assert!(stdout(&run(&["man", command])).contains(&format!(".TH dml-cuda-{command} 1")), "{command}");
    }
    assert_eq!(run(&["man", "nothing"]).status.code(), Some(1));
}

#[cfg(unix)]
#[test]
fn bash_completes_options_and_closed_lists() {
    let completions = stdout(&run(&["completions", "bash"]));
    for (words, word, previous, expected) in [
        ("dml-cuda bench --on", "--on", "bench", "--only\n"),
        ("dml-cuda --target h", "h", "--target", "h100 h200\n"),
        ("dml-cuda --directml 1.8", "1.8", "--directml", "1.8.0\n"),
        // Bash itself completes files, with a space as one word.
        ("dml-cuda -m sp", "sp", "-m", "\n"),
    ] {
        let call = format!("_dml__cuda dml-cuda {word} {previous}\necho \"${{COMPREPLY[@]}}\"");
        let script = format!("{completions}\nCOMP_WORDS=({words}) COMP_CWORD=2\n{call}");
        let found = std::process::Command::new("bash").args(["-c", &script]).output().expect("bash starts");
        assert_eq!(String::from_utf8_lossy(&found.stdout), expected, "{}", String::from_utf8_lossy(&found.stderr));
    }
}

/// Files next to it are those of the current folder.
#[test]
fn a_model_is_read_from_standard_input() {
    let folder = Folder::new();
    folder.write("a.bin", [7, 8]);
    let print = json!([{ "type": "print", "resource": "A" }]);
    let model = one_resource("UINT8", json!({ "sourcePath": "a.bin" }), print).to_string();
    for options in [&["-", "-a", "cpu"][..], &["-m", "-", "-a", "cpu", "--strict"]] {
        assert!(folder.run_with_input(options, &model).well().ends_with("Resource 'A': 7, 8\n"));
    }
    folder.run_with_input(&["-"], "{").fails(1, "ERROR: -: line 1, column ");
}

/// Answers that were silent, mixed or wrong.
#[test]
fn every_option_has_an_answer() {
    let model = repository("models/reverse_subsequences.json");
    let model = model.to_str().expect("UTF-8");
    let verdict = run(&[model, "--validate", "--directml", "1.8"]).well();
    assert!(verdict.contains("accepted by DirectML 1.8.0\n"), "{verdict}");
    run(&[model, "-v", "3"]).fails(2, "");
    assert!(!run(&[model, "-a", "cpu", "-v", "1"]).well().contains("GPU"));
    // The short help is a screen, and the long one has groups.
    for command in [&[][..], &["bench"], &["report"]] {
        let [short, long] = ["-h", "--help"].map(|help| run(&[command, &[help]].concat()).well());
        let is_short = short.lines().count() <= 32 && short.lines().all(|line| line.chars().count() <= 140);
        assert!(is_short && long.lines().count() > short.lines().count(), "{command:?}: {short}");
        let groups: &[&str] = match command {
            [] => &["Timing", "Checks and explanations", "Files"],
            ["bench"] => &["ONNX Runtime"],
            _ => &["Pipelines"],
        };
        assert!(groups.iter().all(|group| long.contains(&format!("\n{group}:\n"))), "{long}");
    }
    let output = run(&["-m", model, "-m", "other.json"]);
    assert!(stderr(&output).contains("NOTE: one model a run: other.json is ignored"), "{}", stderr(&output));
    // A name with an escape sequence, and a file that is named as a command is.
    let folder = Folder::new();
    let named = json!({
        "resources": { "a\u{1b}[2J\nb": { "initialValuesDataType": "UINT8", "initialValues": [1] } },
        "dispatchables": {}, "commands": [{ "type": "print", "resource": "a\u{1b}[2J\nb" }],
    });
    folder.write("suite", named.to_string());
    let printed = folder.well(&["./suite", "-a", "cpu"]);
    assert_eq!(printed.lines().nth(1), Some("Resource 'a\\u{1b}[2J\\nb': 1"));
    let rejected = json!({ "a\u{1b}[2J": fill("FLOAT32", json!([0]), json!(0), json!(1)) });
    let rejected = json!({ "resources": {}, "dispatchables": rejected, "commands": [] });
    folder.run_model(&rejected, &["-a", "cpu"]).fails(1, "ERROR: dispatchable 'a\\u{1b}[2J' is rejected:");
}
