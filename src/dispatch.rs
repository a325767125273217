//! Dispatch of bound operators: on the CPU at once, on a GPU by a launch.

use crate::binding::BindingTable;
use crate::buffer::lock;
use crate::cpu::Operands;
#[cfg(feature = "cuda")]
use crate::cuda::{Addresses, StreamHandle};
#[cfg(feature = "cuda")]
use crate::error::CudaError;
use crate::error::DispatchError;
use crate::stream::Stream;
use crate::trace::span;

impl BindingTable {
    /// Queues the operator on a stream of its device.
    ///
    /// On the GPU this returns once the kernel is queued: it allocates nothing, copies nothing, waits for
    /// nothing. On the CPU it returns when the work is done. Order on one stream is the order of the calls.
    ///
    /// Work queued on this crate's streams may outlive the table: dropping a buffer waits for it. A CUDA graph that the caller
    /// captures the stream into may not: keep the table, or its operator and buffers, until the last replay is done. A
    /// [`Graph`](crate::Graph) keeps them itself.
    pub fn dispatch(&self, stream: &Stream) -> Result<(), DispatchError> {
        let device = self.operator().device();
        span!(
            "dispatch",
            operator = self.operator().operator_type().name(),
            device = device,
            in_place = self.in_place()
        );
        if !stream.device().same_as(device) {
            return Err(DispatchError::Device { found: stream.device().to_string(), required: device.to_string() });
        }
        #[cfg(feature = "cuda")]
        if let Some(stream) = stream.cuda() {
            return Ok(self.queue(stream.handle())?);
        }
        run_on_cpu(self);
        Ok(())
    }

    /// Queues the launch on a stream of the operator's GPU; an operator of the CPU has none.
    #[cfg(feature = "cuda")]
    pub(crate) fn queue(&self, stream: StreamHandle) -> Result<(), CudaError> {
        let Some(launcher) = self.operator().launcher() else { return Ok(()) };
        launcher.launch(&self.addresses(), self.in_place(), stream)
    }

    /// Where the tensors lie in device memory. A CUDA operator binds CUDA buffers only (binding.device), and the ranges
    /// were checked by `bind`.
    #[cfg(feature = "cuda")]
    fn addresses(&self) -> Addresses {
        let address = |binding: &crate::binding::BufferBinding| {
            binding.buffer.cuda_memory().map_or(0, |memory| memory.address() + binding.offset)
        };
        let input = |n: usize| self.inputs().get(n).map_or(0, address);
        Addresses { input: input(0), lengths: input(1), output: address(self.output()) }
    }
}

/// The binding rules make the ranges aligned, and the input's and the output's disjoint or the same.
fn run_on_cpu(table: &BindingTable) {
    let (plan, output) = (table.operator().plan(), table.output());
    let Some(output_memory) = output.buffer.host() else {
        return; // a CPU operator binds CPU buffers only (binding.device)
    };
    // A copy, so that at most two buffers are locked at once. Lengths are few beside the elements.
    let lengths = lengths_of(table);
    let lengths = bytemuck::cast_slice(&lengths);
    let at = output.offset as usize;
    let input = table.inputs().first().filter(|_| !table.in_place());
    let Some((input, input_memory)) = input.and_then(|input| Some((input, input.buffer.host()?))) else {
        let mut memory = lock(output_memory);
        return plan.run_on_cpu(Operands { input: None, lengths, output: &mut memory.bytes()[at..] });
    };
    let from = input.offset as usize;
    if input.buffer.same_as(&output.buffer) {
        let mut memory = lock(output_memory);
        let bytes = memory.bytes();
        if from < at {
            let (low, high) = bytes.split_at_mut(at);
            plan.run_on_cpu(Operands { input: Some(&low[from..]), lengths, output: high });
        } else {
            let (low, high) = bytes.split_at_mut(from);
            plan.run_on_cpu(Operands { input: Some(high), lengths, output: &mut low[at..] });
        }
        return;
    }
    // Two threads that each hold one of two buffers and want the other would wait for ever: all lock in the order of
    // the addresses.
    let input_first = std::ptr::from_ref(input_memory) < std::ptr::from_ref(output_memory);
    let first = lock(if input_first { input_memory } else { output_memory });
    let second = lock(if input_first { output_memory } else { input_memory });
    let (mut input, mut output) = if input_first { (first, second) } else { (second, first) };
    plan.run_on_cpu(Operands { input: Some(&input.bytes()[from..]), lengths, output: &mut output.bytes()[at..] });
}

/// The bytes of the second input, a SequenceLengthsTensor, aligned for either type of length; none where there is none.
fn lengths_of(table: &BindingTable) -> Vec<u128> {
    let signature = table.operator().signature();
    let (Some((_, desc)), Some(binding)) = (signature.inputs().get(1), table.inputs().get(1)) else {
        return Vec::new();
    };
    let total = desc.total_tensor_size_in_bytes as usize;
    let mut copy = vec![0u128; total.div_ceil(16)];
    if let Some(memory) = binding.buffer.host() {
        let mut memory = lock(memory);
        let bytes = &memory.bytes()[binding.offset as usize..][..total];
        bytemuck::cast_slice_mut(&mut copy)[..total].copy_from_slice(bytes);
    }
    copy
}
