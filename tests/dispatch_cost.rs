//! A dispatch on a GPU allocates no host memory; one on the CPU allocates little.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use dml_cuda::{BufferBinding, Device, ScalarUnion, TensorDataType as T};
use dml_cuda_testing::{compile, cuda, fill, lanes, reversal};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts calls and bytes per thread.
struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        BYTES.with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: GlobalAlloc's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: GlobalAlloc's promises are those of the system's allocator, which allocated it.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn a_dispatch_allocates_nothing() {
    assert_eq!(
        allocations(|| drop(vec![0u8; 3])),
        1,
        "allocations are counted"
    );
    let Some(device) = cuda("a_dispatch_allocates_nothing") else {
        return;
    };
    let fill = fill(
        T::Float32,
        &[1024],
        ScalarUnion::Float32(0.0),
        ScalarUnion::Float32(1.0),
    );
    let fill = compile(&device, &fill.into());
    let reversal = compile(&device, &lanes(T::Float32, 4, 256).into());
    let buffer = |bytes| BufferBinding::whole(&device.create_buffer(bytes).expect("small"));
    let (input, lengths, output) = (buffer(4096), buffer(16), buffer(4096));
    let tables = [
        fill.bind(&[], &output).expect("right"),
        reversal
            .bind(&[input.clone(), lengths.clone()], &output)
            .expect("right"),
        reversal
            .bind(&[input.clone(), lengths], &input)
            .expect("right"),
    ];
    let stream = device.create_stream().expect("a stream");
    for table in &tables {
        // The driver may allocate for the first launch of a kernel.
        table.dispatch(&stream).expect("queued");
        let count = allocations(|| (0..100).for_each(|_| table.dispatch(&stream).expect("queued")));
        assert_eq!(count, 0, "in 100 dispatches");
    }
    stream.synchronize().expect("no kernel failed");
}

/// Counts without a GPU, with a mock of the driver.
#[test]
#[cfg(unix)]
fn a_dispatch_allocates_nothing_with_the_double() {
    let Some(folder) = dml_cuda_testing::driver_double::driver(None) else {
        return;
    };
    let mut this = std::process::Command::new(std::env::current_exe().expect("this program"));
    this.args(["--exact", "a_dispatch_allocates_nothing"])
        .env("REQUIRE_CUDA", "1");
    let output = this
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn a_dispatch_on_the_cpu_takes_little_memory() {
    let before = BYTES.with(Cell::get);
    drop(vec![0u8; 12345]);
    assert_eq!(BYTES.with(Cell::get) - before, 12345, "bytes are counted");
    let device = Device::cpu();
    let stream = device.create_stream().expect("the CPU has streams");
    // Axis 1. Short lanes have more bytes of lengths than of elements. Long interleaved lanes are reversed in a tile.
    for (sizes, most) in [
        ([1 << 20, 2, 2], 1 << 10),
        ([1 << 21, 2, 1], 1 << 10),
        ([64, 512, 100], 1 << 20),
        ([1, 16384, 100], 8 << 20),
        ([1, 1 << 20, 64], (64 << 20) + (1 << 10)),
        ([1, (1 << 20) + 1, 64], 1 << 10),
    ] {
        let desc = reversal(T::UInt8, &sizes, 1).into();
        let buffer = |bytes| {
            BufferBinding::whole(&device.create_buffer(bytes).expect("the system has that"))
        };
        let bytes = u64::from(sizes.iter().product::<u32>());
        let (input, lengths, output) = (
            buffer(bytes),
            buffer(u64::from(sizes[0] * sizes[2] * 4)),
            buffer(bytes),
        );
        let operator = compile(&device, &desc);
        for target in [&output, &input] {
            let table = operator
                .bind(&[input.clone(), lengths.clone()], target)
                .expect("right");
            let before = BYTES.with(Cell::get);
            table.dispatch(&stream).expect("bound");
            let taken = BYTES.with(Cell::get) - before;
            assert!(taken <= most, "{sizes:?}: {taken} bytes, of {most}");
        }
    }
}
