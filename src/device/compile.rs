//! Compiles operators: chooses their kernels, by an estimate or by measuring them, and loads them.

use std::sync::Arc;
use std::time::Duration;

use crate::cuda::select::Candidate;
use crate::cuda::{load, times, Context, Launch, Launcher, Lengths, Loaded, LoadedKernel, Mode, Tensors};
use crate::desc::OperatorDesc;
use crate::device::compile_options::CompileOptions;
use crate::device::operator::{bytes_of_element, CompiledOperator, Inner, Measured, Operator};
use crate::device::Device;
use crate::error::{CompileError, DispatchError};
use crate::registry::OperatorPlan;
use crate::specialize::Specialize;
use crate::trace::span;
use crate::validate::validate;

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

/// Compiles an operator for a device.
pub(crate) fn compile(
    operator: &Operator,
    device: &Device,
    options: CompileOptions,
) -> Result<CompiledOperator, CompileError> {
    span!("compile_operator", operator = operator.desc.operator_type().name(), device = device);
    check_level(operator, device)?;
    let found = options.pointer_alignment;
    if found != 0 && !found.is_power_of_two() {
        return Err(CompileError::PointerAlignment { found });
    }
    if options.in_place == Some(true) && operator.desc.signature().inputs().is_empty() {
        return Err(CompileError::InPlace);
    }
    let plan = operator.plan();
    let (launcher, measured) = match &device.context {
        Some(context) => {
            let mut compiling = Compiling { operator, plan: &plan, context, options, measured: Vec::new() };
            (Some(compiling.launcher()?), compiling.measured)
        }
        None => (None, Vec::new()),
    };
    Ok(CompiledOperator {
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

/// Fails if an operator was created at a higher feature level than the device's, which rejects it.
pub(crate) fn check_level(operator: &Operator, device: &Device) -> Result<(), CompileError> {
    let level = device.feature_level;
    if level >= operator.level {
        return Ok(());
    }
    validate(&operator.desc, level).map_err(|errors| CompileError::FeatureLevel { level, errors })
}

/// Every kernel that can run an operator in one mode, alone, with its time.
pub(crate) fn compile_each_kernel(
    operator: &Operator,
    device: &Device,
    in_place: bool,
) -> Result<Vec<MeasuredKernel>, DispatchError> {
    let no_kernels = || DispatchError::Measure { found: device.to_string() };
    let context = device.context.as_ref().ok_or_else(no_kernels)?;
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
            operator: CompiledOperator { inner: Arc::new(inner) },
        }
    });
    Ok(each.collect())
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
        // Times that choose nothing are not shown.
        self.measured.retain(|measured| measured.mode != mode);
        let Self { plan, context, options, .. } = self;
        Ok(load(context, plan.select(&context.target, mode, options.pointer_alignment), options.specialize)?)
    }

    /// The fastest launch for pointers at multiples of 16 bytes, then, if pointers may be others, the fastest that
    /// accepts all. `None` if they cannot be timed, or if nothing moves.
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
        // Kernels that are not the fastest are unloaded again. Without room for the fastest, none is compiled.
        let keeps = self.options.specialize == Specialize::Kept && self.context.keeps_more();
        let specialize = if keeps { Specialize::Owned } else { self.options.specialize };
        let loaded = load(self.context, launches.collect(), specialize).ok()?;
        let times = times(self.context, &tensors(self.operator, mode), past, loaded.iter(), ROUNDS).ok()?;
        let measured = candidates.zip(&times).map(|(found, &time)| {
            let (kernel, variant) = (found.launch.entry.name, found.variant.clone());
            Measured { mode, kernel, variant, estimate: found.estimate, time }
        });
        self.measured.extend(measured);
        let ((launch, kernel), _) = loaded.into_iter().zip(times).min_by_key(|(_, time)| *time)?;
        if !keeps || launch.entry.variable.is_none() {
            return Some((launch, kernel));
        }
        let kept = self.context.keep_specialized(&launch, kernel);
        let kernel = kept.map_or_else(|| self.context.kernel(launch.entry), Ok).ok()?;
        Some((launch, kernel))
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
