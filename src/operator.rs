//! Operators: a validated descriptor, and what a device makes of it.

use std::sync::Arc;

use crate::binding::{BindingTable, BufferBinding};
use crate::desc::{BufferTensorDesc, OperatorDesc, OperatorType};
use crate::device::Device;
use crate::error::{BindingError, CompileError};
use crate::feature_level::{FeatureLevel, TensorRole};
use crate::plan::{fill_value_sequence, reverse_subsequences, Plan, Target};
use crate::validate::{validate, ValidationErrors};

/// A validated descriptor: `IDMLOperator`. Knows no GPU; made by [`Device::create_operator`].
#[derive(Clone, Debug)]
pub struct Operator {
    desc: Arc<OperatorDesc>,
}

impl Operator {
    pub(crate) fn new(desc: OperatorDesc, level: FeatureLevel) -> Result<Self, ValidationErrors> {
        validate(&desc, level)?;
        Ok(Self { desc: Arc::new(desc) })
    }

    /// The descriptor it was made from.
    pub fn desc(&self) -> &OperatorDesc {
        &self.desc
    }

    /// The tensors and their names, in the order of the descriptor's fields.
    pub fn tensors(&self) -> Vec<(TensorRole, &BufferTensorDesc)> {
        let tensor = |&role| (role, tensor(&self.desc, role));
        TensorRole::of(self.desc.operator_type())
            .iter()
            .filter_map(|role| {
                let (role, desc) = tensor(role);
                Some((role, desc?))
            })
            .collect()
    }

    pub(crate) fn plan(&self, target: &Target) -> Plan {
        let plan = match &*self.desc {
            OperatorDesc::FillValueSequence(desc) => fill_value_sequence::Plan::new(desc).map(Plan::FillValueSequence),
            OperatorDesc::ReverseSubsequences(desc) => {
                reverse_subsequences::Plan::new(desc, target).map(Plan::ReverseSubsequences)
            }
        };
        plan.expect("`Operator::new` validates, and validated descriptors have a plan")
    }
}

/// The tensor of a descriptor with that role.
fn tensor(desc: &OperatorDesc, role: TensorRole) -> Option<&BufferTensorDesc> {
    match (desc, role) {
        (OperatorDesc::FillValueSequence(desc), TensorRole::Output) => Some(&desc.output_tensor),
        (OperatorDesc::FillValueSequence(_), _) => None,
        (OperatorDesc::ReverseSubsequences(desc), TensorRole::Input) => Some(&desc.input_tensor),
        (OperatorDesc::ReverseSubsequences(desc), TensorRole::SequenceLengths) => Some(&desc.sequence_lengths_tensor),
        (OperatorDesc::ReverseSubsequences(desc), TensorRole::Output) => Some(&desc.output_tensor),
    }
}

/// `DML_BINDING_PROPERTIES`: what a dispatch needs besides its tensors. Both operators need nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    operator: Operator,
    device: Device,
    plan: Plan,
    #[cfg(feature = "cuda")]
    functions: Option<crate::cuda::Functions>,
}

impl CompiledOperator {
    pub(crate) fn new(operator: &Operator, device: &Device) -> Result<Self, CompileError> {
        let plan = operator.plan(&device.target());
        Ok(Self {
            inner: Arc::new(Inner {
                #[cfg(feature = "cuda")]
                functions: device.cuda_context().map(|context| crate::cuda::functions(context, &plan)).transpose()?,
                operator: operator.clone(),
                device: device.clone(),
                plan,
            }),
        })
    }

    /// The operator it was made from.
    pub fn operator(&self) -> &Operator {
        &self.inner.operator
    }

    /// The device it was made for.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// What a dispatch needs besides its tensors.
    pub fn binding_properties(&self) -> BindingProperties {
        BindingProperties::default()
    }

    /// Binds buffers: the inputs in the order of the descriptor's fields (InputTensor, SequenceLengthsTensor;
    /// none for a fill), and the output.
    ///
    /// Binding the output to exactly the input's range runs in place.
    ///
    /// # Errors
    ///
    /// [`BindingError`], before anything is queued: the wrong number of inputs, a buffer of another device, a
    /// range that leaves its buffer or is smaller than its tensor's TotalTensorSizeInBytes, an offset that is
    /// not a multiple of max(16, GuaranteedBaseOffsetAlignment), an output that overlaps the lengths, overlaps
    /// the input in part, or equals it with other strides.
    pub fn bind(&self, inputs: &[BufferBinding], output: &BufferBinding) -> Result<BindingTable, BindingError> {
        BindingTable::new(self, inputs, output)
    }

    pub(crate) fn desc(&self) -> &OperatorDesc {
        &self.inner.operator.desc
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.inner.plan
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn functions(&self) -> Option<&crate::cuda::Functions> {
        self.inner.functions.as_ref()
    }

    /// What is bound to it.
    pub(crate) fn signature(&self) -> Signature<'_> {
        match self.desc() {
            OperatorDesc::FillValueSequence(desc) => {
                let output = &desc.output_tensor;
                Signature { inputs: [(TensorRole::Input, output); 2], count: 0, output }
            }
            OperatorDesc::ReverseSubsequences(desc) => Signature {
                inputs: [
                    (TensorRole::Input, &desc.input_tensor),
                    (TensorRole::SequenceLengths, &desc.sequence_lengths_tensor),
                ],
                count: 2,
                output: &desc.output_tensor,
            },
        }
    }

    /// Which operator this is.
    pub fn operator_type(&self) -> OperatorType {
        self.desc().operator_type()
    }
}

/// Roles and descriptors of an operator's inputs, and the descriptor of its output; nothing is allocated.
pub(crate) struct Signature<'a> {
    inputs: [(TensorRole, &'a BufferTensorDesc); 2],
    count: usize,
    pub output: &'a BufferTensorDesc,
}

impl<'a> Signature<'a> {
    /// The inputs, in the order of the descriptor's fields.
    pub fn inputs(&self) -> &[(TensorRole, &'a BufferTensorDesc)] {
        &self.inputs[..self.count]
    }
}
