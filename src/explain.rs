//! What a compiled operator will do, in words: [`CompiledOperator::explain`].

use std::fmt;

#[cfg(feature = "cuda")]
use crate::cuda::select::Launches;
#[cfg(feature = "cuda")]
use crate::cuda::{GpuTarget, Launch};
use crate::operator::CompiledOperator;
#[cfg(feature = "cuda")]
use crate::operator::Operator;
pub use crate::plan::MergedDimension;
use crate::registry::Plan;

/// The plan of an operator: dimensions as they were merged, and the kernels that a dispatch chooses from.
/// `Display` writes it for people; `dml-cuda --explain` prints that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The merged dimensions, outermost in the output's memory first; dimensions of size 1 are gone.
    pub dimensions: Vec<MergedDimension>,
    /// How a fill, a reversal between two buffers, and one in place would run; no in-place mode where the strides of
    /// input and output differ.
    pub modes: Vec<ExplainedMode>,
}

/// How a dispatch of one kind runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedMode {
    /// `fill`, `copying` or `in place`.
    pub name: &'static str,
    /// Bytes that must move, read and written: in place, where every length is the axis.
    pub bytes: u64,
    /// The launches that are chosen from, in this order, by the alignment of the pointers; none where nothing moves, nor on
    /// the CPU.
    /// Bound buffers get the first, whose alignment they always have.
    pub launches: Vec<ExplainedLaunch>,
    /// Faster kernels that cannot run this layout, fastest first, each with the reason.
    pub rejected: Vec<(String, String)>,
}

/// A kernel launch of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedLaunch {
    /// The entry point, named as in `kernels/`.
    pub kernel: String,
    /// Bytes of the widest store of a thread.
    pub access_bytes: u32,
    /// Blocks of threads.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared_memory: u32,
    /// What the addresses of the big tensors must be multiples of.
    pub alignment: u32,
}

impl CompiledOperator {
    /// What a dispatch will do: merged dimensions, bytes, and on a GPU kernels, grids, and why no faster kernel was
    /// chosen.
    pub fn explain(&self) -> Explanation {
        #[cfg(feature = "cuda")]
        if let Some(context) = self.device().cuda_context() {
            return on_gpu(self.plan(), &context.target());
        }
        on_cpu(self.plan())
    }
}

#[cfg(feature = "cuda")]
impl Operator {
    /// What a dispatch would do on a GPU with those limits, whether there is one or not: merged dimensions, kernels, grids,
    /// bytes, and why no faster kernel was chosen.
    pub fn explain(&self, target: &GpuTarget) -> Explanation {
        on_gpu(&self.plan(), target)
    }
}

fn on_cpu(plan: &Plan) -> Explanation {
    let summary = plan.summary();
    let mode = |name, bytes| ExplainedMode { name, bytes, launches: Vec::new(), rejected: Vec::new() };
    let in_place = summary.bytes_in_place.map(|bytes| mode("in place", bytes));
    let modes = std::iter::once(mode(summary.mode, summary.bytes)).chain(in_place).collect();
    Explanation { dimensions: summary.dimensions, modes }
}

#[cfg(feature = "cuda")]
fn on_gpu(plan: &Plan, target: &GpuTarget) -> Explanation {
    let mut explanation = on_cpu(plan);
    let selection = plan.select(target);
    let of_modes = std::iter::once(selection.out_of_place).chain(selection.in_place);
    for (mode, Launches { launches, rejected, .. }) in explanation.modes.iter_mut().zip(of_modes) {
        mode.launches = launches.iter().map(explained).collect();
        mode.rejected = rejected.iter().map(|(kernel, reason)| (kernel.to_string(), reason.to_string())).collect();
    }
    explanation
}

#[cfg(feature = "cuda")]
fn explained(launch: &Launch) -> ExplainedLaunch {
    ExplainedLaunch {
        kernel: launch.entry.name().to_string_lossy().into_owned(),
        access_bytes: launch.access,
        blocks: launch.blocks,
        threads: launch.threads,
        shared_memory: launch.shared,
        alignment: launch.alignment,
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
            let most = if mode.name == "in place" { "at most " } else { "" };
            writeln!(f, "{}: {most}{} bytes must move", mode.name, mode.bytes)?;
            if mode.bytes == 0 {
                writeln!(f, "  no kernel: nothing moves")?;
            } else if mode.launches.is_empty() {
                writeln!(f, "  no kernel: the CPU runs it, on the calling thread")?;
            }
            for launch in &mode.launches {
                let ExplainedLaunch { kernel, access_bytes, blocks, threads, shared_memory, alignment } = launch;
                writeln!(
                    f,
                    "  {kernel}: {access_bytes}-byte stores, grid {blocks} x {threads} threads, {shared_memory} bytes of shared memory a block, pointers at multiples of {alignment}"
                )?;
            }
            for (kernel, reason) in &mode.rejected {
                writeln!(f, "  not {kernel}: {reason}")?;
            }
        }
        Ok(())
    }
}
