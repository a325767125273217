//! Operators: validated descriptors, and their compiled form for a device.

use std::sync::Arc;

use crate::address::Address;
#[cfg(feature = "cuda")]
use crate::cuda::{Context, Launcher, Mode};
use crate::desc::feature_level::FeatureLevel;
use crate::desc::{BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, OperatorType, Signature, TensorRole};
use crate::device::Device;
use crate::environment::EnvironmentError;
use crate::error::CompileError;
use crate::registry::OperatorPlan;
use crate::specialize::Specialize;
use crate::validate::{validate_float64_fill, ValidationErrors};

/// A validated descriptor: `IDMLOperator`. Knows no GPU; made by [`Device::create_operator`].
#[derive(Clone, Debug)]
pub struct Operator {
    pub(super) desc: Arc<OperatorDesc>,
    /// The level it was validated at.
    pub(super) level: FeatureLevel,
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

/// What all dispatches of a compiled operator have in common. A dispatch that differs fails.
///
/// ```
/// use dml_cuda::lowering::{ForeignTensor, LoweredReversal, ReversalArrays};
/// use dml_cuda::{Address, CompileOptions, Device, DispatchError, TensorDataType};
/// let device = Device::cpu();
/// let (input, lengths) = ([[1u8, 2, 3]], [[2u32]]);
/// let [array, of_lengths] = [&[1, 3], &[1, 1]].map(|sizes| ForeignTensor::packed(Address(0), sizes));
/// let length_type = TensorDataType::UInt32;
/// let arrays = ReversalArrays { input: array, lengths: of_lengths, output: array, axis: 1, element_size: 1, length_type };
/// let desc = LoweredReversal::new(&arrays)?.desc();
/// let options = CompileOptions::default().with_in_place(true);
/// let operator = device.compile_operator_with(&device.create_operator(desc)?, options)?;
/// let mut output = [[0u8; 3]];
/// let copying = operator.dispatch_on_host(&[input.as_flattened(), bytemuck::cast_slice(&lengths)], output.as_flattened_mut());
/// assert!(matches!(copying, Err(DispatchError::Binding(_)))); // it was compiled for in-place dispatches only
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CompileOptions {
    /// The guaranteed alignment, in bytes, of the first elements of the first input and of the output: a power of two,
    /// or 0 if they are only known to be aligned to their elements. For bound buffers, 16 is always right.
    pub pointer_alignment: u32,
    /// Whether the output is the input: always, never, or either (`None`).
    pub in_place: Option<bool>,
    /// Whether kernels are compiled for this operator only.
    pub specialize: Specialize,
}

impl CompileOptions {
    /// The same with a [`pointer_alignment`](Self::pointer_alignment).
    pub fn with_pointer_alignment(self, pointer_alignment: u32) -> Self {
        Self { pointer_alignment, ..self }
    }

    /// The same for dispatches that are always (`true`), never or sometimes (`None`) [`in_place`](Self::in_place).
    pub fn with_in_place(self, in_place: impl Into<Option<bool>>) -> Self {
        Self { in_place: in_place.into(), ..self }
    }

    /// The same with [specialized](Specialize) kernels or generic ones.
    pub fn with_specialize(self, specialize: Specialize) -> Self {
        Self { specialize, ..self }
    }

    /// The options of dispatches with the first input and the output at these addresses, or at others that are as aligned
    /// to 16 bytes, and in place or not, as these are. No kernel depends on the alignment of the lengths. Kernels are
    /// specialized if the [environment](Specialize::of_environment) says so.
    ///
    /// # Errors
    ///
    /// As of [`Specialize::of_environment`].
    pub fn of_addresses(input: Option<Address>, output: Address) -> Result<Self, EnvironmentError> {
        let is_aligned = (input.unwrap_or_default().0 | output.0).is_multiple_of(16);
        Ok(Self {
            pointer_alignment: if is_aligned { 16 } else { 0 },
            in_place: Some(input == Some(output)),
            specialize: Specialize::of_environment()?,
        })
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
    operator: Operator,
    device: Device,
    pub plan: OperatorPlan,
    pub options: CompileOptions,
    /// Queues its kernels; `None` on the CPU.
    #[cfg(feature = "cuda")]
    pub launcher: Option<Launcher>,
}

impl CompiledOperator {
    pub(super) fn new(operator: &Operator, device: &Device, options: CompileOptions) -> Result<Self, CompileError> {
        let plan = operator.plan();
        #[cfg(feature = "cuda")]
        let launcher = |context: &Arc<Context>| {
            let launches = |mode| match options.in_place.map(Mode::new) {
                Some(always) if always != mode => None,
                _ if mode == Mode::InPlace && !plan.runs_in_place() => None,
                _ => Some(plan.select(&context.target, mode).for_pointers(options.pointer_alignment)),
            };
            Launcher::new(context, Mode::ALL.map(launches), options.specialize)
        };
        Ok(Self {
            inner: Arc::new(Inner {
                #[cfg(feature = "cuda")]
                launcher: device.context.as_ref().map(launcher).transpose()?,
                operator: operator.clone(),
                device: device.clone(),
                plan,
                options,
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

    /// The tensors to bind.
    pub(crate) fn signature(&self) -> Signature<'_> {
        self.operator().desc.signature()
    }

    /// Which operator this is.
    pub fn operator_type(&self) -> OperatorType {
        self.operator().desc.operator_type()
    }
}
