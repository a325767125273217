//! Selection: which kernels can run a plan on a GPU, fastest first, and why others cannot. A file for each operator, and one
//! for each kernel family.

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

#[cfg(test)]
mod tests;

use super::launch::{Launch, Parameters};
use super::tuning::{THREADS, VEC16};

/// Why a kernel cannot run a layout.
pub(crate) type Because = &'static str;

/// The launches of one mode, in the order they are tried in, up to one that takes any pointers; none where nothing moves.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub launches: Vec<Launch>,
    /// Kernels that would have come before all launches, with why they cannot run the layout.
    pub rejected: Vec<(&'static str, Because)>,
}

impl Candidates {
    /// Room for as many as most layouts have.
    fn new() -> Self {
        Self { launches: Vec::with_capacity(4), rejected: Vec::with_capacity(8) }
    }

    fn push(&mut self, launch: Launch<impl Parameters>) {
        self.launches.push(launch.erase());
    }

    fn reject(&mut self, kernel: &'static str, because: Because) {
        if self.launches.is_empty() && self.rejected.last() != Some(&(kernel, because)) {
            self.rejected.push((kernel, because));
        }
    }
}

/// The candidates of an operator.
#[derive(Debug)]
pub(crate) struct Selection {
    pub out_of_place: Candidates,
    /// Where the output is the input; `None` where it may not be.
    pub in_place: Option<Candidates>,
}

impl Selection {
    /// The candidates for pointers that are multiples of `alignment`, in the modes that are possible.
    pub fn keep(mut self, alignment: u32, in_place: Option<bool>) -> Self {
        for (mode, this_in_place) in [(Some(&mut self.out_of_place), false), (self.in_place.as_mut(), true)] {
            let Some(Candidates { launches, .. }) = mode else { continue };
            let taken = launches.iter().position(|launch| alignment.max(1).is_multiple_of(launch.alignment));
            match in_place {
                Some(promised) if promised != this_in_place => launches.clear(),
                _ => launches.truncate(taken.map_or(launches.len(), |taken| taken + 1)),
            }
        }
        self
    }
}

/// Thread blocks for `items` items, `items_per_thread` of them per thread.
fn blocks(items: u64, items_per_thread: u32) -> u32 {
    // Items number at most 2³² − 1, so the quotient fits.
    items.div_ceil(u64::from(THREADS * items_per_thread)) as u32
}

/// That many thread blocks, if a grid can have them.
fn grid(blocks: u64) -> Result<u32, Because> {
    u32::try_from(blocks).ok().filter(|&blocks| blocks < 1 << 31).ok_or("the grid would have 2³¹ thread blocks or more")
}

/// Vectors that a run of `count` elements of `width` bytes touches: `aligned` where every run begins at a multiple of 16,
/// else at worst.
fn vectors_of_run(count: u32, width: u32, aligned: bool) -> u32 {
    let lead = if aligned { 0 } else { VEC16 - width };
    (u64::from(count) * u64::from(width) + u64::from(lead)).div_ceil(u64::from(VEC16)) as u32
}
