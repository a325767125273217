//! The questions that a kernel answers about a layout, and the list of candidates that its answers make.
//!
//! A file has the families of one kernel file, and a type for each kernel. The functions of [`Kernel`] stand in this order:
//!
//! | function | question |
//! | --- | --- |
//! | `fit` | Can the kernel run the layout? If so, how does it cut it? |
//! | `needs` | Which entry point, coefficients and alignment belong to it? |
//! | `grid` | How many thread blocks is that, and what does each take of an SM? |
//! | `work` | What would the grid do: bytes, misses and rounds? |
//! | `parameters` | What does the kernel take? |
//!
//! No kernel says that it is faster than another: `estimate.rs` turns the work of each into microseconds, and the lowest
//! estimate is chosen. Fills have no estimates (`fill_value_sequence.rs`).

use bytemuck::Pod;

use super::layout::Layout;
use super::{Candidate, RejectReason, Variant};
use crate::cuda::estimate::{self, FamilyCosts, Work};
use crate::cuda::kernels::Family;
use crate::cuda::launch::{words, Grid, Launch};

/// A kernel that is fitted to a layout.
pub(super) trait Kernel: Sized {
    /// The structure that the kernel takes.
    type Parameters: Pod;

    /// Decides whether the kernel can run a layout. `variant` is a number of the family's list of variants.
    fn fit(layout: &Layout<'_>, variant: u32) -> Result<Self, RejectReason>;

    /// The entry point, the coefficients and the alignment.
    fn needs(&self, layout: &Layout<'_>) -> Needs;

    /// The thread blocks.
    fn grid(&self, layout: &Layout<'_>) -> Result<Grid, RejectReason>;

    /// The work of all thread blocks, which the estimate is made of.
    fn work(&self, layout: &Layout<'_>, grid: Grid) -> Work;

    /// The parameters, without pointers.
    fn parameters(&self, layout: &Layout<'_>, grid: Grid) -> Self::Parameters;
}

/// What belongs to a kernel besides its grid and its parameters.
pub(super) struct Needs {
    pub family: &'static Family,
    pub costs: &'static FamilyCosts,
    /// Bytes of its unit, which choose the entry point and the coefficients.
    pub unit: u32,
    /// The required alignment of pointers.
    pub alignment: u32,
    /// Bytes of a thread's widest store.
    pub access: u32,
}

/// The candidates of a reversal.
pub(super) struct Candidates {
    list: Vec<Candidate>,
    /// Leaves out those that are never chosen, because another one accepts these pointers and has a lower estimate.
    only_fastest: bool,
    /// The variant of the kernel that adds candidates.
    pub variant: Variant,
}

impl Candidates {
    pub fn new(only_fastest: bool) -> Self {
        Self {
            list: Vec::with_capacity(8),
            only_fastest,
            variant: Variant::default(),
        }
    }

    /// Whether one of the candidates accepts the same pointers and has at most this estimate.
    fn has_faster(&self, launch: &Launch, microseconds: f64) -> bool {
        self.list.iter().any(|other| {
            let accepts_all = other.launch.alignment <= launch.alignment;
            accepts_all
                && other
                    .microseconds
                    .is_some_and(|other| other <= microseconds)
        })
    }

    /// The candidates from the lowest estimate on. Equal ones begin with the one that accepts the most pointers.
    pub fn sorted(mut self) -> Vec<Candidate> {
        self.list.sort_by(|a, b| {
            let estimates = a
                .microseconds
                .unwrap_or_default()
                .total_cmp(&b.microseconds.unwrap_or_default());
            estimates.then(a.launch.alignment.cmp(&b.launch.alignment))
        });
        self.list
    }
}

/// Adds a kernel to the candidates of a layout, if it can run it.
pub(super) fn add<K: Kernel>(
    layout: &Layout<'_>,
    variant: u32,
    list: &mut Candidates,
) -> Result<(), RejectReason> {
    let kernel = K::fit(layout, variant)?;
    let grid = kernel.grid(layout)?;
    let needs = kernel.needs(layout);
    let entry = layout.entry(needs.family, needs.unit)?;
    let mut launch = Launch::new(entry, grid, needs.alignment, needs.access);
    let work = kernel.work(layout, grid);
    let terms = estimate::terms(&work, grid, layout.target);
    let costs = needs.costs.of(layout.placement, needs.unit);
    let microseconds = estimate::microseconds(costs, &terms);
    if list.only_fastest && list.has_faster(&launch, microseconds) {
        return Ok(());
    }
    launch.params = words(kernel.parameters(layout, grid));
    list.list.push(Candidate {
        launch,
        variant: list.variant,
        work,
        costs: Some((needs.costs, needs.unit)),
        microseconds: Some(microseconds),
        time: None,
    });
    Ok(())
}
