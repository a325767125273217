//! `bench`: timing a suite, interrupted and continued, by this runner and by others.

use std::fs;

use serde_json::{json, Value};

#[cfg(unix)]
use super::install_dxdispatch;
use super::{read, refused, run, suite, text, well};
use crate::runner;

#[test]
fn a_bench_is_resumed_compared_and_reported() {
    let folder = suite();
    let bench = |to: &str, only: &str| {
        well(folder.path(), &["bench", "s", "-o", to, "--only", only, "-a", "cpu", "--samples", "5"])
    };
    bench("a.json", "small_16x256");
    let first = read(&folder.path().join("a.json"));
    assert_eq!(first["cases"].as_array().expect("cases").len(), 8);
    for case in first["cases"].as_array().expect("cases") {
        let samples = case["samples"]["each"].as_array().expect("raw samples");
        assert!(samples.len() >= 5 && samples.iter().all(|sample| sample.as_f64().expect("a number") > 0.0));
    }
    // It goes on: what is there stays as it is.
    bench("a.json", "check");
    bench("a.json", "lanes_of_31");
    let second = read(&folder.path().join("a.json"));
    assert_eq!(second["cases"].as_array().expect("cases").len(), 16);
    assert_eq!(second["cases"].as_array().expect("cases")[..8], first["cases"].as_array().expect("cases")[..]);
    assert_eq!(second["outputs"].as_object().expect("outputs").len(), 26);
    bench("a.json", "over_long");
    let second = read(&folder.path().join("a.json"));
    // Elements 0, 1, … of a UINT8 reversal of [4, 7, 5]. The length of lane n is n, or one that fits.
    let fits = [0, 7, 1, 6, 2, 5, 3, 4, 4, 3, 5, 2, 6, 1, 7, 0, 0, 7, 1, 6];
    let counted: Vec<usize> = (0..20).collect();
    for (name, lengths) in [("check.reverse_4x7x5", &fits[..]), ("over_long.reverse_4x7x5", &counted)] {
        let bytes = second["outputs"][format!("{name}.uint8.uint32")].as_str().expect("bytes");
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

    // The same run beside one that is twice as slow in all but one case, and has an output that differs.
    let mut slow = second.clone();
    slow["label"] = json!("slow <&> \"quoted\"");
    for (n, case) in slow["cases"].as_array_mut().expect("cases").iter_mut().enumerate() {
        let factor = if n == 0 { 1.0 } else { 2.0 };
        case["samples"] = json!({ "each": [100.0 * factor, 101.0 * factor, 99.0 * factor] });
    }
    slow["outputs"]["check.fill.int8"] = json!("00");
    let mut quick = slow.clone();
    quick["label"] = json!("quick");
    for case in quick["cases"].as_array_mut().expect("cases") {
        case["samples"] = json!({ "each": [100.0, 101.0, 99.0] });
    }
    quick["outputs"]["check.fill.int8"] = json!("01");
    fs::write(folder.path().join("slow.json"), slow.to_string()).expect("written");
    fs::write(folder.path().join("quick.json"), quick.to_string()).expect("written");
    let compared = well(folder.path(), &["compare", "quick.json", "slow.json", "--format", "json"]);
    let compared: Value = serde_json::from_str(&compared).expect("JSON");
    let statuses: Vec<&str> = compared["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["changes"][0]["status"].as_str().expect("a status"))
        .collect();
    assert_eq!((statuses[0], statuses.len()), ("SAME", 16));
    assert!(statuses[1..].iter().all(|status| *status == "SLOWER"), "{statuses:?}");
    assert_eq!(compared["outputs"][0], json!({ "equal": 29, "different": ["check.fill.int8"] }));

    let slower = run(folder.path(), &["compare", "quick.json", "slow.json", "--fail-on-slower"]);
    assert_eq!(slower.status.code(), Some(1));
    let allowed = ["--fail-on-slower", "--allow-different-outputs"];
    assert!(run(folder.path(), &[&["compare", "slow.json", "quick.json"][..], &allowed].concat()).status.success());
    let far = ["compare", "quick.json", "slow.json", "--threshold", "200"];
    assert!(run(folder.path(), &[&far[..], &allowed].concat()).status.success());

    let table = well(folder.path(), &["compare", "quick.json", "slow.json"]);
    assert!(table.contains("SLOWER") && table.contains("1 of 30 outputs differ from A's: check.fill.int8"), "{table}");
    let markdown = well(folder.path(), &["compare", "quick.json", "slow.json", "--format", "markdown"]);
    assert!(markdown.contains("| case ") && markdown.contains("### in place"), "{markdown}");
    let csv = well(folder.path(), &["compare", "quick.json", "slow.json", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 33, "{csv}");
    well(folder.path(), &["compare", "quick.json", "slow.json", "-o", "page.html"]);
    let page = fs::read_to_string(folder.path().join("page.html")).expect("a page");
    assert!(page.contains("slow &lt;&amp;&gt; &quot;quoted&quot;") && !page.contains("slow <&>"));
    assert_eq!(
        (page.matches("<figure>").count(), page.matches("http").count()),
        (4, page.matches("http://www.w3.org/2000/svg").count())
    );
    well(folder.path(), &["report", "a.json", "-o", "figure.svg"]);
    assert!(fs::read_to_string(folder.path().join("figure.svg")).expect("a figure").starts_with("<svg "));
    let google: Value =
        serde_json::from_str(&well(folder.path(), &["report", "slow.json", "--format", "gbench"])).expect("JSON");
    assert_eq!(google["benchmarks"].as_array().expect("benchmarks").len(), 48);
    assert_eq!(google["benchmarks"][3]["real_time"], json!(200.0));
    assert!(refused(folder.path(), &["compare", "quick.json", "slow.json", "--format", "gbench"])
        .contains("must be asked of `report`"));
}

/// The file is whole whenever a signal comes, and the next call goes on from it.
#[cfg(unix)]
#[test]
fn an_interrupted_bench_loses_nothing() {
    let folder = suite();
    let arguments = ["bench", "s", "-o", "i.json", "--only", ".copy", "-a", "cpu", "--samples", "5"];
    let mut child = runner()
        .current_dir(folder.path())
        .args(arguments)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the runner starts");
    let path = folder.path().join("i.json");
    let begun = std::time::Instant::now();
    let cases = || fs::read(&path).map_or(0, |bytes| text(&bytes).matches("\"case\"").count());
    while cases() < 3 {
        assert!(begun.elapsed().as_secs() < 120, "it is slow");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let signal = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signal.expect("kill runs").success());
    assert!(!child.wait().expect("it ends").success());
    let kept = read(&path)["cases"].as_array().expect("cases").clone();
    assert!(kept.len() >= 3);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing is left but the suite and the run");
    well(folder.path(), &["bench", "s", "-o", "i.json", "--only", "small_16x256", "-a", "cpu", "--samples", "5"]);
    let now = read(&path)["cases"].as_array().expect("cases").clone();
    assert_eq!(now[..kept.len()], kept[..]);
}

/// Another runner is timed by what it prints. Folders may have spaces.
#[cfg(unix)]
#[test]
fn dxdispatch_runs_a_suite() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = "my suite";
    well(folder.path(), &["suite", suite, "--tier", "quick"]);
    install_dxdispatch(&folder.path().join("my tools"));
    let bench = |only: &str| {
        let runner = "my tools/dxdispatch.exe";
        run(folder.path(), &["bench", suite, "-o", "x.json", "--only", only, "--runner", runner])
    };
    let failed = bench("small_16x256");
    let found = read(&folder.path().join("x.json"));
    // In place is not asked of it. The cause is not the last line.
    let causes: Vec<&str> =
        found["failed"].as_array().expect("failed").iter().map(|it| it["error"].as_str().expect("text")).collect();
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert!(
        causes[1].starts_with("Failed to parse the model: Failed to parse dispatchable reverse.small_16x256.f16.copy")
            && causes[1].ends_with("(exit status: 255)"),
        "{causes:?}"
    );
    assert_eq!(causes[0], "no dispatch was printed (exit status: 0)");
    let said = text(&failed.stderr);
    assert!(failed.status.code() == Some(1) && said.contains(causes[1]), "{said}");
    assert_eq!(found["cases"].as_array().expect("cases").len(), 2);
    assert_eq!(found["cases"][0]["samples"], json!({ "medians": [2.5, 2.5, 2.5, 2.5, 2.5] }));
    assert_eq!(found["label"], json!("DxDispatch with DirectML 1.15.4 on Some GPU"));
    assert_eq!(found["machine"]["driver"], json!("32.0.15.6094"));
    assert_eq!(bench("check").status.code(), Some(1), "what fails is said, and the rest is kept");
    let found = read(&folder.path().join("x.json"));
    assert_eq!(found["outputs"].as_object().expect("outputs").len(), 25);
    assert_eq!(found["outputs"]["check.fill.int8"], json!("616263"));
    let cause = found["failed_outputs"]["check.fill.int16"].as_str().expect("a cause");
    assert!(cause.starts_with("Failed to write resource to file 'check.fill.int16.bin'"), "{cause}");
    let left = fs::read_dir(folder.path().join(suite)).expect("a folder").filter_map(Result::ok);
    assert_eq!(left.filter(|entry| entry.path().is_dir()).count(), 0, "no folder is left in the suite");
    // What failed is tried again, and goes well with the program repaired.
    let program = folder.path().join("my tools/dxdispatch.exe");
    let script = fs::read_to_string(&program).expect("a script").replace("*.f16.copy)", "nothing)");
    fs::write(&program, script).expect("written");
    let mut repaired = found.clone();
    repaired["machine"]["program"] = {
        let other =
            ["bench", suite, "-o", "y.json", "--only", "check.fill.int8", "--runner", "my tools/dxdispatch.exe"];
        well(folder.path(), &other);
        read(&folder.path().join("y.json"))["machine"]["program"].clone()
    };
    fs::write(folder.path().join("x.json"), repaired.to_string()).expect("written");
    bench("small_16x256");
    let found = read(&folder.path().join("x.json"));
    assert_eq!((found["cases"].as_array().map(Vec::len), found["failed"].as_array().map(Vec::len)), (Some(3), Some(1)));
    // Another device needs a file of its own.
    let said = refused(folder.path(), &["bench", suite, "-o", "x.json", "--only", "lanes_of_31", "-a", "cpu"]);
    assert!(
        said.contains("is a run of DxDispatch with DirectML 1.15.4 on Some GPU")
            && said.contains("it needs a file of its own"),
        "{said}"
    );
    let adapter = ["bench", suite, "-o", "z.json", "--runner", "my tools/dxdispatch.exe", "-a", "Some GPU"];
    assert!(refused(folder.path(), &adapter).contains("has a space, must be a part of the name without one"));
}

/// Samples of one process do not replace another's without a word.
#[test]
fn two_benches_into_one_file_are_an_error() {
    let folder = suite();
    let bench = |only: &str| {
        let mut runner = runner();
        runner.current_dir(folder.path()).args(["bench", "s", "-o", "r.json", "-a", "cpu", "--only", only]);
        runner.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().expect("it starts")
    };
    let path = folder.path().join("r.json");
    let slow = bench("inner_odd_nx1000");
    let begun = std::time::Instant::now();
    while !path.exists() {
        assert!(begun.elapsed().as_secs() < 120, "it is slow");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let quick = bench("check.fill.int8").wait_with_output().expect("it ends");
    let slow = slow.wait_with_output().expect("it ends");
    // The one that wrote last is whole; the other says what happened.
    let failed: Vec<String> =
        [&quick, &slow].iter().filter(|it| !it.status.success()).map(|it| text(&it.stderr)).collect();
    assert!(failed.len() == 1 && failed[0].contains("r.json was changed by another process"), "{failed:?}");
    assert!(read(&path)["cases"].as_array().is_some_and(|cases| !cases.is_empty()));
}

#[test]
fn a_cold_l2_is_a_gpus_of_this_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = refused(folder.path(), &["bench", "--cold-l2", "-o", "r.json", "-a", "cpu"]);
    assert!(said.contains("--cold-l2 is given on the CPU, must be on a GPU, whose L2 is kept cold"), "{said}");
    for others in [&["s"][..], &["--runner", "dxdispatch"], &[]] {
        let cold: &[&str] = if others.is_empty() { &[] } else { &["--cold-l2"] };
        let output = run(folder.path(), &[&["bench", "-o", "r.json"], cold, others].concat());
        assert_eq!(output.status.code(), Some(2), "{others:?}: {}", text(&output.stderr));
    }
    assert!(refused(folder.path(), &["kernel", "x", "-a", "cpu"]).contains("the device is CPU, must be a GPU"));
}

#[test]
fn a_bench_goes_on_only_where_everything_agrees() {
    let folder = suite();
    let path = folder.path().join("r.json");
    let arguments = ["bench", "s", "-o", "r.json", "--only", "check.fill.int", "-a", "cpu", "--samples", "5"];
    well(folder.path(), &arguments);
    let whole = fs::read(&path).expect("a run");
    let said = well(folder.path(), &arguments);
    assert!(said.contains("nothing left to time, 0 cases and 4 outputs are there"), "{said}");
    assert_eq!(fs::read(&path).expect("a run"), whole, "a complete run stays as it is");
    let run = read(&path);
    // A commit takes the place of the program's hash.
    let builds =
        run["machine"]["program"].is_string() != run["machine"]["commit"].as_str().is_some_and(|it| !it.is_empty());
    assert!(builds && run["samples"] == 5, "{run}");
    for field in ["tool", "commit", "program", "host", "operating_system", "device", "driver"] {
        for complete in [true, false] {
            let mut other = run.clone();
            other["machine"][field] = json!("another");
            if !complete {
                other["outputs"].as_object_mut().expect("outputs").remove("check.fill.int8");
            }
            fs::write(&path, other.to_string()).expect("written");
            let said = refused(folder.path(), &arguments);
            assert!(said.contains(&format!("{} was 'another', is '", field.replace('_', " "))), "{said}");
            assert_eq!(read(&path), other, "a refused run stays as it is");
        }
    }
    let mut other = run.clone();
    other["timing"] = json!("by an hourglass");
    fs::write(&path, other.to_string()).expect("written");
    assert!(refused(folder.path(), &arguments).contains("timing was 'by an hourglass'"));
    fs::write(&path, &whole).expect("written");
    let more = [&arguments[..8], &["--samples", "6"]].concat();
    assert!(refused(folder.path(), &more).contains("samples was '5', is '6'"));
    // The work of a case is another now, in a suite of the same name.
    let mut other = run.clone();
    let work = json!({ "case": "small [16, 256]", "type": "f32", "mode": "copy", "bytes": 8, "dispatches": 1,
        "samples": { "each": [1.0] } });
    other["cases"] = json!([work]);
    fs::write(&path, other.to_string()).expect("written");
    assert!(refused(folder.path(), &arguments).contains("a case was 'reverse.small_16x256.f32.copy, 8 bytes'"));
}

/// Another runner without a commit is the same only while its file is.
#[cfg(unix)]
#[test]
fn a_runner_that_changed_needs_a_file_of_its_own() {
    use std::os::unix::fs::PermissionsExt;
    let folder = suite();
    let install = |version: &str| {
        let program = folder.path().join("dxdispatch");
        let script = format!(
            "#!/bin/sh\n# {version}\necho \"Running on 'Some GPU'\"\nprintf abc > \"${{3:-.}}/$(basename \"$1\" .json).bin\"\n\
            echo \"Dispatch '$(basename \"$1\" .json)': 1 iterations, 0.1 ms median (CPU), 0.1 ms median (GPU)\"\n"
        );
        fs::write(&program, script).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be run");
    };
    let bench = |only| ["bench", "s", "-o", "x.json", "--runner", "./dxdispatch", "--only", only];
    install("1");
    well(folder.path(), &bench("check.fill.int8"));
    assert_eq!(
        read(&folder.path().join("x.json"))["machine"]["commit"],
        "",
        "this program's commit is not the runner's"
    );
    well(folder.path(), &bench("check.fill.int16"));
    install("2");
    assert!(refused(folder.path(), &bench("check.fill.int32")).contains("program was '"));
    assert!(refused(folder.path(), &["bench", "s", "-o", "y.json", "--runner", "./nothing"]).contains("is no program"));
}

#[test]
fn a_bench_that_fails_says_it_once_and_leaves_nothing() {
    let folder = suite();
    let said = refused(folder.path(), &["bench", "s", "-o", "n.json", "-a", "no such GPU"]);
    assert!(said.contains("the adapter is 'no such GPU'"), "{said}");
    let said = refused(folder.path(), &["bench", "s", "-o", "n.json", "-a", "cpu", "--only", "no such model"]);
    assert!(said.contains("is in the name of no model"), "{said}");
    #[cfg(unix)]
    {
        let said =
            refused(folder.path(), &["bench", "s", "-o", "/dev/stdout", "-a", "cpu", "--only", "check.fill.int8"]);
        assert!(said.contains("/dev/stdout is not a regular file, must be one to hold a run"), "{said}");
    }
    for name in ["int8", "int16", "int32", "int64"] {
        fs::write(folder.path().join(format!("s/check.fill.{name}.json")), "{}").expect("written");
    }
    let only = ["bench", "s", "-o", "n.json", "-a", "cpu", "--only"];
    let output = run(folder.path(), &[&only[..], &["check.fill.int"]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("ERROR: nothing was timed: every model failed"), "{said}");
    assert!(!folder.path().join("n.json").exists(), "a run of nothing is no file");
    // Not on a terminal there is a line for each tenth, and no more.
    let output = run(folder.path(), &[&only[..], &["check.fill"]].concat());
    assert_eq!(output.status.code(), Some(1), "four of them fail");
    let said = text(&output.stderr);
    assert_eq!(said.lines().filter(|line| line.contains(" of 10 models, ")).count(), 10, "{said}");
    let output = run(folder.path(), &[&only[..], &["check.reverse"]].concat());
    let said = text(&output.stderr);
    assert!(said.lines().count() == 10 && said.contains("16 of 16 models, "), "{said}");
    assert_eq!(
        read(&folder.path().join("n.json"))["failed_outputs"].as_object().expect("failures").len(),
        4,
        "what was not tried again stays"
    );
    well(folder.path(), &["suite", "s", "--tier", "quick"]);
    well(folder.path(), &[&only[..], &["check.fill"]].concat());
    assert!(read(&folder.path().join("n.json"))["failed_outputs"].is_null(), "it went well the second time");
}

/// A program that hangs or prints without end ends its case, not the bench and not the machine.
#[cfg(unix)]
#[test]
fn a_runner_has_a_limit_of_time_and_of_bytes() {
    use std::os::unix::fs::PermissionsExt;
    let folder = suite();
    let program = folder.path().join("endless");
    let script = "#!/bin/sh\ncase \"$1\" in -s | -S) exit 1 ;; *.int8.json) exec sleep 1000 ;; esac\nexec yes\n";
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it can be run");
    let begun = std::time::Instant::now();
    let arguments =
        ["bench", "s", "-o", "x.json", "--runner", "./endless", "--only", "check.fill.int", "--timeout", "2"];
    let said = text(&run(folder.path(), &arguments).stderr);
    assert!(said.contains("WARNING: check.fill.int8: it took more than 2 s, the --timeout"), "{said}");
    assert!(said.contains("WARNING: check.fill.int16: it printed more than 64 MiB"), "{said}");
    assert!(begun.elapsed().as_secs() < 120, "{:?}", begun.elapsed());
}
