//! One call for arrays of other libraries: lowers them, compiles their operator or finds it, and runs it.
#![allow(unsafe_code)]

use super::{Lowered, LoweredReversal, ReversalArrays};
use crate::address::{Address, RawStream};
use crate::device::operand::Alignment;
use crate::device::Device;
use crate::error::Error;

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
    /// As of [`dispatch_raw`](crate::CompiledOperator::dispatch_raw), for arrays as they are described.
    pub unsafe fn reverse_arrays(&self, arrays: &ReversalArrays<'_>, stream: RawStream) -> Result<(), Error> {
        let lowered = Lowered::Reversal(LoweredReversal::new(arrays)?);
        if arrays.input.sizes.contains(&0) {
            return Ok(());
        }
        let inputs = [arrays.input.address, arrays.lengths.address];
        // SAFETY: the caller's promise.
        let done = unsafe { self.run_lowered(&lowered, &inputs, arrays.output.address, stream) };
        done.map_err(|error| arrays.output.with_own_strides(error))
    }

    /// Compiles an operator or finds it, for the alignment of these addresses, and runs it. Tensors on the host need
    /// not be aligned to their elements, such as memory-mapped weights.
    ///
    /// # Errors
    ///
    /// As of [`compile_lowered`](Self::compile_lowered) and [`dispatch_raw`](crate::CompiledOperator::dispatch_raw).
    /// Nothing is queued or written then.
    ///
    /// # Safety
    ///
    /// As of [`dispatch_raw`](crate::CompiledOperator::dispatch_raw). The operator need not stay alive on a device that does.
    pub unsafe fn run_lowered(
        &self,
        lowered: &Lowered,
        inputs: &[Address],
        output: Address,
        stream: RawStream,
    ) -> Result<(), Error> {
        let options = self.compile_options().with_addresses(inputs.first().copied(), output);
        let operator = self.compile_lowered(lowered, options)?;
        let alignment = if self.ordinal().is_none() { Alignment::Byte } else { Alignment::Element };
        // SAFETY: the caller's promise.
        Ok(unsafe { operator.dispatch_at(inputs, output, stream, alignment) }?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::TensorDataType as T;
    use crate::lowering::{ForeignTensor, LoweredSequence};

    /// What an operator writes to memory that begins so many bytes past an aligned address; so do its inputs.
    fn written(lowered: &Lowered, inputs: &[&[u8]], in_place: bool, past: usize) -> Vec<u8> {
        let moved = |bytes: &[u8]| -> Vec<u64> {
            let mut memory = vec![0; bytes.len() / 8 + 2];
            bytemuck::cast_slice_mut::<u64, u8>(&mut memory)[past..][..bytes.len()].copy_from_slice(bytes);
            memory
        };
        let mut memory: Vec<Vec<u64>> = inputs.iter().copied().chain([&[7; 512][..]]).map(moved).collect();
        let at = |memory: &mut Vec<u64>| Address(memory.as_mut_ptr() as u64 + past as u64);
        let mut addresses: Vec<Address> = memory.iter_mut().map(at).collect();
        let output = addresses.pop().expect("an output");
        let output = if in_place { addresses[0] } else { output };
        // SAFETY: memory of this function, as large as the tensors.
        unsafe { Device::cpu().run_lowered(lowered, &addresses, output, RawStream::NULL) }.expect("it runs");
        let of_output = if in_place { 0 } else { inputs.len() };
        bytemuck::cast_slice::<u64, u8>(&memory[of_output])[past..][..512].to_vec()
    }

    #[test]
    fn tensors_on_the_host_need_not_be_aligned() {
        let values: Vec<u8> = (0..512).map(|n| (n * 7 % 251) as u8).collect();
        for element_size in [1, 2, 4, 8, 16] {
            // Lanes, lanes side by side, small and large blocks.
            for (sizes, of_lengths) in
                [([4, 8, 1], [4, 1, 1]), ([1, 8, 4], [1, 1, 4]), ([4, 4, 2], [4, 1, 1]), ([1, 2, 16], [1, 1, 1])]
            {
                for (length_type, width) in [(T::UInt32, 4), (T::UInt64, 8)] {
                    let lengths: Vec<u8> =
                        (0..64).map(|n| if n % width == 0 { 2 + n / width % 3 } else { 0 }).collect();
                    let [x, lengths_of] = [&sizes, &of_lengths].map(|sizes| ForeignTensor::packed(Address(0), sizes));
                    let arrays =
                        ReversalArrays { input: x, lengths: lengths_of, output: x, axis: 1, element_size, length_type };
                    let reversal = Lowered::Reversal(LoweredReversal::new(&arrays).expect("right"));
                    for in_place in [false, true] {
                        let at = |past| written(&reversal, &[&values, &lengths], in_place, past);
                        assert!(at(0) == at(3), "{element_size} {sizes:?} {length_type} {in_place}");
                    }
                }
            }
        }
        for data_type in [T::UInt8, T::Float16, T::Float32, T::Int64, T::Float64] {
            let packed = LoweredSequence::packed(data_type, 60, 0x3c01, 0x3401);
            let width = i64::from(data_type.size_in_bits() / 8);
            let strides = [16 * width, 2 * width];
            let gaps = ForeignTensor { address: Address(0), sizes: &[3, 5], strides_in_bytes: Some(&strides) };
            let strided =
                LoweredSequence::strided(data_type, gaps, 0x3c01, 0x3401).ok().filter(|_| data_type != T::Float64);
            for sequence in [packed].into_iter().chain(strided).map(Lowered::Sequence) {
                assert!(written(&sequence, &[], false, 0) == written(&sequence, &[], false, 3), "{sequence:?}");
            }
        }
    }
}
