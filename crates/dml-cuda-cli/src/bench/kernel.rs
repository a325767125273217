//! The hidden command that times one of the bench's cases with a cold L2, and its baseline, and checks what it computes.

use std::process::ExitCode;

use dml_cuda::{Buffer, BufferBinding, Device};

use super::cases::Case;
use super::repeated::{queued, sample, Result, Way};
use super::suite::case_named;
use super::{baseline, check};
use crate::options::Repeated;
use crate::run::events;
use crate::run::samples::Samples;

/// How samples are taken, as a run says it.
pub const TIMING: &str =
    "events on the GPU around the launches of an iteration, one CUDA graph where a launch moves less than 32 MiB; \
    a cold L2 where the tensors are of more than 8 MiB; random data, and results are checked";

/// What the second dispatch that is printed is called.
pub const BASELINE: &str = "baseline";

/// Launches that move fewer bytes are one graph: queued one by one they would wait for the host, which takes 3 microseconds each.
const IN_GRAPH: u64 = 1 << 25;

/// Tensors of these many bytes have two sets of buffers, which take turns: smaller ones stay in the L2, as their users have them, and
/// larger ones push themselves out of it.
const TWO_SETS: std::ops::Range<u64> = (8 << 20) + 1..512 << 20;

/// A prime number of bytes, so that elements which are a power of two apart differ.
const RANDOM_BYTES: usize = 16_777_213;

/// Times the case, and prints what a run with `--format json` prints, its baseline last.
pub fn time(name: &str, times: &Repeated, device: &Device) -> std::result::Result<ExitCode, String> {
    if device.ordinal().is_none() {
        return Err(format!("the device is {device}, must be a GPU, whose L2 is kept cold"));
    }
    let case = case_named(name).ok_or_else(|| format!("the case is '{name}', must be one of this program's"))?;
    events::line(&events::device(device, true))?;
    let (iterations, repeat) = (times.iterations, times.repeat);
    let (timed, baseline) = samples(&case, (iterations, repeat), device).map_err(|error| error.to_string())?;
    events::line(&events::dispatched(name, &timed, repeat))?;
    events::line(&events::dispatched(BASELINE, &baseline, repeat))?;
    Ok(ExitCode::SUCCESS)
}

fn samples(case: &Case, times: (u32, u32), device: &Device) -> Result<(Samples, Samples)> {
    let lengths = case.lengths();
    let moved = case.floor_bytes(&lengths);
    let total = case.output().total_tensor_size_in_bytes;
    // Fills have no inputs, and in place the inputs are the outputs. There is room for the misalignment.
    let make = |wanted: bool| {
        let sets = if TWO_SETS.contains(&total) { 2 } else { 1 };
        let each = (0..sets).filter(|_| wanted).map(|_| device.create_buffer(total + 256));
        each.collect::<std::result::Result<Vec<_>, _>>()
    };
    let (inputs, outputs) = (make(!case.is_fill())?, make(!case.in_place)?);
    inputs.iter().try_for_each(write_random_bytes)?;
    let length_buffer = if case.is_fill() { None } else { Some(device.create_buffer_from(&lengths)?) };

    let operator = device.compile_operator(&device.create_operator(case.desc.clone())?)?;
    let range =
        |buffer: &Buffer| BufferBinding::range(buffer, case.misaligned, buffer.size_in_bytes() - case.misaligned);
    let to = if case.in_place { &inputs } else { &outputs };
    let bind = |(n, output): (usize, &Buffer)| {
        let lengths = length_buffer.as_ref().map(BufferBinding::whole);
        let bound: Vec<BufferBinding> = inputs.get(n).map(range).into_iter().chain(lengths).collect();
        operator.bind_at_elements(&bound, &range(output))
    };
    let tables = to.iter().enumerate().map(bind).collect::<std::result::Result<Vec<_>, _>>()?;

    let stream = device.create_stream()?;
    let way = if moved < IN_GRAPH { Way::InGraph } else { Way::Queued };
    let all = || tables.iter().cycle().take(times.1 as usize);
    let mut graph = device.record_graph(all())?;
    let mut dispatched = || {
        sample(times, || match way {
            Way::InGraph => {
                graph.launch(&stream)?;
                Ok(Some(graph.milliseconds()?))
            }
            Way::Queued => queued(&stream, || all().try_for_each(|table| table.dispatch(&stream))),
        })
    };
    // A GPU that waited has lower clocks: nothing is timed until they are up.
    dispatched()?;
    let plain = if case.is_fill() { moved } else { (moved / 2).min(total) };
    let baseline = baseline::of_case((&inputs, &outputs), plain, (way, &stream), times)?;
    let timed = dispatched()?;
    for (n, (table, output)) in tables.iter().zip(to).enumerate() {
        let input = inputs.get(n).unwrap_or(output);
        check::check(case, &lengths, input, output, || Ok(table.dispatch(&stream)?))?;
    }
    Ok((timed, baseline))
}

fn write_random_bytes(buffer: &Buffer) -> Result<()> {
    let mut state = 7u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    };
    let random: Vec<u8> = std::iter::repeat_with(next).flat_map(u64::to_le_bytes).take(RANDOM_BYTES).collect();
    let size = buffer.size_in_bytes();
    for at in (0..size).step_by(RANDOM_BYTES) {
        buffer.write(at, &random[..(size - at).min(RANDOM_BYTES as u64) as usize])?;
    }
    Ok(())
}
