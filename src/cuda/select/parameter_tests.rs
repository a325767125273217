//! Parameters and shared memory of launches, read as the comments of parameters.cuh say, describe all elements.

use std::collections::BTreeSet;

use super::count_tests::{assert_near, count, elements, family, read, target, LAYOUTS, SHORT};
use super::estimate_tests::plan;
use super::layout::Layout;
use super::{reverse_subsequences as reverse, Candidate};
use crate::cuda::launch::Grid;
use crate::cuda::parameters::transposed::{Direct, Transposed};
use crate::cuda::parameters::{
    clusters::Clusters, columns::*, elementwise::*, lanes::Lanes, rows::*,
};
use crate::cuda::parameters::{segments::Segments, strips::Strips, Reverse, ReverseDim};
use crate::cuda::{GpuTarget, Placement};
use crate::plan::reverse_plan::Plan;

/// Layouts that are contiguous along different dimensions, and short lanes.
const MORE: [&str; 6] = [
    "1,3x300x208,0,62400x1x300,62400x208x1,1x1x1",
    "4,3x70x200,0,14000x1x70,14000x200x1,3x1x1",
    "2,3x4x5x6x40,1,1x3600x5x600x15,4800x1200x240x40x1,3x1x5x1x1",
    "4,512x5,1,5x1,5x1,512x1",
    "2,512x12,1,12x1,12x1,512x1",
    "8,512x3,1,3x1,3x1,512x1",
];

fn steps(size: u32, step: u32) -> u32 {
    (0..size).step_by(step as usize).count() as u32
}

/// The size of a dimension, and its strides: of the input, the output, the axis, the lengths, and lanes cut into parts.
type Walked = (u32, [u32; 5]);

/// The dimensions of a small kernel, whose flags are compared.
fn walked_small(plan: &Plan, found: &Candidate) -> Vec<Walked> {
    let (p, in_place) = (
        read::<Small>(&found.launch),
        found.launch.entry.name.contains("in_place"),
    );
    let varies = plan
        .dimensions
        .iter()
        .any(|d| d.out_stride == 1 && d.length_stride != 0);
    let highest = if in_place {
        found.variant.name != "exchanges"
    } else {
        varies && found.variant.name.is_empty()
    };
    let (used, axis) = (
        p.dims.iter().filter(|d| d.divisor > 0).count(),
        (p.flags & !SWAPS) / AXIS,
    );
    let flags = [
        u32::from(plan.wide_lengths),
        2 * u32::from(used > 3),
        u32::from(highest) << 31,
        16 * axis,
    ];
    assert_eq!(
        p.flags,
        flags.iter().sum::<u32>(),
        "{}: flags",
        found.launch.entry.name
    );
    let lanes = if p.lanes == u32::MAX {
        [0; 5]
    } else {
        [1, 0, p.dims[0].divisor, 0, 0]
    };
    let is_axis = |n: usize| u32::from(n as u32 == axis);
    let of = |(n, d): (usize, &SmallDim)| {
        (
            d.divisor,
            [
                d.in_stride,
                d.out_stride,
                is_axis(n),
                d.length_stride,
                lanes[n],
            ],
        )
    };
    p.dims[..used].iter().enumerate().map(of).collect()
}

/// The dimensions of another kernel. Its shared memory, its thread blocks and how it copies are compared.
fn walked(plan: &Plan, found: &Candidate, kernel: &str) -> Vec<Walked> {
    let (launch, r, width) = (&found.launch, read::<Reverse>(&found.launch), plan.width);
    let unit = found.costs.expect("costs").1;
    let (mut shared, mut blocks) = (launch.grid.shared, launch.grid.blocks);
    let of = |d: &ReverseDim| {
        (
            d.size.divisor,
            [d.in_stride, d.out_stride, d.axis, d.length_stride, 0],
        )
    };
    let mut dims: Vec<Walked> = r.dims().iter().map(of).collect();
    let outside = dims.iter().map(|(size, _)| size).product::<u32>();
    let (mut run, mut run_length_stride) = (1, 0);
    match kernel {
        "reverse_elementwise" if found.variant.name.starts_with("gathers") => {
            let (elements, row) = (found.variant.number / unit, dims[0].0);
            let mut vectors = (0..elements * row).step_by(elements as usize);
            let in_rows = if vectors.all(|n| n / row == (n + elements - 1) / row) {
                IN_ROWS
            } else {
                0
            };
            let is_half = found.variant.number < 16.min(8 * unit);
            assert_eq!(
                r.form,
                in_rows
                    + if is_half {
                        GATHERED_HALF_VECTORS
                    } else {
                        GATHERED_VECTORS
                    }
            );
        }
        "reverse_packed_rows" => run = read::<Segments>(&found.launch).row_bytes.divisor / width,
        "reverse_single_rows" => {
            let p: RowTiles = read(&found.launch);
            run = p.row_bytes.divisor / width;
            let vectors = steps(p.tile_row_bytes, 16) + 2 + RUN_SLACK_BEHIND;
            let groups = launch.grid.threads >> p.group_size_log2;
            shared = (RUN_SLACK_BEFORE + groups * vectors) * 16;
            blocks = steps(r.items, groups);
        }
        "reverse_row_tiles" => {
            let p: RowTiles = read(&found.launch);
            run = p.row_bytes.divisor / width;
            // The whole vectors of a tile at each end of the axis, and one more for each end of the tile.
            let vectors = p.rows_per_tile * p.tile_row_bytes / 16 + 1 + 1 + RUN_SLACK_BEHIND;
            let both = if launch.entry.name.contains("in_place") {
                vectors
            } else {
                0
            };
            shared = (RUN_SLACK_BEFORE + vectors + both) * 16;
        }
        "reverse_columns" => {
            let p: Columns = read(&found.launch);
            (run, run_length_stride) = (p.columns.divisor, p.length_stride);
            let of_group = [4 * run, p.group_bytes.divisor];
            let vectors = of_group.map(|bytes| steps(bytes * p.groups_per_block, 16));
            shared = (vectors.iter().sum::<u32>() + 1) * 16;
        }
        "reverse_thread_columns" => {
            let p: ThreadColumns = read(&found.launch);
            (run, run_length_stride) = (p.pieces.divisor, p.length_stride * p.lanes);
        }
        "reverse_strips" | "reverse_unaligned_strips" => {
            let p: Strips = read(&found.launch);
            (run, run_length_stride) = (p.row_lanes, p.length_stride);
        }
        "reverse_clusters" => {
            let p: Clusters = read(&found.launch);
            (run, run_length_stride) = (p.row_lanes, p.length_stride);
            // A thread block has at most 32 of every 256 rows, and banks differ by four elements.
            shared = p.strip_bytes * (32 * steps(r.axis_size, 256) + 4);
            assert_eq!(p.lane_pitch * p.strip_bytes, shared * unit);
        }
        "reverse_transposed" | "reverse_transposed_scatter" => {
            let p: Transposed = read(&found.launch);
            dims.extend(
                [p.along_in, p.along_out]
                    .iter()
                    .flat_map(|side| [of(&side.inner), of(&side.outer)]),
            );
            let tile = if unit < 4 {
                [128 / unit, 128]
            } else {
                [p.tile; 2]
            };
            let [down, across] = [
                steps(p.along_in.size, tile[0]),
                steps(p.along_out.size, tile[1]),
            ];
            assert_eq!(p.tiles_along_out.divisor, across);
            blocks = outside * down * across;
            assert_eq!(outside * p.tiles.divisor, blocks);
            // An element between columns or, of narrow elements that are scattered, a vector, also before the first.
            let (between, before) = match kernel {
                "reverse_transposed_scatter" => (16, 16),
                _ if unit < 4 => (0, 0),
                _ => (unit, 0),
            };
            shared = before + (0..tile[0]).map(|_| tile[1] * unit + between).sum::<u32>();
        }
        "reverse_transposed_directly" => {
            let p: Direct = read(&found.launch);
            blocks = outside;
            for (n, dim) in dims.iter_mut().enumerate().take(p.tile_rank as usize) {
                let tiles = if n == p.repeated as usize { p.tiles } else { 1 };
                assert_eq!(
                    (p.steps[n], dim.0),
                    (p.threads[n].divisor * tiles, steps(p.sizes[n], p.steps[n]))
                );
                dim.0 = p.sizes[n];
            }
        }
        _ => {}
    }
    assert_eq!(
        launch.grid,
        Grid {
            shared,
            blocks,
            ..launch.grid
        },
        "{}",
        launch.entry.name
    );
    dims.push((run, [1, 1, 0, run_length_stride, 0]));
    dims
}

#[test]
fn parameters_describe_all_elements() {
    let mut kernels = BTreeSet::new();
    for (n, fields) in LAYOUTS
        .iter()
        .map(|(fields, _)| *fields)
        .chain(SHORT)
        .chain(MORE)
        .enumerate()
    {
        let mut plan = plan(&fields.split(',').collect::<Vec<_>>());
        plan.wide_lengths = n % 2 == 0;
        plan.blocks_as_elements
            .iter_mut()
            .for_each(|blocks| blocks.wide_lengths = n % 2 == 0);
        let all = elements(&plan);
        for found in Placement::ALL
            .into_iter()
            .flat_map(|placement| reverse::candidates(&plan, &target(), placement))
        {
            let name = found.launch.entry.name;
            let kernel = family(name);
            let (r, small) = (read::<Reverse>(&found.launch), read::<Small>(&found.launch));
            let (mut dims, axis, lanes) = match kernel {
                "reverse_small" => (
                    walked_small(&plan, &found),
                    [small.axis_size, small.axis_in_stride, small.axis_out_stride],
                    small.lanes,
                ),
                _ => (
                    walked(&plan, &found, kernel),
                    [r.axis_size, r.axis_in_stride, r.axis_out_stride],
                    u32::MAX,
                ),
            };
            assert_eq!(axis[0], plan.axis.size);
            if dims.iter().all(|(_, strides)| strides[2] == 0) {
                dims.push((axis[0], [0, 0, 1, 0, 0]));
            }
            let mut places = vec![[0u64; 5]];
            for (size, strides) in dims {
                let next = |&place: &[u64; 5]| {
                    (0..size)
                        .map(move |c| std::array::from_fn(|k| place[k] + u64::from(c * strides[k])))
                };
                places = places.iter().flat_map(next).collect();
            }
            places.retain(|place| place[4] < lanes.into());
            let [in_stride, out_stride] = [axis[1], axis[2]].map(u64::from);
            let place = |&[a, b, t, length, _]: &[u64; 5]| {
                [a + t * in_stride, b + t * out_stride, t, length]
            };
            let mut places: Vec<_> = places.iter().map(place).collect();
            places.sort_unstable();
            // Strides count elements, also in kernels that move rows of them in units.
            let unit = u64::from(match kernel {
                "reverse_row_tiles" | "reverse_single_rows" | "reverse_packed_rows" => plan.width,
                "reverse_thread_columns" => found.launch.access,
                _ => found.costs.expect("costs").1,
            });
            let swaps = found.variant.name != "exchanges"
                && ["reverse_small", "reverse_elementwise"].contains(&kernel);
            let most = if swaps && name.contains("in_place") {
                axis[0] / 2
            } else {
                axis[0]
            };
            let units = all
                .iter()
                .filter(|of| of.bytes[1] % unit == 0 && of.t < most.into());
            let mut expected: Vec<_> = units
                .map(|of| [of.bytes[0] / unit, of.bytes[1] / unit, of.t, of.length])
                .collect();
            expected.sort_unstable();
            assert!(places == expected, "{fields}: {name}, {}", found.variant());
            kernels.insert(name);
        }
    }
    assert!(kernels.len() > 40, "{kernels:?}");
}

/// Kernels take up to all of the shared memory that a GPU has, and never more.
#[test]
fn shared_memory_may_be_full() {
    let families = [
        "clusters",
        "columns",
        "thread_columns",
        "strips",
        "lanes",
        "packed_lanes",
    ];
    for (fields, _) in LAYOUTS {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        for found in reverse::candidates(&plan, &target(), Placement::OutOfPlace) {
            let (name, shared) = (found.launch.entry.name, found.launch.grid.shared);
            let is_limited = families.iter().any(|of| {
                name.strip_prefix("reverse_")
                    .is_some_and(|n| n.starts_with(of))
            });
            if shared > 0 && is_limited {
                for (shared_memory, runs) in [(shared, true), (shared - 1, false)] {
                    let target = GpuTarget {
                        shared_memory,
                        ..target()
                    };
                    let of = |other: &Candidate| {
                        (
                            other.launch.entry.name,
                            other.launch.alignment,
                            other.variant,
                            other.costs.map(|of| of.1),
                        ) == (
                            name,
                            found.launch.alignment,
                            found.variant,
                            found.costs.map(|of| of.1),
                        )
                    };
                    let found = reverse::candidates(&plan, &target, Placement::OutOfPlace);
                    assert_eq!(
                        found.iter().any(of),
                        runs,
                        "{fields}: {name}, {shared_memory} bytes"
                    );
                }
            }
        }
    }
}

/// A warp stores the ends of its lanes, of all of them at once where they share lines.
#[test]
fn ends_of_short_lanes_are_stored_together() {
    for fields in &MORE[3..] {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        let (width, pitch, target) = (
            plan.width as usize,
            plan.dimensions[0].out_stride * plan.width,
            target(),
        );
        let layout = Layout::new(&plan, Placement::OutOfPlace, &target);
        for found in reverse::candidates(&plan, &target, Placement::OutOfPlace) {
            if found.launch.entry.name.starts_with("reverse_lanes") {
                let lanes = 32 >> read::<Lanes>(&found.launch).group_size_log2.min(5);
                let lines =
                    |begin: u32| count((begin..begin + lanes * pitch).map(|byte| byte / 128));
                let lines = (0..128).step_by(16).map(lines).sum::<u64>() as f64 / 8.0;
                let narrow = if width < 4 {
                    (0..16).step_by(width).count()
                } else {
                    0
                };
                let forms = ((0..16).step_by(4).count() + narrow) as f64;
                let of_warp = (layout.stores_of_end() * f64::from(lanes)).min(forms * lines);
                let ends = 2.0 * 512.0 / f64::from(lanes) * of_warp;
                assert_near(found.work.misses - layout.work().misses, ends, 0.01, fields);
            }
        }
    }
}

/// Kernels that cannot run a layout, or that can at an exact limit: its fields, the placement, the kernel, and why not.
#[test]
fn limits_are_exact() {
    let cases = [
        (
            "4,6x16,0,16x1,20x1,1x16",
            Placement::OutOfPlace,
            "reverse_columns",
            "rows of lanes are not adjacent in memory",
        ),
        (
            "4,6x8,0,20x1,20x1,1x8",
            Placement::OutOfPlace,
            "reverse_thread_columns",
            "",
        ),
        (
            "1,4294966271,0,1,1,1",
            Placement::OutOfPlace,
            "reverse_small",
            "",
        ),
        (
            "4,2x1200000000,0,1200000000x1,1200000000x1,1x1",
            Placement::OutOfPlace,
            "reverse_row_tiles",
            "a row has 4 GiB or more",
        ),
        (
            "8,9x20,0,20x1,20x1,1x1",
            Placement::OutOfPlace,
            "reverse_row_tiles",
            "its units have at most 4 bytes",
        ),
        (
            "2,6x16,0,17x1,17x1,1x1",
            Placement::OutOfPlace,
            "reverse_row_tiles",
            "a tile has a single row",
        ),
        (
            "2,6x15,0,24x1,24x1,1x1",
            Placement::OutOfPlace,
            "reverse_single_rows",
            "a row is shorter than 32 bytes",
        ),
        (
            "2,6x16,0,17x1,17x1,1x1",
            Placement::OutOfPlace,
            "reverse_single_rows",
            "",
        ),
        (
            "1,6x255,0,256x1,256x1,1x1",
            Placement::InPlace,
            "reverse_row_tiles_in_place",
            "rows that are not adjacent have fewer than 256 bytes",
        ),
        (
            "4,6x16,0,16x1,16x1,1x16",
            Placement::InPlace,
            "reverse_transposed",
            "it does not run in place",
        ),
        (
            "4,6x16,0,16x1,16x1,1x16",
            Placement::InPlace,
            "reverse_long_lanes_in_place",
            "the axis is not contiguous",
        ),
    ];
    for (fields, placement, kernel, reason) in cases {
        let plan = plan(&fields.split(',').collect::<Vec<_>>());
        let rejected = reverse::rejected(&plan, &target(), placement);
        let found = rejected
            .iter()
            .find(|(name, _)| name == kernel)
            .map(|(_, reason)| reason.to_string());
        assert_eq!(found.unwrap_or_default(), reason, "{fields}: {kernel}");
    }
}
