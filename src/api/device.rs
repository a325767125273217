//! The methods of [`Device`].

use std::num::NonZeroU32;

use bytemuck::Pod;

use crate::address::{Address, RawStream};
use crate::cuda::{self, StreamHandle};
use crate::desc::{
    tensor_support, BufferTensorDesc, FeatureLevel, FillValueSequenceDesc, OperatorDesc, OperatorType, ScalarUnion,
    TensorDataType, TensorRole, TensorSupport,
};
use crate::device::binding::BindingTable;
use crate::device::buffer::Buffer;
use crate::device::compile::{check_level, compile, compile_each_kernel, MeasuredKernel};
use crate::device::compile_options::CompileOptions;
use crate::device::graph::Graph;
use crate::device::operand::Alignment;
use crate::device::operator::{CompiledOperator, Operator};
use crate::device::stream::Stream;
use crate::device::{Adapter, Device};
use crate::dispatch::raw;
use crate::environment::EnvironmentError;
use crate::error::{BufferError, CompileError, DeviceError, DispatchError, Error};
use crate::lowering::{cache, Lowered, LoweredReversal, ReversalArrays};
use crate::validate::ValidationErrors;

impl Device {
    /// The CPU: the reference, for machines with no GPU.
    pub fn cpu() -> Self {
        Self { context: None, feature_level: FeatureLevel::HIGHEST, compile_options: CompileOptions::default() }
    }

    /// The GPU with that ordinal. Uses its primary context.
    ///
    /// # Errors
    ///
    /// [`DeviceError`]: the machine has no driver, or no such GPU.
    pub fn cuda(ordinal: usize) -> Result<Self, DeviceError> {
        Ok(Self { context: Some(cuda::Context::of(ordinal)?), ..Self::cpu() })
    }

    /// How many GPUs there are: 0 if there is no driver, or if it fails. [`Device::cuda_status`] tells which.
    pub fn cuda_count() -> usize {
        Self::cuda_status().unwrap_or(0)
    }

    /// How many GPUs the driver reports, or why it reports none.
    ///
    /// # Errors
    ///
    /// - [`DeviceError::NoDriver`]: the machine has no driver library.
    /// - [`DeviceError::DriverNotLoaded`], [`DeviceError::DriverTooOld`]: it has one that cannot be used.
    /// - [`DeviceError::Cuda`]: the driver failed, for example because the kernel module has another version, or
    ///   because a container has no access to the device.
    pub fn cuda_status() -> Result<usize, DeviceError> {
        cuda::device_count()
    }

    /// The ordinal of the GPU whose context is current on the calling thread: the one on which a framework runs a
    /// callback.
    ///
    /// # Errors
    ///
    /// [`DeviceError`], as for [`Device::cuda_status`], or if no context is current.
    pub fn current_cuda_ordinal() -> Result<usize, DeviceError> {
        cuda::current_ordinal()
    }

    /// The GPUs of this machine, without opening them. Empty if there is no driver library.
    ///
    /// # Errors
    ///
    /// [`DeviceError`]: the driver failed.
    pub fn cuda_adapters() -> Result<Vec<Adapter>, DeviceError> {
        let adapter = |ordinal| cuda::describe(ordinal).map(|(name, properties)| Adapter { ordinal, name, properties });
        match Self::cuda_status() {
            Err(DeviceError::NoDriver) => Ok(Vec::new()),
            status => (0..status?).map(adapter).collect(),
        }
    }

    /// This device with a lower feature level. The default is the highest.
    pub fn with_feature_level(mut self, level: FeatureLevel) -> Self {
        self.feature_level = level;
        self
    }

    /// This device with the [options](Self::compile_options) that the environment sets when the process first asks:
    /// kernels are [kept specialized](crate::Specialize::Kept) if `DML_CUDA_SPECIALIZE` is 1, and
    /// [measured](CompileOptions::measure) if `DML_CUDA_SELECT` is `measure`.
    ///
    /// # Errors
    ///
    /// A variable has another value than the known ones.
    pub fn with_environment(mut self) -> Result<Self, EnvironmentError> {
        self.compile_options = CompileOptions::read_environment()?;
        Ok(self)
    }

    /// The options with which operators are compiled, unless a call has others.
    pub fn compile_options(&self) -> CompileOptions {
        self.compile_options
    }

    /// The feature level whose rules apply.
    pub fn feature_level(&self) -> FeatureLevel {
        self.feature_level
    }

    /// Which dimension counts and data types this device accepts for a tensor of an operator at its feature level.
    /// `None` if the operator does not exist at that level, or has no such tensor.
    pub fn check_tensor_support(&self, operator: OperatorType, role: TensorRole) -> Option<TensorSupport> {
        tensor_support(operator, role, self.feature_level)
    }

    /// The GPU's name as its driver gives it, or `CPU`.
    pub fn name(&self) -> &str {
        self.context.as_ref().map_or("CPU", |context| &context.name)
    }

    /// The GPU's ordinal; `None` for the CPU.
    pub fn ordinal(&self) -> Option<usize> {
        self.context.as_ref().map(|context| context.ordinal)
    }

    /// The GPU's properties; `None` for the CPU.
    pub fn cuda_properties(&self) -> Option<&cuda::Properties> {
        self.context.as_ref().map(|context| &context.properties)
    }

    /// Whether both are the same GPU, or both the CPU: memory and streams of one then work with the other.
    pub fn same_as(&self, other: &Device) -> bool {
        self.ordinal() == other.ordinal()
    }

    /// Validates a descriptor at the device's feature level.
    ///
    /// # Errors
    ///
    /// [`ValidationErrors`]: every rule the descriptor breaks, in the order of its fields.
    pub fn create_operator(&self, desc: impl Into<OperatorDesc>) -> Result<Operator, ValidationErrors> {
        Operator::new(desc.into(), self.feature_level())
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

    /// Plans an operator with [`CompileOptions`]. Skips kernels that the options exclude. A dispatch that needs one of
    /// them fails.
    ///
    /// If the driver has not seen a kernel before, it compiles it, which takes milliseconds. Most layouts have two
    /// kernels or more, depending on the alignment of the pointers and on whether the output is the input.
    ///
    /// # Errors
    ///
    /// The errors of [`compile_operator`](Self::compile_operator); the alignment is not a power of two; the operator
    /// has no input, but the options say that it always runs in place.
    pub fn compile_operator_with(
        &self,
        operator: &Operator,
        options: CompileOptions,
    ) -> Result<CompiledOperator, CompileError> {
        compile(operator, self, options)
    }

    /// Every kernel that can run an operator in place, or copying, least estimate first: compiled alone, and timed with
    /// scratch memory of the tensors' sizes. `dml-cuda tune` prints these.
    ///
    /// # Errors
    ///
    /// [`CompileError::FeatureLevel`], as for [`compile_operator`](Self::compile_operator); [`DispatchError::Measure`]
    /// on the CPU, which has no kernels; [`DispatchError::Cuda`], also if memory is short.
    pub fn measure_kernels(&self, operator: &Operator, in_place: bool) -> Result<Vec<MeasuredKernel>, Error> {
        check_level(operator, self)?;
        Ok(compile_each_kernel(operator, self, in_place)?)
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

    /// Records what `queue` queues on a stream of the GPU, such as raw dispatches, and copies, fills and kernels of
    /// other libraries: as a graph, which is launched like one of [`record_graph`](Self::record_graph). `None` on the
    /// CPU.
    ///
    /// `queue` is called once, with the GPU's primary context current. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// [`DispatchError::Cuda`].
    ///
    /// # Safety
    ///
    /// The caller promises that `queue` leaves the stream's capture as it is, and that the work may run whenever the
    /// graph is launched: memory and kernels are there as long as the graph, and until its last launch is done.
    pub unsafe fn record_raw_graph(&self, queue: impl FnOnce(RawStream)) -> Result<Option<Graph>, DispatchError> {
        Graph::record_raw(self, queue)
    }

    /// The compiled operator for tensors of other libraries: compiled now, or by an earlier call of this thread with
    /// the same arguments.
    ///
    /// A thread's cache keeps the 512 to 1,024 operators that it requested last. Each keeps its GPU's context alive.
    ///
    /// # Errors
    ///
    /// The descriptor is rejected, or compilation failed.
    pub fn compile_lowered(&self, lowered: &Lowered, options: CompileOptions) -> Result<CompiledOperator, Error> {
        cache::compile_lowered(self, lowered, options)
    }

    /// Makes the work that is queued on a stream from now on wait for what another stream has so far, such as that of a
    /// library that made an array. Does not wait itself, and does nothing on the CPU. While the stream is being
    /// captured into a CUDA graph, it waits only for a stream that is, too: a replay reads its memory later.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Cuda`]: the driver failed.
    ///
    /// # Safety
    ///
    /// Both are live streams of this GPU and of its primary context, or 0, 1 or 2.
    pub unsafe fn wait_for_raw_stream(&self, stream: RawStream, awaited: RawStream) -> Result<(), DeviceError> {
        if let Some(context) = &self.context {
            // SAFETY: the promise above. The handles are not used after this call.
            let [stream, awaited] = unsafe { [stream, awaited].map(|raw| StreamHandle::borrow(raw)) };
            cuda::Event::order(context, stream, awaited)?;
        }
        Ok(())
    }

    /// Reverses arrays: on a stream of the GPU, or on the host, where it is done when it returns. A size of 0 is right,
    /// and nothing is done.
    ///
    /// # Errors
    ///
    /// The errors of [`LoweredReversal::new`](crate::lowering::LoweredReversal::new) and of
    /// [`run_lowered`](Self::run_lowered). Nothing is queued or written then.
    ///
    /// # Safety
    ///
    /// The promises of [`dispatch_raw`](CompiledOperator::dispatch_raw), for arrays as they are described.
    pub unsafe fn reverse_arrays(&self, arrays: &ReversalArrays<'_>, stream: RawStream) -> Result<(), Error> {
        let lowered = Lowered::Reversal(LoweredReversal::new(arrays)?);
        if arrays.input.sizes.contains(&0) {
            return Ok(());
        }
        let inputs = [arrays.input.address, arrays.lengths.address];
        // SAFETY: `dispatch_raw`'s promises hold for the arrays, and these are their addresses.
        let done = unsafe { self.run_lowered(&lowered, &inputs, arrays.output.address, stream) };
        done.map_err(|error| arrays.output.with_own_strides(error))
    }

    /// Compiles an operator or finds it, for the alignment of these addresses, and runs it. Tensors on the host need
    /// not be aligned to their elements, such as memory-mapped weights.
    ///
    /// # Errors
    ///
    /// The errors of [`compile_lowered`](Self::compile_lowered) and of
    /// [`dispatch_raw`](CompiledOperator::dispatch_raw). Nothing is queued or written then.
    ///
    /// # Safety
    ///
    /// The promises of [`dispatch_raw`](CompiledOperator::dispatch_raw). The operator need not stay alive on a device
    /// that does.
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
        // SAFETY: `dispatch_raw`'s promises 1 to 3 hold. Promise 4: a device that stays alive keeps the kernels loaded.
        Ok(unsafe { raw::dispatch(&operator, inputs, output, stream, alignment) }?)
    }
}
