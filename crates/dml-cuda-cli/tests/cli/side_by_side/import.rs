//! `import`: logs of DxDispatch and tables.

use std::fs;

use serde_json::json;

#[cfg(unix)]
use super::install_dxdispatch;
use super::{read, refused, run, suite, text, well};

#[test]
fn logs_and_tables_become_runs() {
    let folder = suite();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).expect("a folder");
    let name = "reverse.tokens_256x4096.f32.copy";
    let log = format!(
        "Running on 'Some GPU'\r\nDispatch '{name}': 31 iterations, 0.1 ms median (CPU), 0.007591 ms median (GPU)\r\n"
    );
    let utf16: Vec<u8> = [0xFF, 0xFE].into_iter().chain(log.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    fs::write(logs.join(format!("{name}.log")), utf16).expect("written");
    let failed = "reverse.small_16x256.u8.copy";
    fs::write(
        logs.join(format!("{failed}.log")),
        format!(
            "Running on 'Some GPU'\nDispatch '{failed}': 31 iterations, 0.1 ms median (CPU), nan ms median (GPU)\n"
        ),
    )
    .expect("written");
    fs::write(logs.join("check.fill.int8.bin"), [1, 255]).expect("written");
    let import = ["import", "logs", "--suite", "s", "-o", "win.json", "--label", "Windows", "--note", "a laptop"];
    assert_eq!(run(folder.path(), &import).status.code(), Some(1), "a model failed, as in `bench`");
    let found = read(&folder.path().join("win.json"));
    assert_eq!((&found["label"], &found["machine"]["device"]), (&json!("Windows"), &json!("Some GPU")));
    assert_eq!(found["cases"].as_array().expect("cases").len(), 1);
    let medians = found["cases"][0]["samples"]["medians"].as_array().expect("medians");
    assert!(medians.len() == 1 && (medians[0].as_f64().expect("a number") - 7.591).abs() < 1e-9, "{medians:?}");
    assert_eq!(found["outputs"], json!({ "check.fill.int8": "01ff" }));
    assert_eq!(found["failed"][0]["error"], json!("its GPU time is 'nan', no number"));
    assert!(found["notes"].to_string().contains("a laptop"), "{}", found["notes"]);

    assert!(
        refused(folder.path(), &["import", "logs", "--suite", "s", "-o", "win.json"]).contains("must be a new file")
    );
    assert_eq!(read(&folder.path().join("win.json")), found, "a refused import leaves the file");
    assert!(refused(folder.path(), &["import", "logs", "-o", "w.json"]).contains("--suite is not given"));

    let table = "# tool: Some tool\n# a note\ncase,type,mode,microseconds\n\"tokens [256, 4096]\",f32,copy,7.5\n";
    fs::write(folder.path().join("t.csv"), table).expect("written");
    assert!(refused(folder.path(), &["import", "t.csv", "-o", "t.json"])
        .contains("has no bytes, must have a column for them, or --suite"));
    well(folder.path(), &["import", "t.csv", "--suite", "s", "-o", "t.json"]);
    let compared = well(folder.path(), &["compare", "t.json", "win.json", "--format", "csv"]);
    assert!(compared.contains("0.9880,SAME"), "{compared}");
    fs::write(folder.path().join("t.csv"), "case,type,mode,microseconds\nx,f32,sideways,7.5\n").expect("written");
    assert!(refused(folder.path(), &["import", "t.csv", "--suite", "s", "-o", "u.json"]).contains("sideways"));
}

/// What the programs that a user has may print into `logs`. No log vanishes, and none ends the import.
#[test]
fn a_log_that_is_none_is_said() {
    let folder = suite();
    let import = |to: &str| run(folder.path(), &["import", "s/logs", "--suite", "s", "-o", to]);
    let said = text(&import("r.json").stderr);
    assert!(said.contains("ERROR: the folder 's/logs' is not there; run.ps1 and run.sh make"), "{said}");
    let logs = folder.path().join("s/logs");
    fs::create_dir(&logs).expect("a folder");
    assert!(text(&import("r.json").stderr).contains("there is no log in it"));
    let said = refused(folder.path(), &["import", "logs", "--suite", "s", "-o", "r.json"]);
    assert!(said.replace('\\', "/").contains("the folder 'logs' is not there; 's/logs' is"), "{said}");
    let write = |name: &str, bytes: &[u8]| fs::write(logs.join(format!("{name}.log")), bytes).expect("written");
    write("reverse.small_16x256.u8.copy", b"");
    write("reverse.small_16x256.f16.copy", b"'dxdispatch' \xFCbel\r\n");
    let said = text(&import("r.json").stderr);
    assert!(said.contains("ERROR: s/logs: there is no time in it of a case of the suite ("), "{said}");
    let time = |name: &str| {
        format!("Running on 'GPU'\nDispatch '{name}': 1 iterations, 1 ms median (CPU), 1 ms median (GPU)\n")
    };
    write("reverse.small_16x256.f32.copy", time("reverse.small_16x256.f32.copy").as_bytes());
    // Samples of four decimals, of a copy in Windows' words.
    let short = "GPU Timings (Hot) : 1 samples\niteration 0: 1 ms (CPU), 0.0025 ms (GPU)\n";
    let short = time("reverse.small_16x256.i64.copy").replace(", 1 ms median (GPU)", "") + short;
    write("reverse.small_16x256.i64.copy", short.as_bytes());
    write("reverse.small_16x256.i64.copy - Copy", time("reverse.small_16x256.i64.copy").as_bytes());
    write("reverse.tokens_256x4096.f32.copy", time("reverse.small_16x256.f32.copy").as_bytes());
    for name in ["other", "other 2", "other 3"] {
        write(name, time("other").as_bytes());
    }
    write("words", b"some other program's words\n");
    // What an earlier run wrote is not the output of a run that failed.
    write("check.fill.int8", b"Failed to create a device: 887A002D\n");
    fs::write(logs.join("check.fill.int8.bin"), [1]).expect("written");
    let output = import("r.json");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in [
        "4 logs are of no model of the suite 'quick ",
        "': other 2.log (dispatchable 'other'), other 3.log (dispatchable 'other'), other.log (dispatchable 'other'), …\n",
        "1 logs are of models that have a log, and are left out: reverse.small_16x256.i64.copy - Copy.log (of reverse.",
        "1 short cases have no medians of runs with -v 0, only samples with four decimals: reverse.small_16x256.i64.copy\n",
        " models of the suite have no log: ",
        "4 models failed; `dml-cuda report r.json` says why",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let run = read(&folder.path().join("r.json"));
    let causes: Vec<&str> =
        run["failed"].as_array().expect("failed").iter().map(|it| it["error"].as_str().expect("text")).collect();
    let other = "its log is of the dispatchable 'reverse.small_16x256.f32.copy'";
    assert_eq!(causes, ["nothing was printed", "'dxdispatch' \u{fffd}bel", other]);
    assert_eq!(run["cases"][1]["samples"], json!({ "each": [2.5] }));
    assert_eq!(run["failed_outputs"], json!({ "check.fill.int8": "Failed to create a device: 887A002D" }));
    assert_eq!((run["cases"].as_array().map(Vec::len), &run["outputs"]), (Some(2), &json!({})));
    // A run.sh that was interrupted over the logs of another machine.
    write("reverse.small_16x256.f16.copy", b"Running on 'GPU 2'\n");
    let said = refused(folder.path(), &["import", "s/logs", "--suite", "s", "-o", "2.json"]);
    assert!(said.contains("2 devices: 4 of 'GPU', 1 of 'GPU 2'; must be of one: delete the older logs"), "{said}");
}

/// From run.sh to the comparison, in folders with spaces, with failures in the middle; the same as PowerShell 5 writes it.
#[cfg(unix)]
#[test]
fn the_logs_of_a_whole_run_become_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    well(folder.path(), &["suite", "my suite", "--tier", "quick"]);
    install_dxdispatch(&path("my tools"));
    // The lists of the script are long.
    let script = fs::read_to_string(path("my suite/run.sh")).expect("a script");
    let is_left_out = |line: &&str| {
        let name = line.split(' ').next().unwrap_or_default();
        let is_model = path(&format!("my suite/{name}.json")).is_file();
        is_model
            && !["small_16x256", "check.fill", "over_long", "roof_of_copies.1mib"].iter().any(|it| line.contains(it))
    };
    let script: String = script.lines().filter(|line| !is_left_out(line)).map(|line| line.to_owned() + "\n").collect();
    fs::write(path("my suite/run.sh"), script).expect("written");
    let run_sh = |runner: &str, adapter: &str| {
        let output = std::process::Command::new("sh")
            .current_dir(path("my tools"))
            .args(["../my suite/run.sh", "--queue_type", "direct"])
            .env("RUNNER", runner)
            .env("ADAPTER", adapter)
            .env("LOST_AT_V_0", "1")
            .output();
        let output = output.expect("sh starts");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, said) = run_sh("./nothing", "");
    assert!(code == Some(1) && said.contains("ERROR: RUNNER is './nothing', must be a program"), "{said}");
    assert!(!path("my suite/logs").exists(), "nothing else is run");
    let (code, _, said) = run_sh("../my suite", "");
    assert!(code == Some(1) && said.contains("ERROR: RUNNER is '../my suite', must be a program"), "{said}");
    // `sh -S` prints an error.
    for runner in ["true", "sh"] {
        fs::create_dir_all(path("my suite/logs")).expect("a folder");
        fs::write(path("my suite/logs/dependencies.log"), "older").expect("written");
        let (code, _, said) = run_sh(runner, "");
        assert!(code == Some(1) && said.contains(&format!("ERROR: RUNNER '{runner}' does not start")), "{said}");
        assert_eq!(fs::read(path("my suite/logs/dependencies.log")).expect("a log"), b"older");
        assert_eq!(fs::read_dir(path("my suite/logs")).expect("a folder").count(), 1);
    }
    let (code, said, errors) = run_sh("./dxdispatch.exe", "Some");
    assert!(code == Some(0) && errors.is_empty() && said.contains("3 models failed."), "{said}{errors}");
    let next = said.lines().last().and_then(|line| line.strip_prefix("Next: dml-cuda ")).expect("the next command");
    let logs = path("my suite/logs");
    assert!(next.starts_with("import \"/") && next.contains("/my suite/logs\" --suite \""), "{next}");

    let import = ["import", "my suite/logs", "--suite", "my suite", "-o"];
    let said = run(folder.path(), &[&import[..], &["utf8.json"]].concat());
    let warned = text(&said.stderr);
    assert!(
        warned.contains("models of the suite have no log: ") && warned.contains("WARNING: 4 models failed"),
        "{warned}"
    );
    let utf8 = read(&path("utf8.json"));
    assert_eq!(utf8["label"], json!("DxDispatch with DirectML 1.15.4 on Some GPU"));
    assert_eq!(utf8["machine"]["driver"], json!("32.0.15.6094"));
    assert_eq!(utf8["outputs"].as_object().map(serde_json::Map::len), Some(13));

    // PowerShell 5.1's `*>`: UTF-16, and a record of the first line of stderr, which is wrapped.
    for entry in fs::read_dir(&logs).expect("a folder").filter_map(Result::ok) {
        let entry = entry.path();
        if entry.extension().is_some_and(|extension| extension == "log") {
            let mut lines = String::new();
            for line in fs::read_to_string(&entry).expect("text").lines() {
                match line.starts_with("Failed to ") {
                    true => {
                        let (begin, end) = line.split_at(line.len().min(60));
                        let place = "At C:\\my suite\\run.ps1:12 char:5\r\n+     & $DxDispatch \"$name.json\" -i 31\r\n+     ~~~~~";
                        let info =
                            "    + CategoryInfo          : NotSpecified: (Failed to :String) [], RemoteException";
                        let id = "    + FullyQualifiedErrorId : NativeCommandError\r\n ";
                        lines += &format!("dxdispatch.exe : {begin}\r\n{end}\r\n{place}\r\n{info}\r\n{id}\r\n");
                    }
                    false => lines += &format!("{line}\r\n"),
                }
            }
            let bytes: Vec<u8> =
                [0xFF, 0xFE].into_iter().chain(lines.encode_utf16().flat_map(u16::to_le_bytes)).collect();
            fs::write(&entry, bytes).expect("written");
        }
    }
    run(folder.path(), &[&import[..], &["utf16.json"]].concat());
    assert_eq!(read(&path("utf16.json")), utf8, "the encoding makes no difference");

    // Beside a run of this program: every failed case is a row with its cause, and the outputs have their reasons.
    let bench = ["bench", "my suite", "-o", "linux.json", "-a", "cpu", "--samples", "5", "--only"];
    for only in ["small_16x256", "check.fill.int8"] {
        well(folder.path(), &[&bench[..], &[only]].concat());
    }
    let table = well(folder.path(), &["compare", "utf16.json", "linux.json"]);
    for words in [
        "A failed: Failed to parse the model: Failed to parse dispatchable reverse.small_16x256.f16.copy: Error parsing field",
        "A failed: no dispatch was printed",
        "A: 2 cases failed",
        "WARNING: A and B were timed differently.",
        "not compared: 1 MiB, u32, roof of copies of 'DxDispatch with DirectML 1.15.4 on Some GPU': Failed to execute the model: 887A0005",
        "(in place) that 'DxDispatch with DirectML 1.15.4 on Some GPU' does not have: DirectML accepts them",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
}
