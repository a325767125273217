//! The library's costs on the host; see benches/README.md.
#![allow(unsafe_code, missing_docs)]

use std::hint::black_box;

use criterion::{criterion_group, criterion_main, BatchSize, Criterion};
use dml_cuda::lowering::{ForeignTensor, Lowered, LoweredReversal, ReversalArrays};
use dml_cuda::{
    Address, BufferBinding, CompileOptions, Device, OperatorDesc, ScalarUnion, TensorDataType,
};
use dml_cuda_testing::compile;

fn reverse() -> OperatorDesc {
    dml_cuda_testing::reversal(TensorDataType::Float16, &[2, 3, 4, 256], 2).into()
}

fn fill() -> OperatorDesc {
    let [start, delta] = [0.0, 1.0].map(ScalarUnion::Float32);
    dml_cuda_testing::fill(TensorDataType::Float32, &[1, 1, 1, 1024], start, delta).into()
}

fn create_and_compile(c: &mut Criterion) {
    for device in std::iter::once(Device::cpu()).chain(Device::cuda(0)) {
        for (operator, desc) in [
            ("fill", fill as fn() -> OperatorDesc),
            ("reversal", reverse),
        ] {
            c.bench_function(&format!("create and compile a {operator}, {device}"), |b| {
                b.iter(|| {
                    device.compile_operator(
                        &device.create_operator(black_box(desc())).expect("right"),
                    )
                })
            });
        }
        let packed = |sizes| ForeignTensor::packed(Address(0), sizes);
        c.bench_function(
            &format!("lower a reversal and find it compiled, {device}"),
            |b| {
                b.iter(|| {
                    let (input, lengths) =
                        black_box((packed(&[64, 512, 1024]), packed(&[64, 1, 1])));
                    let length_type = TensorDataType::UInt64;
                    let arrays = ReversalArrays {
                        input,
                        lengths,
                        output: input,
                        axis: 1,
                        element_size: 4,
                        length_type,
                    };
                    let lowered = LoweredReversal::new(&arrays).expect("right");
                    device
                        .compile_lowered(&Lowered::Reversal(lowered), CompileOptions::default())
                        .expect("compiled")
                })
            },
        );
    }
}

/// Compares a dispatch with a bare cuLaunchKernel of the same kind. Drains the queue before every 256 calls, which are
/// measured alone.
fn dispatch(c: &mut Criterion) {
    use cudarc::driver::{result, sys, CudaContext};
    let Ok(device) = Device::cuda(0) else {
        println!("SKIPPED: there is no GPU to dispatch to");
        return;
    };
    let stream = device.create_stream().expect("a stream");
    let raw: sys::CUstream = stream.raw().expect("a GPU's stream").0.cast();
    let context = CudaContext::new(0).expect("a GPU is there");
    context.bind_to_thread().expect("the context is live");
    let output = device.create_buffer(1 << 16).expect("small");
    let input = device.create_buffer(1 << 16).expect("small");
    let table = compile(&device, &fill()).bind(&[], &output).expect("right");
    let reversal = compile(&device, &reverse());
    let inputs = [
        BufferBinding::range(&input, 0, 1 << 15),
        BufferBinding::range(&input, 1 << 15, 1 << 15),
    ];
    let reversal = reversal.bind(&inputs, &output).expect("right");

    const EMPTY: &std::ffi::CStr =
        c".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry empty(.param .u64 a) { ret; }\n";
    // SAFETY: the PTX ends in a NUL; the device's context was made current on this thread.
    let empty = unsafe {
        let module = result::module::load_data(EMPTY.as_ptr().cast()).expect("the PTX is right");
        result::module::get_function(module, c"empty".to_owned()).expect("the entry is there")
    };
    let mut bare = || {
        let mut argument = 0u64;
        let mut arguments = [std::ptr::from_mut(&mut argument).cast()];
        // SAFETY: the kernel takes one word and touches nothing.
        unsafe { result::launch_kernel(empty, (1, 1, 1), (256, 1, 1), 0, raw, &mut arguments) }
            .expect("queued");
    };
    let mut time = |name: &str, call: &mut dyn FnMut()| {
        // SAFETY: the stream is live.
        let drain = || {
            unsafe { sys::cuStreamSynchronize(raw) }
                .result()
                .expect("no kernel failed")
        };
        c.bench_function(name, |b| {
            b.iter_batched(drain, |()| call(), BatchSize::NumIterations(256))
        });
    };
    time("cuLaunchKernel alone", &mut bare);
    time("dispatch a fill", &mut || {
        table.dispatch(&stream).expect("queued")
    });
    time("dispatch a reversal", &mut || {
        reversal.dispatch(&stream).expect("queued")
    });
}

criterion_group!(host, create_and_compile, dispatch);
criterion_main!(host);
