//! `report` and `compare`: what they show, and what they refuse.

use std::fs;

use serde_json::{json, Value};

#[cfg(unix)]
use super::text;
use super::{read, refused, run, well};
#[cfg(unix)]
use crate::runner;

#[test]
fn runs_that_are_none_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |run: Value| fs::write(folder.path().join("r.json"), run.to_string()).expect("written");
    let said = || refused(folder.path(), &["report", "r.json"]);
    assert!(said().contains("the run cannot be read"));
    write(json!({ "schema": 2, "label": "from the future" }));
    assert!(said().contains("its schema is 2, must be at most 1: a newer release of dml-cuda wrote it"));
    write(json!({ "schema": 1 }));
    assert!(said().contains("this is no run"));
    fs::write(folder.path().join("r.json"), "{ \"schema\": 1, ").expect("written");
    assert!(said().contains("it is not JSON with a schema"));
    let run = |samples: Value| {
        let case = json!({ "case": "x", "type": "f32", "mode": "copy", "bytes": 8, "dispatches": 1, "samples": { "each": samples } });
        json!({ "schema": 1, "label": "a", "machine": {}, "timing": "", "cases": [case] })
    };
    write(run(json!([])));
    assert!(said().contains("the case 'x, f32, copy' has no samples"));
    write(run(json!([0.0])));
    assert!(said().contains("has a time of 0, must be microseconds above 0"));
    let mut nothing = run(json!([1.0]));
    nothing["cases"][0]["bytes"] = json!(0);
    write(nothing);
    assert!(said().contains("the case 'x, f32, copy' has 0 bytes"));
    fs::write(folder.path().join("t.csv"), "case,type,mode,microseconds,bytes\nx,f32,copy,-1,8\n").expect("written");
    assert!(refused(folder.path(), &["import", "t.csv", "-o", "t.json"]).contains("has a time of -1"));
    assert!(refused(folder.path(), &["import", "logs", "-o", "t.json"]).contains("the folder 'logs' is not there"));
    let mut twice = run(json!([1.0]));
    twice["cases"] = json!([twice["cases"][0], twice["cases"][0]]);
    write(twice);
    assert!(said().contains("the case 'x, f32, copy' is there twice"));
    write(run(json!([1.0])));
    assert!(refused(folder.path(), &["import", "r.json", "-o", "t.json"]).contains("r.json is a run, which report"));
    let mut other = run(json!([1.0]));
    other["cases"][0]["case"] = json!("y");
    fs::write(folder.path().join("other.json"), other.to_string()).expect("written");
    assert!(refused(folder.path(), &["compare", "r.json", "other.json"]).contains("the runs share no case"));
    // Outputs may be all that two runs share.
    for (name, bytes) in [("r.json", "00"), ("other.json", "01")] {
        let outputs = json!({ "o": bytes, "p": "00" });
        let run = json!({ "schema": 1, "label": name, "machine": {}, "timing": "", "cases": [], "outputs": outputs });
        fs::write(folder.path().join(name), run.to_string()).expect("written");
    }
    let said = refused(folder.path(), &["compare", "r.json", "other.json"]);
    assert!(said.contains("the runs share no case") && said.contains("B: 1 of 2 outputs differ from A's: o"), "{said}");
    assert!(refused(folder.path(), &["bench", ".", "-o", "b.json"]).contains("the manifest of a suite cannot be read"));
}

/// What has no end, and what nobody writes, is no run.
#[cfg(unix)]
#[test]
fn a_report_does_not_wait_for_what_is_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("link.json")).expect("linked");
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("fifo.json")).status();
    assert!(made.expect("mkfifo runs").success());
    for name in ["/dev/zero", "link.json", "fifo.json"] {
        let said = refused(folder.path(), &["report", name]);
        assert!(said.contains("the run cannot be read: it is not a regular file"), "{said}");
    }
    fs::File::create(folder.path().join("long.json")).expect("made").set_len((256 << 20) + 1).expect("a hole");
    assert!(refused(folder.path(), &["report", "long.json"]).contains("it is longer than 256 MiB"));
}

/// A run with a case for each name, of these samples.
fn made(label: &str, cases: &[(&str, &str, &[f64])]) -> Value {
    let case = |(case, data_type, samples): &(&str, &str, &[f64])| {
        json!({ "case": case, "type": data_type, "mode": "copy", "bytes": 1 << 20, "dispatches": 1,
            "samples": { "each": samples } })
    };
    let machine = json!({ "tool": "a tool", "commit": "abc", "device": "Some GPU", "date": "2026-11-20T01:02:03Z" });
    json!({ "schema": 1, "label": label, "machine": machine, "timing": "", "cases": cases.iter().map(case).collect::<Vec<_>>() })
}

/// A folder with `a.json` and `b.json`, two runs of one case.
fn two_runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a", "b"] {
        let run = made(name, &[("x", "f32", &[1.0, 1.0, 1.0])]);
        fs::write(folder.path().join(format!("{name}.json")), run.to_string()).expect("written");
    }
    folder
}

#[cfg(unix)]
#[test]
fn a_run_is_replaced_by_nothing_else() {
    let folder = two_runs();
    let path = |name: &str| folder.path().join(name);
    let before = fs::read(path("b.json")).expect("a run");
    fs::create_dir(path("sub")).expect("made");
    std::os::unix::fs::symlink("../b.json", path("sub/link.html")).expect("linked");
    fs::hard_link(path("b.json"), path("hard.svg")).expect("linked");
    fs::write(path("named.html"), &before).expect("written");
    fs::write(path("marked.txt"), [b"\xEF\xBB\xBF", &before[..]].concat()).expect("written");
    fs::write(path("future.md"), r#"{ "schema": 7, "label": "from the future", "cases": 1 }"#).expect("written");
    fs::write(path("cut.csv"), &before[..before.len() - 1]).expect("written");
    fs::write(path("t.csv"), "case,type,mode,microseconds,bytes\nx,f32,copy,7.5,8\n").expect("written");
    let outputs =
        ["b.json", "./sub/../b.json", "sub/link.html", "hard.svg", "named.html", "marked.txt", "future.md", "cut.csv"];
    for to in outputs {
        for from in [&["report", "a.json"][..], &["report", "b.json"], &["compare", "a.json", "b.json"]] {
            for format in [&[][..], &["--format", "html"], &["--format", "json"]] {
                let said = refused(folder.path(), &[from, format, &["-o", to]].concat());
                assert!(said.contains(to) && said.contains("which nothing else may replace"), "{said}");
            }
        }
        let said = refused(folder.path(), &["import", "t.csv", "-o", to]);
        assert!(said.contains("exists, must be a new file"), "{said}");
        let model = json!({
            "resources": { "Out": { "initialValuesDataType": "UINT8", "initialValues": [7, 7, 7, 7] } },
            "dispatchables": {},
            "commands": [{ "type": "writeFile", "resource": "Out", "targetPath": to }]
        });
        fs::write(path("model.json"), model.to_string()).expect("written");
        assert!(refused(folder.path(), &["model.json", "-a", "cpu"]).contains("which nothing else may replace"));
    }
    for name in ["b.json", "sub/link.html", "hard.svg", "named.html"] {
        assert_eq!(fs::read(path(name)).expect("there"), before, "{name}");
    }
    // What is read is not written either: a table, also by another name.
    let table = fs::read(path("t.csv")).expect("a table");
    fs::hard_link(path("t.csv"), path("other.csv")).expect("linked");
    for to in ["t.csv", "sub/../t.csv", "other.csv"] {
        assert!(refused(folder.path(), &["import", "t.csv", "-o", to]).contains("exists, must be a new file"));
    }
    assert_eq!(fs::read(path("t.csv")).expect("there"), table);
    // An older report is replaced.
    well(folder.path(), &["report", "a.json", "-o", "report.json"]);
    well(folder.path(), &["compare", "a.json", "b.json", "-o", "report.json"]);
    assert_eq!(read(&path("report.json"))["runs"].as_array().expect("runs").len(), 2);
}

/// A write that fails half way leaves the older file, and no other.
#[cfg(unix)]
#[test]
fn a_report_that_does_not_fit_leaves_the_older_one() {
    let folder = two_runs();
    well(folder.path(), &["report", "a.json", "-o", "page.html"]);
    let older = fs::read(folder.path().join("page.html")).expect("a report");
    let runner = runner();
    // Files end at one block, and a write beyond that is an error.
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let output = std::process::Command::new("sh")
        .current_dir(folder.path())
        .args(["-c", limited])
        .arg(runner.get_program())
        .args(["compare", "a.json", "b.json", "-o", "page.html"])
        .output()
        .expect("sh starts");
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.starts_with("ERROR: page.html: "), "{said}");
    assert_eq!(fs::read(folder.path().join("page.html")).expect("there"), older);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3);
}

/// A report replaces reports, of whatever format, and nothing else.
#[test]
fn a_report_replaces_reports_alone() {
    let folder = two_runs();
    let formats = ["table", "markdown", "csv", "json", "html", "svg", "gbench"];
    fs::write(folder.path().join("r"), "").expect("written");
    for format in formats.iter().chain(&formats) {
        well(folder.path(), &["report", "a.json", "--format", format, "-o", "r"]);
        if *format != "gbench" {
            well(folder.path(), &["compare", "a.json", "b.json", "--format", format, "-o", "r"]);
        }
    }
    // Files of others, some of which begin as a report does.
    for (name, text) in [
        ("notes.md", "# Notes"),
        ("data.csv", "case,type,mode\n"),
        ("page.html", "<!DOCTYPE html><p>"),
        ("sarif.json", "{\n  \"runs\": []\n}"),
        ("letter.txt", "A: where is it?"),
    ] {
        fs::write(folder.path().join(name), text).expect("written");
        let said = refused(folder.path(), &["report", "a.json", "-o", name]);
        assert!(
            said.contains(name) && said.contains("it is not a report, and a report replaces only reports"),
            "{said}"
        );
        assert_eq!(fs::read_to_string(folder.path().join(name)).expect("there"), text);
    }
}

#[test]
fn a_name_without_a_known_ending_needs_a_format() {
    let folder = two_runs();
    let said = refused(folder.path(), &["report", "a.json", "-o", "r.pdf"]);
    assert!(said.contains("r.pdf has no ending of a format, must be .txt, .md, .csv"), "{said}");
    well(folder.path(), &["report", "a.json", "-o", "r.pdf", "--format", "html"]);
}

#[test]
fn a_floor_is_of_512_mib_in_the_same_run_and_a_table_brings_its_baselines() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = made("a", &[("x", "f32", &[100.0; 3]), ("y", "f32", &[1.0; 3])]);
    run["cases"][0]["bytes"] = json!(64 << 20);
    run["cases"][0]["roof"] = json!(80.0);
    run["cases"].as_array_mut().expect("cases").push(json!({ "case": "512 MiB", "type": "u32",
        "mode": "roof of copies", "bytes": 1 << 30, "dispatches": 1, "samples": { "each": [640.0] } }));
    fs::write(folder.path().join("a.json"), run.to_string()).expect("written");
    let csv = well(folder.path(), &["report", "a.json", "--format", "csv"]);
    let mut records = csv::Reader::from_reader(csv.as_bytes());
    let at = |name: &str| csv.lines().next().expect("a header").split(',').position(|column| column == name);
    let (of_roof, of_floor) = (at("of_roof").expect("a column"), at("of_floor").expect("a column"));
    let records: Vec<_> = records.records().map(|record| record.expect("a record")).collect();
    assert_eq!((&records[0][of_roof], &records[0][of_floor]), ("0.8000", "0.4000"));
    assert_eq!(&records[1][of_floor], "", "1 MiB waits for its launch");
    let table = "case,type,mode,microseconds,floor_bytes,floor_microseconds,plain_over_time\nx,f32,copy,50,8,30,0.9\ny,f32,copy,5,8,3,\n";
    fs::write(folder.path().join("t.csv"), table).expect("written");
    well(folder.path(), &["import", "t.csv", "-o", "t.json"]);
    let table = read(&folder.path().join("t.json"));
    assert_eq!((&table["cases"][0]["roof"], &table["cases"][1]["roof"]), (&json!(45.0), &json!(3.0)));
}

#[test]
fn a_guard_fails_for_what_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, run: &Value| fs::write(folder.path().join(name), run.to_string()).expect("written");
    let steady: &[f64] = &[100.0, 101.0, 99.0, 100.0, 101.0, 99.0, 100.0];
    let a = made("a", &[("x", "f32", steady), ("y", "f32", steady), ("z", "f32", steady)]);
    write("a.json", &a);
    let guard = |options: &[&str]| {
        refused(folder.path(), &[&["compare", "a.json", "b.json", "--fail-on-slower"], options].concat())
    };
    let passes = |options: &[&str]| {
        drop(well(folder.path(), &[&["compare", "a.json", "b.json", "--fail-on-slower"], options].concat()))
    };
    write("b.json", &a);
    passes(&[]);
    write("b.json", &made("b", &[("x", "f32", steady)]));
    assert!(guard(&[]).contains("2 cases are not in both runs (--allow-missing"));
    passes(&["--allow-missing"]);
    let mut differing = a.clone();
    differing["outputs"] = json!({ "o": "00" });
    write("b.json", &differing);
    assert!(guard(&["--allow-different-outputs"]).contains("1 output is not in both runs"));
    let mut first = a.clone();
    first["outputs"] = json!({ "o": "01" });
    write("a.json", &first);
    assert!(guard(&["--allow-missing"]).contains("1 output differs (--allow-different-outputs"));
    passes(&["--allow-different-outputs"]);
    // Three times slower is slower, however noisy.
    let noisy = |factor: f64| [60.0, 80.0, 90.0, 100.0, 110.0, 120.0, 140.0].map(|sample| sample * factor);
    write("a.json", &made("a", &[("x", "f32", &noisy(1.0))]));
    write("b.json", &made("b", &[("x", "f32", &noisy(3.0))]));
    assert!(guard(&[]).contains("1 case is SLOWER"));
    write("b.json", &made("b", &[("x", "f32", &noisy(1.2))]));
    assert!(well(folder.path(), &["compare", "a.json", "b.json"]).contains("UNSURE"));
    for options in [&["--threshold", "nan"][..], &["--threshold=-1"], &["--allow-missing"]] {
        let output = run(folder.path(), &[&["compare", "a.json", "b.json"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}

/// A failed case is a row of its own, with its cause and without figures.
#[test]
fn a_failed_case_is_a_row_with_its_cause() {
    let folder = two_runs();
    let mut b = made("b", &[("x", "f32", &[1.0, 1.0, 1.0])]);
    let error = "Failed to parse the model: \"Sizes\" <1>, line 7";
    b["failed"] =
        json!([{ "case": "y", "type": "f32", "mode": "copy", "bytes": 1 << 20, "dispatches": 1, "error": error }]);
    b["failed_outputs"] = json!({ "o": "no memory" });
    let write = |run: &Value| fs::write(folder.path().join("b.json"), run.to_string()).expect("written");
    write(&b);
    let compared = |format: &str| well(folder.path(), &["compare", "a.json", "b.json", "--format", format]);
    for format in ["table", "markdown"] {
        let text = compared(format);
        let row = text.lines().find(|line| line.contains(&format!("B failed: {error}"))).expect("a row");
        assert!(row.contains(" y ") && row.contains(" failed "), "{text}");
        assert!(text.contains("B: 1 case failed") && text.contains("B: 1 output failed: o (no memory)"), "{text}");
        assert!(text.contains("B is as fast as A, in one case"), "{text}");
    }
    let csv = compared("csv");
    let mut records = csv::Reader::from_reader(csv.as_bytes());
    let last = records.records().last().expect("records").expect("a record");
    assert_eq!((&last[0], &last[7], &last[14]), ("y", "", format!("failed: {error}").as_str()));
    let json: Value = serde_json::from_str(&compared("json")).expect("JSON");
    assert_eq!(json["rows"][1]["failed"], json!([null, error]));
    assert_eq!(json["rows"][1]["cells"], json!([null, null]));
    assert!(compared("html").contains("failed: Failed to parse the model: &quot;Sizes&quot; &lt;1&gt;, line 7</td>"));
    let google = well(folder.path(), &["report", "b.json", "--format", "gbench"]);
    assert!(google.contains("\"error_occurred\": true") && google.contains("Failed to parse"), "{google}");
    let guard = ["compare", "a.json", "b.json", "--fail-on-slower", "--allow-missing"];
    let said = refused(folder.path(), &guard);
    assert!(said.contains("1 case failed that did not fail in the first run; 1 output failed"), "{said}");
    b["failed"][0]["error"] = json!(" ");
    write(&b);
    assert!(refused(folder.path(), &["report", "b.json"]).contains("the failed case 'y, f32, copy' has no error"));
    b["failed"][0]["case"] = json!("x");
    write(&b);
    assert!(refused(folder.path(), &["report", "b.json"]).contains("the case 'x, f32, copy' is there twice"));
}

#[test]
fn a_headline_names_the_faster_run_and_runs_have_names_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, run: &Value| fs::write(folder.path().join(name), run.to_string()).expect("written");
    let mut a = made("this on that", &[("x", "f32", &[1.0])]);
    let mut b = made("this on that", &[("x", "f32", &[432.1])]);
    b["machine"]["commit"] = json!("def");
    write("a.json", &a);
    write("b.json", &b);
    let table = well(folder.path(), &["compare", "a.json", "b.json"]);
    assert!(table.contains("A is 430 times as fast as B, in one case\n"), "{table}");
    b["timing"] = json!("by an hourglass");
    write("b.json", &b);
    let warned = well(folder.path(), &["compare", "a.json", "b.json"]);
    assert!(warned.contains("A and B were timed differently. A: not known. B: by an hourglass\n"), "{warned}");
    assert!(warned.contains("A is 430 times as fast as B, in one case (timed differently)"), "{warned}");
    b["timing"] = json!("");
    write("b.json", &b);
    assert!(well(folder.path(), &["compare", "b.json", "a.json"]).contains("B is 430 times as fast as A, in one case"));
    assert!(well(folder.path(), &["compare", "a.json", "a.json"]).contains("B is as fast as A"));
    // By commit; where there is none by date; else by letter.
    let labels = |from: &[&str]| {
        let csv = well(folder.path(), &[&["compare"], from, &["--format", "csv"]].concat());
        let mut records = csv::Reader::from_reader(csv.as_bytes());
        let labels: Vec<String> = records.records().map(|record| record.expect("a record")[4].to_owned()).collect();
        let page = well(folder.path(), &[&["compare"], from, &["--format", "html"]].concat());
        let svg = well(folder.path(), &[&["compare"], from, &["--format", "markdown"]].concat());
        assert!(labels.iter().all(|label| page.contains(label) && svg.contains(label)), "{labels:?}");
        labels
    };
    assert_eq!(labels(&["a.json", "b.json"]), ["this on that, commit abc", "this on that, commit def"]);
    for run in [&mut a, &mut b] {
        run["machine"]["commit"] = json!("");
    }
    b["machine"]["date"] = json!("2026-11-21T01:02:03Z");
    write("a.json", &a);
    write("b.json", &b);
    assert_eq!(labels(&["a.json", "b.json"]), ["this on that, 2026-11-20", "this on that, 2026-11-21"]);
    assert_eq!(labels(&["a.json", "a.json"]), ["this on that, run A", "this on that, run B"]);
    assert_eq!(labels(&["a.json", "b.json", "--label", "l", "--label", "l"]), ["l, 2026-11-20", "l, 2026-11-21"]);
}

/// What every figure needs to be seen alone: tags that close, a title, and the size of its picture.
fn is_drawing(svg: &str) {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1).map(|rest| rest.split('>').next().expect("an end")) {
        let name = tag.trim_start_matches('/').split([' ', '/']).next().expect("a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty() && svg.contains("font-weight=\"600\"") && svg.contains("viewBox=\"0 0 "), "{open:?}");
}

#[test]
fn figures_say_what_they_show() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, run: &Value| fs::write(folder.path().join(name), run.to_string()).expect("written");
    let long = "a label that is far longer than any figure is wide, ".repeat(6);
    let steady: &[f64] = &[100.0, 101.0, 99.0];
    let mut a = made(&long, &[("x", "u8", steady), ("x", "f16", steady), ("x", "f32", steady), ("x", "i64", steady)]);
    a["machine"]["device"] = json!("CPU");
    a["machine"]["host"] = json!("a processor, 2 cores");
    a["cases"].as_array_mut().expect("cases").push(json!({ "case": "1 MiB", "type": "u32", "mode": "roof of copies",
        "bytes": 1 << 20, "dispatches": 1, "samples": { "each": [90.0] } }));
    let mut b = made(
        "b <&>",
        &[
            ("x", "u8", &[50.0; 3]),
            ("x", "f16", &[100.0; 3]),
            ("x", "f32", &[60.0, 100.0, 140.0]),
            ("x", "i64", &[163_701.0, 163_702.0]),
        ],
    );
    // 8 bytes in 163,702 µs.
    b["cases"].as_array_mut().expect("cases").push(json!({ "case": "small", "type": "f32", "mode": "fill", "bytes": 8,
        "dispatches": 1, "samples": { "each": [0.95] } }));
    a["cases"].as_array_mut().expect("cases").push(json!({ "case": "small", "type": "f32", "mode": "fill", "bytes": 8,
        "dispatches": 1, "samples": { "each": [0.0084] } }));
    write("a.json", &a);
    write("b.json", &b);
    let page = well(folder.path(), &["compare", "a.json", "b.json", "--format", "html"]);
    let figures: Vec<&str> =
        page.split("<svg ").skip(1).map(|rest| rest.split("</svg>").next().expect("an end")).collect();
    assert_eq!(figures.len(), 8, "four, each in two widths");
    for figure in &figures {
        is_drawing(&format!("<svg {figure}</svg>"));
        let shown: String =
            figure.split("<title>").map(|part| part.split_once("</title>").map_or(part, |(_, rest)| rest)).collect();
        assert!(shown.contains(&long[..20]) && !shown.contains(&long[..130]), "a long label is cut");
    }
    assert_eq!(figures.iter().filter(|figure| figure.contains("viewBox=\"0 0 368 ")).count(), 4);
    for figure in &figures[..2] {
        for words in [
            "right is faster",
            "8-bit elements",
            "16-bit",
            "32-bit",
            "64-bit",
            "a processor, 2 cores",
            "2026-11-20",
            "100 %",
        ] {
            assert!(figure.contains(words), "{words}: {figure}");
        }
    }
    for figure in &figures[2..4] {
        assert!(
            figure.contains("log scale") && figure.contains(">?<title>x, copy, f32, b &lt;&amp;&gt;: 1.00 (UNSURE)"),
            "{figure}"
        );
        assert!(figure.contains("fill=\"none\"") && figure.contains("noise can explain the difference"));
        // The first run has no marks here, and no place among those that have.
        assert!(figure.contains("B: b &lt;&amp;&gt;") && !figure.contains(">A: "), "{figure}");
    }
    for figure in &figures[4..6] {
        assert!(
            figure.contains("bytes that must move at least, log scale")
                && figure.contains("GB/s (10⁹ bytes a second), log scale")
        );
        assert!(figure.contains(">1 MiB<") && !figure.contains("kB<") && !figure.contains("MB<"), "{figure}");
    }
    assert!(figures[6].contains("sample ÷ median of its case, log scale"));
    // Separators, digits, and nothing of launches where there are none.
    assert!(
        page.contains("163,7") && page.contains(">0.952<") && page.contains(">0.00842<") && !page.contains("launches"),
        "{page}"
    );
    well(folder.path(), &["compare", "a.json", "b.json", "-o", "figure.svg"]);
    let alone = fs::read_to_string(folder.path().join("figure.svg")).expect("a figure");
    is_drawing(&alone);
    for words in
        ["How near each case is", "a processor, 2 cores", "commit abc", "2026-11-20", "prefers-color-scheme: dark"]
    {
        assert!(alone.contains(words), "{words}: {alone}");
    }
}
