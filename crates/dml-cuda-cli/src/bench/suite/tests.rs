//! Whether each line of the suite is what it says: its descriptor, its bytes and its tier.

use dml_cuda::{Device, OperatorDesc};

use super::*;
use crate::bench::results::Results;

const SECTOR: u64 = 32;

/// The descriptor of a case that reverses.
fn reversal(case: &Case) -> Option<dml_cuda::ReverseSubsequencesDesc> {
    match case.desc().expect(&case.name) {
        OperatorDesc::ReverseSubsequences(desc) => Some(desc),
        _ => None,
    }
}

/// Bytes of the union of the sectors that lengths in place move, from a look at every element alone.
fn counted(case: &Case) -> u64 {
    let (desc, lengths) = (reversal(case).expect("in place"), case.lengths());
    let (sizes, axis) = (&desc.input_tensor.sizes, desc.axis as usize);
    let strides = desc
        .sequence_lengths_tensor
        .strides
        .as_deref()
        .expect("written out");
    let width = u64::from(desc.input_tensor.data_type.size_in_bits() / 8);
    let elements: u64 = sizes.iter().map(|&size| u64::from(size)).product();
    let mut is_moved = vec![false; ((case.misaligned + elements * width) / SECTOR + 1) as usize];
    for n in 0..elements {
        let (mut rest, mut t, mut place) = (n, 0, 0);
        for d in (0..sizes.len()).rev() {
            let at = rest % u64::from(sizes[d]);
            rest /= u64::from(sizes[d]);
            place += at * u64::from(strides[d]);
            t = if d == axis { at } else { t };
        }
        let length = u64::from(lengths[place as usize]);
        if t < length && t != length - 1 - t {
            let begin = case.misaligned + n * width;
            is_moved[(begin / SECTOR) as usize] = true;
            is_moved[((begin + width - 1) / SECTOR) as usize] = true;
        }
    }
    lengths.len() as u64 * 4 + 2 * SECTOR * is_moved.iter().filter(|&&moved| moved).count() as u64
}

/// Checks the bytes of the cases in place up to a size, and counts them.
fn count_in_place(most: u64) -> usize {
    let cases = all().filter(|case| case.is_in_place() && case.output_bytes() <= most);
    cases
        .map(|case| {
            assert_eq!(
                case.work.as_ref().map(|work| work.bytes),
                Some(counted(case)),
                "{}",
                case.name
            )
        })
        .count()
}

#[test]
fn bytes_in_place_are_those_of_the_union_of_sectors() {
    assert_eq!(count_in_place(4 << 20), 24);
}

#[test]
#[ignore = "CI runs it: it takes a minute"]
fn bytes_in_place_of_the_quick_cases_are_those_of_the_union_of_sectors() {
    assert!(count_in_place(Tier::Quick as u64) > 80);
}

/// Each line says of its descriptor, and of its node, what they are.
#[test]
fn a_case_is_what_its_line_says() {
    let cpu = Device::cpu();
    let mut names = BTreeSet::new();
    for case in all() {
        let (name, work) = (&case.name, case.work.as_ref());
        assert!(names.insert(name), "{name} is there twice");
        if case.lengths == Lengths::ThreeQuarters {
            assert_eq!(case.lengths(), [case.sizes()[1] as u32 / 4 * 3], "{name}");
        }
        if case.is_baseline() || case.descriptor.is_none() {
            continue;
        }
        let desc = case.desc().expect(name);
        cpu.create_operator(desc.clone()).expect(name);
        let output = desc.output_tensor();
        let tier = [Tier::Quick, Tier::Standard, Tier::Full]
            .into_iter()
            .find(|&tier| output.total_tensor_size_in_bytes <= tier as u64);
        assert_eq!(case.tier, tier.filter(|_| case.misaligned == 0), "{name}");
        let Some(work) = work else { continue };
        let data_type = output.data_type;
        assert_eq!(
            work.data_type,
            format!(
                "{}{}",
                data_type.name()[..1].to_lowercase(),
                data_type.size_in_bits()
            )
        );
        assert!(
            name.ends_with(&format!(
                ".{}.{}",
                work.data_type,
                work.mode.to_string().replace(' ', "_")
            )),
            "{name}"
        );
        let Some(reverse) = reversal(case) else {
            assert_eq!(
                (work.mode, work.side_by_side),
                (Mode::Fill, false),
                "{name}"
            );
            continue;
        };
        let (sizes, lengths) = (&reverse.input_tensor.sizes, reverse.sequence_lengths_tensor);
        let innermost = sizes
            .iter()
            .rposition(|&size| size > 1)
            .expect("more than one element");
        assert_eq!(
            work.side_by_side,
            lengths.strides.expect("written out")[innermost] > 0,
            "{name}"
        );
        if work.mode == Mode::Copy {
            assert_eq!(
                work.bytes,
                lengths.total_tensor_size_in_bytes + 2 * case.output_bytes(),
                "{name}"
            );
        }
        // A row of a comparison is equal work: ONNX's lengths take 8 bytes each, but count as 4.
        if let Some(node) = &case.onnx {
            let shape: Vec<u32> = serde_json::from_value(node["shape"].clone()).expect("sizes");
            assert_eq!(sizes[..shape.len()], shape, "{name}");
            assert!(sizes[shape.len()..].iter().all(|&size| size == 1), "{name}");
        }
    }
    let counts = [
        of_tier(Tier::Quick),
        of_tier(Tier::Full),
        of_onnx(Tier::Quick),
        cold(),
    ]
    .map(|cases| cases.len());
    assert_eq!(counts, [245, 343, 61, 315]);
    assert_eq!(
        [64, 1 << 20, 1 << 30, 1 << 40].map(dispatches),
        [1000, 793, 4, 1]
    );
}

/// Runs with a cold L2 are compared with what an older bench recorded.
#[test]
fn an_older_record_has_the_cases_of_a_cold_run() {
    let records = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/record"));
    if !records.is_dir() {
        return; // The published crate leaves them out.
    }
    let record =
        Results::read(&records.join("nvidia-h200/2026-11-29/cold.json")).expect("a results file");
    let of = |works: Vec<Work>| -> BTreeSet<(String, u64)> {
        let cases = works.into_iter().filter(|work| !work.mode.is_baseline());
        cases.map(|work| (work.name(), work.bytes)).collect()
    };
    let recorded = of(record.cases.into_iter().map(|timed| timed.work).collect());
    assert_eq!(
        of(cold().into_iter().filter_map(|case| case.work).collect()),
        recorded
    );
}
