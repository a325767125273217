//! Drivers that fail and drivers that are too old are said, and not taken for a machine without a GPU; and whatever function of the
//! driver fails, at whatever call, is an error in words, with nothing used after its end and nothing lost. The driver here is a double
//! (`tests/driver_double`), which the machine's C compiler makes: one GPU, whose memory is the host's and whose kernels do nothing.
#![cfg(all(unix, feature = "cuda", feature = "runner"))]

mod common;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The functions that the crate calls, as `tests/driver_double/driver.c` defines them; the plain copy is the runner's.
fn functions() -> Vec<String> {
    let source = std::fs::read_to_string(common::repository("tests/driver_double/driver.c")).expect("the double");
    let names = source.lines().filter_map(|line| line.strip_prefix("int cu")?.split('(').next());
    names.map(|name| format!("cu{name}")).filter(|name| name != "cuMemcpyDtoDAsync_v2").collect()
}

/// The double as a library, which is compiled once; `None` where there is no C compiler.
fn compiled() -> Option<&'static [u8]> {
    static LIBRARY: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let compile = || {
        let folder = tempfile::tempdir().expect("a folder");
        let library = folder.path().join("libcuda.so.1");
        let built = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
            .args(["-w", "-O1", "-shared", "-fPIC", "-lpthread", "-o"])
            .arg(&library)
            .arg(common::repository("tests/driver_double/driver.c"))
            .status();
        built.is_ok_and(|status| status.success()).then(|| std::fs::read(library).expect("it was built"))
    };
    LIBRARY.get_or_init(compile).as_deref()
}

/// A folder with the driver, without one of its functions: the name is another in this copy. None where there is no C compiler.
fn driver(without: Option<&str>) -> Option<tempfile::TempDir> {
    let Some(library) = compiled() else {
        eprintln!("SKIPPED: there is no C compiler to build a driver with");
        return None;
    };
    let mut library = library.to_vec();
    if let Some(name) = without {
        let name = format!("\0{name}\0").into_bytes();
        let places: Vec<usize> = (0..library.len()).filter(|&at| library[at..].starts_with(&name)).collect();
        assert!(!places.is_empty(), "the library names its functions");
        places.into_iter().for_each(|at| library[at + 1] = b'x');
    }
    let folder = tempfile::tempdir().expect("a folder");
    // The loader tries several names.
    for name in ["libcuda.so.1", "libcuda.so"] {
        std::fs::write(folder.path().join(name), &library).expect("a folder of our own");
    }
    Some(folder)
}

/// Runs a model with so many GPUs and `cuInit` answering `code`.
fn run(folder: &Path, gpus: u32, code: u32, arguments: &[&str]) -> Output {
    common::runner()
        .args(arguments)
        .arg(common::repository("models/reverse_subsequences.json"))
        .env("LD_LIBRARY_PATH", folder)
        .env("FAKE_GPUS", gpus.to_string())
        .env("FAKE_CU_INIT", code.to_string())
        .stdin(Stdio::null())
        .output()
        .expect("the runner starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_driver_that_fails_is_said_and_a_missing_gpu_is_not() {
    let Some(folder) = driver(None) else { return };
    for code in [803, 999] {
        // By default the CPU runs it, and the reason is on stderr.
        let output = run(folder.path(), 0, code, &[]);
        let warning = text(&output.stderr);
        assert!(output.status.success(), "{warning}");
        assert!(text(&output.stdout).starts_with("Running on 'CPU'"), "{}", text(&output.stdout));
        assert!(warning.starts_with("WARNING: cuda: initializing the driver failed: "), "{warning}");
        assert!(
            warning.contains(&format!("(CUDA error {code})")) && warning.contains("; running on the CPU"),
            "{warning}"
        );
        // Asked for a GPU, it is an error.
        for adapter in ["0", "H100"] {
            let output = run(folder.path(), 0, code, &["-a", adapter]);
            assert_eq!(output.status.code(), Some(1), "{adapter}");
            assert!(text(&output.stderr).contains(&format!("(CUDA error {code})")), "{}", text(&output.stderr));
        }
        assert!(run(folder.path(), 0, code, &["-a", "cpu"]).stderr.is_empty());
    }
    // No GPU (CUDA_ERROR_NO_DEVICE, or none counted) is no fault.
    for code in [100, 0] {
        let output = run(folder.path(), 0, code, &[]);
        assert!(output.status.success() && output.stderr.is_empty(), "{code}: {}", text(&output.stderr));
    }
}

#[test]
fn a_driver_that_lacks_a_function_is_too_old() {
    // With all of them the runner runs and times a model on the GPU: these are all that it calls.
    let Some(complete) = driver(None) else { return };
    let output = run(complete.path(), 1, 0, &["-a", "Fake", "-i", "3", "-r", "2", "-v", "2"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("Running on 'Fake GPU'"), "{}", text(&output.stdout));
    let output = run(complete.path(), 1, 0, &["-a", "Fake", "-i", "3", "-r", "65537"]);
    let said = "dispatch_repeat is 65537, must be at most 65536 in a graph; --no-graph queues one by one";
    assert!(!output.status.success() && text(&output.stderr).contains(said), "{}", text(&output.stderr));
    let output = run(complete.path(), 1, 0, &["-a", "Fake", "-i", "3", "-r", "65537", "--no-graph"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let functions = functions();
    assert_eq!(functions.len(), 38);
    for name in &functions {
        let Some(folder) = driver(Some(name)) else { return };
        let said = format!(
            "cuda: loading the driver library failed: it has no {name}; install an NVIDIA driver for CUDA 12.0"
        );
        let output = run(folder.path(), 1, 0, &["-a", "0"]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(text(&output.stderr).contains(&said), "{name}: {}", text(&output.stderr));
        let output = run(folder.path(), 1, 0, &[]);
        assert!(output.status.success() && text(&output.stderr).contains(&said), "{name}: {}", text(&output.stderr));
    }
}

/// What the whole public API does on a GPU, in drop orders that hurt. Runs in a process of its own, whose driver is the double.
fn scenario() -> Result<(), Box<dyn std::error::Error>> {
    use dml_cuda::{
        BufferTensorDesc, CompileOptions, Device, FillValueSequenceDesc, ReverseSubsequencesDesc, ScalarUnion,
        TensorDataType,
    };
    for adapter in Device::cuda_adapters()? {
        assert_eq!((adapter.name.as_str(), adapter.ordinal), ("Fake GPU", 0));
    }
    let (device, again) = (Device::cuda(0)?, Device::cuda(0)?);
    let tensor = BufferTensorDesc::packed(TensorDataType::Float32, &[2, 8]);
    let reversal = device.create_operator(ReverseSubsequencesDesc {
        input_tensor: tensor.clone(),
        sequence_lengths_tensor: BufferTensorDesc::packed(TensorDataType::UInt32, &[2, 1]),
        output_tensor: tensor.clone(),
        axis: 1,
    })?;
    let fill = device.create_operator(FillValueSequenceDesc {
        output_tensor: tensor,
        value_data_type: TensorDataType::Float32,
        value_start: ScalarUnion::Float32(0.0),
        value_delta: ScalarUnion::Float32(1.0),
    })?;
    let (reversal, fill) = (device.compile_operator(&reversal)?, again.compile_operator(&fill)?);
    let promised = CompileOptions { pointer_alignment: 16, in_place: Some(true) };
    let in_place = again.compile_operator_with(reversal.operator(), promised)?;
    let input = device.create_buffer_from(&[1.0f32; 16])?;
    let lengths = again.create_buffer_from(&[3u32, 8])?;
    let output = device.create_buffer(64)?;
    let (stream, other) = (device.create_stream()?, again.create_stream()?);
    let copying = reversal.bind(&[(&input).into(), (&lengths).into()], &(&output).into())?;
    let earlier = stream.record_event()?;
    copying.dispatch(&stream)?;
    in_place.bind(&[(&input).into(), (&lengths).into()], &(&input).into())?.dispatch(&other)?;
    let later = stream.record_event()?;
    assert!(later.milliseconds_since(&earlier)? > 0.0);
    let filling = fill.bind(&[], &(&output).into())?;
    filling.dispatch(&stream)?;
    let mut graph = device.record_graph([&copying, &filling, &copying])?;
    graph.launch(&stream)?;
    graph.launch(&other)?;
    assert!(graph.milliseconds()? > 0.0);
    graph.launch(&stream)?;
    assert_eq!(output.to_vec::<f32>()?.len(), 16);
    // Streams, buffers and devices go while work is queued; the tables keep what they need.
    copying.dispatch(&stream)?;
    graph.launch(&stream)?;
    drop((stream, device, input, again));
    copying.dispatch(&other)?;
    graph.launch(&other)?;
    drop((output, lengths, copying, reversal, filling));
    graph.launch(&other)?;
    drop(graph);
    other.synchronize()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let fill = fill.clone();
                scope.spawn(move || -> Result<(), String> {
                    let device = Device::cuda(0).map_err(|error| error.to_string())?;
                    let stream = device.create_stream().map_err(|error| error.to_string())?;
                    let buffer = device.create_buffer(64).map_err(|error| error.to_string())?;
                    let table = fill.bind(&[], &(&buffer).into()).map_err(|error| error.to_string())?;
                    table.dispatch(&stream).map_err(|error| error.to_string())?;
                    if n % 2 == 0 {
                        drop(stream);
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    drop((other, fill, in_place));
    assert_eq!(dml_cuda::fill_value_sequence(&Device::cuda(0)?, &[4], 1u8, 1i8)?.len(), 4);
    Ok(())
}

/// What the double must report: a buffer that is lost, and memory that is freed while a stream that the library does not know of uses it.
#[allow(unsafe_code)]
fn misuse() -> Result<(), Box<dyn std::error::Error>> {
    use cudarc::driver::result;
    let device = dml_cuda::Device::cuda(0)?;
    std::mem::forget(device.create_buffer(64)?);
    let operator = device.create_float64_sequence(8.try_into()?, 0.0, 1.0);
    let operator = device.compile_operator(&operator)?;
    // SAFETY: the double's kernels touch nothing, and nothing else of this process uses the memory.
    unsafe {
        result::ctx::set_current(result::primary_ctx::retain(0)?)?;
        let address = result::malloc_sync(64)?;
        operator.dispatch_raw(&[], address, std::ptr::null_mut())?;
        result::free_sync(address)?;
    }
    Ok(())
}

/// Runs the scenario where this process was started for it.
#[test]
fn the_scenario() {
    let Some(which) = std::env::var_os("DOUBLE_SCENARIO") else { return };
    match if which == "misuse" { misuse() } else { scenario() } {
        Ok(()) => println!("SCENARIO done"),
        Err(error) => println!("SCENARIO {error}"),
    }
}

/// How the scenario, or the runner with a model, ended with a driver that fails at the n-th call of a function: its words, and what the
/// double reports.
fn with_failure(folder: &Path, function: &str, nth: u32, code: u32, runner: bool) -> (Output, Vec<String>) {
    let report = folder.join("report");
    let _ = std::fs::remove_file(&report);
    let mut command = if runner {
        let mut command = common::runner();
        let model = common::repository("models/reverse_subsequences.json");
        command.args(["-a", "0", "-i", "2", "-r", "2", "-v", "2"]).arg(model);
        command
    } else {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "the_scenario", "--nocapture"]).env("DOUBLE_SCENARIO", "1");
        command
    };
    let output = command
        .env("LD_LIBRARY_PATH", folder)
        .env("DOUBLE_FAIL", format!("{function} {nth} {code}"))
        .env("DOUBLE_REPORT", &report)
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let report = std::fs::read_to_string(report).unwrap_or_default();
    (output, report.lines().map(str::to_owned).collect())
}

/// Functions that give something back, or make that possible: what they fail to give back is lost, and no other's fault.
const GIVE_BACK: [&str; 10] = [
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuDevicePrimaryCtxRelease_v2",
    "cuEventDestroy_v2",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuMemFree_v2",
    "cuModuleUnload",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
];

/// Every function of the driver, failing at every call that the scenario and the runner make of it.
#[test]
fn a_driver_that_fails_at_any_call_is_an_error_in_words_and_nothing_is_lost() {
    let Some(folder) = driver(None) else { return };
    let mut matrix = String::new();
    let (mut cases, mut errors) = (0, 0);
    for function in functions() {
        for runner in [false, true] {
            let (mut line, mut outcomes) = (String::new(), std::collections::BTreeSet::new());
            for nth in 1.. {
                let (output, report) = with_failure(folder.path(), &function, nth, 719, runner);
                let (out, err) = (text(&output.stdout), text(&output.stderr));
                let said = format!("{function} {nth}, runner {runner}: {out}{err}{report:?}");
                let (told, seen): (Vec<_>, Vec<_>) = report.iter().partition(|line| line.ends_with("failed as told"));
                if told.is_empty() {
                    // It is not called so often: all went well.
                    let well = if runner { output.status.success() } else { out.contains("SCENARIO done") };
                    assert!(well && seen.is_empty(), "{said}");
                    line += &format!(" {} calls", nth - 1);
                    break;
                }
                assert!(!err.contains("panicked") && output.status.code().is_some(), "{said}");
                let lost = seen.iter().filter(|line| line.starts_with("end: not given back")).count();
                assert_eq!(lost, seen.len(), "{said}");
                assert!(lost == 0 || GIVE_BACK.contains(&function.as_str()), "{said}");
                let done = if runner { output.status.success() } else { out.contains("SCENARIO done") };
                if !done {
                    let words = if runner { &err } else { &out };
                    let why = function != "cuGetErrorString" && words.contains("(CUDA error 719)");
                    assert!(why && words.contains("cuda: "), "{said}");
                    errors += 1;
                }
                outcomes.insert(if done { "goes on" } else { "error" });
                cases += 1;
            }
            let outcomes: Vec<_> = outcomes.into_iter().collect();
            let what = if runner { "runner" } else { "library" };
            matrix += &format!("{function:30} {what:8}{line:10} {}\n", outcomes.join(", "));
        }
    }
    eprintln!("{matrix}{cases} failing calls, {errors} errors in words");
    assert!(cases > 300 && errors > 200, "{cases} {errors}");
}

#[test]
fn the_double_reports_what_is_lost_and_what_is_freed_too_early() {
    let Some(folder) = driver(None) else { return };
    let report = folder.path().join("report");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "the_scenario", "--nocapture"])
        .env("DOUBLE_SCENARIO", "misuse")
        .env("LD_LIBRARY_PATH", folder.path())
        .env("DOUBLE_REPORT", &report)
        .output()
        .expect("it starts");
    let report = std::fs::read_to_string(report).unwrap_or_default();
    assert!(text(&output.stdout).contains("SCENARIO done"), "{}", text(&output.stdout));
    for line in [
        "cuMemFree_v2: frees memory that queued work uses",
        "end: not given back: memory",
        "end: not given back: context",
    ] {
        assert!(report.contains(line), "{line} is not in\n{report}");
    }
}

/// A suite is timed on a GPU as on the CPU: samples are the GPU's, the roof is the driver's plain work.
#[test]
fn a_suite_is_timed_on_the_gpu_and_its_roof_loses_nothing() {
    let Some(folder) = driver(None) else { return };
    let report = folder.path().join("report");
    let run = |arguments: &[&str]| {
        let output = common::runner()
            .current_dir(folder.path())
            .args(arguments)
            .env("LD_LIBRARY_PATH", folder.path())
            .env("DOUBLE_REPORT", &report)
            .output()
            .expect("the runner starts");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    for work in ["copy", "fill"] {
        let printed = run(&["roof", work, "4096", "-i", "3", "-r", "2", "-a", "Fake"]);
        // The double says that a millisecond went by; of two dispatches each has half.
        assert!(printed.contains("\"gpu_milliseconds\":[0.5,0.5,0.5]"), "{printed}");
    }
    run(&["suite", "s", "--tier", "quick"]);
    run(&["bench", "s", "-o", "r.json", "--only", "small_16x256.f32", "--samples", "3"]);
    let run = std::fs::read_to_string(folder.path().join("r.json")).expect("a run");
    let run: serde_json::Value = serde_json::from_str(&run).expect("JSON");
    assert_eq!(run["machine"]["device"], "Fake GPU");
    assert_eq!(run["machine"]["driver"], "CUDA 12.0");
    assert_eq!(run["cases"].as_array().expect("cases").len(), 2);
    for case in run["cases"].as_array().expect("cases") {
        let microseconds = 1000.0 / case["dispatches"].as_f64().expect("a number");
        let samples = case["samples"]["each"].as_array().expect("samples");
        assert_eq!(samples.len(), 3);
        assert!(
            samples.iter().all(|sample| (sample.as_f64().expect("a number") / microseconds - 1.0).abs() < 1e-6),
            "{case}"
        );
    }
    let report = std::fs::read_to_string(report).unwrap_or_default();
    assert!(report.is_empty(), "{report}");
}

/// Driver and clocks of a run are those of the GPU that it ran on, and not of the first.
#[test]
fn a_bench_asks_for_the_clocks_of_its_own_gpu() {
    use std::os::unix::fs::PermissionsExt;
    let Some(folder) = driver(None) else { return };
    let tool = folder.path().join("nvidia-smi");
    std::fs::write(&tool, "#!/bin/sh\nfor last; do :; done\necho \"580.$last, 1980 MHz, 3201 MHz, 2000 MHz\"\n")
        .expect("written");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("it can be run");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let run = |arguments: &[&str]| {
        let mut runner = common::runner();
        runner.current_dir(folder.path()).args(arguments).env("PATH", &path);
        runner.env("LD_LIBRARY_PATH", folder.path()).env("FAKE_GPUS", "2").output().expect("the runner starts")
    };
    assert!(run(&["suite", "s", "--tier", "quick"]).status.success());
    for (adapter, place) in [("0", "0001:1a:01.0"), ("1", "0001:1b:01.0")] {
        let bench = ["bench", "s", "-o", &format!("{adapter}.json"), "--only", "small_16x256.f32.copy", "-a", adapter];
        let output = run(&bench);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let written = std::fs::read_to_string(folder.path().join(format!("{adapter}.json"))).expect("a run");
        let machine = &serde_json::from_str::<serde_json::Value>(&written).expect("JSON")["machine"];
        assert_eq!(machine["driver"], format!("580.{place} (CUDA 12.0)"));
        assert_eq!(machine["clocks"], "SM 1980 MHz of at most 2000 MHz, memory 3201 MHz");
    }
    // Two GPUs of one name are told apart by nothing else in this double than their drivers.
    let output = run(&["bench", "s", "-o", "0.json", "--only", "small_16x256.f32", "-a", "1"]);
    assert!(
        output.status.code() == Some(1) && text(&output.stderr).contains("driver was '580.0001:1a:01.0"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn memory_that_is_not_to_be_had_is_said() {
    let Some(folder) = driver(None) else { return };
    let (output, _) = with_failure(folder.path(), "cuMemAlloc_v2", 2, 2, true);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("cuda: allocating ") && said.contains("free memory"), "{said}");
}

/// A number that cudarc's enum of results does not have, of which the driver has no words either.
#[test]
fn a_result_that_nobody_knows_is_said_by_its_number() {
    let Some(folder) = driver(None) else { return };
    for (function, nth) in [("cuMemAlloc_v2", 2), ("cuLaunchKernel", 1), ("cuInit", 1), ("cuGraphLaunch", 2)] {
        let (output, _) = with_failure(folder.path(), function, nth, 4711, true);
        let said = text(&output.stderr);
        let named = said.contains(" failed: the driver has no words for it (CUDA error 4711); see this error");
        assert!(output.status.code() == Some(1) && named, "{function}: {said}");
    }
}
