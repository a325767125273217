//! `bench`: timing cases with dml-cuda itself, interrupted, and with wrong input.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::{dml_cuda, stderr, Ended, Folder};

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
    // Nothing is replaced but with --overwrite, and then only a run or a report.
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

/// A command that starts this program so that it can be interrupted: on Windows in a console of its own.
#[cfg(unix)]
fn interruptible(_: &Path) -> Option<Command> {
    Some(dml_cuda())
}

#[cfg(windows)]
fn interruptible(tools: &Path) -> Option<Command> {
    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    super::runners::install(tools, "interrupts.exe").then(|| {
        let mut command = Command::new(tools.join("interrupts.exe"));
        std::os::windows::process::CommandExt::creation_flags(&mut command, CREATE_NO_WINDOW);
        command
            .env("INTERRUPT", tools.join("now"))
            .arg("--")
            .arg(dml_cuda().get_program());
        command
    })
}

/// Waits for what comes in at most two minutes.
fn wait_until(mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed().as_secs() < 120, "it is slow");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends Ctrl-C.
fn interrupt(bench: &Child, tools: &Path) {
    match cfg!(windows) {
        true => fs::write(tools.join("now"), "").expect("written"),
        false => send("-INT", bench),
    }
}

pub fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

/// An interrupted run stays, and says that it is partial.
#[test]
fn an_interrupted_bench_leaves_a_partial_run() {
    let [folder, scratch, tools] = [(); 3].map(|()| Folder::new());
    let arguments = [
        "bench", "-o", "i.json", "--tier", "quick", "-a", "cpu", "--only", "small_",
    ];
    let Some(mut bench) = interruptible(tools.0.path()) else {
        return;
    };
    bench
        .current_dir(&folder.0)
        .args(arguments)
        .stderr(Stdio::null())
        .stdout(Stdio::null());
    bench.envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, scratch.0.path())));
    let mut bench = bench.spawn().expect("it starts");
    let count = || {
        fs::read_to_string(folder.path("i.json")).map_or(0, |run| run.matches("\"case\"").count())
    };
    wait_until(|| count() >= 3);
    interrupt(&bench, tools.0.path());
    assert_eq!(bench.wait().expect("it ends").code(), Some(130));
    assert_eq!(scratch.names(""), [""; 0], "no temporary folder is left");
    let kept = folder.json("i.json");
    assert!(
        cases(&kept).len() >= 3 && kept["planned"] == 11,
        "{}",
        kept["planned"]
    );
    assert_eq!(folder.names(""), ["i.json"]);
    let report = folder.well(&["report", "i.json"]);
    assert!(report.contains(" on CPU is partial: "), "{report}");
    if cfg!(windows) {
        return;
    }
    // A complete run stays until the next one is.
    let mut complete = folder.dml_cuda();
    complete
        .args(arguments)
        .arg("--overwrite")
        .stderr(Stdio::piped());
    let mut child = complete.stdout(Stdio::null()).spawn().expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"))
        .lines()
        .map_while(Result::ok);
    assert!(said.any(|line| line.contains("of 11 cases")));
    send("-TERM", &child);
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    assert_eq!(folder.json("i.json"), kept);
    let saved = said.find_map(|line| {
        Some(
            line.strip_prefix("NOTE: interrupted; it is saved as ")?
                .to_owned(),
        )
    });
    let saved = folder.path(&saved.expect("the cases that ran are not lost"));
    assert!(fs::read_to_string(&saved)
        .expect("it is there")
        .contains("\"each\""));
    fs::remove_file(saved).expect("removed");
}

/// Keeps a bench from its run until it is dropped: on Windows a program that does not share the file, elsewhere a
/// folder that is moved away.
#[cfg(windows)]
fn lock(run: &Path) -> fs::File {
    use std::os::windows::fs::OpenOptionsExt;
    loop {
        if let Ok(file) = fs::File::options().read(true).share_mode(0).open(run) {
            return file;
        }
    }
}

#[cfg(unix)]
fn lock(run: &Path) -> impl Drop {
    struct Moved(std::path::PathBuf);
    impl Drop for Moved {
        fn drop(&mut self) {
            fs::rename(self.0.with_extension("away"), &self.0).expect("moved back");
        }
    }
    let folder = run.parent().expect("a folder");
    fs::rename(folder, folder.with_extension("away")).expect("moved");
    Moved(folder.to_owned())
}

#[test]
fn a_bench_goes_on_while_its_run_cannot_be_written() {
    for is_short in [true, false] {
        let folder = Folder::new();
        let path = folder.path("runs/x.json");
        fs::create_dir(folder.path("runs")).expect("made");
        let mut bench = folder.dml_cuda();
        let arguments = [
            "bench",
            "-o",
            "runs/x.json",
            "--tier",
            "quick",
            "-a",
            "cpu",
            "--only",
            "small_",
        ];
        bench
            .args(arguments)
            .args(["--samples", "200"])
            .stderr(Stdio::piped());
        let mut bench = bench.stdout(Stdio::null()).spawn().expect("it starts");
        wait_until(|| path.exists());
        let mut lock = Some(lock(&path));
        let mut said = BufReader::new(bench.stderr.take().expect("a pipe")).lines();
        let warning = said.find_map(|line| {
            line.ok()
                .filter(|line| line.contains("; the next case writes again"))
        });
        let why = if cfg!(windows) {
            "it may be open in another program, but must be closed"
        } else {
            ""
        };
        assert!(
            warning.is_some_and(|line| line.starts_with(&format!("WARNING: runs/x.json: {why}")))
        );
        if is_short {
            lock = None;
        }
        let last = said.map_while(Result::ok).last().expect("a line");
        assert_eq!(
            bench.wait().expect("it ends").code(),
            Some(i32::from(!is_short)),
            "{last}"
        );
        if cfg!(windows) && lock.is_some() {
            folder.refuses(&[&arguments[..], &["--overwrite"]].concat(), why);
        }
        drop(lock);
        let count = cases(&folder.json("runs/x.json")).len();
        if is_short {
            assert_eq!(count, 11);
            continue;
        }
        // All cases are somewhere else, as the last line says.
        assert!(
            count < 11 && last.starts_with(&format!("ERROR: runs/x.json: {why}")),
            "{count} {last}"
        );
        let saved = folder.path(last.split_once("; it is saved as ").expect("a path").1);
        let run: Value =
            serde_json::from_slice(&fs::read(&saved).expect("it is there")).expect("JSON");
        assert_eq!(cases(&run).len(), 11);
        fs::remove_file(saved).expect("removed");
    }
}

/// Another program's file stays, and the whole run is next to it.
#[test]
fn what_cannot_be_saved_under_its_name_is_saved_elsewhere() {
    let folder = Folder::new();
    let arguments = [
        "bench", "-o", "x.json", "--tier", "quick", "-a", "cpu", "--only", "small_",
    ];
    let mut bench = folder.dml_cuda();
    let mut bench = bench
        .args(arguments)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_until(|| folder.path("x.json").exists());
    folder.write("y.json", "{}");
    fs::rename(folder.path("y.json"), folder.path("x.json")).expect("another program writes it");
    let said = BufReader::new(bench.stderr.take().expect("a pipe"))
        .lines()
        .map_while(Result::ok)
        .last();
    assert_eq!(
        (bench.wait().expect("it ends").code(), folder.read("x.json")),
        (Some(1), b"{}".to_vec())
    );
    let said = said.expect("a line");
    let error = "ERROR: x.json: another program has written it, but must stay as this bench wrote it; it is saved as ";
    let saved = said.strip_prefix(error).unwrap_or_else(|| panic!("{said}"));
    assert!(
        !saved.contains("/./") && !saved.contains(r"\.\") && !saved.contains('?'),
        "{saved}"
    );
    let saved: Value =
        serde_json::from_slice(&fs::read(folder.path(saved)).expect("it is there")).expect("JSON");
    assert_eq!(cases(&saved).len(), 11);
    if cfg!(target_os = "linux") {
        let said = folder.run(&[
            "bench",
            "-o",
            "/dev/full",
            "-a",
            "cpu",
            "--only",
            "check.fill.int8",
        ]);
        let said = said.fails(1, "/dev/full: No space left on device");
        fs::remove_file(
            said.trim_end()
                .split_once("; it is saved as ")
                .expect("a path")
                .1,
        )
        .expect("removed");
        let mut bench = folder.dml_cuda();
        bench.env("TMPDIR", "absent").args([
            "bench",
            "-o",
            "t.json",
            "-a",
            "cpu",
            "--only",
            "check.fill.int8",
        ]);
        let said = "ERROR: nothing can be written to the temporary folder absent: ";
        bench.output().expect("it starts").fails(1, said);
    }
    // A program that can write nothing has no error to print.
    #[cfg(unix)]
    for (before, code, said) in [
        (
            "trap '' XFSZ; ulimit -f 0; TMPDIR=.",
            1,
            "ERROR: nothing can be written to the temporary folder .: File too",
        ),
        ("TMPDIR=", 0, ""),
    ] {
        let bench = folder.shell(&format!(
            "{before} \"$0\" bench -o - -a cpu --only check.fill.int8"
        ));
        assert!(
            bench.status.code() == Some(code) && stderr(&bench).contains(said),
            "{before}: {bench:?}"
        );
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

/// Processes that a bench started end with it, even if it has no time to end them.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_bench_leaves_no_process() {
    let mut bench = dml_cuda();
    bench.args([
        "bench",
        "-o",
        "-",
        "-a",
        "cpu",
        "--tier",
        "quick",
        "--samples",
        "1000",
        "--only",
    ]);
    let mut bench = bench
        .arg("baseline_of_copies.64mib")
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let words = |id: &str| fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let mut child = String::new();
    // The second process of the case takes seconds.
    wait_until(|| {
        let path = format!("/proc/{0}/task/{0}/children", bench.id());
        child = fs::read_to_string(path)
            .expect("Linux tells children")
            .trim()
            .to_owned();
        let found = words(&child);
        found.contains("kernel\0baseline_of_copies") && !found.contains("-i\x001\0")
    });
    bench.kill().expect("killed");
    bench.wait().expect("it ends");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(words(&child), "", "it lives on");
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
        "the device is CPU, but must be a GPU",
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
