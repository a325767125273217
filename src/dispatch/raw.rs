//! Dispatch on raw pointers and a raw stream, for memory and streams of other frameworks.
#![allow(unsafe_code)]

use std::borrow::Cow;

use crate::address::{Address, RawStream};
use crate::cpu::Operands;
use crate::cuda::{Addresses, Mode, StreamHandle};
use crate::desc::MAX_INPUTS;
use crate::device::operand::{check_operands, Alignment, Memory};
use crate::device::operator::CompiledOperator;
use crate::error::DispatchError;
use crate::trace::span;

/// Runs an operator at addresses of a least alignment. On a GPU that is the element's.
///
/// # Safety
///
/// The promises of [`CompiledOperator::dispatch_raw`].
pub(crate) unsafe fn dispatch(
    operator: &CompiledOperator,
    inputs: &[Address],
    output: Address,
    stream: RawStream,
    alignment: Alignment,
) -> Result<(), DispatchError> {
    let memory = |Address(address)| Memory::Raw { address };
    let in_place = check_operands(operator, inputs.iter().copied().map(memory), memory(output), alignment)?;
    span!("dispatch", operator = operator.operator_type().name(), device = operator.device(), in_place = in_place);
    if let Some(launcher) = &operator.inner.launcher {
        let addresses = Addresses { inputs: bytemuck::cast_slice(inputs), output: output.0 };
        // SAFETY: promise 3 is what the handle needs: a live stream of the context that the functions were loaded
        // into. Promises 1, 2 and 4 are what the launch needs of the addresses.
        return unsafe { launcher.launch(&addresses, Mode::new(in_place), StreamHandle::borrow(stream)) };
    }
    if stream != RawStream::NULL {
        return Err(DispatchError::Stream { found: stream.0 as u64 });
    }
    let signature = operator.signature();
    let (end, bytes) = (output.0 + signature.output.span_in_bytes(), signature.output.span_in_bytes() as usize);
    let read = signature.inputs().iter().zip(inputs).skip(usize::from(in_place)).map(|((_, desc), address)| {
        // SAFETY: promise 1 makes these initialized bytes of this process. `check_operands` has found that they
        // are not null. Promise 2: nobody writes them meanwhile. The output's slice is made when the copy is done.
        let slice = unsafe { std::slice::from_raw_parts(address.0 as *const u8, desc.span_in_bytes() as usize) };
        // Elements that lie between the output's are copied, because Rust's slices must be apart.
        let is_apart = end <= address.0 || address.0 + desc.span_in_bytes() <= output.0;
        if is_apart {
            Cow::Borrowed(slice)
        } else {
            Cow::Owned(slice.to_vec())
        }
    });
    let read: Vec<Cow<'_, [u8]>> = read.collect();
    let mut inputs: [&[u8]; MAX_INPUTS] = [&[]; MAX_INPUTS];
    inputs.iter_mut().zip(&read).for_each(|(input, read)| *input = read);
    // SAFETY: promises 1 and 2, and `check_operands`, hold for the output, too. `read` is apart from it: in place, it
    // has no slice of the first input. So this is the only one.
    let output = unsafe { std::slice::from_raw_parts_mut(output.0 as *mut u8, bytes) };
    operator.inner.plan.run_on_cpu(Operands { inputs: &inputs[..read.len()], output })
}
