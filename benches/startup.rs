//! The time from opening a GPU to the first result, in a new process each time; see benches/README.md.
#![allow(missing_docs)]

use std::process::Command;
use std::time::Instant;

use dml_cuda::{BufferBinding, Device, OperatorDesc, ScalarUnion, TensorDataType as T};
use dml_cuda_testing::{fill, lanes};

/// Processes of each kind; the median is printed.
const PROCESSES: usize = 5;
/// The phases that a process times, in this order.
const PHASES: [&str; 4] = [
    "Device::cuda(0)",
    "compile_operator",
    "first result",
    "second result",
];

/// The operator of a kind of process. Its lanes are few, or more than the small kernels accept.
fn desc(kind: &str) -> OperatorDesc {
    match kind {
        "--fill" => fill(
            T::Float32,
            &[1024],
            ScalarUnion::Float32(1.0),
            ScalarUnion::Float32(0.5),
        )
        .into(),
        "--reversal" => lanes(T::Float32, 4, 256).into(),
        _ => lanes(T::Float32, 4096, 256).into(),
    }
}

/// Runs in the child process: prints the microseconds of each phase.
fn time(desc: OperatorDesc) {
    let inputs: Vec<u64> = desc
        .input_tensors()
        .iter()
        .map(|tensor| tensor.total_tensor_size_in_bytes)
        .collect();
    let size = inputs.first().copied().unwrap_or(4096);
    let mut marks = vec![Instant::now()];
    let device = Device::cuda(0).expect("a GPU");
    marks.push(Instant::now());
    let operator = device.create_operator(desc).expect("right");
    let operator = device.compile_operator(&operator).expect("compiled");
    marks.push(Instant::now());
    for _ in 0..2 {
        let input: Vec<_> = inputs
            .iter()
            .map(|&size| device.create_buffer(size).expect("small"))
            .collect();
        let bindings: Vec<_> = input.iter().map(BufferBinding::whole).collect();
        let output = device.create_buffer(size).expect("small");
        let stream = device.create_stream().expect("a stream");
        operator
            .bind(&bindings, &output)
            .expect("right")
            .dispatch(&stream)
            .expect("queued");
        stream.synchronize().expect("no kernel failed");
        let result: Vec<f32> = output.to_vec().expect("read");
        assert_eq!(result[1], if inputs.is_empty() { 1.5 } else { 0.0 });
        marks.push(Instant::now());
    }
    marks
        .windows(2)
        .for_each(|pair| print!("{} ", (pair[1] - pair[0]).as_micros()));
}

fn main() {
    let argument = |name: &str| std::env::args().any(|argument| argument == name);
    let kinds = ["--fill", "--reversal", "--large-reversal"];
    if let Some(kind) = kinds.into_iter().find(|kind| argument(kind)) {
        return time(desc(kind));
    }
    if Device::cuda_count() == 0 {
        println!("SKIPPED: there is no GPU to start");
        return;
    }
    let program = std::env::current_exe().expect("a running program has a file");
    println!(
        "microseconds, medians of {PROCESSES} processes: {}",
        PHASES.join(", ")
    );
    for kind in kinds {
        for warm in [false, true] {
            let cache = tempfile::tempdir().expect("a temporary folder");
            let run = |n: usize| -> Vec<u64> {
                // Cold: each process has its own cache. Warm: they share one.
                let folder = cache.path().join(if warm {
                    "shared".to_owned()
                } else {
                    n.to_string()
                });
                let output = Command::new(&program)
                    .arg(kind)
                    .env("CUDA_CACHE_PATH", folder)
                    .output();
                let output = output.expect("it starts again");
                assert!(
                    output.status.success(),
                    "{}",
                    String::from_utf8_lossy(&output.stderr)
                );
                let text = String::from_utf8_lossy(&output.stdout);
                text.split_whitespace()
                    .map(|word| word.parse().expect("a number"))
                    .collect()
            };
            run(0); // fills the shared cache
            let runs: Vec<_> = (1..=PROCESSES).map(run).collect();
            let median = |phase: usize| {
                let mut times: Vec<u64> = runs.iter().map(|run| run[phase]).collect();
                times.sort_unstable();
                times[PROCESSES / 2].to_string()
            };
            let times: Vec<String> = (0..PHASES.len()).map(median).collect();
            let cache = if warm { "warm" } else { "cold" };
            println!("{}, {cache} driver cache: {}", &kind[2..], times.join(", "));
        }
    }
}
