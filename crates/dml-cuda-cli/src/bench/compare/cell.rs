//! The figures of a case in a run, and whether those of two runs differ.

use serde::Serialize;

use crate::bench::results::Timed;
use crate::bench::statistics::{median, noise, ratio, FEW};
use crate::bench::work::{Mode, Work, LARGE_BASELINE};

/// Taken for the noise of a case with few values, as a logarithm.
const FEW_NOISE: f64 = 0.10;

/// Less work has no floor, because it waits for more than for memory.
pub const LEAST_FLOOR_BYTES: u64 = 8 << 20;

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
    pub of_baseline: Option<f64>,
    /// The floor over the case's time: the bytes at the rate of a plain copy or fill of 512 MiB in the same run. `None`
    /// where the run has none, and for work that waits for its launch more than for memory.
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
    pub fn name(self) -> String {
        format!("{self:?}").to_uppercase()
    }
}

/// The figures next to the baselines of the same run.
pub fn cell(timed: &Timed, baselines: &[&Timed]) -> Cell {
    let (work, samples) = (&timed.work, timed.outcome.samples());
    let median = median(samples);
    let baseline = timed
        .baseline
        .or_else(|| baseline_microseconds(work, baselines));
    Cell {
        dispatches: timed.dispatches,
        samples: samples.len(),
        median,
        noise: (samples.len() > 1).then(|| noise(samples)),
        gigabytes_per_second: work.bytes as f64 / median / 1e3,
        of_baseline: baseline.map(|baseline| baseline / median),
        of_floor: floor_microseconds(work, baselines).map(|floor| floor / median),
    }
}

/// Microseconds of the bytes at the rate of the plain work of the nearest size in the same run.
fn baseline_microseconds(work: &Work, baselines: &[&Timed]) -> Option<f64> {
    let distance = |baseline: &&Timed| (baseline.work.bytes as f64 / work.bytes as f64).ln().abs();
    let nearest = of_kind(work, baselines).min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    // Plain work of a quite other size says nothing: short work is bound by other things.
    let near = distance(&nearest) <= 4f64.ln() || work.bytes > nearest.work.bytes;
    near.then(|| at_rate_of(nearest, work.bytes))
}

/// Microseconds of the bytes at the rate of plain work on 512 MiB.
fn floor_microseconds(work: &Work, baselines: &[&Timed]) -> Option<f64> {
    let moved = if work.mode == Mode::Fill {
        LARGE_BASELINE
    } else {
        2 * LARGE_BASELINE
    };
    let large = of_kind(work, baselines).find(|baseline| baseline.work.bytes == moved)?;
    (work.bytes >= LEAST_FLOOR_BYTES).then(|| at_rate_of(large, work.bytes))
}

fn of_kind<'a>(work: &Work, baselines: &'a [&Timed]) -> impl Iterator<Item = &'a Timed> {
    let mode = work.mode.baseline();
    baselines
        .iter()
        .copied()
        .filter(move |timed| timed.work.mode == mode)
}

fn at_rate_of(baseline: &Timed, bytes: u64) -> f64 {
    median(baseline.outcome.samples()) * bytes as f64 / baseline.work.bytes as f64
}

/// How the times of a case in two runs differ. Of few values in a run the noise is not known: the interval is 10.5 %
/// wider on both sides.
pub fn change(a: &[f64], b: &[f64], threshold: f64) -> Change {
    let (speed_up, (low, high)) = ratio(a, b);
    let unknown = if a.len().min(b.len()) < FEW {
        FEW_NOISE.exp()
    } else {
        1.0
    };
    let interval = (low / unknown, high * unknown);
    Change {
        speed_up,
        interval,
        status: status(interval, threshold),
    }
}

/// Wholly beyond the threshold it is FASTER or SLOWER, wholly within it the SAME, else UNSURE.
pub fn status((low, high): (f64, f64), threshold: f64) -> Status {
    let least = 1.0 + threshold / 100.0;
    match (low, high) {
        _ if low > least => Status::Faster,
        _ if high < 1.0 / least => Status::Slower,
        _ if low >= 1.0 / least && high <= least => Status::Same,
        _ => Status::Unsure,
    }
}
