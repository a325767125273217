//! Which kernels are selected, for a range of GPUs: a line for each layout of the case table and of the throughput bench in
//! tests/golden/selection.txt. A change of this file is a change of what users run.
//!
//! `UPDATE_GOLDEN=1 cargo test --test selection` writes it anew.
#![cfg(feature = "cuda")]

#[allow(dead_code)] // the bench uses all of it
#[path = "../src/bin/dml-cuda/suite/cases.rs"]
mod bench_cases;
mod common;

use std::collections::BTreeSet;
use std::fmt::Write;

use common::cases;
use dml_cuda::{BufferTensorDesc, Device, ExplainedMode, GpuTarget, OperatorDesc};

fn tensor(desc: &BufferTensorDesc) -> String {
    match &desc.strides {
        Some(strides) => format!("{} {:?} strides {strides:?}", desc.data_type, desc.sizes),
        None => format!("{} {:?}", desc.data_type, desc.sizes),
    }
}

fn title(desc: &OperatorDesc) -> String {
    match desc {
        OperatorDesc::FillValueSequence(desc) => format!("fill {}", tensor(&desc.output_tensor)),
        OperatorDesc::ReverseSubsequences(desc) => format!(
            "reverse {} axis {} lengths {}{}",
            tensor(&desc.input_tensor),
            desc.axis,
            tensor(&desc.sequence_lengths_tensor),
            if desc.output_tensor.strides == desc.input_tensor.strides {
                String::new()
            } else {
                format!(" output {}", tensor(&desc.output_tensor))
            }
        ),
    }
}

/// The launches of a mode, in the order they are tried in.
fn launches(mode: &ExplainedMode) -> String {
    let launches = mode.launches.iter().map(|launch| {
        let dml_cuda::ExplainedLaunch { kernel, blocks, threads, shared_memory, alignment, .. } = launch;
        format!("{kernel} {blocks}x{threads} {shared_memory} B, aligned to {alignment}")
    });
    format!("{}: {}", mode.name, launches.collect::<Vec<_>>().join("; "))
}

/// A title for each layout; below it a line for each mode, and for each group of targets that are served alike.
fn selections() -> String {
    let device = Device::cpu();
    let mut text = String::new();
    let mut seen = BTreeSet::new();
    let descs = cases::all().into_iter().map(|case| case.desc);
    for desc in descs.chain(bench_cases::all(false).into_iter().map(|case| case.desc)) {
        let title = title(&desc);
        if !seen.insert(title.clone()) {
            continue;
        }
        let operator = device.create_operator(desc).unwrap_or_else(|errors| panic!("{title}\n{errors}"));
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for (name, target) in GpuTarget::NAMED {
            for mode in &operator.explain(target).modes {
                let found = launches(mode);
                match groups.iter_mut().find(|(launches, _)| *launches == found) {
                    Some((_, names)) => names.push(name),
                    None => groups.push((found, vec![name])),
                }
            }
        }
        let _ = writeln!(text, "{title}");
        for (launches, names) in groups {
            let all = names.len() == GpuTarget::NAMED.len();
            let _ =
                writeln!(text, "  {}{launches}", if all { String::new() } else { format!("[{}] ", names.join(" ")) });
        }
    }
    text
}

#[test]
fn the_kernels_selected_are_those_in_the_golden_file() {
    let found = selections();
    let path = common::repository("tests/golden/selection.txt");
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
    assert!(found.lines().count() > 4000, "layouts were looked at");
}
