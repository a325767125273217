//! Plans: what a backend has to do, as plain data. A plan knows no descriptor and no device.
//!
//! Making a plan merges dimensions, finds runs and lanes, and chooses the kernels with their grids. The CPU
//! backend walks the merged dimensions; the CUDA backend launches the kernels.

#[cfg(test)]
pub(crate) mod emulated;
pub(crate) mod fill_value_sequence;
pub(crate) mod reverse_launches;
pub(crate) mod reverse_subsequences;

use std::ffi::CStr;

use bytemuck::{Pod, Zeroable};

pub(crate) use crate::layout::MAX_DIMENSIONS;

/// Threads of a block, but of those that are a team of fewer, or of a cluster (`THREADS` of kernels/common.cuh).
pub(crate) const THREADS: u32 = 256;

/// Bytes of the widest load and store of a thread.
pub(crate) const SLOT: u32 = 16;

/// The plan of one operator.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one lives in each compiled operator, behind its Arc
pub(crate) enum Plan {
    FillValueSequence(fill_value_sequence::Plan),
    ReverseSubsequences(reverse_subsequences::Plan),
}

/// A kernel launch but for its pointers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<Params> {
    pub entry: Entry,
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
    /// What the pointers of the big tensors must be multiples of.
    pub alignment: u32,
    /// Bytes of the widest store of a thread.
    pub access: u32,
    pub params: Params,
}

/// A `.cu` file, compiled to a PTX file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Module {
    FillValueSequence,
    ReverseAnyStrips,
    ReverseClusters,
    ReverseColumns,
    ReverseUnits,
    ReverseLanes,
    ReverseLongRows,
    ReverseRows,
    ReverseSmall,
    ReverseStaged,
    ReverseStrips,
    ReverseTiny,
    ReverseTransposed,
    ReverseTurned,
}

impl Module {
    #[cfg(test)]
    pub const ALL: [Self; 14] = [
        Self::FillValueSequence,
        Self::ReverseAnyStrips,
        Self::ReverseClusters,
        Self::ReverseColumns,
        Self::ReverseUnits,
        Self::ReverseLanes,
        Self::ReverseLongRows,
        Self::ReverseRows,
        Self::ReverseSmall,
        Self::ReverseStaged,
        Self::ReverseStrips,
        Self::ReverseTiny,
        Self::ReverseTransposed,
        Self::ReverseTurned,
    ];

    /// The names of its entry points.
    pub const fn entries(self) -> &'static [&'static CStr] {
        match self {
            Module::FillValueSequence => fill_value_sequence::ENTRIES,
            Module::ReverseAnyStrips => reverse_launches::strips::ANY_ENTRIES,
            Module::ReverseClusters => reverse_launches::clusters::ENTRIES,
            Module::ReverseColumns => reverse_launches::columns::ENTRIES,
            Module::ReverseUnits => reverse_launches::units::ENTRIES,
            Module::ReverseLanes => reverse_launches::lanes::ENTRIES,
            Module::ReverseLongRows => reverse_launches::long_rows::ENTRIES,
            Module::ReverseRows => reverse_launches::rows::ENTRIES,
            Module::ReverseSmall => reverse_launches::small::ENTRIES,
            Module::ReverseStaged => reverse_launches::staged::ENTRIES,
            Module::ReverseStrips => reverse_launches::strips::ENTRIES,
            Module::ReverseTiny => reverse_launches::tiny::ENTRIES,
            Module::ReverseTransposed => reverse_launches::transposed::ENTRIES,
            Module::ReverseTurned => reverse_launches::staged::TURNED_ENTRIES,
        }
    }
}

pub(crate) use crate::target::GpuTarget as Target;

impl Default for Target {
    /// What every GPU has: for plans whose launches nobody makes.
    fn default() -> Self {
        Self { shared_memory: 48 << 10, multiprocessors: 1, clusters: false }
    }
}

/// An entry point: a module, and an index into its list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub module: Module,
    pub index: usize,
}

impl Entry {
    /// Its name in the kernel file.
    pub fn name(self) -> &'static CStr {
        self.module.entries()[self.index]
    }
}

/// Division by a number the host knows (`FastDiv` of kernels/common.cuh).
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct FastDiv {
    pub divisor: u32,
    pub multiplier: u32,
    pub shift1: u32,
    pub shift2: u32,
}

impl FastDiv {
    /// Granlund & Montgomery, "Division by Invariant Integers using Multiplication" (1994), figure 4.1.
    pub fn new(divisor: u32) -> Self {
        debug_assert!(divisor > 0);
        let log = 32 - (divisor - 1).leading_zeros();
        let multiplier = ((1u64 << 32) * ((1u64 << log) - u64::from(divisor)) / u64::from(divisor) + 1) as u32;
        Self { divisor, multiplier, shift1: log.min(1), shift2: log.saturating_sub(1) }
    }

    /// What the kernels compute.
    #[cfg(test)]
    fn divide(self, n: u32) -> u32 {
        let t = ((u64::from(self.multiplier) * u64::from(n)) >> 32) as u32;
        (t + ((n - t) >> self.shift1)) >> self.shift2
    }
}

/// Blocks that hold `items` items, so many a thread.
fn blocks(items: u64, items_of_thread: u32) -> u32 {
    // Items number at most 2³² − 1, so the quotient fits.
    items.div_ceil(u64::from(THREADS * items_of_thread)) as u32
}

/// 16-byte slots that a run of `count` elements of `width` bytes touches: `aligned` where every run begins
/// at a multiple of 16, else at worst.
fn slots_of_run(count: u32, width: u32, aligned: bool) -> u32 {
    let lead = if aligned { 0 } else { SLOT - width };
    (u64::from(count) * u64::from(width) + u64::from(lead)).div_ceil(u64::from(SLOT)) as u32
}

#[cfg(test)]
mod tests {
    use super::FastDiv;

    #[test]
    fn fast_division_is_division() {
        let edges = [
            1u32,
            2,
            3,
            5,
            7,
            10,
            255,
            256,
            257,
            641,
            65535,
            65536,
            65537,
            1 << 31,
            (1 << 31) + 1,
            u32::MAX - 1,
            u32::MAX,
        ];
        let mut n = 12345u32;
        for divisor in edges.into_iter().chain(1..2000) {
            let fast = FastDiv::new(divisor);
            for edge in edges.into_iter().chain([0]) {
                for n in
                    [edge, edge.wrapping_sub(1), edge.wrapping_mul(divisor), edge.wrapping_mul(divisor).wrapping_sub(1)]
                {
                    assert_eq!(fast.divide(n), n / divisor, "{n} / {divisor}");
                }
            }
            for _ in 0..100 {
                n = n.wrapping_mul(1664525).wrapping_add(1013904223);
                assert_eq!(fast.divide(n), n / divisor, "{n} / {divisor}");
            }
        }
    }
}
