//! What the cases are compared with: plain work on as many bytes. A suite and a run have it for some sizes; with a cold L2 each case has
//! its own, on its own memory.

use std::process::ExitCode;

use dml_cuda::{Buffer, Device, PlainKind, PlainWork, Stream};

use super::repeated::{fastest, sample_plain, Result, Way};
use crate::options::{Plain, Repeated};
use crate::run::events;
use crate::run::samples::Samples;

/// Less work is compared with an empty kernel: its launch takes longer than its bytes.
const SMALL: u64 = 1 << 20;

/// Kernels move whole thread blocks' shares.
const SHARE: u64 = 1 << 14;

/// Times plain work, and prints what a run with `--format json` prints.
pub fn time(plain: Plain, bytes: u64, times: &Repeated, device: &Device) -> std::result::Result<ExitCode, String> {
    events::line(&events::device(device, true))?;
    let samples = sample_new(plain, bytes, (times.iterations, times.repeat), device);
    let samples = samples.map_err(|error| format!("timing a plain {plain:?}: {error}"))?;
    events::line(&events::dispatched("baseline", &samples, times.repeat))?;
    Ok(ExitCode::SUCCESS)
}

/// In memory of its own. In a graph, as dispatches are timed, and queued: the driver's copies of 512 MiB and more are faster one by one.
fn sample_new(plain: Plain, bytes: u64, times: (u32, u32), device: &Device) -> Result<Samples> {
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
    fastest(kinds.iter().flat_map(|kind| ways.iter().map(move |way| (*kind, *way))).map(|(kind, way)| {
        let work = PlainWork::new(kind, device, &from, &to, bytes, times.1)?;
        sample_plain(work, way, &stream, times)
    }))
}

/// The baseline of a case on the case's own buffers: `from` is empty for a fill, and `to` in place.
pub fn of_case(
    (from, to): (&[Buffer], &[Buffer]),
    bytes: u64,
    (way, stream): (Way, &Stream),
    times: (u32, u32),
) -> Result<Samples> {
    let kinds = match (from, to) {
        _ if bytes < SMALL => &[PlainKind::Empty][..],
        ([], _) => &[PlainKind::Fill, PlainKind::Store],
        (_, []) => &[PlainKind::Swap],
        _ => &[PlainKind::Copy],
    };
    let to = if to.is_empty() { from } else { to };
    let bytes = if bytes < SMALL { 0 } else { bytes / SHARE * SHARE };
    fastest(kinds.iter().map(|&kind| {
        sample_plain(PlainWork::new(kind, stream.device(), from, to, bytes, times.1)?, way, stream, times)
    }))
}
