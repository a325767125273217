//! Measures the kernels that an operator may be compiled to, on a stream of their own and in scratch memory of the
//! sizes of its tensors.

use std::sync::Arc;
use std::time::Duration;

use crate::cuda::select::Candidate;
use crate::cuda::{
    load, Addresses, Context, Graph, Launch, Loaded, LoadedKernel, Memory, Placement, Stream,
    StreamHandle,
};
use crate::desc::OperatorDesc;
use crate::device::operator::{bytes_of_element, Operator};
use crate::error::{DispatchError, Error};
use crate::operator_plan::OperatorPlan;
use crate::options::{CompileOptions, Specialize};

/// Kernels that are timed for each placement and alignment of pointers.
const MEASURED: usize = 4;
/// How often each of them is timed.
const ROUNDS: u32 = 4;
/// Another kernel replaces the one with the lowest estimate only if its time is below this share. A smaller difference is
/// noise, or goes once the kernel is specialized.
const CONVINCING: f64 = 0.97;
/// The sets of tensors that take turns hold this many times the bytes of the L2 cache, so that accesses are cold.
const CACHES: u64 = 3;
/// The most sets. If this number of them fits the L2 cache, small tensors stay in it, as in a program.
const MOST_SETS: u64 = 48;
/// Random numbers. Longer memory repeats them.
const RANDOM: usize = 1 << 15;

/// The fastest launch for pointers at multiples of 16 bytes, then, if pointers may be others, the fastest that accepts
/// all; and all candidates that were timed. `None` if they cannot be timed, or if nothing moves.
pub(crate) fn fastest(
    operator: &Operator,
    plan: &OperatorPlan,
    context: &Arc<Context>,
    options: CompileOptions,
    pointer_alignment: u32,
    placement: Placement,
) -> Option<(Loaded, Vec<Candidate>)> {
    let candidates = plan.candidates(&context.target, placement);
    candidates.first()?;
    let mut measured = Vec::new();
    // The fastest of the first candidates that accept pointers at multiples of `alignment`, timed with pointers `past`
    // bytes behind a multiple of 16.
    let mut fastest_of = |alignment: u32, past: u32| {
        let mut timed: Vec<Candidate> = candidates.clone();
        timed.retain(|candidate| alignment.is_multiple_of(candidate.launch.alignment));
        timed.truncate(MEASURED);
        // Specializing takes longer than measuring, so only the fastest is specialized.
        let generic = options.with_specialize(Specialize::Never);
        let loaded = load(
            context,
            timed.iter().map(|candidate| candidate.launch.clone()),
            generic,
        )
        .ok()?;
        let times = times(operator, context, placement, past, ROUNDS, &loaded).ok()?;
        for (candidate, time) in timed.iter_mut().zip(times) {
            candidate.time = Some(time);
        }
        let fastest = chosen(&timed)?.launch.clone();
        measured.extend(timed);
        load(context, [fastest], options).ok()?.pop()
    };
    let alignment = pointer_alignment.max(bytes_of_element(operator.desc.output_tensor()));
    let mut loaded = vec![fastest_of(16, 0)?];
    if !alignment.is_multiple_of(loaded[0].0.alignment) {
        loaded.push(fastest_of(alignment, alignment % 16)?);
    }
    Some((loaded, measured))
}

/// The fastest candidate, or the first one, which has the lowest estimate, if it is about as fast.
fn chosen(timed: &[Candidate]) -> Option<&Candidate> {
    let estimated = timed.first()?;
    let fastest = timed.iter().min_by_key(|candidate| candidate.time)?;
    let is_convincing = fastest.time? < estimated.time?.mul_f64(CONVINCING);
    Some(if is_convincing { fastest } else { estimated })
}

/// The times of launches of an operator, in order, each the lowest of `rounds` runs of a graph. The pointers are `past`
/// bytes past a multiple of 256.
pub(crate) fn times(
    operator: &Operator,
    context: &Arc<Context>,
    placement: Placement,
    past: u32,
    rounds: u32,
    loaded: &Loaded,
) -> Result<Vec<Duration>, Error> {
    let sets = TensorSets::new(Tensors::new(operator, placement), context, past)?;
    // Dropped before the memory, which waits for what may be left of its work.
    let stream = Stream::new(context)?;
    // The sets of small tensors take two turns, so that the resolution of events does not matter.
    let turns = if sets.count == MOST_SETS { 2 } else { 1 };
    let launches = turns * sets.count;
    let mut times = Vec::with_capacity(loaded.len());
    for (launch, kernel) in loaded {
        let mut graph = Graph::record(context, |stream| {
            for n in 0..launches {
                sets.launch(n % sets.count, launch, kernel, stream)?;
            }
            Ok(())
        })?;
        // The first run is not timed: it loads what the others find loaded.
        graph.launch(stream.handle())?;
        graph.milliseconds_alone(stream.handle())?;
        let mut lowest = f64::MAX;
        for _ in 0..rounds {
            graph.launch(stream.handle())?;
            lowest = lowest.min(graph.milliseconds_alone(stream.handle())?);
        }
        // A driver may report a time that no duration can hold.
        let time = Duration::try_from_secs_f64(lowest * 1e-3 / launches as f64);
        times.push(time.unwrap_or(Duration::MAX));
    }
    Ok(times)
}

/// Scratch memory for several sets of an operator's tensors, one behind the other. The lengths are shared.
struct TensorSets {
    memory: Memory,
    lengths: Option<Memory>,
    /// The number of sets.
    count: u64,
    /// Bytes of the first input and of the output, rounded up. 0 without an input.
    input: u64,
    output: u64,
    /// Bytes that each tensor begins past an aligned address.
    past: u64,
}

impl TensorSets {
    fn new(tensors: Tensors, context: &Arc<Context>, past: u32) -> Result<Self, Error> {
        let past = u64::from(past);
        let rounded = |bytes: u64| match bytes {
            0 => 0,
            _ => (bytes + past).next_multiple_of(256),
        };
        let (input, output) = (rounded(tensors.input), rounded(tensors.output));
        let cold = CACHES * u64::from(context.target.l2_cache);
        let count = cold.div_ceil(input + output).clamp(1, MOST_SETS);
        let values: Vec<u8> = random().take(RANDOM).flat_map(u64::to_le_bytes).collect();
        let memory = Memory::repeating(context, (input + output) * count, &values)?;
        let lengths = match tensors.lengths {
            Some((bytes, values)) => Some(Memory::repeating(context, bytes, &values)?),
            None => None,
        };
        Ok(Self {
            memory,
            lengths,
            count,
            input,
            output,
            past,
        })
    }

    /// Queues a launch on the tensors of set `n`.
    #[allow(unsafe_code)]
    fn launch(
        &self,
        n: u64,
        launch: &Launch,
        kernel: &LoadedKernel,
        stream: StreamHandle,
    ) -> Result<(), DispatchError> {
        let output = self.memory.address() + n * (self.input + self.output) + self.past;
        let input = match self.input {
            0 => output,
            _ => output + self.output,
        };
        let lengths = self.lengths.as_ref().map(Memory::address);
        let inputs = [input, lengths.unwrap_or_default()];
        let addresses = Addresses {
            inputs: if lengths.is_some() { &inputs } else { &[] },
            output,
        };
        // SAFETY: the memory has the tensors' sizes, and lives until its work is done.
        unsafe { kernel.launch(launch, &addresses, stream) }?;
        Ok(())
    }
}

/// The memory of an operator's tensors in a placement.
struct Tensors {
    /// Bytes of the first input: 0 if there is none, or if it is the output.
    input: u64,
    output: u64,
    /// Bytes of the second input, and random values, which repeat.
    lengths: Option<(u64, Vec<u8>)>,
}

impl Tensors {
    fn new(operator: &Operator, placement: Placement) -> Self {
        let output = operator.desc.output_tensor().total_tensor_size_in_bytes;
        let desc = match &*operator.desc {
            OperatorDesc::ReverseSubsequences(desc) => desc,
            OperatorDesc::FillValueSequence(_) => {
                return Self {
                    input: 0,
                    output,
                    lengths: None,
                };
            }
        };
        let input = if placement == Placement::OutOfPlace {
            desc.input_tensor.total_tensor_size_in_bytes
        } else {
            0
        };
        let tensor = &desc.sequence_lengths_tensor;
        let (width, most) = (
            bytes_of_element(tensor) as usize,
            u64::from(desc.input_tensor.sizes[desc.axis as usize]),
        );
        let lengths = random().take(RANDOM).map(|number| number % (most + 1));
        let values = lengths
            .flat_map(|length| length.to_le_bytes().into_iter().take(width))
            .collect();
        Self {
            input,
            output,
            lengths: Some((tensor.total_tensor_size_in_bytes, values)),
        }
    }
}

/// Random numbers (xorshift): which ones they are does not matter.
fn random() -> impl Iterator<Item = u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

#[cfg(all(test, in_repository))]
mod tests {
    use super::*;
    use crate::cuda::GpuTarget;
    use crate::{desc::TensorDataType, dml_cuda_testing, Device};

    #[test]
    fn another_kernel_is_chosen_only_if_it_is_clearly_faster() {
        let desc = dml_cuda_testing::lanes(TensorDataType::Float32, 2, 8);
        let plan = Device::cpu().create_operator(desc).expect("right").plan();
        let mut timed = plan.candidates(&GpuTarget::NAMED[0].1, Placement::OutOfPlace);
        timed.truncate(2);
        for (time, is_other) in [(101, false), (98, false), (96, true)] {
            timed[0].time = Some(Duration::from_micros(100));
            timed[1].time = Some(Duration::from_micros(time));
            let chosen = chosen(&timed).expect("there are candidates");
            assert_eq!(chosen.launch == timed[1].launch, is_other, "{time}");
        }
    }

    #[test]
    fn measured_memory_is_that_of_the_tensors() {
        for (data_type, width) in [(TensorDataType::UInt32, 4), (TensorDataType::UInt64, 8)] {
            let mut desc = dml_cuda_testing::lanes(TensorDataType::Float32, 2, 8);
            desc.sequence_lengths_tensor = crate::BufferTensorDesc::packed(data_type, &[2, 1]);
            let operator = Device::cpu().create_operator(desc).expect("right");
            for (placement, input) in [(Placement::OutOfPlace, 64), (Placement::InPlace, 0)] {
                let found = Tensors::new(&operator, placement);
                let (bytes, values) = found.lengths.expect("lengths");
                assert_eq!(
                    (found.input, found.output, bytes),
                    (input, 64, 2 * width as u64)
                );
                let lengths = values.chunks(width).map(|value| {
                    value
                        .iter()
                        .rev()
                        .fold(0, |all, byte| all << 8 | u64::from(*byte))
                });
                let counts = lengths.fold([0; 9], |mut counts, length| {
                    counts[length as usize] += 1;
                    counts
                });
                assert!(
                    counts.iter().all(|&count| count > RANDOM / 10),
                    "{counts:?}"
                );
            }
        }
    }
}
