//! Timings of a dispatch, printed as DxDispatch does.

use crate::options::Options;
use crate::out::say;

/// One sample per iteration, in milliseconds. The CPU device has no GPU samples.
#[derive(Default)]
pub struct Samples {
    pub cpu: Vec<f64>,
    pub gpu: Vec<f64>,
}

impl Samples {
    pub fn count(&self) -> u32 {
        self.cpu.len() as u32
    }
}

struct Statistics {
    count: usize,
    average: f64,
    min: f64,
    median: f64,
    max: f64,
}

fn statistics(samples: &[f64]) -> Option<Statistics> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Statistics {
        count: sorted.len(),
        average: sorted.iter().sum::<f64>() / sorted.len() as f64,
        min: *sorted.first()?,
        median: *sorted.get(sorted.len() / 2)?,
        max: *sorted.last()?,
    })
}

/// Splits samples into cold and hot. At most the first `warmup` are cold, and at least one is hot.
fn cold_and_hot(samples: &[f64], warmup: u32) -> (&[f64], &[f64]) {
    samples.split_at(samples.len().saturating_sub(1).min(warmup as usize))
}

/// Prints the timings of a dispatch.
pub fn report(name: &str, samples: &Samples, options: &Options) -> Result<(), String> {
    let iterations = samples.count();
    let (cpu_cold, cpu_hot) = cold_and_hot(&samples.cpu, options.warmup_samples);
    let (gpu_cold, gpu_hot) = cold_and_hot(&samples.gpu, options.warmup_samples);
    if options.timing_verbosity == 0 {
        let cpu = statistics(cpu_hot).map_or(0.0, |cpu| cpu.median);
        let gpu = statistics(gpu_hot).map_or_else(String::new, |gpu| format!(", {:.6} ms median (GPU)", gpu.median));
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
        if let Some(Statistics { count, average, min, median, max }) = statistics(samples) {
            say!("{kind}: {count} samples, {average:.4} ms average, {min:.4} ms min, {median:.4} ms median, {max:.4} ms max")?;
        }
    }
    if options.timing_verbosity >= 2 {
        say!("The timings of each iteration: ")?;
        for (n, cpu) in samples.cpu.iter().enumerate() {
            let gpu = samples.gpu.get(n).map_or_else(String::new, |gpu| format!(", {gpu:.4} ms (GPU)"));
            say!("iteration {n}: {cpu:.4} ms (CPU){gpu}")?;
        }
    }
    Ok(())
}
