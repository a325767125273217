//! A description of what a compiled operator will do: [`CompiledOperator::explain`].
//!
//! It has one list of kernels for each mode, in three parts:
//!
//! ```text
//! chosen     the kernels that a dispatch tries, in their order; each accepts more pointers than those before it
//! possible   those that could run, from the lowest estimate on
//! rejected   those that cannot run this layout, with the reason
//! ```
//!
//! An operator that is not compiled is described for a GPU that need not exist. `dml-cuda --explain` prints both.

mod text;

use std::time::Duration;

use crate::cuda::select::Candidate;
use crate::cuda::{GpuTarget, Launch, Placement};
use crate::device::operator::{CompiledOperator, Operator};
use crate::operator_plan::OperatorPlan;
use crate::options::{CompileOptions, Specialize};
pub use crate::plan::MergedDimension;
use crate::plan::Summary;

/// The plan of an operator: its merged dimensions, and the kernels that a dispatch chooses from. `Display` writes it
/// for people, and with the feature `serde` it serializes itself; `dml-cuda --explain` prints both.
///
/// ```
/// use dml_cuda::{BufferTensorDesc, Device, FillValueSequenceDesc, ScalarUnion, TensorDataType};
/// let operator = Device::cpu().create_operator(FillValueSequenceDesc {
///     output_tensor: BufferTensorDesc::packed(TensorDataType::Float32, &[64, 1024]),
///     value_data_type: TensorDataType::Float32,
///     value_start: ScalarUnion::Float32(0.0),
///     value_delta: ScalarUnion::Float32(0.5),
/// })?;
/// let explanation = operator.explain(&"h100".parse()?);
/// assert_eq!((explanation.dimensions.len(), explanation.modes[0].bytes), (1, 64 * 1024 * 4));
/// println!("{explanation}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Explanation {
    /// The merged dimensions, outermost in the output's memory first, without dimensions of size 1.
    pub dimensions: Vec<MergedDimension>,
    /// The modes that are possible: a fill, or a reversal out of place and in place. There is no in-place mode if the
    /// strides of input and output differ.
    pub modes: Vec<ExplainedMode>,
}

/// How a dispatch of one kind runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ExplainedMode {
    /// `fill`, `copying` (out of place) or `in place`.
    #[cfg_attr(feature = "serde", serde(rename = "mode"))]
    pub name: &'static str,
    /// Whether the output is the input.
    pub in_place: bool,
    /// Bytes that must be read and written; in place, the most there can be (every length is the axis size).
    pub bytes: u64,
    /// The chosen kernels in the order in which a dispatch tries them, then those that could run, from the lowest
    /// estimate on, then those that cannot. A kernel has several entries if several of its variants were chosen or
    /// measured. Fills have no estimates: of those that could run, only measured ones are listed. Empty on the CPU.
    pub kernels: Vec<ExplainedKernel>,
}

/// A kernel of a layout, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ExplainedKernel {
    /// The entry point, named as in `kernels/`.
    pub kernel: String,
    /// Its variant, such as `strips of 64 bytes`. Empty if it has only one, or if it cannot run.
    pub variant: String,
    /// The estimate that chooses kernels.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "estimated_microseconds", serialize_with = "microseconds")
    )]
    pub estimate: Option<Duration>,
    /// The time on the GPU at hand, if it was measured.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "measured_microseconds", serialize_with = "microseconds")
    )]
    pub measured: Option<Duration>,
    /// What becomes of it.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub outcome: Outcome,
}

/// What becomes of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "outcome", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Outcome {
    /// A dispatch takes it, unless its pointers satisfy the alignment of one that was chosen before. Bound buffers
    /// always satisfy the first one's.
    Chosen(ExplainedLaunch),
    /// It could run, but others are faster, or are estimated to be.
    Possible,
    /// It cannot run this layout.
    Rejected {
        /// Why it cannot.
        reason: String,
    },
}

#[cfg(feature = "serde")]
fn microseconds<S: serde::Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&time.map(in_microseconds), serializer)
}

fn in_microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// How a chosen kernel is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ExplainedLaunch {
    /// Bytes of a thread's widest store.
    pub access_bytes: u32,
    /// Thread blocks.
    pub blocks: u32,
    /// Threads per thread block.
    pub threads: u32,
    /// Bytes of dynamic shared memory per thread block.
    pub shared_memory: u32,
    /// The required alignment of the addresses of the first input and the output.
    pub alignment: u32,
    /// When it is specialized: as the options say, or never.
    pub specialize: Specialize,
}

impl Operator {
    /// Describes a dispatch on a GPU, which need not exist: merged dimensions, bytes, kernels with
    /// their estimates, grids, and why other kernels cannot run.
    pub fn explain(&self, target: &GpuTarget) -> Explanation {
        self.explain_with(target, CompileOptions::default())
    }

    /// Describes a dispatch on a GPU if the operator is compiled with these options. Nothing is measured.
    pub fn explain_with(&self, target: &GpuTarget, options: CompileOptions) -> Explanation {
        // The fields are public. No GPU has none of these.
        let target = GpuTarget {
            multiprocessors: target.multiprocessors.max(1),
            bandwidth: target.bandwidth.max(1),
            clock: target.clock.max(1),
            threads: target.threads.max(1),
            ..*target
        };
        explain_plan(&self.plan(), &target, options)
    }
}

impl CompiledOperator {
    /// Describes a dispatch: merged dimensions, bytes and, on a GPU, kernels with their estimates, grids,
    /// and why other kernels cannot run.
    pub fn explain(&self) -> Explanation {
        let inner = &self.inner;
        let (Some(launcher), Some(context)) = (&inner.launcher, &self.device().context) else {
            return Explanation::new(&inner.plan, |_| Vec::new());
        };
        Explanation::new(&inner.plan, |mode| {
            let mut chosen: Vec<Launch> = Vec::new();
            if let Some(launches) = launcher.launches(mode) {
                chosen.extend(launches.cloned());
            }
            let measured = mode.of(&inner.measured);
            explain_kernels(
                &inner.plan,
                &context.target,
                mode,
                inner.options,
                &chosen,
                measured,
            )
        })
    }
}

impl Explanation {
    fn new(plan: &OperatorPlan, kernels: impl Fn(Placement) -> Vec<ExplainedKernel>) -> Self {
        let Summary {
            dimensions,
            copying: (name, bytes),
            in_place,
        } = plan.summary();
        let mut modes = vec![ExplainedMode {
            name,
            in_place: false,
            bytes,
            kernels: kernels(Placement::OutOfPlace),
        }];
        if let Some(bytes) = in_place {
            modes.push(ExplainedMode {
                name: "in place",
                in_place: true,
                bytes,
                kernels: kernels(Placement::InPlace),
            });
        }
        Self { dimensions, modes }
    }
}

impl ExplainedMode {
    /// Returns the launches of the chosen kernels, in the order in which a dispatch tries them.
    pub fn launches(&self) -> impl Iterator<Item = &ExplainedLaunch> {
        self.kernels
            .iter()
            .filter_map(|kernel| match &kernel.outcome {
                Outcome::Chosen(launch) => Some(launch),
                _ => None,
            })
    }
}

/// Describes a plan whose kernels are chosen by their estimates.
pub(crate) fn explain_plan(
    plan: &OperatorPlan,
    target: &GpuTarget,
    options: CompileOptions,
) -> Explanation {
    Explanation::new(plan, |mode| {
        let chosen = plan.select(target, mode, 0);
        explain_kernels(plan, target, mode, options, &chosen, &[])
    })
}

/// The kernels of a mode, as [`ExplainedMode::kernels`] lists them.
fn explain_kernels(
    plan: &OperatorPlan,
    target: &GpuTarget,
    mode: Placement,
    options: CompileOptions,
    chosen: &[Launch],
    measured: &[Candidate],
) -> Vec<ExplainedKernel> {
    let candidates = plan.candidates(target, mode);
    let mut kernels = Vec::new();
    for launch in chosen {
        let candidate = candidates
            .iter()
            .find(|candidate| candidate.launch == *launch)
            .expect("only candidates are chosen");
        let outcome = Outcome::Chosen(explain_launch(launch, options));
        kernels.push(explain_candidate(candidate, measured, outcome));
    }
    let mut seen = Vec::new();
    for candidate in &candidates {
        let name = candidate.launch.entry.name;
        let is_best = candidate.estimate().is_some() && !seen.contains(&name);
        seen.push(name);
        if chosen.contains(&candidate.launch) {
            continue;
        }
        let possible = explain_candidate(candidate, measured, Outcome::Possible);
        if is_best || possible.measured.is_some() {
            kernels.push(possible);
        }
    }
    for (kernel, reason) in plan.rejected(target, mode) {
        let outcome = Outcome::Rejected {
            reason: reason.to_string(),
        };
        kernels.push(ExplainedKernel {
            kernel,
            variant: String::new(),
            estimate: None,
            measured: None,
            outcome,
        });
    }
    kernels
}

fn explain_candidate(
    candidate: &Candidate,
    measured: &[Candidate],
    outcome: Outcome,
) -> ExplainedKernel {
    let timed = measured
        .iter()
        .find(|measured| measured.launch == candidate.launch);
    ExplainedKernel {
        kernel: candidate.launch.entry.name.to_owned(),
        variant: candidate.variant(),
        estimate: candidate.estimate(),
        measured: timed.and_then(|timed| timed.time),
        outcome,
    }
}

fn explain_launch(launch: &Launch, options: CompileOptions) -> ExplainedLaunch {
    ExplainedLaunch {
        access_bytes: launch.access,
        blocks: launch.grid.blocks,
        threads: launch.grid.threads,
        shared_memory: launch.grid.shared,
        alignment: launch.alignment,
        specialize: if launch.entry.specializable {
            options.specialize
        } else {
            Specialize::Never
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BufferTensorDesc, Device, ReverseSubsequencesDesc, TensorDataType};

    #[test]
    fn a_target_of_zeros_is_explained() {
        let tensor = BufferTensorDesc::packed(TensorDataType::Float16, &[2, 1024, 256]);
        let sequence_lengths_tensor =
            BufferTensorDesc::packed(TensorDataType::UInt32, &[1, 1024, 256]);
        let (input_tensor, output_tensor) = (tensor.clone(), tensor);
        let desc = ReverseSubsequencesDesc {
            input_tensor,
            sequence_lengths_tensor,
            output_tensor,
            axis: 0,
        };
        let operator = Device::cpu()
            .create_operator(desc)
            .expect("a valid operator");
        let h100: GpuTarget = "h100".parse().expect("a target");
        let zeros = GpuTarget {
            multiprocessors: 0,
            bandwidth: 0,
            clock: 0,
            l2_cache: 0,
            threads: 0,
            ..h100
        };
        assert!(operator.explain(&zeros).modes[0]
            .launches()
            .next()
            .is_some());
    }
}
