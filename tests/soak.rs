//! A soak test: threads bind, dispatch, record, read and drop on every GPU, or on the CPU without one. They share
//! one set of operators and use their own streams, a shared stream and streams of another library. Checks every byte,
//! and that no memory is lost. `SOAK_SECONDS=480` runs it for longer than a second.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dml_cuda::{
    Buffer, BufferBinding, CompiledOperator, Device, Graph, OperatorDesc, ScalarUnion, Stream,
    TensorDataType,
};
use dml_cuda_testing::{cases, Random};

#[path = "it/outside.rs"]
mod outside;
use outside::{Memory, Outside};

/// Data for an operator: its inputs, and the output that they must give.
struct Variant {
    inputs: Vec<Vec<u8>>,
    output: Vec<u8>,
}

/// An operator's descriptor, with data.
struct Work {
    desc: OperatorDesc,
    variants: Vec<Variant>,
}

impl Work {
    fn new(desc: OperatorDesc, random: &mut Random) -> Self {
        let tensor = desc.output_tensor();
        // Padding to a multiple of 4 bytes may follow. Nothing writes it.
        let elements =
            (tensor.sizes.iter().product::<u32>() * tensor.data_type.size_in_bits() / 8) as usize;
        let variants = (0..4).map(|_| {
            let inputs = cases::inputs(random, &desc);
            let slices: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
            let mut output = dml_cuda_testing::run(&Device::cpu(), &desc, &slices, false);
            output.truncate(elements);
            Variant { inputs, output }
        });
        Self {
            variants: variants.collect(),
            desc,
        }
    }

    fn all() -> Vec<Self> {
        use TensorDataType::{Float16, Float32, Int64, UInt8};
        let mut random = Random(15);
        let mut all = Vec::new();
        let shapes: [(&[u32], u32, [TensorDataType; 2]); 6] = [
            (&[37, 1001], 1, [UInt8, Float32]),
            (&[64, 513], 1, [Float16, Int64]),
            (&[5, 4099], 1, [Float32, UInt8]),
            (&[3, 300, 70], 1, [Int64, Float16]),
            (&[200, 33], 0, [UInt8, Float32]),
            (&[16, 256], 1, [Float16, Int64]),
        ];
        for (sizes, axis, data_types) in shapes {
            for data_type in data_types {
                all.push(Self::new(
                    dml_cuda_testing::reversal(data_type, sizes, axis).into(),
                    &mut random,
                ));
            }
        }
        let [start, delta] = [-7.25, 0.3].map(ScalarUnion::Float32);
        all.push(Self::new(
            dml_cuda_testing::fill(Float32, &[3, 10_007], start, delta).into(),
            &mut random,
        ));
        all
    }
}

/// The ways to run an operator.
#[derive(Clone, Copy, Debug)]
enum Way {
    OwnStream,
    SharedStream,
    InPlace,
    Graph,
    Foreign,
}

const WAYS: [Way; 5] = [
    Way::OwnStream,
    Way::SharedStream,
    Way::InPlace,
    Way::Graph,
    Way::Foreign,
];

/// How often each way was taken.
type Counts = [AtomicU64; WAYS.len()];

/// A device with what its threads share.
struct Place {
    device: Device,
    stream: Stream,
    operators: Vec<CompiledOperator>,
}

impl Place {
    fn new(device: Device, work: &[Work]) -> Self {
        let operators = work
            .iter()
            .map(|work| dml_cuda_testing::compile(&device, &work.desc))
            .collect();
        Self {
            stream: device.create_stream().expect("a stream"),
            operators,
            device,
        }
    }
}

/// A thread's graph of one operator, and its buffers.
struct Recorded {
    of: usize,
    graph: Graph,
    inputs: Vec<Buffer>,
    output: Buffer,
    launches: u32,
}

/// One thread on one device, until the end.
struct Worker<'a> {
    place: &'a Place,
    work: &'a [Work],
    counts: &'a Counts,
    random: Random,
    stream: Stream,
    recorded: Option<Recorded>,
}

impl Worker<'_> {
    fn run(mut self, until: Instant) {
        while Instant::now() < until {
            let n = self.random.below(self.work.len() as u64) as usize;
            let variant = &self.work[n].variants[self.random.below(4) as usize];
            match WAYS[self.random.below(5) as usize] {
                Way::Graph => self.graph(variant, n),
                Way::Foreign => self.foreign(n, variant),
                Way::InPlace if variant.inputs.is_empty() => {}
                way => self.dispatch(n, variant, way),
            }
            if self.random.below(64) == 0 {
                self.stream = self.place.device.create_stream().expect("a stream");
            }
        }
    }

    fn look(&self, found: &[u8], variant: &Variant, way: Way) {
        assert!(
            found[..variant.output.len()] == variant.output,
            "{way:?} on {}",
            self.place.device
        );
        self.counts[way as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn buffers(&self, variant: &Variant) -> (Vec<Buffer>, Buffer) {
        let device = &self.place.device;
        let inputs = variant
            .inputs
            .iter()
            .map(|bytes| device.create_buffer_from(bytes.as_slice()).expect("memory"));
        let output = device
            .create_buffer((variant.output.len() as u64).next_multiple_of(4))
            .expect("memory");
        (inputs.collect(), output)
    }

    /// Dispatches into new buffers. Drops the inputs and the table while the work runs.
    fn dispatch(&self, n: usize, variant: &Variant, way: Way) {
        let (mut inputs, mut output) = self.buffers(variant);
        let bindings: Vec<BufferBinding> = inputs.iter().map(Into::into).collect();
        if matches!(way, Way::InPlace) {
            output = inputs.remove(0);
        }
        let table = self.place.operators[n]
            .bind(&bindings, &output)
            .expect("bound");
        let stream = if matches!(way, Way::SharedStream) {
            &self.place.stream
        } else {
            &self.stream
        };
        table.dispatch(stream).expect("queued");
        drop((inputs, bindings, table));
        self.look(&output.to_vec::<u8>().expect("read"), variant, way);
    }

    /// Launches an earlier graph with new data and new lengths, and sometimes replaces it with a new one.
    fn graph(&mut self, variant: &Variant, n: usize) {
        if self
            .recorded
            .as_ref()
            .is_none_or(|recorded| recorded.of != n || recorded.launches > 40)
        {
            let (inputs, output) = self.buffers(variant);
            let bindings: Vec<BufferBinding> = inputs.iter().map(Into::into).collect();
            let table = self.place.operators[n]
                .bind(&bindings, &output)
                .expect("bound");
            let graph = self
                .place
                .device
                .record_graph([&table, &table])
                .expect("recorded");
            self.recorded = Some(Recorded {
                of: n,
                graph,
                inputs,
                output,
                launches: 0,
            });
        }
        for variant in &self.work[n].variants {
            let Some(recorded) = &mut self.recorded else {
                return;
            };
            for (buffer, bytes) in recorded.inputs.iter().zip(&variant.inputs) {
                buffer.write(0, bytes).expect("written");
            }
            let stream = if recorded.launches % 3 == 0 {
                &self.place.stream
            } else {
                &self.stream
            };
            recorded.graph.launch(stream).expect("launched");
            recorded.launches += 1;
            let found = recorded.output.to_vec::<u8>().expect("read");
            self.look(&found, variant, Way::Graph);
        }
    }

    /// Dispatches on a stream and in memory that the crate did not create. The output's memory lacks the padding.
    fn foreign(&self, n: usize, variant: &Variant) {
        let outside = Outside::new(&self.place.device);
        let inputs: Vec<Memory> = variant
            .inputs
            .iter()
            .map(|bytes| outside.memory(bytes, 0))
            .collect();
        let output = outside.memory(&vec![0; variant.output.len()], 0);
        let addresses: Vec<u64> = inputs.iter().map(Memory::tensor).collect();
        // SAFETY: the memory is as large as the tensors, and is freed after the work is done.
        unsafe { outside.dispatch(&self.place.operators[n], &addresses, output.tensor()) }
            .expect("queued");
        self.look(&output.read(), variant, Way::Foreign);
    }
}

/// Bytes in use on each GPU, and in the process.
fn memory(places: &[Place]) -> Vec<u64> {
    let mut taken = Vec::new();
    for ordinal in places.iter().filter_map(|place| place.device.ordinal()) {
        let context = cudarc::driver::CudaContext::new(ordinal).expect("the GPU");
        context.bind_to_thread().expect("its context");
        let (free, total) = cudarc::driver::result::mem_get_info().expect("its memory");
        taken.push((total - free) as u64);
    }
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    taken.extend(
        statm
            .split(' ')
            .nth(1)
            .and_then(|pages| pages.parse::<u64>().ok())
            .map(|pages| pages * 4096),
    );
    taken
}

#[test]
fn threads_and_devices_get_their_own_bytes_and_lose_no_memory() {
    let seconds = std::env::var("SOAK_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0);
    let test = "threads_and_devices_get_their_own_bytes_and_lose_no_memory";
    let work = Work::all();
    let mut devices: Vec<Device> = dml_cuda_testing::cuda(test).into_iter().collect();
    devices.extend((1..Device::cuda_count()).map(|ordinal| Device::cuda(ordinal).expect("a GPU")));
    let threads = if devices.is_empty() { 4 } else { 16 };
    if devices.is_empty() {
        devices.push(Device::cpu());
    }
    let places: Vec<Place> = devices
        .into_iter()
        .map(|device| Place::new(device, &work))
        .collect();
    let counts = Counts::default();
    let round = |seconds: f64| {
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        std::thread::scope(|scope| {
            for n in 0..threads {
                let (place, work, counts) = (&places[n % places.len()], &work, &counts);
                scope.spawn(move || {
                    let stream = place.device.create_stream().expect("a stream");
                    Worker {
                        place,
                        work,
                        counts,
                        random: Random(n as u64),
                        stream,
                        recorded: None,
                    }
                    .run(until);
                });
            }
        });
        assert!(
            until.elapsed() < Duration::from_secs(30),
            "a thread was stuck for {:?}",
            until.elapsed()
        );
    };
    // The first round loads everything that is loaded once.
    round(seconds / 10.0);
    let before = memory(&places);
    round(seconds);
    let after = memory(&places);
    let done: Vec<_> = WAYS.iter().zip(&counts).collect();
    eprintln!(
        "{} devices, {threads} threads, {seconds} s: {done:?}",
        places.len()
    );
    eprintln!("memory taken: {before:?} before, {after:?} after");
    assert!(
        counts.iter().all(|count| count.load(Ordering::Relaxed) > 0),
        "{done:?}"
    );
    for (before, after) in before.iter().zip(&after) {
        assert!(
            after.saturating_sub(*before) < 64 << 20,
            "{before} bytes were taken before, {after} after"
        );
    }
}
