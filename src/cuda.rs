//! The CUDA backend: the only importer of cudarc. `driver` is the only place that says `unsafe`, but for
//! [`CompiledOperator::dispatch_raw`], whose caller signs its contract.

mod driver;
#[cfg(test)]
mod every_launch;
mod raw;

pub use driver::Properties;
pub(crate) use driver::{describe, device_count, Context, Event, Memory, Stream};
pub use raw::DevicePointer;

use std::sync::Arc;

use crate::binding::BindingTable;
use crate::error::{CompileError, CudaError, DispatchError};
use crate::plan::fill_value_sequence::Kernel as Fill;
use crate::plan::{Entry, Launch, Module, Plan};
use driver::Kernel;

/// The PTX that build.rs compiled a kernel file to or took from kernels/prebuilt.
macro_rules! ptx {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $name, ".ptx"))
    };
}

impl Module {
    const fn ptx(self) -> &'static str {
        match self {
            Module::FillValueSequence => ptx!("fill_value_sequence"),
            Module::ReverseAnyStrips => ptx!("reverse_subsequences_any_strips"),
            Module::ReverseClusters => ptx!("reverse_subsequences_clusters"),
            Module::ReverseColumns => ptx!("reverse_subsequences_columns"),
            Module::ReverseUnits => ptx!("reverse_subsequences_units"),
            Module::ReverseLanes => ptx!("reverse_subsequences_lanes"),
            Module::ReverseLongRows => ptx!("reverse_subsequences_long_rows"),
            Module::ReverseRows => ptx!("reverse_subsequences_rows"),
            Module::ReverseSmall => ptx!("reverse_subsequences_small"),
            Module::ReverseStaged => ptx!("reverse_subsequences_staged"),
            Module::ReverseStrips => ptx!("reverse_subsequences_strips"),
            Module::ReverseTiny => ptx!("reverse_subsequences_tiny"),
            Module::ReverseTransposed => ptx!("reverse_subsequences_transposed"),
            Module::ReverseTurned => ptx!("reverse_subsequences_turned"),
        }
    }
}

/// The kernels of one compiled operator, kept loaded.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    context: Arc<Context>,
    kernels: Vec<(Entry, Arc<Kernel>)>,
}

impl Functions {
    fn get(&self, entry: Entry) -> &Kernel {
        let found = self.kernels.iter().find(|(loaded, _)| *loaded == entry);
        &found.expect("`functions` loads the kernel of every launch that pointers can get").1
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

/// Looks up the kernels that some pointers get, loading those that are used first on this context.
pub(crate) fn functions(context: &Arc<Context>, plan: &Plan) -> Result<Functions, CompileError> {
    let mut kernels = Vec::with_capacity(4);
    let mut load = |entry: Entry| -> Result<(), CudaError> {
        if kernels.iter().all(|(loaded, _)| *loaded != entry) {
            kernels.push((entry, context.kernel(entry, entry.module.ptx())?));
        }
        Ok(())
    };
    match plan {
        Plan::FillValueSequence(plan) => plan.launches.iter().map(Fill::entry).try_for_each(&mut load)?,
        Plan::ReverseSubsequences(plan) => {
            let ways = std::iter::once(&plan.copy).chain(&plan.in_place);
            ways.flat_map(|ways| &ways.launches).map(|launch| launch.entry).try_for_each(&mut load)?;
        }
    }
    Ok(Functions { context: context.clone(), kernels })
}

/// Addresses of the tensors of one dispatch.
#[derive(Clone, Copy, Debug)]
struct Pointers {
    input: u64,
    lengths: u64,
    output: u64,
    in_place: bool,
}

/// Queues a bound operator on a stream of its device.
pub(crate) fn dispatch(table: &BindingTable, stream: &Stream) -> Result<(), DispatchError> {
    let address = |binding: &crate::binding::BufferBinding| {
        // A CUDA operator binds CUDA buffers only (binding.device).
        binding.buffer.cuda_memory().map_or(0, |memory| memory.address() + binding.offset)
    };
    let input = |n: usize| table.inputs().get(n).map_or(0, address);
    let pointers =
        Pointers { input: input(0), lengths: input(1), output: address(table.output()), in_place: table.in_place() };
    let operator = table.operator();
    let Some(functions) = operator.functions() else {
        return Err(DispatchError::Device { found: "a CUDA stream".into(), required: operator.device().to_string() });
    };
    // The stream is of the operator's device (`Stream::dispatch`), the ranges were checked by `bind`.
    Ok(queue(operator.plan(), functions, pointers, stream.handle())?)
}

/// Patches the pointers into the launch that fits their alignment, and launches it.
fn queue(
    plan: &Plan,
    functions: &Functions,
    pointers: Pointers,
    stream: driver::StreamHandle,
) -> Result<(), CudaError> {
    // None is found only where nothing moves: the last way of a list takes any pointers.
    let aligned = |alignment: u32| (pointers.input | pointers.output) % u64::from(alignment) == 0;
    match plan {
        Plan::FillValueSequence(plan) => match plan.launches.iter().find(|way| aligned(way.alignment())) {
            Some(&Fill::Packed(mut launch)) => {
                launch.params.out = pointers.output;
                start(functions, &launch, stream)
            }
            Some(&(Fill::Rows(mut launch) | Fill::Dense(mut launch) | Fill::Elements(mut launch))) => {
                launch.params.out = pointers.output;
                start(functions, &launch, stream)
            }
            None => Ok(()),
        },
        Plan::ReverseSubsequences(plan) => {
            let ways = match &plan.in_place {
                Some(in_place) if pointers.in_place => in_place,
                _ => &plan.copy,
            };
            let Some(&(mut launch)) = ways.launches.iter().find(|launch| aligned(launch.alignment)) else {
                return Ok(());
            };
            launch.params.input = pointers.input;
            launch.params.lengths = pointers.lengths;
            launch.params.out = pointers.output;
            start(functions, &launch, stream)
        }
    }
}

fn start<P: bytemuck::Pod>(
    functions: &Functions,
    launch: &Launch<P>,
    stream: driver::StreamHandle,
) -> Result<(), CudaError> {
    let function = functions.get(launch.entry);
    driver::launch(
        functions.context(),
        function,
        (launch.blocks, launch.threads, launch.shared),
        &launch.params,
        stream,
    )
}
