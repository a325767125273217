//! A description of what a compiled operator will do: [`CompiledOperator::explain`].

use std::fmt;
use std::time::Duration;

use crate::cuda::select::{chosen, Candidate};
use crate::cuda::{GpuTarget, Launch, Mode};
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
    /// The candidate launches. A dispatch takes the first one whose alignment its pointers satisfy; bound buffers
    /// always satisfy the first one's. Empty if no bytes must move, and on the CPU.
    pub launches: Vec<ExplainedLaunch>,
    /// All kernels that can run this layout, each with its best variant and those that were chosen or measured, from
    /// the lowest estimate on. Fills have none: the first kernel that can run their layout is the fastest.
    pub kernels: Vec<ExplainedKernel>,
    /// Kernels that cannot run this layout.
    pub rejected: Vec<RejectedKernel>,
}

/// A kernel that cannot run a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RejectedKernel {
    /// The kernel's name.
    pub kernel: String,
    /// Why it cannot.
    pub reason: String,
}

/// How long a kernel takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ExplainedKernel {
    /// The entry point, named as in `kernels/`.
    pub kernel: String,
    /// Its variant, such as `strips of 64 bytes`. Empty if it has only one.
    pub variant: String,
    /// The estimate that chooses kernels.
    #[cfg_attr(feature = "serde", serde(rename = "estimated_microseconds", serialize_with = "microseconds"))]
    pub estimate: Option<Duration>,
    /// The time on the GPU at hand, if it was measured.
    #[cfg_attr(feature = "serde", serde(rename = "measured_microseconds", serialize_with = "microseconds"))]
    pub measured: Option<Duration>,
}

#[cfg(feature = "serde")]
fn microseconds<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&time.map(in_microseconds), serializer)
}

fn in_microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// A kernel launch of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ExplainedLaunch {
    /// The entry point, named as in `kernels/`.
    pub kernel: String,
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
        explain_plan(&self.plan(), Some(target), CompileOptions::default())
    }

    /// Describes a dispatch on a GPU if the operator is compiled with these options. Nothing is measured.
    pub fn explain_with(&self, target: &GpuTarget, options: CompileOptions) -> Explanation {
        explain_plan(&self.plan(), Some(target), options)
    }
}

impl CompiledOperator {
    /// Describes a dispatch: merged dimensions, bytes and, on a GPU, kernels with their estimates, grids,
    /// and why other kernels cannot run.
    pub fn explain(&self) -> Explanation {
        let inner = &self.inner;
        let target = self.device().context.as_ref().map(|context| &context.target);
        let mut explanation = explain_plan(&inner.plan, target, inner.options);
        for explained in &mut explanation.modes {
            let mode = Mode::new(explained.in_place);
            // Measured, other launches may have been chosen.
            if let Some(launches) = inner.launcher.as_ref().and_then(|launcher| launcher.launches(mode)) {
                explained.launches = launches.map(|launch| explain_launch(launch, inner.options)).collect();
            }
            mode.of(&inner.measured).iter().for_each(|measured| explained.add_measured(measured));
            explained.kernels.sort_by_key(|of| (of.estimate, of.kernel.clone(), of.variant.clone()));
        }
        explanation
    }
}

/// Describes a plan on a GPU, or on the CPU if there is no target.
pub(crate) fn explain_plan(plan: &OperatorPlan, target: Option<&GpuTarget>, options: CompileOptions) -> Explanation {
    let Summary { dimensions, copying: (name, bytes), in_place } = plan.summary();
    let mode = |name, in_place, bytes| {
        let (launches, kernels, rejected) = (Vec::new(), Vec::new(), Vec::new());
        ExplainedMode { name, in_place, bytes, launches, kernels, rejected }
    };
    let mut modes = vec![mode(name, false, bytes)];
    modes.extend(in_place.map(|bytes| mode("in place", true, bytes)));
    if let Some(target) = target {
        // The fields are public. No GPU has none of these.
        let &GpuTarget { multiprocessors, bandwidth, clock, threads, .. } = target;
        let [multiprocessors, bandwidth, clock, threads] =
            [multiprocessors, bandwidth, clock, threads].map(|figure| figure.max(1));
        let target = GpuTarget { multiprocessors, bandwidth, clock, threads, ..*target };
        modes.iter_mut().for_each(|mode| mode.add_candidates(plan, &target, options));
    }
    Explanation { dimensions, modes }
}

impl ExplainedMode {
    fn add_candidates(&mut self, plan: &OperatorPlan, target: &GpuTarget, options: CompileOptions) {
        let mode = Mode::new(self.in_place);
        let candidates = plan.candidates(target, mode);
        let chosen: Vec<&Candidate> = chosen(candidates.iter(), plan.width()).collect();
        self.launches = chosen.iter().map(|candidate| explain_launch(&candidate.launch, options)).collect();
        for candidate in &candidates {
            let kernel = ExplainedKernel::new(candidate);
            let is_new = self.kernels.iter().all(|other| other.kernel != kernel.kernel);
            let is_chosen = || chosen.iter().any(|chosen| std::ptr::eq(*chosen, candidate));
            let is_known = || self.kernels.iter().any(|other| other.is(&kernel));
            if candidate.estimate().is_some() && (is_new || is_chosen() && !is_known()) {
                self.kernels.push(kernel);
            }
        }
        let rejected = plan.rejected(target, mode).into_iter();
        self.rejected =
            rejected.map(|(kernel, reason)| RejectedKernel { kernel, reason: reason.to_string() }).collect();
    }

    /// Adds a measured time. A variant's first one stays.
    fn add_measured(&mut self, candidate: &Candidate) {
        let measured = ExplainedKernel::new(candidate);
        match self.kernels.iter_mut().find(|known| known.is(&measured)) {
            Some(known) => known.measured = known.measured.or(measured.measured),
            None => self.kernels.push(measured),
        }
    }
}

impl ExplainedKernel {
    fn new(candidate: &Candidate) -> Self {
        let kernel = candidate.launch.entry.name.to_owned();
        Self { kernel, variant: candidate.variant(), estimate: candidate.estimate(), measured: candidate.time }
    }

    /// Whether both are the same variant of one kernel.
    fn is(&self, other: &Self) -> bool {
        self.kernel == other.kernel && self.variant == other.variant
    }
}

fn explain_launch(launch: &Launch, options: CompileOptions) -> ExplainedLaunch {
    ExplainedLaunch {
        kernel: launch.entry.name.to_owned(),
        access_bytes: launch.access,
        blocks: launch.grid.blocks,
        threads: launch.grid.threads,
        shared_memory: launch.grid.shared,
        alignment: launch.alignment,
        specialize: launch.variable.map_or(Specialize::Never, |_| options.specialize),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dimensions.is_empty() {
            writeln!(f, "merged shape: one element")?;
        } else {
            writeln!(f, "merged shape, outermost in the output's memory first:")?;
        }
        for dimension in &self.dimensions {
            let name = if dimension.is_axis { "axis" } else { "size" };
            let strides: Vec<String> =
                dimension.strides.iter().map(|(tensor, stride)| format!("{tensor} {stride}")).collect();
            writeln!(f, "  {name} {}, steps of {}", dimension.size, strides.join(", "))?;
        }
        for mode in &self.modes {
            let most = if mode.in_place { "at most " } else { "" };
            writeln!(f, "{}: {most}{} bytes must move", mode.name, mode.bytes)?;
            if mode.bytes == 0 {
                writeln!(f, "  no kernel: nothing moves")?;
            } else if mode.launches.is_empty() {
                writeln!(f, "  no kernel: the CPU runs it, on the calling thread")?;
            }
            for launch in &mode.launches {
                let ExplainedLaunch { kernel, access_bytes, blocks, threads, shared_memory, alignment, specialize } =
                    launch;
                writeln!(
                    f,
                    "  {kernel}: {access_bytes}-byte stores, grid {blocks} x {threads} threads, {shared_memory} bytes of shared memory per thread block, pointers at multiples of {alignment}, specialize={specialize}"
                )?;
            }
            for ExplainedKernel { kernel, variant, estimate, measured } in &mode.kernels {
                let microseconds = |time: &Option<Duration>, what| {
                    time.map_or_else(String::new, |time| format!("{what} {:.2} µs", in_microseconds(time)))
                };
                let times = [microseconds(measured, "measured"), microseconds(estimate, "estimated")];
                let times: Vec<String> = times.into_iter().filter(|text| !text.is_empty()).collect();
                let comma = if variant.is_empty() { "" } else { ", " };
                writeln!(f, "  {}: {kernel}{comma}{variant}", times.join(", "))?;
            }
            for RejectedKernel { kernel, reason } in &mode.rejected {
                writeln!(f, "  not {kernel}: {reason}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BufferTensorDesc, Device, ReverseSubsequencesDesc, TensorDataType};

    #[test]
    fn a_target_of_zeros_is_explained() {
        let tensor = BufferTensorDesc::packed(TensorDataType::Float16, &[2, 1024, 256]);
        let sequence_lengths_tensor = BufferTensorDesc::packed(TensorDataType::UInt32, &[1, 1024, 256]);
        let (input_tensor, output_tensor) = (tensor.clone(), tensor);
        let desc = ReverseSubsequencesDesc { input_tensor, sequence_lengths_tensor, output_tensor, axis: 0 };
        let operator = Device::cpu().create_operator(desc).expect("a valid operator");
        let h100: GpuTarget = "h100".parse().expect("a target");
        let zeros = GpuTarget { multiprocessors: 0, bandwidth: 0, clock: 0, l2_cache: 0, threads: 0, ..h100 };
        assert!(!operator.explain(&zeros).modes[0].launches.is_empty());
    }
}
