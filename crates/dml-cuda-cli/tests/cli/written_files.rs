//! `writeFile` leaves a new file complete or absent, and overwrites one that is there, in place.

use std::fs::{self, Permissions};
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::{dml_cuda, one_resource, small, Ended, Folder};

/// A model that writes `count` bytes of 7.
fn model(count: u64, target: &Path) -> Value {
    let write = json!([{ "type": "writeFile", "resource": "A", "targetPath": target }]);
    one_resource("UINT8", json!({ "valueCount": count, "value": 7 }), write)
}

/// Runs a model that writes four bytes to a path.
fn write(folder: &Folder, target: &Path) -> Output {
    folder.run_model(&model(4, target), &["-a", "cpu"])
}

/// The permissions of a file.
fn mode(path: &Path) -> u32 {
    fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn new_files_links_and_missing_folders_are_written() {
    let folder = Folder::new();
    let out = folder.path("out");
    fs::create_dir(&out).expect("made");
    let written = |target: &Path| {
        write(&folder, target).well();
        assert_eq!(fs::read(target).expect("written"), [7; 4]);
    };
    // A new file has the default mode.
    let (file, other) = (out.join("file"), out.join("other"));
    written(&file);
    fs::write(&other, "").expect("written");
    assert_eq!(mode(&file), mode(&other));
    // A link from another folder stays a link.
    fs::write(&file, "old").expect("written");
    let link = folder.path("link");
    symlink("out/file", &link).expect("linked");
    written(&link);
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert_eq!(fs::read(&file).expect("there"), [7; 4]);
    // The longest possible name.
    written(&out.join("n".repeat(255)));
    // Missing folders are created.
    written(&out.join("a/b/c.bin"));
    assert_eq!(
        folder.names("out"),
        ["a", "file", &"n".repeat(255), "other"]
    );
}

#[test]
fn what_is_no_writable_file_is_refused_and_stays() {
    let folder = Folder::new();
    let out = folder.path("out");
    fs::create_dir(&out).expect("made");
    let refused = |name: &str, why: &str| {
        let start = format!(
            "ERROR: model.json: line 1: commands[0]: writeFile 'A' to '{}': {why}",
            out.join(name).display()
        );
        write(&folder, &out.join(name)).fails(1, &start);
    };
    fs::write(out.join("kept"), "old").expect("written");
    fs::set_permissions(out.join("kept"), Permissions::from_mode(0o444)).expect("set");
    refused("kept", "it is read-only");
    assert_eq!(
        (
            fs::read(out.join("kept")).expect("there"),
            mode(&out.join("kept"))
        ),
        (b"old".to_vec(), 0o444)
    );
    assert!(Command::new("mkfifo")
        .arg(out.join("pipe"))
        .status()
        .expect("mkfifo runs")
        .success());
    refused("pipe", "it is a named pipe, but must be a file");
    symlink("/dev/full", out.join("full")).expect("linked");
    refused("full", "No space left on device");
    symlink("nowhere", out.join("lost")).expect("linked");
    refused("lost", "it is a link that leads nowhere: ");
    fs::create_dir(out.join("folder")).expect("made");
    refused("folder", "it is a folder, but must be a file");
    refused("new/", "it is a folder, but must be a file");
    assert_eq!(
        folder.names("out"),
        ["folder", "full", "kept", "lost", "pipe"]
    );
    // A folder in which no one can make files: the error has no other name.
    let said = write(&folder, Path::new("/sys/new")).fails(
        1,
        "ERROR: model.json: line 1: commands[0]: writeFile 'A' to '/sys/new': ",
    );
    assert!(
        said.trim_end().ends_with(')') && !said.contains(".dml-cuda-"),
        "{said}"
    );
}

#[test]
fn devices_and_pipes_are_written_to() {
    let folder = Folder::new();
    let written = |target: &str, line: &str| {
        folder.write("model.json", model(4, Path::new(target)).to_string());
        folder
            .shell(&line.replace("RUN", "\"$0\" model.json -a cpu"))
            .well()
    };
    let device = fs::metadata("/dev/null").expect("there");
    written("/dev/null", "RUN");
    assert_eq!(
        fs::metadata("/dev/null").expect("there").file_type(),
        device.file_type()
    );
    let expected = |target: &str| {
        format!("Running on 'CPU'\n\u{7}\u{7}\u{7}\u{7}Resource 'A' written to '{target}'\n")
    };
    for to in ["| cat", "> to; cat to"] {
        assert_eq!(
            written("/dev/stdout", &format!("RUN {to}")),
            expected("/dev/stdout")
        );
    }
    let run = "bench -a cpu --only check.fill.int8 -o";
    assert!(folder
        .shell(&format!("\"$0\" {run} /dev/stdout | cat"))
        .well()
        .starts_with("{\n"));
    folder
        .shell(&format!(
            "\"$0\" {run} r.json && \"$0\" report r.json -o /dev/null --format md"
        ))
        .well();
    assert_eq!(folder.names(""), ["model.json", "r.json", "to"]);
}

/// A file may be writable in a folder that is not.
#[test]
fn a_folder_that_cannot_be_written_has_files_that_can() {
    let folder = Folder::new();
    let is_root = folder.shell("id -u").well() == "0\n";
    let user = if is_root {
        "setpriv --reuid 12345 --clear-groups "
    } else {
        ""
    };
    let run = |target: &str| {
        folder.write("model.json", model(4, Path::new(target)).to_string());
        folder.shell(&format!("{user}\"$0\" model.json -a cpu"))
    };
    let bench = |target: &str| {
        folder.shell(&format!(
            "{user}\"$0\" bench -a cpu --only check.fill.int8 --samples 1 --overwrite -o {target}"
        ))
    };
    fs::create_dir(folder.path("others")).expect("made");
    folder.write("others/file", "longer than what is written");
    folder.write("others/run", "");
    folder
        .shell("chmod 755 . && chmod 666 others/* && chmod 555 others")
        .well();
    run("others/file").well();
    bench("others/run").well();
    assert_eq!(
        (folder.read("others/file"), folder.names("others")),
        (vec![7; 4], vec!["file".into(), "run".into()])
    );
    assert!(folder.read("others/run").starts_with(b"{\n"));
    run("others/new").fails(1, "others/new': Permission denied");
    bench("others/new").fails(
        1,
        "others/new: no file can be made in the folder others: Permission denied",
    );
    folder
        .shell("chmod 755 others && chmod 555 others/run")
        .well();
    // What cannot be written is known before a case is timed.
    let said = bench("others/run").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(
        said.starts_with("ERROR: others/run: ") && said.lines().count() == 1,
        "{said}"
    );
}

/// A full disk loses what an overwritten file held, and nothing of what was to be written.
#[test]
fn a_full_disk_saves_what_is_written_elsewhere() {
    let folder = Folder::new();
    if !folder.shell("unshare -m true").status.success() {
        return eprintln!("SKIPPED: nothing can be mounted");
    }
    let run = "\"$0\" bench -a cpu --only check.fill.int8 --samples 1 -o";
    folder.shell(&format!("{run} run.json")).well();
    fs::create_dir(folder.path("small")).expect("made");
    folder.write(
        "model.json",
        model(1 << 20, Path::new("small/file")).to_string(),
    );
    let full = "mount -t tmpfs -o size=16k none small && head -c 16k /dev/zero > small/other && : > small/file";
    for (command, beginning) in [
        ("\"$0\" model.json -a cpu", vec![7; 1 << 20]),
        (&format!("{run} small/file --overwrite"), b"{\n".to_vec()),
        (
            "\"$0\" report run.json --format html -o small/file --overwrite",
            b"<!DOCTYPE html>".to_vec(),
        ),
    ] {
        let line = format!(
            "unshare -m sh -c '{full} && TMPDIR=$PWD && export TMPDIR && {command}' \"$0\""
        );
        let said = folder
            .shell(&line)
            .fails(1, "No space left on device (os error 28); it is saved as ");
        let saved = said.trim_end().rsplit('/').next().expect("a name");
        assert!(folder.read(saved).starts_with(&beginning), "{command}");
        fs::remove_file(folder.path(saved)).expect("removed");
    }
    assert_eq!(folder.names(""), ["model.json", "run.json", "small"]);
}

#[test]
fn a_file_that_the_model_was_read_from_is_not_replaced() {
    let folder = Folder::new();
    folder.write("in.bin", [1, 2, 3, 4]);
    let mut model = small();
    model["resources"]["In"] =
        json!({ "initialValuesDataType": "UINT8", "initialValues": { "sourcePath": "in.bin" } });
    for target in ["model.json", "in.bin"] {
        model["commands"] =
            json!([{ "type": "writeFile", "resource": "Out", "targetPath": target }]);
        folder
            .run_model(&model, &[])
            .fails(1, "the model was read from it");
        assert_eq!(folder.json("model.json"), model);
        assert_eq!(folder.read("in.bin"), [1, 2, 3, 4]);
    }
}

/// A file that is overwritten is still the same one, so it keeps its owner, its access control list and its links.
#[test]
fn a_file_that_is_there_is_overwritten_and_not_exchanged() {
    let folder = Folder::new();
    folder.write("model.json", model(4, Path::new("file")).to_string());
    folder.write("file", "longer than what is written");
    let identity = |name: &str| {
        let found = fs::metadata(folder.path(name)).expect("it is there");
        (found.ino(), found.uid(), found.gid(), found.mode())
    };
    for (name, command) in [
        ("file", "model.json -a cpu"),
        (
            "run",
            "bench -a cpu --only check.fill.int8 --samples 1 -o run --overwrite",
        ),
        ("report", "report run -o report --overwrite"),
    ] {
        folder.shell(&format!("\"$0\" {command}")).well();
        fs::set_permissions(folder.path(name), Permissions::from_mode(0o640)).expect("set");
        if folder.shell("id -u").well() == "0\n" {
            folder.shell(&format!("chown 1234:5678 {name}")).well();
        }
        let (before, older) = (identity(name), folder.read(name).len());
        folder.shell(&format!("\"$0\" {command}")).well();
        assert_eq!(identity(name), before, "{command}");
        assert!(
            folder.read(name).len().abs_diff(older) < 100,
            "{command}: nothing older is left"
        );
    }
    assert_eq!(folder.read("file"), [7; 4]);
    assert_eq!(folder.names(""), ["file", "model.json", "report", "run"]);
}

/// A limit of a file's size is an error, and leaves no new file. `side_by_side` has suites.
#[test]
fn a_limit_of_a_files_size_is_an_error_and_leaves_nothing() {
    let folder = Folder::new();
    for target in ["new", "a/b/c", "my folder/c"] {
        folder.write("model.json", model(100_000, Path::new(target)).to_string());
        let words = format!(
            "ERROR: model.json: line 1: commands[0]: writeFile 'A' to '{target}': File too large"
        );
        for limit in ["ulimit -f 8", "trap '' XFSZ; ulimit -f 8"] {
            folder
                .shell(&format!("{limit}; \"$0\" model.json -a cpu"))
                .fails(1, &words);
            assert_eq!(folder.names(""), ["model.json"]);
        }
    }
    let said = folder
        .shell("ulimit -f 0; \"$0\" schema > out")
        .fails(1, "ERROR: writing to standard output failed: ");
    assert!(said.contains("File too large"), "{said}");
}

#[test]
fn a_signal_leaves_no_partial_file() {
    let folder = Folder::new();
    let out = folder.path("out");
    folder.write(
        "model.json",
        model(64 << 20, &out.join("large")).to_string(),
    );
    // A signal that the parent ignores stays ignored: nohup, and a script's job in the background.
    for (signal, before, ended) in [
        ("-INT", "", 130),
        ("-TERM", "", 143),
        ("-HUP", "", 129),
        ("-HUP", "trap '' HUP; ", 0),
        ("-INT", "trap '' INT; ", 0),
        ("-TERM", "trap '' TERM; ", 0),
    ] {
        fs::create_dir(&out).expect("made");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{before}exec \"$0\" -a cpu \"$1\"")])
            .arg(dml_cuda().get_program());
        shell.arg(folder.path("model.json"));
        let mut child = shell
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("dml-cuda starts");
        // The signal comes as soon as any file exists.
        let started = Instant::now();
        while folder.names("out").is_empty() {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "nothing was written"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .expect("kill runs");
        let status = child.wait().expect("it ends");
        // If the writer was faster than the signal, the file is complete.
        match status.code() {
            Some(code) if code == ended => {
                assert!(
                    folder.names("out").is_empty() || folder.names("out") == ["large"],
                    "{:?}",
                    folder.names("out")
                )
            }
            code => assert!(
                code == Some(0) && folder.names("out") == ["large"],
                "{sent} {status} {:?}",
                folder.names("out")
            ),
        }
        if let Ok(metadata) = fs::metadata(out.join("large")) {
            assert_eq!(metadata.len(), 64 << 20);
        }
        fs::remove_dir_all(&out).expect("removed");
    }
}
