//! REVERSE_SUBSEQUENCES: every kernel that can run a layout has an estimate, and the lowest one is chosen.

use super::fit::{add, Candidates};
use super::layout::{Layout, NOT_DIVIDED, ONLY_IN_PLACE};
use super::small::{SmallUnits, COPIES_OR_SWAPS, EXCHANGES, SCATTERS};
use super::{chosen, Candidate, RejectReason, Variant};
use super::{
    clusters, columns, elementwise, lanes, packed_lanes, rows, short_lanes, small, strips,
    transposed,
};
use crate::cuda::kernels::*;
use crate::cuda::launch::Launch;
use crate::cuda::parameters::transposed::SMALL_TILE;
use crate::cuda::target::GpuTarget;
use crate::cuda::tuning::columns::THREADS_OF_COLUMNS;
use crate::cuda::tuning::transposed::ALONG_OUTPUT;
use crate::placement::Placement;
use crate::plan::reverse_plan::Plan;

/// A kernel family, or one unit of it. `add` adds the candidate of a variant, if it can run a layout.
struct KernelEntry {
    family: &'static Family,
    /// The name of a variant, with `{}` for its number. Empty if people need no name.
    variant: &'static str,
    variants: &'static [u32],
    add: fn(&Layout<'_>, u32, &mut Candidates) -> Result<(), RejectReason>,
}

const fn one(
    family: &'static Family,
    add: fn(&Layout<'_>, u32, &mut Candidates) -> Result<(), RejectReason>,
) -> KernelEntry {
    KernelEntry {
        family,
        variant: "",
        variants: &[0],
        add,
    }
}

/// Kernels that move elements, or blocks in units of their own. `reverse_elementwise` in units of one element runs any
/// layout with any pointers. The order decides only between equal estimates, and which of a kernel's reasons is shown.
#[rustfmt::skip] // a line each
const BLOCK_KERNELS: &[KernelEntry] = &[
    KernelEntry { family: &SMALL, variant: "exchanges", variants: &small::UNITS, add: add::<SmallUnits<EXCHANGES>> },
    KernelEntry { family: &SMALL, variant: "scatters", variants: &small::UNITS, add: add::<SmallUnits<SCATTERS>> },
    KernelEntry { family: &SMALL, variant: "", variants: &small::UNITS, add: add::<SmallUnits<COPIES_OR_SWAPS>> },
    KernelEntry { family: &ELEMENTWISE, variant: "", variants: &elementwise::UNITS, add: add::<elementwise::Units> },
    KernelEntry { family: &SINGLE_ROWS, variant: "", variants: &rows::UNITS, add: add::<rows::SingleRows> },
    KernelEntry { family: &PACKED_ROWS, variant: "", variants: &rows::UNITS, add: add::<rows::PackedRows> },
    KernelEntry { family: &ROW_TILES, variant: "tiles of {} bytes", variants: &rows::TILE_BYTES, add: add::<rows::RowTiles<4>> },
    KernelEntry { family: &ROW_TILES, variant: "tiles of {} bytes", variants: &rows::TILE_BYTES, add: add::<rows::RowTiles<2>> },
    KernelEntry { family: &ROW_TILES, variant: "tiles of {} bytes", variants: &rows::TILE_BYTES, add: add::<rows::RowTiles<1>> },
];

/// Kernels that move elements. They also run blocks of 2, 4 or 8 bytes, as elements of that width.
#[rustfmt::skip] // a line each
const ELEMENT_KERNELS: &[KernelEntry] = &[
    KernelEntry { family: &ELEMENTWISE, variant: "gathers {} bytes a thread", variants: &[4, 8, 16], add: add::<elementwise::Vectors> },
    one(&SHORT_LANES, add::<short_lanes::ShortLanes>),
    one(&PACKED_LANES, add::<packed_lanes::PackedLanes>),
    KernelEntry { family: &LANES, variant: "{} vectors a thread", variants: &lanes::LANE_VECTORS, add: add::<lanes::WholeLanes<true>> },
    KernelEntry { family: &LANES, variant: "{} vectors a thread", variants: &lanes::LANE_VECTORS, add: add::<lanes::WholeLanes<false>> },
    one(&LONG_LANES, add::<lanes::LongLanes<true>>),
    one(&LONG_LANES, add::<lanes::LongLanes<false>>),
    one(&COLUMNS, add::<columns::Groups>),
    KernelEntry { family: &THREAD_COLUMNS, variant: "{} threads", variants: &THREADS_OF_COLUMNS, add: add::<columns::ThreadColumns> },
    KernelEntry { family: &CLUSTERS, variant: "strips of {} bytes", variants: &clusters::STRIP_BYTES, add: add::<clusters::ClusterStrips> },
    KernelEntry { family: &STRIPS, variant: "strips of {} bytes", variants: &strips::STRIP_BYTES, add: add::<strips::UnalignedStrips<false>> },
    KernelEntry { family: &STRIPS, variant: "strips of {} bytes", variants: &strips::STRIP_BYTES, add: add::<strips::AlignedStrips> },
    KernelEntry { family: &UNALIGNED_STRIPS, variant: "strips of {} bytes", variants: &strips::STRIP_BYTES, add: add::<strips::UnalignedStrips<true>> },
    one(&TRANSPOSED, add::<transposed::Tiles<true>>),
    one(&TRANSPOSED, add::<transposed::Tiles<false>>),
    KernelEntry { family: &TRANSPOSED, variant: "tiles of {} elements", variants: &[SMALL_TILE], add: add::<transposed::Tiles<false>> },
    KernelEntry { family: &TRANSPOSED_DIRECTLY, variant: "{} elements of a row", variants: &ALONG_OUTPUT, add: add::<transposed::DirectTiles> },
];

/// The layouts of a plan: that of its elements, and that of its small blocks if they are as wide as elements are. In
/// place, there are none if the axis has one element, because nothing moves. Otherwise each follows a second time as out
/// of place, for copying kernels that are also right in place.
pub(super) fn layouts<'a>(
    plan: &'a Plan,
    target: &'a GpuTarget,
    placement: Placement,
) -> Vec<Layout<'a>> {
    let blocks = plan
        .blocks_as_elements
        .as_deref()
        .filter(|blocks| blocks.width.is_power_of_two());
    let plans = || [plan].into_iter().chain(blocks);
    let moves = placement == Placement::OutOfPlace || (plan.in_place && plan.axis.size > 1);
    let mut layouts: Vec<_> = plans()
        .filter(|_| moves)
        .map(|plan| Layout::new(plan, placement, target))
        .collect();
    let copied = plans()
        .zip(&layouts)
        .filter(|(_, of)| of.in_place() && of.may_be_copied_in_place());
    layouts.extend(
        copied
            .map(|(plan, _)| Layout::copied_in_place(plan, target))
            .collect::<Vec<_>>(),
    );
    layouts
}

/// Every candidate of a plan or, with `only_fastest`, those that may be chosen. Passes each family to `tried`, with the
/// reason if it cannot run the layout of the plan's elements. In place, that of families with copying kernels alone is
/// why these cannot.
fn find(
    layouts: &[Layout<'_>],
    only_fastest: bool,
    mut tried: impl FnMut(&'static Family, Result<(), RejectReason>),
) -> Candidates {
    let mut list = Candidates::new(only_fastest);
    for (n, layout) in layouts.iter().enumerate() {
        // BLOCK_KERNELS take small blocks as such, in the layout of the elements.
        let block_kernels = if layout.width == layouts[0].width {
            BLOCK_KERNELS
        } else {
            &[]
        };
        let copies_in_place = layouts[0].in_place() && !layout.in_place();
        let kernels = block_kernels.iter().chain(ELEMENT_KERNELS);
        for kernel in kernels.filter(|kernel| !copies_in_place || kernel.family.copies_in_place) {
            for &number in kernel.variants {
                let name = kernel.variant;
                list.variant = Variant { name, number };
                let result = (kernel.add)(layout, number, &mut list);
                let is_of_elements = layout.width == layouts[0].width;
                let only_copies = copies_in_place && !kernel.family.has_kernels_in_place();
                if n == 0 || result.is_ok() || (is_of_elements && only_copies) {
                    tried(kernel.family, result);
                }
            }
        }
    }
    list
}

/// Every candidate, from the lowest estimate on.
pub(crate) fn candidates(plan: &Plan, target: &GpuTarget, placement: Placement) -> Vec<Candidate> {
    find(&layouts(plan, target, placement), false, |_, _| ()).sorted()
}

/// The launches for pointers at multiples of `pointer_alignment`: the lowest estimate, then the lowest of those that
/// accept more pointers, down to one that accepts all of them.
pub(crate) fn select(
    plan: &Plan,
    target: &GpuTarget,
    placement: Placement,
    pointer_alignment: u32,
) -> Vec<Launch> {
    let candidates = find(&layouts(plan, target, placement), true, |_, _| ()).sorted();
    chosen(candidates.into_iter(), pointer_alignment.max(plan.width))
        .map(|chosen| chosen.launch)
        .collect()
}

/// Remembers why a family cannot run a plan, until a variant of it can. The last variant's reason counts, unless it is
/// that a unit does not divide the layout.
fn remember(
    families: &mut Vec<(&'static Family, Option<RejectReason>)>,
    family: &'static Family,
    result: Result<(), RejectReason>,
) {
    let Some((_, known)) = families.iter_mut().find(|(of, _)| of.name == family.name) else {
        families.push((family, result.err()));
        return;
    };
    match result {
        Ok(()) => *known = None,
        Err(reason) if known.is_some() && reason != NOT_DIVIDED.into() => *known = Some(reason),
        Err(_) => {}
    }
}

/// The families that cannot run the plan. A name ends in `_in_place` if such a kernel gave the reason.
pub(crate) fn rejected(
    plan: &Plan,
    target: &GpuTarget,
    placement: Placement,
) -> Vec<(String, RejectReason)> {
    let mut families = Vec::new();
    find(&layouts(plan, target, placement), true, |family, result| {
        remember(&mut families, family, result)
    });
    let mut rejected = Vec::with_capacity(families.len());
    for (family, reason) in families {
        let Some(reason) = reason else { continue };
        let is_of_placement = placement == Placement::InPlace && family.has_kernels_in_place();
        let is_in_place = is_of_placement || reason == ONLY_IN_PLACE.into();
        let suffix = if is_in_place { "_in_place" } else { "" };
        rejected.push((format!("{}{suffix}", family.name), reason));
    }
    rejected
}
