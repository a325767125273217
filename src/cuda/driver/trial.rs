//! Measured selection: times launches on the GPU at hand, on a stream of their own and scratch memory of the tensors'
//! sizes.

use std::sync::Arc;
use std::time::Duration;

use bytemuck::Pod;
use cudarc::driver::{result, sys};

use super::context::Context;
use super::failure::cuda_error;
use super::graph::Graph;
use super::handle::{wait, OwnStream};
use super::loaded_kernel::LoadedKernel;
use crate::cuda::launch::{Addresses, Launch};
use crate::error::{CudaError, DispatchError};

/// The memory of an operator's tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensors {
    /// Bytes of the first input. `None` if there is none, or if it is the output.
    pub input: Option<u64>,
    pub output: u64,
    pub lengths: Option<Lengths>,
}

/// The second input: numbers up to the size of the axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    pub bytes: u64,
    /// Whether they are UINT64.
    pub wide: bool,
    pub most: u64,
}

/// Sets of tensors take turns. They are as many as are so many times the L2 cache, so that it is cold, but at most so
/// many: small tensors stay in the cache, as in a program.
const CACHES: u64 = 3;
const MOST_SETS: u64 = 48;
/// Bytes of random data. Longer memory repeats them.
const RANDOM: usize = 1 << 18;

/// The times of launches, in order, each the least of `rounds` runs of a graph. The pointers are `past` bytes past
/// a multiple of 256.
pub(crate) fn times<'a>(
    context: &Arc<Context>,
    tensors: &Tensors,
    past: u32,
    launches: impl Iterator<Item = &'a (Launch, Arc<LoadedKernel>)>,
    rounds: u32,
) -> Result<Vec<Duration>, DispatchError> {
    let _current = context.enter()?;
    let trial = Trial::new(context, tensors, past)?;
    launches.map(|(launch, kernel)| trial.time(launch, kernel, rounds)).collect()
}

/// Scratch memory and a stream.
struct Trial {
    context: Arc<Context>,
    /// The addresses of the inputs and of the output of each set.
    sets: Vec<(Vec<u64>, u64)>,
    // Dropped in this order, after `drop` has waited for the stream.
    memory: Vec<Scratch>,
    stream: OwnStream,
}

impl Trial {
    fn new(context: &Arc<Context>, tensors: &Tensors, past: u32) -> Result<Self, CudaError> {
        let stream = OwnStream::new(&context.primary)?;
        let past = u64::from(past);
        let [input, output] = [tensors.input.unwrap_or(0), tensors.output].map(|bytes| {
            if bytes == 0 {
                0
            } else {
                (bytes + past).next_multiple_of(256)
            }
        });
        let sets = (CACHES * u64::from(context.target.l2_cache)).div_ceil(input + output).clamp(1, MOST_SETS);
        // xorshift: which numbers they are does not matter.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut memory = vec![Scratch::new((input + output) * sets, &stream, &mut random)?];
        if let Some(Lengths { bytes, wide, most }) = tensors.lengths {
            let mut length = || random() % (most + 1);
            memory.push(match wide {
                true => Scratch::new(bytes, &stream, length)?,
                false => Scratch::new(bytes, &stream, || length() as u32)?,
            });
        }
        let set = |n: u64| {
            let output_at = memory[0].0 + n * (input + output) + past;
            let mut inputs = Vec::new();
            if let Some(lengths) = memory.get(1) {
                inputs.extend([if input == 0 { output_at } else { output_at + output }, lengths.0]);
            }
            (inputs, output_at)
        };
        let sets = (0..sets).map(set).collect();
        wait(stream.handle)?;
        Ok(Self { context: context.clone(), sets, memory, stream })
    }

    fn time(&self, tried: &Launch, kernel: &LoadedKernel, rounds: u32) -> Result<Duration, DispatchError> {
        // The sets of small tensors take two turns, so that the resolution of events does not matter.
        let turns = if self.sets.len() as u64 == MOST_SETS { 2 } else { 1 };
        let count = self.sets.len() * turns;
        let mut graph = Graph::record(&self.context, |stream| {
            self.sets.iter().cycle().take(count).try_for_each(|(inputs, output)| {
                let addresses = Addresses { inputs, output: *output };
                // SAFETY: the scratch memory has the tensors' sizes, and lives until its work is done.
                Ok(unsafe { kernel.launch(tried, &addresses, stream) }?)
            })
        })?;
        let mut least = f64::MAX;
        // The first run is not timed: it loads what the others find loaded.
        for round in 0..=rounds {
            graph.launch(self.stream.handle)?;
            let milliseconds = graph.milliseconds_alone(self.stream.handle)?;
            least = if round == 0 { least } else { least.min(milliseconds) };
        }
        // Not a number that no duration has, whatever a driver says.
        Ok(Duration::try_from_secs_f64(least * 1e-3 / count as f64).unwrap_or(Duration::MAX))
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if wait(self.stream.handle).is_err() {
            // A kernel may still use the memory, so it leaks.
            self.memory.drain(..).for_each(std::mem::forget);
        }
    }
}

/// Device memory with random contents.
struct Scratch(sys::CUdeviceptr);

impl Scratch {
    /// At least `bytes` bytes. `random` makes the first values, which repeat.
    fn new<T: Pod>(bytes: u64, stream: &OwnStream, mut random: impl FnMut() -> T) -> Result<Self, CudaError> {
        let bytes = (bytes as usize).max(1).next_multiple_of(size_of::<T>());
        // SAFETY: `times` has made the context current.
        let address = unsafe { result::malloc_sync(bytes) }.map_err(cuda_error("allocating scratch memory"))?;
        let memory = Self(address);
        let values: Vec<T> = std::iter::repeat_with(&mut random).take(bytes.min(RANDOM) / size_of::<T>()).collect();
        let (mut written, failed) = (size_of_val(&values[..]), cuda_error("writing scratch memory"));
        // SAFETY: the range is inside the allocation, which nothing else uses yet. If the wait fails, `values` leaks.
        let copied = unsafe { result::memcpy_htod_async(address, &values, stream.handle.raw()) }.map_err(&failed);
        copied.and_then(|()| wait(stream.handle)).inspect_err(|_| std::mem::forget(values))?;
        while written < bytes {
            let more = written.min(bytes - written);
            // SAFETY: both ranges are inside the allocation, and apart.
            unsafe { result::memcpy_dtod_async(address + written as u64, address, more, stream.handle.raw()) }
                .map_err(&failed)?;
            written += more;
        }
        wait(stream.handle)?;
        Ok(memory)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it, it is freed only here, and `Trial` has waited for its work.
        let _ = unsafe { result::free_sync(self.0) };
    }
}
