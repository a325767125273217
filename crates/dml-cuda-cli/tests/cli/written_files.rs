//! `writeFile` replaces the bytes of a file, keeps its mode and links, and leaves no other files behind.

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
    symlink("/dev/full", out.join("full")).expect("linked");
    refused("full", "No space left on device");
    symlink("nowhere", out.join("lost")).expect("linked");
    refused("lost", "it is a link that leads nowhere: ");
    fs::create_dir(out.join("folder")).expect("made");
    refused("folder", "it is a folder, but must be a file");
    refused("new/", "it is a folder, but must be a file");
    assert_eq!(folder.names("out"), ["folder", "full", "kept", "lost", "pipe"]);
    // A folder in which no one can make files: the error has no other name.
    let said = write(&folder, Path::new("/sys/new"))
        .fails(1, "ERROR: model.json: line 1: commands[0]: writeFile 'A' to '/sys/new': ");
    assert!(said.trim_end().ends_with(')') && !said.contains(".dml-cuda-"), "{said}");
}

/// Devices, pipes, mount points, and files in a folder of another user, in place and completely.
#[test]
fn what_cannot_be_renamed_to_is_written_in_place() {
    let folder = Folder::new();
    let written = |target: &str, line: &str| {
        folder.write("model.json", model(4, Path::new(target)).to_string());
        folder.shell(&line.replace("RUN", "\"$0\" model.json -a cpu")).well()
    };
    let device = fs::metadata("/dev/null").expect("there");
    written("/dev/null", "RUN");
    assert_eq!(fs::metadata("/dev/null").expect("there").file_type(), device.file_type());
    let expected = |target: &str| format!("Running on 'CPU'\n\u{7}\u{7}\u{7}\u{7}Resource 'A' written to '{target}'\n");
    for to in ["| cat", "> to; cat to"] {
        assert_eq!(written("/dev/stdout", &format!("RUN {to}")), expected("/dev/stdout"));
    }
    assert!(written("pipe", "mkfifo pipe; cat pipe > read & RUN && wait").starts_with("Running"));
    assert_eq!(folder.read("read"), [7; 4]);
    let run = "bench -a cpu --only check.fill.int8 -o";
    assert!(folder.shell(&format!("\"$0\" {run} /dev/stdout | cat")).well().starts_with("{\n"));
    folder
        .shell(&format!("\"$0\" {run} r.json && cp r.json older.json && \"$0\" report r.json -o /dev/null --format md"))
        .well();
    // As another user, in a folder of which it may write one file.
    let is_root = folder.shell("id -u").well() == "0\n";
    let user = if is_root { "setpriv --reuid 12345 --clear-groups " } else { "" };
    fs::create_dir(folder.path("others")).expect("made");
    folder.write("others/file", "longer than what is written");
    folder.shell("chmod 755 . && chmod 666 others/file && chmod 555 others").well();
    written("others/file", &format!("{user}RUN"));
    assert_eq!((folder.read("others/file"), folder.names("others")), (vec![7; 4], vec!["file".to_owned()]));
    folder.write("model.json", model(4, Path::new("others/new")).to_string());
    folder.shell(&format!("{user}\"$0\" model.json -a cpu")).fails(1, "others/new': Permission denied");
    folder.shell("chmod 755 others").well();
    if !is_root || !folder.shell("unshare -m true").status.success() {
        return eprintln!("SKIPPED: nothing can be mounted");
    }
    folder.write("mounted", "");
    let mount = |from: &str, line: &str| {
        folder.shell(&format!("unshare -m sh -c 'mount --bind {from} mounted && {line}' \"$0\""))
    };
    folder.write("model.json", model(4, Path::new("mounted")).to_string());
    folder.write("real", "longer than what is written");
    mount("real", "\"$0\" model.json -a cpu").well();
    assert_eq!(folder.read("real"), [7; 4]);
    mount(
        "older.json",
        &format!("\"$0\" {run} mounted --overwrite && \"$0\" report r.json -o mounted --overwrite --format md"),
    )
    .well();
    assert!(folder.read("older.json").starts_with(b"**dml-cuda "));
    // What cannot be written at all is known before the bench runs.
    let said = mount("r.json", &format!("mount -o remount,ro,bind mounted && \"$0\" {run} mounted --overwrite"));
    assert_eq!(said.fails(1, "ERROR: mounted: "), "ERROR: mounted: Read-only file system (os error 30)\n");
    // If that ends halfway, a whole copy stays.
    folder.write("model.json", model(1 << 20, Path::new("mounted")).to_string());
    let small = "mkdir small && mount -t tmpfs -o size=64k none small && echo old > small/file && mount --bind small/file mounted && \"$0\" model.json -a cpu";
    let said = folder
        .shell(&format!("unshare -m sh -c '{small}' \"$0\""))
        .fails(1, "No space left on device (os error 28); it is saved as ");
    let copy = said.trim_end().rsplit('/').next().expect("a name");
    assert_eq!(folder.read(copy), vec![7; 1 << 20]);
    folder.shell("rmdir small && rm .dml-cuda-*").well();
    assert_eq!(
        folder.names(""),
        ["model.json", "mounted", "older.json", "others", "pipe", "r.json", "read", "real", "to"]
    );
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

/// The owner of a file, its group and its mode.
fn owned(path: &Path) -> (u32, u32, u32) {
    let found = fs::metadata(path).expect("it is there");
    (found.uid(), found.gid(), mode(path))
}

/// A file of another user stays theirs if root replaces it. Who may not give files away keeps the group, if it is one
/// of their own. The members of another group may do what all may.
#[test]
fn a_replaced_file_keeps_its_owner_and_its_group() {
    let folder = Folder::new();
    folder.shell("mkdir out && chmod 777 . out").well();
    if folder.shell("id -u").well() != "0\n" {
        return eprintln!("SKIPPED: only root can give files away");
    }
    folder.write("model.json", model(4, Path::new("out/file")).to_string());
    let run = "bench -a cpu --only check.fill.int8 --samples 1 -o out/run";
    folder.shell(&format!("\"$0\" {run}")).well();
    for (before, user, after) in [
        ((1234, 5678, 0o640), "", (1234, 5678, 0o640)),
        ((1234, 5678, 0o2751), "", (1234, 5678, 0o751)),
        ((1234, 5678, 0o460), "setpriv --reuid 77 --regid 78 --groups 5678 ", (77, 5678, 0o460)),
        ((1234, 5678, 0o664), "setpriv --reuid 77 --regid 78 --clear-groups ", (77, 78, 0o644)),
        ((1234, 5678, 0o670), "setpriv --reuid 77 --regid 78 --clear-groups ", (77, 78, 0o600)),
    ] {
        let (owner, group, mode) = before;
        for (name, command) in [("out/file", "model.json -a cpu"), ("out/run", &format!("{run} --overwrite"))] {
            folder.shell(&format!("touch {name} && chown {owner}:{group} {name} && chmod {mode:o} {name}")).well();
            // Who may not read a run cannot replace it.
            if name == "out/run" && after.2 == 0o600 {
                folder.shell(&format!("{user}\"$0\" {command}")).fails(1, "ERROR: out/run: Permission denied");
                continue;
            }
            folder.shell(&format!("{user}\"$0\" {command}")).well();
            assert_eq!(owned(&folder.path(name)), after, "{before:?} {user}");
        }
        assert_eq!(folder.read("out/file"), [7; 4]);
    }
    assert_eq!(folder.names("out"), ["file", "run"]);
}

/// To replace one name of a file would leave the older bytes under its others.
#[test]
fn a_file_with_further_hard_links_is_refused_and_stays() {
    let folder = Folder::new();
    let run = ["bench", "-a", "cpu", "--only", "check.fill.int8", "--samples", "1", "-o", "run"];
    folder.well(&run);
    folder.write("file", "old");
    let older = folder.read("run");
    for name in ["file", "run"] {
        fs::hard_link(folder.path(name), folder.path(&format!("{name} too"))).expect("linked");
    }
    let words = "it has 2 hard links, but must have one, because its other names would keep the older bytes";
    write(&folder, &folder.path("file")).fails(1, words);
    folder.refuses(&[&run[..], &["--overwrite"]].concat(), words);
    folder.refuses(&["report", "run too", "-o", "run", "--overwrite"], words);
    for (name, bytes) in [("file", &b"old"[..]), ("run", &older)] {
        assert_eq!((folder.read(name), folder.read(&format!("{name} too"))), (bytes.to_vec(), bytes.to_vec()));
    }
    fs::remove_file(folder.path("file too")).expect("removed");
    write(&folder, &folder.path("file")).well();
    assert_eq!(folder.names(""), ["file", "model.json", "run", "run too"]);
}

/// A limit of a file's size is an error of every command that writes, and leaves what was there before.
#[test]
fn a_limit_of_a_files_size_is_an_error_and_leaves_nothing() {
    let folder = Folder::new();
    folder.write("kept", "old");
    for (target, said) in [("new", "new"), ("kept", "kept"), ("a/b/c", "a/b/c"), ("my folder/c", "my folder/c")] {
        folder.write("model.json", model(100_000, Path::new(target)).to_string());
        let words = format!("ERROR: model.json: line 1: commands[0]: writeFile 'A' to '{said}': File too large");
        for limit in ["ulimit -f 8", "trap '' XFSZ; ulimit -f 8"] {
            folder.shell(&format!("{limit}; \"$0\" model.json -a cpu")).fails(1, &words);
            assert_eq!(
                (folder.names(""), folder.read("kept")),
                (vec!["kept".to_owned(), "model.json".to_owned()], b"old".to_vec())
            );
        }
    }
    let said = folder.shell("ulimit -f 0; \"$0\" schema > out").fails(1, "ERROR: writing to standard output failed: ");
    assert!(said.contains("File too large"), "{said}");
    folder.shell("ulimit -f 16; \"$0\" suite my/suite --tier quick").fails(1, "ERROR: my/suite: File too large");
    assert!(!folder.path("my").exists());
}

#[test]
fn a_signal_leaves_no_partial_file() {
    let folder = Folder::new();
    let out = folder.path("out");
    folder.write("model.json", model(256 << 20, &out.join("large")).to_string());
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
        shell.args(["-c", &format!("{before}exec \"$0\" -a cpu \"$1\"")]).arg(dml_cuda().get_program());
        shell.arg(folder.path("model.json"));
        let mut child = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("dml-cuda starts");
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
