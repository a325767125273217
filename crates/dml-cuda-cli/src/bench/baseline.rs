//! What the cases are compared with: plain work on as many bytes. A suite and a run have it for some sizes; with a cold L2 each case has
//! its own, on its own memory.

use std::process::ExitCode;

use dml_cuda::{Buffer, Device, PlainKind, PlainWork, Stream};

use super::repeated::{fastest, sample, Result, Way};
use crate::options::Plain;
use crate::run::events;
use crate::run::samples::Samples;

/// Less work is compared with an empty kernel: its launch takes longer than its bytes.
const SMALL: u64 = 1 << 20;

/// Kernels move whole thread blocks' shares.
const SHARE: u64 = 1 << 14;

/// Times plain work, and prints what a run with `--format json` prints.
pub fn time(
    plain: Plain,
    bytes: u64,
    iterations: u32,
    repeat: u32,
    device: &Device,
) -> std::result::Result<ExitCode, String> {
    events::line(&events::device(device, true))?;
    let samples = sample_new(plain, bytes, iterations, repeat, device);
    let samples = samples.map_err(|error| format!("timing a plain {plain:?}: {error}"))?;
    events::line(&events::dispatched("baseline", &samples, repeat))?;
    Ok(ExitCode::SUCCESS)
}

/// In memory of its own. In a graph, as dispatches are timed, and queued: the driver's copies of 512 MiB and more are faster one by one.
fn sample_new(plain: Plain, bytes: u64, iterations: u32, repeat: u32, device: &Device) -> Result<Samples> {
    let stream = device.create_stream()?;
    let to = [device.create_buffer(bytes)?];
    let (kinds, from) = match plain {
        Plain::Copy => {
            let from = [device.create_buffer(bytes)?];
            // Untouched pages of the host are all one page of zeros.
            PlainWork::new(PlainKind::Fill, device, &[], &from, bytes, 1)?.queue(&stream)?;
            (vec![PlainKind::Copy], from.to_vec())
        }
        Plain::Fill => (vec![PlainKind::Fill], Vec::new()),
        Plain::Write => (vec![PlainKind::Fill, PlainKind::Store], Vec::new()),
    };
    let ways = if device.ordinal().is_some() { &[Way::InGraph, Way::Queued][..] } else { &[Way::Queued] };
    fastest(kinds.into_iter().flat_map(|kind| ways.iter().map(move |way| (kind, *way))).map(|(kind, way)| {
        let mut work = PlainWork::new(kind, device, &from, &to, bytes, repeat)?;
        sample(&mut work, way, &stream, iterations, repeat)
    }))
}

/// The baseline of a case on the case's own buffers: `from` is empty for a fill, and `to` in place.
pub fn of_case(
    (from, to): (&[Buffer], &[Buffer]),
    bytes: u64,
    (way, stream): (Way, &Stream),
    iterations: u32,
    repeat: u32,
) -> Result<Samples> {
    let (kinds, from, to) = match (from, to) {
        _ if bytes < SMALL => (&[PlainKind::Empty][..], from, if to.is_empty() { from } else { to }),
        ([], to) => (&[PlainKind::Fill, PlainKind::Store][..], from, to),
        (from, []) => (&[PlainKind::Swap][..], from, from),
        (from, to) => (&[PlainKind::Copy][..], from, to),
    };
    let bytes = if bytes < SMALL { 0 } else { bytes / SHARE * SHARE };
    fastest(kinds.iter().map(|&kind| {
        let mut work = PlainWork::new(kind, stream.device(), from, to, bytes, repeat)?;
        sample(&mut work, way, stream, iterations, repeat)
    }))
}
