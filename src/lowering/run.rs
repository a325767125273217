//! Operators on tensors of other libraries, in one call: lower, find the compiled operator in the cache, dispatch.
//!
//! The integrations in C and Python end here, so that their checks, their errors and the promises of their callers are
//! equal. candle compiles by `compile_lowered` and dispatches on its own slices.
#![allow(unsafe_code)]

use super::{Lowered, LoweredReversal, ReversalArrays};
use crate::address::{Address, RawStream};
use crate::device::compile::Dispatches;
use crate::device::Device;
use crate::dispatch::check::Alignment;
use crate::error::Error;

impl Device {
    /// Reverses arrays: on a stream of the GPU, or on the host, where it is done when it returns. A size of 0 is
    /// valid: nothing is done. The host refuses negative lengths.
    ///
    /// # Errors
    ///
    /// The errors of [`LoweredReversal::new`](crate::lowering::LoweredReversal::new), of
    /// [`check_lengths`](crate::lowering::ForeignTensor::check_lengths) and of
    /// [`run_lowered`](Self::run_lowered). Nothing is queued or written then.
    ///
    /// # Safety
    ///
    /// The promises of [`dispatch_raw`](crate::CompiledOperator::dispatch_raw), for arrays as they are described.
    pub unsafe fn reverse_arrays(
        &self,
        arrays: &ReversalArrays<'_>,
        stream: RawStream,
    ) -> Result<(), Error> {
        let lowered = Lowered::Reversal(LoweredReversal::new(arrays)?);
        if arrays.input.sizes.contains(&0) {
            return Ok(());
        }
        if self.ordinal().is_none() {
            // SAFETY: `dispatch_raw`'s promises: the lengths are in memory of the device, which is the host.
            unsafe { arrays.lengths.check_lengths(arrays.length_type, None) }?;
        }
        let inputs = [arrays.input.address, arrays.lengths.address];
        // SAFETY: `dispatch_raw`'s promises hold for the arrays, and these are their addresses.
        let done = unsafe { self.run_lowered(&lowered, &inputs, arrays.output.address, stream) };
        done.map_err(|error| arrays.output.with_own_strides(error))
    }

    /// Compiles an operator or finds it, and runs it. The driver loads only the kernel that these addresses need.
    /// Tensors on the host need not be aligned to their elements, such as memory-mapped weights.
    ///
    /// # Errors
    ///
    /// The errors of [`compile_lowered`](Self::compile_lowered) and of
    /// [`dispatch_raw`](crate::CompiledOperator::dispatch_raw). Nothing is queued or written then.
    ///
    /// # Safety
    ///
    /// The promises of [`dispatch_raw`](crate::CompiledOperator::dispatch_raw). The operator need not stay alive on a
    /// device that does.
    pub unsafe fn run_lowered(
        &self,
        lowered: &Lowered,
        inputs: &[Address],
        output: Address,
        stream: RawStream,
    ) -> Result<(), Error> {
        let at = Dispatches::at(inputs.first().copied(), output);
        let compile = || self.compile_lowered_for(lowered, self.compile_options(), at);
        // SAFETY: promise 3 of `dispatch_raw`: the stream is live.
        let operator = unsafe { self.compile_for_stream(stream, compile) }?;
        let alignment = if self.ordinal().is_none() {
            Alignment::Byte
        } else {
            Alignment::Element
        };
        // SAFETY: `dispatch_raw`'s promises 1 to 3 hold. Promise 4: a device that stays alive keeps the kernels loaded.
        Ok(unsafe { operator.run_at(inputs, output, stream, alignment) }?)
    }
}
