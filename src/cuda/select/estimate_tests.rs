//! Estimates: the lowest is chosen, its launch fits the GPU, and for recorded times it is near the fastest.
//!
//! `ESTIMATE_LAYOUTS=LAYOUTS.csv ESTIMATE_TERMS=OUT.csv cargo test --lib terms` writes the terms of the formula for
//! every launch of the layouts of a file. scripts/fit-estimates.py fits the costs to them.
//!
//! `cargo test --lib choices` says whether a change moves a choice. It needs no GPU.

use std::collections::HashMap;
use std::fmt::Write;
use std::io::Read;

use super::{reverse_subsequences as reverse, Candidate};
use crate::cuda::estimate;
use crate::cuda::launch::Grid;
use crate::cuda::{GpuTarget, Launch, Placement};
use crate::desc::{BufferTensorDesc, ReverseSubsequencesDesc, TensorDataType};
use crate::dml_cuda_testing::repository;
use crate::explain::{explain_plan, Outcome};
use crate::operator_plan::OperatorPlan;
use crate::plan::reverse_plan::Plan;
use crate::CompileOptions;

/// The plan of a layout: the columns of a line of times from `width` on.
pub(super) fn plan(columns: &[&str]) -> Plan {
    let list = |text: &str| -> Vec<u32> {
        text.split('x')
            .map(|number| number.parse().expect("a number"))
            .collect()
    };
    let [width, sizes, axis, in_strides, out_strides, lengths] = columns else {
        panic!("{columns:?}")
    };
    let data_type = match *width {
        "1" => TensorDataType::UInt8,
        "2" => TensorDataType::UInt16,
        "4" => TensorDataType::UInt32,
        _ => TensorDataType::UInt64,
    };
    let (sizes, lengths) = (list(sizes), list(lengths));
    let axis: usize = axis.parse().expect("a number");
    let mut next = 1;
    let mut length_strides = vec![0; sizes.len()];
    for (stride, &size) in length_strides.iter_mut().zip(&lengths).rev() {
        *stride = if size > 1 { next } else { 0 };
        next *= size;
    }
    let mut length_sizes = sizes.clone();
    length_sizes[axis] = 1;
    Plan::new(&ReverseSubsequencesDesc {
        input_tensor: BufferTensorDesc::strided(data_type, &sizes, &list(in_strides)),
        sequence_lengths_tensor: BufferTensorDesc::strided(
            TensorDataType::UInt32,
            &length_sizes,
            &length_strides,
        ),
        output_tensor: BufferTensorDesc::strided(data_type, &sizes, &list(out_strides)),
        axis: axis as u32,
    })
    .expect("the layouts are valid")
}

/// The files of benches/record/times: the name, which begins with the GPU, that GPU, and the times.
fn recorded() -> Vec<(String, GpuTarget, String)> {
    let files = std::fs::read_dir(repository("benches/record/times"))
        .expect("the records are in the repository");
    let paths = files.map(|file| file.expect("a file").path());
    let mut files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "gz"))
        .collect();
    files.sort_unstable();
    let read = |path: std::path::PathBuf| {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .replace(".csv.gz", "");
        let target = name
            .split('-')
            .next()
            .unwrap_or_default()
            .parse()
            .expect("a target");
        let mut text = String::new();
        let file = std::fs::File::open(&path).expect("a file");
        flate2::read::GzDecoder::new(file)
            .read_to_string(&mut text)
            .expect("text");
        (name, target, text)
    };
    files.into_iter().map(read).collect()
}

/// The lines of recorded times, by layout: the placement, and the kernel, its variant and its alignment with the time.
type Times<'a> = HashMap<&'a str, Vec<(&'a str, [&'a str; 3], f64)>>;

fn times(text: &str) -> Times<'_> {
    let mut times = Times::new();
    let us = text
        .lines()
        .next()
        .and_then(|names| names.split(',').position(|name| name == "us"))
        .expect("times");
    for line in text.lines().skip(1) {
        let ends: Vec<usize> = line.match_indices(',').map(|(at, _)| at).collect();
        let columns: Vec<&str> = line.split(',').collect();
        let kernel = [columns[8], columns[9], columns[10]];
        let time = columns[us].parse().expect("a number");
        times
            .entry(&line[ends[0] + 1..ends[6]])
            .or_default()
            .push((columns[7], kernel, time));
    }
    times
}

#[test]
fn what_is_chosen_is_near_the_fastest_of_the_recorded_times() {
    let (mut loss, mut count) = ([0.0; 2], [0; 2]);
    for (_, target, text) in recorded() {
        for (layout, times) in times(&text) {
            let plan = plan(&layout.split(',').collect::<Vec<_>>());
            for (n, (placement, name)) in Placement::ALL
                .into_iter()
                .zip(["copying", "in place"])
                .enumerate()
            {
                let of_mode = || times.iter().filter(|(of, ..)| *of == name);
                let Some(best) = of_mode().map(|(.., time)| *time).min_by(f64::total_cmp) else {
                    continue;
                };
                let chosen = reverse::candidates(&plan, &target, placement)
                    .into_iter()
                    .find_map(|found| {
                        let alignment = found.launch.alignment.to_string();
                        let kernel = [found.launch.entry.name, &found.variant(), &alignment];
                        // A kernel that copies takes as long in place, of which older files have no time.
                        let known = of_mode()
                            .chain(&times)
                            .find(|(_, recorded, _)| *recorded == kernel);
                        known.map(|(.., time)| *time)
                    });
                let chosen = chosen
                    .unwrap_or_else(|| panic!("{layout}, {name}: a recorded kernel can run it"));
                loss[n] += chosen.max(best) / best;
                count[n] += 1;
            }
        }
    }
    for (n, placement) in ["copying", "in place"].iter().enumerate() {
        let mean = loss[n] / f64::from(count[n]);
        println!(
            "{placement}: {} layouts, the chosen kernel takes {mean:.4} times the time of the fastest",
            count[n]
        );
        assert!(
            count[n] > 1000 && mean <= 1.025,
            "{placement}: {mean} of {} layouts",
            count[n]
        );
    }
}

/// A change that moves a choice needs times of a GPU: CONTRIBUTING.md. The golden file has a line for each file of
/// times and placement, and in it a hash of the choice for each layout. `UPDATE_GOLDEN=1 cargo test --lib choices` writes
/// it.
#[test]
fn choices_for_recorded_layouts_are_those_of_the_golden_file() {
    let path = repository("tests/golden/choices.txt");
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let (mut found, mut moved) = (String::new(), Vec::new());
    for (file, target, text) in recorded() {
        let mut layouts: Vec<&str> = times(&text).into_keys().collect();
        layouts.sort_unstable();
        for (placement, name) in Placement::ALL.into_iter().zip(["copying", "in place"]) {
            let place = format!("{file}, {name}:");
            let before = golden
                .lines()
                .find_map(|line| line.strip_prefix(&place))
                .unwrap_or_default();
            let mut before = before.split_whitespace();
            found += &place;
            for layout in &layouts {
                let plan = plan(&layout.split(',').collect::<Vec<_>>());
                let (mut chosen, mut least) = (String::new(), u32::MAX);
                for candidate in reverse::candidates(&plan, &target, placement) {
                    // For aligned pointers, then for more.
                    if candidate.launch.alignment < least {
                        least = candidate.launch.alignment;
                        let _ = write!(
                            chosen,
                            " {} {}",
                            candidate.launch.entry.name,
                            candidate.variant()
                        );
                    }
                }
                // FNV-1a.
                let hash = chosen.bytes().fold(0x811c_9dc5, |hash: u32, byte| {
                    (hash ^ u32::from(byte)).wrapping_mul(0x100_0193)
                });
                let hash = format!("{:04x}", hash & 0xffff);
                if before.next() != Some(&hash) {
                    moved.push(format!("{place} {layout}:{chosen}"));
                }
                found = found + " " + &hash;
            }
            found += "\n";
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(&path, &found).expect("the golden file can be written");
    }
    let same = found == std::fs::read_to_string(&path).unwrap_or_default();
    assert!(same, "{} choices moved:\n{}", moved.len(), moved.join("\n"));
}

#[test]
fn the_least_estimate_is_chosen_and_its_launch_fits() {
    let mut files = recorded().into_iter();
    let (.., text) = files
        .find(|(name, ..)| name == "h100-seed-2001")
        .expect("a file of random layouts");
    let mut layouts: Vec<&str> = times(&text).into_keys().collect();
    layouts.sort_unstable();
    for layout in layouts.into_iter().step_by(2).take(300) {
        let plan = plan(&layout.split(',').collect::<Vec<_>>());
        for (name, target) in GpuTarget::NAMED {
            for (placement, pointers) in Placement::ALL
                .into_iter()
                .flat_map(|placement| [16, 0].map(|pointers| (placement, pointers)))
            {
                let what = format!(
                    "{layout} on {name} {placement:?}, pointers at multiples of {pointers}"
                );
                let launches = reverse::select(&plan, target, placement, pointers);
                let candidates = reverse::candidates(&plan, target, placement);
                let operator = OperatorPlan::ReverseSubsequences(plan.clone());
                let explained = explain_plan(&operator, target, CompileOptions::default()).modes;
                let runs =
                    placement == Placement::OutOfPlace || plan.in_place && plan.axis.size > 1;
                assert_eq!(
                    (launches.is_empty(), candidates.is_empty()),
                    (!runs, !runs),
                    "{what}"
                );
                assert!(
                    candidates.is_sorted_by_key(|found| found.estimate()),
                    "{what}"
                );
                // No kernel is faster than the memory, even on a GPU that was not measured. In place, lanes with a length
                // of 0 or 1 need not move.
                let layouts = reverse::layouts(&plan, target, placement);
                let mut least = layouts
                    .iter()
                    .map(|layout| layout.work().bytes)
                    .fold(f64::MAX, f64::min);
                if placement == Placement::InPlace {
                    let size = f64::from(plan.axis.size);
                    least *= (size - 1.0) / (size + 1.0);
                }
                for candidate in &candidates {
                    let memory = estimate::terms(&candidate.work, candidate.launch.grid, target)[1];
                    let estimate = candidate.microseconds.expect("an estimate");
                    let shown = candidate.estimate().expect("an estimate").as_secs_f64() * 1e6;
                    assert!(
                        (shown - estimate).abs() < 0.001,
                        "{what}: {shown} of {estimate} µs"
                    );
                    assert!(
                        estimate >= memory,
                        "{what}: {estimate} µs, {memory} µs of memory: {candidate:?}"
                    );
                    let bytes = candidate.work.bytes;
                    assert!(
                        bytes >= least * 0.999,
                        "{what}: moves {bytes} of {least} bytes: {candidate:?}"
                    );
                }
                let mut least = u32::MAX;
                for (n, launch) in launches.iter().enumerate() {
                    // The least of those that accept more pointers than the launches before.
                    let first = candidates
                        .iter()
                        .find(|found| found.launch.alignment < least)
                        .expect("itself");
                    assert_eq!(*launch, first.launch, "{what}");
                    // The launches for any pointers begin with those for aligned ones.
                    let shown = &explained[placement as usize].kernels[n];
                    let is_chosen = matches!(&shown.outcome, Outcome::Chosen(of) if of.alignment == launch.alignment);
                    let is_it =
                        shown.kernel == launch.entry.name && shown.variant == first.variant();
                    assert!(is_chosen && is_it, "{what}: {first:?}");
                    let count = explained[placement as usize].launches().count();
                    assert!(pointers > 0 || count == launches.len(), "{what}");
                    least = launch.alignment;
                    let Grid {
                        blocks,
                        threads,
                        shared,
                    } = launch.grid;
                    assert!(
                        shared <= target.shared_memory && threads <= 1024,
                        "{what}: {launch:?}"
                    );
                    assert!((1..1 << 31).contains(&blocks), "{what}: {launch:?}");
                    assert!(
                        target.clusters || !launch.entry.name.contains("clusters"),
                        "{what}: {launch:?}"
                    );
                }
                assert!(
                    !runs || pointers.max(plan.width).is_multiple_of(least),
                    "{what}: {launches:?}"
                );
            }
        }
    }
}

/// 100 thread blocks of 8 warps, one on each SM. The memory moves 32 bytes a nanosecond, and a cycle is one.
#[test]
fn an_estimate_counts_each_of_its_terms() {
    let h100: GpuTarget = "h100".parse().expect("a target");
    let target = GpuTarget {
        multiprocessors: 100,
        bandwidth: 32,
        clock: 1000,
        ..h100
    };
    let grid = Grid {
        blocks: 100,
        threads: 256,
        shared: 0,
    };
    // 1,000 sectors of memory, and 25,000 misses of sectors that the L1 cache no longer had.
    let work = estimate::Work {
        bytes: 32_000.0,
        misses: 26_000.0,
        rounds: 3.0,
    };
    let terms = estimate::terms(&work, grid, &target);
    let required = [1.0, 1.0, 0.25, 0.04, 3.0];
    assert!(
        terms
            .iter()
            .zip(required)
            .all(|(found, required)| (found - required).abs() < 1e-9),
        "{terms:?}"
    );
    let estimate = estimate::microseconds(&[0.5, 4.0, 10.0, 12.5, 2.0], &terms);
    assert!((estimate - (0.5 + 5.0 + 6.0)).abs() < 1e-6, "{estimate}");
}

/// Columns of a matrix become rows. A sector of the input has elements of eight of them, and between two the L1 cache
/// gets a sector for each element of a row: it keeps few, and loses many.
#[test]
fn sectors_that_the_l1_cache_loses_are_missed_again() {
    let (target, elements) = ("h100".parse().expect("a target"), 65536.0 * 8.0);
    let sectors_of_both = elements / 8.0 * 2.0;
    for (fields, misses) in [
        ("4,65536x8,1,1x65536,8x1,65536x1", sectors_of_both),
        (
            "4,8x65536,1,1x8,65536x1,8x1",
            elements + sectors_of_both / 2.0,
        ),
    ] {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        let candidates = reverse::candidates(&plan, &target, Placement::OutOfPlace);
        let found: Vec<f64> = candidates
            .iter()
            .filter(|found| found.launch.entry.name.starts_with("reverse_elementwise"))
            .map(|found| found.work.misses)
            .collect();
        // Single elements are written in parts of sectors, which count as well.
        assert_eq!(found.len(), 3, "{fields}");
        assert!(
            found
                .iter()
                .all(|found| (1.0..=1.5).contains(&(found / misses))),
            "{fields}: {found:?} of {misses}"
        );
    }
}

#[test]
fn offsets_near_the_largest_do_not_overflow() {
    // Three elements 1.5 · 10⁹ bytes apart: twice that is an offset in the tensor, and three times is not.
    let plan = plan(&[
        "1",
        "3x5x40x2",
        "1",
        "1500000000x80x1x40",
        "2x240x6x1",
        "1x1x1x1",
    ]);
    for (name, target) in GpuTarget::NAMED {
        assert!(
            !reverse::candidates(&plan, target, Placement::OutOfPlace).is_empty(),
            "{name}"
        );
    }
}

/// Rows of tiles are along two dimensions that are contiguous together, but not if they would have to be reversed then.
#[test]
fn transposed_rows_are_long_and_not_reversed() {
    let target = "h100".parse().expect("a target");
    // The fields of a layout, a launch in shared memory, and its last parameters: how, two.
    let cases = [
        (
            "1,3776x4x448,1,1792x448x1,4x1x15104,3776x1x1",
            "reverse_transposed_1",
            [0, 1],
        ),
        (
            "1,64x1024x512,2,1024x1x65536,524288x512x1,64x1x1",
            "reverse_transposed_1",
            [0, 0],
        ),
        (
            "2,64x1024x512,2,1024x1x65536,524288x512x1,1x1024x1",
            "reverse_transposed_scatter_2",
            [3, 1],
        ),
        (
            "1,2048x1000x32,2,32000x32x1,1x2048x2048000,1x1000x1",
            "reverse_transposed_1",
            [1, 1],
        ),
        (
            "1,64x300x512,1,300x1x19200,153600x512x1,64x1x1",
            "reverse_transposed_1",
            [1, 1],
        ),
        (
            "2,64x300x512,1,300x1x19200,153600x512x1,64x1x512",
            "reverse_transposed_2",
            [2, 0],
        ),
        (
            "4,54166x3x100,1,3x1x162498,300x100x1,54166x1x1",
            "reverse_transposed_4",
            [1, 1],
        ),
    ];
    for (layout, kernel, expected) in cases {
        let plan = plan(&layout.split(',').collect::<Vec<_>>());
        let launches = reverse::candidates(&plan, &target, Placement::OutOfPlace)
            .into_iter()
            .map(|found| found.launch);
        let of_tiles = |launch: &Launch| {
            launch.entry.name.starts_with("reverse_transposed") && launch.grid.shared > 0
        };
        let found: Vec<_> = launches
            .filter(of_tiles)
            .map(|launch| (launch.entry.name, launch.params[61]))
            .collect();
        let [how, two] = expected;
        assert!(
            found.contains(&(kernel, how | two << 32)),
            "{layout}: {found:?}"
        );
    }
}

/// A tile of one element along a dimension scatters, although lengths vary along that dimension.
#[test]
fn transposed_tiles_of_one_element_along_a_dimension_scatter() {
    let fields = "8,16x24x7x32x64,3,344064x14336x2048x64x1,5376x7x1x168x86016,16x24x1x1x64";
    let plan = plan(&fields.split(',').collect::<Vec<_>>());
    let candidates = reverse::candidates(
        &plan,
        &"h100".parse().expect("a target"),
        Placement::OutOfPlace,
    );
    let of = candidates
        .iter()
        .find(|found| found.variant() == "8 elements of a row")
        .expect("tiles of 7 by 32");
    // The last parameters: dimensions of a tile, whether it scatters.
    assert_eq!(
        of.launch.params.last().map(|last| last >> 32),
        Some(1),
        "{:?}",
        of.launch
    );
}

#[test]
fn terms_of_recorded_layouts() {
    let (Some(layouts), Some(out)) = (
        std::env::var_os("ESTIMATE_LAYOUTS"),
        std::env::var_os("ESTIMATE_TERMS"),
    ) else {
        return;
    };
    let text = std::fs::read_to_string(layouts).expect("a file of layouts");
    let target: GpuTarget = std::env::var("ESTIMATE_TARGET")
        .as_deref()
        .unwrap_or("h100")
        .parse()
        .expect("a target");
    let names = ["copying", "in place"];
    let mut terms_of_all = String::from("layout,mode,costs,kernel,variant,alignment,terms\n");
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split(',').collect();
        let plan = plan(&columns[1..7]);
        for (placement, name) in Placement::ALL.into_iter().zip(names) {
            for found in reverse::candidates(&plan, &target, placement) {
                let Candidate {
                    launch,
                    work,
                    costs,
                    ..
                } = &found;
                let terms =
                    estimate::terms(work, launch.grid, &target).map(|term| format!("{term:.6e}"));
                let (family, unit) = costs.expect("reversals have costs");
                // Out-of-place kernels that run in place have the coefficients of out of place.
                let costs_of = if launch.entry.name.contains("in_place") {
                    Placement::InPlace
                } else {
                    Placement::OutOfPlace
                };
                let costs = format!("{} {} {unit}", costs_of.of(&names), family.name);
                let (kernel, variant, alignment) =
                    (launch.entry.name, found.variant(), launch.alignment);
                let line = format!(
                    "{},{name},{costs},{kernel},{variant},{alignment}",
                    columns[0]
                );
                let _ = writeln!(terms_of_all, "{line},{}", terms.join(" "));
            }
        }
    }
    std::fs::write(out, terms_of_all).expect("the terms can be written");
}
