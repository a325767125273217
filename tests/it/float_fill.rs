//! Compares float fills with a model that rounds once: every rounding, special values, denormals, overflow,
//! cancellation, and indices up to 2³² − 2.

use dml_cuda::{BufferBinding, Device, FeatureLevel, OperatorDesc, ScalarUnion, TensorDataType};
use dml_cuda_testing::{self, assert_same, compile, devices, exact, fill, oracle, Random};

fn desc(data_type: TensorDataType, count: u32, start: u32, delta: u32) -> OperatorDesc {
    dml_cuda_testing::fill(
        data_type,
        &[count],
        ScalarUnion::UInt32(start),
        ScalarUnion::UInt32(delta),
    )
    .into()
}

/// Queues fills of one size into one buffer, reads it once, and compares each fill with the model.
fn check(device: &Device, fills: &[OperatorDesc]) {
    let size = fills[0].output_tensor().total_tensor_size_in_bytes;
    let buffer = device
        .create_buffer(fills.len() as u64 * size)
        .expect("megabytes");
    let stream = device.create_stream().expect("a stream");
    for (n, desc) in fills.iter().enumerate() {
        let output = BufferBinding::range(&buffer, n as u64 * size, size);
        compile(device, desc)
            .bind(&[], &output)
            .expect("right")
            .dispatch(&stream)
            .expect("dispatched");
    }
    stream.synchronize().expect("done");
    let found: Vec<u8> = buffer.to_vec().expect("bytes are whole");
    for (desc, found) in fills.iter().zip(found.chunks(size as usize)) {
        assert_same(device, desc, found, &oracle::expected(desc, &[], false));
    }
}

/// Zero, denormals, the least normals, around one and 2²⁴, the largest, infinity, NaNs; then 0.1, 123.456 and 1e-7.
const EDGES: [u32; 19] = [
    0, 1, 0x400001, 0x7FFFFF, 0x800000, 0x800001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x4B800000,
    0x4B800001, 0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x3DCCCCCD, 0x42F6E979,
    0x33D6BF95,
];

#[test]
fn float32_is_the_contracts_fma_for_all_pairs_of_edges_and_random_scalars() {
    const SIGN: u32 = 1 << 31;
    let edges = || EDGES.into_iter().flat_map(|edge| [edge, edge | SIGN]);
    let mut pairs: Vec<(u32, u32)> = edges()
        .flat_map(|start| edges().map(move |delta| (start, delta)))
        .collect();
    let mut random = Random(32);
    for _ in 0..500 {
        let start = random.next() as u32;
        // Any two floats; two that nearly cancel at some index; two of similar magnitude.
        let near = (start ^ SIGN).wrapping_sub((random.below(25) as u32) << 23);
        let similar = start.wrapping_add(random.below(1 << 25) as u32);
        pairs.extend([random.next() as u32, near, similar].map(|delta| (start, delta)));
    }
    let fills: Vec<OperatorDesc> = pairs
        .into_iter()
        .map(|(start, delta)| desc(TensorDataType::Float32, 1000, start, delta))
        .collect();
    for device in devices("float32_is_the_contracts_fma_for_all_pairs_of_edges_and_random_scalars")
    {
        check(&device, &fills);
    }
}

/// The index is exact up to 2²⁴ and rounded above: windows of one long sequence.
#[test]
fn float32_indices_are_rounded_above_two_to_the_24() {
    for device in devices("float32_indices_are_rounded_above_two_to_the_24") {
        // Every machine has memory for 2²⁴ elements; only a GPU has it for 2³² − 1, which is 16 GiB.
        let count = if device.ordinal().is_some() {
            u32::MAX
        } else {
            (1 << 24) + 4096
        };
        let output = device
            .create_buffer(u64::from(count) * 4)
            .expect("enough memory");
        let stream = device.create_stream().expect("a stream");
        let mut random = Random(24);
        for (start, delta) in [
            (0x3F80_0000, 0x3F80_0000),
            (0xCB7F_FFFF, 0x3F80_0001),
            (0x0000_0001, 0x0000_0001),
            (0x7F00_0000, 0xF480_0000),
        ] {
            let operator = compile(&device, &desc(TensorDataType::Float32, count, start, delta));
            operator
                .bind(&[], &output)
                .expect("right")
                .dispatch(&stream)
                .expect("dispatched");
            stream.synchronize().expect("done");
            let last = u64::from(count) - 1024;
            let edges = [0, (1 << 24) - 512, 1 << 24, (1 << 25) - 3, 1 << 31, last];
            let anywhere: Vec<u64> = (0..64).map(|_| random.below(last)).collect();
            for first in edges
                .into_iter()
                .chain(anywhere)
                .filter(|&first| first <= last)
            {
                let mut window = [0u32; 1024];
                output
                    .read(first * 4, bytemuck::cast_slice_mut(&mut window))
                    .expect("in range");
                let required =
                    std::array::from_fn(|k| exact::fill_f32(first as u32 + k as u32, start, delta));
                assert_eq!(
                    window, required,
                    "{device}: from {first} on, {delta:#x} and {start:#x}"
                );
            }
        }
    }
}

/// Every FLOAT16 as start, with deltas of every magnitude: this covers every rounding to FLOAT16.
#[test]
fn float16_is_right_for_every_start() {
    for device in devices("float16_is_right_for_every_start") {
        for delta in [
            0, 0x0001, 0x8001, 0x03FF, 0x1400, 0x2C01, 0x3C00, 0xBC01, 0x4D55, 0x7BFF, 0x7C00,
            0x7E00,
        ] {
            let starts = 0..=u32::from(u16::MAX);
            let fills: Vec<OperatorDesc> = starts
                .map(|start| desc(TensorDataType::Float16, 32, start, delta))
                .collect();
            check(&device, &fills);
        }
    }
}

/// Tests the model itself, with numbers computed by hand and with the processor's own arithmetic.
#[test]
fn the_model_of_floats_is_right_where_the_answer_is_known() {
    let fill = |i, start: f32, delta: f32| {
        f32::from_bits(exact::fill_f32(i, start.to_bits(), delta.to_bits()))
    };
    assert_eq!(fill(3, 3.0, 2.0), 9.0);
    assert_eq!(fill((1 << 24) + 1, 0.0, 1.0), 16_777_216.0); // ties to even
    assert_eq!(fill((1 << 24) + 3, 0.0, 1.0), 16_777_220.0);
    assert_eq!(exact::fill_f32(1, 1, 1), 2); // denormals are not flushed
    assert_eq!(fill(2, 0.0, f32::MAX), f32::INFINITY); // overflow
                                                       // 3·0x3F800003 is a tie between two floats. A start that FLOAT64
                                                       // cannot add to it breaks the tie.
    for (start, required) in [
        (0, 0x4040_0004),
        (1, 0x4040_0005),
        (0x8000_0001, 0x4040_0004),
    ] {
        assert_eq!(exact::fill_f32(3, start, 0x3F80_0003), required);
    }
    assert_eq!(exact::fill_f16(1, 0x7BFF, 0x4C00), 0x7C00); // 65504 + 16 ties to infinity
    assert_eq!(exact::fill_f16(1, 0x7BFF, 0x4BFF), 0x7BFF); // a little less does not
    let mut random = Random(1);
    for _ in 0..2_000_000 {
        let (start, delta) = (random.next() as u32, random.next() as u32);
        let i = (random.next() as u32) >> random.below(32);
        let (index, delta_value, start_value) =
            (i as f32, f32::from_bits(delta), f32::from_bits(start));
        // MinGW's function rounds twice. `mul_add` calls it if the compiler may not use the instruction.
        let required = match cfg!(all(windows, target_env = "gnu")) {
            true => libm::fmaf(index, delta_value, start_value),
            false => index.mul_add(delta_value, start_value),
        };
        let found = f32::from_bits(exact::fill_f32(i, start, delta));
        let same = found.to_bits() == required.to_bits() || (found.is_nan() && required.is_nan());
        assert!(
            same,
            "{i} · {delta:#x} + {start:#x} is {found}, but must be {required}"
        );
    }
}

#[test]
fn float64_sequences_are_rounded_once() {
    let bits = |value: f64| value.to_bits();
    // Exact and rounded once: 3·0.1 − 0.3 is 2⁻⁵⁵. Two roundings would give 2⁻⁵⁴.
    let cases: &[(f64, f64, &[u64])] = &[
        (
            0.0,
            0.1,
            &[
                bits(0.0),
                bits(0.1),
                bits(0.2),
                bits(0.30000000000000004),
                bits(0.4),
            ],
        ),
        (
            -0.3,
            0.1,
            &[
                bits(-0.3),
                bits(-0.19999999999999998),
                bits(-0.09999999999999998),
                0x3C80_0000_0000_0000,
            ],
        ),
        (
            1e200,
            f64::MAX,
            &[bits(1e200), bits(f64::MAX), bits(f64::INFINITY)],
        ),
        (
            9007199254740992.0,
            1.0,
            &[
                bits(9007199254740992.0),
                bits(9007199254740992.0),
                bits(9007199254740994.0),
            ],
        ),
        (5e-324, 5e-324, &[1, 2, 3]),
    ];
    for device in devices("float64_sequences_are_rounded_once") {
        let stream = device.create_stream().expect("a stream");
        for (start, delta, required) in cases {
            let scalars = [*start, *delta].map(ScalarUnion::Float64);
            let desc = fill(
                TensorDataType::Float64,
                &[required.len() as u32],
                scalars[0],
                scalars[1],
            );
            assert!(
                device.create_operator(desc.clone()).is_err(),
                "DirectML fills no FLOAT64"
            );
            let device = device.clone().with_feature_level(FeatureLevel::Extended);
            let operator = device
                .compile_operator(&device.create_operator(desc).expect("right"))
                .expect("compiled");
            let output = device
                .create_buffer(required.len() as u64 * 8)
                .expect("small");
            operator
                .bind(&[], &output)
                .expect("right")
                .dispatch(&stream)
                .expect("queued");
            assert_eq!(
                output.to_vec::<u64>().expect("read"),
                *required,
                "{device}: {start} + i·{delta}"
            );
        }
    }
}
