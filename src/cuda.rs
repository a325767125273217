//! The CUDA backend: the only importer of cudarc. `driver` is the only place that says `unsafe`, but for
//! [`CompiledOperator::dispatch_raw`], whose caller signs its contract.

mod driver;
mod raw;

pub use driver::Properties;
pub(crate) use driver::{describe, device_count, Context, Event, Memory, Stream};
pub use raw::DevicePointer;

use std::ffi::CStr;
use std::sync::Arc;

use crate::binding::BindingTable;
use crate::error::{CompileError, CudaError, DispatchError};
use crate::plan::fill_value_sequence::{self, Kernel};
use crate::plan::reverse_subsequences;
use crate::plan::{Entry, Launch, Module, Plan};
use driver::{Function, LoadedModule};

impl Module {
    /// The file's name, for messages.
    const fn name(self) -> &'static str {
        match self {
            Module::FillValueSequence => "fill_value_sequence.ptx",
            Module::ReverseSubsequences => "reverse_subsequences.ptx",
        }
    }

    /// What build.rs compiled, or took from kernels/prebuilt.
    const fn ptx(self) -> &'static str {
        match self {
            Module::FillValueSequence => include_str!(concat!(env!("OUT_DIR"), "/fill_value_sequence.ptx")),
            Module::ReverseSubsequences => include_str!(concat!(env!("OUT_DIR"), "/reverse_subsequences.ptx")),
        }
    }

    const fn entries(self) -> &'static [&'static CStr] {
        match self {
            Module::FillValueSequence => fill_value_sequence::ENTRIES,
            Module::ReverseSubsequences => reverse_subsequences::ENTRIES,
        }
    }
}

/// The kernels of one compiled operator: its module, kept loaded.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    context: Arc<Context>,
    module: Arc<LoadedModule>,
}

impl Functions {
    fn get(&self, entry: Entry) -> &Function {
        self.module.function(entry.index)
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

/// Looks up the kernels of a plan, loading their module where it is used first on this context.
pub(crate) fn functions(context: &Arc<Context>, plan: &Plan) -> Result<Functions, CompileError> {
    let module = match plan {
        Plan::FillValueSequence(_) => Module::FillValueSequence,
        Plan::ReverseSubsequences(_) => Module::ReverseSubsequences,
    };
    let loaded = context.module(module as usize, || (module.name(), module.ptx(), module.entries()))?;
    Ok(Functions { context: context.clone(), module: loaded })
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
    match operator.functions() {
        // The stream was created on this context, the ranges were checked by `bind`.
        Some(functions) => Ok(queue(operator.plan(), functions, pointers, stream.handle())?),
        None => Ok(()), // a CPU operator; `Stream::dispatch` compares devices
    }
}

/// Patches the pointers into the launch that fits their alignment, and launches it.
fn queue(
    plan: &Plan,
    functions: &Functions,
    pointers: Pointers,
    stream: driver::StreamHandle,
) -> Result<(), CudaError> {
    match plan {
        Plan::FillValueSequence(plan) => match plan.launch {
            Kernel::Packed(mut launch) => {
                launch.params.out = pointers.output;
                start(functions, &launch, stream)
            }
            Kernel::Rows(mut launch) | Kernel::Elements(mut launch) => {
                launch.params.out = pointers.output;
                start(functions, &launch, stream)
            }
        },
        Plan::ReverseSubsequences(plan) => {
            let ways = match &plan.in_place {
                Some(in_place) if pointers.in_place => in_place,
                _ => &plan.copy,
            };
            let aligned = |launch: &&Launch<_>| (pointers.input | pointers.output) % u64::from(launch.alignment) == 0;
            // None is left only where nothing moves: the last of a list takes any pointers.
            let Some(&(mut launch)) = ways.iter().find(aligned) else {
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
    driver::launch(functions.context(), functions.get(launch.entry), launch.blocks, &launch.params, stream)
}
