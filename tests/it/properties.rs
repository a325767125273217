//! Random descriptors, strides, alignments and lengths, copying and in place, compared with the oracle.
//!
//! `PROPTEST_CASES=n` sets the number of cases. The tests print what they ran.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{self, assert_same, cases, devices, oracle, run, Random};
use dml_cuda::{
    validate, BufferTensorDesc, Device, FeatureLevel, OperatorDesc, ReverseSubsequencesDesc, ScalarUnion,
    TensorDataType, TensorFlags,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// How a tensor's strides are made from its sizes.
#[derive(Clone, Debug)]
enum Strides {
    Packed,
    /// The dimensions in any order in memory, each followed by a gap.
    Nested {
        order: Vec<usize>,
        gaps: Vec<u32>,
    },
    /// Any strides, legal or not.
    Any(Vec<u32>),
}

fn strides(rank: usize, legal: bool) -> BoxedStrategy<Strides> {
    let order = Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
    let nested =
        (order, prop::collection::vec(0u32..3, rank)).prop_map(|(order, gaps)| Strides::Nested { order, gaps });
    let any = prop::collection::vec(0u32..14, rank).prop_map(Strides::Any);
    if legal {
        prop_oneof![2 => Just(Strides::Packed), 3 => nested].boxed()
    } else {
        prop_oneof![1 => Just(Strides::Packed), 2 => nested, 3 => any].boxed()
    }
}

fn tensor(data_type: TensorDataType, sizes: &[u32], strides: &Strides) -> BufferTensorDesc {
    match strides {
        Strides::Packed => BufferTensorDesc::packed(data_type, sizes),
        Strides::Any(strides) => BufferTensorDesc::strided(data_type, sizes, strides),
        Strides::Nested { order, gaps } => {
            let (mut strides, mut next) = (vec![0; sizes.len()], 1);
            for &d in order {
                strides[d] = next;
                next = next * sizes[d] + gaps[d];
            }
            BufferTensorDesc::strided(data_type, sizes, &strides)
        }
    }
}

fn data_type(legal: bool) -> impl Strategy<Value = TensorDataType> {
    let types: Vec<TensorDataType> =
        TensorDataType::ALL.into_iter().filter(|t| !legal || t.size_in_bits() >= 8).collect();
    prop::sample::select(types)
}

fn sizes() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![8 => 1u32..5, 1 => 5u32..40], 1..=8)
        .prop_filter("small enough to walk", |sizes| sizes.iter().map(|&n| u64::from(n)).product::<u64>() < 20_000)
}

prop_compose! {
    /// A fill: legal, or with anything that may break a rule.
    fn fill(legal: bool)(sizes in sizes(), data_type in data_type(true))(
        strides in strides(sizes.len(), legal),
        sizes in Just(sizes),
        data_type in Just(data_type),
        start in any::<u64>(),
        delta in any::<u64>(),
        slack in prop_oneof![3 => Just(0i64), 1 => -4i64..70],
        alignment in prop_oneof![3 => Just(0u32), 1 => Just(64u32), 1 => 0u32..70],
    ) -> OperatorDesc {
        let data_type = if legal && data_type == TensorDataType::Float64 { TensorDataType::Int64 } else { data_type };
        let [start, delta] = [start, delta].map(ScalarUnion::UInt64);
        let mut desc = common::fill(data_type, &sizes, start, delta);
        desc.output_tensor = tensor(data_type, &sizes, &strides);
        disturb(&mut desc.output_tensor, slack, alignment, legal);
        desc.into()
    }
}

fn disturb(tensor: &mut BufferTensorDesc, slack: i64, alignment: u32, legal: bool) {
    let slack = if legal { slack.max(0) } else { slack };
    tensor.total_tensor_size_in_bytes = tensor.total_tensor_size_in_bytes.saturating_add_signed(slack);
    tensor.guaranteed_base_offset_alignment = if legal && alignment != 64 { 0 } else { alignment };
}

prop_compose! {
    /// A reversal: legal, or with anything that may break a rule.
    fn reverse(legal: bool)(sizes in sizes())(
        axis in 0..sizes.len() as u32 + u32::from(!legal),
        strides in (strides(sizes.len(), false), strides(sizes.len(), false), strides(sizes.len(), legal)),
        sizes in Just(sizes),
        element in data_type(legal),
        length in prop_oneof![Just(TensorDataType::UInt32), Just(TensorDataType::UInt64)],
        slack in prop_oneof![3 => Just(0i64), 1 => -4i64..70],
        alignment in prop_oneof![3 => Just(0u32), 1 => Just(64u32), 1 => 0u32..70],
        change in 0u32..if legal { 1 } else { 40 },
    ) -> OperatorDesc {
        let one: Vec<u32> = (0..).zip(&sizes).map(|(d, &size)| if d == axis { 1 } else { size }).collect();
        let mut desc = ReverseSubsequencesDesc {
            input_tensor: tensor(element, &sizes, &strides.0),
            sequence_lengths_tensor: tensor(length, &one, &strides.1),
            output_tensor: tensor(element, &sizes, &strides.2),
            axis,
        };
        disturb(&mut desc.input_tensor, slack, 0, legal);
        disturb(&mut desc.output_tensor, 0, alignment, legal);
        match change {
            1 => desc.sequence_lengths_tensor.sizes[0] += 1,
            2 => desc.output_tensor.sizes[0] += 1,
            3 => desc.output_tensor.data_type = TensorDataType::Int32,
            4 => desc.sequence_lengths_tensor.data_type = TensorDataType::Int64,
            5 => desc.output_tensor.flags = TensorFlags::OwnedByDml,
            6 => desc.input_tensor.flags = TensorFlags::OwnedByDml,
            7 => desc.input_tensor.sizes.push(1),
            8 => desc.output_tensor.sizes[0] = 0,
            _ => {}
        }
        desc.into()
    }
}

fn cases_to_run(default: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn check<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config { cases, failure_persistence: None, max_global_rejects: 1 << 20, ..Config::default() };
    TestRunner::new(config).run(&strategy, test).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn validation_agrees_with_the_oracle() {
    let (accepted, rejected) = (AtomicUsize::new(0), AtomicUsize::new(0));
    check(cases_to_run(20_000), prop_oneof![fill(false), reverse(false)], |desc| {
        let verdict = validate(&desc, FeatureLevel::HIGHEST);
        let count = if verdict.is_ok() { &accepted } else { &rejected };
        count.fetch_add(1, Ordering::Relaxed);
        prop_assert_eq!(verdict.is_ok(), oracle::accepts(&desc), "{:?}", verdict);
        Ok(())
    });
    let (accepted, rejected) = (accepted.into_inner(), rejected.into_inner());
    eprintln!("validation: {accepted} accepted, {rejected} rejected, as the oracle says");
    assert!(accepted * 20 > rejected && rejected * 20 > accepted, "{accepted} {rejected}");
}

fn runs_as_the_oracle(device: &Device, desc: &OperatorDesc, seed: u64, in_place: bool) {
    let inputs = cases::inputs(&mut Random(seed), desc);
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let required = oracle::expected(desc, &inputs, in_place);
    assert_same(device, desc, &run(device, desc, &inputs, in_place), &required);
}

#[test]
fn both_operators_run_as_the_oracle_says() {
    for device in devices("both_operators_run_as_the_oracle_says") {
        let default = if device.ordinal().is_some() { 2_000 } else { 10_000 };
        let runs = cases_to_run(default);
        check(runs, (prop_oneof![1 => fill(true), 2 => reverse(true)], any::<u64>()), |(desc, seed)| {
            runs_as_the_oracle(&device, &desc, seed, false);
            Ok(())
        });
        // In place: the output has the input's layout.
        let in_place = reverse(true).prop_map(|desc| match desc {
            OperatorDesc::ReverseSubsequences(mut desc) => {
                desc.input_tensor = desc.output_tensor.clone();
                OperatorDesc::ReverseSubsequences(desc)
            }
            fill => fill,
        });
        check(runs / 2, (in_place, any::<u64>()), |(desc, seed)| {
            runs_as_the_oracle(&device, &desc, seed, true);
            Ok(())
        });
        eprintln!("{device}: {runs} random descriptors copying, {} in place, as the oracle says", runs / 2);
    }
}
