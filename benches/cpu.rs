//! The CPU device, compared with the machine's memory copy; see benches/README.md.
#![allow(missing_docs)]

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use dml_cuda::{BufferBinding, BufferTensorDesc, Device, ScalarUnion, TensorDataType as T};
use dml_cuda_testing::{compile, fill, reversal};

const BYTES: u32 = 64 << 20;

fn cpu(c: &mut Criterion) {
    let mut group = c.benchmark_group("cpu");
    group.throughput(Throughput::Bytes(BYTES.into())).sample_size(10);
    let (from, mut to) = (vec![1u8; BYTES as usize], vec![2u8; BYTES as usize]);
    group.bench_function("memory copy", |b| b.iter(|| to.copy_from_slice(std::hint::black_box(&from))));
    drop((from, to));

    let device = Device::cpu();
    let stream = device.create_stream().expect("the CPU has streams");
    let data_types = [T::UInt8, T::Float16, T::Float32, T::Int64];
    for data_type in data_types {
        let count = BYTES / (data_type.size_in_bits() / 8);
        let (start, delta) = match data_type {
            T::Float32 => (ScalarUnion::Float32(0.0), ScalarUnion::Float32(0.1)),
            T::Float16 => (ScalarUnion::UInt16(0x3C01), ScalarUnion::UInt16(0x1401)),
            _ => (ScalarUnion::UInt64(7), ScalarUnion::UInt64(0x0123_4567_89AB_CDEF)),
        };
        let desc = fill(data_type, &[count], start, delta);
        let output = device.create_buffer(BYTES.into()).expect("enough memory");
        let table = compile(&device, &desc.into()).bind(&[], &output).expect("right");
        group.bench_function(format!("fill {data_type}"), |b| {
            b.iter(|| table.dispatch(&stream).expect("nothing can fail"))
        });
    }
    for data_type in data_types {
        let count = BYTES / (data_type.size_in_bits() / 8);
        // Sizes before the axis, of the axis, and behind it; and whether every element behind it has its own length.
        let shapes = [
            ("inner", [count / 8192, 8192, 1], true),
            ("block", [16, count / 16 / 1024, 1024], false),
            ("lanes", [count / 512 / 4096, 512, 4096], true),
            ("pairs", [count / 2, 2, 1], true),
            ("pairs side by side", [count / 2 / 2, 2, 2], true),
            ("few lanes", [count / 512 / 2, 512, 2], true),
            ("small blocks", [count / 512 / 2, 512, 2], false),
        ];
        for (name, sizes, each) in shapes {
            let behind = if each { sizes[2] } else { 1 };
            let mut desc = reversal(data_type, &sizes, 1);
            desc.sequence_lengths_tensor =
                BufferTensorDesc::strided(T::UInt32, &[sizes[0], 1, sizes[2]], &[behind, 0, u32::from(each)]);
            let lengths: Vec<u32> =
                (0..sizes[0] * behind).map(|n| (n.wrapping_mul(2_654_435_761) >> 7) % (sizes[1] + 1)).collect();
            let operator = compile(&device, &desc.into());
            let buffer = || device.create_buffer(BYTES.into()).expect("enough memory");
            let (input, output) = (buffer(), buffer());
            let lengths = device.create_buffer_from(&lengths).expect("enough memory");
            for (mode, target) in [("copying", &output), ("in place", &input)] {
                let inputs = [BufferBinding::whole(&input), BufferBinding::whole(&lengths)];
                let table = operator.bind(&inputs, target).expect("right");
                group.bench_function(format!("{name} {data_type} {mode}"), |b| {
                    b.iter(|| table.dispatch(&stream).expect("nothing can fail"))
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, cpu);
criterion_main!(benches);
