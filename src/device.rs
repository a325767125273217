//! Devices and what belongs to them: buffers, streams, events.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

use crate::binding::{BindingTable, BufferBinding};
use crate::cpu;
#[cfg(feature = "cuda")]
use crate::cuda;
use crate::desc::{OperatorDesc, OperatorType};
use crate::error::{BufferError, CompileError, DeviceError, DispatchError};
use crate::feature_level::{tensor_support, FeatureLevel, TensorRole, TensorSupport};
use crate::operator::{CompiledOperator, Operator};
use crate::plan::{Plan, Target};
use crate::validate::ValidationErrors;

/// A device to create, compile and run operators on: `IDMLDevice`. Cheap to clone, usable from any thread.
#[derive(Clone, Debug)]
pub struct Device {
    backend: Backend,
    feature_level: FeatureLevel,
}

#[derive(Clone, Debug)]
enum Backend {
    Cpu,
    #[cfg(feature = "cuda")]
    Cuda(Arc<cuda::Context>),
}

/// Writes `NVIDIA H200 (cuda 0)` or `CPU`.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ordinal() {
            Some(ordinal) => write!(f, "{} (cuda {ordinal})", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

impl Device {
    /// The CPU: the reference, for machines with no GPU.
    pub fn cpu() -> Self {
        Self { backend: Backend::Cpu, feature_level: FeatureLevel::HIGHEST }
    }

    /// The GPU with that ordinal, in its primary context.
    ///
    /// # Errors
    ///
    /// [`DeviceError`] where this build has no CUDA backend, the machine has no driver, or no such GPU.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub fn cuda(ordinal: usize) -> Result<Self, DeviceError> {
        #[cfg(feature = "cuda")]
        let device = cuda::Context::new(ordinal)
            .map(|context| Self { backend: Backend::Cuda(Arc::new(context)), feature_level: FeatureLevel::HIGHEST });
        #[cfg(not(feature = "cuda"))]
        let device = Err(DeviceError::NotCompiled);
        device
    }

    /// How many GPUs there are: 0 where there is no driver or no CUDA backend.
    pub fn cuda_count() -> usize {
        #[cfg(feature = "cuda")]
        let count = cuda::device_count().unwrap_or(0);
        #[cfg(not(feature = "cuda"))]
        let count = 0;
        count
    }

    /// The GPUs of this machine, without opening them: empty where there is no driver or no CUDA backend.
    #[cfg(feature = "cuda")]
    pub fn cuda_adapters() -> Result<Vec<Adapter>, DeviceError> {
        let adapter = |ordinal| cuda::describe(ordinal).map(|(name, properties)| Adapter { ordinal, name, properties });
        (0..Self::cuda_count()).map(adapter).collect()
    }

    /// The same device, held to a lower feature level than the highest, which is the default.
    pub fn with_feature_level(mut self, level: FeatureLevel) -> Self {
        self.feature_level = level;
        self
    }

    /// The feature level whose rules apply.
    pub fn feature_level(&self) -> FeatureLevel {
        self.feature_level
    }

    /// The highest feature level a device can be held to: the answer to `DML_FEATURE_FEATURE_LEVELS`.
    pub fn max_supported_feature_level(&self) -> FeatureLevel {
        FeatureLevel::HIGHEST
    }

    /// Which dimension counts and data types this device takes for a tensor of an operator at its feature
    /// level; `None` where the operator does not exist at that level, or has no such tensor.
    pub fn check_tensor_support(&self, operator: OperatorType, role: TensorRole) -> Option<TensorSupport> {
        tensor_support(operator, role, self.feature_level)
    }

    /// The GPU's name as its driver gives it, or `CPU`.
    pub fn name(&self) -> &str {
        match &self.backend {
            Backend::Cpu => "CPU",
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => context.name(),
        }
    }

    /// The GPU's ordinal; `None` of the CPU.
    pub fn ordinal(&self) -> Option<usize> {
        match &self.backend {
            Backend::Cpu => None,
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => Some(context.ordinal()),
        }
    }

    /// What is known of the GPU; `None` of the CPU.
    #[cfg(feature = "cuda")]
    pub fn cuda_properties(&self) -> Option<&cuda::Properties> {
        self.cuda_context().map(|context| context.properties())
    }

    /// Validates a descriptor at the device's feature level.
    ///
    /// # Errors
    ///
    /// [`ValidationErrors`]: every rule the descriptor breaks, in the order of its fields.
    pub fn create_operator(&self, desc: impl Into<OperatorDesc>) -> Result<Operator, ValidationErrors> {
        Operator::new(desc.into(), self.feature_level)
    }

    /// Plans an operator for this device and looks up its kernels, loading them where they are used first.
    pub fn compile_operator(&self, operator: &Operator) -> Result<CompiledOperator, CompileError> {
        CompiledOperator::new(operator, self)
    }

    /// A buffer of that many bytes, all zero, aligned to at least 16 bytes.
    pub fn create_buffer(&self, size_in_bytes: u64) -> Result<Buffer, BufferError> {
        let storage = match &self.backend {
            Backend::Cpu => Storage::Host(Mutex::new(HostBytes::new(size_in_bytes)?)),
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => Storage::Cuda(cuda::Memory::new(context, size_in_bytes)?),
        };
        Ok(Buffer { device: self.clone(), size_in_bytes, storage: Arc::new(storage) })
    }

    /// A buffer that holds `values`, padded with zeros to a multiple of 4 bytes.
    pub fn create_buffer_from<T: Pod>(&self, values: &[T]) -> Result<Buffer, BufferError> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let buffer = self.create_buffer((bytes.len() as u64).next_multiple_of(4))?;
        buffer.write(0, bytes)?;
        Ok(buffer)
    }

    /// A new stream: work queued on one runs in order; work on two may run at once.
    pub fn create_stream(&self) -> Result<Stream, DeviceError> {
        let queue = match &self.backend {
            Backend::Cpu => Queue::Cpu,
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => Queue::Cuda(cuda::Stream::new(context)?),
        };
        Ok(Stream { device: self.clone(), queue })
    }

    /// Whether memory and streams of one can be used with the other.
    pub fn same_as(&self, other: &Device) -> bool {
        self.ordinal() == other.ordinal()
    }

    /// What plans are made for.
    pub(crate) fn target(&self) -> Target {
        match &self.backend {
            Backend::Cpu => Target::default(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(context) => context.target(),
        }
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn cuda_context(&self) -> Option<&Arc<cuda::Context>> {
        match &self.backend {
            Backend::Cpu => None,
            Backend::Cuda(context) => Some(context),
        }
    }
}

/// A GPU as the driver describes it.
#[cfg(feature = "cuda")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// What [`Device::cuda`] opens it by.
    pub ordinal: usize,
    /// The driver's name for it.
    pub name: String,
    /// What else is known of it.
    pub properties: cuda::Properties,
}

/// Host memory aligned to 16 bytes, as the binding rules promise.
#[derive(Debug)]
struct HostBytes(Vec<u128>);

impl HostBytes {
    fn new(size_in_bytes: u64) -> Result<Self, BufferError> {
        let failed = |reason: String| BufferError::OutOfMemory { backend: "cpu", size_in_bytes, reason };
        let words = usize::try_from(size_in_bytes.div_ceil(16)).map_err(|error| failed(error.to_string()))?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(words).map_err(|error| failed(error.to_string()))?;
        memory.resize(words, 0);
        Ok(Self(memory))
    }

    fn bytes(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// Memory of a device. Cheap to clone: clones share the memory, which lives as long as any of them, or any
/// [`BindingTable`] made with one.
#[derive(Clone, Debug)]
pub struct Buffer {
    device: Device,
    size_in_bytes: u64,
    storage: Arc<Storage>,
}

#[derive(Debug)]
enum Storage {
    Host(Mutex<HostBytes>),
    #[cfg(feature = "cuda")]
    Cuda(cuda::Memory),
}

impl Buffer {
    /// Bytes of the buffer.
    pub fn size_in_bytes(&self) -> u64 {
        self.size_in_bytes
    }

    /// The device whose memory it is.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether both share one memory.
    pub fn same_as(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// Writes bytes at an offset, after all work queued on the device.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), BufferError> {
        self.check_range(offset, bytes.len())?;
        match &*self.storage {
            Storage::Host(memory) => {
                lock(memory).bytes()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => Ok(memory.write(offset, bytes)?),
        }
    }

    /// Reads bytes from an offset, after all work queued on the device.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), BufferError> {
        self.check_range(offset, bytes.len())?;
        match &*self.storage {
            Storage::Host(memory) => {
                let length = bytes.len();
                bytes.copy_from_slice(&lock(memory).bytes()[offset as usize..][..length]);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => Ok(memory.read(offset, bytes)?),
        }
    }

    /// The first `count` elements of the buffer, after all work queued on the device.
    pub fn read_elements<T: Pod>(&self, count: usize) -> Result<Vec<T>, BufferError> {
        let length = (count as u64).saturating_mul(size_of::<T>() as u64);
        let size_in_bytes = self.size_in_bytes;
        if length > size_in_bytes {
            return Err(BufferError::OutOfRange { offset: 0, length, size_in_bytes });
        }
        let mut values = vec![T::zeroed(); count];
        self.read(0, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// All elements of the buffer, after all work queued on the device.
    pub fn to_vec<T: Pod>(&self) -> Result<Vec<T>, BufferError> {
        let (size_in_bytes, element_size) = (self.size_in_bytes, size_of::<T>());
        if element_size == 0 || size_in_bytes % element_size as u64 != 0 {
            return Err(BufferError::PartialElement { size_in_bytes, element_size });
        }
        self.read_elements((size_in_bytes / element_size as u64) as usize)
    }

    fn check_range(&self, offset: u64, length: usize) -> Result<(), BufferError> {
        let (length, size_in_bytes) = (length as u64, self.size_in_bytes);
        match offset.checked_add(length) {
            Some(end) if end <= size_in_bytes => Ok(()),
            _ => Err(BufferError::OutOfRange { offset, length, size_in_bytes }),
        }
    }

    fn host(&self) -> Option<&Mutex<HostBytes>> {
        match &*self.storage {
            Storage::Host(memory) => Some(memory),
            #[cfg(feature = "cuda")]
            Storage::Cuda(_) => None,
        }
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn cuda_memory(&self) -> Option<&cuda::Memory> {
        match &*self.storage {
            Storage::Host(_) => None,
            Storage::Cuda(memory) => Some(memory),
        }
    }
}

/// A panic while memory was locked leaves bytes, and any bytes are valid.
fn lock(memory: &Mutex<HostBytes>) -> MutexGuard<'_, HostBytes> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An order of work on a device.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    queue: Queue,
}

#[derive(Debug)]
enum Queue {
    Cpu,
    #[cfg(feature = "cuda")]
    Cuda(cuda::Stream),
}

impl Stream {
    /// The device whose work it orders.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until all work queued so far is done.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        match &self.queue {
            Queue::Cpu => Ok(()),
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => Ok(stream.synchronize()?),
        }
    }

    /// Records an event behind all work queued so far.
    pub fn record_event(&self) -> Result<Event, DeviceError> {
        match &self.queue {
            Queue::Cpu => Err(DeviceError::NoEvents),
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => Ok(Event { mark: stream.record_event()?, device: self.device.clone() }),
        }
    }

    /// The driver's handle of the stream; `None` on the CPU. It lives as long as this stream.
    #[cfg(feature = "cuda")]
    pub fn raw(&self) -> Option<cudarc::driver::sys::CUstream> {
        match &self.queue {
            Queue::Cpu => None,
            Queue::Cuda(stream) => Some(stream.raw()),
        }
    }

    pub(crate) fn dispatch(&self, table: &BindingTable) -> Result<(), DispatchError> {
        let device = table.operator().device();
        if !self.device.same_as(device) {
            return Err(DispatchError::Device { found: self.device.to_string(), required: device.to_string() });
        }
        match &self.queue {
            Queue::Cpu => {
                run_on_host(table);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => cuda::dispatch(table, stream),
        }
    }
}

/// A point in the work of a stream, with the time it was reached. GPU only.
#[derive(Debug)]
pub struct Event {
    device: Device,
    #[cfg(feature = "cuda")]
    mark: cuda::Event,
    #[cfg(not(feature = "cuda"))]
    #[allow(dead_code)]
    mark: std::convert::Infallible,
}

impl Event {
    /// Milliseconds from `earlier` to this event, after waiting for both.
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<f64, DeviceError> {
        if !self.device.same_as(&earlier.device) {
            return Err(DeviceError::DifferentDevices);
        }
        #[cfg(feature = "cuda")]
        return Ok(self.mark.milliseconds_since(&earlier.mark)?);
        #[cfg(not(feature = "cuda"))]
        match self.mark {}
    }
}

/// Runs a bound operator on the CPU. The binding rules make the ranges aligned, and disjoint or the same.
fn run_on_host(table: &BindingTable) {
    let output = table.output();
    let Some(output_memory) = output.buffer.host() else {
        return; // a CPU operator binds CPU buffers only (binding.device)
    };
    match table.operator().plan() {
        Plan::FillValueSequence(plan) => {
            let mut memory = lock(output_memory);
            cpu::fill_value_sequence::run(plan, &mut memory.bytes()[output.offset as usize..]);
        }
        Plan::ReverseSubsequences(plan) => {
            use cpu::reverse_subsequences::{run, Source};
            let [input, lengths] = table.inputs() else {
                return; // two inputs are bound (binding.count)
            };
            // A copy, so that at most two buffers are locked at once. Lengths are few beside the elements.
            let lengths = lengths_of(lengths, table.operator());
            let lengths = bytemuck::cast_slice(&lengths);
            let at = output.offset as usize;
            if table.in_place() {
                run(plan, Source::InPlace, lengths, &mut lock(output_memory).bytes()[at..]);
            } else if input.buffer.same_as(&output.buffer) {
                let mut memory = lock(output_memory);
                let (from, bytes) = (input.offset as usize, memory.bytes());
                if from < at {
                    let (low, high) = bytes.split_at_mut(at);
                    run(plan, Source::Input(&low[from..]), lengths, high);
                } else {
                    let (low, high) = bytes.split_at_mut(from);
                    run(plan, Source::Input(high), lengths, &mut low[at..]);
                }
            } else if let Some(input_memory) = input.buffer.host() {
                // Two threads that each hold one of two buffers and want the other would wait for ever:
                // all lock in the order of the addresses.
                let input_first = std::ptr::from_ref(input_memory) < std::ptr::from_ref(output_memory);
                let first = lock(if input_first { input_memory } else { output_memory });
                let second = lock(if input_first { output_memory } else { input_memory });
                let (mut from, mut to) = if input_first { (first, second) } else { (second, first) };
                run(plan, Source::Input(&from.bytes()[input.offset as usize..]), lengths, &mut to.bytes()[at..]);
            }
        }
    }
}

/// The bytes of a SequenceLengthsTensor, aligned for either type of length.
fn lengths_of(binding: &BufferBinding, operator: &CompiledOperator) -> Vec<u128> {
    let total = operator.signature().inputs().last().map_or(0, |(_, desc)| desc.total_tensor_size_in_bytes) as usize;
    let mut copy = vec![0u128; total.div_ceil(16)];
    if let Some(memory) = binding.buffer.host() {
        let mut memory = lock(memory);
        let bytes = &memory.bytes()[binding.offset as usize..][..total];
        bytemuck::cast_slice_mut(&mut copy)[..total].copy_from_slice(bytes);
    }
    copy
}
