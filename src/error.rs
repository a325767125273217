//! Errors. Each type can arise in one step only: a caller that has passed a step need not match its errors again.
//! [`Error`] is for the short paths, which take all steps at once.

use crate::cuda::ParseGpuTargetError;
use crate::desc::{
    FeatureLevel, Names, ParseFeatureLevelError, ParseOperatorTypeError, ParseTensorDataTypeError, TensorRole,
};
use crate::environment::EnvironmentError;
use crate::lowering::lowering_error::LoweringError;
use crate::lowering::RangeError;
use crate::validate::{ParseDirectMlVersionError, ParseRuleError, ValidationErrors};

/// A call of the CUDA driver failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cuda: {verb} failed: {reason} (CUDA error {code}); {advice}")]
#[non_exhaustive]
pub struct CudaError {
    /// What was being done.
    pub verb: String,
    /// The driver's `CUresult`.
    pub code: u32,
    /// The driver's own words for it.
    pub reason: String,
    /// What to do about it.
    pub advice: String,
}

/// A device could not be opened, or one of its streams or events failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver library is not on this machine.
    #[error("cuda: loading the driver library (libcuda.so.1, nvcuda.dll) failed: it is not on this machine; install NVIDIA's driver, or use the CPU device")]
    NoDriver,
    /// The driver library is on this machine, but cannot be loaded.
    #[error("cuda: loading the driver library failed: {reason}; install an NVIDIA driver that this system can load, or use the CPU device")]
    DriverNotLoaded {
        /// The loader's words.
        reason: String,
    },
    /// The driver library lacks a function that drivers for CUDA 12.0 have.
    #[error("cuda: loading the driver library failed: it has no {function}; install an NVIDIA driver for CUDA 12.0 or newer, or use the CPU device")]
    DriverTooOld {
        /// What it lacks.
        function: &'static str,
    },
    /// There is no GPU, or none with that ordinal.
    #[error("cuda: opening device {ordinal} failed: the driver reports {count} devices; choose an ordinal below that, or use the CPU device")]
    NoSuchDevice {
        /// The requested ordinal.
        ordinal: usize,
        /// How many devices there are.
        count: usize,
    },
    /// The CPU device has no events: its work is done when the call returns.
    #[error("cpu: recording an event failed: the CPU device runs while it is called; time it with a clock")]
    NoEvents,
    /// A graph has no time before it is launched.
    #[error("the graph must be launched before it is asked for its time")]
    NotLaunched,
    /// Two events, or an event and a stream, belong to different devices.
    #[error("the two events, or the event and the stream, are of different devices, must be of one")]
    DifferentDevices,
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// A buffer could not be made, written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// Allocation failed.
    #[error("{backend}: allocating {size_in_bytes} bytes failed: {reason}; use smaller tensors or free memory")]
    OutOfMemory {
        /// `cpu` or `cuda`.
        backend: &'static str,
        /// The requested size.
        size_in_bytes: u64,
        /// Why it failed.
        reason: String,
    },
    /// The range to read or write leaves the buffer.
    #[error("the range of {length} bytes at offset {offset} is past the end, must be within the {size_in_bytes} bytes of the buffer")]
    OutOfRange {
        /// First byte of the range.
        offset: u64,
        /// Bytes of the range.
        length: u64,
        /// Bytes of the buffer.
        size_in_bytes: u64,
    },
    /// The buffer's size is not a whole number of elements of the requested type.
    #[error("the buffer is {size_in_bytes} bytes, must be a multiple of {element_size}, the bytes of an element")]
    PartialElement {
        /// Bytes of the buffer.
        size_in_bytes: u64,
        /// Bytes of an element.
        element_size: usize,
    },
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// A validated operator could not be made ready to run on the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The operator was created at a higher feature level than the device's, which rejects it.
    #[error("the device's feature level is {level}, which rejects the operator:\n{errors}")]
    FeatureLevel {
        /// The device's level.
        level: FeatureLevel,
        /// The rules that are broken at that level.
        #[source]
        errors: ValidationErrors,
    },
    /// [`CompileOptions::pointer_alignment`](crate::CompileOptions::pointer_alignment) is not a power of two.
    #[error("CompileOptions.PointerAlignment is {found}, must be 0 or a power of two (compile.pointer_alignment)")]
    PointerAlignment {
        /// The option's value.
        found: u32,
    },
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// Buffers do not fit the operator. DirectML removes the device for these; here nothing has been queued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message(&Names::DIRECTML))]
#[non_exhaustive]
pub enum BindingError {
    /// Too few inputs, or too many.
    Count {
        /// Inputs given.
        found: usize,
        /// Inputs of the operator.
        required: usize,
    },
    /// The buffer belongs to another device.
    Device {
        /// Which tensor.
        tensor: TensorRole,
        /// The buffer's device.
        found: String,
        /// The operator's device.
        required: String,
    },
    /// The range is smaller than the tensor.
    Size {
        /// Which tensor.
        tensor: TensorRole,
        /// Bytes bound.
        found: u64,
        /// Bytes of the tensor.
        required: u64,
    },
    /// The slice of another library is smaller than the tensor.
    Slice {
        /// Which tensor.
        tensor: TensorRole,
        /// Bytes of the slice.
        found: u64,
        /// Bytes of the tensor.
        required: u64,
    },
    /// The range leaves the buffer.
    Range {
        /// Which tensor.
        tensor: TensorRole,
        /// First byte bound.
        offset: u64,
        /// Bytes bound.
        length: u64,
        /// Bytes of the buffer.
        size_in_bytes: u64,
    },
    /// The offset, or the raw pointer, is not aligned.
    Alignment {
        /// Which tensor.
        tensor: TensorRole,
        /// `offset` or `pointer`.
        what: &'static str,
        /// Its value.
        found: u64,
        /// What it must be a multiple of.
        required: u64,
    },
    /// A raw pointer is null.
    Null {
        /// Which tensor.
        tensor: TensorRole,
    },
    /// The output overlaps an input that it may not overlap.
    Overlap {
        /// Which input.
        tensor: TensorRole,
        /// The first byte that is in both: an offset in their buffer, or an address.
        found: u64,
        /// The pointers of OutputTensor and of the input; `None` for bound buffers.
        pointers: Option<(u64, u64)>,
        /// What the rule requires.
        required: &'static str,
    },
    /// The operator was compiled with a [`CompileOptions::in_place`](crate::CompileOptions) that this binding does not
    /// satisfy.
    Promise {
        /// The option's value: always (true) or never (false) in place.
        promised: bool,
    },
    /// The output is bound to the input's range, but the two tensors place their elements differently.
    InPlace,
}

impl BindingError {
    /// The message in the caller's words.
    pub fn message(&self, names: &Names<'_>) -> String {
        let of = |tensor: &TensorRole| names.of(*tensor);
        match self {
            Self::Count { found, required } => {
                format!("the number of inputs is {found}, must be {required} (binding.count)")
            }
            Self::Device { tensor, found, required } => format!(
                "the buffer of {} is of {found}, must be of {required}, the operator's device (binding.device)",
                of(tensor)
            ),
            Self::Size { tensor, found, required } => format!(
                "the binding of {} is {found} bytes, must be at least {required}, its TotalTensorSizeInBytes (binding.size)",
                of(tensor)
            ),
            Self::Slice { tensor, found, required } => format!(
                "the slice of {} is {found} bytes, must be at least {required}, from its first element to its last (binding.slice)",
                of(tensor)
            ),
            Self::Range { tensor, offset, length, size_in_bytes } => format!(
                "the binding of {} is {length} bytes at offset {offset}, must be within the {size_in_bytes} bytes of its buffer (binding.range)",
                of(tensor)
            ),
            Self::Alignment { tensor, what, found, required } => format!(
                "the {what} of {} is {found:#x}, must be a multiple of {required} (binding.alignment)",
                of(tensor)
            ),
            Self::Null { tensor } => {
                format!("the pointer of {} is null, must be the address of its first element (binding.null)", of(tensor))
            }
            Self::Overlap { tensor, found, pointers, required } => {
                let (output, input) = (names.output, of(tensor));
                let ranges = match pointers {
                    Some((to, from)) => {
                        format!("the range of {output} at pointer {to:#x} overlaps that of {input} at pointer {from:#x}")
                    }
                    None => format!("the range of {output} overlaps that of {input} from offset {found:#x} on"),
                };
                format!("{ranges}, must {required} (binding.overlap)")
            }
            Self::Promise { promised } => {
                let (found, required, option) = if *promised { ("not ", "", "ALWAYS") } else { ("", "not ", "NEVER") };
                format!("the dispatch is {found}in place, must {required}be, as CompileOptions.InPlace is {option} (binding.promise)")
            }
            Self::InPlace => format!(
                "the layout of {} differs from that of {}, must have the same strides to run in place (binding.in_place)",
                names.output, names.input
            ),
        }
    }
}

/// A bound operator could not be queued. Nothing has been written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The stream belongs to another device.
    #[error("the stream is of {found}, must be of {required}, the operator's device (dispatch.device)")]
    Device {
        /// The stream's device.
        found: String,
        /// The operator's device.
        required: String,
    },
    /// An operator of the graph belongs to another device.
    #[error("the graph is of {found}, must be of {required}, the operator's device (graph.device)")]
    Graph {
        /// The graph's device.
        found: String,
        /// The operator's device.
        required: String,
    },
    /// The CPU device has no kernels to measure.
    #[error("the device is {found}, must be a GPU, whose kernels are measured (measure.device)")]
    Measure {
        /// The device.
        found: String,
    },
    /// The CPU device has no streams of the driver.
    #[error("the stream of the dispatch is {found:#x}, must be null: the operator is of CPU, which has no streams (dispatch.stream)")]
    Stream {
        /// The handle given.
        found: u64,
    },
    /// A raw pointer does not fit the operator.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// A state that this crate excludes.
    #[error(
        "the dispatch has {0}, must have none, by a fault of dml-cuda; please report it with the operator's descriptor"
    )]
    Bug(&'static str),
}

/// Any error of the short paths, and of what comes before them: `?` converts each of the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The tensors break rules of the operator.
    #[error(transparent)]
    Validation(#[from] ValidationErrors),
    /// A slice does not have as many elements as its tensor.
    #[error("the slice of {} is {found} elements, must be {required}, the product of its sizes (slice.length)", .tensor.name())]
    SliceLength {
        /// Which tensor.
        tensor: TensorRole,
        /// Elements given.
        found: usize,
        /// Elements of the tensor.
        required: u64,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Memory failed.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// Compilation failed.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Buffers do not fit.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// Dispatch failed.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
    /// Tensors of another library cannot be described.
    #[error(transparent)]
    Lowering(#[from] LoweringError),
    /// A range has no valid number of elements.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// A call of the CUDA driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// An environment variable has a value that is not known.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// A text is not a feature level.
    #[error(transparent)]
    FeatureLevel(#[from] ParseFeatureLevelError),
    /// A text is not a data type.
    #[error(transparent)]
    TensorDataType(#[from] ParseTensorDataTypeError),
    /// A text is not an operator.
    #[error(transparent)]
    OperatorType(#[from] ParseOperatorTypeError),
    /// A text is not a rule.
    #[error(transparent)]
    Rule(#[from] ParseRuleError),
    /// A text is not a version of DirectML.
    #[error(transparent)]
    DirectMlVersion(#[from] ParseDirectMlVersionError),
    /// A text is not a GPU's limits.
    #[error(transparent)]
    GpuTarget(#[from] ParseGpuTargetError),
}

impl Error {
    /// The message in the caller's words.
    pub fn message(&self, names: &Names<'_>) -> String {
        match self {
            Self::Validation(errors) => errors.message(names),
            Self::Lowering(error) => error.message(names),
            Self::Binding(error) | Self::Dispatch(DispatchError::Binding(error)) => error.message(names),
            other => other.to_string(),
        }
    }
}
