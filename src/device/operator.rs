//! Operators: validated descriptors, and their compiled form for a device.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::cuda::select::Candidate;
use crate::cuda::Launcher;
use crate::desc::feature_level::FeatureLevel;
use crate::desc::{
    BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, OperatorType, ScalarUnion, Signature, TensorDataType,
    TensorRole,
};
use crate::device::Device;
use crate::operator_plan::OperatorPlan;
use crate::options::CompileOptions;
use crate::trace::span;
use crate::validate::{validate, validate_float64_fill, ValidationErrors};

/// A validated descriptor: `IDMLOperator`. Knows no GPU; made by [`Device::create_operator`].
#[derive(Clone, Debug)]
pub struct Operator {
    pub(super) desc: Arc<OperatorDesc>,
    /// The level it was validated at.
    pub(super) level: FeatureLevel,
}

impl Device {
    /// Validates a descriptor at the device's feature level.
    ///
    /// # Errors
    ///
    /// [`ValidationErrors`]: every rule the descriptor breaks, in the order of its fields.
    pub fn create_operator(&self, desc: impl Into<OperatorDesc>) -> Result<Operator, ValidationErrors> {
        let (desc, level) = (desc.into(), self.feature_level);
        span!("create_operator", operator = desc.operator_type().name());
        validate(&desc, level)?;
        Ok(Operator { desc: Arc::new(desc), level })
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
}

impl Operator {
    /// A packed sequence of FLOAT64, which DirectML does not have. Usable at every feature level.
    pub(crate) fn float64_sequence(desc: FillValueSequenceDesc) -> Result<Self, ValidationErrors> {
        let desc = desc.into();
        validate_float64_fill(&desc)?;
        Ok(Self { desc: Arc::new(desc), level: FeatureLevel::ALL[0] })
    }

    /// The descriptor it was made from.
    pub fn desc(&self) -> &OperatorDesc {
        &self.desc
    }

    /// The tensors and their names, in the order of the descriptor's fields.
    pub fn tensors(&self) -> impl Iterator<Item = (TensorRole, &BufferTensorDesc)> {
        self.desc.signature().tensors()
    }

    pub(crate) fn plan(&self) -> OperatorPlan {
        OperatorPlan::new(&self.desc)
            .expect("`create_operator` validates, and validated descriptors and packed sequences have a plan")
    }
}

/// `DML_BINDING_PROPERTIES`: what a dispatch needs besides its tensors. Both operators need nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BindingProperties {
    /// Bytes of scratch memory: 0.
    pub temporary_resource_size: u64,
    /// Bytes of memory that lives as long as the operator: 0.
    pub persistent_resource_size: u64,
}

/// An operator made ready for one device: `IDMLCompiledOperator`. Immutable, cheap to clone, and usable from
/// any thread on any stream of its device. Made by [`Device::compile_operator`].
#[derive(Clone, Debug)]
pub struct CompiledOperator {
    pub(crate) inner: Arc<Inner>,
}

impl CompiledOperator {
    /// The operator it was made from.
    pub fn operator(&self) -> &Operator {
        &self.inner.operator
    }

    /// The device it was made for.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Returns the memory that a dispatch needs besides its tensors.
    pub fn binding_properties(&self) -> BindingProperties {
        BindingProperties::default()
    }

    /// The tensors to bind.
    pub(crate) fn signature(&self) -> Signature<'_> {
        self.operator().desc().signature()
    }

    /// Which operator this is.
    pub fn operator_type(&self) -> OperatorType {
        self.operator().desc().operator_type()
    }
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub operator: Operator,
    pub device: Device,
    pub plan: OperatorPlan,
    pub options: CompileOptions,
    /// Queues its kernels; `None` on the CPU.
    pub launcher: Option<Launcher>,
    /// The kernels that were timed to choose them, in the order of `Mode::ALL`.
    pub measured: [Vec<Candidate>; 2],
}

/// The least alignment of memory of others: that of the elements.
pub(crate) fn bytes_of_element(desc: &BufferTensorDesc) -> u32 {
    desc.data_type.size_in_bits() / 8
}
