//! The hidden command `dml-cuda kernel NAME`, by which `bench` times one of its cases in a process of its own: a baseline,
//! or with a cold L2 a case next to its own baseline, whose result it checks.
//!
//! A cold L2 is what a kernel meets in a program that did something else before. Outputs of more than 8 MiB and less than
//! 512 MiB have two sets of buffers that take turns, so that each dispatch pushes the other set's bytes out of the cache.
//! Smaller ones stay in the cache, and larger ones push themselves out of it:
//!
//! ```text
//! dispatch   0      1      2      3
//! buffers    set 0  set 1  set 0  set 1
//! ```

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use dml_cuda::{BindingTable, Buffer, BufferBinding, CompiledOperator, Device, Graph, Stream};

use super::gpu::{Gpu, Kind, Memory, Way};
use super::suite::{self, random, Case};
use super::work::{Mode, Work};
use crate::options::Repeated;
use crate::run::events;
use crate::run::samples::{Result, Samples};

/// How samples are taken, as a results file says it.
pub const TIMING: &str =
    "events on the GPU around the launches of an iteration, one CUDA graph where a launch moves less than 32 MiB; \
    a cold L2 where the tensors are larger than 8 MiB; random data, and results are checked";

/// Launches that move fewer bytes are one graph: queued one by one they would wait for the host, which needs 3
/// microseconds for each.
const IN_GRAPH: u64 = 1 << 25;

/// Cases whose outputs have these many bytes have two sets of buffers, which take turns: smaller ones stay in the L2, as
/// their users have them, and larger ones push themselves out of it.
const TWO_SETS: std::ops::Range<u64> = (8 << 20) + 1..512 << 20;

/// A prime number of bytes, so that elements which are a power of two apart differ.
const RANDOM_BYTES: usize = 16_777_213;

/// A baseline on fewer bytes is an empty kernel: the launch takes longer than the bytes.
const SMALL: u64 = 1 << 20;

/// Kernels move whole thread blocks' shares, and the driver as much.
const SHARE: u64 = 1 << 14;

/// Times the case, and prints what a model with `--format json` prints, a case's own baseline last. `open` opens a GPU,
/// or for a baseline any device.
pub fn time(
    name: &str,
    is_cold: bool,
    times: &Repeated,
    open: impl FnOnce(bool) -> Result<Device, String>,
) -> Result<ExitCode, String> {
    let case = suite::named(name);
    let device = &open(case.is_some_and(Case::is_baseline))?;
    let case =
        case.ok_or_else(|| format!("the case is '{name}', but must be one of this program's"))?;
    let work = case
        .work
        .as_ref()
        .ok_or_else(|| format!("the case '{name}' is compared, but must be one that is timed"))?;
    events::line(&events::device(device, true, device.compile_options()))?;
    let timed = match work.mode.is_baseline() {
        true => {
            baseline(work, is_cold, times, device).map(|samples| vec![(samples, String::new())])
        }
        false => next_to_its_baseline(case, work, times, device),
    };
    for (samples, kernel) in timed.map_err(|error| error.to_string())? {
        let event = events::dispatched(name, &samples, times.repeat, &kernel);
        events::line(&event)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Times a baseline in memory of its own. On a GPU it is timed in a graph, as dispatches are, and queued: the driver's
/// copies of 512 MiB and more are faster one by one.
fn baseline(work: &Work, is_cold: bool, times: &Repeated, device: &Device) -> Result<Samples> {
    let is_copy = work.mode == Mode::BaselineOfCopies;
    let bytes = if is_copy { work.bytes / 2 } else { work.bytes };
    if device.ordinal().is_none() {
        let MemoryOnCpu { from, mut to } = memory_on_cpu(work)?;
        return Samples::take(times, &device.create_stream()?, None, || {
            (0..times.repeat).for_each(|_| run_on_cpu(&from, &mut to));
            Ok(())
        });
    }
    let gpu = Gpu::new(device)?;
    let to = [device.create_buffer(bytes)?];
    let from = if is_copy {
        vec![device.create_buffer(bytes)?]
    } else {
        Vec::new()
    };
    let kinds = match (is_copy, is_cold) {
        (true, _) => &[Kind::Copy][..],
        (false, false) => &[Kind::Fill],
        (false, true) => &[Kind::Fill, Kind::Store],
    };
    let memory = Memory {
        from: &from,
        to: &to,
        bytes,
    };
    gpu.fastest(&memory, kinds, &[Way::InGraph, Way::Queued], times)
}

/// The memory that a baseline on the CPU reads, and that it writes. A fill reads nothing.
struct MemoryOnCpu {
    from: Vec<u8>,
    to: Vec<u8>,
}

/// All of the memory is written before the baseline, because pages that were never written would all be one page of zeros.
fn memory_on_cpu(work: &Work) -> Result<MemoryOnCpu> {
    let bytes = usize::try_from(work.bytes)?;
    let read = if work.mode == Mode::BaselineOfCopies {
        bytes / 2
    } else {
        0
    };
    Ok(MemoryOnCpu {
        from: vec![1; read],
        to: vec![2; bytes - read],
    })
}

/// Fills bytes, or copies them if there are any to read.
fn run_on_cpu(from: &[u8], to: &mut [u8]) {
    if from.is_empty() {
        to.fill(1);
    } else {
        to.copy_from_slice(from);
    }
    std::hint::black_box(to);
}

/// Times a case's baseline on its memory, and then the case. Returns the samples of the case with its kernel, and those of
/// its baseline.
fn next_to_its_baseline(
    case: &Case,
    work: &Work,
    times: &Repeated,
    device: &Device,
) -> Result<Vec<(Samples, String)>> {
    let lengths = case.lengths();
    let (moved, total) = (work.bytes, case.output_bytes());
    let mut sets = vec![Bound::new(case, device, &lengths)?];
    if TWO_SETS.contains(&total) {
        sets.push(Bound::new(case, device, &lengths)?);
    }
    let gpu = Gpu::new(device)?;
    let (mut graph, way) = if moved < IN_GRAPH {
        (
            Some(device.record_graph(in_turn(&sets, times))?),
            Way::InGraph,
        )
    } else {
        (None, Way::Queued)
    };
    // A GPU that waited has lower clocks: nothing is timed until they are up.
    sample(&sets, graph.as_mut(), times, &gpu.stream)?;
    // The baseline is timed on the same buffers, so that the caches are as cold.
    let (kinds, bytes) = baseline_of(work.mode, moved, total);
    let from: Vec<Buffer> = sets.iter().filter_map(|set| set.input.clone()).collect();
    let to: Vec<Buffer> = sets.iter().map(|set| set.output.clone()).collect();
    let memory = Memory {
        from: &from,
        to: &to,
        bytes,
    };
    let baseline = gpu.fastest(&memory, kinds, &[way], times)?;
    let samples = sample(&sets, graph.as_mut(), times, &gpu.stream)?;
    check(
        &sets,
        &Bound::new(case, &Device::cpu(), &lengths)?,
        &gpu.stream,
    )?;
    let kernel = events::kernel_of(&sets[0].operator, work.mode == Mode::InPlace);
    Ok(vec![(samples, kernel), (baseline, String::new())])
}

/// The dispatches of an iteration: the sets take turns.
fn in_turn<'a>(
    sets: &'a [Bound],
    times: &Repeated,
) -> impl Iterator<Item = &'a BindingTable> + Clone {
    let tables = sets.iter().map(|set| &set.table);
    tables.cycle().take(times.repeat as usize)
}

/// Times the dispatches, as a graph or queued.
fn sample(
    sets: &[Bound],
    graph: Option<&mut Graph>,
    times: &Repeated,
    stream: &Stream,
) -> Result<Samples> {
    Samples::take(times, stream, graph, || {
        for table in in_turn(sets, times) {
            table.dispatch(stream)?;
        }
        Ok(())
    })
}

/// The kinds of baseline that a case is compared with, and their bytes.
fn baseline_of(mode: Mode, moved: u64, total: u64) -> (&'static [Kind], u64) {
    let bytes = if mode == Mode::Fill {
        moved
    } else {
        (moved / 2).min(total)
    };
    let bytes = bytes / SHARE * SHARE;
    match mode {
        _ if bytes < SMALL => (&[Kind::Empty], 0),
        Mode::Fill => (&[Kind::Fill, Kind::Store], bytes),
        Mode::InPlace => (&[Kind::Swap], bytes),
        _ => (&[Kind::Copy], bytes),
    }
}

/// A case's operator on buffers of its own, with random bytes.
struct Bound {
    /// Fills have none, and in place it is the output.
    input: Option<Buffer>,
    output: Buffer,
    operator: CompiledOperator,
    /// The buffers, bound to the operator.
    table: BindingTable,
}

impl Bound {
    /// Compiles the operator and binds it to buffers. The lengths are given, because the CPU's must be the same.
    fn new(case: &Case, device: &Device, lengths: &[u32]) -> Result<Self> {
        let operator = device.compile_operator(&device.create_operator(case.desc()?)?)?;
        let output = random_buffer(case, device)?;
        let is_fill = lengths.is_empty();
        let (mut input, mut inputs) = (None, Vec::new());
        if !is_fill {
            if !case.is_in_place() {
                input = Some(random_buffer(case, device)?);
            }
            let lengths = device.create_buffer_from(lengths)?;
            inputs = vec![
                misaligned(case, input.as_ref().unwrap_or(&output)),
                BufferBinding::whole(&lengths),
            ];
        }
        let table = operator.bind_at_elements(&inputs, misaligned(case, &output))?;
        Ok(Self {
            input,
            output,
            operator,
            table,
        })
    }
}

/// A buffer of random bytes, with room for the misalignment.
fn random_buffer(case: &Case, device: &Device) -> Result<Buffer> {
    let buffer = device.create_buffer(case.output_bytes() + 256)?;
    write_random_bytes(&buffer)?;
    Ok(buffer)
}

/// A buffer from the case's misalignment on.
fn misaligned(case: &Case, buffer: &Buffer) -> BufferBinding {
    let length = buffer.size_in_bytes() - case.misaligned;
    BufferBinding::range(buffer, case.misaligned, length)
}

/// Dispatches once more, and compares every byte of the outputs with what a CPU makes of the same bytes.
fn check(sets: &[Bound], on_cpu: &Bound, stream: &Stream) -> Result<()> {
    on_cpu
        .table
        .dispatch(&on_cpu.output.device().create_stream()?)?;
    let [mut found, mut required] = [(); 2].map(|()| vec![0; RANDOM_BYTES]);
    for set in sets {
        // What an earlier dispatch left there proves nothing.
        write_random_bytes(&set.output)?;
        set.table.dispatch(stream)?;
        for (at, length) in parts(&set.output) {
            let (found, required) = (&mut found[..length], &mut required[..length]);
            set.output.read(at, found)?;
            on_cpu.output.read(at, required)?;
            if found != required {
                let equal = found.iter().zip(&*required).take_while(|(a, b)| a == b);
                let n = equal.count();
                let (at, found, required) = (at + n as u64, found[n], required[n]);
                return Err(format!(
                    "byte {at} of the output is {found:#04x}, but must be {required:#04x}"
                )
                .into());
            }
        }
    }
    Ok(())
}

/// Numbers that every buffer begins with, and the generator that draws more of them.
struct RandomNumbers {
    state: u64,
    /// All numbers so far.
    numbers: Vec<u64>,
}

/// Writes the same bytes again after `RANDOM_BYTES`. They are cast from whole numbers, which are made much faster than
/// byte by byte, and only as many as a buffer needs.
fn write_random_bytes(buffer: &Buffer) -> Result<()> {
    static RANDOM: Mutex<RandomNumbers> = Mutex::new(RandomNumbers {
        state: 7,
        numbers: Vec::new(),
    });
    let mut drawn = RANDOM.lock().unwrap_or_else(PoisonError::into_inner);
    let RandomNumbers { state, numbers } = &mut *drawn;
    let needed = buffer.size_in_bytes().min(RANDOM_BYTES as u64).div_ceil(8) as usize;
    numbers.extend(
        std::iter::repeat_with(|| random(state)).take(needed.saturating_sub(numbers.len())),
    );
    let bytes = bytemuck::cast_slice(numbers);
    Ok(parts(buffer).try_for_each(|(at, length)| buffer.write(at, &bytes[..length]))?)
}

/// The beginnings of a buffer's parts, and their bytes.
fn parts(buffer: &Buffer) -> impl Iterator<Item = (u64, usize)> {
    let size = buffer.size_in_bytes();
    (0..size)
        .step_by(RANDOM_BYTES)
        .map(move |at| (at, (size - at).min(RANDOM_BYTES as u64) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_moves_as_much_as_its_case() {
        for (mode, moved, total, kinds, bytes) in [
            (Mode::Fill, SMALL - 1, SMALL, &[Kind::Empty][..], 0),
            (
                Mode::Fill,
                SMALL + SHARE + 1,
                2 * SMALL,
                &[Kind::Fill, Kind::Store],
                SMALL + SHARE,
            ),
            (Mode::InPlace, 2 * SMALL, 2 * SMALL, &[Kind::Swap], SMALL),
            (Mode::Copy, 5 * SMALL, 2 * SMALL, &[Kind::Copy], 2 * SMALL),
        ] {
            assert!(
                baseline_of(mode, moved, total) == (kinds, bytes),
                "{mode} {moved}"
            );
        }
    }

    #[test]
    fn a_baseline_on_a_cpu_moves_the_bytes_of_its_line() {
        let baselines = suite::of_tier(crate::options::Tier::Quick)
            .into_iter()
            .filter(Case::is_baseline);
        for work in baselines.filter_map(|case| case.work) {
            let MemoryOnCpu { from, mut to } = memory_on_cpu(&work).expect("it is small");
            assert_eq!(
                (size_of_val(&*from) + size_of_val(&*to)) as u64,
                work.bytes,
                "{}",
                work.name()
            );
            run_on_cpu(&from, &mut to);
            assert!(to.iter().all(|byte| *byte == 1), "{}", work.name());
        }
    }

    #[test]
    fn every_byte_of_a_result_is_checked() {
        for name in [
            "small_fill_of_64_bytes.f32.fill",
            "small_16x256.f16.copy",
            "small_16x256.u8.in_place",
        ] {
            let case = suite::all()
                .find(|case| case.name.ends_with(name))
                .expect(name);
            let bound = |lengths: &[u32]| Bound::new(case, &Device::cpu(), lengths).expect(name);
            let (lengths, stream) = (
                case.lengths(),
                Device::cpu().create_stream().expect("a stream"),
            );
            let shorter: Vec<u32> = lengths.iter().map(|length| length / 2).collect();
            let is_right =
                |on_cpu: &[u32]| check(&[bound(&lengths)], &bound(on_cpu), &stream).is_ok();
            assert_eq!(
                (is_right(&lengths), is_right(&shorter)),
                (true, lengths.is_empty()),
                "{name}"
            );
        }
    }
}
