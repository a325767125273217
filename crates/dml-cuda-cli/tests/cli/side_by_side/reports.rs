//! `report`: what it shows, and what it refuses.

use serde_json::{json, Value};

use crate::texts::assert_golden;
use crate::{Ended, Folder};

pub const STEADY: [f64; 7] = [100.0, 101.0, 99.0, 100.0, 101.0, 99.0, 100.0];

/// A case of a results file. `result` is a member such as `{ "each": samples }`.
fn case(name: &str, data_type: &str, mode: &str, bytes: u64, result: Value) -> Value {
    let mut case =
        json!({ "case": name, "type": data_type, "mode": mode, "bytes": bytes, "dispatches": 1 });
    case.as_object_mut()
        .expect("a case")
        .append(result.clone().as_object_mut().expect("members"));
    case
}

/// A results file with these cases on a machine whose baseline is slower by a factor.
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

/// A results file with a case for each name, of these samples.
pub fn made(label: &str, cases: &[(&str, &str, &[f64])]) -> Value {
    let copy = |(name, data_type, samples): &(&str, &str, &[f64])| {
        case(name, data_type, "copy", 1 << 20, json!({ "each": samples }))
    };
    on_machine(label, cases.iter().map(copy).collect(), 1.0)
}

/// A folder with `a.json` and `b.json`, two results files with one case.
pub fn two_runs() -> Folder {
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
            "2 cases not in both files (--allow-missing)",
        ),
        (0, &a, &made("b", &[("x", "f32", &STEADY)]), &[missing], ""),
        (1, &a, &zero, &[other_outputs], "1 output not in both files"),
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
            "1 case failed, which did not fail in the first file",
        ),
        (
            1,
            &without,
            &made("b", &[("x", "f32", &STEADY), ("y", "f32", &STEADY)]),
            &[],
            "1 case not in both files",
        ),
        (1, &noisy(1.0), &noisy(3.0), &[], "1 case SLOWER"),
        (0, &noisy(1.0), &noisy(1.2), &[], ""),
        // A case that failed in both files has not become slower, but nothing was timed.
        (2, &failed, &failed, &[], "no case has a time in both files"),
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
    // Results files of one label are told apart by their files.
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
    let (open, folded) = page.rsplit_once("<details>").expect("a folded part");
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
