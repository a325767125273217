//! A GPU whose context another kernel has corrupted, and one that is nearly full: calls return readable errors, drops
//! are clean, and nothing hangs. Each runs in a separate process, because a corrupted context stays corrupted.
#![cfg(feature = "cuda")]
#![allow(unsafe_code)]

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::result;
use dml_cuda::{CompiledOperator, Device, OperatorDesc, Stream, TensorDataType};

/// If there is a GPU: runs one test of this program in a separate process, and returns the lines that the test marked.
fn alone(test: &str, name: &str) -> Option<Vec<String>> {
    /// While the GPU is full, no other process can use it.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    dml_cuda_testing::cuda(test)?;
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture"])
        .env("GPU_FAULT", name)
        .output()
        .expect("it starts");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{name}: {}\n{out}{err}", output.status);
    let lines: Vec<String> = out.lines().filter_map(|line| line.strip_prefix("FAULT ")).map(str::to_owned).collect();
    eprintln!("{}", lines.join("\n"));
    Some(lines)
}

/// Whether this process was started for that test.
fn is_for(name: &str) -> bool {
    std::env::var_os("GPU_FAULT").is_some_and(|value| value == name)
}

/// A faulty kernel, as another program might have: it writes to address 8.
const FAULTY: &std::ffi::CStr = c".version 7.5
.target sm_75
.address_size 64
.visible .entry faulty() { .reg .u64 %a; mov.u64 %a, 8; st.global.u64 [%a], %a; ret; }
";

/// The GPU, a stream, and a reversal of 64 lanes of 64 elements.
fn ready() -> (Device, Stream, OperatorDesc, CompiledOperator) {
    let device = Device::cuda(0).expect("a GPU");
    let desc = OperatorDesc::from(dml_cuda_testing::lanes(TensorDataType::Float32, 64, 64));
    let operator = dml_cuda_testing::compile(&device, &desc);
    (device.clone(), device.create_stream().expect("a stream"), desc, operator)
}

#[test]
fn poisoned() {
    if !is_for("poisoned") {
        return;
    }
    let (device, stream, _, operator) = ready();
    let buffers = [64 * 64 * 4, 64 * 4].map(|bytes| device.create_buffer(bytes).expect("memory"));
    let bindings = [(&buffers[0]).into(), (&buffers[1]).into()];
    let table = operator.bind(&bindings, &bindings[0]).expect("bound");
    let mut graph = device.record_graph([&table]).expect("recorded");
    graph.launch(&stream).expect("launched");
    // SAFETY: the context is the primary one, which the device keeps. That the kernel faults is the purpose of this
    // test.
    unsafe {
        result::ctx::set_current(result::primary_ctx::retain(0).expect("its context")).expect("current");
        let module = result::module::load_data(FAULTY.as_ptr().cast()).expect("loaded");
        let function = result::module::get_function(module, c"faulty".to_owned()).expect("found");
        result::launch_kernel(function, (1, 1, 1), (1, 1, 1), 0, std::ptr::null_mut(), &mut []).expect("queued");
        result::stream::synchronize(std::ptr::null_mut()).expect_err("it faults");
    }
    let mut lines = Vec::new();
    let mut failed = |what: &str, outcome: Result<(), String>| {
        lines.push(format!("FAULT {what}: {}", outcome.err().unwrap_or_else(|| "no error".to_owned())));
    };
    let text = |error: &dyn std::fmt::Display| error.to_string();
    failed("stream", device.create_stream().map(drop).map_err(|error| text(&error)));
    failed("buffer", device.create_buffer(64).map(drop).map_err(|error| text(&error)));
    failed("write", buffers[1].write(0, &[1; 8]).map_err(|error| text(&error)));
    failed("read", buffers[0].to_vec::<u8>().map(drop).map_err(|error| text(&error)));
    failed("dispatch", table.dispatch(&stream).map_err(|error| text(&error)));
    failed("launch", graph.launch(&stream).map_err(|error| text(&error)));
    failed("record", device.record_graph([&table]).map(drop).map_err(|error| text(&error)));
    failed("event", stream.record_event().map(drop).map_err(|error| text(&error)));
    failed("synchronize", stream.synchronize().map_err(|error| text(&error)));
    let other = dml_cuda_testing::lanes(TensorDataType::UInt8, 3, 100_000);
    let other = device.create_operator(other).expect("rules know no GPU");
    failed("compile", device.compile_operator(&other).map(drop).map_err(|error| text(&error)));
    drop((graph, table, bindings, buffers, operator, stream, device));
    lines.push("FAULT dropped".to_owned());
    println!("{}", lines.join("\n"));
}

#[test]
fn every_call_reports_a_context_that_another_kernel_corrupted() {
    let test = "every_call_reports_a_context_that_another_kernel_corrupted";
    let Some(lines) = alone(test, "poisoned") else { return };
    let (last, calls) = lines.split_last().expect("it printed");
    assert_eq!((last.as_str(), calls.len()), ("dropped", 10));
    for call in calls {
        let (_, error) = call.split_once(": ").expect("a name and an error");
        assert!(error.contains("(CUDA error 700); an earlier kernel of this process touched memory"), "{call}");
    }
}

#[test]
fn full() {
    if !is_for("full") {
        return;
    }
    let (device, stream, desc, operator) = ready();
    let random = dml_cuda_testing::Random(7).bytes(64 * 64 * 4);
    let lengths: Vec<u32> = (0..64).collect();
    let required = dml_cuda_testing::run(&Device::cpu(), &desc, &[&random, bytemuck::cast_slice(&lengths)], false);
    let input = device.create_buffer_from(random.as_slice()).expect("memory");
    let lengths = device.create_buffer_from(&lengths).expect("memory");
    let output = device.create_buffer(64 * 64 * 4).expect("memory");
    // Allocates ever smaller pieces, until not even 2 MiB are free.
    let mut taken = Vec::new();
    let mut piece = 64u64 << 30;
    let mut error = String::new();
    while piece >= 2 << 20 {
        match device.create_buffer(piece) {
            Ok(buffer) => taken.push(buffer),
            Err(refused) => {
                error = refused.to_string();
                piece /= 2;
            }
        }
    }
    println!(
        "FAULT {} buffers of {} bytes",
        taken.len(),
        taken.iter().map(dml_cuda::Buffer::size_in_bytes).sum::<u64>()
    );
    println!("FAULT {error}");
    // Existing objects still work. A graph, a newly loaded kernel and a stream either work or fail with a readable
    // error.
    let bindings = [(&input).into(), (&lengths).into()];
    let table = operator.bind(&bindings, &(&output).into()).expect("bound");
    table.dispatch(&stream).expect("queued");
    assert_eq!(output.to_vec::<u8>().expect("read"), required);
    let other =
        device.create_operator(dml_cuda_testing::lanes(TensorDataType::UInt8, 3, 100_000)).expect("rules know no GPU");
    for (what, outcome) in [
        ("compile", device.compile_operator(&other).map(drop).map_err(|error| error.to_string())),
        ("graph", device.record_graph([&table; 100]).map(drop).map_err(|error| error.to_string())),
        ("stream", device.create_stream().map(drop).map_err(|error| error.to_string())),
    ] {
        println!("FAULT {what}: {}", outcome.err().unwrap_or_else(|| "works".to_owned()));
    }
    // Freed memory can be allocated again.
    let size = taken[0].size_in_bytes();
    drop(taken);
    device.create_buffer(size).expect("memory");
    println!("FAULT again");
}

#[test]
fn a_nearly_full_gpu_gives_errors_and_existing_objects_still_work() {
    let test = "a_nearly_full_gpu_gives_errors_and_existing_objects_still_work";
    let Some(lines) = alone(test, "full") else { return };
    assert_eq!((lines.len(), lines.last().map(String::as_str)), (6, Some("again")));
    assert!(lines[1].starts_with("cuda: allocating 2097152 bytes failed: "), "{}", lines[1]);
    for outcome in &lines[2..5] {
        assert!(outcome.ends_with(": works") || outcome.contains("(CUDA error 2); free GPU memory"), "{outcome}");
    }
}
