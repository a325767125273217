//! Dispatch of bound operators: runs them on the CPU, or launches them on a GPU.

use crate::cpu::Operands;
use crate::cuda::{Addresses, Mode, StreamHandle};
use crate::desc::MAX_INPUTS;
use crate::device::binding::{BindingTable, BufferBinding};
use crate::device::buffer::{lock_to_read, lock_to_write, Buffer};
use crate::device::stream::Stream;
use crate::error::DispatchError;
use crate::trace::span;

impl BindingTable {
    /// Queues the operator on a stream of its device.
    ///
    /// On a GPU this returns when the kernel is queued. It does not allocate, copy or wait. On the CPU it returns when
    /// the work is done. Work on one stream runs in the order of the calls.
    ///
    /// Work queued on this crate's streams may outlive the table: dropping a buffer waits for it. If you capture the
    /// stream into your own CUDA graph, keep the table, or its operator and buffers, until the last replay is done. A
    /// [`Graph`](crate::Graph) keeps them itself.
    pub fn dispatch(&self, stream: &Stream) -> Result<(), DispatchError> {
        let operator = self.operator();
        let device = operator.device();
        span!("dispatch", operator = operator.operator_type().name(), device = device, in_place = self.in_place);
        if !stream.device().same_as(device) {
            return Err(DispatchError::Device { found: stream.device().to_string(), required: device.to_string() });
        }
        if let Some(stream) = &stream.queue {
            return self.queue(stream.handle());
        }
        run_on_cpu(self)
    }

    /// Queues the launch on a stream of the operator's GPU.
    #[allow(unsafe_code)]
    pub(crate) fn queue(&self, stream: StreamHandle) -> Result<(), DispatchError> {
        let launcher = self.operator().inner.launcher.as_ref().ok_or(OTHER_DEVICE)?;
        // A CUDA operator binds only CUDA buffers (binding.device), and `bind` has checked the ranges.
        let address = |binding: &BufferBinding| Some(binding.buffer.cuda_memory()?.address() + binding.offset);
        let mut inputs = [0; MAX_INPUTS];
        for (input, binding) in inputs.iter_mut().zip(&self.inputs) {
            *input = address(binding).ok_or(OTHER_DEVICE)?;
        }
        let output = address(&self.output).ok_or(OTHER_DEVICE)?;
        let addresses = Addresses { inputs: &inputs[..self.inputs.len()], output };
        // SAFETY: the ranges are as large as their tensors (binding.range, binding.size) and overlap only as the
        // operator allows (binding.overlap). They live until the work is done, because dropping a buffer waits for it.
        unsafe { launcher.launch(&addresses, Mode::new(self.in_place), stream) }
    }
}

const OTHER_DEVICE: DispatchError = DispatchError::Bug("an operator or a buffer of another device");

/// Runs a bound operator on the CPU. The binding rules guarantee aligned ranges, and an output that is disjoint from
/// the inputs or equal to the first.
fn run_on_cpu(table: &BindingTable) -> Result<(), DispatchError> {
    let (output, signature) = (&table.output, table.operator().signature());
    let totals = signature.inputs().iter().map(|(_, desc)| desc.total_tensor_size_in_bytes as usize);
    // The inputs that are separate from the output: in place, all but the first.
    let read: Vec<_> = table.inputs.iter().zip(totals).skip(usize::from(table.in_place)).collect();

    // Locks the buffers in the order of their addresses: otherwise two threads that each hold one buffer and want the
    // other's would deadlock. A CPU operator binds only CPU buffers (binding.device).
    let mut buffers: Vec<&Buffer> = read.iter().map(|(binding, _)| &binding.buffer).chain([&output.buffer]).collect();
    buffers.sort_by_key(|buffer| buffer.host().map(std::ptr::from_ref));
    buffers.dedup_by(|a, b| a.same_as(b));
    let (mut written, mut others) = (None, Vec::new());
    for buffer in buffers {
        match buffer.host() {
            Some(memory) if buffer.same_as(&output.buffer) => written = Some(lock_to_write(memory)),
            Some(memory) => others.push((buffer, lock_to_read(memory))),
            None => return Err(OTHER_DEVICE),
        }
    }
    let mut written = written.ok_or(OTHER_DEVICE)?;

    let (before, at_output) = written.bytes_mut().split_at_mut(output.offset as usize);
    let (output_bytes, behind) = at_output.split_at_mut(signature.output.total_tensor_size_in_bytes as usize);
    let bytes_of = |&(binding, total): &(&BufferBinding, usize)| -> &[u8] {
        let offset = binding.offset as usize;
        match others.iter().find(|(buffer, _)| buffer.same_as(&binding.buffer)) {
            Some((_, memory)) => &memory.bytes()[offset..][..total],
            None if binding.offset < output.offset => &before[offset..][..total],
            None => &behind[offset - before.len() - output_bytes.len()..][..total],
        }
    };
    let inputs: Vec<&[u8]> = read.iter().map(bytes_of).collect();
    table.operator().inner.plan.run_on_cpu(Operands { inputs: &inputs, output: output_bytes })
}
