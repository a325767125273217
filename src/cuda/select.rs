//! Selection: which kernels can run a plan on a GPU, fastest first, and why others cannot. There is a file for each
//! operator and one for each kernel family.

pub(crate) mod fill_value_sequence;
pub(crate) mod reverse_subsequences;

mod clusters;
mod columns;
mod elementwise;
mod fast_div;
mod lanes;
mod layout;
mod packed_lanes;
mod rows;
mod segments;
mod strips;
mod transposed;

#[cfg(all(test, in_repository))]
pub(super) mod golden_tests;

use std::fmt;

use super::launch::Launch;
use super::tuning::{THREADS, VEC16};
use crate::mode::Mode;

/// Why a candidate cannot run a layout: a text, in which `{}` stands for a number of `tuning`.
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
        Self { text, number: number.into() }
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

/// Rejects a candidate for a reason that holds for the layout.
fn reject_if(holds: bool, reason: impl Into<RejectReason>) -> Result<(), RejectReason> {
    if holds {
        return Err(reason.into());
    }
    Ok(())
}

/// An entry of an operator's `CANDIDATES`: a kernel and one way to launch it. `F` is a function that returns the launch
/// or the reason why it is not possible.
struct Candidate<F> {
    /// Its name in the list of rejected kernels, in the order of `Mode::ALL`. `None` if it cannot run in that mode.
    names: [Option<&'static str>; 2],
    /// Whether it is always faster than the candidates after it. If not, its rejection is not reported.
    faster: bool,
    launch: F,
}

impl<F> Candidate<F> {
    const fn both(copying: &'static str, in_place: &'static str, launch: F) -> Self {
        Self { names: [Some(copying), Some(in_place)], faster: true, launch }
    }

    /// Faster only for little work.
    const fn small(copying: &'static str, in_place: &'static str, launch: F) -> Self {
        Self { names: [Some(copying), Some(in_place)], faster: false, launch }
    }

    const fn out_of_place(name: &'static str, launch: F) -> Self {
        Self { names: [Some(name), None], faster: true, launch }
    }
}

/// Candidate launches of one mode, fastest first, each for pointers that those before it do not accept. The last one
/// accepts any pointers. Empty if nothing moves.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    pub launches: Vec<Launch>,
    /// Kernels before the first launch that cannot run the layout. Keeps each kernel's last reason, and merges equal
    /// neighbours.
    pub rejected: Vec<(&'static str, RejectReason)>,
}

impl Launches {
    /// The launches of `candidates` for elements of `width` bytes, to the first one that accepts any pointers. Those
    /// whose pointers an earlier one accepts would never be launched. `launch` calls a candidate's function.
    fn find<F: Copy>(
        candidates: &[Candidate<F>],
        mode: Mode,
        width: u32,
        launch: impl Fn(F) -> Result<Launch, RejectReason>,
    ) -> Self {
        let mut found = Self::default();
        for candidate in candidates {
            let Some(name) = *mode.of(&candidate.names) else { continue };
            match launch(candidate.launch) {
                Ok(launch) => {
                    if found.launches.is_empty() {
                        found.rejected.retain(|(rejected, _)| *rejected != name);
                    }
                    let any_pointers = launch.alignment == width;
                    found.push(launch);
                    if any_pointers {
                        break;
                    }
                }
                Err(reason) if found.launches.is_empty() && candidate.faster => found.reject(name, reason),
                Err(_) => {}
            }
        }
        found
    }

    fn push(&mut self, launch: Launch) {
        if self.launches.last().is_none_or(|last| launch.alignment < last.alignment) {
            self.launches.push(launch);
        }
    }

    /// Those that are needed for pointers at multiples of `alignment`.
    pub fn for_pointers(mut self, alignment: u32) -> Vec<Launch> {
        let accepted = self.launches.iter().position(|launch| alignment.max(1).is_multiple_of(launch.alignment));
        self.launches.truncate(accepted.map_or(self.launches.len(), |last| last + 1));
        self.launches
    }

    fn reject(&mut self, name: &'static str, reason: RejectReason) {
        let alike = self.rejected.last().is_some_and(|(_, last)| *last == reason);
        match self.rejected.iter_mut().find(|(rejected, _)| *rejected == name) {
            Some((_, of_another)) => *of_another = reason,
            None if alike => {}
            None => self.rejected.push((name, reason)),
        }
    }
}

/// Thread blocks for `items` items, `items_per_thread` of them per thread.
fn blocks(items: u64, items_per_thread: u32) -> u32 {
    // There are at most 2³² − 1 items, so the quotient fits.
    items.div_ceil(u64::from(THREADS * items_per_thread)) as u32
}

/// Checks that a grid can have that many thread blocks.
fn grid(blocks: u64) -> Result<u32, RejectReason> {
    let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks < 1 << 31);
    blocks.ok_or("the grid would have 2³¹ thread blocks or more".into())
}

/// How many vectors a run of `count` elements of `width` bytes touches: `aligned` if every run begins at a multiple of
/// 16; otherwise the worst case.
fn vectors_of_run(count: u32, width: u32, aligned: bool) -> u32 {
    let lead = if aligned { 0 } else { VEC16 - width };
    (u64::from(count) * u64::from(width) + u64::from(lead)).div_ceil(u64::from(VEC16)) as u32
}
