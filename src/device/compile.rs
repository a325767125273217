//! Compiles operators: chooses their kernels, by an estimate or by measuring them, and loads them.
//!
//! ```text
//! operator ── plan ──┬─ CPU: nothing to choose
//!                    └─ GPU, for each placement ──┬─ `select`: the launches with the lowest estimates
//!                                                 └─ `measure::fastest`, with select=measure
//!                                                        └─ kernels loaded into the primary context ── launcher
//! ```
//!
//! An operator that is compiled for certain addresses, as those of the cache are, loads only the kernels that these
//! need. Kernels are loaded once in a process, however many operators use them.

use std::sync::Arc;
use std::time::Duration;

use crate::address::{Address, RawStream};
use crate::cuda::select::Candidate;
use crate::cuda::{load, load_briefly, Context, Launcher, Loaded, Placement, StreamHandle};
use crate::device::measure::{fastest, times};
use crate::device::operator::{CompiledOperator, Inner, Operator};
use crate::device::Device;
use crate::error::{CompileError, DispatchError, Error};
use crate::operator_plan::OperatorPlan;
use crate::options::{CompileOptions, Specialize};
use crate::trace::span;
use crate::validate::validate;

/// How often each kernel is timed for `measure_kernels`.
const ROUNDS: u32 = 5;

/// The dispatches that an operator is compiled for, by default all. A kernel that only others need is not loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Dispatches {
    /// Bytes that the addresses of the first input and the output are multiples of; 0 is unknown.
    pointer_alignment: u32,
    placement: Option<Placement>,
}

impl Dispatches {
    /// Dispatches with the first input and the output at these addresses. No kernel depends on the alignment of the
    /// lengths.
    pub fn at(input: Option<Address>, output: Address) -> Self {
        let is_aligned = (input.unwrap_or_default().0 | output.0).is_multiple_of(16);
        let pointer_alignment = if is_aligned { 16 } else { 0 };
        Self {
            pointer_alignment,
            placement: Some(Placement::new(input == Some(output))),
        }
    }

    /// Dispatches of bound buffers.
    pub fn of_buffers(in_place: bool) -> Self {
        Self {
            pointer_alignment: 16,
            placement: Some(Placement::new(in_place)),
        }
    }
}

/// A kernel that can run an operator, and its time: [`Device::measure_kernels`].
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
    /// The time of the kernel compiled for the operator's sizes, even where a compiled operator never takes that one.
    /// `None` if there is none.
    pub specialized_time: Option<Duration>,
    /// The operator, which takes this kernel wherever the addresses allow it. In the other placement, it takes its usual
    /// kernels.
    pub operator: CompiledOperator,
}

impl Device {
    /// Plans an operator for this device and looks up its kernels. Loads those that are used for the first time.
    ///
    /// # Errors
    ///
    /// [`CompileError`]: the device's feature level is lower than the one that the operator was created at, and rejects
    /// it; or the driver failed.
    pub fn compile_operator(&self, operator: &Operator) -> Result<CompiledOperator, CompileError> {
        self.compile_operator_with(operator, self.compile_options())
    }

    /// Plans an operator with [`CompileOptions`].
    ///
    /// If the driver has not seen a kernel before, it compiles it, which takes milliseconds. Most layouts have two
    /// kernels or more, depending on the alignment of the pointers and on whether the output is the input.
    ///
    /// # Errors
    ///
    /// The errors of [`compile_operator`](Self::compile_operator).
    pub fn compile_operator_with(
        &self,
        operator: &Operator,
        options: CompileOptions,
    ) -> Result<CompiledOperator, CompileError> {
        self.compile_for(operator, options, Dispatches::default())
    }

    /// Compiles an operator for some dispatches. Other dispatches panic.
    pub(crate) fn compile_for(
        &self,
        operator: &Operator,
        options: CompileOptions,
        dispatches: Dispatches,
    ) -> Result<CompiledOperator, CompileError> {
        span!(
            "compile_operator",
            operator = operator.desc.operator_type().name(),
            device = self
        );
        self.check_level(operator)?;
        let plan = operator.plan();
        let mut measured = [Vec::new(), Vec::new()];
        let launcher = match &self.context {
            Some(context) => {
                let placements =
                    selected(operator, &plan, context, options, dispatches, &mut measured)?;
                Some(Launcher::new(context, placements, options))
            }
            None => None,
        };
        Ok(CompiledOperator {
            inner: Arc::new(Inner {
                launcher,
                measured,
                operator: operator.clone(),
                device: self.clone(),
                plan,
                options,
            }),
        })
    }

    /// Times every kernel that can run an operator in place or out of place, from the lowest estimate on. Each one runs
    /// on scratch memory of the tensors' sizes. `dml-cuda tune` writes these times to a file.
    ///
    /// # Errors
    ///
    /// [`CompileError::FeatureLevel`], as for [`compile_operator`](Self::compile_operator); [`DispatchError::Measure`]
    /// on the CPU, which has no kernels; [`BufferError`](crate::BufferError) if memory is short; where a call of the
    /// driver fails, an error that has [`Error::cuda`].
    pub fn measure_kernels(
        &self,
        operator: &Operator,
        in_place: bool,
    ) -> Result<Vec<MeasuredKernel>, Error> {
        self.check_level(operator)?;
        let Some(context) = &self.context else {
            let found = self.to_string();
            return Err(DispatchError::Measure { found }.into());
        };
        let (plan, placement) = (operator.plan(), Placement::new(in_place));
        if in_place && !plan.runs_in_place() {
            return Ok(Vec::new());
        }
        let candidates = plan.candidates(&context.target, placement);
        let launches = candidates.iter().map(|found| found.launch.clone());
        let options = CompileOptions::default().with_specialize(Specialize::Never);
        let loaded = load(context, launches.clone(), options)?;
        let specialized = load_briefly(context, launches)?;
        let generic_times = times(operator, context, placement, 0, ROUNDS, &loaded)?;
        let specialized_times = times(operator, context, placement, 0, ROUNDS, &specialized)?;
        let usual = selected(
            operator,
            &plan,
            context,
            options,
            Dispatches::default(),
            &mut Default::default(),
        )?;
        let mut measured = Vec::with_capacity(candidates.len());
        for (n, (found, loaded)) in candidates.into_iter().zip(loaded).enumerate() {
            let mut placements = usual.clone();
            if let Some(launches) = &mut placements[placement as usize] {
                launches.insert(0, loaded);
            }
            let inner = Inner {
                launcher: Some(Launcher::new(context, placements, options)),
                measured: [Vec::new(), Vec::new()],
                operator: operator.clone(),
                device: self.clone(),
                plan: plan.clone(),
                options,
            };
            let is_specializable = found.launch.entry.specializable;
            measured.push(MeasuredKernel {
                kernel: found.launch.entry.name.to_owned(),
                variant: found.variant(),
                alignment: found.launch.alignment,
                estimate: found.estimate(),
                time: generic_times[n],
                specialized_time: is_specializable.then_some(specialized_times[n]),
                operator: CompiledOperator {
                    inner: Arc::new(inner),
                },
            });
        }
        Ok(measured)
    }

    /// Compiles what a dispatch on a stream needs. If the stream is being captured, and the driver would invalidate the
    /// capture in which a kernel is loaded, loading one is an error.
    ///
    /// # Safety
    ///
    /// The stream is null, or a live stream of the device.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn compile_for_stream<T>(
        &self,
        stream: RawStream,
        compile: impl FnOnce() -> T,
    ) -> T {
        // SAFETY: the caller promises it.
        let stream = unsafe { StreamHandle::borrow(stream) };
        let _no_loading = self
            .context
            .as_ref()
            .and_then(|context| context.protect_capture(stream));
        compile()
    }

    /// Fails if an operator was created at a higher feature level than the device's, which rejects it.
    fn check_level(&self, operator: &Operator) -> Result<(), CompileError> {
        let level = self.feature_level;
        if level >= operator.level {
            return Ok(());
        }
        validate(&operator.desc, level)
            .map_err(|errors| CompileError::FeatureLevel { level, errors })
    }
}

/// The loaded launches of an operator's placements: those with the lowest estimates or, if measured, the fastest of several.
fn selected(
    operator: &Operator,
    plan: &OperatorPlan,
    context: &Arc<Context>,
    options: CompileOptions,
    dispatches: Dispatches,
    measured: &mut [Vec<Candidate>; 2],
) -> Result<[Option<Loaded>; 2], CompileError> {
    let Dispatches {
        pointer_alignment,
        placement: wanted,
    } = dispatches;
    let mut selected = |placement: Placement| -> Result<Loaded, CompileError> {
        if options.measure {
            let alignment = pointer_alignment;
            let found = fastest(operator, plan, context, options, alignment, placement);
            if let Some((fastest, timed)) = found {
                measured[placement as usize] = timed;
                return Ok(fastest);
            }
        }
        let launches = plan.select(&context.target, placement, pointer_alignment);
        Ok(load(context, launches, options)?)
    };
    let [out_of_place, in_place] = Placement::ALL.map(|placement| {
        let runs = placement == Placement::OutOfPlace || plan.runs_in_place();
        let is_wanted = wanted.is_none_or(|wanted| wanted == placement);
        (runs && is_wanted).then(|| selected(placement)).transpose()
    });
    Ok([out_of_place?, in_place?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatches_are_what_their_addresses_say() {
        for (input, output, pointer_alignment, in_place) in [
            (Some(32), 16, 16, false),
            (Some(16), 16, 16, true),
            (Some(8), 16, 0, false),
            (Some(16), 8, 0, false),
            (Some(8), 8, 0, true),
            (None, 64, 16, false),
            (None, 68, 0, false),
        ] {
            let found = Dispatches::at(input.map(Address), Address(output));
            let expected = Dispatches {
                pointer_alignment,
                placement: Some(Placement::new(in_place)),
            };
            assert_eq!(found, expected, "{input:?} {output}");
        }
    }
}
