//! Compares float fills with exact integer arithmetic: every rounding, special values, denormals, overflow,
//! cancellation, and indices up to 2³² − 2.

use std::num::NonZeroU32;

use crate::common::{devices, exact, Random};
use dml_cuda::{
    BufferBinding, BufferTensorDesc, Device, FillValueSequenceDesc, OperatorDesc, ScalarUnion, Stream, TensorDataType,
};

fn desc(data_type: TensorDataType, sizes: &[u32], start: u32, delta: u32) -> OperatorDesc {
    FillValueSequenceDesc {
        output_tensor: BufferTensorDesc::packed(data_type, sizes),
        value_data_type: data_type,
        value_start: ScalarUnion::UInt32(start),
        value_delta: ScalarUnion::UInt32(delta),
    }
    .into()
}

fn same_f32(found: u32, required: u32) -> bool {
    found == required || (f32::from_bits(found).is_nan() && f32::from_bits(required).is_nan())
}

fn same_f16(found: u16, required: u16) -> bool {
    let nan = |bits| half::f16::from_bits(bits).is_nan();
    found == required || (nan(found) && nan(required))
}

/// Queues fills one after another into one buffer, and reads it once.
struct Batch {
    device: Device,
    stream: Stream,
    buffer: dml_cuda::Buffer,
    slot: u64,
}

impl Batch {
    fn new(device: &Device, slots: u64, slot: u64) -> Self {
        let stream = device.create_stream().expect("a stream");
        Self { device: device.clone(), stream, buffer: device.create_buffer(slots * slot).expect("megabytes"), slot }
    }

    fn fill(&self, n: u64, desc: &OperatorDesc) {
        let operator = crate::common::compile(&self.device, desc);
        let output = BufferBinding::range(&self.buffer, n * self.slot, self.slot);
        operator.bind(&[], &output).expect("right").dispatch(&self.stream).expect("dispatched");
    }

    fn read<T: bytemuck::Pod>(&self) -> Vec<T> {
        self.stream.synchronize().expect("done");
        self.buffer.to_vec().expect("whole elements")
    }
}

/// Scalars around rounding, range and special values.
const EDGES: [u32; 26] = [
    0x0000_0000,
    0x8000_0000, // zeros
    0x0000_0001,
    0x8000_0001,
    0x007F_FFFF,
    0x0040_0001, // denormals
    0x0080_0000,
    0x8080_0000,
    0x0080_0001, // the least normals
    0x3F80_0000,
    0xBF80_0000,
    0x3F80_0001,
    0x3F7F_FFFF, // around one
    0x4B80_0000,
    0xCB80_0000,
    0x4B80_0001, // around 2^24
    0x7F7F_FFFF,
    0xFF7F_FFFF,
    0x7F00_0000, // the largest
    0x7F80_0000,
    0xFF80_0000, // infinities
    0x7FC0_0000,
    0x7F80_0001, // NaNs, quiet and signalling
    0x3DCC_CCCD,
    0xC2F6_E979,
    0x33D6_BF95, // 0.1, −123.456, 1e-7
];

#[test]
fn float32_is_the_contracts_fma_for_all_pairs_of_edges_and_random_scalars() {
    for device in devices("float32_is_the_contracts_fma_for_all_pairs_of_edges_and_random_scalars") {
        let mut random = Random(32);
        let mut pairs: Vec<(u32, u32)> = EDGES.iter().flat_map(|&start| EDGES.map(|delta| (start, delta))).collect();
        for _ in 0..1500 {
            let start = random.next() as u32;
            // Any two floats; two that nearly cancel at some index; two of similar magnitude.
            let near = (start ^ 0x8000_0000).wrapping_sub((random.below(25) as u32) << 23);
            pairs.push((
                start,
                [random.next() as u32, near, start.wrapping_add(random.below(1 << 25) as u32)]
                    [random.below(3) as usize],
            ));
        }
        const COUNT: u32 = 1000;
        let batch = Batch::new(&device, pairs.len() as u64, u64::from(COUNT) * 4);
        for (n, &(start, delta)) in pairs.iter().enumerate() {
            batch.fill(n as u64, &desc(TensorDataType::Float32, &[COUNT], start, delta));
        }
        for (values, &(start, delta)) in batch.read::<u32>().chunks(COUNT as usize).zip(&pairs) {
            for (i, &found) in values.iter().enumerate() {
                let required = exact::fill_f32(i as u32, start, delta);
                assert!(
                    same_f32(found, required),
                    "{device}: {i} · {delta:#x} + {start:#x} is {found:#x}, must be {required:#x}"
                );
            }
        }
    }
}

/// The index is exact up to 2²⁴ and rounded above: windows of one long sequence.
#[test]
fn float32_indices_are_rounded_above_two_to_the_24() {
    for device in devices("float32_indices_are_rounded_above_two_to_the_24") {
        // Every machine has memory for 2²⁴ elements; only a GPU has it for 2³² − 1, which is 16 GiB.
        let count = if device.ordinal().is_some() { u32::MAX } else { (1 << 24) + 4096 };
        let output = device.create_buffer(u64::from(count) * 4).expect("enough memory");
        let stream = device.create_stream().expect("a stream");
        let mut random = Random(24);
        for (start, delta) in [
            (0x3F80_0000, 0x3F80_0000),
            (0xCB7F_FFFF, 0x3F80_0001),
            (0x0000_0001, 0x0000_0001),
            (0x7F00_0000, 0xF480_0000),
        ] {
            let operator = crate::common::compile(&device, &desc(TensorDataType::Float32, &[count], start, delta));
            operator.bind(&[], &(&output).into()).expect("right").dispatch(&stream).expect("dispatched");
            stream.synchronize().expect("done");
            let edges = [0, (1 << 24) - 512, 1 << 24, (1u64 << 25) - 3, 1 << 31, u64::from(count) - 1024];
            let anywhere: Vec<u64> = (0..64).map(|_| random.below(u64::from(count) - 1024)).collect();
            for first in edges.into_iter().chain(anywhere).filter(|first| first + 1024 <= u64::from(count)) {
                let mut window = [0u32; 1024];
                output.read(first * 4, bytemuck::cast_slice_mut(&mut window)).expect("in range");
                for (k, &found) in window.iter().enumerate() {
                    let i = first as u32 + k as u32;
                    let required = exact::fill_f32(i, start, delta);
                    assert!(
                        same_f32(found, required),
                        "{device}: {i} · {delta:#x} + {start:#x} is {found:#x}, must be {required:#x}"
                    );
                }
            }
        }
    }
}

/// Every FLOAT16 as start, with deltas of every magnitude: this covers every rounding to FLOAT16.
#[test]
fn float16_is_right_for_every_start() {
    const COUNT: u32 = 32;
    const DELTAS: [u16; 12] =
        [0x0000, 0x0001, 0x8001, 0x03FF, 0x1400, 0x2C01, 0x3C00, 0xBC01, 0x4D55, 0x7BFF, 0x7C00, 0x7E00];
    for device in devices("float16_is_right_for_every_start") {
        let batch = Batch::new(&device, 1 << 16, u64::from(COUNT) * 2);
        for delta in DELTAS {
            for start in 0..=u16::MAX {
                batch.fill(start.into(), &desc(TensorDataType::Float16, &[COUNT], start.into(), delta.into()));
            }
            for (start, values) in batch.read::<u16>().chunks(COUNT as usize).enumerate() {
                for (i, &found) in values.iter().enumerate() {
                    let required = exact::fill_f16(i as u32, start as u16, delta);
                    assert!(
                        same_f16(found, required),
                        "{device}: {i} · {delta:#x} + {start:#x} is {found:#x}, must be {required:#x}"
                    );
                }
            }
        }
    }
}

/// Tests the exact model itself, with numbers computed by hand and with the processor's own arithmetic.
#[test]
fn the_exact_model_is_right_where_the_answer_is_known() {
    assert_eq!(exact::fill_f32(3, 3f32.to_bits(), 2f32.to_bits()), 9f32.to_bits());
    assert_eq!(exact::fill_f32((1 << 24) + 1, 0, 1f32.to_bits()), 16_777_216f32.to_bits()); // ties to even
    assert_eq!(exact::fill_f32((1 << 24) + 3, 0, 1f32.to_bits()), 16_777_220f32.to_bits());
    assert_eq!(exact::fill_f32(1, 0x0000_0001, 0x0000_0001), 0x0000_0002); // denormals are not flushed
    assert_eq!(exact::fill_f32(2, 0, 0x7F7F_FFFF), 0x7F80_0000); // overflow
    assert_eq!(exact::fill_f16(1, 0x7BFF, 0x4C00), 0x7C00); // 65504 + 16 ties to infinity
    assert_eq!(exact::fill_f16(1, 0x7BFF, 0x4BFF), 0x7BFF); // a little less does not
    let mut random = Random(1);
    for _ in 0..2_000_000 {
        let (start, delta) = (random.next() as u32, random.next() as u32);
        let i = (random.next() as u32) >> random.below(32);
        let (index, delta_value, start_value) = (i as f32, f32::from_bits(delta), f32::from_bits(start));
        // MinGW's function rounds twice. `mul_add` calls it if the compiler may not use the instruction.
        let required = match cfg!(all(windows, target_env = "gnu")) {
            true => libm::fmaf(index, delta_value, start_value),
            false => index.mul_add(delta_value, start_value),
        };
        let required = required.to_bits();
        assert!(same_f32(exact::fill_f32(i, start, delta), required), "{i} · {delta:#x} + {start:#x}");
    }
}

#[test]
fn float64_sequences_are_rounded_once() {
    let bits = |value: f64| value.to_bits();
    // Exact and rounded once: 3·0.1 − 0.3 is 2⁻⁵⁵. Two roundings would give 2⁻⁵⁴.
    let cases: &[(f64, f64, &[u64])] = &[
        (0.0, 0.1, &[bits(0.0), bits(0.1), bits(0.2), bits(0.30000000000000004), bits(0.4)]),
        (-0.3, 0.1, &[bits(-0.3), bits(-0.19999999999999998), bits(-0.09999999999999998), 0x3C80_0000_0000_0000]),
        (1e200, f64::MAX, &[bits(1e200), bits(f64::MAX), bits(f64::INFINITY)]),
        (9007199254740992.0, 1.0, &[bits(9007199254740992.0), bits(9007199254740992.0), bits(9007199254740994.0)]),
        (5e-324, 5e-324, &[1, 2, 3]),
    ];
    for device in devices("float64_sequences_are_rounded_once") {
        let stream = device.create_stream().expect("a stream");
        for (start, delta, required) in cases {
            let count = NonZeroU32::new(required.len() as u32).expect("there are some");
            // A level that would reject a descriptor with FLOAT64.
            let device = device.clone().with_feature_level(dml_cuda::FeatureLevel::ALL[0]);
            let operator = device.create_float64_sequence(count, *start, *delta);
            let operator = device.compile_operator(&operator).expect("compiled");
            let output = device.create_buffer(required.len() as u64 * 8).expect("small");
            operator.bind(&[], &(&output).into()).expect("right").dispatch(&stream).expect("queued");
            assert_eq!(output.to_vec::<u64>().expect("read"), *required, "{device}: {start} + i·{delta}");
        }
    }
}
