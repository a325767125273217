//! Device time of both operators against the memory's speed, as one prebuilt binary: see benches/README.md.
//!
//! `throughput [--test] [--csv FILE] [--only SUBSTRING] [--graph]`. Criterion's sampling does not fit here: times are taken
//! on the device, every case needs its roof from the same run, and the results are checked.
#![allow(unsafe_code, missing_docs)]

#[path = "../../crates/dml-cuda-cli/src/bench/suite/cases.rs"]
mod cases;
mod gpu;

use std::fmt::Write as _;

use cases::Case;
use gpu::Gpu;

const TIMING: &str =
    "events on the GPU around many launches, medians of nine; a cold L2 where the tensors are of 8 MiB and more";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option =
        |name: &str| arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1));
    let test = arguments.iter().any(|argument| argument == "--test");
    if dml_cuda::Device::cuda_count() == 0 {
        let cases = cases::all(true);
        assert!(cases.iter().all(|case| case.floor_bytes(&case.lengths()) > 0), "every case moves bytes");
        println!("SKIPPED: there is no GPU; {} cases were built and their floors computed", cases.len());
        return;
    }
    let graphs = arguments.iter().any(|argument| argument == "--graph");
    let gpu = Gpu::new(graphs);
    println!("{}", gpu.description());
    let roofs = Roofs::measure(&gpu, test);
    println!("{}", roofs.description());

    let mut csv = String::from(
        "case,type,mode,microseconds,floor_bytes,floor_microseconds,floor_over_time,gigabytes_per_second,plain_over_time\n",
    );
    println!(
        "{:<34} {:>5} {:>9} {:>10} {:>10} {:>7} {:>8} {:>7}",
        "case", "type", "mode", "us", "floor us", "ratio", "GB/s", "plain"
    );
    for case in
        cases::all(test).iter().filter(|case| option("--only").is_none_or(|only| case.name.contains(only.as_str())))
    {
        let lengths = case.lengths();
        let floor_bytes = case.floor_bytes(&lengths);
        let (microseconds, plain) = gpu.time_case(case, &lengths, floor_bytes);
        gpu.check_case(case, &lengths);
        let own_roof = plain.filter(|_| case.own_roof);
        let floor = own_roof.unwrap_or_else(|| roofs.floor_microseconds(case, floor_bytes));
        let plain_over_time = plain.map(|plain| format!("{:.4}", plain / microseconds)).unwrap_or_default();
        let rate = floor_bytes as f64 / microseconds / 1e3;
        let (name, data_type, mode) = (&case.name, case.data_type(), case.mode());
        println!(
            "{name:<34} {data_type:>5} {mode:>9} {microseconds:>10.2} {floor:>10.2} {:>7.3} {rate:>8.0} {plain_over_time:>7}",
            floor / microseconds
        );
        let _ = writeln!(
            csv,
            "\"{name}\",{data_type},{mode},{microseconds:.3},{},{floor:.3},{:.4},{rate:.1},{plain_over_time}",
            floor_bytes,
            floor / microseconds
        );
    }
    if let Some(path) = option("--csv") {
        // Keys that `dml-cuda import` knows, then notes.
        let header = format!(
            "# tool: dml-cuda {}, benches/throughput\n# device: {}\n# timing: {TIMING}; {}work replayed from a CUDA graph\n# {}\n# {}\n",
            env!("CARGO_PKG_VERSION"),
            gpu.description(),
            if graphs { "" } else { "short " },
            roofs.description(),
            Gpu::clocks()
        );
        std::fs::write(path, header + &csv).expect("the CSV can be written");
    }
}

/// What the memory does at best, measured in the same run. Rates are in bytes a microsecond.
struct Roofs {
    write: f64,
    copy: f64,
    memset: f64,
    store: f64,
    /// Microseconds in a graph of a block of threads that returns, stores, loads twice and stores.
    small: [f64; 3],
}

impl Roofs {
    fn measure(gpu: &Gpu, test: bool) -> Self {
        let bytes: u64 = if test { 1 << 20 } else { 1 << 29 };
        let rate = |microseconds: f64| bytes as f64 / microseconds;
        let memset = rate(gpu.time_memset(bytes));
        let store = rate(gpu.time_store(bytes));
        let copy = 2.0 * rate(gpu.time_copy(bytes));
        Self { write: memset.max(store), copy, memset, store, small: gpu.time_small() }
    }

    fn description(&self) -> String {
        let Self { memset, store, copy, small: [empty, one_store, chase], .. } = self;
        let gigabytes = |rate: f64| rate / 1e3;
        format!(
            "roofs at 512 MiB: memset {:.0} GB/s, a 16-byte store a thread {:.0} GB/s, device copy {:.0} GB/s read and written; in a graph an empty kernel {empty:.2} us, one of a store {one_store:.2} us, one of a load, a load from there and a store {chase:.2} us",
            gigabytes(*memset), gigabytes(*store), gigabytes(*copy)
        )
    }

    /// The bytes that must move, over the roof's rate; never less than an empty kernel.
    fn floor_microseconds(&self, case: &Case, floor_bytes: u64) -> f64 {
        (floor_bytes as f64 / if case.is_fill() { self.write } else { self.copy }).max(self.small[0])
    }
}
