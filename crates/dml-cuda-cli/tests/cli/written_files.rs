//! `writeFile` replaces the bytes of a file, keeps its mode and links, and leaves no other files behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::{symlink, FileTypeExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::{one_resource, runner, small, Ended, Folder};

/// A model that writes `count` bytes of 7.
fn model(count: u64, target: &Path) -> Value {
    let write = json!([{ "type": "writeFile", "resource": "A", "targetPath": target }]);
    one_resource("UINT8", json!({ "valueCount": count, "value": 7 }), write)
}

fn write(folder: &Folder, target: &Path) -> Output {
    folder.run_model(&model(4, target), &["-a", "cpu"])
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

#[test]
fn a_link_is_followed_and_the_mode_is_kept() {
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
    fs::set_permissions(&file, Permissions::from_mode(0o751)).expect("set");
    fs::write(&file, "old").expect("written");
    written(&file);
    assert_eq!(mode(&file), 0o751);
    // It does not run as its owner, who may be another.
    fs::set_permissions(&file, Permissions::from_mode(0o6751)).expect("set");
    written(&file);
    assert_eq!(mode(&file), 0o751);
    // A link from another folder stays a link.
    fs::write(&file, "old").expect("written");
    let link = folder.path("link");
    symlink("out/file", &link).expect("linked");
    written(&link);
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert_eq!((fs::read(&file).expect("there"), mode(&file)), (vec![7; 4], 0o751));
    // The longest possible name.
    written(&out.join("n".repeat(255)));
    // Missing folders are created.
    written(&out.join("a/b/c.bin"));
    assert_eq!(folder.names("out"), ["a", "file", &"n".repeat(255), "other"]);
}

#[test]
fn what_is_no_writable_file_is_refused_and_stays() {
    let folder = Folder::new();
    let out = folder.path("out");
    fs::create_dir(&out).expect("made");
    let refused = |name: &str, why: &str| {
        let start =
            format!("ERROR: model.json: line 1: commands[0]: writeFile 'A' to '{}': {why}", out.join(name).display());
        write(&folder, &out.join(name)).fails(1, &start);
    };
    fs::write(out.join("kept"), "old").expect("written");
    fs::set_permissions(out.join("kept"), Permissions::from_mode(0o444)).expect("set");
    refused("kept", "it is read-only");
    assert_eq!((fs::read(out.join("kept")).expect("there"), mode(&out.join("kept"))), (b"old".to_vec(), 0o444));
    assert!(Command::new("mkfifo").arg(out.join("pipe")).status().expect("mkfifo runs").success());
    refused("pipe", "it is not a regular file");
    assert!(fs::symlink_metadata(out.join("pipe")).expect("there").file_type().is_fifo());
    symlink("/dev/null", out.join("null")).expect("linked");
    refused("null", "it is not a regular file");
    symlink("nowhere", out.join("lost")).expect("linked");
    refused("lost", "it is a link that leads nowhere: ");
    fs::create_dir(out.join("folder")).expect("made");
    refused("folder", "it is not a regular file");
    assert_eq!(folder.names("out"), ["folder", "kept", "lost", "null", "pipe"]);
    // A folder in which nobody makes files: the error has no other name.
    let said = write(&folder, Path::new("/sys/new"))
        .fails(1, "ERROR: model.json: line 1: commands[0]: writeFile 'A' to '/sys/new': ");
    assert!(said.trim_end().ends_with(')') && !said.contains(".dml-cuda-"), "{said}");
}

#[test]
fn a_file_that_the_model_was_read_from_is_not_replaced() {
    let folder = Folder::new();
    folder.write("in.bin", [1, 2, 3, 4]);
    let mut model = small();
    model["resources"]["In"] = json!({ "initialValuesDataType": "UINT8", "initialValues": { "sourcePath": "in.bin" } });
    for target in ["model.json", "in.bin"] {
        model["commands"] = json!([{ "type": "writeFile", "resource": "Out", "targetPath": target }]);
        folder.run_model(&model, &[]).fails(1, "the model was read from it");
        assert_eq!(folder.json("model.json"), model);
        assert_eq!(folder.read("in.bin"), [1, 2, 3, 4]);
    }
}

#[test]
fn a_signal_leaves_no_partial_file() {
    let folder = Folder::new();
    let out = folder.path("out");
    folder.write("model.json", model(256 << 20, &out.join("large")).to_string());
    // A signal that nohup ignores stays ignored.
    for (signal, before, ended) in
        [("-INT", "", 130), ("-TERM", "", 143), ("-HUP", "", 129), ("-HUP", "trap '' HUP; ", 0)]
    {
        fs::create_dir(&out).expect("made");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{before}exec \"$0\" -a cpu \"$1\"")]).arg(runner().get_program());
        shell.arg(folder.path("model.json"));
        let mut child = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the runner starts");
        // The signal comes as soon as any file exists.
        let started = Instant::now();
        while folder.names("out").is_empty() {
            assert!(started.elapsed() < Duration::from_secs(60), "nothing was written");
            std::thread::sleep(Duration::from_millis(1));
        }
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        let status = child.wait().expect("it ends");
        // If the writer was faster than the signal, the file is complete.
        match status.code() {
            Some(code) if code == ended => {
                assert!(folder.names("out").is_empty() || folder.names("out") == ["large"], "{:?}", folder.names("out"))
            }
            code => assert!(
                code == Some(0) && folder.names("out") == ["large"],
                "{sent} {status} {:?}",
                folder.names("out")
            ),
        }
        if let Ok(metadata) = fs::metadata(out.join("large")) {
            assert_eq!(metadata.len(), 256 << 20);
        }
        fs::remove_dir_all(&out).expect("removed");
    }
}
