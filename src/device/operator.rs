//! Operators: validated descriptors, and their compiled form for a device.
//!
//! An [`Operator`] knows no GPU: `create_operator` is the only way to make one, and checks every rule. A
//! [`CompiledOperator`] is immutable and shared by its clones, so that any thread may dispatch it on any stream of its
//! device.

use std::sync::Arc;

use crate::cuda::select::Candidate;
use crate::cuda::Launcher;
use crate::desc::feature_level::FeatureLevel;
use crate::desc::{BufferTensorDesc, OperatorDesc, OperatorType, Signature, TensorRole};
use crate::device::Device;
use crate::operator_plan::OperatorPlan;
use crate::options::CompileOptions;
use crate::trace::span;
use crate::validate::{validate, ValidationErrors};

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
    pub fn create_operator(
        &self,
        desc: impl Into<OperatorDesc>,
    ) -> Result<Operator, ValidationErrors> {
        let (desc, level) = (desc.into(), self.feature_level);
        span!("create_operator", operator = desc.operator_type().name());
        validate(&desc, level)?;
        Ok(Operator {
            desc: Arc::new(desc),
            level,
        })
    }
}

impl Operator {
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
            .expect("`create_operator` validates, and validated descriptors have a plan")
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
    /// The kernels that were timed to choose them, in the order of `Placement::ALL`.
    pub measured: [Vec<Candidate>; 2],
}

/// The bytes of an element, to which memory of other libraries must be aligned.
pub(crate) fn bytes_of_element(desc: &BufferTensorDesc) -> u32 {
    desc.data_type.size_in_bits() / 8
}
