//! Compiles operators: chooses their kernels, by an estimate or by measuring them, and loads them.

use std::sync::Arc;
use std::time::Duration;

use crate::cuda::{load, times, Launcher, Loaded, Mode};
use crate::device::compile_options::CompileOptions;
use crate::device::measure::{tensors, Measuring};
use crate::device::operator::{CompiledOperator, Inner, Measured, Operator};
use crate::device::Device;
use crate::error::{CompileError, DispatchError};
use crate::trace::span;
use crate::validate::validate;

/// How often each kernel is timed for `measure_kernels`.
const ROUNDS: u32 = 5;

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
    let mut measured = Vec::new();
    let launcher = match &device.context {
        Some(context) => Some(launcher(&Measuring { operator, plan: &plan, context, options }, &mut measured)?),
        None => None,
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
    let times = times(context, &tensors(operator, mode), 0, loaded.iter(), ROUNDS)?;
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

/// The launches of an operator's modes, loaded: those with the least estimates or, measured, the fastest of several.
fn launcher(compiling: &Measuring<'_>, measured: &mut Vec<Measured>) -> Result<Launcher, CompileError> {
    let Measuring { plan, context, options, .. } = *compiling;
    let mut selected = |mode: Mode| -> Result<Loaded, CompileError> {
        if let Some((fastest, times)) = options.measure.then(|| compiling.fastest(mode)).flatten() {
            measured.extend(times);
            return Ok(fastest);
        }
        Ok(load(context, plan.select(&context.target, mode, options.pointer_alignment), options.specialize)?)
    };
    let [copying, in_place] = Mode::ALL.map(|mode| {
        let runs = mode == Mode::Copying || plan.runs_in_place();
        let is_wanted = options.in_place.is_none_or(|always| Mode::new(always) == mode);
        (runs && is_wanted).then(|| selected(mode)).transpose()
    });
    Ok(Launcher::new(context, [copying?, in_place?], options.specialize))
}
