//! What a device creates.

use std::num::NonZeroU32;
use std::sync::Arc;

use bytemuck::Pod;

use crate::desc::{BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, ScalarUnion, TensorDataType};
use crate::device::binding::BindingTable;
use crate::device::buffer::Buffer;
use crate::device::compile_options::CompileOptions;
use crate::device::graph::Graph;
use crate::device::operator::{CompiledOperator, MeasuredKernel, Operator};
use crate::device::stream::Stream;
use crate::device::Device;
use crate::error::{BufferError, CompileError, DeviceError, DispatchError};
use crate::trace::span;
use crate::validate::{validate, ValidationErrors};

impl Device {
    /// Validates a descriptor at the device's feature level.
    ///
    /// # Errors
    ///
    /// [`ValidationErrors`]: every rule the descriptor breaks, in the order of its fields.
    pub fn create_operator(&self, desc: impl Into<OperatorDesc>) -> Result<Operator, ValidationErrors> {
        let desc = desc.into();
        span!("create_operator", operator = desc.operator_type().name());
        validate(&desc, self.feature_level())?;
        Ok(Operator { desc: Arc::new(desc), level: self.feature_level() })
    }

    /// Plans an operator for this device and looks up its kernels. Loads those that are used for the first time.
    ///
    /// # Errors
    ///
    /// [`CompileError`]: the device's feature level is lower than the one that the operator was created at, and rejects
    /// it; or the driver failed.
    pub fn compile_operator(&self, operator: &Operator) -> Result<CompiledOperator, CompileError> {
        self.compile_operator_with(operator, self.compile_options())
    }

    /// The same, restricted by [`CompileOptions`]. Skips kernels that the options exclude. A dispatch that needs one of
    /// them fails.
    ///
    /// If the driver has not seen a kernel before, it compiles it, which takes milliseconds. Most layouts have two
    /// kernels or more, depending on the alignment of the pointers and on whether the output is the input.
    ///
    /// # Errors
    ///
    /// As [`compile_operator`](Self::compile_operator), or the alignment is not a power of two.
    pub fn compile_operator_with(
        &self,
        operator: &Operator,
        options: CompileOptions,
    ) -> Result<CompiledOperator, CompileError> {
        span!("compile_operator", operator = operator.desc.operator_type().name(), device = self);
        let level = self.feature_level();
        if level < operator.level {
            validate(&operator.desc, level).map_err(|errors| CompileError::FeatureLevel { level, errors })?;
        }
        let found = options.pointer_alignment;
        if found != 0 && !found.is_power_of_two() {
            return Err(CompileError::PointerAlignment { found });
        }
        CompiledOperator::new(operator, self, options)
    }

    /// Every kernel that can run an operator in place, or copying, least estimate first: compiled alone, and timed with
    /// scratch memory of the tensors' sizes. `dml-cuda tune` prints these.
    ///
    /// # Errors
    ///
    /// [`DispatchError::Measure`] on the CPU, which has no kernels; [`DispatchError::Cuda`], also if memory is short.
    pub fn measure_kernels(&self, operator: &Operator, in_place: bool) -> Result<Vec<MeasuredKernel>, DispatchError> {
        let no_kernels = || DispatchError::Measure { found: self.to_string() };
        let context = self.context.as_ref().ok_or_else(no_kernels)?;
        CompiledOperator::of_each_kernel(operator, self, context, in_place)
    }

    /// An operator that no DirectML descriptor can describe: element i of `count` packed FLOAT64 values becomes start +
    /// i·delta, rounded once. These are the values of ONNX's `Range` for FLOAT64; for its other types, use a
    /// [`FillValueSequenceDesc`]. Compile, bind and dispatch it like any other operator.
    pub fn create_float64_sequence(&self, count: NonZeroU32, start: f64, delta: f64) -> Operator {
        let desc = FillValueSequenceDesc {
            output_tensor: BufferTensorDesc::packed(TensorDataType::Float64, &[count.get()]),
            value_data_type: TensorDataType::Float64,
            value_start: ScalarUnion::Float64(start),
            value_delta: ScalarUnion::Float64(delta),
        };
        Operator::float64_sequence(desc).expect("every count from 1 on satisfies the rules")
    }

    /// A buffer of that many bytes, all zero, aligned to at least 16 bytes.
    pub fn create_buffer(&self, size_in_bytes: u64) -> Result<Buffer, BufferError> {
        Buffer::new(self, size_in_bytes)
    }

    /// A buffer that holds `values`, padded with zeros to a multiple of 4 bytes.
    pub fn create_buffer_from<T: Pod>(&self, values: &[T]) -> Result<Buffer, BufferError> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let buffer = self.create_buffer((bytes.len() as u64).next_multiple_of(4))?;
        buffer.write(0, bytes)?;
        Ok(buffer)
    }

    /// A new stream. Work queued on one stream runs in order; work on two streams may run at once.
    pub fn create_stream(&self) -> Result<Stream, DeviceError> {
        Stream::new(self)
    }

    /// Records dispatches of this device's operators. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// [`DispatchError::Graph`] for a table of another device; [`DispatchError::Cuda`].
    pub fn record_graph<'a>(&self, tables: impl IntoIterator<Item = &'a BindingTable>) -> Result<Graph, DispatchError> {
        Graph::new(self, tables.into_iter().cloned().collect())
    }
}
