//! Selection: which kernels can run a plan on a GPU, and which of them is taken: for a reversal the one with the lowest
//! estimate, for a fill the first. There is a file for each operator, and one for each kernel file of reversals.

pub(crate) mod fill_value_sequence;
pub(crate) mod reverse_subsequences;

mod clusters;
mod columns;
mod elementwise;
mod fast_div;
mod fit;
mod lanes;
mod layout;
mod packed_lanes;
mod rows;
mod segments;
mod short_lanes;
mod small;
mod strips;
mod transposed;

#[cfg(all(test, in_repository))]
mod count_tests;
#[cfg(all(test, in_repository))]
pub(super) mod estimate_tests;
#[cfg(all(test, in_repository))]
mod parameter_tests;

use std::borrow::Borrow;
use std::fmt;
use std::time::Duration;

use super::estimate::{FamilyCosts, Work};
use super::launch::Launch;
use super::parameters::THREADS;
use super::tuning::VEC16;

/// Why a kernel cannot run a layout: a text, in which `{}` stands for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RejectReason {
    text: &'static str,
    number: u64,
}

impl From<&'static str> for RejectReason {
    fn from(text: &'static str) -> Self {
        Self { text, number: 0 }
    }
}

/// A text with the number that replaces its `{}`.
impl<N: Into<u64>> From<(&'static str, N)> for RejectReason {
    fn from((text, number): (&'static str, N)) -> Self {
        Self {
            text,
            number: number.into(),
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text.split_once("{}") {
            Some((before, behind)) => write!(f, "{before}{}{behind}", self.number),
            None => f.write_str(self.text),
        }
    }
}

/// Rejects a kernel for a reason that holds for the layout.
fn reject_if(holds: bool, reason: impl Into<RejectReason>) -> Result<(), RejectReason> {
    if holds {
        return Err(reason.into());
    }
    Ok(())
}

/// One of several forms of a kernel, such as `strips of 64 bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Variant {
    /// The name, with `{}` for the number. Empty if there is one form only.
    name: &'static str,
    number: u32,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.number == 1 && self.name.starts_with("{} vectors") {
            return f.write_str("1 vector a thread");
        }
        f.write_str(&self.name.replace("{}", &self.number.to_string()))
    }
}

/// A kernel that can run a plan.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub launch: Launch,
    /// Its variant, if its family has several.
    variant: Variant,
    /// Its work, and the coefficients of its family with the bytes of its unit. Fills count nothing.
    #[cfg_attr(not(all(test, in_repository)), allow(dead_code))] // tests check it
    work: Work,
    #[cfg_attr(not(all(test, in_repository)), allow(dead_code))]
    costs: Option<(&'static FamilyCosts, u32)>,
    /// The estimate, in microseconds. Fills have none.
    microseconds: Option<f64>,
    /// The time on the GPU at hand, if it was measured.
    pub time: Option<Duration>,
}

impl Candidate {
    /// A candidate without an estimate.
    fn new(launch: Launch) -> Self {
        Self {
            launch,
            variant: Variant::default(),
            work: Work::default(),
            costs: None,
            microseconds: None,
            time: None,
        }
    }

    /// The variant of its kernel, such as `strips of 64 bytes`. Empty if there is one only.
    pub fn variant(&self) -> String {
        self.variant.to_string()
    }

    pub fn estimate(&self) -> Option<Duration> {
        self.microseconds
            .map(|microseconds| Duration::from_secs_f64(microseconds.min(1e12) * 1e-6))
    }
}

/// The candidates for pointers at multiples of `pointer_alignment`, from all candidates, fastest first: the first one,
/// then each that accepts pointers which those before it reject, until one accepts all of these pointers.
pub(crate) fn chosen<C: Borrow<Candidate>>(
    mut candidates: impl Iterator<Item = C>,
    pointer_alignment: u32,
) -> impl Iterator<Item = C> {
    let mut lowest = u32::MAX;
    std::iter::from_fn(move || {
        if pointer_alignment.is_multiple_of(lowest) {
            return None;
        }
        let chosen = candidates.find(|candidate| candidate.borrow().launch.alignment < lowest)?;
        lowest = chosen.borrow().launch.alignment;
        Some(chosen)
    })
}

/// Thread blocks for `items` items, `items_per_thread` of them per thread.
fn blocks(items: u64, items_per_thread: u32) -> u32 {
    // There are at most 2³² − 1 items, so the quotient fits.
    items.div_ceil(u64::from(THREADS * items_per_thread)) as u32
}

/// Checks that a grid can have this number of thread blocks.
fn grid(blocks: u64) -> Result<u32, RejectReason> {
    let blocks = u32::try_from(blocks)
        .ok()
        .filter(|&blocks| blocks < 1 << 31);
    blocks.ok_or("the grid would have 2³¹ thread blocks or more".into())
}

/// How many vectors a run of `count` elements of `width` bytes touches: `aligned` if every run begins at a multiple of
/// 16; otherwise the worst case.
fn vectors_of_run(count: u32, width: u32, aligned: bool) -> u32 {
    let lead = if aligned { 0 } else { VEC16 - width };
    (u64::from(count) * u64::from(width) + u64::from(lead)).div_ceil(u64::from(VEC16)) as u32
}
