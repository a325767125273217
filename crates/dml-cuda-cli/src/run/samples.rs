//! Timings of a dispatch, printed as DxDispatch does.

use crate::options::Options;
use crate::out::{say, shown};

/// One sample per iteration, in milliseconds. Those of the GPU are of the last iterations; the CPU device has none.
#[derive(Default)]
pub struct Samples {
    pub cpu: Vec<f64>,
    pub gpu: Vec<f64>,
}

impl Samples {
    pub fn count(&self) -> u32 {
        self.cpu.len() as u32
    }

    /// Leaves out samples of the GPU before the last `most`.
    pub fn keep_last_of_gpu(&mut self, most: Option<u32>) {
        let more = most.map_or(0, |most| self.gpu.len().saturating_sub(most as usize));
        self.gpu.drain(..more);
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

/// Prints the timings of a dispatch.
pub fn report(name: &str, samples: &Samples, options: &Options) -> Result<(), String> {
    let name = shown(name);
    let iterations = samples.count();
    // Cold are the first iterations, and at least one is hot.
    let cold = iterations.saturating_sub(1).min(options.warmup_samples) as usize;
    let without_gpu_sample = samples.cpu.len() - samples.gpu.len();
    let (cpu_cold, cpu_hot) = samples.cpu.split_at(cold);
    let (gpu_cold, gpu_hot) = samples.gpu.split_at(cold.saturating_sub(without_gpu_sample));
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
    if !samples.gpu.is_empty() && without_gpu_sample > 0 {
        say!("GPU samples buffer has {without_gpu_sample} samples overwritten.")?;
    }
    if options.timing_verbosity >= 2 {
        say!("The timings of each iteration: ")?;
        for (n, cpu) in samples.cpu.iter().enumerate() {
            let gpu = n.checked_sub(without_gpu_sample).and_then(|n| samples.gpu.get(n));
            let gpu = gpu.map_or_else(String::new, |gpu| format!(", {gpu:.4} ms (GPU)"));
            say!("iteration {n}: {cpu:.4} ms (CPU){gpu}")?;
        }
    }
    Ok(())
}
