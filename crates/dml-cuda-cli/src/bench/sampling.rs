//! Samples of work that a bench queues itself.

use std::time::Instant;

use dml_cuda::{Graph, Stream};

use crate::options::Repeated;
use crate::run::samples::Samples;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How work reaches the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Queued,
    InGraph,
}

/// A sample for each iteration, in milliseconds of one of `repeat` times. `once` does all work of an iteration, and
/// tells the milliseconds that it took on the GPU, if there is one.
pub fn sample(times: &Repeated, mut once: impl FnMut() -> Result<Option<f64>>) -> Result<Samples> {
    let each = |milliseconds: f64| milliseconds / f64::from(times.repeat);
    let mut samples = Samples::default();
    for _ in 0..times.iterations {
        let before = Instant::now();
        let gpu = once()?;
        samples.cpu.push(each(before.elapsed().as_secs_f64() * 1e3));
        samples.gpu.extend(gpu.map(each));
    }
    Ok(samples)
}

/// The same of work on a GPU, which is queued by `queue`, or launched as a graph.
pub fn sample_on_gpu(
    times: &Repeated,
    way: Way,
    stream: &Stream,
    graph: &mut Graph,
    queue: impl Fn() -> Result<()>,
) -> Result<Samples> {
    sample(times, || match way {
        Way::InGraph => {
            graph.launch(stream)?;
            Ok(Some(graph.milliseconds()?))
        }
        Way::Queued => {
            let first = stream.record_event()?;
            queue()?;
            Ok(Some(stream.record_event()?.milliseconds_since(&first)?))
        }
    })
}
