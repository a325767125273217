//! What a suite's cases are held against: a plain copy, or a plain fill with one byte, of the device's memory.
#![allow(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use dml_cuda::Device;

use crate::events;
use crate::options::Roof;
#[cfg(feature = "cuda")]
use crate::statistics::Quartiles;
use crate::timing::Samples;

/// Times it, and prints what a run with `--format json` prints.
pub fn time(work: Roof, bytes: u64, iterations: u32, repeat: u32, device: &Device) -> Result<ExitCode, String> {
    events::line(&events::device(device, true))?;
    let samples = match device.ordinal() {
        None => on_cpu(work, bytes, iterations, repeat)?,
        #[cfg(feature = "cuda")]
        Some(_) => on_gpu(work, bytes, iterations, repeat, device)?,
        #[cfg(not(feature = "cuda"))]
        Some(_) => return Err("this build has no GPU".to_owned()),
    };
    events::line(&events::dispatched("roof", &samples, repeat))?;
    Ok(ExitCode::SUCCESS)
}

fn on_cpu(work: Roof, bytes: u64, iterations: u32, repeat: u32) -> Result<Samples, String> {
    let memory = || -> Result<Vec<u8>, String> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(bytes as usize).map_err(|error| format!("{bytes} bytes: {error}"))?;
        // Written, so that the pages are there.
        memory.resize(bytes as usize, 1);
        Ok(memory)
    };
    let (mut to, from) = (memory()?, if work == Roof::Copy { memory()? } else { Vec::new() });
    let mut samples = Samples::default();
    for n in 0..iterations {
        let before = Instant::now();
        for _ in 0..repeat {
            match work {
                Roof::Copy => to.copy_from_slice(&from),
                Roof::Fill => to.fill(n as u8),
            }
            std::hint::black_box(&mut to);
        }
        samples.cpu.push(before.elapsed().as_secs_f64() * 1e3 / f64::from(repeat));
    }
    Ok(samples)
}

/// In a graph, as dispatches are timed, and queued one by one, as the driver's copies of 512 MiB and more are faster; the faster way
/// is the roof.
#[cfg(feature = "cuda")]
fn on_gpu(work: Roof, bytes: u64, iterations: u32, repeat: u32, device: &Device) -> Result<Samples, String> {
    use cudarc::driver::{result, sys};

    let failed = |error: &dyn std::fmt::Display| format!("timing a plain {work:?}: {error}");
    let stream = device.create_stream().map_err(|error| failed(&error))?;
    let Some(raw) = stream.raw() else { return Err("the device has no streams".to_owned()) };
    let raw: sys::CUstream = raw.cast();
    let sample = |iteration: &dyn Fn() -> Result<(), result::DriverError>| -> Result<Samples, String> {
        let mut samples = Samples::default();
        for _ in 0..iterations {
            let before = Instant::now();
            let first = stream.record_event().map_err(|error| failed(&error))?;
            iteration().map_err(|error| failed(&error))?;
            let last = stream.record_event().map_err(|error| failed(&error))?;
            stream.synchronize().map_err(|error| failed(&error))?;
            samples.cpu.push(before.elapsed().as_secs_f64() * 1e3 / f64::from(repeat));
            samples.gpu.push(last.milliseconds_since(&first).map_err(|error| failed(&error))? / f64::from(repeat));
        }
        Ok(samples)
    };
    // SAFETY: the context is the GPU's primary one, which the device keeps; the memory is as large as each call is told, is
    // freed after the stream is done, and the stream is alive. The device has looked for the functions that capture.
    unsafe {
        let ordinal = device.ordinal().unwrap_or(0) as i32;
        let context = result::primary_ctx::retain(ordinal).map_err(|error| failed(&error))?;
        result::ctx::set_current(context).map_err(|error| failed(&error))?;
        let size = bytes as usize;
        let to = result::malloc_sync(size).map_err(|error| failed(&error))?;
        let from = result::malloc_sync(size).map_err(|error| failed(&error))?;
        let queue = || {
            (0..repeat).try_for_each(|_| match work {
                Roof::Copy => result::memcpy_dtod_async(to, from, size, raw),
                Roof::Fill => result::memset_d8_async(to, 1, size, raw),
            })
        };
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        result::stream::begin_capture(raw, mode).map_err(|error| failed(&error))?;
        let captured = queue().and_then(|()| result::stream::end_capture(raw)).map_err(|error| failed(&error))?;
        let mut graph = std::ptr::null_mut();
        let instantiated = sys::cuGraphInstantiateWithFlags(&mut graph, captured, 0).result();
        instantiated.map_err(|error| failed(&error))?;
        let ways = [sample(&|| result::graph::launch(graph, raw))?, sample(&queue)?];
        result::graph::exec_destroy(graph).map_err(|error| failed(&error))?;
        result::graph::destroy(captured).map_err(|error| failed(&error))?;
        result::free_sync(to).map_err(|error| failed(&error))?;
        result::free_sync(from).map_err(|error| failed(&error))?;
        result::primary_ctx::release(ordinal).map_err(|error| failed(&error))?;
        let median = |samples: &Samples| Quartiles::of(&samples.gpu).median;
        let [in_graph, queued] = ways;
        Ok(if median(&queued) < median(&in_graph) { queued } else { in_graph })
    }
}
