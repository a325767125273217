//! REVERSE_SUBSEQUENCES: every kernel that can run a layout estimates its time, and the least wins.

use std::time::Duration;

use super::layout::{Layout, Sketch, NOT_IN_PLACE};
use super::{clusters, columns, elementwise, lanes, packed_lanes, rows, strips, transposed};
use super::{Candidate, Considered, RejectReason};
use crate::cuda::estimate;
use crate::cuda::launch::Launch;
use crate::cuda::target::GpuTarget;
use crate::mode::Mode;
use crate::plan::reverse_plan::Plan;

/// A kernel family, or one unit of it: its name, how its variants are called, and the variants.
pub(super) struct Choice {
    name: &'static str,
    variant: &'static str,
    variants: &'static [u32],
    sketch: fn(&Layout<'_>, u32) -> Result<Sketch, RejectReason>,
}

const fn one(name: &'static str, sketch: fn(&Layout<'_>, u32) -> Result<Sketch, RejectReason>) -> Choice {
    Choice { name, variant: "", variants: &[0], sketch }
}

/// The order does not matter. `reverse_elementwise` in units of one element runs any layout with any pointers.
#[rustfmt::skip] // a line each
const CANDIDATES: &[Choice] = &[
    one("reverse_small", elementwise::small::<16>),
    one("reverse_small", elementwise::small::<8>),
    one("reverse_small", elementwise::small::<4>),
    one("reverse_small", elementwise::small::<2>),
    one("reverse_small", elementwise::small::<1>),
    one("reverse_elementwise", elementwise::units::<16>),
    one("reverse_elementwise", elementwise::units::<8>),
    one("reverse_elementwise", elementwise::units::<4>),
    one("reverse_elementwise", elementwise::units::<2>),
    one("reverse_elementwise", elementwise::units::<1>),
    Choice { name: "reverse_elementwise", variant: "gathers {} bytes a thread", variants: &[4, 8, 16], sketch: elementwise::vectors },
    one("reverse_rows", rows::rows),
    one("reverse_packed_rows", rows::packed_rows::<4>),
    one("reverse_packed_rows", rows::packed_rows::<2>),
    one("reverse_packed_rows", rows::packed_rows::<1>),
    Choice { name: "reverse_row_tiles", variant: "tiles of {} bytes", variants: &rows::TILE_BYTES, sketch: rows::row_tiles::<4> },
    Choice { name: "reverse_row_tiles", variant: "tiles of {} bytes", variants: &rows::TILE_BYTES, sketch: rows::row_tiles::<2> },
    Choice { name: "reverse_row_tiles", variant: "tiles of {} bytes", variants: &rows::TILE_BYTES, sketch: rows::row_tiles::<1> },
    one("reverse_packed_lanes_in_registers", packed_lanes::in_registers),
    one("reverse_packed_lanes", packed_lanes::in_shared_memory),
    Choice { name: "reverse_lanes", variant: "{} vectors a thread", variants: &lanes::LANE_VECTORS, sketch: lanes::whole::<true> },
    Choice { name: "reverse_lanes", variant: "{} vectors a thread", variants: &lanes::LANE_VECTORS, sketch: lanes::whole::<false> },
    one("reverse_long_lanes", lanes::long::<true>),
    one("reverse_long_lanes", lanes::long::<false>),
    one("reverse_columns", columns::columns),
    Choice { name: "reverse_clusters", variant: "strips of {} bytes", variants: &clusters::STRIP_BYTES, sketch: clusters::clusters },
    Choice { name: "reverse_strips", variant: "strips of {} bytes", variants: &strips::STRIP_BYTES, sketch: strips::aligned },
    Choice { name: "reverse_unaligned_strips", variant: "strips of {} bytes", variants: &strips::STRIP_BYTES, sketch: strips::unaligned },
    one("reverse_transposed", transposed::transposed::<true>),
    one("reverse_transposed", transposed::transposed::<false>),
];

/// A kernel that can run the layout.
pub(super) struct Estimated {
    candidate: &'static Choice,
    variant: u32,
    pub sketch: Sketch,
    microseconds: f64,
}

impl Estimated {
    fn launch(&self, layout: &Layout<'_>) -> Launch {
        let Sketch { family, unit, grid, alignment, access, parameters, .. } = self.sketch;
        Launch {
            entry: family.of_unit(layout.mode, unit),
            blocks: grid.blocks,
            threads: grid.threads,
            shared: grid.shared,
            alignment,
            access,
            params: parameters(layout, &self.sketch, self.variant),
        }
    }

    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.microseconds.min(1e12) * 1e-6)
    }

    pub fn variant(&self) -> String {
        self.candidate.variant.replace("{}", &self.variant.to_string())
    }
}

/// The layout of a plan. In place there is none for lanes of one element, which do not move.
pub(super) fn layout<'a>(plan: &'a Plan, target: &'a GpuTarget, mode: Mode) -> Option<Layout<'a>> {
    (mode == Mode::Copying || plan.in_place && plan.axis.size > 1).then(|| Layout::new(plan, mode, target))
}

/// Calls `found` for the kernels that can run the layout, and `rejects` for the others.
fn each(layout: &Layout<'_>, mut found: impl FnMut(Estimated), mut rejects: impl FnMut(&'static Choice, RejectReason)) {
    for candidate in CANDIDATES {
        for &variant in candidate.variants {
            match (candidate.sketch)(layout, variant) {
                Ok(sketch) => {
                    let costs = layout.mode.of(&sketch.costs.modes);
                    let costs = &costs[(sketch.unit.trailing_zeros() as usize).min(costs.len() - 1)];
                    let terms = estimate::terms(&sketch.work, sketch.grid, layout.target);
                    let microseconds = estimate::microseconds(costs, &terms);
                    found(Estimated { candidate, variant, sketch, microseconds });
                }
                Err(reason) => rejects(candidate, reason),
            }
        }
    }
}

/// The kernels that can run the layout, least estimate first. Calls `rejects` for the others.
pub(super) fn estimate(layout: &Layout<'_>, rejects: impl FnMut(&'static Choice, RejectReason)) -> Vec<Estimated> {
    let mut found = Vec::new();
    each(layout, |kernel| found.push(kernel), rejects);
    let alignment = |kernel: &Estimated| kernel.sketch.alignment;
    found.sort_by(|a, b| a.microseconds.total_cmp(&b.microseconds).then(alignment(a).cmp(&alignment(b))));
    found
}

/// The launches for pointers at multiples of `pointers`: the least estimate, then the least of those that accept more
/// pointers, down to one that accepts all of them.
pub(crate) fn select(plan: &Plan, target: &GpuTarget, mode: Mode, pointers: u32) -> Vec<Launch> {
    let Some(layout) = layout(plan, target, mode) else { return Vec::new() };
    // The least of each alignment, from 1 byte to 16.
    let mut least: [Option<Estimated>; 5] = [const { None }; 5];
    let keep = |kernel: Estimated| {
        let place = &mut least[kernel.sketch.alignment.trailing_zeros() as usize];
        if place.as_ref().is_none_or(|least| kernel.microseconds < least.microseconds) {
            *place = Some(kernel);
        }
    };
    each(&layout, keep, |_, _| ());
    let mut launches = Vec::with_capacity(2);
    let mut from = &least[..];
    let by_time = |a: &(usize, &Estimated), b: &(usize, &Estimated)| a.1.microseconds.total_cmp(&b.1.microseconds);
    while let Some((n, kernel)) =
        from.iter().enumerate().filter_map(|(n, kernel)| Some((n, kernel.as_ref()?))).min_by(by_time)
    {
        launches.push(kernel.launch(&layout));
        if pointers.max(layout.width).is_multiple_of(kernel.sketch.alignment) {
            break;
        }
        from = &from[..n];
    }
    launches
}

/// Every launch that can run the plan, least estimate first.
pub(crate) fn candidates(plan: &Plan, target: &GpuTarget, mode: Mode) -> Vec<Candidate> {
    let Some(layout) = layout(plan, target, mode) else { return Vec::new() };
    let launch = |kernel: &Estimated| Candidate {
        variant: kernel.variant(),
        launch: kernel.launch(&layout),
        estimate: Some(kernel.duration()),
    };
    estimate(&layout, |_, _| ()).iter().map(launch).collect()
}

/// Every kernel, least estimate first, then those that cannot run the layout.
pub(crate) fn consider(plan: &Plan, target: &GpuTarget, mode: Mode) -> Vec<Considered> {
    let Some(layout) = layout(plan, target, mode) else { return Vec::new() };
    let mut rejected: Vec<(&str, RejectReason)> = Vec::new();
    let estimated =
        estimate(&layout, |candidate, reason| match rejected.iter_mut().find(|(name, _)| *name == candidate.name) {
            Some((_, last)) => *last = reason,
            None => rejected.push((candidate.name, reason)),
        });
    let mut considered: Vec<Considered> = Vec::new();
    for kernel in &estimated {
        let name = kernel.sketch.family.of_unit(mode, kernel.sketch.unit).name;
        if considered.iter().all(|other| other.kernel != name) {
            let result = Ok(kernel.duration());
            considered.push(Considered { kernel: name.to_owned(), variant: kernel.variant(), result });
        }
    }
    rejected.retain(|(name, _)| estimated.iter().all(|kernel| kernel.candidate.name != *name));
    considered.extend(rejected.into_iter().map(|(name, reason)| {
        let runs_in_place = mode == Mode::InPlace && reason != NOT_IN_PLACE.into();
        let suffix = if runs_in_place { "_in_place" } else { "" };
        Considered { kernel: format!("{name}{suffix}"), variant: String::new(), result: Err(reason) }
    }));
    considered
}
