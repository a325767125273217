//! Counts what kernels do a second way, element by element, on small layouts.

use std::collections::{BTreeMap, BTreeSet};

use super::estimate_tests::plan;
use super::layout::traffic::Side;
use super::layout::Layout;
use super::{fill_value_sequence, reverse_subsequences as reverse, Candidate};
use crate::cuda::launch::Launch;
use crate::cuda::parameters::columns::Columns;
use crate::cuda::parameters::fill::FillStrided;
use crate::cuda::parameters::lanes::Lanes;
use crate::cuda::parameters::rows::RowTiles;
use crate::cuda::parameters::segments::Segments;
use crate::cuda::{GpuTarget, Placement};
use crate::desc::{BufferTensorDesc, FillValueSequenceDesc, ScalarUnion, TensorDataType};
use crate::plan::reverse_plan::{Dimension, Plan};

/// An element: its byte in the input and in the output, its position on the axis, which row it is in, its place there,
/// and the place of its length. Elements of a row are contiguous in both tensors, if those of any dimension are.
pub(super) struct Element {
    pub bytes: [u64; 2],
    pub t: u64,
    row: u64,
    column: u64,
    pub length: u64,
}

pub(super) fn elements(plan: &Plan) -> Vec<Element> {
    let width = u64::from(plan.width);
    let mut found = vec![Element {
        bytes: [0; 2],
        t: 0,
        row: 0,
        column: 0,
        length: 0,
    }];
    for (n, d) in plan.dimensions.iter().chain([&plan.axis]).enumerate() {
        let is_axis = n == plan.dimensions.len();
        let is_row = !is_axis && d.in_stride == 1 && d.out_stride == 1;
        let step = |before: &Element, c: u64| Element {
            bytes: [
                before.bytes[0] + c * u64::from(d.in_stride) * width,
                before.bytes[1] + c * u64::from(d.out_stride) * width,
            ],
            t: if is_axis { c } else { before.t },
            row: if is_row || is_axis {
                before.row
            } else {
                before.row * u64::from(d.size) + c
            },
            column: if is_row { c } else { before.column },
            length: before.length + c * u64::from(d.length_stride),
        };
        found = found
            .iter()
            .flat_map(|before| (0..d.size.into()).map(move |c| step(before, c)))
            .collect();
    }
    found
}

pub(super) fn count<T: Ord>(of: impl Iterator<Item = T>) -> u64 {
    let mut all: Vec<T> = of.collect();
    // Neighbours are often the same, and sorting takes longest.
    all.dedup();
    all.sort_unstable();
    all.dedup();
    all.len() as u64
}

/// The mean of a count over all addresses at which a tensor may begin in a line of 64 bytes, at multiples of 64 if its
/// rows are.
fn mean(plan: &Plan, is_aligned: bool, of: impl Fn(u64) -> u64) -> f64 {
    let begins: Vec<u64> = (0..64)
        .step_by(if is_aligned { 64 } else { plan.width as usize })
        .collect();
    begins.iter().map(|&begin| of(begin) as f64).sum::<f64>() / begins.len() as f64
}

pub(super) fn assert_near(found: f64, counted: f64, part: f64, what: &str) {
    assert!(
        (found - counted).abs() <= part * counted,
        "{what}: {found}, counted {counted}"
    );
}

/// A kernel's name without its placement and unit.
pub(super) fn family(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_')
        .trim_end_matches("_in_place")
}

/// The parameters of a launch, or the first ones of those.
pub(super) fn read<P: bytemuck::Pod>(launch: &Launch) -> P {
    let mut bytes = bytemuck::cast_slice(&launch.params).to_vec();
    bytes.resize(bytes.len().max(size_of::<P>()), 0);
    bytemuck::pod_read_unaligned(&bytes[..size_of::<P>()])
}

/// The fields of a layout, and whether its rows begin at multiples of 64 bytes.
pub(super) const LAYOUTS: [(&str, bool); 7] = [
    ("2,6x200,1,200x1,200x1,6x1", false),
    ("1,20x297,1,416x1,384x1,20x1", false),
    ("4,3x16x48,1,768x48x1,768x48x1,3x1x1", true),
    ("2,2x30x96,1,2880x96x1,2880x96x1,2x1x96", true),
    ("8,2x30x20,1,720x24x1,720x24x1,2x1x20", true),
    ("4,64x96,0,96x1,1x64,1x96", true),
    ("2,4x10x64,1,0x64x1,640x64x1,4x1x1", true),
];

pub(super) fn target() -> GpuTarget {
    "h100".parse().expect("a target")
}

#[test]
fn memory_is_the_sectors_of_all_elements() {
    for (fields, is_aligned) in LAYOUTS {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        let all = elements(&plan);
        let has_length = |d: &&Dimension| d.length_stride != 0;
        let lengths: u32 = plan
            .dimensions
            .iter()
            .filter(has_length)
            .map(|d| d.size)
            .product();
        let lengths = f64::from(4 * lengths);
        let pieces = |side: usize, size: u64| {
            mean(&plan, is_aligned, |begin| {
                count(
                    all.iter()
                        .map(|element| (element.bytes[side] + begin) / size),
                )
            })
        };
        let [input, output, pairs] = [pieces(0, 32), pieces(1, 32), pieces(0, 64)];
        // Sectors that are written in part are also read.
        let whole = mean(&plan, is_aligned, |begin| {
            let mut sectors: Vec<u64> = all
                .iter()
                .map(|element| (element.bytes[1] + begin) / 32)
                .collect();
            sectors.sort_unstable();
            sectors
                .chunk_by(|a, b| a == b)
                .filter(|same| same.len() as u32 * plan.width == 32)
                .count() as u64
        });
        let target = target();
        let layout = Layout::new(&plan, Placement::OutOfPlace, &target);
        let found = layout.work();
        let moved = 32.0 * (input + output + (2.0 * pairs - input) + (output - whole)) + lengths;
        assert_near(found.bytes, moved, 0.06, &format!("{fields}: bytes"));
        assert_near(
            found.misses * 32.0,
            moved,
            0.06,
            &format!("{fields}: misses"),
        );
        assert_near(
            layout.moved_once(),
            input + output,
            0.03,
            &format!("{fields}: sectors"),
        );
        if !plan.in_place {
            continue;
        }
        // In place, with many lengths: what is below them moves, and memory reads pairs of sectors.
        let mut state = 1u64;
        let mut random = |most: u32| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % (u64::from(most) + 1)
        };
        let varies_in_row = plan
            .dimensions
            .iter()
            .any(|d| d.out_stride == 1 && d.length_stride != 0);
        let (mut moving, mut read, mut written) = (0.0, 0.0, 0.0);
        for turn in 0..200 {
            let begin = if is_aligned {
                0
            } else {
                turn * u64::from(plan.width) % 64
            };
            let mut lengths = BTreeMap::new();
            let mut below = Vec::new();
            for element in &all {
                let lane = (element.row, if varies_in_row { element.column } else { 0 });
                let length = *lengths
                    .entry(lane)
                    .or_insert_with(|| random(plan.axis.size));
                if element.t < length {
                    below.push(element.bytes[0] + begin);
                    moving += if 2 * element.t + 1 == length {
                        0.0
                    } else {
                        1.0
                    };
                }
            }
            read += 2.0 * count(below.iter().map(|byte| byte / 64)) as f64;
            written += count(below.iter().map(|byte| byte / 32)) as f64;
        }
        let layout = Layout::new(&plan, Placement::InPlace, &target);
        assert_near(
            layout.moving(),
            moving / 200.0 / all.len() as f64,
            0.1,
            &format!("{fields}: moving"),
        );
        let sectors = (read + written) / 200.0 / 2.0 / input;
        assert_near(
            layout.moving_sectors(),
            sectors.min(1.0),
            0.15,
            &format!("{fields}: moving sectors"),
        );
    }
}

/// Layouts of many short lanes, which thread blocks share.
pub(super) const SHORT: [&str; 3] = [
    "2,600x8x4,1,32x4x1,32x4x1,600x1x4",
    "1,900x64,1,64x1,64x1,900x1",
    "2,50x8x13,1,104x13x1,104x13x1,50x1x1",
];
/// Bytes that a thread block stages, and thread blocks that an H100 gets at least, two for each SM.
const STAGED: u64 = 16384;
const SHARES: u64 = 2 * 132;

/// Segments of a thread block, up to the number that fits: a multiple of 4 from 4 on.
fn few(segments: u64, fitting: u64) -> u64 {
    match segments.div_ceil(SHARES).min(fitting).max(1) {
        few @ 0..=4 => few,
        many => many - many % 4,
    }
}

/// Thread blocks of a candidate, and the steps of a thread that wait for each other, counted, if this is how its kernel
/// cuts the layout.
fn blocks_and_rounds(
    plan: &Plan,
    all: &[Element],
    placement: Placement,
    found: &Candidate,
) -> Option<(u64, Option<f64>)> {
    let (name, grid) = (found.launch.entry.name, found.launch.grid);
    let kernel = family(name);
    let (_, unit) = found.costs?;
    let (unit, access, variant) = (
        u64::from(unit),
        u64::from(found.launch.access),
        u64::from(found.variant.number),
    );
    let (width, threads, size) = (
        u64::from(plan.width),
        u64::from(grid.threads),
        u64::from(plan.axis.size),
    );
    let copies = placement == Placement::OutOfPlace;
    // In place, pairs of units.
    let items: Vec<&Element> = all
        .iter()
        .filter(|element| copies || element.t < size / 2)
        .collect();
    let units = |size: u64| count(items.iter().map(|element| element.bytes[1] / size));
    // Vectors of a run at any address, and steps of a thread that takes every nth.
    let vectors = |bytes: u64| (0..).find(|n| n * 16 >= bytes + 16 - width).unwrap_or(0);
    let steps = |items: u64, threads: u64| (0..items).step_by(threads as usize).count() as f64;
    let row_bytes = width * count(all.iter().map(|element| element.column));
    let rows = count(all.iter().map(|element| (element.row, element.t)));
    let lanes = count(all.iter().map(|element| (element.row, element.column)));
    let pieces = |size: u64| {
        count(
            all.iter()
                .map(|element| (element.row, element.column * width / size)),
        )
    };
    Some(match kernel {
        "reverse_small" if found.variant.name == "exchanges" => return None,
        "reverse_small" => {
            let gathers = plan
                .dimensions
                .iter()
                .any(|d| d.out_stride == 1 && d.length_stride != 0);
            let waits = copies && gathers && found.variant.name.is_empty();
            (
                units(unit).div_ceil(256),
                Some(if waits { 2.0 } else { 1.0 }),
            )
        }
        "reverse_elementwise" if found.variant.name.starts_with("gathers") => {
            (units(variant).div_ceil(256), Some(1.0))
        }
        "reverse_elementwise" if copies => (units(unit).div_ceil(4 * 256), Some(2.0)),
        "reverse_elementwise" => (units(unit).div_ceil(2 * 256), Some(1.0)),
        "reverse_row_tiles" => {
            let params: RowTiles = read(&found.launch);
            let [rows, bytes] = [params.rows_per_tile, params.tile_row_bytes].map(u64::from);
            let tile = |element: &&Element| {
                (
                    element.row,
                    element.t / rows,
                    element.column * width / bytes,
                )
            };
            let threads = if copies { threads } else { threads / 2 };
            let reverses = rows > 1 && (copies || unit > 1 || row_bytes < 16);
            let swaps = if reverses {
                steps(rows * bytes / unit / 2, threads)
            } else {
                0.0
            };
            (
                count(items.iter().map(tile)),
                Some(2.0 * steps((rows * bytes).div_ceil(16), threads) + swaps / 4.0),
            )
        }
        "reverse_single_rows" => {
            let params: RowTiles = read(&found.launch);
            let (bytes, group) = (
                u64::from(params.tile_row_bytes),
                1 << params.group_size_log2,
            );
            let parts = count(
                items
                    .iter()
                    .map(|element| (element.row, element.t, element.column * width / bytes)),
            );
            (
                parts.div_ceil(threads / group),
                Some(2.0 * steps(bytes.div_ceil(16), group)),
            )
        }
        "reverse_packed_lanes" | "reverse_packed_rows" => {
            let params: Segments = read(&found.launch);
            let is_group = params.vectors_per_segment > 0;
            let together = if is_group {
                threads >> params.group_size_log2
            } else {
                params.segments_per_block.into()
            };
            let segments = if kernel == "reverse_packed_lanes" {
                lanes
            } else {
                rows / size
            };
            let fitting = STAGED / (all.len() as u64 * width / segments);
            assert!(
                is_group || together == few(segments, fitting),
                "{name}: {together} of {segments} segments"
            );
            assert!(
                !is_group || params.vectors_per_segment % 2 == 1,
                "{name}: groups are in the same banks"
            );
            (segments.div_ceil(together), None)
        }
        "reverse_columns" => {
            let params: Columns = read(&found.launch);
            let (groups, together) = (rows / size, u64::from(params.groups_per_block));
            let fitting = STAGED / (size * row_bytes);
            assert_eq!(
                together,
                groups.div_ceil(SHARES).min(fitting).max(1),
                "{name}: groups of a thread block"
            );
            (groups.div_ceil(together), None)
        }
        "reverse_lanes" => {
            let lane = size * width;
            let of_lane = if found.launch.alignment == 16 {
                lane.div_ceil(16)
            } else {
                vectors(lane)
            };
            let params: Lanes = read(&found.launch);
            assert_eq!(
                params.vectors_per_lane % 2,
                1,
                "{name}: groups are in the same banks"
            );
            assert!(
                params.group_size_log2 > 0 || lane <= 16,
                "{name}: a thread writes parts of sectors"
            );
            let together = u64::from(grid.shared / 16 / params.vectors_per_lane);
            (
                lanes.div_ceil(together),
                Some(2.0 + steps(of_lane, threads / together)),
            )
        }
        "reverse_strips" | "reverse_unaligned_strips" => (pieces(variant), None),
        "reverse_clusters" => (8 * pieces(variant), None),
        "reverse_thread_columns" => {
            let barrier = if copies { 0.0 } else { 1.0 };
            (
                pieces(access).div_ceil(threads),
                Some(2.0 * steps(size, 8) + barrier),
            )
        }
        _ => return None,
    })
}

#[test]
fn grids_have_a_thread_for_each_item() {
    let mut kernels = BTreeSet::new();
    for fields in LAYOUTS.iter().map(|(fields, _)| *fields).chain(SHORT) {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        let all = elements(&plan);
        for placement in Placement::ALL
            .into_iter()
            .filter(|placement| *placement == Placement::OutOfPlace || plan.in_place)
        {
            for found in reverse::candidates(&plan, &target(), placement) {
                let name = found.launch.entry.name;
                // A kernel that copies in place does what it does apart.
                let of = if name.contains("in_place") {
                    Placement::InPlace
                } else {
                    Placement::OutOfPlace
                };
                let Some((blocks, rounds)) = blocks_and_rounds(&plan, &all, of, &found) else {
                    continue;
                };
                let what = format!("{fields}: {name}, {}", found.variant());
                assert_eq!(
                    u64::from(found.launch.grid.blocks),
                    blocks,
                    "{what}: thread blocks"
                );
                assert_eq!(
                    found.work.rounds,
                    rounds.unwrap_or(found.work.rounds),
                    "{what}: rounds"
                );
                kernels.insert(name);
            }
        }
    }
    assert!(kernels.len() > 30, "{kernels:?}");
}

/// The threads of a warp take neighbouring elements of the output.
#[test]
fn warps_access_the_sectors_of_their_elements() {
    for (fields, _) in LAYOUTS {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        let mut all = elements(&plan);
        all.sort_by_key(|element| element.bytes[1]);
        let target = target();
        let layout = Layout::new(&plan, Placement::OutOfPlace, &target);
        for (side, n) in [(Side::Input, 0), (Side::Output, 1)] {
            let counted = mean(&plan, false, |begin| {
                all.chunks(32)
                    .map(|warp| count(warp.iter().map(|element| (element.bytes[n] + begin) / 32)))
                    .sum()
            });
            let found = layout.accesses(side, plan.width, 1, false);
            assert_near(
                found,
                counted,
                0.2,
                &format!("{fields}: accesses of the {side:?}"),
            );
        }
    }
}

/// Neighbours in a transposed output have lengths that are apart, and those of one sector are far from each other.
#[test]
fn lengths_that_are_apart_are_loaded_one_by_one() {
    let target = target();
    let transposed = "1,2048x3x8,1,24x8x1,1x16384x2048,2048x1x8";
    for (fields, are_apart) in LAYOUTS
        .iter()
        .map(|(fields, _)| (*fields, 0.0))
        .chain([(transposed, 1.0)])
    {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        let mut all = elements(&plan);
        all.sort_by_key(|element| element.bytes[1]);
        let sector = |element: &Element| element.length * 4 / 32;
        let more: u64 = all
            .chunks(32)
            .map(|warp| count(warp.iter().map(sector)) - 1)
            .sum();
        let counted = are_apart * (more - count(all.iter().map(sector)).min(more)) as f64;
        let found =
            Layout::new(&plan, Placement::OutOfPlace, &target).lengths_missed(plan.width, 1);
        assert_near(found, counted, 0.01, fields);
    }
}

/// Lanes that share sectors of the input are at positions that differ. The L1 cache has all of them where the axis is
/// inside these lanes, and none where the axis is around many.
#[test]
fn sectors_stay_in_the_cache_where_the_axis_is_inside() {
    let target = target();
    for (fields, part) in [
        ("2,8x4096,0,4096x1,4096x1,1x4096", 0.5),
        ("2,8x65536,0,65536x1,65536x1,1x65536", 7.0 / 6.0),
        ("2,4096x8x2,1,1x8192x4096,16x2x1,4096x1x2", 0.0),
    ] {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        let layout = Layout::new(&plan, Placement::OutOfPlace, &target);
        let accesses = layout.accesses(Side::Input, plan.width, 1, true);
        let all = layout.again(Side::Input, accesses);
        assert!(all > 0.0);
        assert_near(
            layout.missed_again(Side::Input, accesses, true),
            f64::min(part, 1.0) * all,
            1e-6,
            fields,
        );
    }
}

/// Two strips that share a sector both read and write it, and read it again if they write a part of it.
#[test]
fn lanes_of_a_sector_that_stay_do_not_move_in_place() {
    let lanes = 1000.0;
    let plan = plan(&["8", "1000x4", "1", "4x1", "4x1", "1000x1"]);
    let bytes = Placement::ALL.map(|placement| {
        let candidates = reverse::candidates(&plan, &target(), placement);
        let mut found = candidates.iter();
        let is_it = |found: &&Candidate| found.launch.entry.name == "reverse_short_lanes_32";
        found.find(is_it).expect("a candidate").work.bytes
    });
    // Two of the five lengths, 0 and 1, leave a lane as it is.
    assert_near(bytes[0], lanes * (2.0 * 32.0 + 4.0), 0.01, "out of place");
    let moving = 3.0 / 5.0;
    assert_near(
        bytes[1],
        lanes * (2.0 * 32.0 * moving + 4.0),
        0.01,
        "in place",
    );
}

#[test]
fn strips_move_the_sectors_of_each() {
    let mut strips = 0;
    for (fields, _) in LAYOUTS {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        let all = elements(&plan);
        let target = target();
        let layout = Layout::new(&plan, Placement::OutOfPlace, &target);
        for found in reverse::candidates(&plan, &target, Placement::OutOfPlace) {
            if !found.variant.name.starts_with("strips")
                || found.launch.access < 4
                || found.launch.alignment < 4
            {
                continue;
            }
            let strip = u64::from(found.variant.number);
            let sectors = |side: usize| {
                let strip_of = |element: &Element| element.column * u64::from(plan.width) / strip;
                count(
                    all.iter()
                        .map(|element| (element.row, strip_of(element), element.bytes[side] / 32)),
                )
            };
            let repeated = (sectors(0) + sectors(1)) as f64 - layout.moved_once();
            let times = if strip < 32 { 2.0 } else { 1.0 };
            // Lines that several strips share are opened again.
            let bytes = layout.work().bytes * if strip < 128 { 1.0 + 3.0 / 16.0 } else { 1.0 };
            let what = format!("{fields}: {}, {}", found.launch.entry.name, found.variant());
            assert_near(
                found.work.bytes,
                bytes + times * repeated * 32.0,
                0.02,
                &what,
            );
            assert_near(
                found.work.misses,
                layout.work().misses + repeated,
                0.02,
                &what,
            );
            strips += 1;
        }
    }
    assert!(strips > 6, "{strips}");
}

/// A thread block reads and writes the sectors of its tile: in place, of one at each end of the axis, if they move. The
/// last tile of a lane counts as if it were whole.
#[test]
fn tiles_move_the_sectors_of_each() {
    let (mut tiles, target) = (0, target());
    let fields = [
        "4,3x16x48,1,768x48x1,768x48x1,3x1x1",
        "1,64x400,0,400x1,400x1,1x1",
    ];
    for (fields, placement) in fields
        .into_iter()
        .flat_map(|fields| Placement::ALL.map(|placement| (fields, placement)))
    {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        let (all, moving) = (
            elements(&plan),
            Layout::new(&plan, placement, &target).moving(),
        );
        for found in reverse::candidates(&plan, &target, placement) {
            let name = found.launch.entry.name;
            if !name.starts_with("reverse_row_tiles") && !name.starts_with("reverse_single_rows") {
                continue;
            }
            let params: RowTiles = read(&found.launch);
            let [rows, bytes] = [params.rows_per_tile, params.tile_row_bytes].map(u64::from);
            let tile = |element: &Element| {
                let behind = u64::from(plan.axis.size) - 1 - element.t;
                let is_behind = placement == Placement::InPlace && behind < element.t;
                let t = if is_behind { behind } else { element.t };
                (
                    element.row,
                    is_behind,
                    t / rows,
                    element.column * u64::from(plan.width) / bytes,
                )
            };
            let sectors = mean(&plan, false, |begin| {
                let side = |side: usize| {
                    all.iter()
                        .map(move |element| (tile(element), (element.bytes[side] + begin) / 32))
                };
                count(side(0)) + count(side(1))
            });
            let missing = 1.0
                - all.len() as f64 * f64::from(plan.width)
                    / (count(all.iter().map(tile)) * rows * bytes) as f64;
            let what = format!("{fields}: {name}, {}", found.variant());
            assert_near(
                found.work.misses * (1.0 - missing),
                sectors * moving,
                0.05,
                &what,
            );
            tiles += 1;
        }
    }
    assert!(tiles > 12, "{tiles}");
}

/// The first kernel that can run a fill's layout, with a thread for each vector, or for each element, with a table for
/// each of three coordinates that a vector may begin with, and whether rows are whole sectors.
#[test]
fn fills_take_the_kernel_of_their_layout() {
    let cases = [
        (
            TensorDataType::Float32,
            [(64, 1024), (1024, 1)],
            "fill_packed_4",
            65,
            0,
            None,
        ),
        (
            TensorDataType::Float32,
            [(8, 512), (256, 1)],
            "fill_rows_4",
            2,
            0,
            Some(1),
        ),
        (
            TensorDataType::UInt8,
            [(9, 4096), (4080, 1)],
            "fill_rows_1",
            9,
            0,
            Some(0),
        ),
        (
            TensorDataType::UInt16,
            [(8, 64), (20, 1)],
            "fill_rows_2",
            1,
            0,
            Some(0),
        ),
        (
            TensorDataType::UInt8,
            [(48, 1), (4, 48)],
            "fill_dense_1",
            1,
            0,
            Some(0),
        ),
        (
            TensorDataType::UInt8,
            [(3, 1), (64, 3)],
            "fill_dense_1",
            1,
            3 * 16,
            Some(0),
        ),
        (
            TensorDataType::Float16,
            [(3, 1), (64, 3)],
            "fill_dense_2",
            1,
            3 * 32,
            Some(0),
        ),
        (
            TensorDataType::UInt8,
            [(300, 4), (2, 2)],
            "fill_elements",
            3,
            0,
            Some(0),
        ),
        (
            TensorDataType::UInt8,
            [(300, 32), (20, 1)],
            "fill_elements",
            24,
            0,
            Some(0),
        ),
    ];
    for (data_type, dimensions, kernel, blocks, shared, whole) in cases {
        let (sizes, strides) = (
            dimensions.map(|(size, _)| size),
            dimensions.map(|(_, stride)| stride),
        );
        let output_tensor = BufferTensorDesc::strided(data_type, &sizes, &strides);
        let (value_start, value_delta) = (ScalarUnion::UInt8(0), ScalarUnion::UInt8(1));
        let desc = FillValueSequenceDesc {
            output_tensor,
            value_data_type: data_type,
            value_start,
            value_delta,
        };
        let plan = crate::plan::fill_plan::Plan::new(&desc).expect("a plan");
        let launch = fill_value_sequence::select(&plan, 16).swap_remove(0);
        let found = (launch.entry.name, launch.grid.blocks, launch.grid.shared);
        assert_eq!(found, (kernel, blocks, shared), "{sizes:?}");
        if let Some(whole) = whole {
            assert_eq!(read::<FillStrided>(&launch).whole, whole);
        }
    }
}
