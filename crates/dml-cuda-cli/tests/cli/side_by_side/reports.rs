//! `report`: what it shows, and what it refuses.

use std::fs;
use std::path::Path;

use serde_json::{json, Value};

#[cfg(unix)]
use super::text;
use super::{refused, run, well};

const STEADY: [f64; 7] = [100.0, 101.0, 99.0, 100.0, 101.0, 99.0, 100.0];

/// A run with a case for each name, of these samples.
fn made(label: &str, cases: &[(&str, &str, &[f64])]) -> Value {
    let case = |(case, data_type, samples): &(&str, &str, &[f64])| json!({ "case": case, "type": data_type, "mode": "copy", "bytes": 1 << 20, "dispatches": 1, "each": samples });
    let machine = json!({ "tool": "a tool", "commit": "abc", "device": "Some GPU", "date": "2026-11-20T01:02:03Z" });
    // A baseline tells that the machine was the same.
    let mut cases: Vec<Value> = cases.iter().map(case).collect();
    cases.push(baseline("1 MiB", 1.0));
    json!({ "schema": 2, "label": label, "machine": machine, "timing": "", "cases": cases })
}

/// Plain copies, as much slower as a factor.
fn baseline(size: &str, factor: f64) -> Value {
    let each = STEADY.map(|sample| sample * factor);
    json!({ "case": size, "type": "u32", "mode": "baseline of copies", "bytes": 2 << 20, "dispatches": 1, "each": each })
}

fn write(folder: &Path, name: &str, run: &Value) {
    fs::write(folder.join(name), run.to_string()).expect("written");
}

/// A folder with `a.json` and `b.json`, two runs of one case.
fn two_runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a", "b"] {
        write(folder.path(), &format!("{name}.json"), &made(name, &[("x", "f32", &STEADY)]));
    }
    folder
}

#[test]
fn runs_that_are_none_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(refused(folder.path(), &["report", "r.json"]).contains("the run cannot be read"));
    let with = |samples: &[f64]| made("a", &[("x", "f32", samples)]);
    let mut nothing = with(&[1.0]);
    nothing["cases"][0]["bytes"] = json!(0);
    let mut by_hand = with(&[1.0]);
    by_hand["cases"][0].as_object_mut().expect("a case").remove("each");
    let twice = made("a", &[("x", "f32", &[1.0]), ("x", "f32", &[1.0])]);
    let steady = with(&[1.0]).to_string();
    for (run, words) in [
        ("{ \"schema\": 3 }", "its schema is 3, must be 2: a newer release of dml-cuda wrote it"),
        ("{ \"schema\": 1 }", "its schema is 1, must be 2: an older release of dml-cuda wrote it"),
        ("{ \"schema\": 2 }", "this is no run: without the member `label`"),
        (&by_hand.to_string(), "without each, medians, bytes, error or not_compared"),
        ("{ \"schema\": 2, ", "it is not JSON with a schema: it ends within"),
        ("{ \"schema\": \"2\" }", "string \"2\", must be a whole number of type u32 at line 1"),
        (&steady.replace("1048576", "-8"), "integer `-8`, must be a whole number of type u64"),
        (&steady.replace("\"copy\"", "\"copie\""), "the value `copie`, must be one of `fill`, `copy`"),
        (&steady.replace("[1.0]", "{}"), "object, must be a list"),
        ("[]", "must be an object"),
        (&with(&[]).to_string(), "the case 'x, f32, copy' has no samples"),
        (&with(&[0.0]).to_string(), "has a time of 0e0, must be from 1e-6 to 1e12 microseconds"),
        (&with(&[1e308]).to_string(), "has a time of 1e308, must be from"),
        (&nothing.to_string(), "the case 'x, f32, copy' has 0 bytes"),
        (&twice.to_string(), "the case 'x, f32, copy' is there twice"),
    ] {
        fs::write(folder.path().join("r.json"), run).expect("written");
        let said = refused(folder.path(), &["report", "r.json"]);
        assert!(said.contains(words), "{said}");
    }
    write(folder.path(), "r.json", &with(&[1.0]));
    write(folder.path(), "other.json", &made("b", &[("y", "f32", &[1.0])]));
    let said = refused(folder.path(), &["report", "r.json", "other.json"]);
    assert!(said.contains("the runs share no case and no output"), "{said}");
    // Outputs may be all that two runs share.
    for (name, bytes) in [("r.json", "00"), ("other.json", "01")] {
        let mut run = made(name, &[]);
        run["outputs"] = json!({ "o": { "bytes": bytes }, "p": { "bytes": "00" } });
        write(folder.path(), name, &run);
    }
    let said = well(folder.path(), &["report", "r.json", "other.json"]);
    assert!(said.contains("B: 1 output different from A's: o"), "{said}");
    let nine: Vec<&str> = std::iter::once("report").chain(["r.json"; 9]).collect();
    assert_eq!(run(folder.path(), &nine).status.code(), Some(2));
}

/// A run may come through a pipe. What has no end is no run.
#[cfg(unix)]
#[test]
fn a_report_reads_pipes_to_an_end() {
    let folder = two_runs();
    let line = "cat a.json | \"$0\" report - <(cat b.json)";
    let program = crate::runner();
    let mut bash = std::process::Command::new("bash");
    let output =
        bash.current_dir(folder.path()).args(["-c", line]).arg(program.get_program()).output().expect("bash starts");
    assert!(output.status.success() && text(&output.stdout).contains(" SAME "), "{}", text(&output.stderr));
    assert!(refused(folder.path(), &["report", "/dev/zero"]).contains("it is longer than 256 MiB"));
    fs::File::create(folder.path().join("long.json")).expect("made").set_len((256 << 20) + 1).expect("a hole");
    assert!(refused(folder.path(), &["report", "long.json"]).contains("it is longer than 256 MiB"));
}

/// Nothing is replaced but with --overwrite, and then only a run or a report. A model replaces no run either.
#[test]
fn a_report_replaces_nothing_unasked() {
    let folder = two_runs();
    let path = |name: &str| folder.path().join(name);
    let report = |options: &[&'static str]| [&["report", "a.json", "b.json"], options].concat();
    let before = fs::read(path("b.json")).expect("a run");
    for overwrite in [&[][..], &["--overwrite"]] {
        let said = refused(folder.path(), &[&report(&["-o", "b.json"])[..], overwrite].concat());
        assert!(said.contains("b.json: it is a run of this report, must be another file"), "{said}");
        assert_eq!(fs::read(path("b.json")).expect("there"), before);
    }
    fs::write(path("r"), "").expect("written");
    for format in ["table", "markdown", "csv", "json", "html", "svg", "table"] {
        let to = report(&["--format", format, "-o", "r"]);
        assert!(refused(folder.path(), &to).contains("--overwrite replaces a run or a report"));
        well(folder.path(), &[&to[..], &["--overwrite"]].concat());
    }
    // Files of others, some of which begin as a report does.
    for (name, text) in [
        ("notes.md", "# Notes"),
        ("data.csv", "case,type,mode\n"),
        ("page.html", "<!DOCTYPE html><p>"),
        ("sarif.json", "{\n  \"runs\": []\n}"),
        ("letter.txt", "A: where is it?"),
        ("other.json", "{ \"schema\": 2, \"cases\": [] }"),
    ] {
        fs::write(path(name), text).expect("written");
        let said = refused(folder.path(), &report(&["-o", name, "--overwrite"]));
        assert!(said.contains(name) && said.contains("it is neither a run nor a report"), "{said}");
        assert_eq!(fs::read_to_string(path(name)).expect("there"), text);
    }
    let model = json!({
        "resources": { "Out": { "initialValuesDataType": "UINT8", "initialValues": [7, 7, 7, 7] } },
        "dispatchables": {},
        "commands": [{ "type": "writeFile", "resource": "Out", "targetPath": "b.json" }]
    });
    write(folder.path(), "model.json", &model);
    assert!(
        refused(folder.path(), &["model.json", "-a", "cpu"]).contains("it is a run, which only --overwrite replaces")
    );
    assert_eq!(fs::read(path("b.json")).expect("there"), before);
    assert!(refused(folder.path(), &report(&["-o", "new/r.html"])).contains("the folder new is not there"));
    let said = refused(folder.path(), &report(&["-o", "r.pdf"]));
    assert!(said.contains("r.pdf has no ending of a format, must be .txt, .md, .csv"), "{said}");
    assert!(well(folder.path(), &report(&["-o", "-"])).starts_with("A: a"));
}

/// PowerShell's `>` writes UTF-16. No model replaces such a run, and --overwrite does.
#[test]
fn a_run_may_be_utf_16() {
    let folder = two_runs();
    let run = fs::read_to_string(folder.path().join("a.json")).expect("a run");
    fs::write(folder.path().join("wide.json"), crate::utf_16(&run)).expect("written");
    assert!(well(folder.path(), &["report", "wide.json"]).starts_with("A: a"));
    let mut model = crate::small();
    model["commands"] = json!([{ "type": "writeFile", "resource": "Out", "targetPath": "wide.json" }]);
    crate::write_model(folder.path(), &model);
    assert!(
        refused(folder.path(), &["model.json", "-a", "cpu"]).contains("it is a run, which only --overwrite replaces")
    );
    assert_eq!(fs::read(folder.path().join("wide.json")).expect("there"), crate::utf_16(&run));
    well(folder.path(), &["report", "a.json", "-o", "wide.json", "--format", "json", "--overwrite"]);
    fs::write(folder.path().join("odd.json"), &crate::utf_16(&run)[1..]).expect("written");
    assert!(refused(folder.path(), &["report", "odd.json"]).contains("odd.json: the run cannot be read: "));
}

/// A write that fails half way leaves the older file, and no other.
#[cfg(unix)]
#[test]
fn a_report_that_does_not_fit_leaves_the_older_one() {
    let folder = two_runs();
    well(folder.path(), &["report", "a.json", "-o", "page.html"]);
    let older = fs::read(folder.path().join("page.html")).expect("a report");
    // Files end at one block, and a write beyond that is an error.
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let output = std::process::Command::new("sh")
        .current_dir(folder.path())
        .args(["-c", limited])
        .arg(crate::runner().get_program())
        .args(["report", "a.json", "b.json", "-o", "page.html", "--overwrite"])
        .output()
        .expect("sh starts");
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.starts_with("ERROR: page.html: "), "{said}");
    assert_eq!(fs::read(folder.path().join("page.html")).expect("there"), older);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3);
}

#[test]
fn a_floor_is_of_512_mib_in_the_same_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = made("a", &[("x", "f32", &[100.0; 3]), ("y", "f32", &[1.0; 3])]);
    run["cases"][0]["bytes"] = json!(64 << 20);
    run["cases"][0]["baseline"] = json!(80.0);
    run["cases"].as_array_mut().expect("cases").push(json!({ "case": "512 MiB", "type": "u32",
        "mode": "baseline of copies", "bytes": 1 << 30, "dispatches": 1, "each": [640.0] }));
    write(folder.path(), "a.json", &run);
    let csv = well(folder.path(), &["report", "a.json", "--format", "csv"]);
    let mut records = csv::Reader::from_reader(csv.as_bytes());
    let at = |name: &str| csv.lines().next().expect("a header").split(',').position(|column| column == name);
    let (of_baseline, of_floor) = (at("of_baseline").expect("a column"), at("of_floor").expect("a column"));
    let records: Vec<_> = records.records().map(|record| record.expect("a record")).collect();
    assert_eq!((&records[0][of_baseline], &records[0][of_floor]), ("0.8000", "0.4000"));
    assert_eq!(&records[1][of_floor], "", "1 MiB waits for its launch");
}

#[test]
fn a_guard_fails_for_what_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = |options: &[&'static str]| [&["report", "a.json", "b.json", "--fail-on-slower"], options].concat();
    let a = made("a", &[("x", "f32", &STEADY), ("y", "f32", &STEADY), ("z", "f32", &STEADY)]);
    let with_output = |bytes: &str| {
        let mut run = a.clone();
        run["outputs"] = json!({ "o": { "bytes": bytes } });
        run
    };
    // Three times slower is slower, however noisy.
    let noisy = |factor: f64| {
        let samples = [60.0, 80.0, 90.0, 100.0, 110.0, 120.0, 140.0].map(|sample| sample * factor);
        made("a", &[("x", "f32", &samples)])
    };
    let (other_outputs, missing) = ("--allow-different-outputs", "--allow-missing");
    for (a, b, options, reason) in [
        (&a, &a, &[][..], ""),
        (&a, &made("b", &[("x", "f32", &STEADY)]), &[], "2 cases not in both runs (--allow-missing)"),
        (&a, &made("b", &[("x", "f32", &STEADY)]), &[missing], ""),
        (&a, &with_output("00"), &[other_outputs], "1 output not in both runs"),
        (&with_output("01"), &with_output("00"), &[missing], "1 output different (--allow-different-outputs)"),
        (&with_output("01"), &with_output("00"), &[other_outputs], ""),
        (&noisy(1.0), &noisy(3.0), &[], "1 case SLOWER"),
        (&noisy(1.0), &noisy(1.2), &[], ""),
    ] {
        write(folder.path(), "a.json", a);
        write(folder.path(), "b.json", b);
        if reason.is_empty() {
            well(folder.path(), &arguments(options));
        } else {
            let said = refused_last(folder.path(), &arguments(options));
            assert!(said.contains(reason) && !said.contains(';'), "{said}");
        }
    }
    assert!(well(folder.path(), &["report", "a.json", "b.json"]).contains("UNSURE"));
    // A case that failed in both runs has not become slower, but nothing was timed.
    let mut failed = made("a", &[("x", "f32", &[])]);
    failed["cases"][0]["error"] = json!("why");
    failed["cases"][0].as_object_mut().expect("a case").remove("each");
    write(folder.path(), "a.json", &failed);
    write(folder.path(), "b.json", &failed);
    let output = run(folder.path(), &arguments(&[]));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("no case has a time in both runs"), "{said}");
    // The machine was another: nothing is decided.
    for (name, factor) in [("a.json", 1.0), ("b.json", 1.5)] {
        let mut run = made("a", &[("x", "f32", &STEADY)]);
        run["cases"].as_array_mut().expect("cases").push(baseline("8 MiB", factor));
        write(folder.path(), name, &run);
    }
    let output = run(folder.path(), &arguments(&[]));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("the machine was not the same: 1 baseline of"), "{said}");
    for options in [
        &["b.json", "--threshold", "nan"][..],
        &["--threshold=-1"],
        &["b.json", "--allow-missing"],
        &["--fail-on-slower"],
    ] {
        let output = run(folder.path(), &[&["report", "a.json"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

/// Runs it, which must fail with 1 behind the report that it prints; the last line of its errors.
fn refused_last(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned()
}

/// A failed case is a row of its own, with its cause and without figures, in the suite's order.
#[test]
fn a_failed_case_is_a_row_with_its_cause() {
    let folder = two_runs();
    let mut b = made("b", &[("x", "f32", &STEADY)]);
    let error = "Failed to parse the model: \"Sizes\" <1>, line 7";
    let failed =
        json!({ "case": "y", "type": "f32", "mode": "copy", "bytes": 1 << 20, "dispatches": 1, "error": error });
    b["cases"].as_array_mut().expect("cases").insert(0, failed);
    b["outputs"] = json!({ "o": { "error": "no memory" } });
    write(folder.path(), "b.json", &b);
    let compared = |format: &str| well(folder.path(), &["report", "a.json", "b.json", "--format", format]);
    for (format, row) in [("table", " failed "), ("markdown", "| failed ")] {
        let text = compared(format).replace("&lt;", "<");
        let row = text.lines().find(|line| line.starts_with(row)).expect("the verdict comes first");
        assert!(
            row.contains(" y, f32, copy: ") && (format == "table" || row.contains(&format!("B failed: {error}"))),
            "{text}"
        );
        assert!(text.contains("B: 1 case has no time") && text.contains("B: 1 output failed: o (no memory)"), "{text}");
    }
    let csv = compared("csv");
    let mut records = csv::Reader::from_reader(csv.as_bytes());
    let last = records.records().last().expect("records").expect("a record");
    assert_eq!((&last[0], &last[7], &last[14]), ("y", "", format!("failed: {error}").as_str()));
    let only = well(folder.path(), &["report", "b.json"]);
    let line = |word: &str| only.lines().position(|line| line.starts_with(&format!(" {word}, f32"))).expect("a row");
    assert!(line("y") < line("x"), "{only}");
    let json: Value = serde_json::from_str(&compared("json")).expect("JSON");
    assert_eq!(json["rows"][1]["causes"], json!([null, format!("failed: {error}")]));
    let cell = "B failed: Failed to parse the model: &quot;Sizes&quot; &lt;1&gt;, line 7</td>";
    assert!(compared("html").contains(cell));
    let guard = ["report", "a.json", "b.json", "--fail-on-slower", "--allow-missing"];
    let said = refused_last(folder.path(), &guard);
    assert!(said.contains("1 case failed, which did not fail in the first run; 1 output failed"), "{said}");
}

/// Names come from anywhere: a terminal, a page and a spreadsheet get them without their powers.
#[test]
fn names_are_escaped() {
    let folder = tempfile::tempdir().expect("a folder");
    let (escape, formula, tag) = ("a\u{1b}[2J\n\u{202e}\u{2028}b", "=HYPERLINK(\"x\")", "<script>alert(1)</script>|");
    let cases = [escape, formula, tag].map(|name| (name, "f32", &[1.0][..]));
    let mut run = made(escape, &cases);
    run["cases"][0].as_object_mut().expect("a case").remove("each");
    run["cases"][0]["error"] = json!(escape);
    run["outputs"] = json!({ escape: { "error": escape } });
    write(folder.path(), "r.json", &run);
    // Windows has no names with control characters.
    let (name, shown) =
        if cfg!(windows) { ("\u{202e}.md", "\\u{202e}.md'") } else { ("\u{202e}\u{1b}.md", "\\u{202e}\\u{1b}.md'") };
    let said = well(folder.path(), &["report", "r.json", "-o", name]);
    assert!(said.contains(shown), "{said}");
    for format in ["table", "markdown", "csv", "html"] {
        let text = well(folder.path(), &["report", "r.json", "--format", format]);
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{2028}']), "{format}");
        assert!(format == "table" || format == "csv" || !text.contains("<script>"), "{format}");
        assert!(format != "csv" || !text.contains("\n=") && !text.contains("\n\"="), "{text}");
    }
}

#[test]
fn runs_have_names_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let a = made("a", &[("x", "f32", &[1.0])]);
    let mut b = made("b", &[("x", "f32", &[1.0])]);
    b["timing"] = json!("by an hourglass");
    write(folder.path(), "a.json", &a);
    write(folder.path(), "b.json", &b);
    let warned = well(folder.path(), &["report", "a.json", "b.json"]);
    assert!(warned.contains("A and B were timed differently. A: not known. B: by an hourglass\n"), "{warned}");
    // Runs of one label are told apart by their files.
    let [first, later] = ["2026-01-02", "2026-01-03"];
    for (machines, options, labels) in [
        (&[["a", "1", "d"], ["b", "1", "d"]][..], &[][..], &["a", "b"][..]),
        (&[["a", "1", "d"], ["a", "2", "d"]], &[], &["a, 0", "a, 1"]),
        (&[["a", "1", "d"], ["b", "2", "d"]], &["--label", "l", "--label", "l"], &["l, 0", "l, 1"]),
        (&[["a", "", first], ["a", "1", later]], &[], &["a, 0", "a, 1"]),
        (&[["a", "", ""], ["b", "", ""], ["a", "", ""]], &[], &["a, 0", "b", "a, 2"]),
        (&[["", "", ""], ["a", "1", ""], ["a", "2", ""]], &[], &["0", "a, 1", "a, 2"]),
    ] {
        let names = &["0.json", "1.json", "2.json", "3.json"][..machines.len()];
        for (name, [label, commit, date]) in names.iter().zip(machines) {
            let mut run = made(label, &[("x", "f32", &[1.0])]);
            (run["machine"]["commit"], run["machine"]["date"]) = (json!(commit), json!(date));
            write(folder.path(), name, &run);
        }
        let report =
            |format: &'static str| well(folder.path(), &[&["report"], names, options, &["--format", format]].concat());
        let csv = report("csv");
        let mut records = csv::Reader::from_reader(csv.as_bytes());
        let found: Vec<String> = records.records().map(|record| record.expect("a record")[4].to_owned()).collect();
        assert_eq!(found, labels);
        let page = report("html");
        assert!(labels.iter().all(|label| page.contains(label)), "{labels:?}");
    }
}

#[test]
fn a_chart_has_a_bar_for_each_group_and_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = "a label that is far longer than any chart is wide, ".repeat(6);
    let run = |label: &str, factor: f64| made(label, &[("x", "u8", &STEADY.map(|sample| sample * factor))]);
    let names = ["a.json", "b.json", "c.json"];
    for (name, (label, factor)) in names.iter().zip([(long.as_str(), 1.0), ("b <&>", 0.5), ("c", 4.0)]) {
        write(folder.path(), name, &run(label, factor));
    }
    let page = well(folder.path(), &["report", "a.json", "b.json", "c.json", "--format", "html"]);
    assert_eq!(page.matches("<svg ").count(), 1);
    well(folder.path(), &["report", "a.json", "b.json", "c.json", "-o", "chart.svg"]);
    let alone = fs::read_to_string(folder.path().join("chart.svg")).expect("a chart");
    assert!(alone.contains(&format!(">A: {}…<", &long[..62])), "a long label is cut: {alone}");
    let words = [
        "Speed compared with A",
        "rows and blocks, each with one length: B 1, C 1 cases<",
        "lines: 95 % (bootstrap)",
        "REVERSE_SUBSEQUENCES",
        ">B: 2.00 times as fast<",
        ">A: 4.00 times as fast<",
        "B: b &lt;&amp;&gt;",
    ];
    for words in words.iter().chain(&["viewBox=\"0 0 ", "prefers-color-scheme: dark"]) {
        assert!(alone.contains(words), "{words}: {alone}");
    }
    // What makes the bars doubtful is in the chart, which people copy.
    let mut other = run("c", 4.0);
    other["cases"][1] = baseline("1 MiB", 1.5);
    other["planned"] = json!(12);
    let failed = json!({ "case": "y", "type": "u8", "mode": "copy", "bytes": 8, "dispatches": 1, "error": "no" });
    other["cases"].as_array_mut().expect("cases").push(failed);
    write(folder.path(), "d.json", &other);
    let doubtful = well(folder.path(), &["report", "a.json", "d.json", "--format", "svg"]);
    for mark in [
        ">WARNING: the machine was not the same",
        ">WARNING: B is partial: 9 cases",
        ">B: 1 case has no time",
        ">A: 4.00 times as fast ?<",
    ] {
        assert!(doubtful.contains(mark) && !alone.contains(mark), "{mark}: {doubtful}");
    }
    // Groups are those that a user knows.
    let mut many = run("many", 1.0);
    let kinds = [("x", "fill"), ("2^26 lanes of 4", "copy"), ("lanes odd [9]", "copy"), ("x", "in place")];
    let sized = |bytes: u32| move |(case, mode): (&str, &str)| json!({ "case": format!("{case} {bytes}"), "type": "u8", "mode": mode, "bytes": bytes, "side_by_side": case.starts_with("lanes"), "dispatches": 1, "each": STEADY });
    many["cases"]
        .as_array_mut()
        .expect("cases")
        .extend(kinds.map(sized(1 << 20)).into_iter().chain(kinds.map(sized(1))));
    write(folder.path(), "many.json", &many);
    let found: Value =
        serde_json::from_str(&well(folder.path(), &["report", "many.json", "many.json", "--format", "json"]))
            .expect("JSON");
    let groups = found["groups"].as_array().expect("groups").iter();
    let groups: Vec<(&str, &Value)> =
        groups.map(|group| (group["name"].as_str().unwrap_or_default(), &group["speed_ups"][0]["cases"])).collect();
    let [rows, lanes] = ["rows and blocks, each with one length", "lanes side by side, each with a length"];
    let counts = [("fills", 1), (rows, 2), (lanes, 1), ("less than 1 MB", 4), ("in place", 1)];
    assert_eq!(json!(groups), json!(counts));
    let table = well(folder.path(), &["report", "a.json", "b.json", "c.json"]);
    let words: Vec<&str> = table.split_whitespace().collect();
    assert!(words.join(" ").contains("2.00 1.96 to 2.04 1 "), "{table}");
    // It fits a terminal of 80 columns, and the verdict comes first in the page.
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(page.contains("<thead><tr><th>B</th><th>A / B</th><th>95 %</th><th>case</th>"), "{page}");
}
