//! Devices, on which operators are created, compiled and run: the CPU, or a GPU by its ordinal.
//!
//! Opening a GPU retains its primary context, which other libraries of the process use as well, so that memory and
//! streams can be handed over. Devices are cheap to clone. Buffers, streams and compiled operators keep theirs
//! alive.

pub(crate) mod buffer;
pub(crate) mod compile;
pub(crate) mod measure;
pub(crate) mod operator;
pub(crate) mod stream;

use std::fmt;
use std::sync::Arc;

use crate::cuda;
use crate::desc::{tensor_support, FeatureLevel, OperatorType, TensorRole, TensorSupport};
use crate::error::DeviceError;
use crate::options::{CompileOptions, ParseCompileOptionsError};

/// A device to create, compile and run operators on: `IDMLDevice`. Cheap to clone, usable from any thread.
///
/// ```
/// use dml_cuda::{Device, FeatureLevel, OperatorType, TensorRole};
/// let device = Device::cpu().with_feature_level(FeatureLevel::V2_1);
/// assert_eq!(device.to_string(), "CPU");
/// let lengths = device.check_tensor_support(OperatorType::ReverseSubsequences, TensorRole::SequenceLengths);
/// assert_eq!(lengths.expect("this level has the operator").data_types, [dml_cuda::TensorDataType::UInt32]);
/// ```
#[derive(Clone, Debug)]
pub struct Device {
    /// `None` for the CPU.
    pub(crate) context: Option<Arc<cuda::Context>>,
    pub(crate) feature_level: FeatureLevel,
    pub(crate) compile_options: CompileOptions,
}

impl Device {
    /// The CPU: the reference, for machines with no GPU.
    pub fn cpu() -> Self {
        Self {
            context: None,
            feature_level: FeatureLevel::HIGHEST,
            compile_options: CompileOptions::default(),
        }
    }

    /// The GPU with that ordinal. Uses its primary context.
    ///
    /// # Errors
    ///
    /// [`DeviceError`]: the machine has no driver, or no such GPU.
    pub fn cuda(ordinal: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            context: Some(cuda::Context::of(ordinal)?),
            ..Self::cpu()
        })
    }

    /// The first GPU, or the CPU on a machine without a driver.
    ///
    /// # Errors
    ///
    /// [`DeviceError`]: there is a driver, but it fails, or reports no GPU. [`Device::cpu`] needs none.
    pub fn cuda_or_cpu() -> Result<Self, DeviceError> {
        match Self::cuda(0) {
            Err(DeviceError::NoDriver) => Ok(Self::cpu()),
            opened => opened,
        }
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
    /// - [`DeviceError::DriverNotLoaded`], [`DeviceError::DriverTooOld`], [`DeviceError::Stub`]: it has one that cannot
    ///   be used.
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
        let adapter = |ordinal| {
            cuda::describe(ordinal).map(|(name, properties)| Adapter {
                ordinal,
                name,
                properties,
            })
        };
        match Self::cuda_status() {
            Err(DeviceError::NoDriver) => Ok(Vec::new()),
            status => (0..status?).map(adapter).collect(),
        }
    }

    /// This device with another feature level. The default is DirectML's highest.
    pub fn with_feature_level(mut self, level: FeatureLevel) -> Self {
        self.feature_level = level;
        self
    }

    /// This device with other [options](Self::compile_options).
    pub fn with_compile_options(self, compile_options: CompileOptions) -> Self {
        Self {
            compile_options,
            ..self
        }
    }

    /// This device with the [options](Self::compile_options) that `DML_CUDA_COMPILE_OPTIONS` sets in the environment
    /// when the process first asks.
    ///
    /// # Errors
    ///
    /// The variable has an unknown option or value.
    pub fn with_environment(self) -> Result<Self, ParseCompileOptionsError> {
        Ok(self.with_compile_options(CompileOptions::of_environment()?))
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
    pub fn check_tensor_support(
        &self,
        operator: OperatorType,
        role: TensorRole,
    ) -> Option<TensorSupport> {
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

/// A GPU as the driver describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adapter {
    /// The argument with which [`Device::cuda`] opens it.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Its properties.
    pub properties: cuda::Properties,
}
