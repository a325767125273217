//! The figures of a case in a results file, and whether those of two files differ.
//!
//! A case has a share of the speed of two baselines, which are copies or fills of the same file:
//!
//! ```text
//! of_baseline   time of a baseline of about the same size, scaled to the case's bytes / time of the case
//! of_floor      time of the baseline on 512 MiB,           scaled to the case's bytes / time of the case
//! ```
//!
//! A baseline of the same size waits for its launch as the case does. The baseline on 512 MiB shows the bandwidth of the
//! memory, which bounds large cases. With a cold L2 a case was timed with its own baseline, whose time `of_baseline` takes
//! as it is.

use serde::Serialize;

use crate::bench::results::Timed;
use crate::bench::statistics::{median, noise, ratio, Interval, Ratio, FEW};
use crate::bench::work::{Mode, Work, LARGE_BASELINE};

/// The noise that a case with few values is taken to have, as a logarithm.
const FEW_NOISE: f64 = 0.10;

/// Less work has no floor, because it waits for more than for memory.
pub const LEAST_FLOOR_BYTES: u64 = 8 << 20;

/// The figures of a case in a results file.
#[derive(Clone, Serialize)]
pub struct Cell {
    /// Dispatches of a sample.
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
    /// The floor over the case's time: the bytes at the rate of the baseline on 512 MiB in the same file. None if
    /// the file has no such baseline, and for small cases, which wait for their launch more than for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_floor: Option<f64>,
}

/// A case's time in a results file next to its time in the first one.
#[derive(Clone, Copy, Serialize)]
pub struct Change {
    /// The time in the first file over the time in this one.
    pub speed_up: f64,
    /// It holds the speedup with a probability of at least 95 %.
    pub interval: Interval,
    pub status: Status,
}

/// The verdict on a difference. A report writes it in capitals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// The interval is within the threshold.
    Same,
    /// The interval is above the threshold.
    Faster,
    /// The interval is below the threshold.
    Slower,
    /// The interval is on both sides of a threshold, or the machine was another.
    Unsure,
}

impl Status {
    /// Such as `FASTER`, as the JSON report has it.
    pub fn name(self) -> String {
        format!("{self:?}").to_uppercase()
    }
}

/// The figures next to the baselines of the same file.
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
        // Bytes by microseconds are 10⁶ bytes a second.
        gigabytes_per_second: work.bytes as f64 / median / 1e3,
        of_baseline: baseline.map(|baseline| baseline / median),
        of_floor: floor_microseconds(work, baselines).map(|floor| floor / median),
    }
}

/// Microseconds of the bytes at the rate of the baseline of the nearest size.
fn baseline_microseconds(work: &Work, baselines: &[&Timed]) -> Option<f64> {
    let nearest =
        of_kind(work, baselines).min_by(|a, b| distance(a, work).total_cmp(&distance(b, work)))?;
    // A baseline of a quite other size says nothing: short work is bound by other things.
    let is_near = distance(nearest, work) <= 4f64.ln() || work.bytes > nearest.work.bytes;
    is_near.then(|| at_rate_of(nearest, work.bytes))
}

/// How far the sizes of a baseline and of a case are apart, as a logarithm.
fn distance(baseline: &Timed, work: &Work) -> f64 {
    (baseline.work.bytes as f64 / work.bytes as f64).ln().abs()
}

/// Microseconds of the bytes at the rate of the baseline on 512 MiB.
fn floor_microseconds(work: &Work, baselines: &[&Timed]) -> Option<f64> {
    if work.bytes < LEAST_FLOOR_BYTES {
        return None;
    }
    // A fill only writes. Everything else reads as well.
    let moved = match work.mode {
        Mode::Fill => LARGE_BASELINE,
        _ => 2 * LARGE_BASELINE,
    };
    let large = of_kind(work, baselines).find(|baseline| baseline.work.bytes == moved)?;
    Some(at_rate_of(large, work.bytes))
}

/// The baselines that do what a case is compared with: fills for fills, copies for reversals.
fn of_kind<'a>(work: &Work, baselines: &'a [&Timed]) -> impl Iterator<Item = &'a Timed> {
    let mode = work.mode.baseline();
    baselines
        .iter()
        .copied()
        .filter(move |timed| timed.work.mode == mode)
}

/// Microseconds that a baseline of another size would take, if its time grew with its bytes.
fn at_rate_of(baseline: &Timed, bytes: u64) -> f64 {
    median(baseline.outcome.samples()) * bytes as f64 / baseline.work.bytes as f64
}

/// How the times of a case in two files differ. With few values the noise is not known, and the interval is 10.5 % wider
/// on both sides.
pub fn change(a: &[f64], b: &[f64], threshold: f64) -> Change {
    let Ratio { value, interval } = ratio(a, b);
    let has_few = a.len().min(b.len()) < FEW;
    let unknown = if has_few { FEW_NOISE.exp() } else { 1.0 };
    let interval = Interval {
        low: interval.low / unknown,
        high: interval.high * unknown,
    };
    Change {
        speed_up: value,
        interval,
        status: status(interval, threshold),
    }
}

/// Decides by the interval of a speedup, with the threshold in percent:
///
/// ```text
///            1 / 1.05        1.05
///   ├─SLOWER─┤  │    ├─SAME─┤ │  ├─FASTER─┤
///              ├──UNSURE──┤
/// ```
pub fn status(Interval { low, high }: Interval, threshold: f64) -> Status {
    let faster = 1.0 + threshold / 100.0;
    let slower = 1.0 / faster;
    if low > faster {
        Status::Faster
    } else if high < slower {
        Status::Slower
    } else if low >= slower && high <= faster {
        Status::Same
    } else {
        Status::Unsure
    }
}
