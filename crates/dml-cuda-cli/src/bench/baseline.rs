//! What the cases are compared with: plain work on as many bytes. A suite and a run have it for some sizes; with a cold L2 each case has
//! its own, on its own memory.

use std::process::ExitCode;
use std::time::Instant;

use dml_cuda::{Buffer, Device, DispatchError, PlainKind, PlainWork, Specialize, Stream};

use super::statistics::median;
use crate::options::{Plain, Repeated};
use crate::run::events;
use crate::run::samples::Samples;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Less work is compared with an empty kernel: its launch takes longer than its bytes.
const SMALL: u64 = 1 << 20;

/// Kernels move whole thread blocks' shares.
const SHARE: u64 = 1 << 14;

/// Times plain work, and prints what a run with `--format json` prints.
pub fn time(plain: Plain, bytes: u64, times: &Repeated, device: &Device) -> std::result::Result<ExitCode, String> {
    events::line(&events::device(device, true, Specialize::of_environment()))?;
    let samples = sample_new(plain, bytes, times, device);
    let samples = samples.map_err(|error| format!("timing a plain {plain:?}: {error}"))?;
    events::line(&events::dispatched("baseline", &samples, times.repeat))?;
    Ok(ExitCode::SUCCESS)
}

/// In memory of its own. In a graph, as dispatches are timed, and queued: the driver's copies of 512 MiB and more are faster one by one.
fn sample_new(plain: Plain, bytes: u64, times: &Repeated, device: &Device) -> Result<Samples> {
    let stream = device.create_stream()?;
    let to = [device.create_buffer(bytes)?];
    let mut from = Vec::new();
    let kinds = match plain {
        Plain::Copy => {
            from.push(device.create_buffer(bytes)?);
            // Untouched pages of the host are all one page of zeros.
            PlainWork::new(PlainKind::Fill, device, &[], &from, bytes, 1)?.queue(&stream)?;
            &[PlainKind::Copy][..]
        }
        Plain::Fill => &[PlainKind::Fill],
        Plain::Write => &[PlainKind::Fill, PlainKind::Store],
    };
    let ways = if device.ordinal().is_some() { &[Way::InGraph, Way::Queued][..] } else { &[Way::Queued] };
    fastest((kinds, ways), (&from, &to), bytes, &stream, times)
}

/// Buffers to read and to write. Of a case on its own buffers the first are none for a fill, the second none in place.
type Buffers<'a> = (&'a [Buffer], &'a [Buffer]);

/// The baseline of a case on its own buffers.
pub fn of_case((from, to): Buffers, bytes: u64, way: Way, stream: &Stream, times: &Repeated) -> Result<Samples> {
    let kinds = match (from, to) {
        _ if bytes < SMALL => &[PlainKind::Empty][..],
        ([], _) => &[PlainKind::Fill, PlainKind::Store],
        (_, []) => &[PlainKind::Swap],
        _ => &[PlainKind::Copy],
    };
    let to = if to.is_empty() { from } else { to };
    let bytes = if bytes < SMALL { 0 } else { bytes / SHARE * SHARE };
    fastest((kinds, &[way]), (from, to), bytes, stream, times)
}

/// The samples of the kind and way with the least median, on the GPU where there are such.
fn fastest(
    (kinds, ways): (&[PlainKind], &[Way]),
    (from, to): Buffers,
    bytes: u64,
    stream: &Stream,
    times: &Repeated,
) -> Result<Samples> {
    let mut all = Vec::new();
    for (kind, way) in kinds.iter().flat_map(|kind| ways.iter().map(move |way| (*kind, way))) {
        let mut work = PlainWork::new(kind, stream.device(), from, to, bytes, times.repeat)?;
        all.push(sample(times, || match way {
            Way::InGraph => Ok(work.launch_graph(stream)?),
            Way::Queued => queued(stream, || work.queue(stream)),
        })?);
    }
    let time = |samples: &Samples| median(if samples.gpu.is_empty() { &samples.cpu } else { &samples.gpu });
    Ok(all.into_iter().min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or_default())
}

/// How work reaches the GPU. On the CPU it is done when it is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Queued,
    InGraph,
}

/// A sample for each iteration, in milliseconds of one of `repeat` times. `once` does all work of an iteration, and tells the milliseconds
/// that it took on the GPU, if there is one.
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

/// Queues work and waits for it.
pub fn queued(stream: &Stream, queue: impl FnOnce() -> std::result::Result<(), DispatchError>) -> Result<Option<f64>> {
    let event = || stream.device().ordinal().map(|_| stream.record_event()).transpose();
    let first = event()?;
    queue()?;
    let last = event()?;
    stream.synchronize()?;
    Ok(first.zip(last).map(|(first, last)| last.milliseconds_since(&first)).transpose()?)
}
