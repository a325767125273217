//! How long a kernel takes: a formula of counted work, in terms of what the GPU can do. docs/design/selection.md
//! explains it.

use super::launch::Grid;
use super::target::GpuTarget;
use super::tuning::SECTOR;
use crate::mode::Mode;

/// What a launch does, counted for the whole grid. In place, lengths are taken as half of the axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Bytes of sectors that are read and written, of what memory moves with them, and of lengths. A sector that thread
    /// blocks share counts for each if they do not read it together.
    pub bytes: f64,
    /// Bytes of memory that the tensors take. Little memory is still in the L2 cache.
    pub footprint: f64,
    /// Sectors, or lines of the L1 cache, that the warps access, with repetitions.
    pub accesses: f64,
    /// Sectors that the L1 cache does not serve, with repetitions. The first access to each of `bytes` is among them.
    pub misses: f64,
    /// Steps of warps that move units, with idle threads.
    pub steps: f64,
    /// Steps of warps for single elements or positions: shared memory, loops over dimensions, lengths.
    pub details: f64,
    /// Steps of one thread that wait for each other.
    pub rounds: f64,
}

/// The number of terms.
pub(crate) const TERMS: usize = 8;

/// What the terms of one kernel cost, fitted to measured times: launch, memory, accesses, misses, steps, details,
/// thread blocks, rounds.
pub(crate) type Costs = [f32; TERMS];

/// The costs of the kernels of a family, by the width of their unit, from one byte up.
#[derive(Debug)]
pub(crate) struct FamilyCosts {
    #[cfg_attr(not(all(test, in_repository)), allow(dead_code))] // tests print it
    pub name: &'static str,
    /// In the order of `Mode::ALL`.
    pub modes: [&'static [Costs]; 2],
}

impl FamilyCosts {
    /// The costs in a mode, for units of `unit` bytes.
    pub fn of(&self, mode: Mode, unit: u32) -> &'static Costs {
        let costs = mode.of(&self.modes);
        &costs[(unit.trailing_zeros() as usize).min(costs.len() - 1)]
    }
}

/// Bytes of shared memory that the system takes of each thread block, and the most thread blocks of a multiprocessor.
/// GPUs that take fewer have fewer threads, too: thread blocks of 64 threads or more reach that limit first.
const RESERVED_SHARED: u32 = 1 << 10;
const MOST_BLOCKS: u32 = 32;

// What follows was set by hand. The costs are fitted with it.

/// Tensors of at most one part in so many of the L2 cache are still there.
const CACHED_PART: f64 = 64.0;
/// How much longer a launch takes if its data are not in the L2 cache, and how much faster that cache is than memory.
const COLD: f64 = 0.45;
const CACHE_SPEED: f64 = 2.0;
/// A multiprocessor alone gets so many times its share of the memory bandwidth.
const ALONE: f64 = 3.0;

/// Rounds up. `f64::ceil` is a call of a function where the processor is not known to have an instruction for it.
pub(crate) fn ceil(number: f64) -> f64 {
    let whole = number as i64 as f64;
    if whole < number {
        whole + 1.0
    } else {
        whole
    }
}

/// The terms of the formula: a factor for the launch's latency; microseconds of the memory; microseconds of the
/// multiprocessors, at a cycle for each access, repeated miss, step, detail and thread block; rounds that follow each
/// other.
pub(crate) fn terms(work: &Work, grid: Grid, target: &GpuTarget) -> [f64; TERMS] {
    let multiprocessors = f64::from(target.multiprocessors);
    let by_shared = (target.shared_memory + RESERVED_SHARED) / (grid.shared + RESERVED_SHARED);
    let resident = (target.threads / grid.threads).min(by_shared).clamp(1, MOST_BLOCKS);
    let blocks = f64::from(grid.blocks);
    let waves = (blocks / (multiprocessors * f64::from(resident))).max(1.0);
    // The busiest multiprocessor, compared with the mean.
    let unevenness = ceil(blocks / multiprocessors) * multiprocessors / blocks;
    let is_cold = work.footprint > f64::from(target.l2_cache) / CACHED_PART;
    let memory = work.bytes / (f64::from(target.bandwidth) * 1e3);
    let speed = if is_cold { 1.0 } else { CACHE_SPEED };
    let cycles = |count: f64| count * unevenness / (multiprocessors * f64::from(target.clock));
    [
        if is_cold { 1.0 + COLD } else { 1.0 },
        memory * (1.0 / speed).max(unevenness / ALONE),
        cycles(work.accesses),
        cycles((work.misses - work.bytes / f64::from(SECTOR)).max(0.0)),
        cycles(work.steps),
        cycles(work.details),
        cycles(blocks),
        work.rounds * waves,
    ]
}

/// The estimate: the launch, the slower of memory and multiprocessors (the root of squares is a soft maximum), and the
/// rounds.
pub(crate) fn microseconds(costs: &Costs, terms: &[f64; TERMS]) -> f64 {
    let term = |n: usize| f64::from(costs[n]) * terms[n];
    let multiprocessors: f64 = (2..=6).map(term).sum();
    term(0) + (term(1) * term(1) + multiprocessors * multiprocessors).sqrt() + term(7)
}
