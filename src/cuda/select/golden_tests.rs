//! tests/golden/selection.txt: which kernels are selected for chosen layouts on five GPUs, and why no faster ones. A
//! change of that file changes what users run.
//!
//! That file also has the layouts. `UPDATE_GOLDEN=1 cargo test --lib golden` rewrites what is below each.
//! `SELECTION_DUMP=FILE cargo test --lib golden` writes every launch for these layouts and for the case table, with its
//! parameters: compare two such files to see whether a change of the code changed any launch.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::layout::Layout;
use super::{fill_value_sequence, reverse_subsequences, Launches};
use crate::common::{self, cases, repository};
use crate::cuda::{GpuTarget, Launch, Mode};
use crate::desc::{
    BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, OperatorType, ReverseSubsequencesDesc, ScalarUnion,
};
use crate::registry::OperatorPlan;

/// The GPUs of the golden file. Others of `GpuTarget::NAMED` add no lines to it.
const TARGETS: [&str; 5] = ["t4", "l4", "a100", "h100", "b200"];

fn targets() -> impl Iterator<Item = (&'static str, GpuTarget)> {
    TARGETS.into_iter().map(|name| (name, name.parse().expect("a target")))
}

/// The layouts of the golden file: they cover every candidate, every reason for a rejection, and both sides of the
/// thresholds that users meet. Each is a line such as `fill FLOAT32 [6, 100] strides [128, 1]`.
fn chosen() -> Vec<(String, OperatorDesc)> {
    let text = std::fs::read_to_string(golden_file()).expect("the golden file has the layouts");
    text.lines().filter(|line| !line.starts_with(' ')).map(|title| (title.to_owned(), layout(title))).collect()
}

fn golden_file() -> std::path::PathBuf {
    repository("tests/golden/selection.txt")
}

fn layout(title: &str) -> OperatorDesc {
    if let Some(output) = title.strip_prefix("fill ") {
        let output_tensor = tensor(output);
        let (start, delta) = (ScalarUnion::UInt64(1), ScalarUnion::UInt64(3));
        let packed = common::fill(output_tensor.data_type, &output_tensor.sizes, start, delta);
        return FillValueSequenceDesc { output_tensor, ..packed }.into();
    }
    let reversal = title.strip_prefix("reverse ").expect("a fill or a reversal");
    let (input, rest) = reversal.split_once(" axis ").expect("an axis");
    let (axis, rest) = rest.split_once(" lengths ").expect("lengths");
    let (lengths, output) = rest.split_once(" output ").expect("an output");
    ReverseSubsequencesDesc {
        input_tensor: tensor(input),
        sequence_lengths_tensor: tensor(lengths),
        output_tensor: tensor(if output == "the same" { input } else { output }),
        axis: axis.parse().expect("a number"),
    }
    .into()
}

/// Reads `FLOAT32 [6, 100]` or `FLOAT32 [6, 100] strides [128, 1]`.
fn tensor(text: &str) -> BufferTensorDesc {
    let (data_type, sizes) = text.split_once(' ').expect("a type and sizes");
    let data_type = data_type.parse().expect("a type");
    let list = |text: &str| -> Vec<u32> {
        text.trim_matches(['[', ']']).split(", ").map(|number| number.parse().expect("a number")).collect()
    };
    match sizes.split_once(" strides ") {
        Some((sizes, strides)) => BufferTensorDesc::strided(data_type, &list(sizes), &list(strides)),
        None => BufferTensorDesc::packed(data_type, &list(sizes)),
    }
}

/// The launches of a layout, on each GPU in each mode that it can run in.
fn selected(desc: &OperatorDesc) -> impl Iterator<Item = (&'static str, &'static str, Launches)> {
    let plan = OperatorPlan::new(desc).expect("the layouts are valid");
    targets().flat_map(move |(name, target)| {
        let modes = plan.summary().modes.into_iter().zip(Mode::ALL);
        modes.map(|((name_of_mode, _), mode)| (name, name_of_mode, plan.select(&target, mode))).collect::<Vec<_>>()
    })
}

/// What each candidate launches in a mode, also if it is never tried. Nothing if nothing moves.
pub fn of_each_candidate(plan: &OperatorPlan, target: &GpuTarget, mode: Mode) -> Vec<Launches> {
    if plan.select(target, mode).launches.is_empty() {
        return Vec::new();
    }
    let only = |n: usize| match plan {
        OperatorPlan::FillValueSequence(plan) => {
            let candidate = fill_value_sequence::CANDIDATES.get(n..=n)?;
            Some(Launches::find(candidate, mode, plan.width, |launch| launch(plan)))
        }
        OperatorPlan::ReverseSubsequences(plan) => {
            let candidate = reverse_subsequences::CANDIDATES.get(n..=n)?;
            Some(reverse_subsequences::launches(candidate, Layout::new(plan, mode, target)))
        }
    };
    (0..).map_while(only).collect()
}

fn line(launch: &Launch) -> String {
    let Launch { entry, blocks, threads, shared, alignment, .. } = launch;
    format!("{} {blocks}x{threads} {shared} B, aligned to {alignment}", entry.name)
}

/// The golden text: a title for each layout, then for each mode the launches and the rejected kernels. GPUs with the
/// same result share a line.
fn golden() -> String {
    let mut text = String::new();
    for (title, desc) in chosen() {
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for (name, mode, Launches { launches, rejected }) in selected(&desc) {
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
        let _ = writeln!(text, "{title}");
        for (found, names) in groups {
            let all = names.len() == TARGETS.len();
            let _ = writeln!(text, "  {}{found}", if all { String::new() } else { format!("[{}] ", names.join(" ")) });
        }
    }
    text
}

/// Everything that is selected for the chosen layouts and the case table.
fn dump() -> String {
    let mut text = String::new();
    for desc in chosen().into_iter().map(|(_, desc)| desc).chain(cases::all().into_iter().map(|case| case.desc)) {
        let _ = writeln!(text, "{desc:?}");
        for (name, mode, Launches { launches, rejected }) in selected(&desc) {
            for launch in &launches {
                let parameters: &[u8] = bytemuck::cast_slice(&launch.params);
                let parameters: String = parameters.iter().map(|byte| format!("{byte:02x}")).collect();
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
    let path = golden_file();
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
    for (_, desc) in chosen() {
        let plan = OperatorPlan::new(&desc).expect("the layouts are valid");
        for ((_, target), mode) in targets().flat_map(|target| Mode::ALL.map(|mode| (target, mode))) {
            let selected = plan.select(&target, mode).launches;
            for (n, candidate) in of_each_candidate(&plan, &target, mode).iter().enumerate() {
                if candidate.launches.iter().any(|launch| selected.contains(launch)) {
                    found.insert((desc.operator_type().name(), n, mode));
                }
            }
        }
    }
    let fills = fill_value_sequence::CANDIDATES.iter().map(|candidate| candidate.names);
    let reversals = reverse_subsequences::CANDIDATES.iter().map(|candidate| candidate.names);
    let of_fills = fills.enumerate().map(|candidate| (OperatorType::FillValueSequence, candidate));
    let of_reversals = reversals.enumerate().map(|candidate| (OperatorType::ReverseSubsequences, candidate));
    for (operator, (n, names)) in of_fills.chain(of_reversals) {
        for (name, mode) in names.into_iter().zip(Mode::ALL) {
            let seen = found.contains(&(operator.name(), n, mode));
            assert_eq!(seen, name.is_some(), "candidate {n} of {}, {name:?}", operator.name());
        }
    }
}
