//! suite, bench and report: from the cases to a report, and what each says of wrong input.

mod bench;
mod interrupted;
mod report_files;
mod reports;
mod runners;

#[cfg(unix)]
use std::process::Stdio;
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use crate::Ended;
use crate::{stderr, stdout, Folder};

#[test]
fn every_model_of_a_suite_runs_on_windows_too() {
    let folder = Folder::new();
    let said = folder.well(&["suite", "my suite", "--tier", "quick"]);
    assert!(said.starts_with("Suite 'quick "), "{said}");
    let suite = folder.names("my suite");
    let models: Vec<&str> = suite
        .iter()
        .filter_map(|name| name.strip_suffix(".json"))
        .collect();
    let (mut in_place, mut outputs, mut over_long) = (0, 0, 0);
    for name in &models {
        let file = format!("{name}.json");
        assert!(name.is_ascii() && folder.read(&format!("my suite/{file}")).is_ascii());
        let mut command = folder.dml_cuda();
        let command =
            command
                .current_dir(folder.path("my suite"))
                .args([&file, "--strict", "--validate"]);
        let output = command.output().expect("it starts");
        let said = stdout(&output) + &stderr(&output);
        // --strict refuses lengths above the axis size, and the copies, which are another operator. Nothing else.
        let why = match name {
            _ if name.starts_with("over_long.") => "the size of the axis",
            _ if name.starts_with("baseline_of_copies.") => "ELEMENT_WISE_IDENTITY",
            _ => "",
        };
        assert!(
            output.status.success() == why.is_empty() && said.contains(why),
            "{name}: {said}"
        );
        // DirectML accepts in place and is wrong.
        let warned = said.contains("one resource for InputTensor and OutputTensor");
        assert_eq!(warned, name.ends_with(".in_place"), "{name}");
        in_place += usize::from(warned);
        outputs += usize::from(name.starts_with("check."));
        over_long += usize::from(name.starts_with("over_long."));
    }
    assert!(
        models.len() > 180 && in_place > 50,
        "{} {in_place}",
        models.len()
    );
    assert_eq!((outputs, over_long), (26, 4));
    folder.refuses(
        &["suite", "my suite"],
        "the folder is not empty; name one that is empty or not there",
    );
    folder.refuses(
        &["suite", "my suite", "--tier", "full"],
        "the folder is not empty; name one that is empty or not there",
    );
    assert_eq!(folder.names("my suite"), suite);
    folder.write("file", "kept");
    folder.refuses(&["suite", "file"], "ERROR: file: ");
    folder.refuses(&["suite", "file/inside"], "ERROR: file/inside: ");
    assert_eq!(folder.names(""), ["file", "my suite"]);
}

/// A process that is asked to stop first ends what it is doing in the system, such as making a file.
#[cfg(unix)]
fn wait_until_stopped(process: &std::process::Child) {
    let stat = format!("/proc/{}/stat", process.id());
    // Only Linux has this file.
    interrupted::wait_until(|| {
        std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") T "))
    });
}

/// Neither a full disk nor a signal leaves a part of a suite. Whoever tries again needs a new folder.
#[test]
#[cfg(unix)]
fn a_suite_that_ends_early_leaves_only_what_others_have_written() {
    let folder = Folder::new();
    for limit in ["ulimit -f 4", "trap '' XFSZ; ulimit -f 4"] {
        let limited = |to: &str| folder.shell(&format!("{limit}; \"$0\" suite {to} --tier quick"));
        limited("'a new'/part").fails(1, "ERROR: a new/part: File too large");
        assert_eq!(folder.names(""), [""; 0]);
        std::fs::create_dir(folder.path("part")).expect("a folder");
        limited("part").fails(1, "ERROR: part: ");
        assert_eq!(folder.names("part"), [""; 0]);
        std::fs::remove_dir(folder.path("part")).expect("it is empty");
    }
    let begin = |arguments: &[&str]| {
        let mut command = folder.dml_cuda();
        let mut child = command
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        while folder.path("suite").read_dir().map_or(0, Iterator::count) < 9 {
            assert_eq!(child.try_wait().expect("it is there"), None);
            std::thread::sleep(Duration::from_millis(1));
        }
        child
    };
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let mut first = begin(&["suite", "suite"]);
        interrupted::send("-STOP", &first);
        wait_until_stopped(&first);
        // A second suite, of any tier, is refused. It takes nothing away from the first one.
        let written = folder.names("suite");
        for tier in ["quick", "standard", "full"] {
            folder.refuses(
                &["suite", "suite", "--tier", tier],
                "suite: another process is filling it, or was killed",
            );
        }
        assert_eq!(folder.names("suite"), written);
        folder.write("suite/of another program", "kept");
        interrupted::send(signal, &first);
        interrupted::send("-CONT", &first);
        assert_eq!(
            first.wait().expect("it ends").code(),
            Some(code),
            "{signal}"
        );
        assert_eq!(
            (folder.names(""), folder.names("suite")),
            (
                vec!["suite".to_owned()],
                vec!["of another program".to_owned()]
            )
        );
        std::fs::remove_dir_all(folder.path("suite")).expect("removed");
    }
    // Two at once: one is whole, and the other one is refused. A job in the background of a script ignores Ctrl-C.
    let suite = "\"$0\" suite suite --tier quick";
    let codes = folder
        .shell(&format!(
            "{suite} >&2 & {suite} >&2; echo $?; wait $!; echo $?"
        ))
        .well();
    assert!(["0\n1\n", "1\n0\n"].contains(&codes.as_str()), "{codes}");
    let job = suite.replace("suite suite", "suite job");
    folder
        .shell(&format!(
            "{job} & while [ ! -e job ]; do :; done; kill -INT $!; wait $!"
        ))
        .well();
    assert_eq!(folder.names("suite"), folder.names("job"));
    assert!(folder
        .names("job")
        .iter()
        .all(|name| folder.read(&format!("job/{name}")) == folder.read(&format!("suite/{name}"))));
}
