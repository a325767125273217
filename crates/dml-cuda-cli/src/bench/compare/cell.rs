//! The figures of a case in a run, and whether those of two runs differ.

use serde::Serialize;

use crate::bench::record::{Run, Timing};
use crate::bench::statistics::{ratio, Quartiles, FEW};
use crate::bench::suite::manifest::Mode;
use crate::bench::suite::LARGE_BASELINE;

/// Percent: the least threshold where a case has few values.
const FEW_THRESHOLD: f64 = 10.0;

/// Less work has no floor.
const LEAST_FLOOR_BYTES: u64 = 8 << 20;

/// The figures of a case in a run.
#[derive(Clone, Serialize)]
pub struct Cell {
    pub dispatches: u32,
    pub samples: usize,
    /// Microseconds of a dispatch.
    pub median: f64,
    /// (q75 − q25) / median; none of a single value.
    pub noise: Option<f64>,
    /// 10⁹ bytes a second.
    pub gigabytes_per_second: f64,
    /// The baseline's time over the case's.
    pub of_roof: Option<f64>,
    /// The floor over the case's time: the bytes at the rate of a plain copy or fill of 512 MiB in the same run. `None` where the run has
    /// none, and for work that waits for its launch more than for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_floor: Option<f64>,
}

#[derive(Clone, Copy, Serialize)]
pub struct Change {
    /// The first run's time over this run's.
    pub speed_up: f64,
    /// Holds the speed-up with at least 95 %.
    pub interval: (f64, f64),
    pub status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    Same,
    Faster,
    Slower,
    Unsure,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "SAME",
            Self::Faster => "FASTER",
            Self::Slower => "SLOWER",
            Self::Unsure => "UNSURE",
        }
    }
}

pub fn cell(timing: &Timing, run: &Run) -> Cell {
    let quartiles = Quartiles::of(timing.samples.values());
    Cell {
        dispatches: timing.work.dispatches,
        samples: timing.samples.values().len(),
        median: quartiles.median,
        noise: (timing.samples.values().len() > 1).then(|| quartiles.noise()),
        gigabytes_per_second: timing.work.bytes as f64 / quartiles.median / 1e3,
        of_roof: baseline_microseconds(timing, run).map(|baseline| baseline / quartiles.median),
        of_floor: floor_microseconds(timing, run).map(|floor| floor / quartiles.median),
    }
}

/// Microseconds of the case's own baseline, or of its bytes at the rate of the plain work of the nearest size in the same run.
fn baseline_microseconds(timing: &Timing, run: &Run) -> Option<f64> {
    if timing.baseline.is_some() {
        return timing.baseline;
    }
    let distance = |baseline: &&Timing| (baseline.work.bytes as f64 / timing.work.bytes as f64).ln().abs();
    let nearest = baselines(timing, run).min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    // Plain work of a quite other size says nothing: short work is bound by other things.
    let near = distance(&nearest) <= 4f64.ln() || timing.work.bytes > nearest.work.bytes;
    near.then(|| at_rate_of(nearest, timing.work.bytes))
}

/// Microseconds of the case's bytes at the rate of plain work on 512 MiB.
fn floor_microseconds(timing: &Timing, run: &Run) -> Option<f64> {
    let moved = if timing.work.mode == Mode::Fill { LARGE_BASELINE } else { 2 * LARGE_BASELINE };
    let large = baselines(timing, run).find(|baseline| baseline.work.bytes == moved)?;
    (timing.work.bytes >= LEAST_FLOOR_BYTES).then(|| at_rate_of(large, timing.work.bytes))
}

fn baselines<'a>(timing: &Timing, run: &'a Run) -> impl Iterator<Item = &'a Timing> {
    let mode = timing.work.mode.baseline();
    run.cases.iter().filter(move |baseline| baseline.work.mode == mode)
}

fn at_rate_of(baseline: &Timing, bytes: u64) -> f64 {
    Quartiles::of(baseline.samples.values()).median * bytes as f64 / baseline.work.bytes as f64
}

/// Wholly beyond the threshold it is FASTER or SLOWER, wholly within it the SAME, else UNSURE.
pub fn change(a: &[f64], b: &[f64], threshold: f64) -> Change {
    let (speed_up, interval) = ratio(a, b);
    let threshold = if a.len().min(b.len()) < FEW { threshold.max(FEW_THRESHOLD) } else { threshold };
    let least = 1.0 + threshold / 100.0;
    let status = match interval {
        (low, _) if low > least => Status::Faster,
        (_, high) if high < 1.0 / least => Status::Slower,
        (low, high) if low >= 1.0 / least && high <= least => Status::Same,
        _ => Status::Unsure,
    };
    Change { speed_up, interval, status }
}
