//! `bench`, the hidden `kernel` and `tune` time a GPU, which the mock driver is (`tests/driver_double`). It runs kernels on the
//! CPU and counts the bytes that plain work moves.

use std::process::{Command, Output};

use dml_cuda_testing::driver_double::{text, with_failure};

use crate::driver_faults::double;
use crate::{dml_cuda, Ended, Folder};

/// Runs dml-cuda in the folder of the mock driver, which reports nothing that is lost or touched.
pub fn run_in(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = folder.dml_cuda();
    command
        .args(arguments)
        .env("LD_LIBRARY_PATH", folder.0.path())
        .env("DOUBLE_REPORT", folder.path("report"));
    let output = command.output().expect("dml-cuda starts");
    assert_eq!(
        std::fs::read_to_string(folder.path("report")).unwrap_or_default(),
        ""
    );
    output
}

/// The command that times one of a bench's cases.
pub fn kernel(name: &str) -> Command {
    let mut command = dml_cuda();
    command.args(["kernel", name, "-i", "1", "-r", "2", "-a", "0"]);
    command
}

/// Cases are timed on a GPU as on the CPU. Samples are the GPU's, and the baseline is the driver's plain copy or fill.
#[test]
fn cases_are_timed_on_the_gpu_and_baselines_lose_nothing() {
    let Some(folder) = double(None) else { return };
    let run = |arguments: &[&str]| run_in(&folder, arguments).well();
    for words in [
        "baseline_of_copies.1mib",
        "baseline_of_fills.1mib",
        "baseline_of_fills.1mib --cold-l2",
    ] {
        let words = format!("kernel {words} -i 3 -r 2 -a Fake");
        let printed = run(&words.split(' ').collect::<Vec<_>>());
        // The mock driver reports half a millisecond for two dispatches.
        assert!(
            printed.contains("\"gpu_milliseconds\":[0.25,0.25,0.25]"),
            "{printed}"
        );
    }
    let without_copies =
        |name: &str| with_failure(folder.0.path(), "cuMemcpyDtoDAsync_v2", 1, 2, kernel(name)).0;
    without_copies("baseline_of_copies.1mib").fails(1, "cuda: queuing plain work failed: ");
    without_copies("baseline_of_fills.1mib").well();
    run(&[
        "bench",
        "--tier",
        "quick",
        "-o",
        "r.json",
        "--only",
        "small_16x256.f32",
        "--samples",
        "3",
    ]);
    let run = folder.json("r.json");
    assert_eq!(run["machine"]["device"], "Fake GPU");
    assert_eq!(run["machine"]["driver"], "CUDA 12.3");
    assert_eq!(run["cases"].as_array().expect("cases").len(), 2);
    for case in run["cases"].as_array().expect("cases") {
        let microseconds = 500.0 / case["dispatches"].as_f64().expect("a number");
        let samples = case["each"].as_array().expect("samples");
        assert_eq!(samples.len(), 3);
        let is_in_place = case["mode"] == "in place";
        let kernel = case["kernel"].as_str().expect("the kernel that ran");
        assert!(
            kernel.starts_with("reverse_") && kernel.contains("in_place") == is_in_place,
            "{kernel}"
        );
        let is_right = |sample: f64| (sample / microseconds - 1.0).abs() < 1e-6;
        assert!(
            samples
                .iter()
                .all(|sample| sample.as_f64().is_some_and(is_right)),
            "{case}"
        );
    }
}

/// Plain work moves the bytes that its case claims: a copy reads and writes them, `store` writes 16 bytes a thread, and
/// `swap` moves 64 in both directions. With a cold L2 a case is next to such work on as many bytes.
#[test]
fn plain_work_moves_the_bytes_that_it_claims() {
    let Some(folder) = double(None) else { return };
    let moved = |words: &str| -> Vec<(String, u64)> {
        folder.write("moved", "");
        let mut kernel = folder.dml_cuda();
        kernel
            .arg("kernel")
            .args(words.split(' '))
            .args(["-i", "1", "-r", "1", "-a", "0"]);
        kernel
            .env("LD_LIBRARY_PATH", folder.0.path())
            .env("DOUBLE_MOVED", folder.path("moved"));
        kernel.output().expect("dml-cuda starts");
        let line = |line: &str| {
            let (what, count) = line.split_once(' ').expect("two words");
            let count: u64 = count.parse().expect("a number");
            let bytes = match what {
                "fill" => count,
                "copy" => 2 * count,
                "store" => 16 * count,
                "swap" => 128 * count,
                _ => return None, // the operators' kernels
            };
            Some((what.to_owned(), bytes))
        };
        text(&folder.read("moved"))
            .lines()
            .filter_map(line)
            .collect()
    };
    let mib = 1 << 20;
    // New buffers are filled first.
    for (words, buffers, kinds, bytes) in [
        ("baseline_of_copies.1mib", 2, &["copy"; 2][..], 2 * mib),
        ("baseline_of_fills.8mib", 1, &["fill"; 2], 8 * mib),
        (
            "baseline_of_fills.1mib --cold-l2",
            1,
            &["fill", "fill", "store", "store"],
            mib,
        ),
        (
            "fill.padded_rows.u8.fill --cold-l2",
            2,
            &["fill", "store"],
            256 * mib,
        ),
        (
            "reverse.blocks_of_5_64x512x5.i64.copy --cold-l2",
            3,
            &["copy"],
            2_621_440,
        ),
        (
            "reverse.lanes_of_100_8192x100.f32.in_place --cold-l2",
            2,
            &["swap"],
            222 << 14,
        ),
    ] {
        let wanted: Vec<(String, u64)> =
            kinds.iter().map(|kind| (kind.to_string(), bytes)).collect();
        let found = moved(words);
        assert_eq!(
            (found.len() - kinds.len(), &found[buffers..]),
            (buffers, &wanted[..]),
            "{words}: {found:?}"
        );
    }
}

/// The kernels of the mock driver do nothing, so results are wrong.
#[test]
fn tune_writes_a_row_for_each_kernel_and_replaces_no_file() {
    let Some(folder) = double(None) else { return };
    let tune = |arguments: &[&str]| run_in(&folder, &[&["tune", "-a", "0"], arguments].concat());
    tune(&["--count", "3", "-o", "times.csv"]).fails(1, "results differ from the CPU's");
    let csv = text(&folder.read("times.csv"));
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("kind,width,sizes,axis,in_strides,out_strides,length_sizes,mode,kernel,variant,alignment,estimate_us,us,specialized_us,chosen,copy_us")
    );
    assert!(
        csv.contains(",copying,reverse_") && csv.contains(",yes,"),
        "{csv}"
    );
    assert!(lines.all(|row| row.split(',').count() == 16), "{csv}");
    tune(&["--count", "3", "-o", "times.csv"]).fails(1, "times.csv cannot be written: ");
    let said = tune(&["--count", "3", "-o", "/dev/full"])
        .fails(1, "/dev/full: the times cannot be written: ");
    let saved = said
        .trim_end()
        .rsplit_once("; it is saved as ")
        .expect("a path")
        .1;
    assert_eq!(
        std::fs::read_to_string(saved)
            .expect("it is there")
            .lines()
            .count(),
        csv.lines().count()
    );
    std::fs::remove_file(saved).expect("removed");
    assert_eq!(text(&folder.read("times.csv")), csv);

    let right = r#"{"width":4,"sizes":[4,8],"axis":1,"in_strides":[8,1],"out_strides":[8,1],"length_sizes":[4,1]}"#;
    let older = right.replace("length_sizes", "len_sizes");
    for (from, to, words) in [
        (
            "\"width\":4",
            "\"width\":3",
            "must have lists of one length",
        ),
        ("\"axis\":1", "\"axis\":2", "must have lists of one length"),
        ("[4,1]", "[4]", "must have lists of one length"),
        (
            "\"axis\":1,",
            "",
            "line 3: without the member `axis` at column 85",
        ),
        ("{", "{\"kind\":\"a,b\",", "the kind must have no comma"),
        ("}", "", "it ends within an object"),
    ] {
        folder.write(
            "l.jsonl",
            format!("{older}\n\n{}\n", right.replace(from, to)),
        );
        let found = tune(&["l.jsonl", "-o", "other.csv"]).fails(1, words);
        assert!(found.starts_with("ERROR: l.jsonl: line 3: "), "{found}");
        assert!(!folder.path("other.csv").exists());
    }
}

/// The kernels of the mock driver do nothing: every case is timed, and found wrong.
#[test]
fn a_bench_with_a_cold_l2_checks_what_it_times() {
    let Some(folder) = double(None) else { return };
    let run = |arguments: &[&str]| run_in(&folder, arguments);
    let output = run(&[
        "bench",
        "--cold-l2",
        "-o",
        "r.json",
        "--only",
        "small_",
        "--samples",
        "3",
    ]);
    output.fails(1, "");
    assert!(
        text(&output.stdout).contains("0 cases, 0 outputs, 11 failed"),
        "{}",
        text(&output.stdout)
    );
    let found = folder.json("r.json");
    assert!(
        found["timing"]
            .as_str()
            .expect("text")
            .contains("a cold L2"),
        "{found}"
    );
    for case in found["cases"].as_array().expect("cases") {
        let (place, bytes) = case["error"]
            .as_str()
            .expect("text")
            .split_once(" of the output is 0x")
            .expect("bytes");
        let (found, required) = bytes.split_once(", but must be 0x").expect("two");
        assert!(
            place.starts_with("byte ") && found != &required[..2],
            "{case}"
        );
    }
    // At odd addresses, in place, and not as a graph.
    for name in [
        "reverse.inner_misaligned_8192x8192.u8.in_place",
        "fill.packed_256_MiB.u16.fill",
    ] {
        let (output, report) = with_failure(folder.0.path(), "cuGraphLaunch", 1, 2, kernel(name));
        output.fails(1, "ERROR: byte ");
        assert_eq!(report, [""; 0]);
    }
    run(&["kernel", "fill.nothing"]).fails(
        1,
        "the case is 'fill.nothing', but must be one of this program's",
    );
}

/// A results file records the driver and the clocks of its own GPU, not of the first GPU.
#[test]
fn a_bench_asks_for_the_clocks_of_its_own_gpu() {
    use std::os::unix::fs::PermissionsExt;
    let Some(folder) = double(None) else { return };
    // Only while the bench's kernel runs are the clocks up. That of the second GPU ends as soon as it is seen.
    let script = r#"#!/bin/sh
for last; do :; done
clock=345
for child in $(cat /proc/$PPID/task/*/children); do
  tr '\0' ' ' < /proc/$child/cmdline | grep -q 'kernel baseline_of_fills.64mib' || continue
  clock=1980
  case $last in *1b*) kill $child ;; *) sleep 0.1 ;; esac
done
echo "$clock MHz, 3201 MHz, 2000 MHz, 580.$last, Fake GPU"
"#;
    let worker = r#"#!/bin/sh
hello='{"hello":{"tool":"x","provider":"CUDAExecutionProvider","device":"x","pci":"","versions":""}}'
[ -z "$3" ] && echo "$hello" || echo '{"timed":{"dispatches":3,"samples":[1.5]}}'
"#;
    for (name, script) in [("nvidia-smi", script), ("worker", worker)] {
        folder.write(name, script);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(name), executable).expect("it can be run");
    }
    let path = format!(
        "{}:{}",
        folder.0.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let run = |arguments: &[&str]| {
        let mut command = folder.dml_cuda();
        command
            .args(arguments)
            .env("PATH", &path)
            .env("LD_LIBRARY_PATH", folder.0.path())
            .env("FAKE_GPUS", "2");
        command.output().expect("dml-cuda starts")
    };
    for (adapter, place) in [("0", "0001:1a:01.0"), ("1", "0001:1b:01.0")] {
        let bench = [
            "bench",
            "-o",
            &format!("{adapter}.json"),
            "--only",
            "small_16x256.f32.copy",
            "-a",
            adapter,
        ];
        run(&bench).well();
        let machine = &folder.json(&format!("{adapter}.json"))["machine"];
        assert_eq!(machine["driver"], format!("580.{place} (CUDA 12.3)"));
        assert_eq!(
            machine["clocks"],
            "SM 1980 MHz of at most 2000 MHz, memory 3201 MHz"
        );
        // So does ONNX Runtime's.
        let onnx = [
            "bench",
            "-o",
            &format!("onnx{adapter}.json"),
            "--only",
            "small_16",
            "-a",
            adapter,
        ];
        let onnx = [
            &onnx[..],
            &[
                "--runner",
                "onnxruntime",
                "--provider",
                "cuda",
                "--python",
                "./worker",
            ],
        ]
        .concat();
        run(&onnx).well();
        assert_eq!(
            folder.json(onnx[2])["machine"]["driver"],
            format!("580.{place}")
        );
    }
}
