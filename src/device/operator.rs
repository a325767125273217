//! Operators: validated descriptors, and their compiled form for a device.

use std::sync::Arc;
use std::time::Duration;

use crate::cuda::{Launcher, Mode};
use crate::desc::feature_level::FeatureLevel;
use crate::desc::{BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, TensorRole};
use crate::device::compile_options::CompileOptions;
use crate::device::Device;
use crate::operator_plan::OperatorPlan;
use crate::trace::span;
use crate::validate::{validate, validate_float64_fill, ValidationErrors};

/// A validated descriptor: `IDMLOperator`. Knows no GPU; made by [`Device::create_operator`].
#[derive(Clone, Debug)]
pub struct Operator {
    pub(super) desc: Arc<OperatorDesc>,
    /// The level it was validated at.
    pub(super) level: FeatureLevel,
}

impl Operator {
    /// Validates a descriptor at a feature level.
    pub(crate) fn new(desc: OperatorDesc, level: FeatureLevel) -> Result<Self, ValidationErrors> {
        span!("create_operator", operator = desc.operator_type().name());
        validate(&desc, level)?;
        Ok(Self { desc: Arc::new(desc), level })
    }

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

#[derive(Debug)]
pub(crate) struct Inner {
    pub operator: Operator,
    pub device: Device,
    pub plan: OperatorPlan,
    pub options: CompileOptions,
    /// Queues its kernels; `None` on the CPU.
    pub launcher: Option<Launcher>,
    /// The kernels that were timed to choose them.
    pub measured: Vec<Measured>,
}

/// What a kernel took that was timed.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub mode: Mode,
    pub kernel: &'static str,
    pub variant: String,
    pub estimate: Option<Duration>,
    pub time: Duration,
}

/// The least alignment of memory of others: that of the elements.
pub(crate) fn bytes_of_element(desc: &BufferTensorDesc) -> u32 {
    desc.data_type.size_in_bits() / 8
}
