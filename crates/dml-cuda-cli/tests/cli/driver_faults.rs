//! A failing or outdated driver is reported, and is not mistaken for a machine without a GPU. A suite is timed on a
//! GPU. The driver is a mock (`tests/driver_double`).

use std::process::{Command, Output};

use dml_cuda_testing::driver_double::{driver, fail_every_call, functions, text, with_failure};
use dml_cuda_testing::repository;

use crate::timed_on_a_gpu::{kernel, run_in};
use crate::{dml_cuda, stderr, Ended, Folder};

/// The folder of a double, which may lack a function.
pub fn double(without: Option<&str>) -> Option<Folder> {
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

/// A bench takes the CPU only if that is asked for, or if there is nothing else, which it says first and in its results
/// file.
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

/// A new file of times that would have no row is removed, even if the GPU fails after it was opened.
#[test]
fn tune_leaves_no_file_if_the_gpu_fails_before_the_first_layout() {
    let Some(folder) = double(None) else { return };
    for (function, words) in [
        ("cuInit", "cuda: initializing the driver failed: "),
        ("cuModuleLoadData", "cuda: loading plain.ptx failed: "),
    ] {
        let mut tune = folder.dml_cuda();
        tune.args(["tune", "-a", "0", "--count", "1", "-o", "times.csv"]);
        let (output, _) = with_failure(folder.0.path(), function, 1, 999, tune);
        output.fails(1, words);
        assert!(!folder.path("times.csv").exists(), "{function}");
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
