//! `report`: what it shows, and what it refuses.

use std::fs;

use serde_json::{json, Value};

use crate::texts::assert_golden;
use crate::{one_resource, Ended, Folder};

const STEADY: [f64; 7] = [100.0, 101.0, 99.0, 100.0, 101.0, 99.0, 100.0];

/// A case of a run. `result` is a member such as `{ "each": samples }`.
fn case(name: &str, data_type: &str, mode: &str, bytes: u64, result: Value) -> Value {
    let mut case =
        json!({ "case": name, "type": data_type, "mode": mode, "bytes": bytes, "dispatches": 1 });
    case.as_object_mut()
        .expect("a case")
        .append(result.clone().as_object_mut().expect("members"));
    case
}

/// A run of these cases on a machine whose baseline is slower by a factor.
fn on_machine(label: &str, mut cases: Vec<Value>, factor: f64) -> Value {
    let machine = json!({ "tool": "a tool", "commit": "abc", "device": "Some GPU", "date": "2026-11-20T01:02:03Z" });
    let each = STEADY.map(|sample| sample * factor);
    cases.push(case(
        "1 MiB",
        "u32",
        "baseline of copies",
        2 << 20,
        json!({ "each": each }),
    ));
    json!({ "schema": 2, "label": label, "machine": machine, "timing": "", "cases": cases })
}

/// A run with a case for each name, of these samples.
fn made(label: &str, cases: &[(&str, &str, &[f64])]) -> Value {
    let copy = |(name, data_type, samples): &(&str, &str, &[f64])| {
        case(name, data_type, "copy", 1 << 20, json!({ "each": samples }))
    };
    on_machine(label, cases.iter().map(copy).collect(), 1.0)
}

/// A folder with `a.json` and `b.json`, two runs of one case.
fn two_runs() -> Folder {
    let folder = Folder::new();
    for name in ["a", "b"] {
        folder.write(
            &format!("{name}.json"),
            made(name, &[("x", "f32", &STEADY)]).to_string(),
        );
    }
    folder
}

#[test]
fn runs_that_are_none_are_said() {
    let folder = Folder::new();
    folder.refuses(&["report", "r.json"], "the results cannot be read");
    folder.run(&["report", "-", "-"]).fails(
        2,
        "ERROR: - is standard input, which can be read once, but is given twice",
    );
    let with = |samples: &[f64]| made("a", &[("x", "f32", samples)]);
    let mut nothing = with(&[1.0]);
    nothing["cases"][0]["bytes"] = json!(0);
    let mut by_hand = with(&[1.0]);
    by_hand["cases"][0]
        .as_object_mut()
        .expect("a case")
        .remove("each");
    let twice = made("a", &[("x", "f32", &[1.0]), ("x", "f32", &[1.0])]);
    let steady = with(&[1.0]).to_string();
    for (run, words) in [
        (
            "{ \"schema\": 3 }",
            "its schema is 3, but must be 2: a newer release of dml-cuda wrote it",
        ),
        (
            "{ \"schema\": 1 }",
            "its schema is 1, but must be 2: an older release of dml-cuda wrote it",
        ),
        (
            "{ \"schema\": 2 }",
            "this is no results file: without the member `label`",
        ),
        (
            &by_hand.to_string(),
            "without each, medians, bytes, error or not_compared",
        ),
        (
            "{ \"schema\": 2, ",
            "it is not JSON with a schema: it ends within",
        ),
        (
            "{ \"schema\": \"2\" }",
            "string \"2\", but must be a whole number of type u32 at line 1",
        ),
        (
            &steady.replace("1048576", "-8"),
            "integer `-8`, but must be a whole number of type u64",
        ),
        (
            &steady.replace("\"copy\"", "\"copie\""),
            "the value `copie`, but must be one of `fill`, `copy`",
        ),
        (&steady.replace("[1.0]", "{}"), "object, but must be a list"),
        ("[]", "must be an object"),
        (
            &with(&[]).to_string(),
            "the case 'x, f32, copy' has no samples",
        ),
        (
            &with(&[0.0]).to_string(),
            "has a time of 0e0, but must be from 1e-6 to 1e12 microseconds",
        ),
        (
            &with(&[1e308]).to_string(),
            "has a time of 1e308, but must be from",
        ),
        (&nothing.to_string(), "the case 'x, f32, copy' has 0 bytes"),
        (&twice.to_string(), "the case 'x, f32, copy' is there twice"),
    ] {
        folder.write("r.json", run);
        folder.refuses(&["report", "r.json"], words);
    }
    folder.write("r.json", with(&[1.0]).to_string());
    folder.write("other.json", made("b", &[("y", "f32", &[1.0])]).to_string());
    folder.refuses(
        &["report", "r.json", "other.json"],
        "the results files share no case and no output",
    );
    // Outputs may be all that two runs share.
    for (name, bytes) in [("r.json", "00"), ("other.json", "01")] {
        let mut run = made(name, &[]);
        run["outputs"] = json!({ "o": { "bytes": bytes } });
        folder.write(name, run.to_string());
    }
    let said = folder.well(&["report", "r.json", "other.json"]);
    assert!(
        said.contains("other.json: 1 output different from r.json, perhaps"),
        "{said}"
    );
    let nine: Vec<&str> = std::iter::once("report").chain(["r.json"; 9]).collect();
    folder.run(&nine).fails(2, "");
}

/// A run may come through a pipe. What has no end is no run.
#[cfg(unix)]
#[test]
fn a_report_reads_pipes_to_an_end() {
    let folder = two_runs();
    let read = folder.shell("mkfifo pipe; cat b.json > pipe & cat a.json | \"$0\" report - pipe");
    assert!(read.well().contains(" SAME "), "{read:?}");
    folder.refuses(&["report", "/dev/zero"], "it is longer than 256 MiB");
    fs::File::create(folder.path("long.json"))
        .expect("made")
        .set_len((256 << 20) + 1)
        .expect("a hole");
    folder.refuses(&["report", "long.json"], "it is longer than 256 MiB");
}

/// Nothing is replaced but with --overwrite, and then only a run or a report. A model replaces no run either.
#[test]
fn a_report_replaces_nothing_unasked() {
    let folder = two_runs();
    let report = |options: &[&'static str]| [&["report", "a.json", "b.json"], options].concat();
    let before = folder.read("b.json");
    for overwrite in [&[][..], &["--overwrite"]] {
        let words = "b.json: it is a results file of this report, but must be another file";
        folder.refuses(&[&report(&["-o", "b.json"])[..], overwrite].concat(), words);
        assert_eq!(folder.read("b.json"), before);
    }
    folder.write("r", "");
    for format in ["table", "markdown", "csv", "json", "html", "svg", "table"] {
        let to = report(&["--format", format, "-o", "r"]);
        folder.refuses(&to, "--overwrite replaces results and reports");
        folder.well(&[&to[..], &["--overwrite"]].concat());
    }
    // Files of others, some of which begin as a report does, and a report that somebody edited.
    let report_with_mark = folder.well(&report(&["--format", "markdown"]));
    for (name, text) in [
        ("notes.md", "# Notes"),
        ("data.csv", "case,type,mode\n"),
        ("page.html", "<!DOCTYPE html><p>"),
        ("sarif.json", "{\n  \"runs\": []\n}"),
        ("letter.txt", "A: where is it?"),
        ("other.json", "{ \"schema\": 2, \"cases\": [] }"),
        (
            "edited.md",
            &(report_with_mark.replace("a tool", "a tool of mine")),
        ),
    ] {
        folder.write(name, text);
        let words = format!("{name}: it is neither a results file nor a report");
        folder.refuses(&report(&["-o", name, "--overwrite"]), &words);
        assert_eq!(folder.read(name), text.as_bytes());
    }
    replaces_no_run(&folder, "b.json");
    folder.refuses(
        &report(&["-o", "new/r.html"]),
        "the folder new is not there",
    );
    folder.refuses(
        &report(&["-o", "r.pdf"]),
        "r.pdf has no ending of a format, but must be .txt, .md, .csv",
    );
    assert!(folder.well(&report(&["-o", "-"])).contains("a: a tool"));
}

/// Every report is told by one mark: whatever it begins with, and as other programs write it again.
#[test]
fn every_report_is_known_for_what_it_is() {
    let folder = two_runs();
    let slower = made(
        "slower",
        &[("x", "f32", &STEADY.map(|sample| 2.0 * sample))],
    );
    let mixed = made("mixed", &[("x", "f32", &STEADY), ("y", "f32", &[1.0])]);
    let without =
        json!({ "schema": 2, "label": "without", "machine": {}, "timing": "", "cases": [] });
    for (name, run) in [("slower", slower), ("mixed", mixed), ("without", without)] {
        folder.write(&format!("{name}.json"), run.to_string());
    }
    for runs in [
        &["a", "b"][..],
        &["a", "slower"],
        &["slower", "a"],
        &["mixed", "b"],
        &["without"],
        &["a"],
    ] {
        let files: Vec<String> = runs.iter().map(|run| format!("{run}.json")).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        for format in ["table", "markdown", "csv", "json", "html", "svg"] {
            let report = [&["report"], &files[..], &["--format", format]].concat();
            let text = folder.well(&report);
            let marks = text.matches("dml-cuda-report:").count();
            assert!(
                marks == 1 || text.is_empty() || format == "html",
                "{format} {runs:?}: {text}"
            );
            let lines = text.replace('\n', "\r\n");
            // What Windows PowerShell makes of UTF-8 where the console has code page 437.
            let misread = text
                .replace('×', "├ù")
                .replace('µ', "┬╡")
                .replace('−', "ΓêÆ");
            for written in [
                text.clone().into_bytes(),
                lines.clone().into_bytes(),
                format!("\u{feff}{lines}").into_bytes(),
                crate::utf_16(&lines),
                crate::utf_16(&misread),
            ] {
                folder.write("r", written);
                folder.well(&[&report[..], &["-o", "r", "--overwrite"]].concat());
            }
        }
    }
}

/// Checks that a model does not write over a run.
fn replaces_no_run(folder: &Folder, name: &str) {
    let before = folder.read(name);
    let write = json!([{ "type": "writeFile", "resource": "A", "targetPath": name }]);
    let output = folder.run_model(
        &one_resource("UINT8", json!([7, 7, 7, 7]), write),
        &["-a", "cpu"],
    );
    output.fails(1, "it is a results file, which only --overwrite replaces");
    assert_eq!(folder.read(name), before);
}

/// On Windows too, a path may have more than 260 characters.
#[test]
fn a_path_may_be_long() {
    let folder = two_runs();
    let long = ["x".repeat(120), "y".repeat(120)].join("/");
    fs::create_dir_all(
        fs::canonicalize(&folder.0)
            .expect("it is there")
            .join(long.replace('/', std::path::MAIN_SEPARATOR_STR)),
    )
    .expect("made");
    let report = [&format!("{long}/report.md")[..], "--overwrite"];
    let written = [&["report", "a.json", "-o"], &report[..]].concat();
    folder.well(&written);
    folder.well(&written);
    let bench = [
        "bench",
        "-o",
        &format!("{long}/run.json"),
        "-a",
        "cpu",
        "--only",
        "check.fill.int",
    ];
    folder.well(&bench);
    folder.well(&["report", bench[2]]);
    let write =
        json!([{ "type": "writeFile", "resource": "A", "targetPath": format!("{long}/a.bin") }]);
    folder
        .run_model(&one_resource("UINT8", json!([7]), write), &["-a", "cpu"])
        .well();
}

/// PowerShell's `>` writes UTF-16. No model replaces such a run, and --overwrite does.
#[test]
fn a_run_may_be_utf_16() {
    let folder = two_runs();
    let run = String::from_utf8(folder.read("a.json")).expect("text");
    folder.write("wide.json", crate::utf_16(&run));
    assert!(folder.well(&["report", "wide.json"]).contains("a: a tool"));
    replaces_no_run(&folder, "wide.json");
    folder.well(&[
        "report",
        "a.json",
        "-o",
        "wide.json",
        "--format",
        "json",
        "--overwrite",
    ]);
    let big_endian: Vec<u8> = crate::utf_16(&run)
        .chunks(2)
        .flat_map(|unit| [unit[1], unit[0]])
        .collect();
    folder.write("big.json", big_endian);
    assert!(folder.well(&["report", "big.json"]).contains("a: a tool"));
    folder.write("odd.json", &crate::utf_16(&run)[1..]);
    folder.refuses(
        &["report", "odd.json"],
        "odd.json: the results cannot be read: ",
    );
    // A crash leaves zeros, and a folder is no file.
    folder.write("zeros.json", [0; 4096]);
    folder.refuses(
        &["report", "zeros.json"],
        "it begins with bytes of zero, but must be text",
    );
    fs::create_dir(folder.path("folder")).expect("made");
    for arguments in [&["report", "folder"][..], &["folder", "-a", "cpu"]] {
        let begun = std::time::Instant::now();
        folder.refuses(arguments, "it is a folder, but must be a file");
        assert!(begun.elapsed().as_secs() < 2, "nothing is waited for");
    }
}

#[test]
fn a_guard_fails_for_what_is_lost() {
    let folder = Folder::new();
    let arguments = |options: &[&'static str]| {
        [&["report", "a.json", "b.json", "--fail-on-slower"], options].concat()
    };
    let a = made(
        "a",
        &[
            ("x", "f32", &STEADY),
            ("y", "f32", &STEADY),
            ("z", "f32", &STEADY),
        ],
    );
    let with_output = |output: Value| {
        let mut run = a.clone();
        run["outputs"] = json!({ "o": output });
        run
    };
    let [zero, one] = ["00", "01"].map(|bytes| with_output(json!({ "bytes": bytes })));
    let error = json!({ "error": "why" });
    let mut without = a.clone();
    without["cases"][2] = case("z", "f32", "copy", 1 << 20, error.clone());
    // Three times slower is slower, however noisy.
    let noisy = |factor: f64| {
        let samples = [60.0, 80.0, 90.0, 100.0, 110.0, 120.0, 140.0].map(|sample| sample * factor);
        made("a", &[("x", "f32", &samples)])
    };
    let timed = case("x", "f32", "copy", 1 << 20, json!({ "each": STEADY }));
    let failed = on_machine(
        "a",
        vec![case("x", "f32", "copy", 1 << 20, error.clone())],
        1.0,
    );
    let [machine, another] = [1.0, 1.5].map(|factor| on_machine("a", vec![timed.clone()], factor));
    let (other_outputs, missing) = ("--allow-different-outputs", "--allow-missing");
    for (code, a, b, options, reason) in [
        (0, &a, &a, &[][..], ""),
        (
            1,
            &a,
            &made("b", &[("x", "f32", &STEADY)]),
            &[],
            "2 cases not in both runs (--allow-missing)",
        ),
        (0, &a, &made("b", &[("x", "f32", &STEADY)]), &[missing], ""),
        (1, &a, &zero, &[other_outputs], "1 output not in both runs"),
        (
            1,
            &one,
            &zero,
            &[missing],
            "1 output different (--allow-different-outputs)",
        ),
        (0, &one, &zero, &[other_outputs], ""),
        (
            1,
            &zero,
            &with_output(error.clone()),
            &[],
            "1 output failed",
        ),
        (
            1,
            &a,
            &without,
            &[],
            "1 case failed, which did not fail in the first run",
        ),
        (
            1,
            &without,
            &made("b", &[("x", "f32", &STEADY), ("y", "f32", &STEADY)]),
            &[],
            "1 case not in both runs",
        ),
        (1, &noisy(1.0), &noisy(3.0), &[], "1 case SLOWER"),
        (0, &noisy(1.0), &noisy(1.2), &[], ""),
        // A case that failed in both runs has not become slower, but nothing was timed.
        (2, &failed, &failed, &[], "no case has a time in both runs"),
        // The machine was another: nothing is decided.
        (
            2,
            &machine,
            &another,
            &[],
            "the machine was not the same: 1 baseline of",
        ),
    ] {
        folder.write("a.json", a.to_string());
        folder.write("b.json", b.to_string());
        let output = folder.run(&arguments(options));
        if code == 0 {
            output.well();
            continue;
        }
        let said = output.fails(code, reason);
        let is_only = said
            .lines()
            .last()
            .is_some_and(|last| last.contains(reason) && !last.contains(';'));
        assert!(code == 2 || is_only, "{said}");
    }
    for options in [
        &["b.json", "--threshold", "nan"][..],
        &["--threshold=-1"],
        &["b.json", "--allow-missing"],
        &["--fail-on-slower"],
    ] {
        folder
            .run(&[&["report", "a.json"], options].concat())
            .fails(2, "");
    }
}

#[test]
fn runs_have_names_of_their_own() {
    let folder = Folder::new();
    // Runs of one label are told apart by their files.
    let [first, later] = ["2026-01-02", "2026-01-03"];
    for (machines, options, labels) in [
        (
            &[["a", "1", "d"], ["b", "1", "d"]][..],
            &[][..],
            &["a", "b"][..],
        ),
        (&[["a", "1", "d"], ["a", "2", "d"]], &[], &["a, 0", "a, 1"]),
        (
            &[["a", "1", "d"], ["b", "2", "d"]],
            &["--label", "l", "--label", "l"],
            &["l, 0", "l, 1"],
        ),
        (
            &[["a", "", first], ["a", "1", later]],
            &[],
            &["a, 0", "a, 1"],
        ),
        (
            &[["a", "", ""], ["b", "", ""], ["a", "", ""]],
            &[],
            &["a, 0", "b", "a, 2"],
        ),
        (
            &[["", "", ""], ["a", "1", ""], ["a", "2", ""]],
            &[],
            &["0", "a, 1", "a, 2"],
        ),
    ] {
        let names = &["0.json", "1.json", "2.json", "3.json"][..machines.len()];
        for (name, [label, commit, date]) in names.iter().zip(machines) {
            let mut run = made(label, &[("x", "f32", &[1.0])]);
            (run["machine"]["commit"], run["machine"]["date"]) = (json!(commit), json!(date));
            folder.write(name, run.to_string());
        }
        let csv = folder.well(&[&["report"], names, options, &["--format", "csv"]].concat());
        let mut records = csv::Reader::from_reader(csv.as_bytes());
        let found: Vec<String> = records
            .records()
            .map(|record| record.expect("a record")[4].to_owned())
            .collect();
        assert_eq!(found, labels);
    }
}

/// Three runs with all that a report shows: groups, a floor, failed cases and outputs, another machine, and names that
/// must not act on a terminal, a page or a spreadsheet.
fn all_that_is_shown() -> [Value; 3] {
    let (formula, tag, escape) = (
        "=HYPERLINK(\"x\")",
        "<script>alert(1)</script>|",
        "a\u{1b}[2J\u{202e}\u{2028}b",
    );
    let made = |label: &str, factors: [f64; 7], of_baseline: f64| {
        let timed = |((name, data_type, mode, bytes), factor): ((&str, &str, &str, u64), f64)| {
            let unit = if bytes == 8 { 0.004321 } else { 1.0 };
            let (each, baseline) = (STEADY.map(|sample| sample * factor * unit), 80.0 * unit);
            let side_by_side = name.starts_with("lanes");
            case(
                name,
                data_type,
                mode,
                bytes,
                json!({ "each": each, "baseline": baseline, "side_by_side": side_by_side }),
            )
        };
        let work = [
            ("x", "u8", "copy", 64 << 20),
            (formula, "f16", "copy", 1 << 20),
            ("2^26 lanes of 4", "f32", "copy", 1 << 20),
            ("lanes odd [9]", "i64", "copy", 1 << 20),
            ("x", "u8", "fill", 1 << 20),
            ("x", "f32", "in place", 1 << 20),
            (tag, "u8", "copy", 8),
        ];
        let mut cases: Vec<Value> = work.into_iter().zip(factors).map(timed).collect();
        let each = json!({ "each": [640.0 * of_baseline] });
        cases.push(case("512 MiB", "u32", "baseline of copies", 1 << 30, each));
        on_machine(label, cases, of_baseline)
    };
    let mut a = made(
        &"a label that is longer than any chart is wide, ".repeat(3),
        [1.0; 7],
        1.0,
    );
    let mut b = made(
        "b <&>\n# *c* _|_ [d](e) `f`",
        [0.5, 0.5, 0.25, 2.0, 0.5, 0.5, 1.0],
        1.0,
    );
    let mut c = made(escape, [4.0; 7], 1.5);
    let causes = [
        ("failed", format!("\"Sizes\" <1>,\n{escape}")),
        ("refused", "no".to_owned()),
    ];
    for (n, (name, error)) in causes.iter().enumerate() {
        let failed = case(name, "f32", "copy", 1 << 20, json!({ "error": error }));
        b["cases"].as_array_mut().expect("cases").insert(n, failed);
    }
    a["outputs"] = json!({ "o": { "bytes": "00" }, "p": { "bytes": "00" } });
    b["outputs"] = json!({ "o": { "bytes": "01" }, "p": { "error": escape } });
    c["outputs"] = json!({ "o": { "not_compared": "DirectML's provider is wrong" } });
    c["planned"] = json!(12);
    b["timing"] = json!("by an hourglass");
    [a, b, c]
}

#[test]
fn cases_of_one_file_are_counted_and_listed_on_demand() {
    let folder = Folder::new();
    let both: (&str, &str, &[f64]) = ("both", "f32", &STEADY);
    let first = [both, ("lonely", "f32", &STEADY)];
    let second = [both, ("single", "u8", &STEADY), ("single", "f16", &STEADY)];
    folder.write("a.json", made("a", &first).to_string());
    folder.write("b.json", made("b", &second).to_string());
    let report = |more: &[&str]| folder.well(&[&["report", "a.json", "b.json"], more].concat());
    for format in ["table", "markdown"] {
        let short = report(&["--format", format]);
        let words = "Not listed: 3 cases that only one of two files has (--all-cases)";
        assert!(short.contains(words), "{short}");
        assert!(
            short.contains("both, f32") && !short.contains("lonely") && !short.contains("single"),
            "{short}"
        );
        let long = report(&["--format", format, "--all-cases"]);
        assert!(!long.contains("Not listed"), "{long}");
        for case in ["both, f32", "lonely", "single", "f16"] {
            assert!(long.contains(case), "{long}");
        }
    }
    // A page has them, folded.
    let page = report(&["--format", "html"]);
    let (open, folded) = page.split_once("<details>").expect("a folded part");
    assert!(
        open.contains("both, f32") && !open.contains("lonely") && !open.contains("single"),
        "{open}"
    );
    let summary = "<summary>3 cases that only one of two files has</summary>";
    assert!(folded.starts_with(summary), "{folded}");
    for case in ["lonely, f32", "single, u8", "single, f16"] {
        assert!(folded.contains(case), "{folded}");
    }
}

/// `UPDATE_GOLDEN=1` writes the files.
#[test]
fn reports_are_the_golden_files() {
    let folder = Folder::new();
    let names = ["a.json", "b.json", "c.json"];
    names
        .iter()
        .zip(all_that_is_shown())
        .for_each(|(name, run)| folder.write(name, run.to_string()));
    for (format, ending) in [
        ("table", "txt"),
        ("markdown", "md"),
        ("csv", "csv"),
        ("json", "json"),
        ("html", "html"),
        ("svg", "svg"),
    ] {
        let text = folder.well(&[&["report"], &names[..], &["--format", format]].concat());
        let name = format!("report.{ending}");
        assert!(
            format == "json" || !text.contains(['\u{1b}', '\u{202e}', '\u{2028}']),
            "{name}"
        );
        // A terminal has 80 columns.
        assert!(
            format != "table" || text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        // The logarithms of Windows may differ in the last digit, which only JSON has.
        if format != "json" || cfg!(unix) {
            assert_golden(&name, &text);
        }
    }
    // Windows has no names with control characters.
    let (name, shown) = if cfg!(windows) {
        ("\u{202e}.md", "\\u{202e}.md'")
    } else {
        ("\u{202e}\u{1b}.md", "\\u{202e}\\u{1b}.md'")
    };
    let said = folder.well(&["report", "a.json", "-o", name]);
    assert!(said.contains(shown), "{said}");
}
