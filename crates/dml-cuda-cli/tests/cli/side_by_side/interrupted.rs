//! `bench` loses no result if it is interrupted, killed, or cannot write its file.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bench::cases;
use crate::{dml_cuda, Ended, Folder};

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
pub fn wait_until(mut is_there: impl FnMut() -> bool) {
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

/// Sends a signal by its option of `kill`.
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

/// Keeps a bench from its results file until it is dropped: on Windows a program that does not share the file, elsewhere a
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
            bench.status.code() == Some(code) && crate::stderr(&bench).contains(said),
            "{before}: {bench:?}"
        );
    }
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
