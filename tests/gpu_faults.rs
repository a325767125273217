//! A GPU whose context another kernel has corrupted, and one that is nearly full: calls return readable errors, drops
//! are clean, and nothing hangs. Each runs in a separate process, because a corrupted context stays corrupted.
#![allow(unsafe_code)]

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::result;
use dml_cuda::{CompiledOperator, Device, Operator, OperatorDesc, Stream, TensorDataType};
use dml_cuda_testing::lanes;

/// If there is a GPU: starts this program again for the same test, which runs `body` there, and returns its lines.
fn alone(test: &str, body: fn() -> Vec<String>) -> Option<Vec<String>> {
    if std::env::var_os("GPU_FAULT").is_some() {
        body().iter().for_each(|line| println!("FAULT {line}"));
        return None;
    }
    /// While the GPU is full, no other process can use it.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    dml_cuda_testing::cuda(test)?;
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", test, "--nocapture"])
        .env("GPU_FAULT", "1");
    let output = command.output().expect("it starts");
    let [out, err] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(
        output.status.success(),
        "{test}: {}\n{out}{err}",
        output.status
    );
    let lines: Vec<String> = out
        .lines()
        .filter_map(|line| line.strip_prefix("FAULT "))
        .map(str::to_owned)
        .collect();
    eprintln!("{}", lines.join("\n"));
    Some(lines)
}

/// A call's name and its error, or `works`.
fn outcome<T>(call: &str, result: Result<T, impl std::fmt::Display>) -> String {
    format!(
        "{call}: {}",
        result
            .err()
            .map_or_else(|| "works".to_owned(), |error| error.to_string())
    )
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
    let desc = OperatorDesc::from(lanes(TensorDataType::Float32, 64, 64));
    let operator = dml_cuda_testing::compile(&device, &desc);
    (
        device.clone(),
        device.create_stream().expect("a stream"),
        desc,
        operator,
    )
}

/// An operator whose kernel is not loaded yet.
fn other(device: &Device) -> Operator {
    device
        .create_operator(lanes(TensorDataType::UInt8, 3, 100_000))
        .expect("rules know no GPU")
}

fn corrupted() -> Vec<String> {
    let (device, stream, _, operator) = ready();
    let buffers = [64 * 64 * 4, 64 * 4].map(|bytes| device.create_buffer(bytes).expect("memory"));
    let bindings = [(&buffers[0]).into(), (&buffers[1]).into()];
    let table = operator.bind(&bindings, &bindings[0]).expect("bound");
    let mut graph = device.record_graph([&table]).expect("recorded");
    graph.launch(&stream).expect("launched");
    // SAFETY: the context is the primary one, which the device keeps. That the kernel faults is the purpose of this
    // test.
    unsafe {
        result::ctx::set_current(result::primary_ctx::retain(0).expect("its context"))
            .expect("current");
        let module = result::module::load_data(FAULTY.as_ptr().cast()).expect("loaded");
        let function = result::module::get_function(module, c"faulty".to_owned()).expect("found");
        result::launch_kernel(
            function,
            (1, 1, 1),
            (1, 1, 1),
            0,
            std::ptr::null_mut(),
            &mut [],
        )
        .expect("queued");
        result::stream::synchronize(std::ptr::null_mut()).expect_err("it faults");
    }
    let lines = vec![
        outcome("stream", device.create_stream()),
        outcome("buffer", device.create_buffer(64)),
        outcome("write", buffers[1].write(0, &[1; 8])),
        outcome("read", buffers[0].to_vec::<u8>()),
        outcome("dispatch", table.dispatch(&stream)),
        outcome("launch", graph.launch(&stream)),
        outcome("record", device.record_graph([&table])),
        outcome("event", stream.record_event()),
        outcome("synchronize", stream.synchronize()),
        outcome("compile", device.compile_operator(&other(&device))),
    ];
    drop((graph, table, bindings, buffers, operator, stream, device));
    lines
}

#[test]
fn every_call_reports_a_context_that_another_kernel_corrupted() {
    let test = "every_call_reports_a_context_that_another_kernel_corrupted";
    let Some(calls) = alone(test, corrupted) else {
        return;
    };
    assert_eq!(calls.len(), 10);
    for call in calls {
        assert!(
            call.contains("(CUDA error 700); an earlier kernel of this process touched memory"),
            "{call}"
        );
    }
}

fn full() -> Vec<String> {
    let (device, stream, desc, operator) = ready();
    let random = dml_cuda_testing::Random(7).bytes(64 * 64 * 4);
    let lengths: Vec<u32> = (0..64).collect();
    let required = dml_cuda_testing::run(
        &Device::cpu(),
        &desc,
        &[&random, bytemuck::cast_slice(&lengths)],
        false,
    );
    let input = device
        .create_buffer_from(random.as_slice())
        .expect("memory");
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
    // Existing objects still work. A graph, a newly loaded kernel and a stream either work or fail with a readable
    // error.
    let bindings = [(&input).into(), (&lengths).into()];
    let table = operator.bind(&bindings, &output).expect("bound");
    table.dispatch(&stream).expect("queued");
    assert_eq!(output.to_vec::<u8>().expect("read"), required);
    let lines = vec![
        error,
        outcome("compile", device.compile_operator(&other(&device))),
        outcome("graph", device.record_graph([&table; 100])),
        outcome("stream", device.create_stream()),
    ];
    // Freed memory can be allocated again.
    let size = taken[0].size_in_bytes();
    drop(taken);
    device.create_buffer(size).expect("memory");
    lines
}

#[test]
fn a_nearly_full_gpu_gives_errors_and_existing_objects_still_work() {
    let test = "a_nearly_full_gpu_gives_errors_and_existing_objects_still_work";
    let Some(lines) = alone(test, full) else {
        return;
    };
    let (error, outcomes) = lines.split_first().expect("it printed");
    assert!(
        error.starts_with("cuda: allocating 2097152 bytes failed: "),
        "{error}"
    );
    assert_eq!(outcomes.len(), 3);
    for outcome in outcomes {
        assert!(
            outcome.ends_with(": works") || outcome.contains("(CUDA error 2); free GPU memory"),
            "{outcome}"
        );
    }
}
