//! The cost model: how long a kernel takes, from its counted work and what the GPU can do. docs/design/selection.md
//! explains it.

use super::launch::Grid;
use super::target::GpuTarget;
use super::tuning::SECTOR;
use crate::placement::Placement;

/// The work of a launch, counted for the whole grid. In place, lengths are taken as half of the axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Bytes of sectors that are read and written, of what memory moves with them, and of lengths. A sector that thread
    /// blocks share counts for each if they do not read it together.
    pub bytes: f64,
    /// Sectors that the L1 cache does not serve, with repetitions. The first access to each of `bytes` is among them.
    pub misses: f64,
    /// Steps of one thread that wait for each other.
    pub rounds: f64,
}

/// Threads of a warp, which access memory together.
pub(crate) const WARP: f64 = 32.0;

/// The number of terms.
pub(crate) const TERMS: usize = 5;

/// The coefficients of one kernel's terms, fitted to measured times: launch, memory, misses, warps, rounds.
pub(crate) type Costs = [f32; TERMS];

/// The costs of the kernels of a family, by the width of their unit, from one byte up.
#[derive(Debug)]
pub(crate) struct FamilyCosts {
    #[cfg_attr(not(all(test, in_repository)), allow(dead_code))] // tests print it
    pub name: &'static str,
    /// In the order of `Placement::ALL`.
    pub placements: [&'static [Costs]; 2],
}

impl FamilyCosts {
    /// The costs in a placement, for units of `unit` bytes.
    pub fn of(&self, placement: Placement, unit: u32) -> &'static Costs {
        let costs = placement.of(&self.placements);
        &costs[(unit.trailing_zeros() as usize).min(costs.len() - 1)]
    }
}

/// Bytes of shared memory that the system reserves in each thread block, and the most thread blocks of an SM. GPUs that
/// take fewer thread blocks also have fewer threads: thread blocks of 64 threads or more reach that limit first.
const RESERVED_SHARED: u32 = 1 << 10;
const MOST_BLOCKS: u32 = 32;

// What follows was set by hand. The costs are fitted with it, and docs/design/selection.md has the loss with others.

/// How many times its share of the memory bandwidth an SM gets if it is the only busy one.
const ALONE: f64 = 3.0;
/// Rounds that the start of a warp is worth.
const START: f64 = 2.0;
/// Cycles between the starts of two thread blocks on an SM that is full.
const BLOCK_START: f64 = 157.0;

/// Rounds up. `f64::ceil` is a call of a function where the processor is not known to have an instruction for it.
pub(crate) fn ceil(number: f64) -> f64 {
    let whole = number as i64 as f64;
    if whole < number {
        whole + 1.0
    } else {
        whole
    }
}

/// The terms of the cost model, in the order of [`Costs`]:
///
/// 1. the launch;
/// 2. microseconds of the memory, or of starting the thread blocks if that takes longer;
/// 3. microseconds of the SMs at a cycle for each repeated miss;
/// 4. microseconds of the SMs at a cycle for each round of a warp;
/// 5. rounds that follow each other.
pub(crate) fn terms(work: &Work, grid: Grid, target: &GpuTarget) -> [f64; TERMS] {
    let multiprocessors = f64::from(target.multiprocessors);
    let by_shared = (target.shared_memory + RESERVED_SHARED) / (grid.shared + RESERVED_SHARED);
    let resident = (target.threads / grid.threads)
        .min(by_shared)
        .clamp(1, MOST_BLOCKS);
    let blocks = f64::from(grid.blocks);
    let at_once = multiprocessors * f64::from(resident);
    let waves = (blocks / at_once).max(1.0);
    let later_blocks = (blocks - at_once).max(0.0);
    // The busiest SM, compared with the mean.
    let unevenness = ceil(blocks / multiprocessors) * multiprocessors / blocks;
    let memory = work.bytes / (f64::from(target.bandwidth) * 1e3);
    let microseconds_of =
        |cycles: f64| cycles * unevenness / (multiprocessors * f64::from(target.clock));
    [
        1.0,
        (memory * (unevenness / ALONE).max(1.0)).max(microseconds_of(later_blocks * BLOCK_START)),
        microseconds_of((work.misses - work.bytes / f64::from(SECTOR)).max(0.0)),
        microseconds_of(blocks * f64::from(grid.threads) / WARP * (START + work.rounds)),
        work.rounds * waves,
    ]
}

/// The estimate: the launch, the slower of memory and SMs (the root of squares is a soft maximum), and the
/// rounds.
pub(crate) fn microseconds(costs: &Costs, terms: &[f64; TERMS]) -> f64 {
    let mut weighted = *terms;
    for (term, &cost) in weighted.iter_mut().zip(costs) {
        *term *= f64::from(cost);
    }
    let [launch, memory, misses, warps, rounds] = weighted;
    let sm_time = misses + warps;
    launch + (memory * memory + sm_time * sm_time).sqrt() + rounds
}
