//! One call for arrays of other libraries: lowers them, compiles their operator or finds it, and runs it.
#![allow(unsafe_code)]

use std::ptr::copy_nonoverlapping;

use super::{Lowered, LoweredReversal, ReversalArrays};
use crate::address::{Address, RawStream};
use crate::desc::BufferTensorDesc;
use crate::device::operator::{CompileOptions, CompiledOperator};
use crate::device::Device;
use crate::error::{BufferError, Error};

impl Device {
    /// Reverses arrays: on a stream of the GPU, or on the host, where it is done when it returns. A size of 0 is right,
    /// and nothing is done.
    ///
    /// # Errors
    ///
    /// As of [`LoweredReversal::new`] and [`run_lowered`](Self::run_lowered). Nothing is queued or written then.
    ///
    /// # Safety
    ///
    /// As of [`dispatch_raw`](CompiledOperator::dispatch_raw), for arrays as they are described.
    pub unsafe fn reverse_arrays(&self, arrays: &ReversalArrays<'_>, stream: RawStream) -> Result<(), Error> {
        let lowered = Lowered::Reversal(LoweredReversal::new(arrays)?);
        if arrays.input.sizes.contains(&0) {
            return Ok(());
        }
        let inputs = [arrays.input.address, arrays.lengths.address];
        // SAFETY: the caller's promise.
        unsafe { self.run_lowered(&lowered, &inputs, arrays.output.address, stream) }
    }

    /// Compiles an operator or finds it, for the alignment of these addresses, and runs it. Tensors on the host need
    /// not be aligned to their elements, such as memory-mapped weights: copies of them are.
    ///
    /// # Errors
    ///
    /// As of [`compile_lowered`](Self::compile_lowered) and [`dispatch_raw`](CompiledOperator::dispatch_raw), and no
    /// memory for a copy. Nothing is queued or written then.
    ///
    /// # Safety
    ///
    /// As of [`dispatch_raw`](CompiledOperator::dispatch_raw). The operator need not stay alive on a device that does.
    pub unsafe fn run_lowered(
        &self,
        lowered: &Lowered,
        inputs: &[Address],
        output: Address,
        stream: RawStream,
    ) -> Result<(), Error> {
        let options = CompileOptions::of_addresses(inputs.first().copied(), output);
        let operator = self.compile_lowered(lowered, options)?;
        let mut tensors = operator.signature().tensors().zip(inputs.iter().chain([&output]));
        if self.ordinal().is_none() && tensors.any(|((_, desc), address)| !is_aligned(desc, *address)) {
            // SAFETY: the caller's promise.
            return unsafe { on_copies(&operator, inputs, output, stream) };
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { operator.dispatch_raw(inputs, output, stream) }?)
    }
}

fn is_aligned(desc: &BufferTensorDesc, address: Address) -> bool {
    address.0.is_multiple_of(u64::from(desc.data_type.size_in_bits() / 8))
}

/// Runs an operator on the host with copies of the tensors that are not aligned.
///
/// # Safety
///
/// As of `dispatch_raw`.
unsafe fn on_copies(
    operator: &CompiledOperator,
    inputs: &[Address],
    output: Address,
    stream: RawStream,
) -> Result<(), Error> {
    let (mut copies, mut addresses) = (Vec::new(), Vec::new());
    let (given, signature) = ([inputs, &[output]].concat(), operator.signature());
    for (n, ((_, desc), from)) in signature.tensors().zip(&given).enumerate() {
        let in_place = n == inputs.len() && inputs.first() == Some(&output);
        let address = match addresses.first() {
            Some(&input) if in_place => input,
            _ if is_aligned(desc, *from) => *from,
            _ => {
                let (size_in_bytes, mut copy) = (desc.span_in_bytes(), Vec::<u64>::new());
                let words = size_in_bytes.div_ceil(8) as usize;
                copy.try_reserve_exact(words).map_err(|error| BufferError::OutOfMemory {
                    backend: "cpu",
                    size_in_bytes,
                    reason: error.to_string(),
                })?;
                copy.resize(words, 0);
                // SAFETY: the caller promises that these bytes are there and initialized; the copy has as many.
                unsafe { copy_nonoverlapping(from.0 as *const u8, copy.as_mut_ptr().cast(), size_in_bytes as usize) };
                copies.push(copy);
                copies.last_mut().map_or(*from, |copy| copy.as_mut_ptr().into())
            }
        };
        addresses.push(address);
    }
    let (&to, from) = addresses.split_last().unwrap_or((&output, &[]));
    // SAFETY: the copies are tensors of the same sizes, which only this call uses. The others are the caller's.
    unsafe { operator.dispatch_raw(from, to, stream) }?;
    if to != output {
        let bytes = signature.output.span_in_bytes() as usize;
        // SAFETY: as above. What is between the elements is what was there.
        unsafe { copy_nonoverlapping(to.0 as *const u8, output.0 as *mut u8, bytes) };
    }
    Ok(())
}
