//! Options, and what they print.

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
    assert_eq!(
        well(&["-m", model, "--dml_feature_level", "5.0"])
            .0
            .lines()
            .count(),
        4
    );
    let (_, noted) = well(&[
        model,
        "-d",
        "-q",
        "compute",
        "-o",
        "x",
        "--clear_shader_caches",
        "--post_dispatch_barriers",
        "uav",
    ]);
    assert_eq!(noted.lines().count(), 4, "{noted}");
    assert!(noted.contains("NOTE: --debug has no meaning here"));
    assert_eq!(well(&[model, "-f", "a:1", "-l", "1"]).1.lines().count(), 2);
    let (shown, _) = well(&["-s", model]);
    assert!(
        shown.contains("-Hardware: false") && shown.contains("Resource 'Out': 2, 1, 3, 4"),
        "{shown}"
    );
    assert!(well(&["-S"]).0.contains("dml-cuda"));
    // Milliseconds override iterations. The interval is the minimum time between the starts of two iterations.
    let samples = |arguments: &[&str]| {
        let events = lines_of_json(&run(&[
            &[model, "-a", "cpu", "--format", "json"],
            arguments,
        ]
        .concat()));
        events[2]["cpu_milliseconds"]
            .as_array()
            .expect("samples")
            .len()
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
    let paths = [
        "--output_path",
        target.to_str().expect("UTF-8"),
        "--input_path",
        "from",
    ];
    let printed = folder.run_model(&windows, &paths).well();
    let written = format!(
        "Resource 'A' written to '{}'",
        target.join("out").join("b.bin").display()
    );
    assert!(printed.contains(&written), "{printed}");
    assert_eq!(folder.read("elsewhere/out/b.bin")[..2], [7, 8]);
}

#[test]
fn format_json_prints_the_same_facts_as_json() {
    let model = repository("models/reverse_subsequences.json");
    let model = model.to_str().expect("UTF-8");
    let events =
        |arguments: &[&str]| lines_of_json(&run(&[arguments, &["--format", "json"]].concat()));
    let ran = events(&[model, "-a", "cpu", "-i", "3"]);
    let names: Vec<&str> = ran
        .iter()
        .map(|event| event["event"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["device", "initialize", "dispatch", "print"]);
    assert_eq!(ran[0]["name"], "CPU");
    let samples = ran[2]["cpu_milliseconds"].as_array().expect("samples");
    assert_eq!(samples.len(), 3);
    let is_short = |milliseconds: &Value| {
        milliseconds
            .as_f64()
            .is_some_and(|found| found > 0.0 && found < 900.0)
    };
    assert!(
        is_short(&ran[1]["milliseconds"]) && samples.iter().any(is_short),
        "{ran:?}"
    );
    assert_eq!(
        ran[3]["values"],
        json!([2, 1, 3, 4, 8, 7, 6, 5, 11, 10, 9, 12])
    );
    let verdict = events(&[model, "--validate"]);
    assert_eq!(verdict[0]["accepted"], true);
    let all = events(&[model, "--validate", "--directml", "all"]);
    assert_eq!(all[0]["verdicts"].as_array().expect("verdicts").len(), 13);
    assert_eq!(events(&["-s"]).last().expect("the CPU")["name"], "CPU");
    assert_eq!(events(&["-s", "-S"])[0]["event"], "dependencies");
    assert_eq!(
        events(&[model, "-a", "cpu", "-r", "0"])[2]["cpu_milliseconds"][0],
        0.0
    );

    let folder = Folder::new();
    let mut wrong = example("reverse_subsequences");
    wrong["dispatchables"]["reverse"]["desc"]["Axis"] = json!(9);
    folder
        .run_model(&wrong, &["--validate", "--directml", "all"])
        .fails(1, ""); // no version accepts it
    let verdict =
        lines_of_json(&folder.run_model(&wrong, &["--validate", "--format", "json"])).remove(0);
    assert_eq!(
        (&verdict["accepted"], &verdict["errors"][0]["rule"]),
        (&json!(false), &json!("reverse.axis.range"))
    );
    // What cannot be read is an error of the same shape, without a rule.
    wrong["dispatchables"]["reverse"]["desc"]["Axis"] = json!("x");
    let unreadable =
        lines_of_json(&folder.run_model(&wrong, &["--validate", "--format", "json"])).remove(0);
    let names = |verdict: &Value| {
        verdict["errors"][0]
            .as_object()
            .expect("an error")
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names(&unreadable), &unreadable["errors"][0]["rule"]),
        (names(&verdict), &json!(null))
    );
    let all = folder.run_model(
        &wrong,
        &["--validate", "--directml", "all", "--format", "json"],
    );
    let verdicts = lines_of_json(&all)[0]["verdicts"]
        .as_array()
        .expect("verdicts")
        .clone();
    assert!(
        verdicts.len() == 13
            && verdicts
                .iter()
                .all(|verdict| verdict["errors"] == unreadable["errors"])
    );
    let text = stdout(&folder.run_model(&wrong, &["--validate", "--directml", "all"]));
    assert!(
        text.contains("accepted by none\n  line 1: dispatchables.reverse.desc.Axis is \"x\""),
        "{text}"
    );
    // NaN and infinities are strings, because JSON has no numbers for them. Every value reads back as the same bits.
    for (data_type, values) in [
        ("FLOAT32", json!(["nan", "-inf", 1.5])),
        (
            "FLOAT32",
            json!([16_777_216, 0.1, 1.0e-45, 3.402_823_5e38, -0.0]),
        ),
        (
            "FLOAT64",
            json!([16_777_217, 0.1, 1.0e300, 123_456_789.123_456_79]),
        ),
        ("FLOAT16", json!([0.099975586, 65504])),
    ] {
        let exact = one_resource(
            data_type,
            values.clone(),
            json!([{ "type": "print", "resource": "A" }]),
        );
        let printed = folder.run_model(&exact, &["--format", "json"]).well();
        let expected = values.to_string().replace("-0.0", "-0").replace("e+", "e");
        assert!(
            printed.contains(&format!("\"values\":{expected}}}")),
            "{printed}"
        );
    }
}

#[test]
fn completions_and_a_manual_page_are_printed() {
    // The debug build checks that what it changes in clap's scripts is there.
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&run(&["completions", shell]));
        assert!(
            script.contains("show_adapters")
                && !script.contains("pix_capture")
                && !script.contains("(kernel)"),
            "{script}"
        );
    }
    let page = stdout(&run(&["man"]));
    for section in [
        ".TH dml-cuda 1",
        ".SH \"EXIT STATUS\"",
        ".SH EXAMPLES",
        ".SH FILES",
    ] {
        assert!(
            page.replace(".SH EXIT STATUS", ".SH \"EXIT STATUS\"")
                .contains(section),
            "{section}"
        );
    }
    for (_, command) in page
        .lines()
        .filter_map(|line| line.strip_suffix("(1)")?.split_once("cuda\\-"))
    {
        let page = stdout(&run(&["man", command]));
        assert!(
            page.contains(&format!(".TH dml-cuda-{command} 1")),
            "{command}"
        );
        each_option_has_a_text(&page);
    }
    each_option_has_a_text(&page);
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
        let found = std::process::Command::new("bash")
            .args(["-c", &script])
            .output()
            .expect("bash starts");
        assert_eq!(
            String::from_utf8_lossy(&found.stdout),
            expected,
            "{}",
            String::from_utf8_lossy(&found.stderr)
        );
    }
}

/// Files next to it are those of the current folder.
#[test]
fn a_model_is_read_from_standard_input() {
    let folder = Folder::new();
    folder.write("a.bin", [7, 8]);
    let print = json!([{ "type": "print", "resource": "A" }]);
    let model = one_resource("UINT8", json!({ "sourcePath": "a.bin" }), print).to_string();
    for options in [
        &["-", "-a", "cpu"][..],
        &["-m", "-", "-a", "cpu", "--strict"],
    ] {
        assert!(folder
            .run_with_input(options, &model)
            .well()
            .ends_with("Resource 'A': 7, 8\n"));
    }
    folder
        .run_with_input(&["-"], "{")
        .fails(1, "ERROR: -: line 1, column ");
}

/// Answers that were silent, mixed or wrong.
#[test]
fn every_option_has_an_answer() {
    let model = repository("models/reverse_subsequences.json");
    let model = model.to_str().expect("UTF-8");
    let verdict = run(&[model, "--validate", "--directml", "1.8"]).well();
    assert!(
        verdict.contains("accepted by DirectML 1.8.0\n"),
        "{verdict}"
    );
    run(&[model, "-v", "3"]).fails(2, "");
    assert!(!run(&[model, "-a", "cpu", "-v", "1"]).well().contains("GPU"));
    // The short help is a screen, and the long one has groups.
    for command in [&[][..], &["bench"], &["report"]] {
        let [short, long] = ["-h", "--help"].map(|help| run(&[command, &[help]].concat()).well());
        let is_short =
            short.lines().count() <= 32 && short.lines().all(|line| line.chars().count() <= 140);
        assert!(
            is_short && long.lines().count() > short.lines().count(),
            "{command:?}: {short}"
        );
        let groups: &[&str] = match command {
            [] => &["Timing", "Checks and explanations", "Files"],
            ["bench"] => &["ONNX Runtime"],
            _ => &["Pipelines"],
        };
        assert!(
            groups
                .iter()
                .all(|group| long.contains(&format!("\n{group}:\n"))),
            "{long}"
        );
    }
    let two = run(&["-m", model, "-m", "other.json"]);
    two.fails(1, "other.json is a second model, but a run takes one");
    let checked = run(&["--validate", model, "absent.json", model]);
    checked.fails(1, "ERROR: absent.json: the model cannot be read: ");
    let printed = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(printed.matches("accepted").count(), 2, "{printed}");
    assert_eq!(printed.matches("absent.json:\n").count(), 1, "{printed}");
    run(&["--validate", model, model]).well();
    // A name with an escape sequence, and a file that is named as a command is.
    let folder = Folder::new();
    let named = json!({
        "resources": { "a\u{1b}[2J\nb": { "initialValuesDataType": "UINT8", "initialValues": [1] } },
        "dispatchables": {}, "commands": [{ "type": "print", "resource": "a\u{1b}[2J\nb" }],
    });
    folder.write("suite", named.to_string());
    let printed = folder.well(&["./suite", "-a", "cpu"]);
    assert_eq!(
        printed.lines().nth(1),
        Some("Resource 'a\\u{1b}[2J\\nb': 1")
    );
    let rejected = json!({ "a\u{1b}[2J": fill("FLOAT32", json!([0]), json!(0), json!(1)) });
    let rejected = json!({ "resources": {}, "dispatchables": rejected, "commands": [] });
    folder
        .run_model(&rejected, &["-a", "cpu"])
        .fails(1, "ERROR: dispatchable 'a\\u{1b}[2J' is rejected:");
}

/// Checks that each option of a manual page has a text, and that no section is there twice.
fn each_option_has_a_text(page: &str) {
    for option in page.split(".TP\n").skip(1) {
        let mut lines = option.lines().filter(|line| !line.starts_with(".SH"));
        let name = lines.next().expect("the option's name");
        assert!(
            lines.any(|line| !line.trim().is_empty()),
            "{name} has no text"
        );
    }
    let mut sections: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with(".SH"))
        .collect();
    let count = sections.len();
    sections.sort_unstable();
    sections.dedup();
    assert_eq!(sections.len(), count, "{sections:?}");
}
