//! `report` reads results files of every kind, names what is none, and replaces nothing unasked.

use std::fs;

use serde_json::json;

use super::reports::{made, two_runs, STEADY};
use crate::{one_resource, Ended, Folder};

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

/// A results file may come through a pipe. What has no end is none.
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

/// Nothing is replaced but with --overwrite, and then only a results file or a report. A model replaces no results file
/// either.
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

/// Checks that a model does not write over a results file.
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

/// PowerShell's `>` writes UTF-16. No model replaces such a results file, and --overwrite does.
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
