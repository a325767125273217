//! Timing on the device: medians of event times over several launches each, on rotating buffers.

use std::sync::Arc;

use cudarc::driver::{result, sys, CudaContext};
use dml_cuda::{BufferTensorDesc, CompiledOperator, Device, OperatorDesc};

use crate::cases::Case;

/// Times taken of a case; the median is reported.
const SAMPLES: usize = 9;

/// Bytes that a block of threads of the plain swap moves.
const SWAPPED: u64 = 1 << 14;

/// Launches that move fewer bytes are timed in a graph: queued one by one they would wait for the host, which takes 3
/// microseconds each.
const IN_GRAPH: u64 = 1 << 25;

/// Fewer bytes are no work to compare with.
const SMALL: u64 = 1 << 20;

pub struct Gpu {
    context: Arc<CudaContext>,
    device: Device,
    stream: sys::CUstream,
    /// Whether work of any size is timed in a graph.
    graphs: bool,
    /// Random bytes that inputs are made of.
    random: Memory,
    store: sys::CUfunction,
    swap: sys::CUfunction,
    empty: sys::CUfunction,
    chase: sys::CUfunction,
}

/// Device memory, freed when dropped.
struct Memory {
    address: u64,
    bytes: u64,
}

impl Memory {
    fn new(bytes: u64) -> Self {
        // SAFETY: `Gpu::new` has made the context current on this, the only thread.
        let address = unsafe { result::malloc_sync(bytes as usize) }.expect("enough device memory");
        Self { address, bytes }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`, freed here only; cuMemFree waits for the device.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

/// One 16-byte store a thread, as plain as a kernel can be; two halves of memory that change places, 16 bytes of each at a
/// time and twice a thread; a kernel that does nothing; one that loads where to load.
const PLAIN_PTX: &std::ffi::CStr = c"
.version 6.3
.target sm_75
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 value) .maxntid 256, 1, 1
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [out];
    ld.param.u32 %r0, [value];
    cvta.to.global.u64 %rd0, %rd0;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r1, %r1, 256, %r2;
    mul.wide.u32 %rd1, %r1, 16;
    add.u64 %rd0, %rd0, %rd1;
    st.global.v4.u32 [%rd0], {%r0, %r0, %r0, %r0};
    ret;
}
.visible .entry swap(.param .u64 out, .param .u64 half) .maxntid 256, 1, 1
{
    .reg .b32 %r<18>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [out];
    ld.param.u64 %rd1, [half];
    cvta.to.global.u64 %rd0, %rd0;
    mov.u32 %r16, %ctaid.x;
    mov.u32 %r17, %tid.x;
    mad.lo.u32 %r16, %r16, 512, %r17;
    mul.wide.u32 %rd2, %r16, 16;
    add.u64 %rd0, %rd0, %rd2;
    add.u64 %rd1, %rd0, %rd1;
    ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%rd0];
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1];
    ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%rd0 + 4096];
    ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd1 + 4096];
    st.global.v4.u32 [%rd0], {%r4, %r5, %r6, %r7};
    st.global.v4.u32 [%rd1], {%r0, %r1, %r2, %r3};
    st.global.v4.u32 [%rd0 + 4096], {%r12, %r13, %r14, %r15};
    st.global.v4.u32 [%rd1 + 4096], {%r8, %r9, %r10, %r11};
    ret;
}
.visible .entry empty(.param .u64 out, .param .u32 value) { ret; }
.visible .entry chase(.param .u64 out, .param .u32 value) .maxntid 256, 1, 1
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [out];
    cvta.to.global.u64 %rd0, %rd0;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd1, %r1, 16;
    add.u64 %rd1, %rd0, %rd1;
    ld.global.u32 %r2, [%rd1];
    and.b32 %r2, %r2, 255;
    mul.wide.u32 %rd2, %r2, 16;
    add.u64 %rd2, %rd0, %rd2;
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2 + 4096];
    st.global.v4.u32 [%rd1 + 8192], {%r4, %r5, %r6, %r7};
    ret;
}
";

impl Gpu {
    pub fn new(graphs: bool) -> Self {
        let device = Device::cuda(0).expect("a GPU");
        let context = CudaContext::new(0).expect("a GPU");
        context.bind_to_thread().expect("the context is live");
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking).expect("streams are to be had");
        // SAFETY: the PTX ends in a NUL; the module is never unloaded.
        let [store, swap, empty, chase] = unsafe {
            let module = result::module::load_data(PLAIN_PTX.as_ptr().cast()).expect("the PTX is right");
            [c"store", c"swap", c"empty", c"chase"]
                .map(|name| result::module::get_function(module, name.to_owned()).expect("the entry is there"))
        };
        let random = Memory::new(1 << 24);
        let mut state = 7u64;
        let words: Vec<u64> = (0..random.bytes / 8)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                state ^ (state >> 29)
            })
            .collect();
        // SAFETY: the slice is as large as the allocation.
        unsafe { result::memcpy_htod_sync(random.address, &words) }.expect("copied");
        result::ctx::synchronize().expect("copied");
        Self { context, device, stream, graphs, random, store, swap, empty, chase }
    }

    pub fn description(&self) -> String {
        let properties = self.device.cuda_properties().expect("a GPU");
        let driver = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        let driver = driver.split_whitespace().find(|word| word.contains('.')).unwrap_or("?").to_owned();
        format!(
            "{}, {} SMs, L2 {} MiB, driver {driver} (CUDA {}.{}), commit {}",
            self.device.name(),
            properties.multiprocessors,
            properties.l2_cache >> 20,
            properties.driver_version / 1000,
            properties.driver_version % 1000 / 10,
            option_env!("DML_CUDA_COMMIT").unwrap_or("unknown")
        )
    }

    /// The clocks that the driver reports now, if its tool is there to ask.
    pub fn clocks() -> String {
        let query = ["--query-gpu=clocks.sm,clocks.mem,clocks.max.sm", "--format=csv,noheader", "-i", "0"];
        let output = std::process::Command::new("nvidia-smi").args(query).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
        if text.is_empty() {
            "clocks unknown".to_owned()
        } else {
            format!("clocks now (SM, memory, highest SM): {text}")
        }
    }

    fn memory(&self, bytes: u64) -> Memory {
        let memory = Memory::new(bytes);
        let mut at = 0;
        while at < bytes {
            let part = self.random.bytes.min(bytes - at);
            // SAFETY: both ranges lie inside their allocations.
            unsafe { result::memcpy_dtod_sync(memory.address + at, self.random.address, part as usize) }
                .expect("copied");
            at += part;
        }
        result::ctx::synchronize().expect("copied");
        memory
    }

    /// The median microseconds of one `launch`, each on the next set of buffers. Launches of little work, which
    /// would wait for the host, are replayed from a graph.
    fn time(&self, bytes: u64, launch: &mut dyn FnMut(usize)) -> f64 {
        // As many launches a sample as fill a millisecond or two.
        let launches = (8_000_000_000 / bytes.max(1)).clamp(2, 200) as usize;
        if bytes < IN_GRAPH {
            return self.time_in_graph(launches, launch);
        }
        let queued = self.time_queued(launches, launch);
        // The driver's copies of 512 MiB and more are slower as nodes of a graph, so that the faster way counts.
        if self.graphs {
            queued.min(self.time_in_graph(launches, launch))
        } else {
            queued
        }
    }

    /// The median microseconds of one `launch` of so many queued one behind the other.
    fn time_queued(&self, launches: usize, launch: &mut dyn FnMut(usize)) -> f64 {
        let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).expect("events are to be had");
        let (start, end) = (event(), event());
        let mut n = 0;
        let mut run = |launches: usize| {
            for _ in 0..launches {
                launch(n);
                n += 1;
            }
        };
        run(launches);
        let mut samples: Vec<f64> = (0..SAMPLES)
            .map(|_| {
                // SAFETY: events and stream are live and of one context.
                unsafe {
                    result::event::record(start, self.stream).expect("recorded");
                    run(launches);
                    result::event::record(end, self.stream).expect("recorded");
                    result::event::synchronize(end).expect("no kernel failed");
                    f64::from(result::event::elapsed(start, end).expect("timed")) * 1e3 / launches as f64
                }
            })
            .collect();
        samples.sort_by(f64::total_cmp);
        // SAFETY: created above, used here only.
        unsafe { (result::event::destroy(start).expect("destroyed"), result::event::destroy(end).expect("destroyed")) };
        samples[SAMPLES / 2]
    }

    /// The same, replayed from a graph of so many.
    fn time_in_graph(&self, launches: usize, launch: &mut dyn FnMut(usize)) -> f64 {
        // SAFETY: the stream is live, and between begin and end only launches are queued on it.
        let graph = unsafe {
            result::stream::begin_capture(self.stream, sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
                .expect("idle");
            (0..launches).for_each(&mut *launch);
            let graph = result::stream::end_capture(self.stream).expect("captured");
            result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)).expect("instantiated")
        };
        let replays = self.time_queued(20, &mut |_| {
            // SAFETY: graph and stream are live, and so is the memory of the captured launches.
            unsafe { result::graph::launch(graph, self.stream) }.expect("queued");
        });
        // SAFETY: `time` has waited for the last replay.
        unsafe { result::graph::exec_destroy(graph) }.expect("destroyed");
        replays / launches as f64
    }

    /// One block of threads that does what small work must at least: return at once; store; load a length, load what
    /// it says, store.
    pub fn time_small(&self) -> [f64; 3] {
        let scratch = Memory::new(1 << 16);
        [self.empty, self.store, self.chase].map(|function| {
            let (mut out, mut value) = (scratch.address, 0u32);
            self.time_in_graph(200, &mut |_| {
                let mut arguments = [std::ptr::from_mut(&mut out).cast(), std::ptr::from_mut(&mut value).cast()];
                // SAFETY: the kernels take an address and a word, and stay in the first 16 KiB behind the address.
                unsafe { result::launch_kernel(function, (1, 1, 1), (256, 1, 1), 0, self.stream, &mut arguments) }
                    .expect("queued");
            })
        })
    }

    pub fn time_memset(&self, bytes: u64) -> f64 {
        self.time_memset_of(&[Memory::new(bytes)], bytes)
    }

    fn time_memset_of(&self, memory: &[Memory], bytes: u64) -> f64 {
        self.time(bytes, &mut |n| {
            let address = memory[n % memory.len()].address;
            // SAFETY: the range lies in the allocation.
            unsafe { sys::cuMemsetD32Async(address, n as u32, bytes as usize / 4, self.stream) }
                .result()
                .expect("queued");
        })
    }

    pub fn time_store(&self, bytes: u64) -> f64 {
        self.time_store_of(&[Memory::new(bytes)], bytes)
    }

    fn time_store_of(&self, memory: &[Memory], bytes: u64) -> f64 {
        self.time(bytes, &mut |n| {
            let (mut out, mut value) = (memory[n % memory.len()].address, n as u32);
            let mut arguments = [std::ptr::from_mut(&mut out).cast(), std::ptr::from_mut(&mut value).cast()];
            let blocks = (bytes / 16 / 256).max(1) as u32;
            // SAFETY: the kernel takes an address and a word, and writes 16 bytes a thread, inside the allocation.
            unsafe { result::launch_kernel(self.store, (blocks, 1, 1), (256, 1, 1), 0, self.stream, &mut arguments) }
                .expect("queued");
        })
    }

    pub fn time_copy(&self, bytes: u64) -> f64 {
        self.time_copy_of(&[self.memory(bytes)], &[Memory::new(bytes)], bytes)
    }

    fn time_copy_of(&self, from: &[Memory], to: &[Memory], bytes: u64) -> f64 {
        self.time(2 * bytes, &mut |n| {
            let (from, to) = (from[n % from.len()].address, to[n % to.len()].address);
            // SAFETY: the ranges lie in the allocations.
            unsafe { result::memcpy_dtod_async(to, from, bytes as usize, self.stream) }.expect("queued");
        })
    }

    fn time_swap_of(&self, memory: &[Memory], bytes: u64) -> f64 {
        self.time(2 * bytes, &mut |n| {
            let (mut out, mut half) = (memory[n % memory.len()].address, bytes / 2);
            let mut arguments = [std::ptr::from_mut(&mut out).cast(), std::ptr::from_mut(&mut half).cast()];
            let blocks = (bytes / SWAPPED) as u32;
            // SAFETY: the kernel takes an address and a distance; blocks of threads swap 8 KiB each of two halves inside the
            // allocation.
            unsafe { result::launch_kernel(self.swap, (blocks, 1, 1), (256, 1, 1), 0, self.stream, &mut arguments) }
                .expect("queued");
        })
    }

    fn operator(&self, case: &Case) -> CompiledOperator {
        let operator =
            self.device.create_operator(case.desc.clone()).unwrap_or_else(|errors| panic!("{}: {errors}", case.name));
        self.device.compile_operator(&operator).expect("compiled")
    }

    fn lengths(&self, lengths: &[u32]) -> Memory {
        let memory = Memory::new((lengths.len() as u64 * 4).max(4));
        // SAFETY: the allocation is as large as the slice.
        unsafe { result::memcpy_htod_sync(memory.address, lengths) }.expect("copied");
        result::ctx::synchronize().expect("copied");
        memory
    }

    /// The median microseconds of one dispatch, and of the plainest work that moves as many bytes of the same memory: a
    /// memset or a kernel of 16-byte stores, the faster; a device copy; a swap in place. None where the case moves too few
    /// bytes to say. Cases that fit the L2 are timed in it, as their users have them.
    pub fn time_case(&self, case: &Case, lengths: &[u32], floor_bytes: u64) -> (f64, Option<f64>) {
        self.context.bind_to_thread().expect("the context is live");
        let operator = self.operator(case);
        let total = case.output().total_tensor_size_in_bytes;
        let sets = if total < 1 << 29 && total > 1 << 23 { 2 } else { 1 };
        let big = |random: bool| -> Vec<Memory> {
            let bytes = total + 256;
            (0..sets).map(|_| if random { self.memory(bytes) } else { Memory::new(bytes) }).collect()
        };
        let length_memory = self.lengths(lengths);
        let inputs = if case.is_fill() { Vec::new() } else { big(true) };
        let outputs = if case.in_place { Vec::new() } else { big(false) };
        // Whole blocks of threads: a few bytes less than the case moves.
        let bytes = if case.is_fill() { floor_bytes } else { (floor_bytes / 2).min(total) } / SWAPPED * SWAPPED;
        let plain = (bytes >= SMALL).then(|| {
            if case.is_fill() {
                self.time_store_of(&outputs, bytes).min(self.time_memset_of(&outputs, bytes))
            } else if case.in_place {
                self.time_swap_of(&inputs, bytes)
            } else {
                self.time_copy_of(&inputs, &outputs, bytes)
            }
        });
        let time = self.time(floor_bytes, &mut |n| {
            let at = |memory: &[Memory]| memory[n % sets].address + case.misaligned;
            let output = if case.in_place { at(&inputs) } else { at(&outputs) };
            let pointers: &[u64] = if case.is_fill() { &[] } else { &[at(&inputs), length_memory.address] };
            // SAFETY: the memory is as large as the tensors and lives until `time` has waited.
            unsafe { operator.dispatch_raw(pointers, output, self.stream.cast()) }.expect("queued");
        });
        (time, plain)
    }

    /// Compares windows of the output with what the elements must be.
    pub fn check_case(&self, case: &Case, lengths: &[u32]) {
        let operator = self.operator(case);
        let desc = case.output();
        let (total, width) = (desc.total_tensor_size_in_bytes, u64::from(desc.data_type.size_in_bits() / 8));
        let length_memory = self.lengths(lengths);
        let input = self.memory(total + 256);
        let output = Memory::new(total + 256);
        let pointers: &[u64] =
            if case.is_fill() { &[] } else { &[input.address + case.misaligned, length_memory.address] };
        let read = |memory: &Memory, at: u64, bytes: u64| {
            let mut window = vec![0u8; bytes as usize];
            result::ctx::synchronize().expect("no kernel failed");
            // SAFETY: windows lie inside the tensors.
            unsafe { result::memcpy_dtoh_sync(&mut window, memory.address + case.misaligned + at) }.expect("read");
            window
        };
        let OperatorDesc::ReverseSubsequences(reverse) = &case.desc else {
            // SAFETY: as in `time_case`.
            unsafe { operator.dispatch_raw(pointers, output.address + case.misaligned, self.stream.cast()) }
                .expect("queued");
            return self.check_fill(case, &|at, bytes| read(&output, at, bytes));
        };
        // Coordinates at the ends, in the middle, and anywhere.
        let sizes: Vec<u64> = reverse.input_tensor.sizes.iter().map(|&size| u64::from(size)).collect();
        let axis = reverse.axis as usize;
        let length_strides = reverse.sequence_lengths_tensor.strides.as_deref().unwrap_or_default();
        let mut expected = Vec::new();
        for n in 0..64u64 {
            let coordinate = |d: usize| match n {
                0 => 0,
                1 => sizes[d] - 1,
                2 => sizes[d] / 2,
                _ => n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(11 * d as u32) % sizes[d],
            };
            let mut coordinates: Vec<u64> = (0..sizes.len()).map(coordinate).collect();
            let place = |tensor: &BufferTensorDesc, coordinates: &[u64]| {
                let element = match &tensor.strides {
                    Some(strides) => coordinates.iter().zip(strides).map(|(c, &stride)| c * u64::from(stride)).sum(),
                    None => coordinates.iter().zip(&sizes).fold(0, |at, (c, size)| at * size + c),
                };
                element * width
            };
            let at = coordinates.iter().zip(length_strides).enumerate().filter(|(d, _)| *d != axis);
            let at: u64 = at.map(|(_, (c, &stride))| c * u64::from(stride)).sum();
            let length = u64::from(lengths[at as usize]).min(sizes[axis]);
            let to = place(&reverse.output_tensor, &coordinates);
            if coordinates[axis] < length {
                coordinates[axis] = length - 1 - coordinates[axis];
            }
            expected.push((to, read(&input, place(&reverse.input_tensor, &coordinates), width)));
        }
        let target = if case.in_place { &input } else { &output };
        // SAFETY: as in `time_case`.
        unsafe { operator.dispatch_raw(pointers, target.address + case.misaligned, self.stream.cast()) }
            .expect("queued");
        for (at, required) in expected {
            assert_eq!(
                read(target, at, width),
                required,
                "{} {} {}: byte {at}",
                case.name,
                case.data_type(),
                case.mode()
            );
        }
    }

    fn check_fill(&self, case: &Case, read: &dyn Fn(u64, u64) -> Vec<u8>) {
        let OperatorDesc::FillValueSequence(fill) = &case.desc else { return };
        let desc = case.output();
        if desc.data_type.is_float() {
            return; // held by the tests; the integers show that every index is where it belongs
        }
        let width = u64::from(desc.data_type.size_in_bits() / 8);
        let (start, delta) = (fill.value_start.to_bits(), fill.value_delta.to_bits());
        let count: u64 = desc.sizes.iter().map(|&size| u64::from(size)).product();
        for i in [0, 1, count / 3, count / 2 + 1, count - 1] {
            let (mut rest, mut at, mut packed) = (i, 0u64, 1u64);
            for d in (0..desc.sizes.len()).rev() {
                let coordinate = rest % u64::from(desc.sizes[d]);
                rest /= u64::from(desc.sizes[d]);
                at += coordinate * desc.strides.as_ref().map_or(packed, |strides| u64::from(strides[d]));
                packed *= u64::from(desc.sizes[d]);
            }
            let required = start.wrapping_add(i.wrapping_mul(delta)).to_le_bytes();
            assert_eq!(
                read(at * width, width),
                required[..width as usize],
                "{} {}: element {i}",
                case.name,
                case.data_type()
            );
        }
    }
}
