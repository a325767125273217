//! Timings of a dispatch: taken, and printed as DxDispatch does.
//!
//! ```text
//! iteration 0 (cold)   dispatch dispatch dispatch   one sample: the time of all, divided by their number
//! iteration 1 (hot)    dispatch dispatch dispatch   one sample
//! ```
//!
//! The first iterations are cold: they load kernels, and an idle GPU has low clocks. The CPU's samples come from the host's
//! clock, and the GPU's from events before and after the work.

use std::time::Instant;

use dml_cuda::{Event, Graph, Stream};

use crate::bench::statistics::sorted;
use crate::options::{Options, Repeated};
use crate::out::{say, shown};

/// The result of a step whose errors come from several libraries.
pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// One sample per iteration, in milliseconds of one dispatch. The GPU's samples come from the last iterations; the CPU
/// device has none.
#[derive(Default)]
pub struct Samples {
    /// By the host's clock, from the first dispatch to the end of the wait.
    pub cpu: Vec<f64>,
    /// By events of the GPU around the dispatches.
    pub gpu: Vec<f64>,
}

impl Samples {
    /// Times work that a bench queues, or launches as a graph.
    pub fn take(
        times: &Repeated,
        stream: &Stream,
        mut graph: Option<&mut Graph>,
        mut queue: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        let mut samples = Self::default();
        for _ in 0..times.iterations {
            samples.add(times.repeat, stream, graph.as_deref_mut(), &mut queue)?;
        }
        Ok(samples)
    }

    /// Adds an iteration of `repeat` dispatches: `queue` queues them, unless they are a graph.
    pub fn add(
        &mut self,
        repeat: u32,
        stream: &Stream,
        graph: Option<&mut Graph>,
        queue: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let before = Instant::now();
        let (cpu, gpu) = match graph {
            Some(graph) => {
                // The graph has events around its dispatches.
                graph.launch(stream)?;
                // The host waits, so that its clock sees the end of the work.
                stream.synchronize()?;
                (before.elapsed(), Some(graph.milliseconds()?))
            }
            None => {
                let first = record_event(stream)?;
                queue()?;
                let last = record_event(stream)?;
                stream.synchronize()?;
                let cpu = before.elapsed();
                let gpu = match (first, last) {
                    (Some(first), Some(last)) => Some(last.milliseconds_since(&first)?),
                    _ => None,
                };
                (cpu, gpu)
            }
        };
        self.cpu.push(cpu.as_secs_f64() * 1e3 / f64::from(repeat));
        self.gpu.extend(gpu.map(|gpu| gpu / f64::from(repeat)));
        Ok(())
    }
}

/// A point in time on a GPU. None on a CPU.
fn record_event(stream: &Stream) -> Result<Option<Event>> {
    match stream.device().ordinal() {
        Some(_) => Ok(Some(stream.record_event()?)),
        None => Ok(None),
    }
}

/// Prints the timings of a dispatch.
pub fn report(name: &str, samples: &Samples, options: &Options) -> Result<(), String> {
    let name = shown(name);
    let iterations = samples.cpu.len();
    // Cold are the first iterations, and at least one is hot.
    let cold = iterations
        .saturating_sub(1)
        .min(options.warmup_samples as usize);
    // DxDispatch keeps a limited number of samples of the GPU, the last ones.
    let without_gpu_sample = iterations - samples.gpu.len();
    let (cpu_cold, cpu_hot) = samples.cpu.split_at(cold);
    let (gpu_cold, gpu_hot) = samples
        .gpu
        .split_at(cold.saturating_sub(without_gpu_sample));
    if options.timing_verbosity == 0 {
        let cpu = upper_median(cpu_hot).unwrap_or(0.0);
        let gpu = match upper_median(gpu_hot) {
            Some(gpu) => format!(", {gpu:.6} ms median (GPU)"),
            None => String::new(),
        };
        return say!("Dispatch '{name}': {iterations} iterations, {cpu:.4} ms median (CPU){gpu}");
    }
    say!("Dispatch '{name}': {iterations} iterations")?;
    let kinds = [
        ("CPU Timings (Cold) ", cpu_cold),
        ("GPU Timings (Cold) ", gpu_cold),
        ("CPU Timings (Hot)  ", cpu_hot),
        ("GPU Timings (Hot)  ", gpu_hot),
    ];
    for (kind, samples) in kinds {
        let sorted = sorted(samples);
        let (Some(min), Some(max), count) = (sorted.first(), sorted.last(), sorted.len()) else {
            continue;
        };
        let (average, median) = (sorted.iter().sum::<f64>() / count as f64, sorted[count / 2]);
        say!(
            "{kind}: {count} samples, {average:.4} ms average, {min:.4} ms min, {median:.4} ms median, {max:.4} ms max"
        )?;
    }
    if !samples.gpu.is_empty() && without_gpu_sample > 0 {
        say!("GPU samples buffer has {without_gpu_sample} samples overwritten.")?;
    }
    if options.timing_verbosity >= 2 {
        say!("The timings of each iteration: ")?;
        for (n, cpu) in samples.cpu.iter().enumerate() {
            let place = n.checked_sub(without_gpu_sample);
            let gpu = match place.and_then(|n| samples.gpu.get(n)) {
                Some(gpu) => format!(", {gpu:.4} ms (GPU)"),
                None => String::new(),
            };
            say!("iteration {n}: {cpu:.4} ms (CPU){gpu}")?;
        }
    }
    Ok(())
}

/// The median as DxDispatch computes it: of an even number, the larger one of the two in the middle.
fn upper_median(samples: &[f64]) -> Option<f64> {
    sorted(samples).get(samples.len() / 2).copied()
}
