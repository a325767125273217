//! tests/golden/selection.txt: which kernels are selected for chosen layouts on five GPUs, and why no faster ones. A
//! change of that file changes what users run.
//!
//! `UPDATE_GOLDEN=1 cargo test --lib golden` rewrites it. `SELECTION_DUMP=FILE cargo test --lib golden` writes every
//! launch for these layouts and for the case table, with its parameters: compare two such files to see whether a change
//! of the code changed any launch.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{fill_value_sequence, reverse_subsequences, Launches};
use crate::common::{self, cases, repository, reversal as lanes};
use crate::cuda::{GpuTarget, Launch};
use crate::desc::{BufferTensorDesc, OperatorDesc, OperatorType, ReverseSubsequencesDesc};
use crate::registry::Plan;
use crate::ScalarUnion;
use crate::TensorDataType::{self, Float16, Float32, Int64, Int8, UInt64, UInt8};

fn tensor(data_type: TensorDataType, sizes: &[u32], strides: &[u32]) -> BufferTensorDesc {
    match strides {
        [] => BufferTensorDesc::packed(data_type, sizes),
        strides => BufferTensorDesc::strided(data_type, sizes, strides),
    }
}

/// A fill, packed if `strides` is empty.
fn fill(data_type: TensorDataType, sizes: &[u32], strides: &[u32]) -> OperatorDesc {
    let mut desc = common::fill(data_type, sizes, ScalarUnion::UInt64(1), ScalarUnion::UInt64(3));
    desc.output_tensor = tensor(data_type, sizes, strides);
    desc.into()
}

/// A packed reversal with one length for everything behind the axis.
fn blocks(data_type: TensorDataType, sizes: &[u32], axis: u32) -> ReverseSubsequencesDesc {
    let mut desc = lanes(data_type, sizes, axis);
    let (mut strides, mut stride) = (vec![0; sizes.len()], 1);
    for d in (0..axis as usize).rev() {
        strides[d] = stride;
        stride *= sizes[d];
    }
    desc.sequence_lengths_tensor.strides = Some(strides);
    desc
}

fn input_strides(mut desc: ReverseSubsequencesDesc, strides: &[u32]) -> ReverseSubsequencesDesc {
    desc.input_tensor = tensor(desc.input_tensor.data_type, &desc.input_tensor.sizes, strides);
    desc
}

fn output_strides(mut desc: ReverseSubsequencesDesc, strides: &[u32]) -> ReverseSubsequencesDesc {
    desc.output_tensor = tensor(desc.output_tensor.data_type, &desc.output_tensor.sizes, strides);
    desc
}

/// The same strides for input and output: a layout that can run in place.
fn strides(desc: ReverseSubsequencesDesc, strides: &[u32]) -> ReverseSubsequencesDesc {
    output_strides(input_strides(desc, strides), strides)
}

fn wide_lengths(mut desc: ReverseSubsequencesDesc) -> ReverseSubsequencesDesc {
    desc.sequence_lengths_tensor = tensor(UInt64, &desc.sequence_lengths_tensor.sizes, &[]);
    desc
}

/// Layouts that cover every candidate, every reason for a rejection, and both sides of the thresholds that users meet.
fn chosen() -> Vec<OperatorDesc> {
    let fills = [
        fill(UInt8, &[1], &[]),
        fill(Float16, &[2, 3, 4, 5], &[]),
        fill(Int64, &[1 << 25], &[]),
        fill(Float32, &[6, 1024], &[2048, 1]),
        fill(Float32, &[6, 100], &[128, 1]),
        fill(Float32, &[6, 100], &[101, 1]),
        fill(Float32, &[7, 1000], &[1003, 1]),
        fill(Int8, &[7, 1000], &[1003, 1]),
        fill(UInt8, &[64, 3, 512, 512], &[786432, 1, 1536, 3]),
        fill(Float32, &[64, 64, 128, 128], &[1 << 20, 1, 8192, 64]),
        fill(Float16, &[30, 40], &[82, 2]),
        fill(Float32, &[2, 2, 2], &[3, 5, 7]),
        fill(Float32, &[64, 64], &[64, 3]),
    ];
    let small = [
        lanes(Float32, &[1], 0),
        lanes(Float32, &[16, 256], 1),
        wide_lengths(lanes(Float32, &[16, 256], 1)),
        lanes(UInt8, &[1, 256, 768], 1),
        lanes(Int64, &[1, 256, 768], 1),
        blocks(Float16, &[16, 64, 8], 1),
        strides(lanes(Float32, &[3, 4, 8, 5, 6], 2), &[1157, 289, 36, 7, 1]),
        lanes(Float32, &[512, 512], 1),
        lanes(Float32, &[513, 512], 1),
        blocks(Float16, &[30, 200, 100], 1),
        blocks(Float32, &[64, 500, 29], 1),
        input_strides(lanes(UInt8, &[2, 512, 512], 1), &[1 << 18, 1, 512]),
    ];
    let of_blocks = [
        blocks(UInt8, &[64, 2048, 1024], 1),
        blocks(Int64, &[64, 2048, 33], 1),
        blocks(Float16, &[64, 2048, 1025], 1),
        blocks(Float16, &[64, 2048, 257], 1),
        blocks(Float32, &[64, 2048, 257], 1),
        strides(blocks(Float32, &[64, 2048, 257], 1), &[2048 * 260, 260, 1]),
        strides(blocks(Float32, &[64, 2048, 257], 1), &[2048 * 259, 259, 1]),
        strides(blocks(Float32, &[64, 2048, 1001], 1), &[2048 * 1003, 1003, 1]),
        blocks(UInt8, &[8192, 512, 5], 1),
        blocks(UInt8, &[8192, 512, 6], 1),
        blocks(Float16, &[8192, 512, 3], 1),
        blocks(Float32, &[8192, 512, 5], 1),
        blocks(UInt8, &[1024, 16384, 3], 1),
        blocks(UInt8, &[64, 16384, 33], 1),
        blocks(UInt8, &[64, 16384, 34], 1),
        blocks(Float32, &[64, 16384, 33], 1),
        blocks(Float32, &[1, 2, (1 << 30) + 1], 1),
        input_strides(blocks(Float32, &[64, 64, 40], 1), &[64 * 41, 41, 1]),
    ];
    let of_lanes = [
        lanes(UInt8, &[1 << 26, 4], 1),
        lanes(Float16, &[1 << 26, 4], 1),
        lanes(Float32, &[1 << 26, 4], 1),
        lanes(Int64, &[1 << 26, 4], 1),
        strides(lanes(UInt8, &[1000, 1000, 4], 1), &[4096, 4, 1]),
        strides(lanes(UInt8, &[1000, 1000, 4], 2), &[4096, 4, 1]),
        strides(lanes(UInt8, &[1 << 20, 7], 1), &[9, 1]),
        lanes(UInt8, &[1 << 20, 100], 1),
        lanes(UInt8, &[1 << 17, 511], 1),
        lanes(UInt8, &[1 << 17, 512], 1),
        lanes(Float32, &[1 << 18, 100], 1),
        lanes(Int64, &[1 << 17, 100], 1),
        lanes(Int64, &[1 << 13, 1000], 1),
        lanes(UInt8, &[16384, 4096], 1),
        lanes(UInt8, &[16384, 4097], 1),
        lanes(UInt8, &[16384, 8192], 1),
        lanes(Float32, &[16384, 8192], 1),
        lanes(Int64, &[16384, 8192], 1),
        lanes(Float32, &[1, 1 << 19], 1),
        lanes(UInt8, &[1 << 28], 0),
        lanes(Float32, &[7, 1 << 20], 1),
    ];
    let side_by_side = [
        lanes(UInt8, &[64, 512, 4096], 1),
        lanes(Float32, &[64, 512, 4096], 1),
        lanes(Int64, &[64, 512, 4096], 1),
        lanes(UInt8, &[1, 512, 768], 1),
        lanes(Float16, &[8, 512, 768], 1),
        lanes(UInt8, &[128, 512, 1023], 1),
        lanes(Float16, &[128, 512, 1023], 1),
        lanes(Float32, &[128, 512, 1023], 1),
        lanes(Int64, &[128, 512, 1023], 1),
        lanes(UInt8, &[32768, 512, 3], 1),
        lanes(Float32, &[32768, 512, 3], 1),
        lanes(Int64, &[32768, 512, 3], 1),
        lanes(UInt8, &[4096, 64, 333], 1),
        lanes(UInt8, &[1024, 2731, 33], 1),
        strides(lanes(UInt8, &[4096, 512, 33], 1), &[512 * 40, 40, 1]),
        strides(lanes(UInt8, &[4096, 512, 33], 1), &[512 * 33 + 5, 33, 1]),
        lanes(UInt8, &[8, 512, 768], 1),
        lanes(Int64, &[1, 512, 768], 1),
        lanes(UInt8, &[64, 512, 768], 1),
        lanes(Float32, &[8, 5216, 64], 1),
        lanes(Float32, &[8, 5217, 64], 1),
        lanes(Float32, &[8, 7264, 64], 1),
        lanes(Float32, &[8, 7265, 64], 1),
        lanes(Float32, &[8, 7265, 63], 1),
        lanes(Float16, &[8, 7265, 63], 1),
        lanes(Float32, &[8, 7265, 7], 1),
        lanes(UInt8, &[4, 16384, 512], 1),
        lanes(Float16, &[4, 16384, 510], 1),
        lanes(Float32, &[4, 16384, 510], 1),
        lanes(Int64, &[4, 16384, 512], 1),
        lanes(UInt8, &[16, 65536, 64], 1),
        lanes(Float32, &[16, 65536, 64], 1),
        lanes(UInt8, &[2, 1 << 20, 16], 1),
        lanes(UInt8, &[2, 1 << 20, 64], 1),
    ];
    let apart = [
        input_strides(lanes(UInt8, &[4096, 4096], 1), &[1, 4096]),
        output_strides(lanes(Float32, &[4096, 4096], 1), &[1, 4096]),
        output_strides(blocks(Float16, &[64, 512, 1024], 1), &[512 * 1024, 1, 512]),
        output_strides(lanes(Int64, &[64, 512, 15], 1), &[512 * 15, 1, 512]),
        strides(lanes(Float16, &[1 << 10, 1 << 10], 1), &[1 << 11, 2]),
    ];
    let reversals = small.into_iter().chain(of_blocks).chain(of_lanes).chain(side_by_side).chain(apart);
    fills.into_iter().chain(reversals.map(OperatorDesc::from)).collect()
}

fn words(tensor: &BufferTensorDesc) -> String {
    match &tensor.strides {
        Some(strides) => format!("{} {:?} strides {strides:?}", tensor.data_type, tensor.sizes),
        None => format!("{} {:?}", tensor.data_type, tensor.sizes),
    }
}

fn title(desc: &OperatorDesc) -> String {
    match desc {
        OperatorDesc::FillValueSequence(desc) => format!("fill {}", words(&desc.output_tensor)),
        OperatorDesc::ReverseSubsequences(desc) => format!(
            "reverse {} axis {} lengths {} output {}",
            words(&desc.input_tensor),
            desc.axis,
            words(&desc.sequence_lengths_tensor),
            if desc.output_tensor == desc.input_tensor { "the same".to_owned() } else { words(&desc.output_tensor) }
        ),
    }
}

/// The launches of a layout, on each GPU in each mode that it can run in.
fn selected(desc: &OperatorDesc) -> impl Iterator<Item = (&'static str, &'static str, Launches)> {
    let plan = Plan::new(desc).expect("the layouts are valid");
    GpuTarget::NAMED.iter().flat_map(move |(name, target)| {
        let selection = plan.select(target);
        let in_place = selection.in_place.map(|launches| (*name, "in place", launches));
        std::iter::once((*name, plan.summary().mode, selection.out_of_place)).chain(in_place)
    })
}

fn line(launch: &Launch) -> String {
    let Launch { entry, blocks, threads, shared, alignment, .. } = launch;
    format!("{} {blocks}x{threads} {shared} B, aligned to {alignment}", entry.name().to_string_lossy())
}

/// The golden text: a title for each layout, then for each mode the launches and the rejected kernels. GPUs with the
/// same result share a line.
fn golden() -> String {
    let mut text = String::new();
    for desc in chosen() {
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for (name, mode, Launches { launches, rejected, .. }) in selected(&desc) {
            let launches: Vec<String> = launches.iter().map(line).collect();
            let rejected: Vec<String> = rejected.iter().map(|(kernel, why)| format!("{kernel}: {why}")).collect();
            let mut found = format!("{mode}: {}", launches.join("; "));
            if !rejected.is_empty() {
                let _ = write!(found, "\n    not {}", rejected.join("; "));
            }
            match groups.iter_mut().find(|(of_others, _)| *of_others == found) {
                Some((_, names)) => names.push(name),
                None => groups.push((found, vec![name])),
            }
        }
        let _ = writeln!(text, "{}", title(&desc));
        for (found, names) in groups {
            let all = names.len() == GpuTarget::NAMED.len();
            let _ = writeln!(text, "  {}{found}", if all { String::new() } else { format!("[{}] ", names.join(" ")) });
        }
    }
    text
}

/// Everything that is selected for the chosen layouts and the case table.
fn dump() -> String {
    let mut text = String::new();
    for desc in chosen().into_iter().chain(cases::all().into_iter().map(|case| case.desc)) {
        let _ = writeln!(text, "{desc:?}");
        for (name, mode, Launches { launches, rejected, .. }) in selected(&desc) {
            for launch in &launches {
                let parameters: String = launch.parameters().iter().map(|byte| format!("{byte:02x}")).collect();
                let _ = writeln!(text, "  {name} {mode}: {}, parameters {parameters}", line(launch));
            }
            for (kernel, why) in &rejected {
                let _ = writeln!(text, "  {name} {mode}: not {kernel}: {why}");
            }
        }
    }
    text
}

#[test]
fn the_kernels_selected_are_those_in_the_golden_file() {
    if let Some(path) = std::env::var_os("SELECTION_DUMP") {
        std::fs::write(path, dump()).expect("the dump can be written");
    }
    let found = golden();
    let path = repository("tests/golden/selection.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(&path, &found).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let mut layout = "";
    for (n, (found, golden)) in found.lines().zip(golden.lines()).enumerate() {
        if !found.starts_with(' ') {
            layout = found;
        }
        assert_eq!(found, golden, "line {} of tests/golden/selection.txt, {layout}", n + 1);
    }
    assert_eq!(found.lines().count(), golden.lines().count(), "lines of tests/golden/selection.txt");
    assert!(golden.lines().count() <= 600, "more than anybody reviews");
}

#[test]
fn every_candidate_is_selected_in_the_golden_file() {
    let mut found = BTreeSet::new();
    for desc in chosen() {
        for (_, mode, launches) in selected(&desc) {
            let mode = usize::from(mode == "in place");
            found.extend(launches.candidates.into_iter().map(|n| (desc.operator_type().name(), n, mode)));
        }
    }
    let fills = fill_value_sequence::CANDIDATES.iter().map(|candidate| candidate.names);
    let reversals = reverse_subsequences::CANDIDATES.iter().map(|candidate| candidate.names);
    let of_fills = fills.enumerate().map(|candidate| (OperatorType::FillValueSequence, candidate));
    let of_reversals = reversals.enumerate().map(|candidate| (OperatorType::ReverseSubsequences, candidate));
    for (operator, (n, names)) in of_fills.chain(of_reversals) {
        for (mode, name) in names.into_iter().enumerate() {
            let seen = found.contains(&(operator.name(), n, mode));
            assert_eq!(seen, name.is_some(), "candidate {n} of {}, {name:?}", operator.name());
        }
    }
}
