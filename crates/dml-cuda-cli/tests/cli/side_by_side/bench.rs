//! `bench`: timing cases with dml-cuda itself, interrupted, and with wrong input.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use serde_json::{json, Value};

use crate::{dml_cuda, stderr, Ended, Folder};

/// The cases of a results file.
pub fn cases(run: &Value) -> &Vec<Value> {
    run["cases"].as_array().expect("cases")
}

#[test]
fn a_bench_writes_samples_and_outputs() {
    // A Windows user's folder may have a space.
    let scratch = tempfile::Builder::new()
        .prefix("my runs")
        .tempdir()
        .expect("a folder");
    let folder = Folder(scratch);
    let bench = |to: &str, only: &str, more: &[&str]| {
        let arguments = [
            "bench",
            "-o",
            to,
            "--tier",
            "quick",
            "-a",
            "cpu",
            "--samples",
            "7",
            "--only",
            only,
        ];
        folder.run(&[&arguments[..], more].concat())
    };
    bench("a.json", "small_16x256", &[]).well();
    let found = folder.json("a.json");
    assert_eq!(
        (cases(&found).len(), &found["planned"], &found["schema"]),
        (8, &json!(8), &json!(2))
    );
    let machine = &found["machine"];
    let date = machine["date"]
        .as_str()
        .and_then(|date| humantime::parse_rfc3339(date).ok())
        .expect("a date");
    assert!(
        found["samples"] == 7 && date.elapsed().expect("it was before").as_secs() < 3600,
        "{machine}"
    );
    for case in cases(&found) {
        let samples = case["each"].as_array().expect("raw samples");
        assert!(
            samples.len() == 7
                && samples
                    .iter()
                    .all(|sample| sample.as_f64().expect("a number") > 0.0)
        );
    }
    // Baselines have samples too, and every run has a report.
    bench("my baselines.json", "baseline_of_copies.1mib", &[]).well();
    let baselines = folder.json("my baselines.json");
    assert_eq!(
        (cases(&baselines).len(), &baselines["planned"]),
        (1, &json!(1))
    );
    assert_eq!(
        cases(&baselines)[0]["each"].as_array().map(Vec::len),
        Some(14),
        "first and again last"
    );
    assert!(
        !folder
            .well(&["report", "my baselines.json"])
            .contains(" µs"),
        "a table without cases"
    );
    // A CPU takes as many samples as it has time for.
    let many = [
        "bench",
        "-o",
        "-",
        "-a",
        "cpu",
        "--only",
        "baseline_of_copies.1mib",
        "--samples",
        "1000",
    ];
    let printed: Value = serde_json::from_str(&folder.well(&many)).expect("JSON");
    assert!(cases(&printed)[0]["each"]
        .as_array()
        .is_some_and(|samples| (14..2000).contains(&samples.len())));
    let system = machine["operating_system"].as_str().expect("text");
    assert!(
        system.chars().any(|c| c.is_ascii_digit()) || cfg!(not(windows)),
        "{system} has a version"
    );
    let command = baselines["machine"]["command"].as_str().expect("text");
    assert!(
        command.contains(" bench -o \"my baselines.json\" --tier")
            && !command.contains(['/', '\\']),
        "{command}"
    );
    assert_eq!(
        machine["tool"],
        format!("dml-cuda {}", env!("CARGO_PKG_VERSION"))
    );
    // Elements 0, 1, … of a UINT8 reversal of [4, 7, 5]. The length of lane n is n, or one that fits.
    bench("o.json", "4x7x5.uint8.uint32", &[]).well();
    let outputs = folder.json("o.json")["outputs"].clone();
    let fits = [0, 7, 1, 6, 2, 5, 3, 4, 4, 3, 5, 2, 6, 1, 7, 0, 0, 7, 1, 6];
    let counted: Vec<usize> = (0..20).collect();
    for (name, lengths) in [
        ("check.reverse_4x7x5", &fits[..]),
        ("over_long.reverse_4x7x5", &counted),
    ] {
        let output = &outputs[format!("{name}.uint8.uint32")];
        assert_eq!(
            output["expected_to_differ"].is_null(),
            name.starts_with("check")
        );
        let bytes = output["bytes"].as_str().expect("bytes");
        for (batch, lane) in (0..4).flat_map(|batch| (0..5).map(move |lane| (batch, lane))) {
            let length = lengths[batch * 5 + lane].min(7);
            for t in 0..7 {
                let from = if t < length { length - 1 - t } else { t };
                let at = 2 * ((batch * 7 + t) * 5 + lane);
                let element = usize::from_str_radix(&bytes[at..at + 2], 16).expect("a byte");
                assert_eq!(element, (batch * 7 + from) * 5 + lane, "{name}");
            }
        }
    }
    // Nothing is replaced but with --overwrite, and then only a results file or a report.
    let words = "a.json: it exists, but must be new; --overwrite replaces results and reports";
    bench("a.json", "check.fill.int8", &[]).fails(1, words);
    assert_eq!(folder.json("a.json"), found);
    bench("a.json", "check.fill.int8", &["--overwrite"]).well();
    assert_eq!(cases(&folder.json("a.json")).len(), 0);
    // Standard output, and a folder that is not there.
    let printed: Value =
        serde_json::from_str(&bench("-", "check.fill.int8", &[]).well()).expect("JSON");
    assert_eq!(
        printed["outputs"].as_object().map(serde_json::Map::len),
        Some(1)
    );
    bench("new/x.json", "check.fill.int8", &[]).fails(1, "the folder new is not there");
    assert_eq!(folder.names(""), ["a.json", "my baselines.json", "o.json"]);
    if cfg!(target_os = "linux") {
        let words = "ERROR: /proc/x.json: no file can be made in the folder /proc: ";
        bench("/proc/x.json", "check.fill.int8", &[]).fails(1, words);
    }
}

/// A bench of all cases says at once what it does, and how long that may take.
#[test]
fn a_bench_begins_with_an_estimate() {
    let mut bench = dml_cuda();
    let bench = bench
        .args(["bench", "-o", "-", "-a", "cpu", "--tier", "full"])
        .stderr(Stdio::piped());
    let begun = Instant::now();
    let mut bench = bench.stdout(Stdio::null()).spawn().expect("it starts");
    let first = BufReader::new(bench.stderr.take().expect("a pipe"))
        .lines()
        .next();
    bench.kill().and_then(|()| bench.wait()).expect("it ends");
    assert!(first
        .expect("a line")
        .expect("text")
        .contains("a GPU takes minutes, a CPU"));
    assert!(begun.elapsed().as_secs() < 5, "counting takes longer");
}

#[test]
fn a_bench_that_cannot_begin_says_it_once_and_leaves_nothing() {
    let folder = Folder::new();
    let own = dml_cuda().get_program().to_string_lossy().into_owned();
    let on_cpu = |more: &[&'static str]| [&["bench", "-o", "n.json", "-a", "cpu"], more].concat();
    let cold = "--cold-l2 is given on the CPU, but must be on a GPU, whose L2 is kept cold";
    folder.refuses(&on_cpu(&["--cold-l2"]), cold);
    folder.refuses(
        &[&on_cpu(&["--runner"])[..], &[&own]].concat(),
        "--runner is dml-cuda on a CPU, but must have a GPU",
    );
    folder.refuses(
        &on_cpu(&["--only", "no such case"]),
        "is in the name of no case",
    );
    for (only, nearest) in [("small16", "small_16x256"), ("inplace", "in_place")] {
        folder.refuses(
            &on_cpu(&["--only", only]),
            &format!("this runner times; the nearest name is \"{nearest}\""),
        );
    }
    folder.refuses(
        &["kernel", "x", "-a", "cpu"],
        "kernels can be timed only on a GPU, but the device is CPU",
    );
    folder.refuses(
        &["bench", "-o", "n.json", "-a", "no such GPU"],
        "the adapter is 'no such GPU'",
    );
    for wrong in [
        &["--cold-l2", "--tier", "full"][..],
        &["--cold-l2", "--runner", "dxdispatch"],
        &["--samples", "1001"],
        &["--only", ""],
    ] {
        folder
            .run(&[&["bench", "-o", "n.json"], wrong].concat())
            .fails(2, "");
    }
    assert_eq!(folder.names(""), [""; 0]);
    // Not on a terminal there is a line for each tenth, and no more.
    let output = folder.run(&on_cpu(&[
        "--tier",
        "quick",
        "--only",
        "fill.",
        "--samples",
        "3",
    ]));
    let told = stderr(&output)
        .lines()
        .filter(|line| line.contains(" of 13 cases, "))
        .count();
    assert_eq!((told, output.status.code()), (10, Some(0)), "{output:?}");
}
