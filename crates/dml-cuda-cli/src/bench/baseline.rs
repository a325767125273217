//! What the cases are compared with: plain work on as many bytes. A suite and a run have it for some sizes; with a cold
//! L2 each case has its own, on its own memory.

use std::process::ExitCode;

use dml_cuda::Device;

use super::plain::{Buffers, Gpu, Kind, PlainWork, Way};
use super::work::Mode;
use crate::options::{Plain, Repeated};
use crate::run::events;
use crate::run::samples::{Result, Samples};

/// Less work is compared with an empty kernel: its launch takes longer than its bytes.
const SMALL: u64 = 1 << 20;

/// Kernels move whole thread blocks' shares.
const SHARE: u64 = 1 << 14;

/// Times plain work, and prints what a run with `--format json` prints.
pub fn time(plain: Plain, bytes: u64, times: &Repeated, device: &Device) -> Result<ExitCode, String> {
    events::line(&events::device(device, true, device.compile_options()))?;
    let samples = sample_new(plain, bytes, times, device);
    let samples = samples.map_err(|error| format!("timing a plain {plain:?}: {error}"))?;
    events::line(&events::dispatched("baseline", &samples, times.repeat))?;
    Ok(ExitCode::SUCCESS)
}

/// In memory of its own. In a graph, as dispatches are timed, and queued: the driver's copies of 512 MiB and more are
/// faster one by one.
fn sample_new(plain: Plain, bytes: u64, times: &Repeated, device: &Device) -> Result<Samples> {
    if device.ordinal().is_none() {
        return sample_on_host(plain, usize::try_from(bytes)?, times, device);
    }
    let gpu = &Gpu::new(device)?;
    let to = [device.create_buffer(bytes)?];
    let from = if plain == Plain::Copy { vec![device.create_buffer(bytes)?] } else { Vec::new() };
    let kinds = match plain {
        Plain::Copy => &[Kind::Copy][..],
        Plain::Fill => &[Kind::Fill],
        Plain::Write => &[Kind::Fill, Kind::Store],
    };
    PlainWork { gpu, buffers: (&from, &to), bytes, times }.fastest(kinds, &[Way::InGraph, Way::Queued])
}

fn sample_on_host(plain: Plain, bytes: usize, times: &Repeated, device: &Device) -> Result<Samples> {
    // Not of zeros: untouched pages are all one page.
    let (from, mut to) = (vec![1; if plain == Plain::Copy { bytes } else { 0 }], vec![2; bytes]);
    Samples::take(times, &device.create_stream()?, None, || {
        for _ in 0..times.repeat {
            match plain {
                Plain::Copy => to.copy_from_slice(&from),
                Plain::Fill | Plain::Write => to.fill(1),
            }
            std::hint::black_box(&mut to);
        }
        Ok(())
    })
}

/// The baseline of a case on its own buffers.
pub fn of_case(gpu: &Gpu, mode: Mode, buffers: Buffers, bytes: u64, way: Way, times: &Repeated) -> Result<Samples> {
    let kinds = match mode {
        _ if bytes < SMALL => &[Kind::Empty][..],
        Mode::Fill => &[Kind::Fill, Kind::Store],
        Mode::InPlace => &[Kind::Swap],
        _ => &[Kind::Copy],
    };
    let bytes = if bytes < SMALL { 0 } else { bytes / SHARE * SHARE };
    PlainWork { gpu, buffers, bytes, times }.fastest(kinds, &[way])
}
