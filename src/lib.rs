//! DirectML's `FILL_VALUE_SEQUENCE` and `REVERSE_SUBSEQUENCES` for NVIDIA GPUs on Linux. It accepts the descriptors
//! that DirectML accepts, and computes the same bits. Machines with no GPU run it on the CPU.
//!
//! The picture shows the speedup of version 0.1.0 over DirectML 1.13.1, which ran under Linux through vkd3d-proton, on
//! one H200. A dot is a case, and a bar is the geometric mean of a kind.
//!
#![doc = include_str!("../docs/benchmark.svg")]
//!
#![doc = include_str!(concat!(env!("OUT_DIR"), "/rust.md"))]
//!
//! # Map of the crate
//!
//! | step | types | what can go wrong |
//! | --- | --- | --- |
//! | describe | [`BufferTensorDesc`], [`FillValueSequenceDesc`], [`ReverseSubsequencesDesc`] | |
//! | create | [`Device::create_operator`] → [`Operator`] | [`ValidationErrors`]: every broken [`Rule`] |
//! | compile | [`Device::compile_operator`] → [`CompiledOperator`] | [`CompileError`] |
//! | bind | [`CompiledOperator::bind`] with [`BufferBinding`]s → [`BindingTable`] | [`BindingError`] |
//! | dispatch | [`BindingTable::dispatch`] on a [`Stream`]; many as a [`Graph`] | [`DispatchError`] |
//! | all at once | [`fill_value_sequence()`], [`reverse_subsequences()`] | [`Error`] |
//! | slices of host memory | [`CompiledOperator::dispatch_on_host`] | [`DispatchError`] |
//! | tensors of other libraries | [`lowering`], [`Device::compile_lowered`] | [`lowering::LoweringError`] |
//! | raw pointers, foreign streams | [`CompiledOperator::dispatch_raw`] | [`DispatchError`] |
#![cfg_attr(
    feature = "cudarc-0_19",
    doc = "| slices and streams of cudarc | [`CompiledOperator::dispatch_on`] | [`DispatchError`] |"
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod address;
mod cpu;
mod cuda;
mod desc;
mod device;
mod dispatch;
mod error;
mod explain;
pub mod lowering;
mod operator_plan;
mod ops;
mod options;
mod placement;
mod plan;
mod text;
mod trace;
mod validate;

pub use address::{Address, RawStream};
pub use cuda::{GpuTarget, ParseGpuTargetError, Properties};
pub use desc::{
    feature_level, BufferTensorDesc, Delta, Element, FeatureLevel, FillValueSequenceDesc, Length,
    OperatorDesc, OperatorType, ParseOperatorTypeError, ParseTensorDataTypeError, Place,
    ReverseSubsequencesDesc, ScalarUnion, SequenceElement, TensorDataType, TensorFlags, TensorRole,
    TensorSupport,
};
pub use device::buffer::Buffer;
pub use device::compile::MeasuredKernel;
pub use device::operator::{BindingProperties, CompiledOperator, Operator};
pub use device::stream::{Event, Stream};
pub use device::{Adapter, Device};
pub use dispatch::binding::{BindingTable, BufferBinding};
#[cfg(feature = "cudarc-0_19")]
pub use dispatch::cudarc_slices::{CudaBytes, CudaBytesMut};
pub use dispatch::graph::Graph;
pub use error::{
    BindingError, BufferError, CompileError, CudaError, DeviceError, DispatchError, Error,
};
pub use explain::{
    ExplainedKernel, ExplainedLaunch, ExplainedMode, Explanation, MergedDimension, Outcome,
};
pub use ops::{fill_value_sequence, reverse_subsequences};
pub use options::{CompileOptions, ParseCompileOptionsError, Specialize};
pub use validate::{
    validate, validate_as, Caveat, DirectMlVersion, ParseDirectMlVersionError, ParseRuleError,
    Requirement, Rule, ValidationError, ValidationErrors,
};

/// The examples of README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Unit tests use the integration tests' cases and oracles, which name this crate `dml_cuda`. The published crate has
// neither: build.rs sets `in_repository` where they are.
#[cfg(all(test, in_repository))]
extern crate self as dml_cuda;
#[cfg(all(test, in_repository))]
#[allow(dead_code)] // unit tests use only a part
#[path = "../crates/dml-cuda-testing/src/lib.rs"]
mod dml_cuda_testing;
