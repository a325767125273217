//! `bench`: timing cases by this runner, interrupted, and with wrong input.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use super::{read, refused, run, text, well};
use crate::{runner, Ended};

pub fn cases(run: &Value) -> &Vec<Value> {
    run["cases"].as_array().expect("cases")
}

#[test]
fn a_bench_writes_samples_and_outputs() {
    // A Windows user's folder may have a space.
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = scratch.path().join("my runs");
    fs::create_dir(&folder).expect("made");
    let bench = |to: &str, only: &str, more: &[&str]| {
        let arguments = ["bench", "-o", to, "--tier", "quick", "-a", "cpu", "--samples", "7", "--only", only];
        run(&folder, &[&arguments[..], more].concat())
    };
    assert!(bench("a.json", "small_16x256", &[]).status.success());
    let found = read(&folder.join("a.json"));
    assert_eq!((cases(&found).len(), &found["planned"], &found["schema"]), (8, &json!(8), &json!(2)));
    for case in cases(&found) {
        let samples = case["each"].as_array().expect("raw samples");
        assert!(samples.len() == 7 && samples.iter().all(|sample| sample.as_f64().expect("a number") > 0.0));
    }
    // Baselines have samples too, and every run has a report.
    assert!(bench("baselines.json", "baseline_of_copies.1mib", &[]).status.success());
    let baselines = read(&folder.join("baselines.json"));
    assert_eq!((cases(&baselines).len(), &baselines["planned"]), (1, &json!(1)));
    assert_eq!(cases(&baselines)[0]["each"].as_array().map(Vec::len), Some(14), "first and again last");
    well(&folder, &["report", "baselines.json"]);
    let command = found["machine"]["command"].as_str().expect("text");
    assert!(command.contains(" bench -o a.json") && !command.contains(['/', '\\']), "{command}");
    assert_eq!(found["machine"]["tool"], format!("dml-cuda {}", env!("CARGO_PKG_VERSION")));
    // Elements 0, 1, … of a UINT8 reversal of [4, 7, 5]. The length of lane n is n, or one that fits.
    assert!(bench("o.json", "4x7x5.uint8.uint32", &[]).status.success());
    let outputs = read(&folder.join("o.json"))["outputs"].clone();
    let fits = [0, 7, 1, 6, 2, 5, 3, 4, 4, 3, 5, 2, 6, 1, 7, 0, 0, 7, 1, 6];
    let counted: Vec<usize> = (0..20).collect();
    for (name, lengths) in [("check.reverse_4x7x5", &fits[..]), ("over_long.reverse_4x7x5", &counted)] {
        let output = &outputs[format!("{name}.uint8.uint32")];
        assert_eq!(output["expected_to_differ"].is_null(), name.starts_with("check"));
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
    let said = text(&bench("a.json", "check.fill.int8", &[]).stderr);
    assert!(said.contains("a.json: it is there, must be new; --overwrite replaces a run or a report"), "{said}");
    assert_eq!(read(&folder.join("a.json")), found);
    assert!(bench("a.json", "check.fill.int8", &["--overwrite"]).status.success());
    assert_eq!(cases(&read(&folder.join("a.json"))).len(), 0);
    // Standard output, and a folder that is not there.
    let printed = bench("-", "check.fill.int8", &[]);
    assert!(printed.status.success() && !folder.join("-").exists());
    let printed: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
    assert_eq!(printed["outputs"].as_object().map(serde_json::Map::len), Some(1));
    let said = text(&bench("new/x.json", "check.fill.int8", &[]).stderr);
    assert!(said.contains("the folder new is not there") && !folder.join("new").exists(), "{said}");
    if cfg!(target_os = "linux") {
        let output = bench("/proc/x.json", "check.fill.int8", &[]);
        let said = text(&output.stderr);
        assert!(said.starts_with("ERROR") && said.contains("no file can be made in the folder /proc: "), "{said}");
    }
}

/// A command that starts this program so that it can be interrupted: on Windows in a console of its own.
#[cfg(unix)]
fn interruptible(_: &Path) -> Option<Command> {
    Some(runner())
}

#[cfg(windows)]
fn interruptible(tools: &Path) -> Option<Command> {
    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    super::runners::install(tools, "interrupts.exe").then(|| {
        let mut command = Command::new(tools.join("interrupts.exe"));
        std::os::windows::process::CommandExt::creation_flags(&mut command, CREATE_NO_WINDOW);
        command.env("INTERRUPT", tools.join("now")).arg("--").arg(runner().get_program());
        command
    })
}

/// Sends Ctrl-C.
fn interrupt(bench: &Child, tools: &Path) {
    match cfg!(windows) {
        true => fs::write(tools.join("now"), "").expect("written"),
        false => send("-INT", bench),
    }
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// An interrupted run stays, and says that it is partial.
#[test]
fn an_interrupted_bench_leaves_a_partial_run() {
    let [folder, scratch, tools] = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let arguments = ["bench", "-o", "i.json", "--tier", "quick", "-a", "cpu", "--only", "small_"];
    let Some(mut bench) = interruptible(tools.path()) else { return };
    bench.current_dir(folder.path()).args(arguments).stderr(Stdio::null()).stdout(Stdio::null());
    let mut bench =
        bench.envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, scratch.path()))).spawn().expect("it starts");
    let path = folder.path().join("i.json");
    let begun = Instant::now();
    let count = || fs::read(&path).map_or(0, |bytes| text(&bytes).matches("\"case\"").count());
    while count() < 3 {
        assert!(begun.elapsed().as_secs() < 120, "it is slow");
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(&bench, tools.path());
    assert_eq!(bench.wait().expect("it ends").code(), Some(130));
    assert_eq!(fs::read_dir(scratch.path()).expect("a folder").count(), 0, "no temporary folder is left");
    let kept = read(&path);
    assert!(cases(&kept).len() >= 3 && kept["planned"] == 11, "{}", kept["planned"]);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left but the run");
    let report = well(folder.path(), &["report", "i.json"]);
    assert!(report.contains("WARNING: A is partial: "), "{report}");
    if cfg!(windows) {
        return;
    }
    // A complete run stays until the next one is.
    let mut complete = runner();
    complete.current_dir(folder.path()).args(arguments).arg("--overwrite").stderr(Stdio::piped());
    let mut child = complete.stdout(Stdio::null()).spawn().expect("it starts");
    let progress = BufReader::new(child.stderr.take().expect("a pipe"));
    let told = progress.lines().map_while(Result::ok).find(|line| line.contains("of 11 cases"));
    assert!(told.is_some());
    send("-TERM", &child);
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    assert_eq!(read(&path), kept);
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
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runs/x.json");
        fs::create_dir(folder.path().join("runs")).expect("made");
        let mut bench = runner();
        let arguments = ["bench", "-o", "runs/x.json", "--tier", "quick", "-a", "cpu", "--only", "small_"];
        bench.current_dir(folder.path()).args(arguments).args(["--samples", "200"]).stderr(Stdio::piped());
        let mut bench = bench.stdout(Stdio::null()).spawn().expect("it starts");
        let begun = Instant::now();
        while !path.exists() {
            assert!(begun.elapsed().as_secs() < 120, "it is slow");
            std::thread::sleep(Duration::from_millis(1));
        }
        let lock = lock(&path);
        let mut said = BufReader::new(bench.stderr.take().expect("a pipe")).lines();
        let warning = said.find_map(|line| line.ok().filter(|line| line.contains("; the next case writes again")));
        let why = if cfg!(windows) { "it may be open in another program, must be closed" } else { "" };
        assert!(warning.is_some_and(|line| line.starts_with(&format!("WARNING: runs/x.json: {why}"))));
        let lock = if is_short {
            drop(lock);
            None
        } else {
            Some(lock)
        };
        let last = said.map_while(Result::ok).last().expect("a line");
        assert_eq!(bench.wait().expect("it ends").code(), Some(i32::from(!is_short)), "{last}");
        if cfg!(windows) && lock.is_some() {
            let again = refused(folder.path(), &[&arguments[..], &["--overwrite"]].concat());
            assert!(again.contains(why), "{again}");
        }
        drop(lock);
        let count = cases(&read(&path)).len();
        match is_short {
            true => assert_eq!(count, 11),
            false => assert!(count < 11 && last.starts_with(&format!("ERROR: runs/x.json: {why}")), "{count} {last}"),
        }
    }
}

/// A bench of all cases says at once what it does, and how long that may take.
#[test]
fn a_bench_begins_with_an_estimate() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bench = runner();
    let arguments = ["bench", "-o", "-", "-a", "cpu", "--tier", "full"];
    let bench = bench.current_dir(folder.path()).args(arguments).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut bench = bench.stdout(Stdio::null()).spawn().expect("it starts");
    let first = BufReader::new(bench.stderr.take().expect("a pipe")).lines().next();
    bench.kill().and_then(|()| bench.wait()).expect("it ends");
    assert!(first.expect("a line").expect("text").contains("a GPU takes minutes, a CPU"));
    assert!(begun.elapsed().as_secs() < 5, "counting takes longer");
}

/// What a bench started ends with it, even if it has no time to end it.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_bench_leaves_no_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["bench", "-o", "-", "-a", "cpu", "--tier", "quick", "--samples", "1000", "--only"];
    let mut bench = runner();
    bench.current_dir(folder.path()).args(arguments).arg("baseline_of_copies.64mib").stderr(Stdio::null());
    let mut bench = bench.spawn().expect("it starts");
    let words = |id: &str| text(&fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default());
    let begun = Instant::now();
    // The second process of the case takes seconds.
    let child = loop {
        assert!(begun.elapsed().as_secs() < 60, "it is slow");
        let path = format!("/proc/{0}/task/{0}/children", bench.id());
        let child = fs::read_to_string(path).expect("Linux tells children").trim().to_owned();
        let found = words(&child);
        if found.contains("baseline\0copy") && !found.contains("-i\x001\0") {
            break child;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    bench.kill().expect("killed");
    bench.wait().expect("it ends");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(words(&child), "", "it lives on");
}

#[test]
fn a_cold_l2_is_a_gpus_of_this_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = refused(folder.path(), &["bench", "--cold-l2", "-o", "r.json", "-a", "cpu"]);
    assert!(said.contains("--cold-l2 is given on the CPU, must be on a GPU, whose L2 is kept cold"), "{said}");
    for others in [&["--tier", "full"][..], &["--runner", "dxdispatch"]] {
        run(folder.path(), &[&["bench", "-o", "r.json", "--cold-l2"], others].concat()).fails(2, "");
    }
    for wrong in [["--samples", "1001"], ["--only", ""]] {
        run(folder.path(), &[&["bench", "-o", "r.json"], &wrong[..]].concat()).fails(2, "");
    }
    let own = runner().get_program().to_string_lossy().into_owned();
    let said = refused(folder.path(), &["bench", "-o", "r.json", "-a", "cpu", "--runner", &own]);
    assert!(said.contains("--runner is dml-cuda on a CPU, must have a GPU"), "{said}");
    assert!(refused(folder.path(), &["kernel", "x", "-a", "cpu"]).contains("the device is CPU, must be a GPU"));
}

#[test]
fn a_bench_that_cannot_begin_says_it_once_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = refused(folder.path(), &["bench", "-o", "n.json", "-a", "no such GPU"]);
    assert!(said.contains("the adapter is 'no such GPU'"), "{said}");
    let said = refused(folder.path(), &["bench", "-o", "n.json", "-a", "cpu", "--only", "no such case"]);
    assert!(said.contains("is in the name of no case"), "{said}");
    #[cfg(unix)]
    {
        let said = refused(folder.path(), &["bench", "-o", "/dev/stdout", "-a", "cpu", "--only", "check.fill.int8"]);
        assert!(said.contains("/dev/stdout: it is "), "{said}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    // Not on a terminal there is a line for each tenth, and no more.
    let output = run(folder.path(), &["bench", "-o", "n.json", "-a", "cpu", "--only", "check.fill"]);
    let said = text(&output.stderr);
    assert_eq!(said.lines().filter(|line| line.contains(" of 10 cases, ")).count(), 10, "{said}");
}
