//! Selection: which kernels can run a plan on a GPU, fastest first, and why others cannot. A file for each operator, and one
//! for each kernel family.

pub(crate) mod fill_value_sequence;
pub(crate) mod reverse_subsequences;

mod clusters;
mod columns;
mod fast_div;
mod lanes;
mod long_rows;
mod rows;
mod small;
mod staged;
mod strips;
mod tiny;
mod transposed;
mod units;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use clusters::CLUSTER;
pub(crate) use fast_div::FastDiv;

use super::launch::Launch;

/// Threads per block, except in cooperative-group and cluster kernels (`THREADS` of kernels/common.cuh).
const THREADS: u32 = 256;

/// Bytes of the widest load and store of a thread.
const SLOT: u32 = 16;

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

    fn push(&mut self, launch: impl Into<Launch>) {
        self.launches.push(launch.into());
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

/// Thread blocks for `items` items, so many per thread.
fn blocks(items: u64, items_per_thread: u32) -> u32 {
    // Items number at most 2³² − 1, so the quotient fits.
    items.div_ceil(u64::from(THREADS * items_per_thread)) as u32
}

/// That many thread blocks, if a grid can have them.
fn grid(blocks: u64) -> Result<u32, Because> {
    u32::try_from(blocks).ok().filter(|&blocks| blocks < 1 << 31).ok_or("there would be 2³¹ blocks of threads or more")
}

/// 16-byte slots that a run of `count` elements of `width` bytes touches: `aligned` where every run begins
/// at a multiple of 16, else at worst.
fn slots_of_run(count: u32, width: u32, aligned: bool) -> u32 {
    let lead = if aligned { 0 } else { SLOT - width };
    (u64::from(count) * u64::from(width) + u64::from(lead)).div_ceil(u64::from(SLOT)) as u32
}
