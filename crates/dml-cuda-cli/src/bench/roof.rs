//! What a suite's cases are held against: a plain copy, or a plain fill with one byte, of the device's memory.

use std::process::ExitCode;
use std::time::Instant;

use dml_cuda::{Device, PlainWork};

use super::statistics::Quartiles;
use crate::options::Roof;
use crate::run::events;
use crate::run::samples::Samples;

/// Times it, and prints what a run with `--format json` prints.
pub fn time(work: Roof, bytes: u64, iterations: u32, repeat: u32, device: &Device) -> Result<ExitCode, String> {
    events::line(&events::device(device, true))?;
    let samples = sample(work, bytes, iterations, repeat, device);
    let samples = samples.map_err(|error| format!("timing a plain {work:?}: {error}"))?;
    events::line(&events::dispatched("roof", &samples, repeat))?;
    Ok(ExitCode::SUCCESS)
}

fn sample(
    work: Roof,
    bytes: u64,
    iterations: u32,
    repeat: u32,
    device: &Device,
) -> Result<Samples, Box<dyn std::error::Error>> {
    let stream = device.create_stream()?;
    let mut work = match work {
        Roof::Copy => PlainWork::copy(device, bytes, repeat)?,
        Roof::Fill => PlainWork::fill(device, bytes, repeat)?,
    };
    let on_gpu = device.ordinal().is_some();
    let each = |milliseconds: f64| milliseconds / f64::from(repeat);
    let (mut queued, mut in_graph) = (Samples::default(), Samples::default());
    for _ in 0..iterations {
        let before = Instant::now();
        let first = on_gpu.then(|| stream.record_event()).transpose()?;
        work.queue(&stream)?;
        let last = on_gpu.then(|| stream.record_event()).transpose()?;
        stream.synchronize()?;
        queued.cpu.push(each(before.elapsed().as_secs_f64() * 1e3));
        if let Some((first, last)) = first.zip(last) {
            queued.gpu.push(each(last.milliseconds_since(&first)?));
        }
    }
    // In a graph, as dispatches are timed; but the driver's copies of 512 MiB and more are faster one by one. The faster way is the roof.
    for _ in 0..if on_gpu { iterations } else { 0 } {
        let before = Instant::now();
        in_graph.gpu.extend(work.launch_graph(&stream)?.map(each));
        in_graph.cpu.push(each(before.elapsed().as_secs_f64() * 1e3));
    }
    let median = |samples: &Samples| Quartiles::of(&samples.gpu).median;
    Ok(if on_gpu && median(&in_graph) <= median(&queued) { in_graph } else { queued })
}
