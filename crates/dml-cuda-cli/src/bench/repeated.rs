//! Work that is timed several times in a row: queued one after another, or as one CUDA graph.

use std::time::Instant;

use dml_cuda::{DispatchError, PlainWork, Stream};

use super::statistics::median;
use crate::run::samples::Samples;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How work reaches the GPU. On the CPU it is done when it is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Queued,
    InGraph,
}

/// A sample for each iteration, in milliseconds of one of `repeat` times. `once` does all work of an iteration, and tells the milliseconds
/// that it took on the GPU, if there is one.
pub fn sample((iterations, repeat): (u32, u32), mut once: impl FnMut() -> Result<Option<f64>>) -> Result<Samples> {
    let each = |milliseconds: f64| milliseconds / f64::from(repeat);
    let mut samples = Samples::default();
    for _ in 0..iterations {
        let before = Instant::now();
        let gpu = once()?;
        samples.cpu.push(each(before.elapsed().as_secs_f64() * 1e3));
        samples.gpu.extend(gpu.map(each));
    }
    Ok(samples)
}

pub fn sample_plain(
    mut work: PlainWork,
    way: Way,
    stream: &Stream,
    (iterations, repeat): (u32, u32),
) -> Result<Samples> {
    sample((iterations, repeat), || match way {
        Way::InGraph => Ok(work.launch_graph(stream)?),
        Way::Queued => queued(stream, || work.queue(stream)),
    })
}

/// Queues work and waits for it.
pub fn queued(stream: &Stream, queue: impl FnOnce() -> std::result::Result<(), DispatchError>) -> Result<Option<f64>> {
    let event = || stream.device().ordinal().map(|_| stream.record_event()).transpose();
    let first = event()?;
    queue()?;
    let last = event()?;
    stream.synchronize()?;
    Ok(first.zip(last).map(|(first, last)| last.milliseconds_since(&first)).transpose()?)
}

/// The samples with the least median, on the GPU where there are such.
pub fn fastest(all: impl IntoIterator<Item = Result<Samples>>) -> Result<Samples> {
    let all = all.into_iter().collect::<Result<Vec<Samples>>>()?;
    let time = |samples: &Samples| median(if samples.gpu.is_empty() { &samples.cpu } else { &samples.gpu });
    let fastest = all.into_iter().min_by(|a, b| time(a).total_cmp(&time(b)));
    Ok(fastest.unwrap_or_default())
}
