//! Every driver failure, in any function at any call, gives a readable error. Nothing is used after it is destroyed,
//! and nothing leaks. The driver here is a mock (`tests/driver_double`).
#![cfg(unix)]

mod scenarios;

use std::process::{Command, Output};

use dml_cuda_testing::driver_double::{driver, fail_every_call, text, with_failure};

/// Runs the scenario if this process was started for it.
#[test]
fn the_scenario() {
    let Some(which) = std::env::var_os("DOUBLE_SCENARIO") else {
        return;
    };
    let run = match which.to_str() {
        Some("environment") => scenarios::environment,
        Some("first") => scenarios::first,
        Some("misuse") => scenarios::misuse,
        Some("capture") => scenarios::first_use_in_a_capture,
        Some("everything in a capture") => scenarios::everything_in_a_capture,
        Some("order") => scenarios::order_of_streams,
        Some("threads") => scenarios::threads,
        Some("specialized") => scenarios::specialized,
        Some("one call") => scenarios::one_call,
        Some("measured") => scenarios::measured,
        Some("measured and kept") => scenarios::measured_and_kept,
        Some("measured and unloaded") => scenarios::measured_and_unloaded,
        Some("measured by threads") => scenarios::measured_by_threads,
        _ => scenarios::scenario,
    };
    match run() {
        Ok(()) => println!("SCENARIO done"),
        Err(error) => println!("SCENARIO {error}"),
    }
}

/// A command that runs the scenario or the misuse in a separate process of this program.
fn this_program(which: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "the_scenario", "--nocapture"])
        .env("DOUBLE_SCENARIO", which);
    command
}

#[test]
fn every_driver_failure_gives_a_readable_error_and_leaks_nothing() {
    let words =
        |output: &Output| Some(text(&output.stdout)).filter(|out| !out.contains("SCENARIO done"));
    let Some((cases, errors)) = fail_every_call(|| this_program("1"), words) else {
        return;
    };
    assert!(cases > 300 && errors > 200, "{cases} {errors}");
}

/// Runs a scenario to its end. Returns its output and the mock driver's report.
fn run_to_end(which: &str, variables: &[(&str, &str)]) -> Option<(String, Vec<String>)> {
    let folder = driver(None)?;
    let mut program = this_program(which);
    program.envs(variables.iter().copied());
    let (output, report) = with_failure(folder.path(), "nothing", 0, 0, program);
    let out = text(&output.stdout);
    assert!(
        out.contains("SCENARIO done"),
        "{which} {variables:?}: {output:?}"
    );
    Some((out, report))
}

#[test]
fn the_environment_sets_options() {
    run_to_end(
        "environment",
        &[(
            "DML_CUDA_COMPILE_OPTIONS",
            "specialize=always select=measure",
        )],
    );
}

/// The CPU is taken only if there is no driver.
#[test]
fn the_first_device_is_a_gpu_or_an_error_if_there_is_a_driver() {
    let Some(folder) = driver(None) else { return };
    let stub = format!(
        "{} is the stub of the CUDA toolkit",
        folder.path().join("libcuda.so").display()
    );
    for (variables, found) in [
        (
            [("FAKE_GPUS", "2"), ("FAKE_CU_INIT", "0")],
            "FIRST Fake GPU (cuda 0) of 2",
        ),
        (
            [("FAKE_GPUS", "0"), ("FAKE_CU_INIT", "0")],
            "SCENARIO cuda: opening device 0 failed: the driver reports no GPU",
        ),
        (
            [("FAKE_GPUS", "1"), ("FAKE_CU_INIT", "999")],
            "SCENARIO cuda: initializing the driver failed: ",
        ),
        (
            [("FAKE_GPUS", "1"), ("FAKE_CU_INIT", "34")],
            &format!("SCENARIO cuda: loading the driver library failed: {stub}"),
        ),
    ] {
        let mut program = this_program("first");
        let program = program
            .envs(variables)
            .env("LD_LIBRARY_PATH", folder.path());
        let printed = text(&program.output().expect("it starts").stdout);
        assert!(printed.contains(found), "{printed}");
    }
    let printed = text(&this_program("first").output().expect("it starts").stdout);
    let is_absent = dml_cuda::Device::cuda_status() == Err(dml_cuda::DeviceError::NoDriver);
    assert_eq!(printed.contains("FIRST CPU of 0\n"), is_absent, "{printed}");
}

/// A file in the current folder is no driver, but in an empty entry of the loader's list, which is that folder.
#[test]
fn a_driver_counts_where_the_loader_searches() {
    if dml_cuda::Device::cuda_status() != Err(dml_cuda::DeviceError::NoDriver) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink("nowhere", folder.path().join("libcuda.so"))
        .expect("a folder of our own");
    for (list, found) in [
        (None, "FIRST CPU"),
        (Some(""), "FIRST CPU"),
        (Some(":/none"), "the loader skips libcuda.so"),
    ] {
        let mut program = this_program("first");
        program.current_dir(&folder).env_remove("LD_LIBRARY_PATH");
        list.map(|list| program.env("LD_LIBRARY_PATH", list));
        let printed = text(&program.output().expect("it starts").stdout);
        assert!(printed.contains(found), "{list:?}: {printed}");
    }
}

/// A stream waits for an event, threads measure at once, and a first call happens in a capture.
#[test]
fn nothing_leaks_and_nothing_is_used_after_it_is_destroyed() {
    for which in ["order", "measured by threads", "capture"] {
        let Some((_, report)) = run_to_end(which, &[]) else {
            return;
        };
        assert!(report.is_empty(), "{which}: {report:?}");
    }
}

#[test]
fn no_thread_waits_for_what_is_slow_for_another() {
    for slow in [
        "cuStreamSynchronize",
        "cuModuleLoadData",
        "cuDevicePrimaryCtxRetain",
    ] {
        let Some((_, report)) = run_to_end("threads", &[("DOUBLE_SLOW", slow), ("FAKE_GPUS", "2")])
        else {
            return;
        };
        assert!(
            report
                .iter()
                .all(|line| line.starts_with("end: not given back")),
            "{slow}: {report:?}"
        );
    }
}

#[test]
fn the_fastest_measured_kernel_runs() {
    let kernels = |variables: &[(&str, &str)]| {
        let (out, report) = run_to_end("measured", variables)?;
        assert!(report.is_empty(), "{variables:?}: {report:?}");
        Some(
            out.lines()
                .filter_map(|line| Some(line.strip_prefix("KERNEL ")?.to_owned()))
                .collect::<Vec<_>>(),
        )
    };
    let Some(measured) = kernels(&[]) else { return };
    assert!(measured.len() > 1, "{measured:?}");
    for fast in &measured {
        // The scenario checks that it was chosen.
        assert!(
            kernels(&[("DOUBLE_FAST", fast)]).is_some_and(|measured| measured.contains(fast)),
            "{fast}"
        );
    }
}

/// Generic kernels are timed, and only the fastest is specialized.
#[test]
fn of_measured_kernels_the_fastest_is_specialized() {
    let Some((out, _)) = run_to_end("measured and kept", &[]) else {
        return;
    };
    let (measured, specialized) = (count("MEASURED", &out), count("SPECIALIZED", &out));
    let loads = |count| calls("measured and kept", "cuModuleLoadData", count);
    let all = measured + specialized;
    assert!(
        measured > specialized && loads(all) && !loads(all + 1),
        "{measured} {specialized}"
    );
}

/// Addresses say which kernel a call needs. The driver takes milliseconds for each one that it loads.
#[test]
fn a_call_on_arrays_loads_one_kernel() {
    if run_to_end("one call", &[]).is_some() {
        let loads = |count| calls("one call", "cuModuleLoadData", count);
        assert!(loads(1) && !loads(2));
    }
}

/// The number that a scenario printed after a word.
fn count(word: &str, out: &str) -> u32 {
    out.lines()
        .find_map(|line| line.strip_prefix(word)?.trim().parse().ok())
        .expect("a count")
}

/// Whether a scenario calls a function of the driver at least so often.
fn calls(which: &str, function: &str, count: u32) -> bool {
    let folder = driver(None).expect("it was compiled before");
    let (_, report) = with_failure(folder.path(), function, count, 719, this_program(which));
    report.contains(&format!("{function}: failed as told"))
}

/// `tune` measures thousands of specialized kernels, which would fill the memory.
#[test]
fn kernels_that_were_only_measured_are_unloaded() {
    let Some((out, report)) = run_to_end("measured and unloaded", &[]) else {
        return;
    };
    let measured = count("MEASURED", &out);
    assert!(
        report
            .iter()
            .all(|line| line.starts_with("end: not given back")),
        "{report:?}"
    );
    let unloads = |count| calls("measured and unloaded", "cuModuleUnload", count);
    assert!(
        measured > 1 && unloads(measured) && !unloads(measured + 1),
        "{measured}"
    );
}

#[test]
fn nothing_breaks_a_capture_on_a_gpu() {
    if dml_cuda_testing::cuda("nothing_breaks_a_capture_on_a_gpu").is_some() {
        scenarios::everything_in_a_capture().expect("every capture stays valid");
    }
}

#[test]
fn nothing_breaks_a_capture() {
    for version in ["12000", "12030"] {
        let variables = [("FAKE_DRIVER", version), ("FAKE_GPUS", "2")];
        let Some((_, report)) = run_to_end("everything in a capture", &variables) else {
            return;
        };
        assert!(
            report
                .iter()
                .all(|line| line.starts_with("end: not given back")),
            "{version}: {report:?}"
        );
    }
}

/// Compiling goes on with the estimate, wherever the driver fails; `measure_kernels` fails in words.
#[test]
fn what_cannot_be_measured_is_estimated_and_leaks_nothing() {
    let program = || {
        let mut program = this_program("measured");
        program.env("DOUBLE_FAST", "reverse_small_in_place_4");
        program
    };
    let words = |output: &Output| {
        let out = text(&output.stdout);
        assert!(
            !out.contains("MEASURING") || out.contains("COMPILED true"),
            "{output:?}"
        );
        Some(out).filter(|out| !out.contains("SCENARIO done"))
    };
    let Some((cases, errors)) = fail_every_call(program, words) else {
        return;
    };
    assert!(cases > 300 && errors > 100, "{cases} {errors}");
}

/// Which loads of modules fail, and how: those of specialized kernels without an error.
#[test]
fn without_a_specialized_kernel_the_generic_one_runs() {
    let Some(folder) = driver(None) else { return };
    // All that stay. Generic kernels follow: one for the others, which is also measured, and those that only are.
    let kept = dml_cuda::Specialize::MAX_KEPT as u32;
    let Some((out, _)) = run_to_end("specialized", &[("DOUBLE_KERNELS", "10")]) else {
        return;
    };
    let measured = count("MEASURED", &out);
    let (out_of_memory, invalid_ptx, not_allowed_in_capture) = (2, 218, 900);
    for (nth, code, goes_on) in [
        (1, out_of_memory, true),
        (2, invalid_ptx, true),
        (4, not_allowed_in_capture, true),
        (kept, out_of_memory, true),
        (kept + 1, out_of_memory, false),
        (kept + measured + 1, out_of_memory, true), // no such call
    ] {
        // As many kernels as are needed to come to the failure: each takes a millisecond.
        let mut program = this_program("specialized");
        program.env("DOUBLE_KERNELS", if nth < 10 { "10" } else { "1200" });
        let (output, report) = with_failure(folder.path(), "cuModuleLoadData", nth, code, program);
        let out = text(&output.stdout);
        // At the end the cache of operators keeps what they need.
        let report: Vec<&String> = report
            .iter()
            .filter(|line| !line.starts_with("end: not given back"))
            .collect();
        let expected = usize::from(nth <= kept + measured);
        assert!(
            report.len() == expected && report.iter().all(|line| line.ends_with("failed as told")),
            "{nth} {code}: {report:?}"
        );
        assert_eq!(
            out.contains("SCENARIO done"),
            goes_on,
            "{nth} {code}: {out}"
        );
    }
}

#[test]
fn the_double_reports_leaks_and_early_frees() {
    let Some((_, report)) = run_to_end("misuse", &[]) else {
        return;
    };
    let frees = |line: &&String| *line == "cuMemFree_v2: frees memory that queued work uses";
    assert_eq!(report.iter().filter(frees).count(), 2, "{report:?}");
    for line in [
        "end: not given back: memory",
        "end: not given back: context",
    ] {
        assert!(
            report.iter().any(|found| found == line),
            "{line} is not in {report:?}"
        );
    }
}
