//! A failing or outdated driver is reported, and is not mistaken for a machine without a GPU. A suite is timed on a
//! GPU. The driver is a mock (`tests/driver_double`).

use std::process::{Command, Output};

use dml_cuda_testing::driver_double::{driver, fail_every_call, functions, text, with_failure};
use dml_cuda_testing::repository;

use crate::{dml_cuda, stderr, Ended, Folder};

/// The folder of a double, which may lack a function.
fn double(without: Option<&str>) -> Option<Folder> {
    driver(without).map(Folder)
}

/// Runs a model with this many GPUs and a `cuInit` that returns `code`.
fn run(folder: &Folder, gpus: u32, code: u32, arguments: &[&str]) -> Output {
    let mut command = dml_cuda();
    command
        .args(arguments)
        .arg(repository("models/reverse_subsequences.json"))
        .env("LD_LIBRARY_PATH", folder.0.path());
    command
        .env("FAKE_GPUS", gpus.to_string())
        .env("FAKE_CU_INIT", code.to_string());
    command.output().expect("dml-cuda starts")
}

/// Checks that a model runs only on a CPU that is asked for, because a GPU may be there.
fn refuses(folder: &Folder, code: u32, begin: &str, words: &str) {
    let output = run(folder, 1, code, &[]);
    let error = stderr(&output);
    output.fails(1, &format!("ERROR: cuda: {begin} failed: "));
    assert!(error.contains(words), "{error}");
    assert!(error.contains("; -a cpu runs on the CPU"), "{error}");
    for adapter in ["0", "H100"] {
        run(folder, 1, code, &["-a", adapter]).fails(1, words);
    }
    assert!(run(folder, 1, code, &["-a", "cpu"]).stderr.is_empty());
}

#[test]
fn a_driver_that_fails_is_said_and_a_missing_gpu_is_not() {
    let Some(folder) = double(None) else { return };
    for code in [803, 999] {
        refuses(
            &folder,
            code,
            "initializing the driver",
            &format!("(CUDA error {code})"),
        );
    }
    // The toolkit's stub hides a driver that may be there.
    run(&folder, 1, 34, &[]).fails(
        1,
        "is the stub of the CUDA toolkit, which drives no GPU; remove its folder from",
    );
    assert!(run(&folder, 1, 34, &["-a", "cpu"]).stderr.is_empty());
    // No GPU (CUDA_ERROR_NO_DEVICE, or a count of 0) and no driver are not errors.
    let is_silent = |code| {
        let output = run(&folder, 0, code, &[]);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{code}: {}",
            stderr(&output)
        );
    };
    is_silent(100);
    is_silent(0);
    for name in ["libcuda.so", "libcuda.so.1"] {
        std::fs::remove_file(folder.path(name)).expect("it was written");
    }
    is_silent(0);
}

/// A bench takes the CPU only if that is asked for, or if there is nothing else, which it says first and in its run.
#[test]
fn a_bench_takes_no_cpu_for_a_broken_gpu() {
    let Some(folder) = double(None) else { return };
    let bench = |to: &str, gpus: &str, code: &str, more: &[&str]| {
        let mut command = folder.dml_cuda();
        command
            .args(["bench", "--only", "check.fill.int8", "-o", to])
            .args(more)
            .env("LD_LIBRARY_PATH", folder.0.path());
        command
            .env("FAKE_GPUS", gpus)
            .env("FAKE_CU_INIT", code)
            .output()
            .expect("dml-cuda starts")
    };
    let said =
        bench("x.json", "1", "999", &[]).fails(1, "ERROR: cuda: initializing the driver failed: ");
    assert!(
        said.contains("(CUDA error 999)") && said.ends_with("; -a cpu times the CPU\n"),
        "{said}"
    );
    assert!(!folder.path("x.json").exists());
    bench("cpu.json", "1", "999", &["-a", "cpu"]).well();
    assert_eq!(folder.json("cpu.json")["notes"], serde_json::json!([]));
    for name in ["libcuda.so", "libcuda.so.1"] {
        let note = if name == "libcuda.so" {
            "the driver reports no GPU"
        } else {
            "there is no GPU driver"
        };
        let output = bench(&format!("{name}.json"), "0", "0", &[]);
        // Where a driver is installed, the loader goes on to it.
        if output.status.success() && stderr(&output).starts_with("NOTE: ") {
            assert!(
                stderr(&output).starts_with(&format!("NOTE: {note}, so the CPU was timed\n")),
                "{output:?}"
            );
            let notes = &folder.json(&format!("{name}.json"))["notes"];
            assert_eq!(
                notes,
                &serde_json::json!([format!("{note}, so the CPU was timed")])
            );
        }
        for name in ["libcuda.so", "libcuda.so.1"] {
            let _ = std::fs::remove_file(folder.path(name));
        }
    }
}

/// A driver library that is there is never taken for an absent one.
#[test]
fn a_driver_that_cannot_be_loaded_is_said() {
    // Where a driver is installed, the loader goes on to it.
    let model = repository("models/reverse_subsequences.json");
    let installed = dml_cuda().arg(model).output().expect("dml-cuda starts");
    let folder = double(None).filter(|_| installed.well().starts_with("Running on 'CPU'"));
    let Some(folder) = folder else { return };
    std::fs::remove_file(folder.path("libcuda.so")).expect("it was written");
    let complete = folder.read("libcuda.so.1");
    let patched = |name: &str, by: &str| {
        let mut library = complete.clone();
        let places: Vec<usize> = (0..library.len())
            .filter(|&at| library[at..].starts_with(name.as_bytes()))
            .collect();
        assert!(!places.is_empty(), "the library names {name}");
        places
            .into_iter()
            .for_each(|at| library[at..at + by.len()].copy_from_slice(by.as_bytes()));
        library
    };
    let of_another_architecture = [&complete[..18], &[183], &complete[19..]].concat();
    for (library, words) in [
        (
            patched("libc.so.6", "libx.so.6"),
            "libx.so.6: cannot open shared object file: No such file",
        ),
        (patched("GLIBC_2.", "GLIBC_9."), "version `GLIBC_9."),
        (
            complete[..300].to_vec(),
            "libcuda.so.1: cannot read file data",
        ),
        (of_another_architecture, "the loader skips "),
    ] {
        folder.write("libcuda.so.1", library);
        refuses(&folder, 0, "loading the driver library", words);
    }
}

#[test]
fn a_driver_that_lacks_a_function_is_too_old() {
    // With all functions dml-cuda runs and times a model on the GPU. It calls no others.
    let Some(complete) = double(None) else { return };
    let fewer = [
        "-a",
        "Fake",
        "-i",
        "3",
        "-r",
        "2",
        "-v",
        "2",
        "--max_gpu_time_measurements",
        "2",
    ];
    let printed = run(&complete, 1, 0, &fewer).well();
    assert!(printed.starts_with("Running on 'Fake GPU'"), "{printed}");
    assert!(
        printed.contains("\nGPU samples buffer has 1 samples overwritten.\n"),
        "{printed}"
    );
    assert!(!run(&complete, 1, 0, &fewer[..8])
        .well()
        .contains("overwritten"));
    for (options, kernels) in [
        (&[][..], "every time\""),
        (&["-r", "2"], "every time, specialized kernels\""),
        (
            &["--compile-options", "select=measure"],
            "every time, measured kernels\"",
        ),
        (
            &["--compile-options", "specialize=always select=measure"],
            "every time, specialized and measured kernels\"",
        ),
    ] {
        let printed = run(
            &complete,
            1,
            0,
            &[&["-a", "Fake", "--format", "json"], options].concat(),
        )
        .well();
        assert!(printed.contains(kernels), "{options:?}: {printed}");
    }
    let many = ["-a", "Fake", "-i", "3", "-r", "65537"];
    let said = "dispatch_repeat is 65537, but must be at most 65536 in a graph; --no-graph queues one by one";
    run(&complete, 1, 0, &many).fails(1, said);
    run(&complete, 1, 0, &[&many[..], &["--no-graph"]].concat()).well();
    let functions = functions();
    assert_eq!(functions.len(), 44);
    for name in &functions {
        let Some(folder) = double(Some(name)) else {
            return;
        };
        let said = format!("it has no {name}; install an NVIDIA driver for CUDA 12.0");
        refuses(&folder, 0, "loading the driver library", &said);
    }
    // What refuses the CPU does not advise it.
    let Some(folder) = double(functions.first().map(String::as_str)) else {
        return;
    };
    for command in [&["tune"][..], &["kernel", "x"], &["tune", "-a", "0"]] {
        let said =
            run_in(&folder, command).fails(1, "ERROR: cuda: loading the driver library failed: ");
        assert!(
            said.ends_with("install an NVIDIA driver for CUDA 12.0 or newer\n"),
            "{said}"
        );
    }
}

/// The arguments that run a model twice.
fn model() -> Command {
    let mut command = dml_cuda();
    command
        .args(["-a", "0", "-i", "2", "-r", "2", "-v", "2"])
        .arg(repository("models/reverse_subsequences.json"));
    command
}

#[test]
fn a_driver_that_fails_at_any_call_is_an_error_in_words_and_nothing_is_lost() {
    let words = |output: &Output| (!output.status.success()).then(|| stderr(output));
    let Some((cases, errors)) = fail_every_call(model, words) else {
        return;
    };
    assert!(cases > 150 && errors > 100, "{cases} {errors}");
}

/// Runs dml-cuda in the folder of the mock driver, which reports nothing that is lost or touched.
fn run_in(folder: &Folder, arguments: &[&str]) -> Output {
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
fn kernel(name: &str) -> Command {
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

#[test]
fn a_kernel_that_is_timed_while_the_driver_fails_is_an_error_in_words() {
    let kernel = || kernel("fill.small_fill_of_64_bytes.f32.fill");
    // What the mock driver's kernels do not write is wrong, unless a call failed before.
    let words = |output: &Output| {
        Some(text(&output.stderr)).filter(|said| !said.starts_with("ERROR: byte "))
    };
    let Some((cases, errors)) = fail_every_call(kernel, words) else {
        return;
    };
    assert!(cases > 100 && errors > 60, "{cases} {errors}");
}

/// A run records the driver and the clocks of its own GPU, not of the first GPU.
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

/// Errors say what is known, even for a code that cudarc does not know and the driver does not describe.
#[test]
fn an_error_of_the_driver_says_what_is_known_and_what_to_do() {
    let Some(folder) = double(None) else { return };
    let unknown = "failed: the driver does not describe it (CUDA error 4711); see this error";
    let prebuilt = "update the driver, or build without DML_CUDA_NVCC, because kernels/prebuilt loads with drivers from CUDA 12.0 on";
    let memory =
        "an earlier kernel of this process touched memory it must not; the process must end";
    let retain = "cuDevicePrimaryCtxRetain";
    for (function, nth, codes, words) in [
        ("cuMemAlloc_v2", 2, &[2][..], "cuda: allocating "),
        ("cuMemAlloc_v2", 2, &[2], "free memory"),
        ("cuMemAlloc_v2", 2, &[4711], unknown),
        ("cuLaunchKernel", 1, &[4711], unknown),
        ("cuInit", 1, &[4711], unknown),
        ("cuGraphLaunch", 2, &[4711], unknown),
        (retain, 1, &[1], "); see this error in the documentation of the CUDA driver API\n"),
        (retain, 1, &[222], &format!("); the PTX is newer than the driver: {prebuilt}\n")),
        (retain, 1, &[218, 209], "); the GPU must have compute capability 7.5 or higher\n"),
        (retain, 1, &[2], "); free GPU memory\n"),
        (
            retain,
            1,
            &[100, 101],
            "); check that nvidia-smi shows the GPU, and that CUDA_VISIBLE_DEVICES does not hide it\n",
        ),
        (retain, 1, &[802], "); start the service nvidia-fabricmanager, "),
        (
            retain,
            1,
            &[803],
            "); the driver's library and its kernel module have different versions: restart the machine",
        ),
        (retain, 1, &[804], "); a forward-compatibility library (package cuda-compat, "),
        ("cuInit", 1, &[999], "device nodes that are missing in a container (/dev/nvidia-uvm, "),
        (retain, 1, &[900, 906], "); end the stream's capture first\n"),
        (retain, 1, &[700, 716, 719], &format!("); {memory}\n")),
    ] {
        for &code in codes {
            let said = with_failure(folder.0.path(), function, nth, code, model()).0.fails(1, words);
            assert!(function != retain || said.contains(&format!(" (CUDA error {code}); ")), "{said}");
        }
    }
}
