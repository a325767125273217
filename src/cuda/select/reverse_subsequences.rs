//! REVERSE_SUBSEQUENCES: every kernel that can run a layout estimates its time, and the least wins.

use std::time::Duration;

use super::layout::{Layout, Sketch, NOT_DIVIDED, NOT_IN_PLACE, ONLY_IN_PLACE};
use super::{clusters, columns, elementwise, lanes, packed_lanes, rows, small, strips, transposed};
use super::{down_to, reject_if, Candidate, Considered, RejectReason};
use crate::cuda::estimate;
use crate::cuda::kernels::Entry;
use crate::cuda::launch::Launch;
use crate::cuda::target::GpuTarget;
use crate::cuda::tuning::columns::THREADS_OF_COLUMNS;
use crate::cuda::tuning::transposed::ALONG_OUTPUT;
use crate::mode::Mode;
use crate::plan::reverse_plan::Plan;

/// A kernel family, or one unit of it, and what it would do. `sketch` takes the number of a variant.
pub(super) struct KernelRule {
    name: &'static str,
    /// What a variant is called, with `{}` for its number. Empty if people need no name.
    variant: &'static str,
    variants: &'static [u32],
    sketch: fn(&Layout<'_>, u32) -> Result<Sketch, RejectReason>,
}

const fn one(name: &'static str, sketch: fn(&Layout<'_>, u32) -> Result<Sketch, RejectReason>) -> KernelRule {
    KernelRule { name, variant: "", variants: &[0], sketch }
}

/// Kernels that move elements, or blocks in units of their own. `reverse_elementwise` in units of one element runs any
/// layout with any pointers. The order decides only between equal estimates, and which of a kernel's reasons is shown.
#[rustfmt::skip] // a line each
const BLOCK_KERNELS: &[KernelRule] = &[
    KernelRule { name: "reverse_small", variant: "exchanges", variants: &small::UNITS, sketch: small::exchange },
    KernelRule { name: "reverse_small", variant: "scatters", variants: &small::UNITS, sketch: small::scatter },
    KernelRule { name: "reverse_small", variant: "", variants: &small::UNITS, sketch: small::small },
    KernelRule { name: "reverse_elementwise", variant: "", variants: &elementwise::UNITS, sketch: elementwise::units },
    one("reverse_rows", rows::rows),
    KernelRule { name: "reverse_packed_rows", variant: "", variants: &rows::UNITS, sketch: rows::packed_rows },
    KernelRule { name: "reverse_row_tiles", variant: "tiles of {} bytes", variants: &rows::TILE_BYTES, sketch: rows::row_tiles::<4> },
    KernelRule { name: "reverse_row_tiles", variant: "tiles of {} bytes", variants: &rows::TILE_BYTES, sketch: rows::row_tiles::<2> },
    KernelRule { name: "reverse_row_tiles", variant: "tiles of {} bytes", variants: &rows::TILE_BYTES, sketch: rows::row_tiles::<1> },
];

/// Kernels that move elements. They also run blocks of 2, 4 or 8 bytes, as elements of that width.
#[rustfmt::skip] // a line each
const ELEMENT_KERNELS: &[KernelRule] = &[
    KernelRule { name: "reverse_elementwise", variant: "gathers {} bytes a thread", variants: &[4, 8, 16], sketch: elementwise::vectors },
    one("reverse_packed_lanes", packed_lanes::packed_lanes),
    KernelRule { name: "reverse_lanes", variant: "{} vectors a thread", variants: &lanes::LANE_VECTORS, sketch: lanes::whole::<true> },
    KernelRule { name: "reverse_lanes", variant: "{} vectors a thread", variants: &lanes::LANE_VECTORS, sketch: lanes::whole::<false> },
    one("reverse_long_lanes", lanes::long::<true>),
    one("reverse_long_lanes", lanes::long::<false>),
    one("reverse_columns", columns::columns),
    KernelRule { name: "reverse_thread_columns", variant: "{} threads", variants: &THREADS_OF_COLUMNS, sketch: columns::thread_columns },
    KernelRule { name: "reverse_clusters", variant: "strips of {} bytes", variants: &clusters::STRIP_BYTES, sketch: clusters::clusters },
    KernelRule { name: "reverse_strips", variant: "strips of {} bytes", variants: &strips::STRIP_BYTES, sketch: strips::unaligned::<false> },
    KernelRule { name: "reverse_strips", variant: "strips of {} bytes", variants: &strips::STRIP_BYTES, sketch: strips::aligned },
    KernelRule { name: "reverse_unaligned_strips", variant: "strips of {} bytes", variants: &strips::STRIP_BYTES, sketch: strips::unaligned::<true> },
    one("reverse_transposed", transposed::transposed::<true>),
    one("reverse_transposed", transposed::transposed::<false>),
    KernelRule { name: "reverse_transposed_directly", variant: "{} elements of a row", variants: &ALONG_OUTPUT, sketch: transposed::directly },
];

/// Kernels for lanes side by side that copy, also in place: a thread, a thread block or a cluster reads all of what it
/// writes before it writes, and no other uses what it reads there. They write no sector in part.
const COPY_IN_PLACE: [&str; 4] = ["reverse_columns", "reverse_thread_columns", "reverse_clusters", "reverse_strips"];
/// They move everything, whatever the lengths are, and the others move less if lengths are short. So these must be
/// faster by this factor (TUNING.md: COPYING_IN_PLACE), which is in their estimates.
const COPYING_IN_PLACE: f64 = 1.1;

/// A kernel that can run the layout, with the number of its variant.
pub(super) struct Estimated {
    rule: &'static KernelRule,
    variant: u32,
    /// The number of its layout.
    pub layout: usize,
    pub sketch: Sketch,
    microseconds: f64,
}

impl Estimated {
    pub fn entry(&self, layouts: &[Layout<'_>]) -> Entry {
        self.sketch.family.of_unit(layouts[self.layout].mode, self.sketch.unit)
    }

    fn launch(&self, layouts: &[Layout<'_>]) -> Launch {
        let layout = &layouts[self.layout];
        let Sketch { grid, alignment, access, parameters, .. } = self.sketch;
        Launch {
            entry: self.entry(layouts),
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
        let text = self.rule.variant.replace("{}", &self.variant.to_string());
        text.replace("1 vectors", "1 vector")
    }
}

/// The layouts of a plan: that of its elements, and that of its small blocks if they are as wide as elements are. In
/// place there are none for lanes of one element, which do not move, and those of lanes side by side are also copied.
pub(super) fn layouts<'a>(plan: &'a Plan, target: &'a GpuTarget, mode: Mode) -> Vec<Layout<'a>> {
    let blocks = plan.blocks_as_elements.as_deref().filter(|blocks| blocks.width.is_power_of_two());
    let plans = [plan].into_iter().chain(blocks);
    let moves = mode == Mode::Copying || plan.in_place && plan.axis.size > 1;
    let mut layouts: Vec<_> = plans.clone().filter(|_| moves).map(|plan| Layout::new(plan, mode, target)).collect();
    if let Some(of) = plans.zip(&layouts).find(|(_, of)| of.in_place() && of.side_by_side().is_some()).map(|(of, _)| of)
    {
        layouts.push(Layout::new(of, Mode::Copying, target));
    }
    layouts
}

/// The sketch, if its family has a kernel for its unit.
fn built(layout: &Layout<'_>, sketch: Sketch) -> Result<Sketch, RejectReason> {
    let is_missing = sketch.family.find(layout.mode, sketch.unit).is_none();
    reject_if(is_missing, "it is not built for units of that width")?;
    Ok(sketch)
}

/// The kernels that can run the layouts of a plan, least estimate first. Calls `rejects` for those that cannot run the
/// layout of its elements.
pub(super) fn estimate(
    layouts: &[Layout<'_>],
    mut rejects: impl FnMut(&'static KernelRule, RejectReason),
) -> Vec<Estimated> {
    let mut found = Vec::with_capacity(32);
    for (n, layout) in layouts.iter().enumerate() {
        let of_blocks = if n == 0 { BLOCK_KERNELS } else { &[] };
        let copies_in_place = layouts[0].in_place() && !layout.in_place();
        let rules = of_blocks.iter().chain(ELEMENT_KERNELS);
        let rules = rules.filter(|rule| !copies_in_place || COPY_IN_PLACE.contains(&rule.name));
        for (rule, &variant) in rules.flat_map(|rule| rule.variants.iter().map(move |variant| (rule, variant))) {
            match (rule.sketch)(layout, variant).and_then(|sketch| built(layout, sketch)) {
                Ok(sketch) => {
                    let costs = layout.mode.of(&sketch.costs.modes);
                    let costs = &costs[(sketch.unit.trailing_zeros() as usize).min(costs.len() - 1)];
                    let terms = estimate::terms(&sketch.work, sketch.grid, layout.target);
                    let microseconds = estimate::microseconds(costs, &terms);
                    let microseconds = microseconds * if copies_in_place { COPYING_IN_PLACE } else { 1.0 };
                    found.push(Estimated { rule, variant, layout: n, sketch, microseconds });
                }
                Err(reason) if n == 0 => rejects(rule, reason),
                Err(_) => {}
            }
        }
    }
    let alignment = |kernel: &Estimated| kernel.sketch.alignment;
    found.sort_by(|a, b| a.microseconds.total_cmp(&b.microseconds).then(alignment(a).cmp(&alignment(b))));
    found
}

/// The launches for pointers at multiples of `pointer_alignment`: the least estimate, then the least of those that
/// accept more pointers, down to one that accepts all of them. Only they get parameters.
pub(crate) fn select(plan: &Plan, target: &GpuTarget, mode: Mode, pointer_alignment: u32) -> Vec<Launch> {
    let layouts = layouts(plan, target, mode);
    let found = estimate(&layouts, |_, _| ());
    chosen(&found, pointer_alignment.max(plan.width)).map(|kernel| kernel.launch(&layouts)).collect()
}

fn chosen(found: &[Estimated], pointer_alignment: u32) -> impl Iterator<Item = &Estimated> {
    down_to(pointer_alignment, found.iter().map(|kernel| (kernel.sketch.alignment, kernel)))
}

/// Every launch that can run the plan, least estimate first.
pub(crate) fn candidates(plan: &Plan, target: &GpuTarget, mode: Mode) -> Vec<Candidate> {
    let layouts = layouts(plan, target, mode);
    let launch = |kernel: &Estimated| Candidate {
        variant: kernel.variant(),
        launch: kernel.launch(&layouts),
        estimate: Some(kernel.duration()),
    };
    estimate(&layouts, |_, _| ()).iter().map(launch).collect()
}

/// Every kernel with its best variant, and the other variants that are chosen for fewer pointers, least estimate first;
/// then the kernels that cannot run the layout.
pub(crate) fn consider(plan: &Plan, target: &GpuTarget, mode: Mode) -> Vec<Considered> {
    let layouts = layouts(plan, target, mode);
    let mut rejected: Vec<(&str, RejectReason)> = Vec::new();
    let estimated = estimate(&layouts, |rule, reason| match rejected.iter_mut().find(|(name, _)| *name == rule.name) {
        Some((_, last)) if reason != NOT_DIVIDED.into() => *last = reason,
        Some(_) => {}
        None => rejected.push((rule.name, reason)),
    });
    let mut considered: Vec<Considered> = Vec::new();
    for kernel in &estimated {
        let (name, variant) = (kernel.entry(&layouts).name, kernel.variant());
        let is_chosen = chosen(&estimated, plan.width).any(|other| std::ptr::eq(other, kernel));
        if considered.iter().all(|other| other.kernel != name || is_chosen && other.variant != variant) {
            considered.push(Considered { kernel: name.to_owned(), variant, result: Ok(kernel.duration()) });
        }
    }
    rejected.retain(|(name, _)| estimated.iter().all(|kernel| kernel.rule.name != *name));
    considered.extend(rejected.into_iter().map(|(name, reason)| {
        let is_in_place = mode == Mode::InPlace && reason != NOT_IN_PLACE.into() || reason == ONLY_IN_PLACE.into();
        let suffix = if is_in_place { "_in_place" } else { "" };
        Considered { kernel: format!("{name}{suffix}"), variant: String::new(), result: Err(reason) }
    }));
    considered
}
