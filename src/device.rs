//! Devices, on which operators are created, compiled and run.

pub(crate) mod binding;
pub(crate) mod binding_error;
pub(crate) mod buffer;
pub(crate) mod compile;
pub(crate) mod compile_options;
pub(crate) mod errors;
pub(crate) mod graph;
pub(crate) mod measure;
pub(crate) mod operand;
pub(crate) mod operator;
pub(crate) mod stream;

use std::fmt;
use std::sync::Arc;

use crate::cuda;
use crate::desc::FeatureLevel;
use crate::device::compile_options::CompileOptions;

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
