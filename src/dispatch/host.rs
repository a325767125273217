//! Dispatch on slices of host memory, for the CPU device.

use crate::cpu::Operands;
use crate::desc::TensorRole;
use crate::device::operand::{check_operands, Alignment, Memory};
use crate::device::operator::CompiledOperator;
use crate::error::{BindingError, DispatchError};
use crate::trace::span;

/// Checks the memory, then runs. `inputs` are those that are not the output: in place, all but the first.
pub(crate) fn dispatch(
    operator: &CompiledOperator,
    inputs: &[&[u8]],
    output: &mut [u8],
    in_place: bool,
) -> Result<(), DispatchError> {
    if operator.device().ordinal().is_some() {
        let (found, required) = ("host memory".to_owned(), operator.device().to_string());
        return Err(BindingError::Device { tensor: TensorRole::Output, found, required }.into());
    }
    let first = in_place.then(|| memory(output));
    let read: Vec<Memory<'_>> = first.into_iter().chain(inputs.iter().map(|input| memory(input))).collect();
    check_operands(operator, read.into_iter(), memory(output), Alignment::Element)?;
    span!("dispatch", operator = operator.operator_type().name(), device = operator.device(), in_place = in_place);
    operator.inner.plan.run_on_cpu(Operands { inputs, output })
}

fn memory(slice: &[u8]) -> Memory<'static> {
    Memory::Slice { address: slice.as_ptr() as u64, bytes: slice.len() as u64 }
}
