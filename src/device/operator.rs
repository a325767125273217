//! Operators: validated descriptors, and their compiled form for a device.

use std::sync::Arc;
use std::time::Duration;

use crate::cuda::select::Candidate;
use crate::cuda::{load, times, Context, Launch, Launcher, Lengths, Loaded, LoadedKernel, Mode, Tensors};
use crate::desc::feature_level::FeatureLevel;
use crate::desc::{BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, OperatorType, Signature, TensorRole};
use crate::device::compile_options::CompileOptions;
use crate::device::Device;
use crate::error::{CompileError, DispatchError};
use crate::registry::OperatorPlan;
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
    pub launcher: Option<Launcher>,
    /// The kernels that were timed to choose them.
    pub measured: Vec<Measured>,
}

/// Kernels of each mode that are timed, and how often.
const MEASURED: usize = 4;
const ROUNDS: u32 = 2;
/// How often a kernel is timed that is not chosen by it.
const MANY_ROUNDS: u32 = 5;

/// A kernel that can run an operator, alone, and its time: [`Device::measure_kernels`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MeasuredKernel {
    /// The entry point, named as in `kernels/`.
    pub kernel: String,
    /// Its variant, such as `strips of 64 bytes`. Empty if it has only one.
    pub variant: String,
    /// The required alignment of the addresses of the first input and the output.
    pub alignment: u32,
    /// The estimate by which kernels are chosen. Fills have none.
    pub estimate: Option<Duration>,
    /// The measured time.
    pub time: Duration,
    /// The operator, compiled to this kernel in one mode.
    pub operator: CompiledOperator,
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

/// An operator that is being compiled for a GPU.
struct Compiling<'a> {
    operator: &'a Operator,
    plan: &'a OperatorPlan,
    context: &'a Arc<Context>,
    options: CompileOptions,
    measured: Vec<Measured>,
}

impl Compiling<'_> {
    fn launcher(&mut self) -> Result<Launcher, CompileError> {
        let [copying, in_place] = Mode::ALL.map(|mode| {
            let runs = mode == Mode::Copying || self.plan.runs_in_place();
            let is_wanted = self.options.in_place.is_none_or(|always| Mode::new(always) == mode);
            (runs && is_wanted).then(|| self.selected(mode)).transpose()
        });
        Ok(Launcher::new(self.context, [copying?, in_place?], self.options.specialize))
    }

    /// The launches of a mode, loaded: those with the least estimates or, measured, the fastest of several.
    fn selected(&mut self, mode: Mode) -> Result<Loaded, CompileError> {
        if let Some(fastest) = self.options.measure.then(|| self.fastest(mode)).flatten() {
            return Ok(fastest);
        }
        let Self { plan, context, options, .. } = self;
        Ok(load(context, plan.select(&context.target, mode, options.pointer_alignment), options.specialize)?)
    }

    /// The fastest launch for pointers at multiples of 16 bytes, then, if pointers may be others, the fastest that accepts
    /// all. `None` if they cannot be timed, or if nothing moves.
    fn fastest(&mut self, mode: Mode) -> Option<Loaded> {
        let candidates = self.plan.candidates(&self.context.target, mode);
        candidates.first()?;
        let pointers = self.options.pointer_alignment.max(bytes_of_element(self.operator.desc.output_tensor()));
        let accepts_all = |found: &&Candidate| pointers.is_multiple_of(found.launch.alignment);
        let first = self.fastest_of(candidates.iter(), mode, 0)?;
        if pointers.is_multiple_of(first.0.alignment) {
            return Some(vec![first]);
        }
        let second = self.fastest_of(candidates.iter().filter(accepts_all), mode, pointers % 16)?;
        Some(vec![first, second])
    }

    fn fastest_of<'a>(
        &mut self,
        candidates: impl Iterator<Item = &'a Candidate> + Clone,
        mode: Mode,
        past: u32,
    ) -> Option<(Launch, Arc<LoadedKernel>)> {
        let launches = candidates.clone().take(MEASURED).map(|found| found.launch.clone());
        let loaded = load(self.context, launches.collect(), self.options.specialize).ok()?;
        let times = times(self.context, &tensors(self.operator, mode), past, loaded.iter(), ROUNDS).ok()?;
        let measured = candidates.zip(&times).map(|(found, &time)| {
            let (kernel, variant) = (found.launch.entry.name, found.variant.clone());
            Measured { mode, kernel, variant, estimate: found.estimate, time }
        });
        self.measured.extend(measured);
        loaded.into_iter().zip(times).min_by_key(|(_, time)| *time).map(|(launch, _)| launch)
    }
}

/// The memory of an operator's tensors in a mode.
pub(crate) fn tensors(operator: &Operator, mode: Mode) -> Tensors {
    let output = operator.desc.output_tensor().total_tensor_size_in_bytes;
    match &*operator.desc {
        OperatorDesc::FillValueSequence(_) => Tensors { input: None, output, lengths: None },
        OperatorDesc::ReverseSubsequences(desc) => {
            let lengths = &desc.sequence_lengths_tensor;
            let lengths = Lengths {
                bytes: lengths.total_tensor_size_in_bytes,
                wide: bytes_of_element(lengths) == 8,
                most: desc.input_tensor.sizes[desc.axis as usize].into(),
            };
            let input = (mode == Mode::Copying).then_some(desc.input_tensor.total_tensor_size_in_bytes);
            Tensors { input, output, lengths: Some(lengths) }
        }
    }
}

impl CompiledOperator {
    pub(super) fn new(operator: &Operator, device: &Device, options: CompileOptions) -> Result<Self, CompileError> {
        let plan = operator.plan();
        let (launcher, measured) = match &device.context {
            Some(context) => {
                let mut compiling = Compiling { operator, plan: &plan, context, options, measured: Vec::new() };
                (Some(compiling.launcher()?), compiling.measured)
            }
            None => (None, Vec::new()),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                launcher,
                measured,
                operator: operator.clone(),
                device: device.clone(),
                plan,
                options,
            }),
        })
    }

    /// Every kernel that can run an operator in one mode, alone, with its time.
    pub(super) fn of_each_kernel(
        operator: &Operator,
        device: &Device,
        context: &Arc<Context>,
        in_place: bool,
    ) -> Result<Vec<MeasuredKernel>, DispatchError> {
        let (plan, mode) = (operator.plan(), Mode::new(in_place));
        if in_place && !plan.runs_in_place() {
            return Ok(Vec::new());
        }
        let candidates = plan.candidates(&context.target, mode);
        let launches = candidates.iter().map(|found| found.launch.clone()).collect();
        let options = CompileOptions::default().with_in_place(in_place);
        let loaded = load(context, launches, options.specialize)?;
        let times = times(context, &tensors(operator, mode), 0, loaded.iter(), MANY_ROUNDS)?;
        let each = candidates.into_iter().zip(loaded).zip(times).map(|((found, loaded), time)| {
            let mut modes = [None, None];
            modes[usize::from(in_place)] = Some(vec![loaded]);
            let alignment = found.launch.alignment;
            let inner = Inner {
                launcher: Some(Launcher::new(context, modes, options.specialize)),
                measured: Vec::new(),
                operator: operator.clone(),
                device: device.clone(),
                plan: plan.clone(),
                options: options.with_pointer_alignment(alignment),
            };
            MeasuredKernel {
                kernel: found.launch.entry.name.to_owned(),
                variant: found.variant,
                alignment,
                estimate: found.estimate,
                time,
                operator: Self { inner: Arc::new(inner) },
            }
        });
        Ok(each.collect())
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

/// The least alignment of memory of others: that of the elements.
pub(crate) fn bytes_of_element(desc: &BufferTensorDesc) -> u32 {
    desc.data_type.size_in_bits() / 8
}
