//! Dispatch on slices of host memory, for the CPU device.

use crate::cpu::Operands;
use crate::desc::TensorRole;
use crate::device::operand::{Alignment, Memory};
use crate::device::operator::CompiledOperator;
use crate::error::{BindingError, DispatchError};
use crate::trace::span;

impl CompiledOperator {
    /// Runs an operator of the CPU device on slices of host memory. The work is done when this returns. The inputs are
    /// in the order of the descriptor's fields, each from its tensor's first element on.
    ///
    /// ```
    /// use dml_cuda::{BufferTensorDesc, Device, ReverseSubsequencesDesc, TensorDataType};
    ///
    /// let device = Device::cpu();
    /// let tensor = BufferTensorDesc::packed(TensorDataType::UInt8, &[4]);
    /// let operator = device.create_operator(ReverseSubsequencesDesc {
    ///     input_tensor: tensor.clone(),
    ///     sequence_lengths_tensor: BufferTensorDesc::packed(TensorDataType::UInt32, &[1]),
    ///     output_tensor: tensor,
    ///     axis: 0,
    /// })?;
    /// let mut output = [0; 4];
    /// let lengths = [3u32];
    /// device.compile_operator(&operator)?.dispatch_on_host(&[&[1, 2, 3, 4], bytemuck::cast_slice(&lengths)], &mut output)?;
    /// assert_eq!(output, [3, 2, 1, 4]);
    /// # Ok::<(), dml_cuda::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DispatchError`], with nothing written: the operator is of a GPU; the number of inputs is wrong; a slice is
    /// smaller than its tensor or not aligned to its elements; the operator was compiled for in-place work.
    pub fn dispatch_on_host(&self, inputs: &[&[u8]], output: &mut [u8]) -> Result<(), DispatchError> {
        self.run_on_host(inputs.iter().map(|input| memory(input)), inputs, output)
    }

    /// The same in place, for an operator with two inputs. `data` is the first input and the output; `second` is the
    /// other input, such as SequenceLengthsTensor.
    ///
    /// # Errors
    ///
    /// The errors of [`dispatch_on_host`](Self::dispatch_on_host); the input and the output have different strides.
    pub fn dispatch_in_place_on_host(&self, second: &[u8], data: &mut [u8]) -> Result<(), DispatchError> {
        self.run_on_host([memory(data), memory(second)].into_iter(), &[second], data)
    }

    /// Checks the memory, then runs. `inputs` are those that are not the output.
    fn run_on_host(
        &self,
        memory_of_inputs: impl ExactSizeIterator<Item = Memory<'static>> + Clone,
        inputs: &[&[u8]],
        output: &mut [u8],
    ) -> Result<(), DispatchError> {
        if self.device().ordinal().is_some() {
            let (found, required) = ("host memory".to_owned(), self.device().to_string());
            return Err(BindingError::Device { tensor: TensorRole::Output, found, required }.into());
        }
        #[allow(unused_variables)] // only tracing needs it
        let in_place = self.check_operands(memory_of_inputs, memory(output), Alignment::Element)?;
        span!("dispatch", operator = self.operator_type().name(), device = self.device(), in_place = in_place);
        self.inner.plan.run_on_cpu(Operands { inputs, output })
    }
}

fn memory(slice: &[u8]) -> Memory<'static> {
    Memory::Slice { address: slice.as_ptr() as u64, bytes: slice.len() as u64 }
}
